# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host, harmful
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    GivenToKubelet,
    Prediction,
    predict,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
CONFIG, DROP_INS = "/var/lib/kubelet/config.yaml", "/etc/kubelet.d"


def host(minor: int = 36) -> Host:
    return Host(kubelet_view(parse_name("1s4c2t").topology()), minor)


def predicted(values: dict[str, Any], minor: int = 36) -> Prediction:
    return predict_values({**HEADER, **values}, host(minor))


def ignored(values: dict[str, Any], minor: int = 36) -> list[Finding]:
    """Return what is ignored, which is all that there is to tell before anything is checked."""
    prediction = predicted(values, minor)
    assert prediction.checked is not None
    assert list(prediction.findings)[: len(prediction.ignored)] == list(prediction.ignored)
    return list(prediction.ignored)


@pytest.mark.parametrize(
    ("values", "minor", "text", "remedy"),
    [
        ({"reservedCpus": "0"}, 36, "reservedCpus", "write reservedSystemCPUs"),
        ({"cpuManagerpolicy": "static"}, 36, "cpuManagerpolicy", "write cpuManagerPolicy"),
        ({"x": 1}, 36, "x", "check how it is spelled, or remove it"),
        # Like memoryManagerPolicy, and something else.
        (
            {"memoryReservationPolicy": "None"},
            35,
            "memoryReservationPolicy",
            "remove it, or upgrade to Kubernetes 1.36",
        ),
        ({"memoryManagerPolicy": "None"}, 20, "memoryManagerPolicy", "remove it, or upgrade to Kubernetes 1.21"),
        ({"authentication": {"anonymous": {"enable": False}}}, 36, "authentication.anonymous.enable", "write enabled"),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {"numanode": 1}]},
            36,
            "reservedMemory[1].numanode",
            "write numaNode",
        ),
    ],
)
def test_unknown_fields(values: dict[str, Any], minor: int, text: str, remedy: str) -> None:
    (finding,) = ignored(values, minor)
    assert finding.text == 'strict decoding error: unknown field "%s"' % text
    assert finding.remedy == remedy
    assert finding.where == text
    assert not finding.fatal


def test_case_counts() -> None:
    (finding,) = ignored({"cpumanagerpolicy": "static"})
    assert finding.cause == "the kubelet 1.36 has no such field, and ignores it; upper and lower case count"
    (finding,) = ignored({"x": "static"}, 34)
    assert finding.cause == "the kubelet 1.34 has no such field, and ignores it"


@pytest.mark.parametrize(
    ("name", "value", "since"),
    [
        ("containerRuntimeEndpoint", "unix:///run/x.sock", 27),
        ("cpuManagerPolicyOptions", {"full-pcpus-only": "true"}, 22),
        ("failCgroupV1", True, 31),
        ("memoryManagerPolicy", "Static", 21),
        ("memoryReservationPolicy", "None", 36),
        ("mergeDefaultEvictionSettings", True, 33),
        ("reservedMemory", [{"numaNode": 0, "limits": {"memory": "1Gi"}}], 21),
        ("singleProcessOOMKill", True, 32),
        ("tlsCurvePreferences", [1], 36),
        ("topologyManagerPolicyOptions", {"prefer-closest-numa-nodes": "true"}, 26),
    ],
)
def test_a_field_counts_from_its_version_on(name: str, value: object, since: int) -> None:
    assert ignored({name: value}, since) == []
    assert predicted({name: value}, since).values[name] == value
    (finding,) = ignored({name: value}, since - 1)
    assert finding.where == name
    assert finding.remedy == "remove it, or upgrade to Kubernetes 1.%d" % since
    assert name not in predicted({name: value}, since - 1).values


def test_a_plain_file_has_nothing_to_ignore() -> None:
    assert predicted({"maxPods": 110, "memorySwap": {}}).ignored == ()


# --- several files ----------------------------------------------------------------------------------


def test_in_drop_in_files_upper_and_lower_case_do_not_count() -> None:
    file = json.dumps({**HEADER, "maxpods": 110}).encode("ascii")
    drop_in = json.dumps({**HEADER, "cpumanagerpolicy": "none", "cpuManagerPolcy": "static"}).encode("ascii")
    prediction = predict(GivenToKubelet((), file, [("1.conf", drop_in)], CONFIG, DROP_INS), host())
    unknown = [
        harmful(
            "the kubelet 1.36 has no such field, and ignores it; upper and lower case count",
            "write maxPods",
            "maxpods",
            'strict decoding error: unknown field "maxpods"',
        ),
        # Of those in drop-ins the kubelet says nothing.
        harmful("the kubelet 1.36 has no such field, and ignores it", "write cpuManagerPolicy", "cpuManagerPolcy"),
    ]
    assert prediction.ignored == unknown
    assert prediction.findings == [
        unknown[0],
        unknown[1],
        harmful(
            'the kubelet takes "cpumanagerpolicy" for cpuManagerPolicy, and of two spellings the last in alphabetical'
            " order",
            "write cpuManagerPolicy",
            "cpumanagerpolicy",
        ),
    ]
    assert prediction.starts


@pytest.mark.parametrize(
    ("content", "where", "text"),
    [
        (
            "".join("%s: %s\n" % item for item in HEADER.items()) + "maxPods: 1\nmaxPods: 2\n",
            CONFIG,
            'strict decoding error: line 4: key "maxPods" already set in map',
        ),
        (
            json.dumps(HEADER)[:-1] + ', "maxPods": 1, "maxPods": 2}',
            "maxPods",
            'strict decoding error: duplicate field "maxPods"',
        ),
    ],
    ids=["yaml", "json"],
)
def test_a_key_that_is_there_twice_is_not_ignored(content: str, where: str, text: str) -> None:
    prediction = predict(GivenToKubelet((), content.encode("ascii"), None, CONFIG), host())
    assert prediction.findings == [
        harmful("a key is there twice; the kubelet takes the later one", "keep it once", where, text)
    ]
    assert prediction.ignored == []
    assert prediction.values["maxPods"] == 2


def test_where_nothing_is_decoded_nothing_else_is_told() -> None:
    prediction = predicted({"maxpods": 110, "maxPods": "110"})
    assert [finding.where for finding in prediction.findings] == ["maxPods"]
    assert (prediction.ignored, prediction.starts) == ((), False)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import (
    Absent,
    DropIns,
    FileState,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    GivenToKubelet,
    Prediction,
    predict,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
VALUES = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
ALL = CPUSet.parse("0-7")

PANIC = "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
FLAGS = "failed to parse kubelet flag: "


def host(minor: int = 36, **details: Any) -> Host:
    return Host(kubelet_view(parse_name("1s4c2t").topology()), minor, **details)


def given(text: FileState | str | None, *arguments: str, drop_ins: DropIns | None = None) -> GivenToKubelet:
    file = (HEADER + text).encode("utf-8") if isinstance(text, str) else text
    return GivenToKubelet(arguments, file, drop_ins, "" if text is None else "/x", "" if drop_ins is None else "/d")


def drop_in(text: str) -> Sequence[tuple[str, FileState]]:
    return [("10.conf", (HEADER + text).encode("utf-8"))]


def said(prediction: Prediction) -> list[str]:
    return [finding.context + finding.text for finding in prediction.findings if finding.fatal]


def test_a_vendor_s_kubelet_only_warns_of_gates_that_it_does_not_have() -> None:
    values = given("featureGates: {AGateOfTheVendor: true}", "--feature-gates=AnotherOne=true")
    assert predict(values, host(warns_of_gates=True)).starts
    assert predict(values, host()).starts is False


# --- what a prediction is -----------------------------------------------------------------------------------

FATAL = Finding("is wrong", "why", "do it", True, "a")
HARMFUL = FATAL._replace(fatal=False, where="b")
UNKNOWN = Unknown("it cannot be seen", "c")


@pytest.mark.parametrize(
    ("findings", "unknown", "refusal", "starts"),
    [
        ([], [], None, True),
        ([HARMFUL], [], None, True),
        ([], [UNKNOWN], None, None),
        ([HARMFUL], [UNKNOWN], None, None),
        ([HARMFUL, FATAL, FATAL._replace(where="d")], [], FATAL, False),
        # What is certain is certain, whatever else cannot be seen.
        ([FATAL], [UNKNOWN], FATAL, False),
    ],
)
def test_whether_it_starts(
    findings: Sequence[Finding], unknown: Sequence[Unknown], refusal: Finding | None, starts: bool | None
) -> None:
    prediction = Prediction(findings, unknown)
    assert (prediction.refusal, prediction.starts) == (refusal, starts)


# --- what is refused before the configuration is whole ------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "minor", "finding"),
    [
        (  # the command line is read before the file
            given("maxPods: [\n", "--nope"),
            36,
            Finding(
                "unknown flag: --nope",
                "the kubelet 1.36 has no such flag",
                "check how it is spelled, or remove it",
                True,
                "--nope",
                FLAGS,
            ),
        ),
        (  # its gates, too
            given("maxPods: [\n", "--feature-gates=CPUManager=true"),
            33,
            Finding(
                "unrecognized feature gate: CPUManager",
                "Kubernetes 1.33 removed this gate; what it switched is always on",
                "remove the gate from --feature-gates",
                True,
                "--feature-gates",
                "failed to set feature gates from initial flags-based config: ",
            ),
        ),
        (  # the file's gates come before its drop-ins
            given("featureGates: {CPUManager: true}\n", drop_ins=Absent.MISSING),
            33,
            Finding(
                "unrecognized feature gate: CPUManager",
                "Kubernetes 1.33 removed this gate; what it switched is always on",
                "remove it from featureGates",
                True,
                "featureGates.CPUManager",
                PANIC,
            ),
        ),
        (
            given("", drop_ins=Absent.MISSING),
            36,
            Finding(
                "lstat /d: no such file or directory",
                "--config-dir names a directory that is not there",
                "make it, or remove --config-dir",
                True,
                "/d",
                'failed to merge kubelet configs: failed to walk through kubelet dropin directory "/d": ',
            ),
        ),
        (
            given(Absent.MISSING),
            36,
            Finding(
                'failed to read kubelet config file "/x", error: open /x: no such file or directory',
                "the file is not there",
                "name a file, or write it",
                True,
                "/x",
                "failed to load kubelet config file, path: /x, error: failed to load Kubelet config file /x, error ",
            ),
        ),
    ],
)
def test_an_early_refusal_is_all_that_is_said(what: GivenToKubelet, minor: int, finding: Finding) -> None:
    assert predict(what, host(minor)) == Prediction([finding])


def test_what_cannot_be_predicted() -> None:
    unknown = Unknown("it cannot be read here", "/x")
    assert predict(given(Absent.UNREADABLE), host()) == Prediction([], [unknown])


# --- what is whole --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    [
        given(STATIC),
        given("", "--cpu-manager-policy=static", "--reserved-cpus=0,4"),
        given("cpuManagerPolicy: static\n", drop_ins=drop_in("reservedSystemCPUs: 0,4\n")),
        given("cpuManagerPolicy: none\n", "--reserved-cpus=0,4", drop_ins=drop_in("cpuManagerPolicy: static\n")),
        given(None, "--reserved-cpus=0,4", drop_ins=drop_in("cpuManagerPolicy: static\n")),
        # What comes later counts before what was there.
        given("cpuManagerPolicy: wrong\nreservedSystemCPUs: 0,4\n", drop_ins=drop_in("cpuManagerPolicy: static\n")),
        given(STATIC.replace("0,4", "0,99"), "--reserved-cpus=0,4"),
    ],
)
def test_files_and_flags_count_together(what: GivenToKubelet) -> None:
    prediction = predict(what, host())
    assert (prediction.findings, prediction.unknown, prediction.starts) == ([], [], True)
    assert prediction.checked is not None
    assert prediction.checked.cpu_manager == CPUManagerConfig("static", ALL, CPUSet.parse("0,4"))
    assert (prediction.values["cpuManagerPolicy"], prediction.values["reservedSystemCPUs"]) == ("static", "0,4")


def test_without_anything() -> None:
    prediction = predict(given(None), host())
    assert (prediction.findings, prediction.starts) == ([], True)
    assert prediction.checked is not None
    assert prediction.checked.cpu_manager == CPUManagerConfig("none", ALL)


def test_all_is_told_in_the_kubelets_order() -> None:
    """What it ignores, the validation, the managers, the flags that count last, and the node."""
    text = "maxPod: 2\nmaxPods: -1\ncpuManagerPolicy: dynamic\ntopologyManagerPolicy: strict\nfailSwapOn: true\n"
    flags = ("--exit-on-lock-contention", "--cloud-provider=aws")
    text += "protectKernelDefaults: true\n"
    prediction = predict(given(text, *flags), host(kernel_flag=lambda _flag: 2, swap_on=True))
    assert [(finding.where, finding.fatal) for finding in prediction.findings] == [
        ("maxPod", False),
        ("maxPods", True),
        ("topologyManagerPolicy", True),
        ("--exit-on-lock-contention", True),
        ("failSwapOn", True),
        ("cpuManagerPolicy", True),
        ("--cloud-provider", True),
        *[("protectKernelDefaults", True)] * 6,
    ]
    assert prediction.checked is not None
    assert prediction.findings == prediction.checked.findings
    assert [finding.where for finding in prediction.checked.after] == ["protectKernelDefaults"] * 6
    assert prediction.refusal == prediction.findings[1]
    assert prediction.checked.cpu_manager is None


def test_what_cannot_be_seen_of_the_node() -> None:
    prediction = predict(given("protectKernelDefaults: true\n"), host())
    assert prediction.unknown == [
        Unknown("/proc/sys/vm/overcommit_memory is not among the node's files", "protectKernelDefaults")
    ]
    assert (prediction.findings, prediction.starts) == ([], None)


@pytest.mark.parametrize(
    ("text", "flag", "texts"),
    [
        # What a flag empties takes no default.
        (STATIC, "--cpu-manager-policy=", ['unknown policy: ""']),
        (
            "",
            "--topology-manager-scope=",
            [
                (
                    "failed to validate kubelet configuration, error: invalid configuration: topologyManagerScope"
                    ' (--topology-manager-scope) "" must be one of: "container", or "pod"'
                )
            ],
        ),
        (STATIC, "--system-reserved=", []),
        # An empty text of the file does.
        ('cpuManagerPolicy: ""\ntopologyManagerScope: ""\n', "--v=2", []),
    ],
)
def test_empty_flags(text: str, flag: str, texts: list[str]) -> None:
    assert said(predict(given(text, flag), host())) == texts


# --- values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4"},
        {"cpuManagerPolicy": "static"},
        {"maxPods": -1},
        {"maxPods": "x"},
        {"maxPods": 1.5, "maxPod": 1},
        {"featureGates": {"CPUManager": True}},
        {"featureGates": {"PodLevelResourceManagers": True}, "clusterDomain": "\u00fc\udcff"},
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}], "memoryManagerPolicy": "Static"},
    ],
)
@pytest.mark.parametrize("minor", [32, 36])
def test_values_are_a_file(values: Mapping[str, Any], minor: int) -> None:
    content = json.dumps({**VALUES, **values}).encode("utf-8")
    found = predict_values({**VALUES, **values}, host(minor), "/x")
    whole = predict(GivenToKubelet((), content, None, "/x"), host(minor))
    assert (found.findings, found.unknown, found.starts) == (whole.findings, whole.unknown, whole.starts)
    assert found.checked == whole.checked


def test_values_of_a_file_that_is_nowhere() -> None:
    (finding,) = predict_values({}, host()).findings
    assert (finding.text, finding.where) == (
        "failed to decode: Object 'Kind' is missing in '{}'",
        "/var/lib/kubelet/config.yaml",
    )

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.fields import (
    FIELDS,
    decoded,
    unknown_fields,
)


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
            {"reservedMemory": [{"numaNode": 0}, {"numanode": 1}]},
            36,
            "reservedMemory[1].numanode",
            "write numaNode",
        ),
    ],
)
def test_unknown_fields(values: dict[str, Any], minor: int, text: str, remedy: str) -> None:
    (finding,) = unknown_fields(values, minor)
    assert finding.text == 'strict decoding error: unknown field "%s"' % text
    assert finding.remedy == remedy
    assert finding.where == text
    assert not finding.fatal


def test_case_counts() -> None:
    (finding,) = unknown_fields({"cpumanagerpolicy": "static"}, 36)
    assert finding.cause == ("the kubelet 1.36 knows no such field and ignores it; upper and lower case count")


def test_known_fields() -> None:
    assert unknown_fields(dict.fromkeys(FIELDS), 36) == []
    assert len(FIELDS) > 120
    nested = {
        "authentication": {"x509": {"clientCAFile": "/ca"}, "webhook": {"enabled": True, "cacheTTL": "0s"}},
        "logging": {"format": "json", "options": {"json": {"infoBufferSize": "0"}}},
        "evictionHard": {"any.signal": "1"},
        "shutdownGracePeriodByPodPriority": [{"priority": 1, "shutdownGracePeriodSeconds": 2}],
        "memorySwap": None,
    }
    assert unknown_fields(nested, 36) == []


@pytest.mark.parametrize(
    "path",
    [
        "authentication.anonymous.enabled",
        "authentication.webhook.enabled",
        "authentication.webhook.cacheTTL",
        "authentication.x509.clientCAFile",
        "authorization.mode",
        "authorization.webhook.cacheAuthorizedTTL",
        "authorization.webhook.cacheUnauthorizedTTL",
        "crashLoopBackOff.maxContainerRestartPeriod",
        "memorySwap.swapBehavior",
        "reservedMemory.numaNode",
        "reservedMemory.limits",
        "shutdownGracePeriodByPodPriority.priority",
        "shutdownGracePeriodByPodPriority.shutdownGracePeriodSeconds",
        "userNamespaces.idsPerPod",
    ],
)
def test_members(path: str) -> None:
    def found(path: str) -> list[str]:
        value: Any = None
        for name in reversed(path.split(".")):
            value = {name: value}
        return [finding.where for finding in unknown_fields(value, 36)]

    assert found(path) == []
    assert found(path + "s") == [path + "s"]


@pytest.mark.parametrize(
    ("name", "value", "since"),
    [
        ("containerRuntimeEndpoint", "unix:///run/x.sock", 27),
        ("cpuManagerPolicyOptions", {"full-pcpus-only": "true"}, 22),
        ("failCgroupV1", True, 31),
        ("memoryManagerPolicy", "Static", 21),
        ("memoryReservationPolicy", "None", 36),
        ("mergeDefaultEvictionSettings", True, 33),
        ("reservedMemory", [{"numaNode": 0}], 21),
        ("singleProcessOOMKill", True, 32),
        ("tlsCurvePreferences", [1], 36),
        ("topologyManagerPolicyOptions", {"prefer-closest-numa-nodes": "true"}, 26),
    ],
)
def test_a_field_counts_from_its_version_on(name: str, value: object, since: int) -> None:
    values = {name: value}
    assert unknown_fields(values, since) == []
    assert decoded(values, since) == (values, [])
    (finding,) = unknown_fields(values, since - 1)
    assert finding.where == name
    assert finding.remedy == "remove it, or upgrade to Kubernetes 1.%d" % since
    assert decoded(values, since - 1) == ({}, [])


STRUCT = "failed to decode: json: cannot unmarshal %s into Go struct field KubeletConfiguration.%s of type %s"


@pytest.mark.parametrize(
    ("values", "text", "kept"),
    [
        (
            {"cpuManagerPolicyOptions": {"full-pcpus-only": True}},
            STRUCT % ("bool", "cpuManagerPolicyOptions", "string"),
            {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
        ),
        ({"reservedSystemCPUs": 3}, STRUCT % ("number", "reservedSystemCPUs", "string"), {"reservedSystemCPUs": "3"}),
        (
            {"kubeReserved": {"cpu": 0.5}},
            STRUCT % ("number", "kubeReserved", "string"),
            {"kubeReserved": {"cpu": "0.5"}},
        ),
        ({"kubeReserved": {"cpu": {}}}, STRUCT % ("object", "kubeReserved", "string"), {"kubeReserved": {}}),
        ({"kubeReserved": True}, STRUCT % ("bool", "kubeReserved", "map[string]string"), {}),
        ({"kubeReserved": []}, STRUCT % ("array", "kubeReserved", "map[string]string"), {}),
        ({"featureGates": {"A": "true"}}, STRUCT % ("string", "featureGates", "bool"), {"featureGates": {"A": True}}),
        ({"featureGates": {"A": 1}}, STRUCT % ("number", "featureGates", "bool"), {"featureGates": {}}),
        ({"featureGates": "A=true"}, STRUCT % ("string", "featureGates", "map[string]bool"), {}),
        ({"cgroupsPerQOS": "no"}, STRUCT % ("string", "cgroupsPerQOS", "bool"), {}),
        # In JSON; YAML's 110.0 becomes 110 before it is decoded.
        ({"maxPods": 110.0}, STRUCT % ("number 110.0", "maxPods", "int32"), {}),
        ({"maxPods": 1.5}, STRUCT % ("number 1.5", "maxPods", "int32"), {}),
        ({"maxPods": 1 << 31}, STRUCT % ("number 2147483648", "maxPods", "int32"), {}),
        ({"maxPods": -(1 << 31) - 1}, STRUCT % ("number -2147483649", "maxPods", "int32"), {}),
        ({"podPidsLimit": 1 << 63}, STRUCT % ("number 9223372036854775808", "podPidsLimit", "int64"), {}),
        ({"maxPods": "110"}, STRUCT % ("string", "maxPods", "int32"), {}),
        ({"maxPods": {}}, STRUCT % ("object", "maxPods", "int32"), {}),
        ({"clusterDNS": {"10.0.0.10": True}}, STRUCT % ("object", "clusterDNS", "[]string"), {}),
        ({"maxPods": True}, STRUCT % ("bool", "maxPods", "int32"), {}),
        (
            {"enforceNodeAllocatable": "pods"},
            STRUCT % ("string", "enforceNodeAllocatable", "[]string"),
            {},
        ),
        (
            {"enforceNodeAllocatable": ["pods", 1]},
            STRUCT % ("number", "enforceNodeAllocatable", "string"),
            {"enforceNodeAllocatable": ["pods", "1"]},
        ),
        (
            {"cpuManagerReconcilePeriod": 10},
            "failed to decode: json: cannot unmarshal number into Go value of type string",
            {},
        ),
        (
            {"cpuManagerReconcilePeriod": "10"},
            'failed to decode: time: missing unit in duration "10"',
            {},
        ),
        (
            {"cpuManagerReconcilePeriod": "10sec"},
            'failed to decode: time: unknown unit "sec" in duration "10sec"',
            {},
        ),
        *[
            ({"cpuManagerReconcilePeriod": text}, "failed to decode: time: %s" % said, {})
            for text, said in (
                ("1e3s", 'unknown unit "e" in duration "1e3s"'),
                ("1h 30m", 'unknown unit "h " in duration "1h 30m"'),
                ("1h1", 'missing unit in duration "1h1"'),
                ("--5s", 'invalid duration "--5s"'),
                ("9999999h", 'invalid duration "9999999h"'),
                ("2562048h", 'invalid duration "2562048h"'),
            )
        ],
        ({"cpuManagerReconcilePeriod": "soon"}, 'failed to decode: time: invalid duration "soon"', {}),
        ({"cpuManagerReconcilePeriod": ""}, 'failed to decode: time: invalid duration ""', {}),
    ],
)
def test_wrong_types(values: dict[str, Any], text: str, kept: dict[str, Any]) -> None:
    found, (finding,) = decoded(values, 36)
    assert finding.text == text
    assert finding.fatal
    assert finding.cause
    assert finding.remedy
    assert found == kept


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"what": "ever", "cpuManagerPolicy": None, "apiVersion": "v"}, {"apiVersion": "v"}),
        ({"cpuCFSQuotaPeriod": "5ms"}, {"cpuCFSQuotaPeriod": 5_000_000}),
        ({"featureGates": {"A": None}}, {"featureGates": {"A": False}}),
        ({"kubeReserved": {"cpu": None}}, {"kubeReserved": {"cpu": ""}}),
        ({"enforceNodeAllocatable": [None]}, {"enforceNodeAllocatable": [""]}),
        ({"podPidsLimit": (1 << 63) - 1}, {"podPidsLimit": (1 << 63) - 1}),
        ({"maxPods": (1 << 31) - 1, "port": -(1 << 31)}, {"maxPods": (1 << 31) - 1, "port": -(1 << 31)}),
        ({"memorySwap": {"swapBehavior": 1}}, {"memorySwap": {"swapBehavior": 1}}),
    ],
)
def test_decoded(values: dict[str, Any], found: dict[str, Any]) -> None:
    assert decoded(values, 36) == (found, [])


@pytest.mark.parametrize(
    ("values", "where", "remedy"),
    [
        (
            {"cpuManagerPolicyOptions": {"full-pcpus-only": True}},
            "cpuManagerPolicyOptions.full-pcpus-only",
            'put it in quotes, as in "true"',
        ),
        ({"kubeReserved": {"cpu": ["1"]}}, "kubeReserved.cpu", "write a string"),
        ({"kubeReserved": {"cpu": {"is": "1"}}}, "kubeReserved.cpu", "write a string"),
        ({"featureGates": {"A": "true"}}, "featureGates.A", "write true or false"),
        ({"maxPods": "110"}, "maxPods", "write a int32"),
    ],
)
def test_a_remedy_says_what_to_write(values: dict[str, Any], where: str, remedy: str) -> None:
    _found, (finding,) = decoded(values, 36)
    assert finding.where == where
    assert finding.remedy == remedy

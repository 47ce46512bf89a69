# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import Object, read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    DecodeError,
    decode_file,
    decode_merged,
)

_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NS = 10**9


def _json(text: str) -> Any:
    return read_json(text.encode())


@pytest.mark.parametrize(
    ("tree", "values"),
    [
        ({}, {}),
        ({"cpuManagerPolicy": "static", "maxPods": 5, "cpuCFSQuota": False}, None),
        ({"cpuManagerReconcilePeriod": "1m"}, {"cpuManagerReconcilePeriod": 60 * _NS}),
        ({"cpuCFSQuotaPeriod": None, "tracing": None, "kubeReserved": None, "clusterDNS": None}, {}),
        ({"maxPods": None, "cpuManagerPolicy": None, "runOnce": None, "authentication": None}, {}),
        ({"memoryThrottlingFactor": None, "logging": {"flushFrequency": None, "verbosity": None}}, {"logging": {}}),
        ({"memoryThrottlingFactor": 1}, {"memoryThrottlingFactor": 1.0}),
        ({"kubeReserved": {"cpu": None, "memory": "1Gi"}}, {"kubeReserved": {"cpu": "", "memory": "1Gi"}}),
        ({"featureGates": {"A": True, "B": None}}, {"featureGates": {"A": True, "B": False}}),
        ({"enforceNodeAllocatable": [None, "pods"]}, {"enforceNodeAllocatable": ["", "pods"]}),
        ({"staticPodURLHeader": {"a": ["b"], "c": None}}, {"staticPodURLHeader": {"a": ["b"], "c": []}}),
        ({"tlsCurvePreferences": [29]}, None),
        ({"cpuCFSQuotaPeriod": "5ms"}, {"cpuCFSQuotaPeriod": 5_000_000}),
        ({"maxPods": (1 << 31) - 1, "port": -(1 << 31), "podPidsLimit": (1 << 63) - 1}, None),
        ({"fooBar": 1, "CPUManagerPolicy": 5}, {}),
        (
            {"authentication": {"anonymous": {"enabled": True}, "x": 1}},
            {"authentication": {"anonymous": {"enabled": True}}},
        ),
        (
            {
                "reservedMemory": [
                    {"numaNode": 1, "limits": {"memory": " 1Gi ", "hugepages-1Gi": 2, "x": None}},
                    {},
                    None,
                ]
            },
            {
                "reservedMemory": [
                    {"numaNode": 1, "limits": {"memory": "1Gi", "hugepages-1Gi": "2", "x": "0"}},
                    {"numaNode": 0, "limits": {}},
                    {"numaNode": 0, "limits": {}},
                ]
            },
        ),
        (
            {"reservedMemory": [{"limits": {"memory": "Ki"}}]},
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "0"}}]},
        ),
        (
            {"logging": {"flushFrequency": "5s", "vmodule": [{"filePattern": "a", "verbosity": 2}]}},
            {"logging": {"flushFrequency": 5 * _NS, "vmodule": [{"filePattern": "a", "verbosity": 2}]}},
        ),
        ({"logging": {"flushFrequency": 5, "options": {"text": {"infoBufferSize": "1Ki"}}}}, None),
        (
            {"registerWithTaints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-31T12:00:00Z"}]},
            {
                "registerWithTaints": [
                    {"key": "a", "value": "", "effect": "NoSchedule", "timeAdded": "2026-01-31T12:00:00Z"}
                ]
            },
        ),
    ],
)
def test_what_fits(tree: Any, values: dict[str, Any] | None) -> None:
    assert decode_file(tree, 36) == (tree if values is None else values)


_FIELD = "json: cannot unmarshal %s into Go struct field %s of type %s"


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"cpuManagerPolicy": 5}, _FIELD % ("number", "KubeletConfiguration.cpuManagerPolicy", "string")),
        ({"cpuManagerPolicy": ["a"]}, _FIELD % ("array", "KubeletConfiguration.cpuManagerPolicy", "string")),
        ({"cpuCFSQuota": "true"}, _FIELD % ("string", "KubeletConfiguration.cpuCFSQuota", "bool")),
        ({"maxPods": -1.5}, _FIELD % ("number -1.5", "KubeletConfiguration.maxPods", "int32")),
        ({"maxPods": 99999999999}, _FIELD % ("number 99999999999", "KubeletConfiguration.maxPods", "int32")),
        ({"maxPods": True}, _FIELD % ("bool", "KubeletConfiguration.maxPods", "int32")),
        ({"maxPods": {}}, _FIELD % ("object", "KubeletConfiguration.maxPods", "int32")),
        ({"maxPods": "110"}, _FIELD % ("string", "KubeletConfiguration.maxPods", "int32")),
        ({"maxPods": 1 << 31}, _FIELD % ("number 2147483648", "KubeletConfiguration.maxPods", "int32")),
        ({"maxPods": -(1 << 31) - 1}, _FIELD % ("number -2147483649", "KubeletConfiguration.maxPods", "int32")),
        (
            {"podPidsLimit": 1 << 63},
            _FIELD % ("number 9223372036854775808", "KubeletConfiguration.podPidsLimit", "int64"),
        ),
        (_json('{"maxPods": 110.0}'), _FIELD % ("number 110.0", "KubeletConfiguration.maxPods", "int32")),
        (_json('{"maxPods": 1e2}'), _FIELD % ("number 1e2", "KubeletConfiguration.maxPods", "int32")),
        (
            _json('{"memoryThrottlingFactor": 1e999}'),
            _FIELD % ("number 1e999", "KubeletConfiguration.memoryThrottlingFactor", "float64"),
        ),
        (
            {"memoryThrottlingFactor": "1"},
            _FIELD % ("string", "KubeletConfiguration.memoryThrottlingFactor", "float64"),
        ),
        ({"kubeReserved": "x"}, _FIELD % ("string", "KubeletConfiguration.kubeReserved", "map[string]string")),
        ({"kubeReserved": True}, _FIELD % ("bool", "KubeletConfiguration.kubeReserved", "map[string]string")),
        ({"kubeReserved": []}, _FIELD % ("array", "KubeletConfiguration.kubeReserved", "map[string]string")),
        ({"kubeReserved": {"cpu": 1}}, _FIELD % ("number", "KubeletConfiguration.kubeReserved", "string")),
        ({"kubeReserved": {"cpu": 0.5}}, _FIELD % ("number", "KubeletConfiguration.kubeReserved", "string")),
        ({"kubeReserved": {"cpu": {}}}, _FIELD % ("object", "KubeletConfiguration.kubeReserved", "string")),
        (
            {"cpuManagerPolicyOptions": {"full-pcpus-only": True}},
            _FIELD % ("bool", "KubeletConfiguration.cpuManagerPolicyOptions", "string"),
        ),
        ({"featureGates": {"A": 1}}, _FIELD % ("number", "KubeletConfiguration.featureGates", "bool")),
        ({"featureGates": {"A": "true"}}, _FIELD % ("string", "KubeletConfiguration.featureGates", "bool")),
        ({"featureGates": "A=true"}, _FIELD % ("string", "KubeletConfiguration.featureGates", "map[string]bool")),
        ({"clusterDNS": "x"}, _FIELD % ("string", "KubeletConfiguration.clusterDNS", "[]string")),
        ({"clusterDNS": {"10.0.0.10": True}}, _FIELD % ("object", "KubeletConfiguration.clusterDNS", "[]string")),
        ({"clusterDNS": ["x", 1]}, _FIELD % ("number", "KubeletConfiguration.clusterDNS", "string")),
        ({"clusterDNS": [1]}, _FIELD % ("number", "KubeletConfiguration.clusterDNS", "string")),
        (
            {"reservedMemory": {}},
            _FIELD % ("object", "KubeletConfiguration.reservedMemory", "[]v1beta1.MemoryReservation"),
        ),
        (
            {"reservedMemory": [{"numaNode": "0"}]},
            _FIELD % ("string", "MemoryReservation.reservedMemory.numaNode", "int32"),
        ),
        (
            {"reservedMemory": [{"limits": []}]},
            _FIELD % ("array", "MemoryReservation.reservedMemory.limits", "v1.ResourceList"),
        ),
        (
            {"reservedMemory": [5]},
            _FIELD % ("number", "KubeletConfiguration.reservedMemory", "v1beta1.MemoryReservation"),
        ),
        (
            {"authentication": "x"},
            _FIELD % ("string", "KubeletConfiguration.authentication", "v1beta1.KubeletAuthentication"),
        ),
        (
            {"authentication": {"anonymous": {"enabled": 5}}},
            _FIELD % ("number", "KubeletAnonymousAuthentication.authentication.anonymous.enabled", "bool"),
        ),
        (
            {"authorization": {"mode": 1}},
            _FIELD % ("number", "KubeletAuthorization.authorization.mode", "v1beta1.KubeletAuthorizationMode"),
        ),
        (
            {"memorySwap": {"swapBehavior": 1}},
            _FIELD % ("number", "MemorySwapConfiguration.memorySwap.swapBehavior", "string"),
        ),
        ({"tracing": 1}, _FIELD % ("number", "KubeletConfiguration.tracing", "v1.TracingConfiguration")),
        (
            {"userNamespaces": {"idsPerPod": "x"}},
            _FIELD % ("string", "UserNamespaces.userNamespaces.idsPerPod", "int64"),
        ),
        (
            {"logging": {"verbosity": -1}},
            _FIELD % ("number -1", "LoggingConfiguration.logging.verbosity", "v1.VerbosityLevel"),
        ),
        (
            {"logging": {"options": {"text": {"splitStream": 1}}}},
            _FIELD % ("number", "TextOptions.logging.options.text.splitStream", "bool"),
        ),
        (
            {"registerWithTaints": [{"effect": 1}]},
            _FIELD % ("number", "Taint.registerWithTaints.effect", "v1.TaintEffect"),
        ),
        (
            {"registerWithTaints": [{"timeAdded": 1}]},
            _FIELD % ("number", "Taint.registerWithTaints.timeAdded", "string"),
        ),
        (
            {"registerWithTaints": [{"timeAdded": "x"}]},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse ',
        ),
        (
            {"cpuManagerReconcilePeriod": 5},
            _FIELD % ("number", "KubeletConfiguration.cpuManagerReconcilePeriod", "string"),
        ),
        ({"cpuManagerReconcilePeriod": None}, 'time: invalid duration ""'),
        ({"cpuManagerReconcilePeriod": "5"}, 'time: missing unit in duration "5"'),
        ({"cpuCFSQuotaPeriod": ""}, 'time: invalid duration ""'),
        ({"reservedMemory": [{"limits": {"memory": "x"}}]}, _FORMAT),
        ({"reservedMemory": [{"limits": {"memory": True}}]}, _FORMAT),
        ({"reservedMemory": [{"limits": {"memory": [1]}}]}, _FORMAT),
        ({"logging": {"flushFrequency": "x"}}, 'time: invalid duration "x"'),
        (
            {"logging": {"flushFrequency": 1.5}},
            'invalid duration "1.5": json: cannot unmarshal number 1.5 into Go value of type time.Duration',
        ),
        (
            {"logging": {"flushFrequency": True}},
            'invalid duration "true": json: cannot unmarshal bool into Go value of type time.Duration',
        ),
        ({"logging": {"flushFrequency": {}}}, "json: cannot unmarshal object into Go value of type time.Duration"),
        # The first value of a wrong type is told: in YAML the first by name, in JSON the first in the text.
        ({"maxPods": "x", "cgroupRoot": 1}, _FIELD % ("number", "KubeletConfiguration.cgroupRoot", "string")),
        (
            _json('{"maxPods": "x", "cgroupRoot": 1}'),
            _FIELD % ("string", "KubeletConfiguration.maxPods", "int32"),
        ),
        # A type that reads its JSON itself ends all, and is told in place of what came before.
        ({"cpuManagerPolicy": 5, "cpuManagerReconcilePeriod": "x"}, 'time: invalid duration "x"'),
    ],
)
def test_what_does_not_fit(tree: Any, text: str) -> None:
    with pytest.raises(DecodeError) as error:
        decode_file(tree, 36)
    assert error.value.text == text


@pytest.mark.parametrize(
    ("tree", "where", "cause", "remedy"),
    [
        (
            {"kubeReserved": {"cpu": 1}},
            "kubeReserved.cpu",
            "it is a number, and the kubelet wants a string",
            'put it in quotes, as in "1"',
        ),
        (
            {"cgroupRoot": True},
            "cgroupRoot",
            "it is a bool, and the kubelet wants a string",
            'put it in quotes, as in "true"',
        ),
        ({"cgroupRoot": []}, "cgroupRoot", "it is an array, and the kubelet wants a string", "write a string"),
        ({"maxPods": "x"}, "maxPods", "it is a string, and the kubelet wants an int32", "write an int32"),
        (
            {"cpuManagerPolicyOptions": {"full-pcpus-only": True}},
            "cpuManagerPolicyOptions.full-pcpus-only",
            "it is a bool, and the kubelet wants a string",
            'put it in quotes, as in "true"',
        ),
        (
            {"kubeReserved": {"memory": "1Gi", "cpu": ["1"]}},
            "kubeReserved.cpu",
            "it is an array, and the kubelet wants a string",
            "write a string",
        ),
        (
            {"kubeReserved": {"cpu": {"is": "1"}}},
            "kubeReserved.cpu",
            "it is an object, and the kubelet wants a string",
            "write a string",
        ),
        (
            {"featureGates": {"A": "true"}},
            "featureGates.A",
            "it is a string, and the kubelet wants a bool",
            "write true or false",
        ),
        (
            {"clusterDNS": ["10.96.0.10", 1], "cgroupRoot": "/"},
            "clusterDNS[1]",
            "it is a number, and the kubelet wants a string",
            'put it in quotes, as in "1"',
        ),
        (
            {"reservedMemory": [{}, {"limits": {"hugepages-1Gi": "1Gi", "memory": "much"}}]},
            "reservedMemory[1].limits.memory",
            "it is no quantity",
            "write CPUs as 2 or 500m, memory as 1Gi",
        ),
        (
            {"reservedMemory": [{}, {"numaNode": True}], "clusterDNS": []},
            "reservedMemory[1].numaNode",
            "it is a bool, and the kubelet wants an int32",
            "write an int32",
        ),
        # Behind a list, and in one below a key.
        (
            {"reservedMemory": [{}], "staticPodURLHeader": {"a": ["b", 1]}},
            "staticPodURLHeader.a",
            "it is a number, and the kubelet wants a string",
            'put it in quotes, as in "1"',
        ),
        ({"runOnce": 1}, "runOnce", "it is a number, and the kubelet wants a bool", "write true or false"),
        ({"clusterDNS": 1}, "clusterDNS", "it is a number, and the kubelet wants a []string", "write a list"),
        (
            {"kubeReserved": 1},
            "kubeReserved",
            "it is a number, and the kubelet wants a map[string]string",
            "write a mapping",
        ),
        (
            {"syncFrequency": None},
            "syncFrequency",
            "there is no duration",
            "write it with its unit, as in 10s, 1m30s or 500ms",
        ),
    ],
)
def test_what_people_are_told(tree: Any, where: str, cause: str, remedy: str) -> None:
    with pytest.raises(DecodeError) as error:
        decode_file(tree, 36)
    assert (error.value.where, error.value.cause, error.value.remedy) == (where, cause, remedy)


@pytest.mark.parametrize(
    ("tree", "values"),
    [
        ({"cpumanagerpolicy": "foo"}, {"cpuManagerPolicy": "foo"}),
        # The later one in byte order wins; a null leaves what is there, if it is not a map, a list or a pointer.
        ({"RESERVEDSYSTEMCPUS": "9", "reservedSystemCPUs": "0"}, {"reservedSystemCPUs": "0"}),
        ({"RESERVEDSYSTEMCPUS": "9", "reservedSystemCPUs": None}, {"reservedSystemCPUs": "9"}),
        ({"FailCgroupV1": True, "failCgroupV1": None}, {}),
        ({"KubeReserved": {"a": "1", "b": "1"}, "kubeReserved": {"b": "2"}}, {"kubeReserved": {"a": "1", "b": "2"}}),
        ({"ClusterDNS": ["a", "b"], "clusterDNS": [None]}, {"clusterDNS": ["a"]}),
        (
            {"ReservedMemory": [{"numaNode": 1, "limits": {"a": 1}}], "reservedMemory": [{"limits": {"b": 2}}, {}]},
            {"reservedMemory": [{"numaNode": 1, "limits": {"a": "1", "b": "2"}}, {"numaNode": 0, "limits": {}}]},
        ),
        (
            {"Authentication": {"X509": {"clientcafile": "a"}}, "authentication": {"webhook": {}}},
            {"authentication": {"x509": {"clientCAFile": "a"}, "webhook": {}}},
        ),
    ],
)
def test_upper_and_lower_case_do_not_count_behind_a_merge(tree: Any, values: dict[str, Any]) -> None:
    assert decode_merged(tree, 36) == values


def test_of_a_key_that_is_there_twice_the_one_is_decoded_into_the_other() -> None:
    tree = _json('{"kubeReserved": {"cpu": "1", "cpu": "2"}, "kubeReserved": {"memory": "1"}}')
    assert isinstance(tree, Object)
    assert decode_file(tree, 36) == {"kubeReserved": {"cpu": "2", "memory": "1"}}


@pytest.mark.parametrize(
    ("minor", "path"),
    [(33, "options.text.OutputRoutingOptions.splitStream"), (32, "options.text.splitStream")],
)
def test_an_embedded_struct_shows_in_later_versions(minor: int, path: str) -> None:
    with pytest.raises(DecodeError) as error:
        decode_merged({"logging": {"options": {"text": {"splitStream": 1}}}}, minor)
    assert error.value.text == _FIELD % ("number", "TextOptions.logging." + path, "bool")
    assert error.value.where == "logging.options.text.splitStream"

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that are wanted: whether they are valid, how they differ from those of a file, and what changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import (
    SETTINGS,
    changes,
    check_settings,
    complete,
    differences,
    found_settings,
    plan_settings,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import REMOVE
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.settings_cases import (
    DEFAULTS,
    OTHERS,
    OTHERS_TEXT,
    file,
)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("reservedSystemCPUs: 0\n", "reserved_system_cpus", "0"),
        ("kubeReserved: {cpu: 1}\n", "kube_reserved_cpu", "1"),
        ("memoryManagerPolicy: static\n", "memory_manager_policy", "None"),
        (
            "cpuManagerPolicyOptions: {full-pcpus-only: true}\n",
            "cpu_manager_policy_options",
            {"full-pcpus-only": "true"},
        ),
    ],
)
def test_what_the_kubelet_refuses_is_replaced(text: str, name: str, value: object) -> None:
    plan = plan_settings({name: value}, file(text))
    assert list(plan.changes) == [SETTINGS[name].path]
    assert plan_settings({name: value}, plan.configuration).changes == {}


def test_no_options_need_no_gate() -> None:
    assert plan_settings({"cpu_manager_policy_options": {}}, file(""), 22).changes == {}
    changes = plan_settings({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, file(""), 22).changes
    assert ("featureGates", "CPUManagerPolicyOptions") in changes


def test_check_settings() -> None:
    check_settings({})
    check_settings(DEFAULTS)
    check_settings(OTHERS)
    check_settings({"cpu_manager_reconcile_period": "0"})
    check_settings({"cpu_cfs_quota_period": "1ms"})
    check_settings({"cpu_cfs_quota_period": "1s"})


BAD = [
    ("cpu_manager_policy", "dynamic", "'dynamic' is not one of none, static"),
    ("cpu_manager_policy", "", "'' is not one of none, static"),
    (
        "cpu_manager_policy_options",
        {"a": True},
        'option a is True, not a text; write it quoted, as in "true"',
    ),
    ("cpu_manager_policy_options", "a", "'a' is not a mapping of option names to texts"),
    ("cpu_manager_reconcile_period", "1d", "duration '1d': there is no unit 'd'; write it as 10s, 1m30s or 500ms"),
    ("cpu_manager_reconcile_period", "9999999h", "duration '9999999h': it is longer than Go can count"),
    ("cpu_manager_reconcile_period", "-1s", "'-1s' is negative; write 0 or more"),
    (
        "topology_manager_policy",
        "best_effort",
        "'best_effort' is not one of none, best-effort, restricted, single-numa-node",
    ),
    ("topology_manager_scope", None, "None is not one of container, pod"),
    ("reserved_system_cpus", "a", "CPU list 'a', position 1: expected a CPU id, found 'a'"),
    (
        "reserved_system_cpus",
        "0-3:1/2",
        "CPU list '0-3:1/2': the kubelet reads neither strides nor line ends; write '0,2'",
    ),
    (
        "reserved_system_cpus",
        "0-3\n",
        "CPU list '0-3\\n': the kubelet reads neither strides nor line ends; write '0-3'",
    ),
    (
        "reserved_system_cpus",
        3,
        'the number 3 can mean CPU 3 or 3 CPUs; write "3" in quotes for the CPU, or reservation: {count: 3} for',
    ),
    ("reserved_system_cpus", 0, "the number 0 can mean CPU 0 or 0 CPUs"),
    ("reserved_system_cpus", 1.5, '1.5 is not a text; write the CPUs as one text, as in "0-1,24-25"'),
    ("reserved_system_cpus", True, "True is not a text; write the CPUs as one text"),
    ("reserved_system_cpus", [0, 4], "[0, 4] is not a text; write the CPUs as one text"),
    ("reserved_system_cpus", {"count": 3}, "{'count': 3} is not a text; write the CPUs as one text"),
    ("kube_reserved_cpu", "1x", "quantity '1x': unknown suffix 'x'; write CPUs as 2, 0.5 or 500m"),
    ("kube_reserved_cpu", "-1", "'-1' is negative; write 0 or more"),
    ("system_reserved_cpu", "-1m", "'-1m' is negative; write 0 or more"),
    ("kube_reserved_memory", "-1Gi", "'-1Gi' is negative; write 0 or more"),
    ("system_reserved_memory", "-1Gi", "'-1Gi' is negative; write 0 or more"),
    ("cpu_cfs_quota_period", "2s", "'2s' is out of range; write 1ms to 1s"),
    ("cpu_cfs_quota_period", "0", "'0' is out of range; write 1ms to 1s"),
    ("cpu_cfs_quota_period", "999us", "'999us' is out of range; write 1ms to 1s"),
    ("cpu_cfs_quota_period", "1000001us", "'1000001us' is out of range; write 1ms to 1s"),
    ("cpu_cfs_quota", "yes", "'yes' is neither true nor false"),
    ("memory_manager_policy", "BestEffort", "'BestEffort' is not one of None, Static"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_bad_setting(name: str, value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_settings({**OTHERS, name: value})
    assert str(caught.value).startswith("%s: %s" % (name, message))


def test_complete() -> None:
    assert complete({}, OTHERS) == OTHERS
    assert complete({"cpu_manager_reconcile_period": "1s"}, OTHERS) == {**OTHERS, "cpu_manager_reconcile_period": "1s"}
    assert complete(OTHERS, DEFAULTS) == OTHERS
    # The policy none starts with no options.
    none = complete({"cpu_manager_policy": "none"}, OTHERS)
    assert none == {**OTHERS, "cpu_manager_policy": "none", "cpu_manager_policy_options": {}}
    # ... but what somebody asks for is not dropped silently.
    both = {"cpu_manager_policy": "none", "cpu_manager_policy_options": {"a": "true"}}
    assert complete(both, OTHERS) == {**OTHERS, **both}
    # A node without the static policy keeps the options that it has.
    assert complete({}, {**OTHERS, "cpu_manager_policy": "none"})["cpu_manager_policy_options"]


SAME = [
    ("cpu_manager_reconcile_period", "10s", "10000ms"),
    ("cpu_manager_reconcile_period", "10s", "0s"),  # the kubelet's default
    ("cpu_manager_reconcile_period", "0", "10s"),
    ("reserved_system_cpus", "0-1,4", "4,0,1"),
    ("kube_reserved_cpu", "1", "1000m"),
    ("kube_reserved_cpu", "0.5", "500m"),
    ("system_reserved_cpu", "0", "0m"),
    ("cpu_manager_policy_options", {"a": "1", "b": "0"}, {"b": "0", "a": "1"}),
    ("kube_reserved_memory", "1Gi", "1073741824"),
    ("cpu_cfs_quota_period", "100ms", "0.1s"),
    (
        "reserved_memory",
        [{"numaNode": 1, "limits": {"memory": "1Gi"}}, {"numaNode": 0, "limits": {"memory": "1Gi"}}],
        [{"limits": {"memory": "1024Mi"}}, {"numaNode": 1, "limits": {"memory": 1073741824}}],
    ),
]


@pytest.mark.parametrize(("name", "wanted", "found"), SAME)
def test_two_ways_to_say_the_same(name: str, wanted: object, found: object) -> None:
    assert differences({name: wanted}, {**DEFAULTS, name: found}) == []
    assert changes({name: wanted}, {**DEFAULTS, name: found}) == {}


def test_differences() -> None:
    assert differences(OTHERS, OTHERS) == []
    assert differences({}, OTHERS) == []
    assert differences(OTHERS, DEFAULTS) == list(SETTINGS)
    assert differences(dict(reversed(list(OTHERS.items()))), DEFAULTS) == list(SETTINGS)
    for name in SETTINGS:
        assert differences({name: OTHERS[name]}, DEFAULTS) == [name]
        assert differences({**DEFAULTS, name: OTHERS[name]}, DEFAULTS) == [name]


def test_changes() -> None:
    assert changes(OTHERS, DEFAULTS) == {SETTINGS[name].path: value for name, value in OTHERS.items()}
    # Nothing is not written.
    assert changes(DEFAULTS, OTHERS) == {
        ("cpuManagerPolicy",): "none",
        ("cpuManagerPolicyOptions",): REMOVE,
        ("cpuManagerReconcilePeriod",): "10s",
        ("topologyManagerPolicy",): "none",
        ("topologyManagerScope",): "container",
        ("topologyManagerPolicyOptions",): REMOVE,
        ("memoryManagerPolicy",): "None",
        ("cpuCFSQuota",): True,
        ("cpuCFSQuotaPeriod",): "100ms",
        ("reservedSystemCPUs",): REMOVE,
        ("kubeReserved", "cpu"): REMOVE,
        ("systemReserved", "cpu"): REMOVE,
        ("kubeReserved", "memory"): REMOVE,
        ("systemReserved", "memory"): REMOVE,
        ("reservedMemory",): REMOVE,
    }


def test_changes_make_the_file() -> None:
    assert file().with_changes(changes(OTHERS, DEFAULTS)).text == OTHERS_TEXT
    back = KubeletConfiguration.parse(OTHERS_TEXT).with_changes(changes(DEFAULTS, OTHERS))
    assert back.text == (
        "apiVersion: kubelet.config.k8s.io/v1beta1\n"
        "cpuCFSQuota: true\n"
        "cpuCFSQuotaPeriod: 100ms\n"
        "cpuManagerPolicy: none\n"
        "cpuManagerReconcilePeriod: 10s\n"
        "kind: KubeletConfiguration\n"
        "memoryManagerPolicy: None\n"
        "topologyManagerPolicy: none\n"
        "topologyManagerScope: container\n"
    )


all_settings = st.fixed_dictionaries(
    {},
    optional={
        "cpu_manager_policy": st.sampled_from(["none", "static"]),
        "cpu_manager_policy_options": st.dictionaries(
            st.sampled_from(["full-pcpus-only", "strict-cpu-reservation"]), st.sampled_from(["true", "false", "1"])
        ),
        "cpu_manager_reconcile_period": st.sampled_from(["0s", "10s", "1m", "60s", "1500ms"]),
        "topology_manager_policy": st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
        "topology_manager_scope": st.sampled_from(["container", "pod"]),
        "reserved_system_cpus": st.sampled_from(["", "0", "0-1", "1,0", "0,4"]),
        "kube_reserved_cpu": st.sampled_from(["0", "500m", "0.5", "1", "1000m"]),
        "system_reserved_cpu": st.sampled_from(["0", "0m", "2", "2e0"]),
        "topology_manager_policy_options": st.sampled_from([{}, {"prefer-closest-numa-nodes": "true"}]),
        "memory_manager_policy": st.sampled_from(["None", "Static"]),
        "cpu_cfs_quota": st.booleans(),
        "cpu_cfs_quota_period": st.sampled_from(["100ms", "0.1s", "5ms"]),
        "kube_reserved_memory": st.sampled_from(["0", "1Gi"]),
        "system_reserved_memory": st.sampled_from(["0", "512Mi", "536870912"]),
        "reserved_memory": st.sampled_from([[], [{"numaNode": 0, "limits": {"memory": "1Gi"}}]]),
    },
)


@given(all_settings, all_settings)
def test_after_the_changes_the_file_says_what_is_wanted(before: dict[str, Any], wanted: dict[str, Any]) -> None:
    configuration = file().with_changes(changes(before, DEFAULTS))
    found = found_settings(configuration)
    assert differences(before, found) == []
    changed = configuration.with_changes(changes(wanted, found))
    assert differences(wanted, found_settings(changed)) == []
    # What nobody asked for stays.
    others = {name: value for name, value in found.items() if name not in wanted}
    assert differences(others, found_settings(changed)) == []
    # And once is enough.
    assert changes(wanted, found_settings(changed)) == {}


@given(all_settings)
def test_what_is_found_can_be_wanted(settings: dict[str, Any]) -> None:
    found = found_settings(file().with_changes(changes(settings, DEFAULTS)))
    check_settings(found)
    assert differences(found, found) == []
    assert found_settings(file().with_changes(changes(found, DEFAULTS))) == found

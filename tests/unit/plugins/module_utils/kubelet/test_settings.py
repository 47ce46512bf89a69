# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/kubelet/settings.py."""

from __future__ import annotations

import json
from typing import Any, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import (
    ConfigurationError,
    InputError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.effective import effective_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.configuration import (
    Configuration,
    KubeletConfiguration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.values import REMOVE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.settings import (
    SETTINGS,
    WOULD_NOT_START,
    changes,
    check_settings,
    check_wishes,
    complete,
    differences,
    found_settings,
    ignored_key_notes,
    needed_config,
    plan_settings,
    start_error,
    wanted_reservation_notes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.engine import predict, predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.finding import (
    Finding,
    Host,
    Unknown,
    harmful,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.prediction import Given, Prediction
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.config import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus, defaults_of_settings

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

DEFAULTS = defaults_of_settings()

OTHERS: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "cpu_manager_reconcile_period": "5s",
    "topology_manager_policy": "restricted",
    "topology_manager_scope": "pod",
    "topology_manager_policy_options": {"prefer-closest-numa-nodes": "true"},
    "memory_manager_policy": "Static",
    "cpu_cfs_quota": False,
    "cpu_cfs_quota_period": "50ms",
    "reserved_system_cpus": "0,4",
    "kube_reserved_cpu": "500m",
    "system_reserved_cpu": "1",
    "kube_reserved_memory": "512Mi",
    "system_reserved_memory": "1Gi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1636Mi"}}],
}

OTHERS_TEXT = """\
apiVersion: kubelet.config.k8s.io/v1beta1
cpuCFSQuota: false
cpuCFSQuotaPeriod: 50ms
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "true"
cpuManagerReconcilePeriod: 5s
kind: KubeletConfiguration
kubeReserved:
  cpu: 500m
  memory: 512Mi
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits:
    memory: 1636Mi
reservedSystemCPUs: 0,4
systemReserved:
  cpu: "1"
  memory: 1Gi
topologyManagerPolicy: restricted
topologyManagerPolicyOptions:
  prefer-closest-numa-nodes: "true"
topologyManagerScope: pod
"""


def file(text: str = "") -> KubeletConfiguration:
    return KubeletConfiguration.parse(HEADER + text, "config.yaml")


def machine(name: str = "1s4c2t", minor: int = 36) -> Host:
    return Host(kubelet_view(parse_name(name).topology()), minor)


# --- what a file says -------------------------------------------------------------------------------


def test_a_file_that_says_nothing() -> None:
    assert found_settings(file()) == DEFAULTS
    assert list(found_settings(file())) == list(SETTINGS)


def test_a_file_that_says_everything() -> None:
    assert found_settings(KubeletConfiguration.parse(OTHERS_TEXT)) == OTHERS


@pytest.mark.parametrize(
    "text",
    [
        'cpuManagerPolicy: ""\n',  # Go's unset value
        "cpuManagerPolicy: null\n",
        "cpuManagerPolicy:\n",
        "cpuManagerPolicyOptions: {}\n",
        'cpuManagerReconcilePeriod: ""\n',
        'topologyManagerPolicy: ""\ntopologyManagerScope: ""\n',
        'reservedSystemCPUs: ""\n',
        "kubeReserved:\n  ephemeral-storage: 1Gi\n",
        'memoryManagerPolicy: ""\nreservedMemory: []\n',
        "cpuCFSQuota: null\ncpuCFSQuotaPeriod: null\n",
        "kubeReserved: {}\nsystemReserved: null\n",
        'kubeReserved:\n  cpu: ""\n',
    ],
)
def test_what_means_nothing(text: str) -> None:
    assert found_settings(file(text)) == DEFAULTS


FOUND = [
    ("kubeReserved:\n  cpu: 2\n", "kube_reserved_cpu", "2"),  # numbers become texts
    ("systemReserved:\n  cpu: 0.5\n", "system_reserved_cpu", "0.5"),
    ("reservedSystemCPUs: 3\n", "reserved_system_cpus", "3"),
    ("cpuManagerReconcilePeriod: 0s\n", "cpu_manager_reconcile_period", "0s"),
    ("cpuManagerPolicyOptions:\n  a: '1'\n", "cpu_manager_policy_options", {"a": "1"}),
    ("kubeReserved:\n  memory: 1073741824\n", "kube_reserved_memory", "1073741824"),
    ("cpuCFSQuota: false\n", "cpu_cfs_quota", False),
    ("reservedMemory:\n- limits: {memory: 1Gi}\n", "reserved_memory", [{"limits": {"memory": "1Gi"}}]),
]


@pytest.mark.parametrize(("text", "name", "value"), FOUND)
def test_found(text: str, name: str, value: object) -> None:
    assert found_settings(file(text)) == {**DEFAULTS, name: value}


UNREADABLE = [
    ("cpuManagerPolicy: Static\n", "cpuManagerPolicy: 'Static' is not one of none, static"),
    ("cpuManagerPolicy: [static]\n", "cpuManagerPolicy: ['static'] is not one of none, static"),
    (
        "topologyManagerPolicy: strict\n",
        "topologyManagerPolicy: 'strict' is not one of none, best-effort, restricted, single-numa-node",
    ),
    ("topologyManagerScope: node\n", "topologyManagerScope: 'node' is not one of container, pod"),
    (
        "cpuManagerPolicyOptions:\n  full-pcpus-only: true\n",
        ('cpuManagerPolicyOptions: option full-pcpus-only is True, not a text; write it quoted, as in "true"'),
    ),
    (
        "cpuManagerPolicyOptions: [a]\n",
        "cpuManagerPolicyOptions: ['a'] is not a mapping of option names to texts",
    ),
    (
        "cpuManagerReconcilePeriod: 10\n",
        "cpuManagerReconcilePeriod: duration '10': a unit is missing; write it as 10s, 1m30s or 500ms",
    ),
    (
        "reservedSystemCPUs: 0-x\n",
        "reservedSystemCPUs: CPU list '0-x', position 3: expected the end of a range, found 'x'",
    ),
    (
        "reservedSystemCPUs: 0-7:1/4\n",
        "reservedSystemCPUs: CPU list '0-7:1/4': the kubelet reads neither strides nor line ends; write '0,4'",
    ),
    ("reservedSystemCPUs: [0]\n", "reservedSystemCPUs: [0] is not a text"),
    (
        "kubeReserved:\n  cpu: two\n",
        "kubeReserved.cpu: quantity 'two': a number is missing; write CPUs as 2, 0.5 or 500m",
    ),
    ("cpuCFSQuota: 'no'\n", "cpuCFSQuota: 'no' is neither true nor false"),
    ("memoryManagerPolicy: static\n", "memoryManagerPolicy: 'static' is not one of None, Static"),
    ("cpuCFSQuotaPeriod: 50\n", "cpuCFSQuotaPeriod: duration '50': a unit is missing"),
    ("reservedMemory: {}\n", "reservedMemory: {} is not a list of mappings with numaNode and limits"),
    ("reservedMemory: [1]\n", "reservedMemory: [1] is not a list of mappings with numaNode and limits"),
    (
        "reservedMemory:\n- numaNode: 0\n",
        "reservedMemory: [{'numaNode': 0}] is not a list of mappings with numaNode and limits",
    ),
    ("reservedMemory:\n- {numaNode: '0', limits: {}}\n", "reservedMemory: numaNode '0' is not a number"),
    ("reservedMemory:\n- {numaNode: true, limits: {}}\n", "reservedMemory: numaNode True is not a number"),
    ("reservedMemory:\n- {limits: {memory: x}}\n", "reservedMemory: quantity 'x': a number is missing"),
    (
        "systemReserved:\n  cpu: true\n",
        "systemReserved.cpu: True is not a quantity; write it as 2, 0.5 or 500m",
    ),
]


@pytest.mark.parametrize(("text", "message"), UNREADABLE)
def test_unreadable(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        found_settings(file(text))
    assert str(caught.value).startswith("config.yaml: " + message)


# --- what is wanted ---------------------------------------------------------------------------------


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
    assert list(plan.changes) == [SETTINGS[name].path] or name == "memory_manager_policy"
    assert plan_settings({name: value}, plan.configuration).changes == {}


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


# --- would the kubelet start? -----------------------------------------------------------------------


def config(text: str = "", name: str = "1s4c2t", minor: int = 36, **settings: Any) -> CPUManagerConfig:
    """With these settings; `text` is what the file has beside them."""
    return manager_config(_configuration(text, settings), machine(name, minor))


def _configuration(text: str, settings: Mapping[str, Any]) -> Configuration:
    """What the file becomes, without what goes with the settings."""
    before = file(text)
    return before.with_changes(changes(settings, found_settings(before, settings)))


def test_policy_none() -> None:
    assert config() == CPUManagerConfig("none", cpus("0-7"))
    assert config(reserved_system_cpus="0-7") == CPUManagerConfig("none", cpus("0-7"))


def test_policy_static() -> None:
    assert config(cpu_manager_policy="static", reserved_system_cpus="1,3") == CPUManagerConfig(
        "static", cpus("0-7"), cpus("1,3")
    )
    assert config(cpu_manager_policy="static", kube_reserved_cpu="1500m", system_reserved_cpu="500m") == (
        CPUManagerConfig("static", cpus("0-7"), cpus("0,4"))
    )
    # Named CPUs take the place of both.
    assert config(
        cpu_manager_policy="static",
        reserved_system_cpus="3",
        kube_reserved_cpu="7",
        cpu_manager_policy_options={"strict-cpu-reservation": "true"},
    ) == CPUManagerConfig("static", cpus("0-7"), cpus("3"), strict_reservation=True)


def test_options_shape_the_reservation() -> None:
    options = {"distribute-cpus-across-numa": "true"}
    found = config(
        name="2s1n2c2t", cpu_manager_policy="static", kube_reserved_cpu="6", cpu_manager_policy_options=options
    )
    assert found.reserved == cpus("0-4,6")


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"cpu_manager_policy": "static"},
        (
            "reserved_system_cpus: the kubelet would not start:"
            " [cpumanager] unable to determine reserved CPU resources for static policy"
            " (the static policy is to reserve 0 CPUs);"
            " set reservedSystemCPUs, or a cpu in kubeReserved or systemReserved"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "kube_reserved_cpu": "9"},
        (
            "reserved_system_cpus: the kubelet would not start: new static policy error:"
            " [cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 9)"
            " (the static policy is to reserve 9 CPUs);"
            " reserve fewer with reservedSystemCPUs, kubeReserved and systemReserved"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "reserved_system_cpus": "0,8-9"},
        (
            "reserved_system_cpus: the kubelet would not start: reserved-cpus: 0,8-9 is not a subset of online-cpus:"
            " 0-7 (the node has no CPUs 8-9, or they are offline); take others, or switch them on"
        ),
    ),
    (
        {"reserved_system_cpus": "8"},  # also with the policy none
        (
            "reserved_system_cpus: the kubelet would not start: reserved-cpus: 8 is not a subset of online-cpus:"
            " 0-7 (the node has no CPUs 8, or they are offline); take others, or switch them on"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "reserved_system_cpus": "0-7"},
        (
            "reserving all of the CPUs 0-7 leaves none for any pod under the static policy; reserve fewer with"
            " reserved_system_cpus, or kube_reserved_cpu and system_reserved_cpu"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "kube_reserved_cpu": "7500m"},
        (
            "reserving all of the CPUs 0-7 leaves none for any pod under the static policy; reserve fewer with"
            " reserved_system_cpus, or kube_reserved_cpu and system_reserved_cpu"
        ),
    ),
    (
        {"cpu_manager_policy_options": {"full-pcpus-only": "true", "align-by-socket": "false"}},
        (
            "cpu_manager_policy_options: the kubelet would not start: new none policy error: None policy: received"
            " unsupported options=map[align-by-socket:false full-pcpus-only:true]"
            " (options go with the static policy only);"
            " remove cpuManagerPolicyOptions, or set cpuManagerPolicy: static"
        ),
    ),
    (
        {"cpu_manager_policy": "static", "cpu_manager_policy_options": {"full-pcpus": "true"}},
        (
            "cpu_manager_policy_options.full-pcpus: the kubelet would not start: new static policy error:"
            ' unknown CPU Manager Policy option: "full-pcpus" (the option cannot be used); the kubelet 1.36 has'
            " align-by-socket, distribute-cpus-across-cores, distribute-cpus-across-numa, full-pcpus-only,"
            " prefer-align-cpus-by-uncorecache, strict-cpu-reservation"
        ),
    ),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError) as caught:
        config(**settings)
    assert str(caught.value) == message
    assert (caught.value.kind == WOULD_NOT_START) == ("would not start" in message)


def test_offline_cpus_cannot_be_reserved() -> None:
    with pytest.raises(RefusedError, match=r"0,4 is not a subset of online-cpus: 0-3,5-7 \(the node has no CPUs 4,"):
        config(name="1s4c2t+offline4", reserved_system_cpus="0,4")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("systemReservedCgroup: /system\n", "systemReservedCgroup"),
        ("kubeReservedCgroup: /kube\n", "kubeReservedCgroup"),
        ("systemReservedCgroup: /system\nkubeReservedCgroup: /kube\n", "systemReservedCgroup and kubeReservedCgroup"),
    ],
)
def test_named_cpus_and_cgroups(text: str, names: str) -> None:
    with pytest.raises(RefusedError) as caught:
        config(text, reserved_system_cpus="0")
    assert str(caught.value) == (
        "reserved_system_cpus: the kubelet would not start: invalid configuration: can't use reservedSystemCPUs"
        " (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup"
        " (--kube-reserved-cgroup) (%s is set); remove %s, or reserve with kubeReserved and systemReserved"
        % (names, names)
    )
    assert config(text, kube_reserved_cpu="1").policy_name == "none"
    assert config('systemReservedCgroup: ""\n', reserved_system_cpus="0").policy_name == "none"


def test_a_kubelet_whose_cpu_manager_is_off() -> None:
    with pytest.raises(RefusedError) as caught:
        config("featureGates: {CPUManager: false}\n", minor=25)
    assert (str(caught.value), caught.value.kind) == (
        "it cannot be determined with what the CPU manager would start: the CPU manager is off",
        WOULD_NOT_START,
    )
    # What cannot be seen keeps nothing from being told: the configuration alone decides about the CPU manager.
    assert config("protectKernelDefaults: true\n") == CPUManagerConfig("none", cpus("0-7"))


def test_what_the_kubelet_says_before_its_refusal() -> None:
    with pytest.raises(RefusedError) as caught:
        needed_config(Prediction([Finding("is wrong", "why", "do it", True, "cpuManagerPolicy", "failed: ")]))
    assert str(caught.value) == "cpu_manager_policy: the kubelet would not start: failed: is wrong (why); do it"
    with pytest.raises(RefusedError) as caught:
        needed_config(Prediction([], [Unknown("it cannot be seen", "/x"), Unknown("nor can that", "/y")]))
    assert str(caught.value) == (
        "it cannot be determined with what the CPU manager would start: it cannot be seen; nor can that"
    )


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("cpuManagerPolicy", "cpu_manager_policy"),
        ("cpuManagerPolicyOptions.full-pcpus", "cpu_manager_policy_options.full-pcpus"),
        ("kubeReserved.cpu", "kube_reserved_cpu"),
        ("kubeReserved.memory", "kube_reserved_memory"),
        ("kubeReserved.pid", "kubeReserved.pid"),
        ("kubeReserved", "kubeReserved"),
        ("reservedMemory[0].limits.memory", "reserved_memory[0].limits.memory"),
        ("featureGates.CPUManager", "featureGates.CPUManager"),
        ("cpuManagerPolicyX", "cpuManagerPolicyX"),
        ("/var/lib/kubelet/config.yaml", "/var/lib/kubelet/config.yaml"),
        ("", ""),
    ],
)
def test_a_refusal_is_under_the_name_of_the_setting(where: str, named: str) -> None:
    error = start_error(Finding("is wrong", "why", "do it", True, where))
    assert (error.where, error.kind) == (named, WOULD_NOT_START)


def test_a_reservation_of_all_cpus_is_a_wish_that_nobody_can_have() -> None:
    check_wishes(CPUManagerConfig("none", cpus("0-7"), cpus("0-7")))
    check_wishes(CPUManagerConfig("static", cpus("0-7"), cpus("0-6")))
    with pytest.raises(RefusedError, match=r"^reserving all of the CPUs 0-7 leaves none"):
        check_wishes(CPUManagerConfig("static", cpus("0-7"), cpus("0-7")))


STATIC: dict[str, Any] = {"cpu_manager_policy": "static", "kube_reserved_cpu": "1"}
ALPHA = "featureGates:\n  CPUManagerPolicyAlphaOptions: true\n"
SOCKET = {"align-by-socket": "true"}


def test_align_by_socket() -> None:
    assert config(ALPHA, cpu_manager_policy_options=SOCKET, topology_manager_policy="restricted", **STATIC)
    with pytest.raises(RefusedError) as caught:
        config(ALPHA, cpu_manager_policy_options=SOCKET, topology_manager_policy="single-numa-node", **STATIC)
    assert str(caught.value) == (
        "cpu_manager_policy_options.align-by-socket: the kubelet would not start: new static policy error:"
        " Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
        " (align-by-socket does not go with this); drop one of the two"
    )
    socket = r"^cpu_manager_policy_options\.align-by-socket: the kubelet .* error: Align by socket is not compatible"
    with pytest.raises(RefusedError, match=socket):
        config(ALPHA, "1n2s2c", cpu_manager_policy_options=SOCKET, **STATIC)
    # What is off disturbs nothing.
    off = {"align-by-socket": "false"}
    assert config(ALPHA, "1n2s2c", cpu_manager_policy_options=off, topology_manager_policy="single-numa-node", **STATIC)


@pytest.mark.parametrize(
    ("gates", "minor", "option", "accepted"),
    [
        ("", 36, "full-pcpus-only", True),
        ("", 36, "distribute-cpus-across-numa", True),
        ("featureGates:\n  CPUManagerPolicyBetaOptions: false\n", 36, "distribute-cpus-across-numa", False),
        ("featureGates:\n  CPUManagerPolicyBetaOptions: true\n", 36, "distribute-cpus-across-numa", True),
        ("featureGates:\n  CPUManagerPolicyBetaOptions: false\n", 36, "full-pcpus-only", True),
        ("", 32, "distribute-cpus-across-numa", False),
        (ALPHA, 32, "distribute-cpus-across-numa", True),
        ("", 36, "align-by-socket", False),
        (ALPHA, 36, "align-by-socket", True),
        ("featureGates:\n  CPUManagerPolicyAlphaOptions: false\n", 36, "align-by-socket", False),
        ("featureGates: null\n", 36, "full-pcpus-only", True),
        ("featureGates: {AllAlpha: true}\n", 36, "align-by-socket", True),
        ("featureGates: {AllAlpha: true, CPUManagerPolicyAlphaOptions: false}\n", 36, "align-by-socket", False),
        ("featureGates: {AllBeta: false}\n", 36, "distribute-cpus-across-numa", False),
        ("", 31, "strict-cpu-reservation", False),
    ],
)
def test_feature_gates_and_version(gates: str, minor: int, option: str, accepted: bool) -> None:
    settings = {**STATIC, "cpu_manager_policy_options": {option: "true"}}
    if accepted:
        checked = predict_values(_configuration(gates, settings).values, machine(minor=minor)).checked
        assert checked is not None
        assert checked.options == StaticOptions(**{option.replace("-", "_"): True})
        assert config(gates, minor=minor, **settings) == checked.cpu_manager
    else:
        with pytest.raises(RefusedError, match=r"^cpu_manager_policy_options\.%s: the kubelet would not" % option):
            config(gates, minor=minor, **settings)


MANY = "unsupported on machines with more than 8 NUMA Nodes (the node has 9 NUMA nodes)"
SET_NONE = "set topologyManagerPolicy: none, or max-allowable-numa-nodes in topologyManagerPolicyOptions"
NO_NUMBER = (
    'unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "\u00b2": invalid'
    " syntax (the option cannot be used)"
)
MOST = "max-allowable-numa-nodes"


@pytest.mark.parametrize(
    ("nodes", "text", "refusal"),
    [
        (8, "", ()),
        (9, "", ("topology_manager_policy", MANY, SET_NONE)),
        (9, 'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "9"\n', ()),
        (9, 'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "16"\n', ()),
        (
            9,
            'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "8"\n',
            ("topology_manager_policy", MANY, SET_NONE),
        ),
        (
            9,
            'topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: "\u00b2"\n',
            ("topology_manager_policy_options." + MOST, NO_NUMBER, 'write a number of 8 or more, as in "16"'),
        ),
        (
            9,
            'topologyManagerPolicyOptions:\n  prefer-closest-numa-nodes: "true"\n',
            ("topology_manager_policy", MANY, SET_NONE),
        ),
        (9, "topologyManagerPolicyOptions: null\n", ("topology_manager_policy", MANY, SET_NONE)),
    ],
)
def test_many_numa_nodes(nodes: int, text: str, refusal: tuple[str, ...]) -> None:
    name = "%dn1s1c" % nodes
    assert config(text, name).all_cpus
    if not refusal:
        assert config(text, name, topology_manager_policy="best-effort").all_cpus
        return
    with pytest.raises(RefusedError) as caught:
        config(text, name, topology_manager_policy="best-effort")
    assert str(caught.value) == "%s: the kubelet would not start: %s; %s" % refusal


# --- what goes with a setting -----------------------------------------------------------------------

ALPHA_GATE, BETA_GATE, OPTIONS_GATE = (
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "CPUManagerPolicyOptions",
)
WITH_ALPHA_OPTION = {"cpu_manager_policy": "static", "cpu_manager_policy_options": {"align-by-socket": "true"}}
WITH_BETA_OPTION = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"distribute-cpus-across-numa": "true"},
}
WITH_MANAGER_OPTION = {"topology_manager_policy_options": {"prefer-closest-numa-nodes": "true"}}
CGROUPS = "systemReservedCgroup: /system\nkubeReservedCgroup: /runtime\n"


@pytest.mark.parametrize(
    ("wanted", "text", "minor", "beside"),
    [
        ({}, CGROUPS, 36, {}),
        (WITH_ALPHA_OPTION, "", 36, {"featureGates.%s" % ALPHA_GATE: True}),
        (WITH_ALPHA_OPTION, "featureGates: {%s: false}\n" % ALPHA_GATE, 36, {"featureGates.%s" % ALPHA_GATE: True}),
        (WITH_ALPHA_OPTION, "featureGates: {%s: true}\n" % ALPHA_GATE, 36, {}),
        (WITH_ALPHA_OPTION, "featureGates: {AllAlpha: true}\n", 36, {}),
        (WITH_BETA_OPTION, "", 36, {}),  # beta, and on
        (WITH_BETA_OPTION, "featureGates: {%s: false}\n" % BETA_GATE, 36, {"featureGates.%s" % BETA_GATE: True}),
        (WITH_BETA_OPTION, "", 32, {"featureGates.%s" % ALPHA_GATE: True}),
        ({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, "", 22, {"featureGates.%s" % OPTIONS_GATE: True}),
        ({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, "", 33, {}),
        ({"cpu_manager_policy_options": {"no-such-option": "true"}}, "", 36, {}),
        (WITH_MANAGER_OPTION, "", 36, {}),
        (
            WITH_MANAGER_OPTION,
            "",
            27,
            {
                "featureGates.TopologyManagerPolicyOptions": True,
                "featureGates.TopologyManagerPolicyAlphaOptions": True,
            },
        ),
        ({"cpu_cfs_quota_period": "5ms"}, "", 35, {"featureGates.CustomCPUCFSQuotaPeriod": True}),
        ({"cpu_cfs_quota_period": "5ms"}, "", 36, {}),
        ({"cpu_cfs_quota_period": "0.1s"}, "", 35, {}),  # the default
        ({"memory_manager_policy": "Static"}, "", 21, {"featureGates.MemoryManager": True}),
        ({"memory_manager_policy": "Static"}, "", 36, {}),
        ({"memory_manager_policy": "None"}, "", 21, {}),
        ({"reserved_system_cpus": "0"}, CGROUPS, 36, {"systemReservedCgroup": "", "kubeReservedCgroup": ""}),
        ({"reserved_system_cpus": ""}, CGROUPS, 36, {}),
        (
            {"reserved_system_cpus": "0"},
            CGROUPS + "enforceNodeAllocatable: [pods, kube-reserved]\n",
            36,
            {"systemReservedCgroup": ""},
        ),
        (
            {"reserved_system_cpus": "0"},
            CGROUPS + "enforceNodeAllocatable: [system-reserved-compressible, kube-reserved]\n",
            36,
            {},
        ),
    ],
)
def test_companions(wanted: dict[str, Any], text: str, minor: int, beside: dict[str, Any]) -> None:
    before = file(text)
    plan = plan_settings(wanted, before, minor)
    assert {".".join(path): value for path, value in plan.companions.items()} == beside
    # Once it is done, there is nothing left to do.
    after = before.with_changes(plan.changes)
    assert after.values == plan.configuration.values
    again = plan_settings(wanted, after, minor)
    assert (again.changes, again.companions) == ({}, {})
    assert again.settings == plan.settings


def test_what_is_found_needs_no_companions() -> None:
    """Nobody asked for the option that is in the file, so its gate is not touched either."""
    text = "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {align-by-socket: 'true'}\n"
    assert plan_settings({"cpu_manager_reconcile_period": "5s"}, file(text)).companions == {}


def test_an_alpha_option_starts_with_its_gate() -> None:
    plan = plan_settings({**WITH_ALPHA_OPTION, "reserved_system_cpus": "0"}, file())
    assert manager_config(plan.configuration, machine()).reserved == cpus("0")


# --- notes --------------------------------------------------------------------------------------------


HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def written_down(configuration: Configuration) -> bytes:
    return json.dumps(configuration.values).encode("ascii")


@pytest.mark.parametrize(
    ("values", "minor", "note"),
    [
        (
            {"cpuManagerPolcy": None},
            36,
            "cpuManagerPolcy: the kubelet 1.36 has no such field, and ignores it; write cpuManagerPolicy",
        ),
        (
            {"cpumanagerpolicy": None},
            34,
            (
                "cpumanagerpolicy: the kubelet 1.34 has no such field, and ignores it; upper and lower case count;"
                " write cpuManagerPolicy"
            ),
        ),
        (
            {"memoryManagerPolicy": None},
            20,
            (
                "memoryManagerPolicy: the kubelet 1.20 has no such field, and ignores it;"
                " remove it, or upgrade to Kubernetes 1.21"
            ),
        ),
        (
            {"singleProcessOOMKill": None},
            31,
            (
                "singleProcessOOMKill: the kubelet 1.31 has no such field, and ignores it;"
                " remove it, or upgrade to Kubernetes 1.32"
            ),
        ),
        (
            {"somethingElse": None},
            36,
            "somethingElse: the kubelet 1.36 has no such field, and ignores it; check how it is spelled, or remove it",
        ),
        (
            {"some.thing": None},
            36,
            "some.thing: the kubelet 1.36 has no such field, and ignores it; check how it is spelled, or remove it",
        ),
        (
            {"authentication": {"anonymous": {"enable": True}}},
            36,
            "authentication.anonymous.enable: the kubelet 1.36 has no such field, and ignores it; write enabled",
        ),
        (
            {"reservedMemory": [{"numaNode": 0, "limit": {}}]},
            36,
            "reservedMemory[0].limit: the kubelet 1.36 has no such field, and ignores it; write limits",
        ),
    ],
)
def test_a_field_that_the_kubelet_ignores_is_a_note(values: dict[str, Any], minor: int, note: str) -> None:
    configuration = Configuration({**HEAD, "maxPods": 110, **values}, "/x")
    prediction = predict_values(configuration.values, machine(minor=minor))
    assert ignored_key_notes(prediction.ignored, configuration) == ["/x: " + note]


def test_where_nothing_is_ignored_there_is_no_note() -> None:
    configuration = Configuration({**HEAD, "maxPods": 110, "memorySwap": {}}, "/x")
    assert ignored_key_notes(predict_values(configuration.values, machine()).ignored, configuration) == []


def test_notes_on_fields_of_several_files() -> None:
    file = Configuration({**HEAD, "maxpods": 110, "fooBar": 1}, "/x")
    drop_ins = [
        Configuration({**HEAD, "cpumanagerpolicy": "none", "cpuManagerPolcy": "static", "fooBar": 2}, "/y.conf"),
        Configuration({**HEAD, "authentication": {"Anonymous": {}, "x": {}}}, "/z.conf"),
    ]
    prediction = predict(
        Given((), written_down(file), [(drop_in.source[1:], written_down(drop_in)) for drop_in in drop_ins], "/x", "/"),
        machine(),
    )
    notes = ignored_key_notes(prediction.ignored, effective_configuration(file, drop_ins, ()))
    # In drop-in files upper and lower case do not count; of a field in several files one counts.
    assert [note.split(": the")[0] for note in notes] == [
        "/x: maxpods",
        "/y.conf: fooBar",
        "/y.conf: cpuManagerPolcy",
        "/z.conf: authentication.x",
    ]


def test_what_is_in_no_configuration_is_no_note() -> None:
    gone = harmful("nobody has such a field", "remove it", "fooBar")
    assert ignored_key_notes([gone], Configuration({"maxPods": 110}, "/x")) == []


def test_a_wanted_reservation_that_splits_cores_is_a_note() -> None:
    topology = parse_name("2s1n2c2t").topology()  # a core is n, n+4

    def notes(wanted: str, found: str = "") -> list[str]:
        return wanted_reservation_notes(topology, CPUSet.parse(wanted), CPUSet.parse(found))

    assert notes("0,4") == notes("") == notes("0-7") == []
    assert notes("0-1") == [
        (
            "the wanted reservation 0-1 would split cores: pods would get their other threads, CPUs 4-5;"
            " reserve whole cores, as in 0-1,4-5"
        )
    ]
    assert notes("0,4,2", found="0,4")
    # Nothing changes: drift's own note tells what is so already.
    assert notes("0-1", found="0-1") == []

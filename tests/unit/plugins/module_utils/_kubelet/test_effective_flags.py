# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/effective.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import NEWEST_MINOR
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import flags as table
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import (
    CONFIG,
    FLAGS,
    NAMES,
    GivenFlag,
    arguments_for,
    path_of,
    read_flags,
    values_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import split_flags
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.amount import read_duration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.command_line import read_command
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    KUBELET_CONFIGURATION,
    STRUCTS,
)


def values(line: str) -> dict[str, Any]:
    return values_of(read_flags(line.split(), "test"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {}),
        ("/usr/bin/kubelet --v=2 --node-ip 10.0.0.1", {}),
        # as pflag reads it
        ("--cpu-manager-policy=static", {"cpuManagerPolicy": "static"}),
        ("--cpu-manager-policy static", {"cpuManagerPolicy": "static"}),
        ("--cpu_manager_policy=static", {"cpuManagerPolicy": "static"}),
        ("--cpu-manager-policy=none --cpu-manager-policy=static", {"cpuManagerPolicy": "static"}),
        ("-cpu-manager-policy=static", {}),
        ("--cpu-manager-policy", {"cpuManagerPolicy": ""}),
        # the word behind a flag that sets nothing here is its value, too
        ("--hostname-override --cpu-manager-policy=static", {}),
        ("--hostname-override=a --cpu-manager-policy=static", {"cpuManagerPolicy": "static"}),
        ("--register-node --cpu-manager-policy=static", {"cpuManagerPolicy": "static"}),
        ("--of-a-vendor --cpu-manager-policy=static", {"cpuManagerPolicy": "static"}),
        # numbers in Go's forms
        ("--healthz-port=10248", {"healthzPort": 10248}),
        ("--healthz-port=0x2808", {"healthzPort": 10248}),
        ("--healthz-port=024010", {"healthzPort": 10248}),
        ("--healthz-port=-0b1_0", {"healthzPort": -2}),
        # switches
        ("--cpu-cfs-quota", {"cpuCFSQuota": True}),
        ("--cpu-cfs-quota=false", {"cpuCFSQuota": False}),
        ("--cpu-cfs-quota false", {"cpuCFSQuota": True}),  # the word does not belong to it
        ("--fail-cgroupv1=f", {"failCgroupV1": False}),
        ("--cpu-cfs-quota=maybe", {"cpuCFSQuota": "maybe"}),
        # maps: all that is given together
        ("--kube-reserved=cpu=1,memory=1Gi", {"kubeReserved": {"cpu": "1", "memory": "1Gi"}}),
        ("--kube-reserved=cpu=1 --kube-reserved=memory=1Gi", {"kubeReserved": {"cpu": "1", "memory": "1Gi"}}),
        ("--kube-reserved=cpu=1 --kube-reserved=cpu=2", {"kubeReserved": {"cpu": "2"}}),
        ("--kube-reserved=", {"kubeReserved": {}}),
        # these do not split
        (
            "--cpu-manager-policy-options=a=true --cpu-manager-policy-options=b=false",
            {"cpuManagerPolicyOptions": {"a": "true", "b": "false"}},
        ),
        ("--cpu-manager-policy-options=a=true,b=true", {"cpuManagerPolicyOptions": {"a": "true,b=true"}}),
        ("--cpu-manager-policy-options=a=1,b=2", {"cpuManagerPolicyOptions": {"a": "1,b=2"}}),
        ("--topology-manager-policy-options=a=1,b=2", {"topologyManagerPolicyOptions": {"a": "1", "b": "2"}}),
        ("--topology-manager-policy-options=", {"topologyManagerPolicyOptions": {}}),
        (
            "--topology-manager-policy-options=a=1 --topology-manager-policy-options=b=2",
            {"topologyManagerPolicyOptions": {"a": "1", "b": "2"}},
        ),
        ("--feature-gates=A=true,B=false --feature-gates=C=1", {"featureGates": {"A": True, "B": False, "C": True}}),
        ("--eviction-hard=memory.available<1Gi,a<1%", {"evictionHard": {"memory.available": "1Gi", "a": "1%"}}),
        ("--enforce-node-allocatable=pods,kube-reserved", {"enforceNodeAllocatable": ["pods", "kube-reserved"]}),
        ("--enforce-node-allocatable=", {"enforceNodeAllocatable": []}),
        ('--enforce-node-allocatable="pods","kube-reserved"', {"enforceNodeAllocatable": ["pods", "kube-reserved"]}),
        (
            "--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi --reserved-memory 2:memory=3Gi",
            {
                "reservedMemory": [
                    {"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi"}},
                    {"numaNode": 1, "limits": {"memory": "2Gi"}},
                    {"numaNode": 2, "limits": {"memory": "3Gi"}},
                ]
            },
        ),
    ],
)
def test_values(line: str, found: dict[str, Any]) -> None:
    assert values(line) == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--kube-reserved=cpu", "--kube-reserved in test: found 'cpu', expected key=value"),
        ("--eviction-hard=memory.available=1", "expected key<value"),
        ("--healthz-port=08", "found '08', expected a number"),
        ("--healthz-port=many", "found 'many', expected a number"),
        ('--enforce-node-allocatable=po"ds', "found 'po\"ds', expected texts with commas between them"),
        ("--reserved-memory=memory=1Gi", "found 'memory=1Gi', expected NUMA-NODE:memory=QUANTITY"),
    ],
)
def test_what_the_kubelet_would_not_read(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        values(line)


def test_paths() -> None:
    given_flags = read_flags(["kubelet", "--config=/a", "--config", "/b", "--config="], "test")
    assert given_flags[0] == GivenFlag(CONFIG, "/a", "test")
    assert path_of(given_flags, CONFIG) == "/b"
    assert path_of(given_flags, "--root-dir") is None


def test_what_is_behind_the_end_of_flags_is_no_flag() -> None:
    words = ["kubelet", "--config=/a", "--", "--config=/b", "--reserved-cpus", "0"]
    assert read_flags(words, "test") == [GivenFlag(CONFIG, "/a", "test")]
    assert [word for _name, flag in split_flags(words) for word in flag] == words
    # As the value of a flag it is none.
    assert path_of(read_flags(["--root-dir", "--", "--config=/b"], "test"), CONFIG) == "/b"


def test_every_flag_gives_a_field() -> None:
    assert {flag.path[0] for flag in FLAGS.values()} <= set(STRUCTS[KUBELET_CONFIGURATION])
    assert len(NAMES) == len(FLAGS)


keys = st.text("abcz.-", min_size=1, max_size=5).map(lambda text: "k" + text)
texts = st.text("abc019.%Gi", min_size=1, max_size=4)
maps = st.dictionaries(keys, texts, min_size=1, max_size=3)
BY_KIND: dict[str, st.SearchStrategy[Any]] = {
    table.STRING: texts,
    table.DURATION: texts,
    table.IP: texts,
    table.BOOL: st.booleans(),
    table.INT32: st.integers(0, 65535),
    table.STRINGS: st.lists(texts, min_size=1),
    table.PAIR: maps,
    table.PAIRS: maps,
    table.THRESHOLDS: maps,
    table.GATES: st.dictionaries(keys, st.booleans(), min_size=1),
    table.MEMORY: st.lists(st.fixed_dictionaries({"numaNode": st.integers(0, 9), "limits": maps}), min_size=1),
}


@given(st.data(), st.sampled_from(sorted(FLAGS)))
def test_what_is_written_reads_back(data: st.DataObject, name: str) -> None:
    (field,), kind = FLAGS[name].path, FLAGS[name].kind
    value = data.draw(BY_KIND[kind])
    assert values_of(read_flags(arguments_for(field, value), "test")) == {field: value}


@pytest.mark.parametrize("field", ["kubeReserved", "cpuManagerPolicyOptions", "reservedMemory", "featureGates"])
def test_nothing_is_no_flag(field: str) -> None:
    assert arguments_for(field, {}) == []


# What the kubelet takes, as it is typed.
TYPED: dict[str, st.SearchStrategy[str]] = {
    table.STRING: texts,
    table.DURATION: st.sampled_from(["10s", "1m30s", "100ms", "0"]),
    table.IP: st.sampled_from(["10.0.0.1", "::1"]),
    table.BOOL: st.sampled_from(["true", "False", "1", "f"]),
    table.INT32: st.integers(0, 65535).map(str),
    table.STRINGS: st.sampled_from(["pods", "pods,kube-reserved", ""]),
    table.PAIR: st.sampled_from(["a=true", "b = 1,c=2", "a="]),
    table.PAIRS: st.sampled_from(["cpu=1", "cpu=2,memory=1Gi", " cpu = 3 ,,a=b=c", ""]),
    table.THRESHOLDS: st.sampled_from(["memory.available<1Gi", "a<1%,b<2", ""]),
    table.GATES: st.sampled_from(["A=true", "A=false,B=1", ""]),
    table.MEMORY: st.sampled_from(["0:memory=1Gi", "0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi"]),
}


@given(st.data(), st.lists(st.sampled_from(sorted(FLAGS)), max_size=5))
def test_the_kubelet_reads_them_the_same(data: st.DataObject, names: list[str]) -> None:
    """Two programs read flags: this one what a file or a unit says, the prediction in the words of the kubelet."""
    words = ["%s=%s" % (name, data.draw(TYPED[FLAGS[name].kind])) for name in names]
    given_values = values_of(read_flags(words, "test"))
    for flag in FLAGS.values():
        if flag.kind == table.DURATION and flag.path[0] in given_values:
            given_values[flag.path[0]] = read_duration(str(given_values[flag.path[0]]))
    settings = read_command(words, NEWEST_MINOR).settings
    assert given_values == {setting.path[0]: setting.value for setting in settings}

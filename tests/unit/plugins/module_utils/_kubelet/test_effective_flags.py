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
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import (
    CONFIG,
    FLAGS,
    NAMES,
    GivenFlag,
    arguments_for,
    path_of,
    read_flags,
    split_flags,
    values_of,
)
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
    assert {flag.field for flag in FLAGS.values()} <= set(STRUCTS[KUBELET_CONFIGURATION])
    assert len(NAMES) == len(FLAGS)


keys = st.text("abcz.-", min_size=1, max_size=5).map(lambda text: "k" + text)
texts = st.text("abc019.%Gi", min_size=1, max_size=4)
maps = st.dictionaries(keys, texts, min_size=1, max_size=3)
BY_FORM: dict[str, st.SearchStrategy[Any]] = {
    "text": texts,
    "switch": st.booleans(),
    "number": st.integers(0, 65535),
    "list": st.lists(texts, min_size=1),
    "map": maps,
    "pair": maps,
    "thresholds": maps,
    "gates": st.dictionaries(keys, st.booleans(), min_size=1),
    "memory": st.lists(st.fixed_dictionaries({"numaNode": st.integers(0, 9), "limits": maps}), min_size=1),
}


@given(st.data(), st.sampled_from(sorted(FLAGS)))
def test_what_is_written_reads_back(data: st.DataObject, name: str) -> None:
    field, form = FLAGS[name]
    value = data.draw(BY_FORM[form])
    assert values_of(read_flags(arguments_for(field, value), "test")) == {field: value}


@pytest.mark.parametrize("field", ["kubeReserved", "cpuManagerPolicyOptions", "reservedMemory", "featureGates"])
def test_nothing_is_no_flag(field: str) -> None:
    assert arguments_for(field, {}) == []

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/effective.py."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import NEWEST_MINOR
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import (
    API_VERSION,
    EVICTION_HARD,
    KIND,
    KubeletConfiguration,
    merge_patch,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import (
    EffectiveConfiguration,
    arguments_for,
    effective_configuration,
    read_flags,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.command_line import (
    apply_flags,
    read_command,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import DEFAULTS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import load_configuration

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def file(text: str, name: str = "config.yaml") -> KubeletConfiguration:
    return KubeletConfiguration.parse(HEADER + text, name)


def effective(base: str | None, *drop_ins: str, flags: str = "") -> EffectiveConfiguration:
    """Return the drop-ins are named 0.conf, 1.conf and so on."""
    return effective_configuration(
        None if base is None else file(base),
        [file(text, "%d.conf" % number) for number, text in enumerate(drop_ins)],
        read_flags(flags.split(), "kubelet.env"),
    )


def own(configuration: EffectiveConfiguration) -> dict[str, Any]:
    return {name: value for name, value in configuration.values.items() if name not in ("apiVersion", "kind")}


# --- what is there before ---------------------------------------------------------------------------


def test_drop_ins_add_to_the_default_thresholds() -> None:
    """The kubelet fills them in where its file has none, and then merges."""
    thresholds = effective("", "evictionHard: {nodefs.available: 5%}\n").values["evictionHard"]
    assert thresholds == {
        "memory.available": "100Mi",
        "nodefs.available": "5%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }
    # Without a file it does not; and a file's own are all that there are.
    drop_in = "evictionHard: {nodefs.available: 5%}\n"
    assert effective(None, drop_in).values["evictionHard"] == {"nodefs.available": "5%"}
    assert effective("evictionHard: {memory.available: 1Gi}\n", drop_in).values["evictionHard"] == {
        "memory.available": "1Gi",
        "nodefs.available": "5%",
    }
    assert own(effective("", "failSwapOn: false\n")) == {"failSwapOn": False}


# --- RFC 7396 ---------------------------------------------------------------------------------------


# The examples of its appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def naive_merge_patch(target: Any, patch: Any) -> Any:
    """Return the RFC's pseudo code, word by word."""
    if isinstance(patch, dict):
        if not isinstance(target, dict):
            target = {}
        for name in patch:
            if patch[name] is None:
                if name in target:
                    del target[name]
            else:
                target[name] = naive_merge_patch(target.get(name), patch[name])
        return target
    return patch


@given(json_values, json_values)
def test_merge_patch_is_that_of_the_rfc(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    merged = merge_patch(target, patch)
    assert (target, patch) == before  # they are left alone
    assert merged == naive_merge_patch(copy.deepcopy(target), copy.deepcopy(patch))
    assert merge_patch(merged, patch) == merged  # once is enough


# --- the layers -------------------------------------------------------------------------------------


def test_drop_ins_in_their_order() -> None:
    found = effective(
        "cpuManagerPolicy: none\nkubeReserved: {cpu: '1', memory: 1Gi}\nenforceNodeAllocatable: [pods]\n",
        "cpuManagerPolicy: static\nkubeReserved: {cpu: '2'}\ncpuManagerPolicyOptions: {a: 'true', b: 'true'}\n",
        "kubeReserved: {memory: null}\ncpuManagerPolicyOptions: {b: null}\nenforceNodeAllocatable: [none]\n",
    )
    assert own(found) == {
        "cpuManagerPolicy": "static",
        "kubeReserved": {"cpu": "2"},
        "cpuManagerPolicyOptions": {"a": "true"},
        "enforceNodeAllocatable": ["none"],
    }
    assert found.origin(("cpuManagerPolicy",)) == "0.conf"
    assert found.origin(("kubeReserved", "cpu")) == "0.conf"
    assert found.origin(("kubeReserved", "memory")) == "1.conf"
    assert found.origin(("cpuManagerPolicyOptions",)) == "1.conf"
    assert found.origin(("reservedSystemCPUs",)) is None


def test_flags_count_most() -> None:
    found = effective(
        "cpuManagerPolicy: none\nkubeReserved: {cpu: '1', memory: 1Gi}\nfeatureGates: {A: true, B: true}\n",
        "cpuManagerPolicy: none\n",
        flags="--cpu-manager-policy=static --kube-reserved=cpu=2 --feature-gates=B=false,C=true --config=/x",
    )
    assert own(found) == {
        "cpuManagerPolicy": "static",
        "kubeReserved": {"cpu": "2"},  # the whole map
        "featureGates": {"A": True, "B": False, "C": True},  # one by one
    }
    assert found.origin(("cpuManagerPolicy",)) == "--cpu-manager-policy in kubelet.env"
    assert found.origin(("kubeReserved", "memory")) == "--kube-reserved in kubelet.env"
    assert found.origin(("featureGates", "A")) == "config.yaml"
    assert found.origin(("featureGates", "B")) == "--feature-gates in kubelet.env"


def test_without_a_file() -> None:
    assert own(effective(None)) == {}
    assert own(effective(None, "cpuManagerPolicy: static\n")) == {"cpuManagerPolicy": "static"}
    assert own(effective(None, flags="--reserved-cpus=0-1")) == {"reservedSystemCPUs": "0-1"}


def test_a_flag_that_the_kubelet_cannot_read() -> None:
    with pytest.raises(ConfigurationError, match=r"--kube-reserved in kubelet\.env: found 'cpu'"):
        effective("", flags="--kube-reserved=cpu")


# --- the kubelet's own merge ------------------------------------------------------------------------

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2"]))
SIGNALS = st.dictionaries(st.sampled_from(["memory.available", "nodefs.available"]), st.sampled_from(["5%", "1Gi"]))
GIVEN: dict[str, st.SearchStrategy[Any]] = {
    "cpuManagerPolicy": st.sampled_from(["none", "static"]),
    "reservedSystemCPUs": st.sampled_from(["0", "0-1"]),
    "cpuCFSQuota": st.booleans(),
    "healthzPort": st.integers(1, 9),
    "enforceNodeAllocatable": st.sampled_from([["pods"], ["pods", "system-reserved"]]),
    "kubeReserved": AMOUNTS,
    "topologyManagerPolicyOptions": st.dictionaries(st.sampled_from("ab"), st.sampled_from(["true", "false"])),
    "evictionHard": SIGNALS,
    "featureGates": st.dictionaries(st.sampled_from("AB"), st.booleans()),
}
FILES = st.fixed_dictionaries({}, optional=GIVEN)


def with_nothing(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a drop-in takes away what it has null for, also of a map."""

    def some_null(value: Any) -> st.SearchStrategy[Any]:
        if not isinstance(value, dict) or not value:
            return st.just(value)
        return st.fixed_dictionaries({key: st.sampled_from([member, None]) for key, member in value.items()})

    return st.none() | values.flatmap(some_null)


# All fields, so that few examples show a wrong order.
DROP_INS = st.fixed_dictionaries({field: with_nothing(values) for field, values in GIVEN.items()})


@given(FILES, st.just([]) | st.tuples(DROP_INS, DROP_INS).map(list), FILES)
def test_the_prediction_of_a_start_merges_them_the_same(
    base: dict[str, Any], drop_ins: list[dict[str, Any]], flags: dict[str, Any]
) -> None:
    texts = [json.dumps({"apiVersion": API_VERSION, "kind": KIND, **values}) for values in (base, *drop_ins)]
    words = [word for field, value in flags.items() for word in arguments_for(field, value)]
    files = [KubeletConfiguration.parse(text, "%d.conf" % number) for number, text in enumerate(texts)]
    found = effective_configuration(files[0], files[1:], read_flags(words, "kubelet.env"))
    command = read_command(["--config=/c", *words], NEWEST_MINOR)
    contents = [("%d.conf" % number, text.encode()) for number, text in enumerate(texts)]
    loaded = load_configuration(
        contents[0][1], contents[1:] or None, NEWEST_MINOR, lambda _gates: None, "/c", "/d", command.gates
    )
    predicted = apply_flags(command, loaded.values)
    for field in {*base, *flags, *(field for values in drop_ins for field in values)}:
        value = found.values.get(field)
        # Nothing, and what is empty, stands for the default.
        assert predicted.get(field) in ([value] if value else [value, None, {}, DEFAULTS.get(field), EVICTION_HARD])

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The close look and the quick one agree. What the close one reads is tested in test_checkpoint.py."""

from __future__ import annotations

import json
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state import decoding
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    read_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    Checkpoint,
    CheckpointError,
    Format2,
    Format4,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets

KUBELETS = [(18, False), (35, False), (35, True), (36, False), (36, True), (37, False), (37, True)]


def outcome(read: Callable[..., Checkpoint], *arguments: Any) -> Any:
    """Return what is read, or the complaint."""
    try:
        found = read(*arguments)
        said = (found.version, found.policy_name, found.default_cpu_set, found.entries, found.checksum, found.state())
        if not isinstance(found, Format4):
            return said
        outer = found.outer
        beside = (outer.policy_name, outer.default_cpu_set, outer.entries, outer.checksum)
        return said, beside, found.data, found.data_checksum, found.others
    except CheckpointError as error:
        return str(error)


def check_agreement(content: bytes) -> None:
    for minor, pod_level in KUBELETS:
        quick = outcome(read_checkpoint, content, minor, pod_level)
        assert quick == outcome(decoding.read_exactly, content, minor, pod_level, {})
    assert outcome(decode_checkpoint, content) == outcome(decoding.decode, content)


names = st.one_of(st.sampled_from(["app", "db", "b-0"]), st.text(max_size=4))
sets = st.one_of(cpusets().map(str), st.sampled_from(["", "+1", "0-3", "3-1", "00", " 1", "1,", "a", "0-3:2"]))
odd: st.SearchStrategy[Any] = st.sampled_from([None, True, 1, 1.5, [], {}])
containers = st.dictionaries(names, sets, max_size=3)
sometimes_odd = st.one_of(containers, odd, st.dictionaries(names, odd, min_size=1, max_size=2))
entries = st.one_of(
    st.dictionaries(names, containers, max_size=3), st.dictionaries(names, sometimes_odd, max_size=2), odd
)


@given(names, sets, entries, st.booleans(), st.sampled_from([None, 1]), st.permutations(range(4)))
def test_quick_and_close_look_agree(
    policy: str, default: str, members: Any, ascii_only: bool, indent: int | None, order: list[int]
) -> None:
    checkpoint = Format2()
    checkpoint.policy_name, checkpoint.default_cpu_set = policy, default
    try:
        checkpoint.entries = members
        number = checkpoint.right_checksum()
    except (AttributeError, TypeError, UnicodeEncodeError):
        number = 1
    items = [("policyName", policy), ("defaultCpuSet", default), ("entries", members), ("checksum", number)]
    text = json.dumps(dict(items[at] for at in order), ensure_ascii=ascii_only, indent=indent)
    check_agreement(text.encode("utf-8", "replace"))


@given(names, sets, entries, entries, st.sampled_from([None, 1]), st.permutations(range(6)), st.booleans())
def test_quick_and_close_look_agree_on_format_4(
    policy: str, default: str, outer: Any, inner: Any, indent: int | None, order: list[int], same: bool
) -> None:
    checkpoint = Format4()
    checkpoint.policy_name, checkpoint.default_cpu_set = policy, default
    checkpoint.entries = outer
    checkpoint.data = json.dumps(
        {"policyName": policy, "defaultCpuSet": default, "entries": outer if same else inner}, indent=indent
    )
    try:
        number = Format2.right_checksum(checkpoint)
    except (AttributeError, TypeError, UnicodeEncodeError):
        number = 1
    items = [
        ("policyName", policy),
        ("defaultCpuSet", default),
        ("entries", outer),
        ("checksum", number),
        ("data", checkpoint.data),
        ("dataChecksum", checkpoint.right_data_checksum()),
    ]
    check_agreement(json.dumps(dict(items[at] for at in order), indent=indent).encode("utf-8", "replace"))


@pytest.mark.parametrize(
    "change",
    [
        ('"checksum":', '"checksum":-'),
        ('"checksum":', '"Checksum":'),
        ('"checksum":', '"checksum":0'),
        ('"checksum":', '"checksum":1,"checksum":'),
        ('"policyName":', '"policyName":"none","policyName":'),
        ('"policyName":', '"policyname":"none","policyName":'),
        ('"entries":{', '"entries":{"pod":{"app":"7"},'),
        ('"entries":{', '"entries":{"pod":{},'),
        ('"app":', '"app":"9","app":'),
        ('"app":', '"\\u0061pp":'),
        ("{", " {\n"),
        ("{", "[{"),
        ("{", '{"other":NaN,'),
        ("{", '{"podEntries":{},'),
        ("{", '{"data":"",'),
        ("static", "stat\tic"),
        ("static", "stat\u00efc"),
        ("2-3", "3,2"),
    ],
)
def test_variants_of_a_good_file(change: tuple[str, str]) -> None:
    state = State(CPUSet.parse("0-1,4-7"), {"pod": {"app": CPUSet.parse("2-3")}})
    text = write_checkpoint("static", state).decode()
    assert change[0] in text
    check_agreement(text.replace(*change, 1).encode())


@pytest.mark.parametrize(
    "change",
    [
        ('"data":', '"data":null,"data":'),
        ('"data":', '"Data":'),
        ('"data":"{', '"data":7,"other":"{'),
        ('"data":"{', '"data":"{ '),
        ('"data":"{', '"data":"['),
        ('"data":"{', '"data":"{\\"checksum\\":1,'),
        ('"data":"{', '"data":"{\\"other\\":1,'),
        ('"data":"{', '"data":"{\\"podEntries\\":{},'),
        ('"data":"{', '"data":"{\\u0020'),
        ('"data":"{', '"data":"{\\\\'),
        ('"dataChecksum":', '"dataChecksum":0,"other":'),
        ('"dataChecksum":', '"dataChecksum":true,"other":'),
        ('"dataChecksum":', '"dataChecksum":1.0,"other":'),
        ('"dataChecksum":', '"other":'),
        ('"checksum":', '"checksum":0,"other":'),
        ('"checksum":', '"podEntries":{},"checksum":'),
        ('"app":', '"other":'),
        ('\\"app\\":', '\\"other\\":'),
    ],
)
def test_variants_of_a_good_file_of_format_4(change: tuple[str, str]) -> None:
    state = State(CPUSet.parse("0-1,4-7"), {"pod": {"app": CPUSet.parse("2-3")}})
    text = write_checkpoint("static", state, Format4).decode()
    assert change[0] in text
    changed = text.replace(*change, 1)
    check_agreement(changed.encode())
    # The same with the right sum over the text, so that more than the sum is looked at.
    data = json.loads(changed)
    if isinstance(data.get("data"), str):
        checkpoint = Format4()
        checkpoint.data = data["data"]
        check_agreement(json.dumps({**data, "dataChecksum": checkpoint.right_data_checksum()}).encode())


def test_the_close_look_is_not_needed_for_what_a_kubelet_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(decoding, "read_exactly")
    monkeypatch.delattr(decoding, "decode")
    state = State(CPUSet.parse("0-1,4-7"), {"pod": {"app": CPUSet.parse("2-3")}})
    content = write_checkpoint("static", state)
    assert read_checkpoint(content, 36).state() == decode_checkpoint(content).state() == state
    newest = write_checkpoint("static", state, Format4)
    for minor in (33, 36, 37):
        assert read_checkpoint(newest, minor).state() == decode_checkpoint(newest).state() == state

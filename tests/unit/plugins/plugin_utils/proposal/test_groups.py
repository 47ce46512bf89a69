# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/proposal/groups.py."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError, InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.groups import (
    conflicts,
    group_nodes,
    judge,
    read_nodes,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.settings import LATENCY, SettingsWish
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

WISH = SettingsWish(LATENCY, {})


def plan(machine: str = "2s1n4c2t", version: str | None = "v1.36.1", **more: Any) -> dict[str, Any]:
    topology = parse_name(machine).topology().to_dict()
    return {"status": "drift", "topology": topology, "kubelet": {"version": version}, "starts": True, **more}


def groups_of(plans: dict[str, Any], wishes: dict[str, SettingsWish] | None = None, skip: bool = False) -> list[Any]:
    return group_nodes(read_nodes(plans, wishes or dict.fromkeys(plans, WISH), skip))


def test_nodes_of_one_shape_are_one_group_whatever_their_versions() -> None:
    plans = {"b": plan(version="1.34.0"), "a": plan(), "c": plan("1s4c"), "d": plan(version=None)}
    groups = groups_of(plans)
    assert [group.hosts for group in groups] == [("a", "b", "d"), ("c",)] or [group.hosts for group in groups] == [
        ("c",),
        ("a", "b", "d"),
    ]
    alike = next(group for group in groups if "a" in group.hosts)
    assert alike.minors == (34, 36)
    assert alike.is_assumed
    assert [group.name for group in groups] == sorted(group.name for group in groups)
    # In whatever order the hosts come.
    assert groups_of(dict(reversed(plans.items()))) == groups


def test_other_wishes_make_other_groups() -> None:
    plans = {"a": plan(), "b": plan(), "c": plan()}
    wishes = {"a": WISH, "b": SettingsWish(LATENCY, {"count": 4}), "c": SettingsWish(LATENCY, {"count": 4})}
    groups = groups_of(plans, wishes)
    assert sorted(group.hosts for group in groups) == [("a",), ("b", "c")]
    assert all("_wish_" in group.name for group in groups)


@pytest.mark.parametrize(
    "host", ["../etc/passwd", "a/b", "..", "", "a:22", "a[1:2]", "{{ 1 }}", "a\nb:", "-", "a b", "#", "\x1b[0m"]
)
def test_a_host_whose_name_cannot_be_written_is_refused(host: str) -> None:
    with pytest.raises(InputError, match="cannot have this name"):
        groups_of({host: plan()})


def test_all_hosts_that_were_not_read_are_named_at_once() -> None:
    plans = {
        "good": plan(),
        "failed": {"failed": True, "msg": "no python"},
        "gone": {},
        "bastion": {"status": "no kubelet"},
        "odd": {**plan(), "topology": {"online": "0-"}},
        "old": plan(version="2.0"),
    }
    with pytest.raises(InputError) as caught:
        groups_of(plans)
    said = str(caught.value)
    assert all("%s: " % host in said for host in plans if host != "good")
    assert "good: " not in said
    del plans["failed"], plans["gone"], plans["odd"], plans["old"]
    assert [group.hosts for group in groups_of(plans, skip=True)] == [("good",)]
    with pytest.raises(InputError, match="there is no node"):
        groups_of({"bastion": {"status": "no kubelet"}}, skip=True)


def test_a_reservation_that_cannot_be_had_names_the_nodes() -> None:
    with pytest.raises(InputError, match=r"\(a, b\): cannot reserve 3 CPUs without splitting a core"):
        groups_of({"b": plan(), "a": plan()}, dict.fromkeys("ab", SettingsWish(LATENCY, {"count": 3})))

    # All of them at once.
    plans = {"a": plan(), "b": plan("1s2c"), "c": plan("1s1c2t"), "small": plan("1s1c")}
    with pytest.raises(InputError) as caught:
        groups_of(
            plans, {**dict.fromkeys("abc", SettingsWish(LATENCY, {"count": 3})), "small": SettingsWish(LATENCY, {})}
        )
    for said in ("(a): cannot reserve 3 CPUs", "(b): cannot reserve 3 of 2 CPUs", "(c): cannot reserve 3 of 2 CPUs"):
        assert said in str(caught.value)
    assert "small" not in str(caught.value)


def test_what_keeps_a_proposal_from_being_written() -> None:
    groups = groups_of({"a": plan(), "b": plan()})
    good, doubtful = plan(), plan(unknown=[{"reason": "there is no /sys/fs/cgroup"}])
    assert judge(groups, {"a": good, "b": good}) == ((), ())
    assert judge(groups, {"a": good, "b": doubtful}).notes == (
        "b: whether its kubelet starts depends on: there is no /sys/fs/cgroup",
    )

    def refused(kind: str) -> Any:
        refusal = {"kind": kind, "where": "file", "text": "bad", "remedy": "correct it"}
        return judge(groups, {"a": good, "b": plan(refusals=[refusal])})

    for kind in ("would_not_start", "configuration"):
        assert refused(kind).refusals == ("b: file: bad; correct it",)
    # What is so today, and has nothing to do with the proposal.
    assert refused("assignments") == ((), ("b: today a rollout would refuse: file: bad; correct it",))
    assert judge(groups, {"a": plan(starts=False), "b": good}).refusals == ("a: its kubelet would not start",)
    # Of each node once: what is refused says why it would not start.
    refusal = {"kind": "would_not_start", "text": "bad"}
    plans = {"a": plan(starts=False, refusals=[refusal]), "b": plan(starts=False)}
    assert judge(groups, plans).refusals == ("a: bad", "b: its kubelet would not start")
    assert judge(groups, {"a": good}).refusals == ("b: the node could not be reached",)
    assert judge(groups, {"a": good, "b": {"failed": True, "msg": "gone"}}).refusals == ("b: gone",)


def test_what_the_inventory_has_otherwise() -> None:
    groups = groups_of({"a": plan(), "b": plan()})
    same = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": None}
    assert conflicts(groups, {"a": same, "b": {}}) == []
    (said,) = conflicts(groups, {"b": {"kubelet_cpu_manager_policy": "none"}, "a": same})
    assert said.startswith("kubelet_cpu_manager_policy has another value in the inventory of b,")
    (said,) = conflicts(groups, {"b": {"kubelet_reserved_system_cpus": "0-1"}})
    assert said.startswith("kubelet_reserved_system_cpus has another value")
    # Nothing is reserved, and a reservation beside that is refused.
    (said,) = conflicts(groups_of({"a": plan("1s1c2t")}), {"a": {"kubelet_reservation": {"count": 1}}})
    assert said.startswith("kubelet_reservation has another value")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    part=st.sampled_from(["topology", "kubelet", "status", "starts", "refusals", "unknown", "online", "cores"]),
    value=PLAIN,
)
def test_a_hostile_answer_is_refused_or_read(part: str, value: Any) -> None:
    answer = json.loads(json.dumps(plan()))
    (answer["topology"] if part in ("online", "cores") else answer)[part] = value
    with suppress(CPUManagerError):
        groups = groups_of({"a": answer})
        judge(groups, {"a": answer})

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Laws of the drift report: what is found can be wanted, and after the actions a node is clean."""

from __future__ import annotations

import json
from typing import Any, Mapping

from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import (
    changes,
    check_settings,
    found_settings,
    plan_settings,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.checkpoint_plan import plan_valid
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import first_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.drifted import file, starts_of
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus


class Node:
    """A node whose files are values, and what is wanted of it."""

    def __init__(
        self, shape: Shape, configuration: KubeletConfiguration, checkpoint: bytes | None, wanted: Mapping[str, Any]
    ) -> None:
        self.shape = shape
        self.topology = shape.topology()
        self.machine = Host(kubelet_view(self.topology))
        self.configuration = configuration
        self.checkpoint = checkpoint
        self.wanted = wanted

    def __repr__(self) -> str:
        return "Node(%s, %r, %r, %r)" % (self.shape.name(), self.configuration.text, self.checkpoint, self.wanted)

    def report(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        starts = starts_of(self.configuration, wanted, self.machine)
        found = report(self.topology, self.machine, self.configuration, self.checkpoint, wanted, starts=starts)
        assert json.loads(json.dumps(found)) == found
        return found

    def act(self, action: str) -> None:
        """Do what the role does for one of the report's actions."""
        if action == "reset_checkpoint":
            self.checkpoint = None
        elif action == "repair_checkpoint":
            planned = self.configuration.with_changes(plan_settings(self.wanted, self.configuration).changes)
            self.checkpoint = plan_valid(self.checkpoint, manager_config(planned, self.machine)).new
        elif action == "write_configuration":
            plan = plan_settings(self.wanted, self.configuration)
            self.configuration = self.configuration.with_changes(plan.changes)
        elif action == "start_kubelet" and self.checkpoint is None:
            config = manager_config(self.configuration, self.machine)
            self.checkpoint = write_checkpoint(config.policy_name, first_state(config))


@st.composite
def settings(draw: st.DrawFn, online: CPUSet) -> dict[str, Any]:
    options = st.dictionaries(
        st.sampled_from(["full-pcpus-only", "strict-cpu-reservation", "distribute-cpus-across-numa"]),
        st.sampled_from(["true", "false"]),
    )
    some_cpus = st.frozensets(st.sampled_from(list(online))).map(CPUSet).map(str)
    drawn: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "cpu_manager_policy": st.sampled_from(["static", "static", "none"]),
                "cpu_manager_policy_options": options,
                "cpu_manager_reconcile_period": st.sampled_from(["10s", "5s", "0s"]),
                "topology_manager_policy": st.sampled_from(["none", "best-effort", "single-numa-node"]),
                "topology_manager_scope": st.sampled_from(["container", "pod"]),
                "reserved_system_cpus": some_cpus,
                "kube_reserved_cpu": st.sampled_from(["0", "500m", "1", "2"]),
                "system_reserved_cpu": st.sampled_from(["0", "0.5"]),
            },
        )
    )
    return drawn


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    shape = draw(shapes(most_cpus=12))
    online = shape.topology().online
    configuration = file().with_changes(changes(draw(settings(online)), found_settings(file())))
    some_cpus = st.frozensets(st.sampled_from(list(online))).map(CPUSet)
    pool, exclusive = draw(st.one_of(st.just(online), some_cpus)), draw(some_cpus)
    states = [State(online, {}), State(CPUSet(), {}), State(pool - exclusive, {"pod": {"container": exclusive}})]
    checkpoint = write_checkpoint(draw(st.sampled_from(["static", "none"])), draw(st.sampled_from(states)))
    found = draw(st.sampled_from([None, checkpoint, checkpoint, checkpoint[:-20], b""]))
    return Node(shape, configuration, found, draw(settings(online)))


def starts(node: Node, wanted: Mapping[str, Any]) -> bool:
    try:
        answer = node.report(wanted)
    except (InputError, RefusedError):
        return False
    return not any(row["subject"] == "start" for row in answer["drift"])


@given(nodes())
def test_what_is_found_can_be_wanted(node: Node) -> None:
    """The round trip: a node's own settings are no drift, on itself."""
    assume(starts(node, {}))
    asked_nothing = node.report({})
    found = asked_nothing["found"]
    check_settings(found)
    asked_all = node.report(found)
    status = "nothing wanted" if asked_all["status"] == "clean" else asked_all["status"]
    assert {**asked_all, "wanted": {}, "status": status} == asked_nothing
    assert [drift["subject"] for drift in asked_all["drift"] if "remedy" not in drift] in ([], ["checkpoint"])
    assert "write_configuration" not in asked_all["actions"]


@given(nodes())
def test_after_the_actions_the_node_is_clean(node: Node) -> None:
    assume(starts(node, node.wanted))
    before = node.report(node.wanted)
    order = ["stop_kubelet", "reset_checkpoint", "repair_checkpoint", "write_configuration", "start_kubelet"]
    assert before["actions"] == [action for action in order if action in before["actions"]]
    assert (before["status"] == "drift") == bool(before["drift"])
    assert bool(before["actions"]) == any("remedy" not in drift for drift in before["drift"])
    for action in before["actions"]:
        node.act(action)
    after = node.report(node.wanted)
    assert after["actions"] == []
    # What the kernel was booted with, no action changes.
    assert all(drift["subject"] in ("isolated", "nohz_full") and drift["remedy"] for drift in after["drift"])
    assert (
        after["cpus"]["reserved"] == before["cpus"]["reserved_wanted"] or after["found"]["cpu_manager_policy"] == "none"
    )
    # Its kubelet starts again, whatever was there before.
    assert not any("would not start again" in note for note in after["notes"])
    # The round trip, to the next node of the kind.
    assert node.report(after["found"])["drift"] == after["drift"]


@given(nodes())
def test_a_report_changes_nothing(node: Node) -> None:
    assume(starts(node, node.wanted))
    text, wanted = node.configuration.text, json.dumps(node.wanted)
    assert node.report(node.wanted) == node.report(node.wanted)
    assert (node.configuration.text, json.dumps(node.wanted)) == (text, wanted)


@given(nodes())
def test_each_online_cpu_is_reserved_exclusive_or_shared(node: Node) -> None:
    assume(starts(node, node.wanted))
    pools = node.report(node.wanted)["cpus"]
    reserved, exclusive, shared = (cpus(pools[name]) for name in ("reserved", "exclusive", "shared"))
    assert shared == node.topology.online - reserved - exclusive
    assert exclusive <= node.topology.online
    assert cpus(pools["online"]) == node.topology.online
    assert cpus(pools["stranded"]) <= shared


@given(nodes())
def test_each_cpu_has_one_owner(node: Node) -> None:
    assume(starts(node, node.wanted))
    found = node.report(node.wanted)
    sets = [cpus(owner["cpus"]) for owner in found["owners"]]
    assert all(sets)
    assert sum(map(len, sets)) == len(node.topology.online | node.topology.offline)
    for use in ("exclusive", "shared", "offline"):
        owned = [cpus(owner["cpus"]) for owner in found["owners"] if owner["use"] == use]
        assert CPUSet(cpu for part in owned for cpu in part) == cpus(found["cpus"][use])

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The container runtime's part in the plan of a node's change: it is in the same journal as the kubelet's."""

from __future__ import annotations

from typing import Any, Mapping

from ...errors import CPUManagerError
from ...tree import OverlaidTree
from ...writable import unwritable
from ..drift import CLEAN, DRIFT, NO_KUBELET, NOTHING_WANTED, START_KUBELET, STOP_KUBELET
from ..node import Node
from ..places import LAST
from ..runtime import PRESENT, RuntimeChange, Wanted, plan_runtime
from .journal import CHANGING, read_journal

WRITE_RUNTIME, RESTART_RUNTIME = "write_runtime_configuration", "restart_runtime"
# What the journal remembers of it, so that whatever takes the change back restarts the runtime, too.
FACT = "runtime"


def with_runtime(report: Mapping[str, Any], node: Node, wanted: Wanted, may_drain: bool) -> dict[str, object]:
    """The plan of a rollout with what is wanted of the runtime; `runtime` is None where that is there."""
    plan = {**report, FACT: None}
    if report["status"] == NO_KUBELET:
        return plan
    try:
        change = plan_runtime(_as_it_will_be(node), wanted)
    except CPUManagerError as error:
        return {**plan, "refusals": [*report["refusals"], error.to_row()]}
    if not change.contents:
        return plan
    actions = list(report["actions"])
    if START_KUBELET not in actions:
        actions = [STOP_KUBELET, START_KUBELET, *actions]
    restart = [WRITE_RUNTIME, RESTART_RUNTIME]
    place = actions.index(START_KUBELET)
    paths = sorted(change.contents)
    refusals = [error.to_row() for error in unwritable(node.tree, paths)]
    return {
        **plan,
        "status": DRIFT if report["status"] in (CLEAN, NOTHING_WANTED) else report["status"],
        "drift": [*report["drift"], *_rows(node, change, wanted)],
        "actions": [*actions[:place], *restart, *actions[place:]],
        "files": list(dict.fromkeys([*(report["files"] or node.state_paths), *paths])),
        "refusals": [*report["refusals"], *refusals],
        **_drained(report, may_drain),
        FACT: change.to_dict(),
    }


def with_last_runtime(report: Mapping[str, Any], node: Node, may_drain: bool) -> dict[str, Any]:
    """The plan of a rollback, with the runtime where its files are put back."""
    plan = {**report, FACT: None}
    if START_KUBELET not in report["actions"]:
        return plan
    tree = _as_it_will_be(node).tree
    last = read_journal(node.tree, LAST)
    fact = {} if last is None else last.facts.get(FACT)
    if last is None or not isinstance(fact, dict) or not isinstance(fact.get("files"), list):
        return plan
    changed = [path for path, saved in last.files.items() if saved.content != tree.content(path)]
    if set(changed).isdisjoint(path for path in fact["files"] if isinstance(path, str)):
        return plan
    actions = list(report["actions"])
    actions.insert(actions.index(START_KUBELET), RESTART_RUNTIME)
    return {**plan, **_drained(report, may_drain), "actions": actions, FACT: fact}


def _drained(report: Mapping[str, Any], may_drain: bool) -> dict[str, bool]:
    """Pods leave the node before its runtime is restarted; a kubelet that is broken would end no containers."""
    drain = report["drain"] or not report["found_refusal"]
    return {"drain": drain, "drains": drain and may_drain}


def _as_it_will_be(node: Node) -> Node:
    """The node once a change that was interrupted is taken back."""
    try:
        journal = read_journal(node.tree)
    except CPUManagerError:
        return node  # the plan has it among its refusals
    if journal is None or journal.phase != CHANGING:
        return node
    return node.on(OverlaidTree(node.tree, {path: saved.content for path, saved in journal.files.items()}))


def _rows(node: Node, change: RuntimeChange, wanted: Wanted) -> list[dict[str, object]]:
    if wanted.state != PRESENT:
        return [
            {"subject": "runtime", "wanted": "as before", "found": "changed", "source": node.tree.path(path)}
            for path in sorted(change.contents)
        ]
    return [
        {
            "subject": "runtime_" + name,
            "wanted": "on",
            "found": "off",
            "source": node.tree.path(change.found[name + "_source"] or change.runtime.config),
        }
        for name, is_wanted in (("nri", wanted.nri), ("cdi", wanted.cdi))
        if is_wanted and not change.found[name]
    ]

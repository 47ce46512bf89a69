# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a rollout or a rollback would do to a node, all of it decided before anything is touched.

A change that was interrupted is taken back first. So the plan is made for the node as it will be then: its saved files
lie over those that are there (see recovery.py).
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

from ...cpuset import CPUSet
from ...errors import CPUManagerError, NodeError, RefusedError, noted
from ...kubelet.file.configuration import Configuration
from ...kubelet.settings import SETTINGS, differences, found_settings, needed_config, plan_settings
from ...kubelet.start.finding import Finding, Unknown
from ...kubelet.start.prediction import Prediction
from ...state.config import CPUManagerConfig
from ...state.verdict import readable
from ...tree import OverlaidTree, Tree
from ..drift import (
    BACK,
    CONFIGURATION,
    DRIFT,
    NO_KUBELET,
    RECONCILE,
    REPAIR_CHECKPOINT,
    RESET_CHECKPOINT,
    RESET_MEMORY_STATE,
    START,
    START_KUBELET,
    STATE_ACTIONS,
    STOP_KUBELET,
    report,
)
from ..memory_state import MemoryPlan, memory_loss_error
from ..node import Node
from ..places import LAST, OPEN
from ..prediction import predicted_starts
from ..start_report import memory_plan, with_states
from .journal import CHANGING, Journal, read_journal
from .memory import with_memory_state
from .recovery import last_files, recovery_of, recovery_refusals

ROLLOUT, ROLLBACK = "rollout", "rollback"
RESTORE_CONFIGURATION = "restore_configuration"

# A restart with one of these changed admits every running pod as before.
_HARMLESS = frozenset(("cpu_manager_reconcile_period", "cpu_cfs_quota", "cpu_cfs_quota_period"))

# What is done with each file that the kubelet's managers keep, in the order of Node.state_paths.
_OF_STATES = ({RESET_CHECKPOINT, REPAIR_CHECKPOINT}, {RESET_MEMORY_STATE})
# Kinds of refusals that are about the files as they will be.
_OF_FILES = frozenset((CONFIGURATION, "no_kubelet", "would_not_start"))


class Terms(NamedTuple):
    """What the change is, and what it may do."""

    # ROLLOUT or ROLLBACK.
    change: str = ROLLOUT
    # The rollout to go back from; empty for the last change, whichever it was of.
    rollback_of: str = ""
    # Whether pods may be drained; whether exclusive CPUs may be lost without a drain.
    drain: bool = True
    discard: bool = False
    # Whether the kubelet is stopped before its files are changed.
    manage_service: bool = True
    # The ids of those who may manage CPUs beside the kubelet.
    allow_owners: tuple[str, ...] = ()
    # Whether what others wrote since the change that is taken back may be replaced as a whole.
    overwrite: bool = False


def rollout_report(node: Node, wanted: Mapping[str, object], terms: Terms) -> dict[str, Any]:
    """The plan of a node, as plain data; see the module rollout_info for its shape.

    What is found wrong and keeps the node from being changed is in `refusals`. Raises InputError and RefusedError for
    what is wanted wrong, and NodeError for files without which nothing can be said of the node.
    """
    refusals: list[CPUManagerError] = []
    journal = _journal(node.tree, refusals)
    last = _journal(node.tree, refusals if terms.change == ROLLBACK else [], LAST)
    exclusive_now = _exclusive(node)
    notes = node.own_notes()
    recovery = recovery_of(node, journal, terms.overwrite)
    refusals += [*recovery.problems, *([] if terms.discard else recovery_refusals(node, journal, recovery))]
    notes += recovery.notes
    if recovery.files:
        node = node.on(OverlaidTree(node.tree, recovery.files))
    if terms.change == ROLLBACK:
        plan = _rollback_plan(node, terms, last, journal, refusals)
    else:
        plan = _rollout_plan(node, wanted, refusals, journal is not None)
    restarts = START_KUBELET in plan["actions"]
    is_dead = bool(plan["found_refusal"]) and _is_down(node, journal)
    drain = restarts and needs_drain(plan["actions"], plan["drift"]) and not is_dead
    losses = plan.pop("losses")
    # What keeps a saved node from being changed is what would keep the node: there the kubelet is stopped, and drained.
    has_service = terms.manage_service or node.is_saved
    refusals += [] if terms.discard or (drain and (terms.drain or node.is_saved)) else losses
    if restarts or journal is not None:
        # Imported here: a node that stays as it is needs no look at its disk.
        from ...writable import unwritable

        refusals += unwritable(node.tree, [*plan["files"], OPEN])
    if restarts or RECONCILE in plan["actions"]:
        from .others import other_owners, running_kubelet

        refusals += other_owners(node, plan["actions"], plan["drift"], terms.allow_owners)
        if not has_service and _resets(plan["actions"]):
            refusals += running_kubelet(node)
    if journal is not None and plan["found_refusal"] and not restarts and not refusals:
        refusals.append(_stays_open(node, plan["found_refusal"]))
    return {
        **plan,
        **noted([*plan["notes"], *notes]),
        "kernel": node.kernel(),
        "drain": drain,
        "drains": drain and terms.drain,
        "refusals": [_refusal(error, journal) for error in refusals],
        "journal": None
        if journal is None
        else {**journal.to_dict(), "exclusive_now": exclusive_now, "restores": sorted(recovery.files)},
        "last": None if last is None else last.to_dict(),
        "resets": [path for path, of in zip(node.state_paths, _OF_STATES) if not of.isdisjoint(plan["actions"])],
    }


def _journal(tree: Tree, refusals: list[CPUManagerError], *path: str) -> Journal | None:
    try:
        return read_journal(tree, *path)
    except NodeError as error:
        refusals.append(error)
        return None


def _exclusive(node: Node) -> str:
    """The exclusive CPUs of containers, whatever else the checkpoint says."""
    state = readable(node.checkpoint()).state
    return str(CPUSet() if state is None else state.exclusive_cpus())


def _is_down(node: Node, journal: Journal | None) -> bool:
    """Whether no kubelet runs once an interrupted change is taken back, for which it is stopped if files were changed.

    If none can be started either, a drain would wait for ever, as nobody ends the containers.
    """
    is_changing = journal is not None and journal.phase == CHANGING
    return is_changing or node.installation is None or node.installation.pid is None


def _stays_open(node: Node, found_refusal: str) -> CPUManagerError:
    """Why an interrupted change cannot come to its end: nothing that is planned brings the kubelet back."""
    return RefusedError(
        "a change of this node was interrupted, and without it the kubelet would not start either: %s" % found_refusal,
        node.tree.path(OPEN),
        "if it is the checkpoint, run the playbook repair; if it is the configuration, correct it, and run again",
        "would_not_start",
    )


def _resets(actions: Iterable[str]) -> bool:
    return not STATE_ACTIONS.isdisjoint(actions)


def _refusal(error: CPUManagerError, journal: Journal | None) -> dict[str, str]:
    remedy = error.remedy
    if journal is not None and journal.phase == CHANGING and error.kind in _OF_FILES:
        # What is there now may be better than what is saved: somebody may have corrected it since.
        remedy += ", or if the node is as it should be now, forget the change with rollout_journal, state: absent"
    return {**error.to_row(), "remedy": remedy}


# --- a rollout, or a repair: one without wanted settings ------------------------------------------------------


def _rollout_plan(
    node: Node, wanted: Mapping[str, object], refusals: list[CPUManagerError], is_interrupted: bool
) -> dict[str, Any]:
    configuration, problem = node.found()
    observed, notes = node.observed(configuration)
    checkpoint = node.checkpoint()
    starts = None if configuration is None else predicted_starts(node, wanted)
    answer = report(node.topology, node.machine(), configuration, checkpoint, wanted, observed, problem, starts)
    findings: list[Finding] = []
    losses: list[CPUManagerError] = []
    files: list[str] = []
    unknown: list[Unknown] = []
    if answer["found"] is None or starts is None:
        refusals.append(_unreadable(node, answer))
    else:
        memory = memory_plan(node, starts.planned)
        answer = with_memory_state(answer, memory, memory_plan(node, starts.found).reason)
        restarts = START_KUBELET in answer["actions"]
        config = _config(starts.planned)
        planned = checkpoint
        if restarts and config is not None:
            planned = _accepted_checkpoint(checkpoint, config)
            losses = _both_losses(node, checkpoint, config, memory)
        # The memory manager's state is gone by then, if it would be refused.
        prediction = with_states(node, starts.planned, planned, None)
        findings, unknown = list(prediction.findings), list(prediction.unknown)
        is_found = any(row["subject"] == START for row in answer["drift"])
        refusals += _start_refusals(findings, ", or " + BACK if is_found else "")
        if restarts or is_interrupted:
            try:
                files = [*planned_files(node, wanted), *node.state_paths]
            except RefusedError as error:
                refusals.append(error)
    return {
        **answer,
        "notes": [*answer["notes"], *notes, *node.owner_notes(configuration)],
        "starts": answer["found"] is not None and not any(finding.fatal for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
        "unknown": [doubt.to_dict() for doubt in unknown],
        "files": files,
        "kubelet": node.kubelet(configuration),
        "elsewhere": node.elsewhere(wanted, configuration),
        "losses": losses,
    }


def _unreadable(node: Node, answer: Mapping[str, Any]) -> CPUManagerError:
    """Why the configuration of a node cannot be changed at all."""
    if answer["status"] == NO_KUBELET:
        return node.missing()
    (row,) = answer["drift"]
    return NodeError(row["found"], remedy=row["remedy"], kind=CONFIGURATION)


def _config(prediction: Prediction) -> CPUManagerConfig | None:
    """What the CPU manager would start with after the change; None where it would not start."""
    try:
        return needed_config(prediction)
    except RefusedError:
        return None


def _start_refusals(findings: Iterable[Finding], more: str = "") -> list[CPUManagerError]:
    return [
        RefusedError(
            "the kubelet would not start: %s%s (%s)" % (finding.context, finding.text, finding.cause),
            finding.where,
            finding.remedy + more,
            "would_not_start",
        )
        for finding in findings
        if finding.fatal
    ]


def planned_files(node: Node, wanted: Mapping[str, object]) -> list[str]:
    """The files that a change of settings writes, as paths on the node. Raises RefusedError where it would not."""
    # Imported here, as below: most nodes need no change.
    from ...kubelet.placement import plan_files, touched_files
    from ..sources import read_sources

    sources = read_sources(node)
    plan_files(sources, plan_settings(wanted, node.needed_configuration(), node.minor), wanted, node.minor)
    return [node.tree.node_path(path) for path in touched_files(sources, node.minor)]


# --- a rollback ---------------------------------------------------------------------------------------------


def _rollback_plan(
    node: Node, terms: Terms, last: Journal | None, journal: Journal | None, refusals: list[CPUManagerError]
) -> dict[str, Any]:
    before, problem = node.found()
    observed, notes = node.observed(before)
    checkpoint = node.checkpoint()
    starts = None if before is None else predicted_starts(node, {})
    now = report(node.topology, node.machine(), before, checkpoint, {}, observed, problem, starts)
    # The interrupted change is what to go back from. If the kubelet would not start then, one change more is.
    is_broken = now["found"] is None or any(row["subject"] == START for row in now["drift"])
    rollback_of = "" if journal is not None and is_broken else terms.rollback_of
    restored = last_files(node, last, rollback_of, terms.overwrite)
    files = restored.files
    refusals += restored.problems
    plan: dict[str, object] = {
        **now,
        "notes": [*now["notes"], *notes, *restored.notes, *node.owner_notes(before)],
        "actions": [],
        "starts": not now["found_refusal"],
        "findings": [],
        "unknown": [],
        "files": [*files, *node.state_paths],
        "kubelet": node.kubelet(before),
        "elsewhere": node.elsewhere({}, before),
        "losses": [],
    }
    changed = [path for path, content in files.items() if content != node.tree.content(path)]
    if not changed:
        return plan
    after = node.on(OverlaidTree(node.tree, files))
    configuration, problem = after.found()
    starts = None if configuration is None else predicted_starts(after, {})
    then = report(after.topology, after.machine(), configuration, checkpoint, {}, observed, problem, starts)
    if then["found"] is None or configuration is None or starts is None:
        refusals.append(
            RefusedError(
                "what was there before the last change cannot be read either: %s" % then["found_refusal"],
                node.tree.path(LAST),
                "write the kubelet's configuration anew, such as from a backup beside it",
                CONFIGURATION,
            )
        )
        return plan
    memory = memory_plan(after, starts.planned)
    then = with_memory_state(then, memory, memory.reason)
    config = _config(starts.planned)
    planned = checkpoint if config is None else _accepted_checkpoint(checkpoint, config)
    prediction = with_states(after, starts.planned, planned, None)
    findings = prediction.findings
    refusals += _start_refusals(findings)
    resets = [action for action in then["actions"] if action in STATE_ACTIONS]
    return {
        **plan,
        "status": DRIFT,
        "checkpoint": then["checkpoint"],
        "cpus": {**now["cpus"], "reserved_wanted": then["cpus"].get("reserved_wanted", "")},
        "drift": [*_restored_rows(now, configuration, before, changed), *_states(then["drift"])],
        "actions": [STOP_KUBELET, RESTORE_CONFIGURATION, *resets, START_KUBELET],
        "starts": not any(finding.fatal for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
        "unknown": [doubt.to_dict() for doubt in prediction.unknown],
        "kubelet": plan["kubelet"] or after.kubelet(configuration),
        "elsewhere": after.elsewhere(found_settings(configuration), configuration),
        "losses": [] if config is None else _both_losses(after, checkpoint, config, memory),
    }


def _restored_rows(
    now: Mapping[str, Any], configuration: Configuration, before: Configuration | None, changed: Iterable[str]
) -> list[dict[str, Any]]:
    """What a rollback changes: settings where both configurations can be read, else the files."""
    found = now["found"]
    if found is not None and before is not None:
        wanted = found_settings(configuration)
        rows = [
            {
                "subject": name,
                "wanted": wanted[name],
                "found": found[name],
                "source": before.origin(SETTINGS[name].path),
            }
            for name in differences(wanted, found)
        ]
        if rows:
            return rows
    return [
        *now["drift"],
        *({"subject": path, "wanted": "as before", "found": "changed", "source": path} for path in changed),
    ]


def _states(drift: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    return [dict(row) for row in drift if row["subject"] in ("checkpoint", "memory_state")]


# --- what both have --------------------------------------------------------------------------------------------


def _accepted_checkpoint(checkpoint: bytes | None, config: CPUManagerConfig) -> bytes | None:
    """What the checkpoint becomes where the kubelet would refuse it, whatever containers lose."""
    from ..checkpoint_plan import plan_valid

    return plan_valid(checkpoint, config, discard=True).new


def _both_losses(
    node: Node, checkpoint: bytes | None, config: CPUManagerConfig, memory: MemoryPlan
) -> list[CPUManagerError]:
    """What containers that run would lose."""
    from ..checkpoint_plan import loss_error, plan_valid

    errors = [
        loss_error(node.tree.path(node.checkpoint_path), plan_valid(checkpoint, config)),
        memory_loss_error(node.tree.path(node.memory_state_path), memory),
    ]
    return [error for error in errors if error is not None]


def needs_drain(actions: Iterable[str], drift: Iterable[Mapping[str, object]]) -> bool:
    """Whether pods have to leave the node before its kubelet starts with the change.

    At its start a kubelet admits each running pod again: where the policy, its options, the reservation or the
    topology manager are others, it may refuse pods or give them other CPUs. Where it cannot be read what was set, it
    counts as changed.
    Source: HandlePodAdditions in pkg/kubelet/kubelet.go.
    """
    return _resets(actions) or any(
        row["subject"] not in _HARMLESS and (row["subject"] in SETTINGS or row["subject"] == CONFIGURATION)
        for row in drift
    )

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a rollout, a rollback or an upgrade would do to a node, all of it decided before anything is touched.

Its parts are the settings, and as wanted the container runtime and a trial of the start. Where the node's own kubelet
and the prediction differ, the kubelet is right, and the plan goes by it.

A change that was interrupted is taken back first. So the plan is made for the node as it will be then: its saved
files lie over those that are there (see recovery.py).

Of another version of Kubernetes, it says whether the node can go to it and come back, and what is lost: the kubelet of
the other version starts with the node's files as they are, and writes the CPU manager's checkpoint as it does; then the
kubelet of today starts with that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.arguments import Arguments
from .._base.errors import CPUManagerError, NodeError, RefusedError, noted, option
from .._base.files import unwritable
from .._base.journal_file import LAST, OPEN
from .._base.tree import SAID, OverlaidTree, Tree
from .._base.versions import version_notes
from .._host.reach import check_reach
from .._host.systemd import has_service, has_systemd
from .._kubelet.configuration import Configuration
from .._kubelet.placement import plan_files, touched_files
from .._kubelet.settings import SETTINGS, WOULD_NOT_START, found_settings, needed_config, plan_settings
from .._kubelet.start.findings import Finding, Unknown
from .._kubelet.start.predict import Prediction, Starts
from .._node.drift import (
    BACK,
    CLEAN,
    CONFIGURATION,
    DRIFT,
    NO_KUBELET,
    NOTHING_WANTED,
    RECONCILE,
    REPAIR_CHECKPOINT,
    RESET_CHECKPOINT,
    RESET_MEMORY_STATE,
    RESTART_RUNTIME,
    RESTORE_CONFIGURATION,
    START,
    START_KUBELET,
    STATE_ACTIONS,
    WRITE_RUNTIME,
    differing,
    in_order,
    report,
    with_memory_doubt,
    with_memory_state,
    with_restart,
)
from .._node.module import mistaken_in
from .._node.node import Node
from .._node.runtime import PRESENT, RuntimeChange, WantedRuntime, plan_runtime
from .._node.start_check import (
    ALWAYS,
    NEVER,
    MemoryPlan,
    config_if_certain,
    is_at_risk,
    memory_loss_error,
    memory_plan,
    predict_configuration,
    predict_start,
    predicted_starts,
    read_sources,
    removed_states,
    stored_state,
    with_states,
)
from .._owners import owners
from .._owners.conflicts import check_allowed, refusals
from ..cpuset import CPUSet
from ..policy.hints import POD, RESTRICTED, SINGLE_NUMA_NODE
from ..state.acceptance import STATIC, CPUManagerConfig, readable
from .judged import judged_of, managers_dict
from .recovery import last_files, recovery_of, recovery_refusals
from .rollout_journal import CHANGING, RolloutJournal, read_journal

if TYPE_CHECKING:
    from .._node.container_cpus import Observed

ROLLOUT, ROLLBACK = "rollout", "rollback"
# What the journal remembers of the container runtime, so that whatever takes the change back restarts it, too.
FACT = "runtime"

_POLICY, _STATIC = "cpu_manager_policy", "static"
# The settings by which the kubelet gives out CPUs.
_OF_CPUS = (_POLICY, "reserved_system_cpus")
# What is done with each file that the kubelet's managers keep, in the order of Node.state_paths.
_OF_STATES = ({RESET_CHECKPOINT, REPAIR_CHECKPOINT}, {RESET_MEMORY_STATE})
# Kinds of refusals that are about the files as they will be.
_OF_FILES = frozenset((CONFIGURATION, "no_kubelet", "would_not_start"))


class ChangeTerms(NamedTuple):
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


# What modules take that plan a change.
PLAN = Arguments(
    {
        "change": {"type": "str", "choices": [ROLLOUT, ROLLBACK], "default": ROLLOUT},
        "rollback_of": {"type": "str", "default": ""},
        "drain": {"type": "bool", "default": True},
        "discard_assignments": {"type": "bool", "default": False},
        "manage_service": {"type": "bool", "default": True},
        "check_services": {"type": "bool", "default": False},
        "check_writable": {"type": "bool", "default": False},
        "service": {"type": "str"},
        "runtime_service": {"type": "str"},
        "allow_owners": {"type": "list", "elements": "str", "default": []},
        "overwrite_edited": {"type": "bool", "default": False},
        "runtime_config": {"type": "str", "choices": ["present", "absent"]},
        "runtime_version": {"type": "str"},
    }
)


class PlannedStart(NamedTuple):
    """What the kubelet finds when a change starts it: these files over the node's, and then the wanted settings."""

    files: Mapping[str, bytes | None]
    wanted: Mapping[str, object] = {}


class PlannedChange(NamedTuple):
    """The plan of a node: as plain data, and the start that comes with it; None where that cannot be planned."""

    report: dict[str, Any]
    start: PlannedStart | None


def rollout_report(node: Node, wanted: Mapping[str, object], terms: ChangeTerms) -> dict[str, Any]:
    """Return the plan of a node, as plain data; see the module rollout_info for its shape. Raises as plan_change."""
    return plan_change(node, wanted, terms).report


def plan_change(node: Node, wanted: Mapping[str, object], terms: ChangeTerms) -> PlannedChange:
    """Return the plan of a node.

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
    losses, start = plan.pop("losses"), plan.pop("start")
    changes_rules = restarts and (needs_drain(plan["actions"], plan["drift"]) or _is_removed(node))
    fates: list[dict[str, Any]] = []
    loss = None
    if restarts and start is not None:
        # Imported here: most nodes need no change.
        from .._node.restart import fates_at_start, restart_loss_error

        found = fates_at_start(node, start.files, start.wanted, changes_rules and not terms.drain)
        fates = [fate.to_dict() for fate in found]
        loss = restart_loss_error(found, node.tree.path(node.checkpoint_path))
    # Where no rule is another, it may be refused all the same what it has.
    drain = (changes_rules or loss is not None) and not is_dead
    if loss is not None and not losses:
        losses = [loss]
    # What keeps a saved node from being changed is what would keep the node: there the kubelet is stopped, and drained.
    has_service = terms.manage_service or node.is_saved
    refusals += [] if terms.discard or (drain and (terms.drain or node.is_saved)) else losses
    if restarts or journal is not None:
        refusals += unwritable(node.tree, [*plan["files"], OPEN])
    if restarts or RECONCILE in plan["actions"]:
        refusals += other_owners(node, plan["actions"], plan["drift"], terms.allow_owners)
        if not has_service and _resets(plan["actions"]):
            refusals += running_kubelet(node)
    if journal is not None and plan["found_refusal"] and not restarts and not refusals:
        refusals.append(_stays_open(node, plan["found_refusal"]))
    report = {
        **plan,
        **noted([*plan["notes"], *notes]),
        "kernel": node.kernel(),
        "drain": drain,
        "drains": drain and terms.drain,
        "restart": fates,
        "refusals": [_refusal(error, journal) for error in refusals],
        "journal": None
        if journal is None
        else {**journal.to_dict(), "exclusive_now": exclusive_now, "restores": sorted(recovery.files)},
        "last": None if last is None else last.to_dict(),
        "resets": [path for path, of in zip(node.state_paths, _OF_STATES) if not of.isdisjoint(plan["actions"])],
    }
    if start is not None:
        start = start._replace(files={**recovery.files, **start.files})
    return PlannedChange(report, start)


def starts_kubelet(report: Mapping[str, Any]) -> bool:
    """Return whether a kubelet is started with other files, by the change, or where an interrupted one is taken
    back."""
    return START_KUBELET in report["actions"] or bool(report["journal"] and report["journal"]["restores"])


def _journal(tree: Tree, refusals: list[CPUManagerError], *path: str) -> RolloutJournal | None:
    try:
        return read_journal(tree, *path)
    except CPUManagerError as error:
        refusals.append(error)
        return None


def _exclusive(node: Node) -> str:
    """Return the exclusive CPUs of containers, whatever else the checkpoint says."""
    state = readable(node.checkpoint()).state
    return str(CPUSet() if state is None else state.exclusive_cpus())


def _is_down(node: Node, journal: RolloutJournal | None) -> bool:
    """Return whether no kubelet runs once an interrupted change is taken back, for which it is stopped if files were
    changed.

    If none can be started either, a drain would wait for ever, as nobody ends the containers.
    """
    is_changing = journal is not None and journal.phase == CHANGING
    return is_changing or node.installation is None or node.installation.pid is None


def _stays_open(node: Node, found_refusal: str) -> CPUManagerError:
    """Return why an interrupted change cannot come to its end: nothing that is planned brings the kubelet back."""
    return RefusedError(
        "a change of this node was interrupted, and without it the kubelet would not start either: %s" % found_refusal,
        node.tree.path(OPEN),
        "if it is the checkpoint, run the playbook repair; if it is the configuration, correct it, and run again",
        "would_not_start",
    )


def _resets(actions: Iterable[str]) -> bool:
    return not STATE_ACTIONS.isdisjoint(actions)


def _refusal(error: CPUManagerError, journal: RolloutJournal | None) -> dict[str, str]:
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
    start = None
    managers = None
    starts_after: bool | None = False
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
        # A memory manager's state that would be refused is gone by then.
        prediction = with_states(node, starts.planned, planned, memory.kept)
        managers = managers_dict(node, starts.planned, config) if restarts else None
        starts_after = prediction.starts
        findings, unknown = list(prediction.findings), list(prediction.unknown)
        start = _start_of(node, starts.planned, wanted)
        is_found = any(row["subject"] == START for row in answer["drift"])
        refusals += _start_refusals(findings, ", or " + BACK if is_found else "")
        if restarts or is_interrupted:
            try:
                places = any(row["subject"] in _OF_CPUS for row in answer["drift"])
                if places and config is not None and config.policy_name == STATIC:
                    check_reach(node.tree, node.topology.online, config.reserved)
                files = [*planned_files(node, wanted), *node.state_paths]
            except RefusedError as error:
                refusals.append(error)
    return {
        **answer,
        "notes": [
            *answer["notes"],
            *notes,
            *_owner_notes(node, configuration),
            *_restart_notes(node, answer, observed),
            *([] if starts is None else _size_notes(node, checkpoint, starts)),
        ],
        "starts": starts_after,
        "findings": [finding.to_dict() for finding in findings],
        "unknown": [doubt.to_dict() for doubt in unknown],
        "files": files,
        "kubelet": node.kubelet(configuration),
        "elsewhere": node.elsewhere(wanted, configuration),
        "managers": managers,
        "losses": losses,
        "start": start,
    }


def _unreadable(node: Node, answer: Mapping[str, Any]) -> CPUManagerError:
    """Return why the configuration of a node cannot be changed at all."""
    if answer["status"] == NO_KUBELET:
        return node.missing()
    (row,) = answer["drift"]
    return NodeError(row["found"], remedy=row["remedy"], kind=CONFIGURATION)


def planned_files(node: Node, wanted: Mapping[str, object]) -> list[str]:
    """Return the files that a change of settings writes, as paths on the node. Raises RefusedError where it would
    not."""
    sources = read_sources(node)
    plan_files(sources, plan_settings(wanted, node.needed_configuration(), node.minor), wanted, node.minor)
    return [node.tree.node_path(path) for path in touched_files(sources, node.minor)]


# --- a rollback -----------------------------------------------------------------------------------------------


def _rollback_plan(
    node: Node,
    terms: ChangeTerms,
    last: RolloutJournal | None,
    journal: RolloutJournal | None,
    refusals: list[CPUManagerError],
) -> dict[str, Any]:
    before, problem = node.found()
    observed, notes = node.observed(before)
    checkpoint = node.checkpoint()
    starts = None if before is None else predicted_starts(node, {})
    now = report(node.topology, node.machine(), before, checkpoint, {}, observed, problem, starts)
    doubts: Sequence[Unknown] = ()
    if starts is not None and now["found"] is not None:
        memory = memory_plan(node, starts.found)
        now = with_memory_doubt(now, memory)
        doubts = with_states(node, starts.found, checkpoint, memory.kept).unknown
    # The interrupted change is what to go back from. If the kubelet would not start then, one change more is.
    is_broken = now["found"] is None or any(row["subject"] == START for row in now["drift"])
    rollback_of = "" if journal is not None and is_broken else terms.rollback_of
    restored = last_files(node, last, rollback_of, terms.overwrite)
    files = restored.files
    refusals += restored.problems
    plan: dict[str, object] = {
        **now,
        "notes": [
            *now["notes"],
            *notes,
            *restored.notes,
            *_owner_notes(node, before),
            *_restart_notes(node, now, observed),
        ],
        "actions": [],
        "starts": False if now["found_refusal"] else None if doubts else True,
        "findings": [],
        "unknown": [doubt.to_dict() for doubt in doubts],
        "files": [*files, *node.state_paths],
        "kubelet": node.kubelet(before),
        "elsewhere": node.elsewhere({}, before),
        "managers": None,
        "losses": [],
        "back_of": None if journal is not None and is_broken else last.facts.get("rollout", "") if last else "",
        # If nothing is changed, only what was interrupted is taken back.
        "start": None if now["found"] is None else PlannedStart({}),
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
    prediction = with_states(after, starts.planned, planned, memory.kept)
    findings = prediction.findings
    refusals += _start_refusals(findings)
    resets = [action for action in then["actions"] if action in STATE_ACTIONS]
    return {
        **plan,
        "status": DRIFT,
        "checkpoint": then["checkpoint"],
        "cpus": {**now["cpus"], "reserved_wanted": then["cpus"].get("reserved_wanted", "")},
        "drift": [*_restored_rows(now, configuration, before, changed), *_states(then["drift"])],
        "actions": with_restart(resets, RESTORE_CONFIGURATION),
        "starts": prediction.starts,
        "findings": [finding.to_dict() for finding in findings],
        "unknown": [doubt.to_dict() for doubt in prediction.unknown],
        "kubelet": plan["kubelet"] or after.kubelet(configuration),
        "elsewhere": after.elsewhere(found_settings(configuration), configuration),
        "managers": managers_dict(after, starts.planned, config),
        "losses": [] if config is None else _both_losses(after, checkpoint, config, memory),
        "start": PlannedStart({**files, **_start_of(after, starts.planned, {}).files}),
    }


def _restored_rows(
    now: Mapping[str, Any], configuration: Configuration, before: Configuration | None, changed: Iterable[str]
) -> list[dict[str, Any]]:
    """Return what a rollback changes: settings where both configurations can be read, else the files."""
    found = now["found"]
    if found is not None and before is not None:
        rows = differing(found_settings(configuration), found, before)
        if rows:
            return rows
    return [
        *now["drift"],
        *({"subject": path, "wanted": "as before", "found": "changed", "source": path} for path in changed),
    ]


def _states(drift: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    return [dict(row) for row in drift if row["subject"] in ("checkpoint", "memory_state")]


# --- what both have -------------------------------------------------------------------------------------------


def _config(prediction: Prediction) -> CPUManagerConfig | None:
    """Return what the CPU manager would start with after the change; None where it would not start."""
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


def _accepted_checkpoint(checkpoint: bytes | None, config: CPUManagerConfig) -> bytes | None:
    """Return what the checkpoint becomes where the kubelet would refuse it, whatever containers lose."""
    from .._node.checkpoint_plan import plan_valid

    return plan_valid(checkpoint, config, discard=True).new


def _start_of(node: Node, prediction: Prediction, wanted: Mapping[str, object]) -> PlannedStart:
    """Return with which states the kubelet starts, also where it is predicted to refuse something else."""
    checkpoint, config = node.checkpoint(), config_if_certain(prediction)
    planned = checkpoint if config is None else _accepted_checkpoint(checkpoint, config)
    if _is_removed(node):
        planned = None
    repaired = {node.checkpoint_path: planned} if planned != checkpoint else {}
    removed = {node.memory_state_path: None} if memory_plan(node, prediction).changed else {}
    return PlannedStart({**repaired, **removed}, wanted)


def _is_removed(node: Node) -> bool:
    """Return whether the kubelet's unit removes the CPU manager's state before each start."""
    return node.checkpoint_path in removed_states(node)


def refused_start(node: Node, wanted: Mapping[str, object]) -> PlannedStart:
    """Return the start with settings for which a refusal is predicted, which makes plan_change raise."""
    return _start_of(node, predicted_starts(node, wanted).planned, wanted)


def _both_losses(
    node: Node, checkpoint: bytes | None, config: CPUManagerConfig, memory: MemoryPlan
) -> list[CPUManagerError]:
    """Return what containers that run would lose."""
    from .._node.checkpoint_plan import loss_error, plan_absent, plan_valid

    plan = plan_absent(checkpoint) if _is_removed(node) else plan_valid(checkpoint, config)
    errors = [
        loss_error(node.tree.path(node.checkpoint_path), plan),
        memory_loss_error(node.tree.path(node.memory_state_path), memory),
    ]
    return [error for error in errors if error is not None]


def needs_drain(actions: Iterable[str], drift: Iterable[Mapping[str, object]]) -> bool:
    """Return whether pods have to leave the node before its kubelet starts with the change.

    At its start a kubelet admits each running pod again: where the policy, its options, the reservation or the
    topology manager are others, it may refuse pods or give them other CPUs. Where it cannot be read what was set, it
    counts as changed.
    Source: HandlePodAdditions in pkg/kubelet/kubelet.go.
    """
    subjects = [row["subject"] for row in drift]
    may_refuse = {CONFIGURATION, *(name for name, setting in SETTINGS.items() if not setting.is_harmless)}
    return _resets(actions) or not may_refuse.isdisjoint(subjects)


# --- others who keep a node from being changed ----------------------------------------------------------------


def other_owners(
    node: Node, actions: Sequence[str], drift: Iterable[Mapping[str, object]], allowed: Iterable[str]
) -> list[CPUManagerError]:
    """Return why a change with these actions for this drift would make a second owner of this node's CPUs.

    A node that has the static policy beside others already may stay so: that is a note.
    """
    becomes_static = any(row["subject"] == _POLICY and row["wanted"] == _STATIC for row in drift)
    if not becomes_static and RECONCILE not in actions:
        return []
    # Imported here: few changes take it.
    from .._node.owners_found import owners_of

    wanted = owners.KUBELET_STATIC if becomes_static else owners.RECONCILE
    return [*refusals(owners_of(node), wanted, allowed)]


def _owner_notes(node: Node, configuration: Configuration | None) -> list[str]:
    if not node.may_have_owners():
        return []
    # Imported here: hardly any node has others.
    from .._node.owners_found import contradiction_notes

    return contradiction_notes(node, configuration)


def _size_notes(node: Node, checkpoint: bytes | None, starts: Starts) -> list[str]:
    """Return notes on pods that have CPUs now and are too large for what the planned reservation leaves of NUMA
    nodes."""
    checked, values = starts.planned.checked, starts.planned.values
    config, policy = None if checked is None else checked.cpu_manager, values.get("topologyManagerPolicy")
    if (
        checked is None
        or config is None
        or config.policy_name != STATIC
        or policy not in (RESTRICTED, SINGLE_NUMA_NODE)
    ):
        return []
    found = starts.found
    is_as_before = found.checked is not None and found.checked.cpu_manager == config
    state = readable(checkpoint).state
    if state is None or not state.assignments or (is_as_before and found.values.get("topologyManagerPolicy") == policy):
        return []
    # Imported here: most plans change no reservation under which pods have CPUs.
    from ..policy.largest_pod import largest_pods, lost_owners

    sizes = largest_pods(node.machine().topology, config.reserved, checked.options, [policy]).get(policy)
    owners = [] if sizes is None else lost_owners(state.assignments, sizes, values.get("topologyManagerScope") == POD)
    text = (
        "pod %s has %d CPUs of its own, and this node would not admit it again: with the reservation %s, %s admits %s"
    )
    return [text % (owner, cpus, config.reserved, policy, sizes) for owner, cpus in owners]


def _restart_notes(node: Node, answer: Mapping[str, Any], observed: Observed | None) -> list[str]:
    """Return notes on the pods that a start of the kubelet as it is would lose, where it does start."""
    if answer["found"] is None or answer["found_refusal"] or not is_at_risk(node, answer["found"], observed):
        return []
    # Imported here: most nodes have nothing to lose.
    from .._node.restart import restart_notes

    return restart_notes(node)


def running_kubelet(node: Node) -> list[CPUManagerError]:
    """Return why its files cannot be changed while nobody stops it."""
    if node.installation is None or node.installation.pid is None:
        return []
    return [
        RefusedError(
            "the kubelet runs (process %d) and would overwrite its checkpoint" % node.installation.pid,
            remedy="stop it first, or set %s: true" % option("manage_service"),
            kind="kubelet_runs",
        )
    ]


# --- the services that are stopped and started ----------------------------------------------------------------


class Services(NamedTuple):
    """The services that whoever carries out a plan stops and starts; None for those of the node's distribution."""

    kubelet: str | None
    runtime: str | None


def with_service_refusals(report: Mapping[str, Any], node: Node, services: Services) -> dict[str, Any]:
    """Return the whole plan of a node, with the reasons why these services are not to be stopped for it.

    A change that was interrupted is taken back first, and then these are started again, too.
    """
    journal = report["journal"]
    refusals: list[CPUManagerError] = []
    if START_KUBELET in report["actions"] or journal is not None:
        refusals += service_refusals(node.tree, services.kubelet, "service")
    if report[FACT] is not None or (journal is not None and FACT in journal["facts"]):
        refusals += service_refusals(node.tree, services.runtime, "runtime_service")
    return {**report, "refusals": [*report["refusals"], *(refusal.to_row() for refusal in refusals)]}


def service_refusals(tree: Tree, service: str | None, of: str) -> list[CPUManagerError]:
    """Return why this service is not to be stopped for a change of the node.

    service: None for that of the node's distribution. of: the option that has its name. Whoever gives the files of a
    node at another place may run its kubelet by a service of this machine, and has to name that.
    """
    if not tree.live:
        return [] if service is not None and not tree.exists(SAID) else [_foreign(tree)]
    if not service or not has_systemd(tree) or has_service(tree, service):
        return []
    return [
        RefusedError(
            "systemd has no service %s here" % service, option(of), "correct it, or remove it", kind="no_service"
        )
    ]


def _foreign(tree: Tree) -> CPUManagerError:
    return RefusedError(
        "%s is a saved node, and the service would be one of the machine that has its files"
        % tree.path("").rstrip("/"),
        option("manage_service"),
        "remove it: the services of a saved node run elsewhere",
        kind="saved_node",
    )


# --- the container runtime, which is in the same journal ------------------------------------------------------


def with_runtime(report: Mapping[str, Any], node: Node, wanted: WantedRuntime, may_drain: bool) -> dict[str, object]:
    """Return the plan of a rollout with what is wanted of the runtime; `runtime` is None where that is there."""
    plan = {**report, FACT: None}
    if report["status"] == NO_KUBELET:
        return plan
    try:
        change = plan_runtime(_as_it_will_be(node), wanted)
    except CPUManagerError as error:
        return {**plan, "refusals": [*report["refusals"], error.to_row()]}
    if not change.contents:
        return plan
    paths = sorted(change.contents)
    refusals = [error.to_row() for error in unwritable(node.tree, paths)]
    return {
        **plan,
        "status": DRIFT if report["status"] in (CLEAN, NOTHING_WANTED) else report["status"],
        "drift": [*report["drift"], *_rows(node, change, wanted)],
        "actions": with_restart(report["actions"], WRITE_RUNTIME, RESTART_RUNTIME),
        "files": list(dict.fromkeys([*(report["files"] or node.state_paths), *paths])),
        "refusals": [*report["refusals"], *refusals],
        **_drained(report, may_drain),
        FACT: change.to_dict(),
    }


def with_last_runtime(report: Mapping[str, Any], node: Node, may_drain: bool) -> dict[str, Any]:
    """Return the plan of a rollback, with the runtime where its files are put back."""
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
    return {**plan, **_drained(report, may_drain), "actions": in_order(report["actions"], RESTART_RUNTIME), FACT: fact}


def _drained(report: Mapping[str, Any], may_drain: bool) -> dict[str, bool]:
    """Return pods leave the node before its runtime is restarted; a kubelet that is broken would end no containers."""
    drain = report["drain"] or not report["found_refusal"]
    return {"drain": drain, "drains": drain and may_drain}


def _as_it_will_be(node: Node) -> Node:
    """Return the node once a change that was interrupted is taken back."""
    try:
        journal = read_journal(node.tree)
    except CPUManagerError:
        return node  # the plan has it among its refusals
    if journal is None or journal.phase != CHANGING:
        return node
    return node.on(OverlaidTree(node.tree, {path: saved.content for path, saved in journal.files.items()}))


def _rows(node: Node, change: RuntimeChange, wanted: WantedRuntime) -> list[dict[str, object]]:
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


# --- with a trial of the start, and the container runtime -----------------------------------------------------


class TrialTerms(NamedTuple):
    """Whether the node's own kubelet tries the start that is planned."""

    # AUTO, ALWAYS or NEVER, of start_check.py.
    mode: str = NEVER
    # The trial of an earlier plan: it stands where the start is still the same.
    tried: Mapping[str, Any] | None = None


def tried_plan(
    node: Node, wanted: Mapping[str, object], terms: ChangeTerms, runtime: WantedRuntime | None, trial: TrialTerms
) -> dict[str, Any]:
    """Return what is to be done on a node, as plain data; see the module rollout_info.

    wanted: settings. runtime: what is wanted of the container runtime; None for nothing. The refusals that were
    predicted and are none are in node.mistaken afterwards. Raises CPUManagerError where there can be no plan.
    """
    tries = trial.mode != NEVER and node.tree.live
    if tries:
        # Only of what is planned now.
        node.mistaken = frozenset()
    try:
        change = plan_change(node, wanted, terms)
    except RefusedError as error:
        if error.kind != WOULD_NOT_START or not tries:
            raise
        # Imported here: hardly any node is refused what is wanted.
        from .._trial.kubelet_trial import mistaken_by

        start = refused_start(node, wanted)
        node.mistaken = mistaken_by(node, start.wanted, start.files, trial.tried)
        change = plan_change(node, wanted, terms)
    report = _whole(node, change, terms, runtime, trial)
    mistaken = mistaken_in(report["trial"])
    if mistaken <= node.mistaken:
        return report
    node.mistaken = mistaken
    again = plan_change(node, wanted, terms)
    tried = report["trial"] if again.start == change.start else None
    return _whole(node, again, terms, runtime, trial._replace(tried=tried))


def plan_of(node: Node, wanted: Mapping[str, object], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole plan of a node by the arguments PLAN, whose refusals name the services, too. Raises as
    tried_plan()."""
    terms = ChangeTerms(
        parameters["change"],
        parameters["rollback_of"],
        parameters["drain"],
        parameters["discard_assignments"],
        parameters["manage_service"],
        tuple(sorted(check_allowed(parameters["allow_owners"]))),
        parameters["overwrite_edited"],
    )
    runtime = None
    if parameters["runtime_config"]:
        runtime = WantedRuntime(parameters["runtime_config"], version=parameters["runtime_version"])
    report = tried_plan(node, wanted, terms, runtime, TrialTerms(parameters.get("trial", NEVER), parameters["tried"]))
    # What was interrupted is taken back first, and then another plan is made.
    is_final = report["actions"] and report["journal"] is None
    report = {**report, "judged": judged_of(node, report["files"]) if is_final else {}}
    if parameters["check_writable"] and node.tree.refusal is not None and report["actions"]:
        report = {**report, "refusals": [*report["refusals"], node.tree.refusal.to_row()]}
    if parameters["check_services"] and parameters["manage_service"]:
        return with_service_refusals(report, node, Services(parameters["service"], parameters["runtime_service"]))
    return report


def _whole(
    node: Node, change: PlannedChange, terms: ChangeTerms, runtime: WantedRuntime | None, trial: TrialTerms
) -> dict[str, Any]:
    """Return the plan, with the container runtime's part in it, and what the node's own kubelet says of the start."""
    report, start = change.report, change.start
    if terms.change == ROLLBACK and report["last"] is not None and FACT in report["last"]["facts"]:
        report = with_last_runtime(report, node, terms.drain)
    elif terms.change != ROLLBACK and runtime is not None:
        report = with_runtime(report, node, runtime, terms.drain)
    else:
        report = {**report, FACT: None}
    # A refusal of what is there keeps the node from being changed, too.
    if trial.mode == NEVER or start is None or not (starts_kubelet(report) or report["found_refusal"]):
        return {**report, "trial": None}
    # Imported here: most nodes need no change.
    from .._trial.kubelet_trial import with_trial

    return with_trial(report, node, start.wanted, start.files, trial.mode == ALWAYS, trial.tried)


# --- another version of Kubernetes ----------------------------------------------------------------------------


def upgrade_report(node: Node, minor: int) -> dict[str, Any]:
    """Return the way of this node to Kubernetes 1.`minor` and back, as plain data; see the module rollout_info for its
    shape.

    Raises NodeError where there is no kubelet.
    """
    upgraded = node.of_version(minor)
    there = predict_start(upgraded)
    # One note for both ways, where they say the same.
    notes = [*node.version_notes(), *version_notes(minor)]
    content, lost = _written_by(upgraded, there)
    if content is None:
        content = node.checkpoint()
    today = predict_configuration(node)
    notes += [*lost, *_notes_of(content, today)]
    back = with_states(node, today, content, stored_state(node.tree, node.memory_state_path))
    notes += _upgrade_losses(upgraded, there, {}) + _upgrade_losses(node, back, {node.checkpoint_path: content})
    return {
        "kubelet_version": "1.%d" % minor,
        **_said(there),
        "back": {"kubelet_version": "1.%d" % node.minor, **_said(back)},
        "notes": list(dict.fromkeys(notes)),
    }


def _upgrade_losses(node: Node, prediction: Prediction, files: Mapping[str, bytes | None]) -> list[str]:
    """Return a note on the pods that run and that the start of this version would lose; none where it does not
    start."""
    if prediction.starts is False:
        return []
    # Imported here: hardly anybody asks of another version.
    from .._node.restart import restart_notes

    return restart_notes(node, files, "the start of the kubelet 1.%d" % node.minor)


def _written_by(upgraded: Node, prediction: Prediction) -> tuple[bytes | None, list[str]]:
    """Return the checkpoint as that kubelet writes it, where it starts with the one that is there; and what is lost."""
    # Imported here: hardly anybody asks of another version.
    from .._node.checkpoint_plan import format_notes, plan_format

    old, config = upgraded.checkpoint(), _checked_config(prediction)
    if config is None or prediction.starts is False:
        # Once what it is refused for is mended, the file is next.
        return None, format_notes(old, config or CPUManagerConfig(STATIC, CPUSet(), minor=upgraded.minor))
    if old is None:
        return None, []
    try:
        plan = plan_format(old, config)
    except CPUManagerError as error:
        return None, [str(error)]
    return plan.new, [*format_notes(old, config), *plan.notes]


def _notes_of(content: bytes | None, prediction: Prediction) -> list[str]:
    # Imported here: hardly anybody asks of another version.
    from .._node.checkpoint_plan import format_notes

    config = _checked_config(prediction)
    return [] if config is None else format_notes(content, config)


def _checked_config(prediction: Prediction) -> CPUManagerConfig | None:
    """Return what the CPU manager of that kubelet would start with, refused or not; None where it does not come to
    it."""
    return None if prediction.checked is None else prediction.checked.cpu_manager


def _said(prediction: Prediction) -> dict[str, object]:
    return {
        "starts": prediction.starts,
        "findings": [finding.to_dict() for finding in prediction.findings],
        "unknown": [doubt.to_dict() for doubt in prediction.unknown],
    }

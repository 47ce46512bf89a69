# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of one node, step by step, and back again where a step fails. It needs nobody but the node.

Each step is noted in the journal before it is done. What has the same name is decided in change_steps.py.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, Callable, Mapping, Sequence

from .._base.errors import MALFORMED, CPUManagerError, NodeError, RefusedError
from .._base.files import FileChange, check_changes, make_changes
from .._base.journal_file import LAST
from .._base.tree import OverlaidTree, Tree
from .._containers.crictl import find_crictl
from .._containers.pods import container_ids, pods_from_manifests, running_pods
from .._host.service_control import RESTART, control
from .._host.service_control import START as START_SERVICE
from .._host.service_control import STOP as STOP_SERVICE
from .._kubelet.placement import file_changes, plan_files
from .._kubelet.settings import plan_settings
from .._node.checkpoint_plan import plan_valid
from .._node.container_cpus import FAILED
from .._node.drift import START_KUBELET
from .._node.module import node_of
from .._node.node import Node
from .._node.runtime import PRESENT, WantedRuntime, plan_runtime
from .._node.start_check import Managers, memory_plan_with, read_sources
from .._node.state_changes import States, assumed_config, check_stopped, planned_managers
from .._node.wanted_settings import wanted_settings
from .._reconcile.reconcile import reconcile_pods
from .._rollout.health import HealthWatch, watched
from .._rollout.journal_steps import JournalStep, note
from .._rollout.judged import STATES, judged_of, managers_of
from .._rollout.recovery import last_files, recovery_of
from .._rollout.rollout_journal import (
    ANOTHER_RUN,
    CHANGED,
    CHANGING,
    DRAINING,
    STOPPING,
    RolloutJournal,
    begin_writing,
    ended_error,
    is_state,
    read_journal,
    refuse_another_run,
    with_what_is_aside,
)
from .._rollout.rollout_plan import FACT, ROLLBACK, ROLLOUT, plan_of
from .._saved.files_of_kubelet import shown_difference
from . import change_steps as steps

# The kind of the error where the node is no longer as it was judged.
NODE_CHANGED = "node_changed"
# What the call does; see the module kubelet_change.
CHANGE, UNDO, BEGIN_DRAIN, END_DRAIN = "change", "undo", "begin_drain", "end_drain"

# In the journal of a rollback.
_KIND = "change"
# Attempts to write cpusets, and seconds between them: a kubelet that has just started may write its checkpoint.
_ATTEMPTS, _PAUSE = 4, 5.0

# Told what the change is at: the name of each step as it begins.
Tell = Callable[[str], None]


class NodeChange:
    """One call for one node. given: the arguments of the module kubelet_change."""

    def __init__(self, tree: Tree, given: Mapping[str, Any], acts: bool, tell: Tell = lambda _step: None) -> None:
        self.tree, self.given, self.acts, self._tell = tree, given, acts, tell
        self.run: str = given["run"]
        self.shown: Mapping[str, Any] = given["plan"] or {}
        self.is_back = given["change"] == ROLLBACK
        self.is_drained = bool(given["drained"])
        kubelet = self.shown.get("kubelet") or {}
        self.service = str(given["service"] or kubelet.get("service") or "kubelet") if given["manage_service"] else ""
        self._log_file = str(given["log_file"] or kubelet.get("log_file") or "")
        # Set in the change.
        self._wanted: dict[str, Any] = {}
        self._managers: Managers | None = None
        self._files: Sequence[str] = ()
        # The step back that it is at.
        self._at = ""
        self._done: list[dict[str, Any]] = []
        self._diff: list[Sequence[str]] = []
        self._more: dict[str, Any] = {"backup_files": {}, "notes": []}

    # --- the calls ----------------------------------------------------------------------------------------

    def carry_out(self) -> dict[str, Any]:
        """Do what the call says; see the module's RETURN for the result."""
        calls = {CHANGE: self._change, UNDO: self._undo, BEGIN_DRAIN: self._begin_drain, END_DRAIN: self._end_drain}
        return self._answered(calls[self.given["step"]])

    def go_on(self, begun: Sequence[str]) -> dict[str, Any]:
        """Bring a call to its end whose process died. begun: the names of its steps up to there."""
        if self.given["step"] == UNDO:
            return self.carry_out()
        if steps.goes_on(begun):
            journal = read_journal(self.tree)
            is_open = journal is not None and journal.run == self.run
            return self._answered(lambda: self._to_the_end([*([steps.END] if is_open else []), *self._cpusets()]))
        died = NodeError("the process that carried it out ended", kind="died")
        return self._answered(lambda: self._failed(begun[-1] if begun else "", died))

    def give_up(self) -> dict[str, Any]:
        """Start the kubelet with the files that are there, as the process dies again and again; a run takes it back."""
        died = NodeError("the process that carried it out was ended again and again", kind="died")

        def start() -> None:
            self._start_anyhow()
            outcome = "the kubelet was started with the files that are there; run the role again, which takes them back"
            raise _ChangeError(self._failure("", died, undone=False, outcome=outcome))

        return self._answered(start)

    def _answered(self, act: Callable[[], None]) -> dict[str, Any]:
        failure: dict[str, Any] = {}
        try:
            act()
        except _ChangeError as error:
            failure = error.result
        except (CPUManagerError, OSError) as error:
            outcome = "nothing more was done here" if getattr(error, "kind", "") == ANOTHER_RUN else ""
            failure = self._failure("", error, undone=True, outcome=outcome)
        changed = any(row["changed"] for row in self._done)
        result = {"changed": changed, "steps": self._done, "diff": self._diff, "journal": self._journal_now()}
        return {**result, **self._more, "failed": bool(failure), **failure}

    def _journal_now(self) -> dict[str, Any] | None:
        with suppress(CPUManagerError):
            journal = read_journal(self.tree)
            return None if journal is None else journal.to_dict()
        return None

    def _note(self, state: str, **more: Any) -> Any:
        step = JournalStep(state, self.run, backup_keep=self.given["backup_keep"], **more)
        return note(self.tree, step, not self.acts)

    def _begin_drain(self) -> None:
        self._did("Write down that the node is about to be drained", self._note(DRAINING, facts=self.given["facts"]))

    def _end_drain(self) -> None:
        """End the change or the drain, as the node is back in the cluster."""
        journal = read_journal(self.tree)
        if journal is None:
            raise ended_error(self.tree, self.run)
        refuse_another_run(self.tree, journal, self.run)
        self._step(steps.END, lambda: self._end(journal))

    def _did(self, name: str, noted: Any) -> None:
        self._done.append({"name": name, "changed": bool(noted.changed)})

    # --- the change ---------------------------------------------------------------------------------------

    def _change(self) -> None:
        now = self._look()
        if now is None:
            return
        self._files = now["files"]
        self._to_the_end(steps.steps_of(now, self.given["change"]))

    def _look(self) -> dict[str, Any] | None:
        """Return the plan of the node as it is now, which has to be the one that was shown; None for nothing to do.

        It is the one that was shown where all is as it was judged. Else the node is planned once more.
        """
        journal = read_journal(self.tree)
        refuse_another_run(self.tree, journal, self.run)
        if self.acts and self.is_drained and journal is None:
            raise ended_error(self.tree, self.run)
        node = node_of(self.tree, self.given)
        self._wanted = self._settings(node)
        if self._is_as_judged(node):
            self._managers, now = managers_of(self.shown.get("managers")), dict(self.shown)
        else:
            now = plan_of(node, self._wanted, self.given)
        if START_KUBELET in self.shown["actions"] and START_KUBELET not in now["actions"] and not now["refusals"]:
            return now if now["actions"] else None
        differing = list(steps.differences(self.shown, now, self.is_drained))
        if differing:
            raise RefusedError(
                "it is no longer as it was planned for: %s; nothing was changed" % "; ".join(differing),
                remedy="run again, which shows the new plan",
                kind=NODE_CHANGED,
            )
        return now

    def _is_as_judged(self, node: Node) -> bool:
        """Return whether all is as the plan was made for. Pods that left a node in its drain have changed its
        states."""
        judged, now = (dict(each or {}) for each in (self.shown.get("judged"), judged_of(node, self.shown["files"])))
        if self.is_drained:
            judged.pop(STATES, None)
            now.pop(STATES, None)
        return bool(now) and judged == now

    def _settings(self, node: Node) -> dict[str, Any]:
        return wanted_settings(node, self.given, needs_kubelet=True) if self.given["change"] == ROLLOUT else {}

    def _cpusets(self) -> list[str]:
        return [steps.CPUSETS] if steps.CPUSETS in steps.steps_of(self.shown, self.given["change"]) else []

    def _to_the_end(self, names: Sequence[str]) -> None:
        acts = {
            steps.STOP: self._stop,
            steps.SAVE: self._save,
            steps.RESTORE: self._restore_last,
            steps.CONFIGURE: self._configure,
            steps.STATES: self._write_states,
            steps.WRITE_RUNTIME: self._write_runtime,
            steps.RESTART_RUNTIME: self._restart_runtime,
            steps.START: self._start,
            steps.END: self._end_or_wait,
            steps.CPUSETS: self._write_cpusets,
        }
        for name in names:
            try:
                self._step(name, acts[name])
            # Whatever it is, the kubelet has to run again.
            except Exception as error:
                if name == steps.CPUSETS:
                    self._more["left_over"] = self._told(name, error)
                    if names == [name]:
                        raise
                    continue
                self._failed(name, error)

    def _step(self, name: str, act: Callable[[], bool]) -> None:
        self._tell(name)
        changed = act()
        self._done.append({"name": name, "changed": changed})

    def _stop(self) -> bool:
        facts = {name: value for name, value in (("rollout", self.given["rollout"]), ("tried", self._tried())) if value}
        if self.is_back:
            facts[_KIND] = ROLLBACK
        begin = not self.is_drained
        changed = bool(self._note(STOPPING, begin=begin, facts=facts).changed)
        if self.acts and self.service:
            changed = control(self.service, STOP_SERVICE) or changed
        return changed

    def _tried(self) -> str:
        trial = self.shown.get("trial") or {}
        return str(trial.get("told") or "")

    def _save(self) -> bool:
        node = self._as_it_will_be(node_of(self.tree, self.given))
        states = self._states(node)
        aside = [node.checkpoint_path] if states.checkpoint.changed else []
        aside += [node.memory_state_path] if states.memory is not None and states.memory.changed else []
        aside = [path for path in aside if path in self._files]
        runtime = self.shown.get("runtime")
        facts = {} if runtime is None else {FACT: runtime}
        return bool(self._note(CHANGING, files=self._files, aside=aside, facts=facts).changed)

    def _as_it_will_be(self, node: Node) -> Node:
        """Return the node with the configuration that a rollback puts back."""
        if not self.is_back:
            return node
        last = read_journal(self.tree, LAST)
        back = last_files(node, last, self.given["rollback_of"], self.given["overwrite_edited"])
        return node.on(OverlaidTree(node.tree, back.files))

    def _restore_last(self) -> bool:
        files = steps.configuration_of(self._files)
        noted = self._note("restored", source="last", files=files, overwrite_edited=self.given["overwrite_edited"])
        self._restored(noted)
        return bool(noted.restored)

    def _restored(self, noted: Any) -> None:
        self._diff += noted.diff
        self._more["backup_files"].update(noted.backup_files)
        self._more["notes"] += map(str, noted.notes)

    def _configure(self) -> bool:
        node = node_of(self.tree, self.given)
        return self._write(node, configuration_changes(node, self._wanted), backup=True)

    def _write(self, node: Node, changes: Sequence[FileChange], backup: bool) -> bool:
        """Note what is about to be written, and write it."""
        keep = self.given["backup_keep"]
        check_changes(changes, backup, keep)
        if not changes:
            return False
        written = {self.tree.node_path(change.path): change.after for change in changes}
        for path, change in zip(written, changes):
            if not is_state(path):
                self._diff.append(shown_difference(node, path, change.before, change.after))
        begin_writing(self.tree, self.run, written, not self.acts)
        if self.acts:
            self._more["backup_files"].update(make_changes(changes, backup, keep))
        return True

    def _states(self, node: Node) -> States:
        """Return what becomes of the states of the kubelet's managers with the configuration as it will be.

        Raises RefusedError where containers would lose what they have, and it is not allowed.
        """
        if self._managers is None:
            self._managers = planned_managers(node, self._wanted)
        config, _notes = assumed_config(node, self._managers.cpu)
        pods = self.given["pods"]
        uids = None if pods is None else [pod.uid for pod in running_pods(pods_from_manifests(pods))]
        discard = self.given["discard_assignments"] or self.is_drained
        checkpoint = plan_valid(node.checkpoint(), config, uids, container_ids(()), discard)
        states = States(checkpoint, memory_plan_with(node, self._managers.memory))
        if states.changed and not discard:
            states.check_losses(node)
        return states

    def _write_states(self) -> bool:
        # The change may have put them aside until the configuration is there: they are judged as they were.
        node = node_of(with_what_is_aside(self.tree, self.run), self.given)
        states = self._states(node if self.acts else self._as_it_will_be(node))
        # As the kubelet had them, not as the change has put them aside.
        if states.checkpoint.changed:
            judged = (states.checkpoint.before.to_text(), states.checkpoint.after.to_text())
            self._diff.append((self.tree.path(node.checkpoint_path), *judged))
        self._diff += states.memory_difference(node)
        changes = states.file_changes(self.tree, node)
        if changes and not self.service:
            check_stopped(self.tree, "manage_service")
        written = self._write(node, changes, backup=True)
        return written or states.changed

    def _write_runtime(self) -> bool:
        node = node_of(self.tree, self.given)
        wanted = WantedRuntime(self.given["runtime_config"] or PRESENT, version=self.given["runtime_version"])
        return self._write(node, plan_runtime(node, wanted).file_changes(self.tree), backup=False)

    def _restart_runtime(self) -> bool:
        runtime = self.shown.get("runtime") or {}
        service = self._runtime_service(runtime)
        if not (self.acts and service):
            return bool(service)
        control(service, RESTART)
        socket = str((runtime.get("found") or {}).get("nri_socket") or "")
        if self.given["runtime_config"] == PRESENT and socket:
            deadline = time.monotonic() + self.given["timeout"]
            while not os.path.exists(self.tree.path(socket)):
                if time.monotonic() > deadline:
                    raise NodeError("NRI does not listen at %s" % socket, kind="service")
                time.sleep(0.2)
        return True

    def _runtime_service(self, runtime: Any) -> str:
        given = self.given["runtime_service"]
        of_node = runtime.get("service") if isinstance(runtime, dict) else ""
        return str((of_node or "") if given is None else given) if self.service else ""

    def _start(self) -> bool:
        if not (self.acts and self.service):
            return bool(self.service)
        # It is early where the watch begins: what the kubelet says at its very start counts, too.
        control(self.service, START_SERVICE)
        watch = HealthWatch(node_of(self.tree, self.given), self.given["seconds"], self.given["timeout"])
        log_file = self._log_file
        watched(watch, self.service, self.tree.path(log_file) if log_file else "")
        return True

    def _end_or_wait(self) -> bool:
        """End the change; of a node that was drained, note that it only has to come back into the cluster."""
        if self.is_drained:
            return bool(self._note(CHANGED).changed)
        return self._end(read_journal(self.tree))

    def _end(self, journal: RolloutJournal | None) -> bool:
        """End what this run has brought to its end; of a node that was drained and not changed, its drain."""
        facts = {} if journal is None else journal.facts
        is_drain_alone = journal is not None and journal.phase == DRAINING
        state = "absent" if is_drain_alone else "undone" if facts.get(_KIND) == ROLLBACK else "done"
        files = steps.configuration_of(journal.files if journal is not None else self._files)
        # In check mode nothing has begun what would be ended.
        return bool(self._note(state, files=files).changed) or not self.acts

    def _write_cpusets(self) -> bool:
        node = node_of(self.tree, self.given)
        node.check_seen()
        runtime = find_crictl(self.tree, node.runtime_endpoint(node.configuration()))
        changed = False
        for attempt in range(_ATTEMPTS):
            answer = reconcile_pods(node, runtime, self.acts, self.given["allow_owners"])
            changed = answer.changed or changed
            failed = [row for row in answer.rows if row.result == FAILED]
            if not failed or not self.acts:
                break
            if attempt < _ATTEMPTS - 1:
                time.sleep(_PAUSE)
        self._more["reconcile"] = answer.to_dict()
        self._diff.append(("cpusets of containers", answer.before(), answer.after()))
        if failed and self.acts:
            raise NodeError("%d containers do not have their CPUs: %s" % (len(failed), failed[0].why), kind="cpusets")
        return changed

    # --- the way back -------------------------------------------------------------------------------------

    def _failed(self, name: str, error: Exception) -> None:
        """Take back what was done, and raise what failed."""
        kind, obstacle = getattr(error, "kind", ""), None
        if not self.acts:
            raise _ChangeError(self._failure(name, error, undone=False, outcome="nothing was changed")) from error
        if kind != ANOTHER_RUN:
            try:
                self._take_back()
            except Exception as failure:  # noqa: BLE001, as above
                obstacle = failure
                self._start_anyhow()
        journal = self._journal_now()
        undone = obstacle is None and (journal is None or journal["phase"] == DRAINING)
        raise _ChangeError(self._failure(name, error, undone, self._outcome(kind, obstacle))) from error

    def _undo(self) -> None:
        """Take back a change that was interrupted, or end it where it was made; take it over first."""
        journal = read_journal(self.tree)
        if journal is None:
            return
        if steps.is_made(journal.phase, journal.run == self.run):
            self._did("Take the change over", self._note("taken"))
            self._step(steps.START_BACK, self._start)
            return
        if journal.run != self.run:
            self._did("Take the change over", self._note("taken"))
        if not self.acts:
            return
        try:
            self._take_back()
        except Exception as error:
            self._start_anyhow()
            result = self._failure(self._at, error, undone=False, outcome="")
            raise _ChangeError(result) from error

    def _take_back(self) -> None:
        """Undo by the journal. Raises what is in the way."""
        self._at = ""
        journal = read_journal(self.tree)
        if journal is None:
            return
        refuse_another_run(self.tree, journal, self.run)
        found_refusal = str(self.shown.get("found_refusal") or "")
        # With the files of before, no kubelet starts. The journal stays open, so that the next run goes on from there.
        # During a drain the kubelet still runs, whatever its files are.
        revives = not found_refusal or journal.phase == DRAINING
        back = journal.steps_back()
        if "stop_kubelet" in back and self.service:
            self._back(steps.STOP_AGAIN, lambda: control(self.service, STOP_SERVICE))
        if "restore_files" in back:
            self._back(steps.RESTORE_FILES, lambda: self._restore(journal))
        service = self._runtime_service(journal.facts.get(FACT)) if "restart_runtime" in back else ""
        if service:
            self._back(steps.RESTART_RUNTIME_BACK, lambda: control(service, RESTART))
        if not revives:
            return
        # In each phase: before it was stopped by this change, it may have ended by itself.
        self._back(steps.START_BACK, self._start)
        self._back(steps.END_BACK, lambda: self._end_back(journal))

    def _back(self, name: str, act: Callable[[], bool]) -> None:
        self._at = name
        self._step(name, act)

    def _restore(self, journal: RolloutJournal) -> bool:
        """Restore the files. Containers that came meanwhile keep their CPUs where that is possible."""
        files: list[str] | None = None
        with suppress(CPUManagerError, *MALFORMED):
            whole = recovery_of(
                node_of(self.tree, self.given), journal._replace(phase=CHANGING), self.given["overwrite_edited"]
            )
            files = sorted(whole.files)
        noted = self._note("restored", files=files, overwrite_edited=self.given["overwrite_edited"])
        self._restored(noted)
        return bool(noted.restored)

    def _end_back(self, journal: RolloutJournal) -> bool:
        """Forget the change; of a node that was drained, all but that it has to come back into the cluster."""
        state = "taken_back" if self.is_back else "absent"
        return bool(self._note(state, keeps_drain="node" in journal.facts).changed)

    def _start_anyhow(self) -> None:
        """Start the kubelet with the files that are there: at no moment are these files with which it cannot start."""
        with suppress(Exception):
            if self.service and self._at != steps.START_BACK:
                control(self.service, START_SERVICE)

    # --- what is said -------------------------------------------------------------------------------------

    def _told(self, name: str, error: Exception) -> str:
        said = str(error) if isinstance(error, CPUManagerError) else "%s: %s" % (type(error).__name__, error)
        return "%s: %s" % (name, said.strip()) if name else said.strip()

    def _failure(self, name: str, error: Exception, undone: bool, outcome: str) -> dict[str, Any]:
        problem = self._told(name, error)
        failure = (error if isinstance(error, CPUManagerError) else CPUManagerError(str(error))).to_dict()
        msg = "%s; %s" % (problem, outcome) if outcome else problem
        return {"msg": msg, "problem": problem, "outcome": outcome, "undone": undone, "failure": failure}

    def _outcome(self, kind: str, obstacle: Exception | None) -> str:
        """Return what became of a node whose change failed."""
        found_refusal = str(self.shown.get("found_refusal") or "")
        if ANOTHER_RUN in (kind, getattr(obstacle, "kind", "")):
            return "nothing more was done here"
        if obstacle is not None:
            said = "the change could not be taken back as a whole, run the role again: %s"
            outcome = said % self._told(self._at, obstacle)
        elif found_refusal:
            outcome = "the files are as they were, and the kubelet would not start with them: " + found_refusal
        else:
            return "the node is as it was"
        journal = None
        with suppress(CPUManagerError):
            journal = read_journal(self.tree)
        if journal is not None and "node" in journal.facts:
            outcome += "; the node %s of the cluster may still be cordoned" % journal.facts["node"]
        return outcome


def configuration_changes(node: Node, wanted: Mapping[str, object]) -> list[FileChange]:
    """Return what brings the kubelet's configuration to what is wanted. Raises CPUManagerError."""
    plan = plan_settings(wanted, node.needed_configuration(), node.minor)
    return file_changes(plan_files(read_sources(node), plan, wanted, node.minor))


class _ChangeError(Exception):
    """A call failed; `result` is what it answers."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result

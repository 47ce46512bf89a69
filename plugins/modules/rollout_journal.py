#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_journal
short_description: Save on a node the files that a change of its kubelet is about to change
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Writes down, on the node itself, how far a change of its kubelet has come, and saves the files that the change is
    about to touch, so that a change that fails or is interrupted can be undone byte for byte.
  - The journal is the file C(/var/lib/kubenode-cpu-manager/change.json), and C(last-change.json) beside it after the
    change is complete. Each is replaced atomically.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - V(read) changes nothing.
      - V(taken) assigns the change in progress to O(run). The run that began it can no longer continue it.
      - V(draining) begins a journal. The node is about to be cordoned and drained.
      - V(stopping) records that the kubelet is about to be stopped.
      - V(changing) saves O(files). They are about to be changed. Then it removes the files in O(aside).
      - V(restored) restores the saved files, and removes those that did not exist. Afterwards the phase of the journal
        is V(stopping). Without a journal nothing is done.
      - V(done) ends the change, and keeps the journal as the last one, if one of O(files) is not as it was saved.
      - V(undone) ends a rollback of the last change, and removes both journals. If the last change was of a rollout, a
        note that it was taken back stays.
      - V(taken_back) ends a change that a rollback has taken back, and removes the journal. If the change was of a
        rollout, the last journal says that it was taken back.
      - V(absent) ends the change, and removes the journal.
    type: str
    choices: [read, taken, draining, stopping, changing, restored, done, undone, taken_back, absent]
    required: true
  run:
    description:
      - The name of the run that calls the module. The journal of a change contains the run that began it. Other runs
        are refused, except with V(taken) in O(state), so that two runs never change one node in turns.
      - Without it, there is no such check, for use by an operator.
    type: str
    default: ''
  begin:
    description:
      - Whether O(state=stopping) may begin a change. False where V(draining) has begun it.
    type: bool
    default: true
  files:
    description:
      - Absolute paths on the node of the files to save; with V(restored), of those to restore, with V(open) in
        O(source) all that are saved by default; with V(done), of those of which a change counts, each by default.
    type: list
    elements: path
  aside:
    description:
      - With V(changing) in O(state), those of O(files) that are removed until the configuration is written, because the
        kubelet would refuse them with it. They are the states of its managers. A kubelet that is started meanwhile
        makes new ones. M(kubenode.cpu_manager.checkpoint) with the same O(run) then repairs what was there, or puts it
        back.
    type: list
    elements: path
    default: []
  aside_for:
    description:
      - With V(changing) in O(state), the arguments of M(kubenode.cpu_manager.rollout_info), which is called before.
        What it returns in C(resets) is O(aside).
    type: dict
  stopping:
    description:
      - With V(changing) in O(state), the step V(stopping), which comes before, with its own O(begin) and O(facts). The
        service that is named in C(service) is stopped as soon as that is written down.
    type: dict
  restores:
    description:
      - With V(changing) in O(state), the files that are then restored from the journal of the last complete change, as
        with V(restored) and V(last) in O(source).
    type: list
    elements: path
  overwrite_edited:
    description:
      - With V(restored) in O(state), what happens to a file that others have changed since the change wrote it. In a
        configuration file of the kubelet, only what the change made of it is undone, and everything else is kept. Where
        that cannot be done, the module fails, and with V(true) the file is replaced as a whole.
      - Whatever somebody else may have written is kept as a backup beside the file; for configuration files of the
        container runtime, beside the journal.
    type: bool
    default: false
  backup_keep:
    description:
      - With V(restored) in O(state) and with O(aside), how many backups of a file stay, the new one among them. V(0)
        keeps all of them.
    type: int
    default: 3
  facts:
    description:
      - What is to be remembered with the change, such as whether the node was cordoned before.
    type: dict
    default: {}
  source:
    description:
      - With V(read) and V(restored), which journal. V(open) is that of the change in progress, and V(last) that of the
        last complete change, of which only the O(files) are restored.
    type: str
    choices: [open, last]
    default: open
seealso:
  - module: kubenode.cpu_manager.rollout_info
"""

EXAMPLES = r"""
- name: Save the files that are about to be changed
  kubenode.cpu_manager.rollout_journal:
    state: changing
    files:
      - /var/lib/kubelet/config.yaml
      - /var/lib/kubelet/cpu_manager_state

- name: Put them back
  kubenode.cpu_manager.rollout_journal:
    state: restored
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
journal:
  description: The journal afterwards. None if there is none.
  returned: success
  type: dict
  contains:
    phase:
      description: C(draining), C(stopping) or C(changing).
      type: str
      sample: changing
    files:
      description: The files that are saved in it.
      type: list
      elements: str
      sample: [/var/lib/kubelet/config.yaml, /var/lib/kubelet/cpu_manager_state]
    facts:
      description: What was saved with O(facts).
      type: dict
      sample: {"cordoned": false}
    run:
      description: The name of the run that makes the change.
      type: str
      sample: "2026-11-22T09:30:00.123456"
    drain_seconds:
      description:
        - With V(last) in O(source), how many seconds passed from the drain of the node until it was back. Not there for
          a change without a drain, one that was interrupted, and one of an older version.
      type: int
      sample: 240
    steps_back:
      description: What leads back from there, in this order.
      type: list
      elements: str
      sample: [stop_kubelet, restore_files, start_kubelet]
restored:
  description: The files that were restored or removed.
  returned: when O(state=restored), or with O(restores)
  type: list
  elements: str
  sample: [/var/lib/kubelet/config.yaml]
backup_files:
  description: By the paths of files that were restored, the backups of what was there.
  returned: when O(state=restored), or with O(restores)
  type: dict
  sample: {"/var/lib/kubelet/config.yaml": "/var/lib/kubelet/config.yaml.20261121T221530Z~"}
notes:
  description: What others have written since the change, and how it is kept.
  returned: when O(state=restored), or with O(restores)
  type: list
  elements: str
  sample: []
"""

import time
from typing import Any, Mapping, Sequence

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import RefusedError
from ..module_utils._base.journal_file import LAST, OPEN
from ..module_utils._base.tree import Tree
from ..module_utils._rollout.rollout_journal import (
    CHANGING,
    DRAINING,
    RUN,
    STEPS_BACK,
    STOPPING,
    FileBack,
    Judged,
    RolloutJournal,
    begin_writing,
    changed_files,
    ended_error,
    files_back,
    files_to_write,
    is_state,
    judged_journal,
    put_aside,
    read_journal,
    refuse_another_run,
    remove_journal,
    restore,
    save_files,
    write_journal,
)

JOURNALS = {"open": OPEN, "last": LAST}
ENDS = ("done", "undone", "taken_back", "absent")


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    state, judged = parameters["state"], judged_journal(tree)
    before = judged.journal
    result: dict[str, Any] = {}
    diff: list[dict[str, str]] = []
    if parameters["run"]:
        check_step(tree, before, parameters, check_mode)
    if state == "restored":
        result, diff = restored(tree, before, parameters, check_mode)
        after = before
        if before is not None and before.phase == CHANGING and parameters["source"] == "open":
            after = RolloutJournal(STOPPING, {}, before.facts, before.run, before.written and {})
    elif state == "read":
        before = after = read_journal(tree, JOURNALS[parameters["source"]])
    elif state == "taken":
        # It was not at work all the time since it began.
        after = None if before is None else before._replace(run=parameters["run"], began=None)
    elif state in ENDS:
        after = None
    else:
        after = next_journal(tree, before, parameters)
    changed = after != before or bool(result.get("restored"))
    if not check_mode:
        if state in ENDS:
            end(tree, judged, parameters)
        elif after is not None and after != before:
            write_journal(tree, after, OPEN, judged)
            put_aside(tree, parameters["aside"] if state == CHANGING else (), parameters["backup_keep"])
    result["journal"] = None if after is None else {**after.to_dict(), "steps_back": after.steps_back()}
    if state != "restored":
        diff = [difference(tree.path(OPEN), text_of(before), text_of(after))]
    return Outcome(result, changed, diff)


def restored(
    tree: Tree, before: RolloutJournal | None, parameters: Parameters, check_mode: bool
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Take a change back; give what was done, and what that changes in the files.

    Raises RefusedError, before anything is written, for a file that others have changed since, where that is not kept.
    """
    source = journal_to_restore(tree, before, parameters)
    backs = {} if source is None else files_back(tree, source, overwrite=parameters["overwrite_edited"])
    for back in backs.values():
        if back.problem is not None:
            raise back.problem
    paths = files_to_write(tree, backs)
    diff = [restored_difference(tree, path, backs[path]) for path in paths]
    backups = put_back(tree, source, backs, parameters) if source is not None and not check_mode else {}
    notes = [back.note for back in backs.values() if back.note]
    return {"restored": paths, "backup_files": backups, "notes": notes}, diff


def put_back(
    tree: Tree, source: RolloutJournal, backs: Mapping[str, FileBack], parameters: Parameters
) -> dict[str, str]:
    """Make the files what they are to become; give the backups, as modules return them."""
    runtime = source.facts.get("runtime")
    files = runtime.get("files") if isinstance(runtime, dict) else None
    beside_journal = files if isinstance(files, list) else ()
    if parameters["source"] == "last":
        # If this run is interrupted, what it wrote is its own. As after each change, the old file stays beside the new.
        written = {path: backs[path].content for path in files_to_write(tree, backs)}
        begin_writing(tree, parameters["run"], written, check_mode=False)
        backs = {path: back._replace(backup=back.backup or path not in beside_journal) for path, back in backs.items()}
    return restore(tree, backs, parameters["backup_keep"], beside_journal)


def restored_difference(tree: Tree, path: str, back: FileBack) -> dict[str, str]:
    """What putting a file back changes in it."""
    before, after = ((content or b"").decode("utf-8", "replace") for content in (back.found, back.content))
    return difference(tree.path(path), before, after)


def check_step(tree: Tree, journal: RolloutJournal | None, parameters: Parameters, check_mode: bool) -> None:
    """Raises RefusedError where another run is at a change of this node, or has ended the one of this run."""
    state, source, run = parameters["state"], parameters["source"], parameters["run"]
    if state == "taken" or (state, source) == ("read", "last"):
        return
    refuse_another_run(tree, journal, run)
    # In check mode no step has written what the next one would find.
    if check_mode:
        return
    goes_on = state in (CHANGING, "done", "undone") or (state, source) == ("restored", "last")
    if journal is None and (goes_on or (state == STOPPING and not parameters["begin"])):
        raise ended_error(tree, run)


def end(tree: Tree, judged: Judged, parameters: Parameters) -> None:
    """Keep the journal of a change that came to its end, or forget it, and the one before it where that was undone.

    That a rollout was taken back stays: the next rollback does not go back further by itself.
    """
    state, journal = parameters["state"], judged.journal
    if state == "done" and journal is not None:
        changed = changed_files(tree, journal)
        if not parameters["files"] or set(changed) & set(parameters["files"]):
            ended = journal._replace(
                written=left_by(tree, journal), began=None, drain_seconds=journal.took(time.time())
            )
            write_journal(tree, ended, LAST)
    if state == "taken_back" and journal is not None and "rollout" in journal.facts:
        before = read_journal(tree, LAST) or RolloutJournal(CHANGING, {}, {}, written={})
        write_journal(tree, before._replace(facts={**before.facts, "undone": journal.facts["rollout"]}), LAST)
    remove_journal(tree, OPEN, judged)
    if state == "undone":
        # After the open one: if that were left alone, nothing would lead back to what was before the last change.
        last = read_journal(tree, LAST)
        if last is not None and "rollout" in last.facts:
            took = None if journal is None else journal.took(time.time())
            undone = RolloutJournal(CHANGING, {}, {"undone": last.facts["rollout"]}, written={}, drain_seconds=took)
            write_journal(tree, undone, LAST)
        else:
            remove_journal(tree, LAST)


def left_by(tree: Tree, journal: RolloutJournal) -> dict[str, bytes | None]:
    """What the change has written, as its steps have noted it; of what they have not, what is there at its end."""
    written = dict(journal.written or {})
    for path, saved in journal.files.items():
        if path not in written and not is_state(path) and (content := tree.content(path)) != saved.content:
            written[path] = content
    return {path: content for path, content in written.items() if not is_state(path)}


def next_journal(tree: Tree, before: RolloutJournal | None, parameters: Parameters) -> RolloutJournal:
    """The journal of the next phase. Raises RefusedError where another change is under way."""
    phase, facts = parameters["state"], parameters["facts"]
    if phase == DRAINING:
        if before is not None and before.run == parameters["run"] != "":
            # This run has taken it over: what it has found out first was before all changes.
            return before._replace(facts={**facts, **before.facts})
        if before is not None and (before.phase, before.facts) != (DRAINING, facts):
            raise RefusedError(
                "a change of this node was begun and did not come to its end",
                tree.path(OPEN),
                "run the role kubelet, which takes it back first",
                "open_journal",
            )
        began = int(time.time()) if before is None else before.began
        return RolloutJournal(DRAINING, {}, facts, parameters["run"], began=began)
    noted = before.facts if before is not None else {}
    if phase == CHANGING and before is not None and before.phase == CHANGING:
        # Saved already: what is there now may be half of the change.
        return before
    files = save_files(tree, parameters["files"] or ()) if phase == CHANGING else {}
    # Without a name nobody notes what it writes.
    written = dict.fromkeys(parameters["aside"]) if parameters["run"] else None
    began = None if before is None else before.began
    return RolloutJournal(phase, files, {**noted, **facts}, parameters["run"], written, began)


def journal_to_restore(tree: Tree, before: RolloutJournal | None, parameters: Parameters) -> RolloutJournal | None:
    """The journal whose files are to be put back. Raises RefusedError where the last one lacks some of them."""
    if parameters["source"] == "open":
        # Without names all of them: a change that is taken back leaves none out.
        files = parameters["files"]
        return before if files is None else _with_files(before, files, tree.path(OPEN))
    return _with_files(read_journal(tree, LAST), parameters["files"] or (), tree.path(LAST))


def _with_files(journal: RolloutJournal | None, paths: Sequence[str], where: str) -> RolloutJournal | None:
    """The journal with these of its files. Raises RefusedError where it lacks some."""
    if journal is None:
        return None
    missing = sorted(set(paths) - set(journal.files))
    if missing:
        raise RefusedError("the change did not save %s" % ", ".join(missing), where)
    return journal._replace(files={path: journal.files[path] for path in paths})


def text_of(journal: RolloutJournal | None) -> str:
    """The journal as lines, to compare one with another."""
    if journal is None:
        return ""
    return "".join("%s\n" % line for line in ["phase: " + journal.phase, *sorted(journal.files)])


def main() -> None:
    run(
        work,
        Arguments(
            {
                "state": {
                    "type": "str",
                    "choices": ["read", "taken", *STEPS_BACK, "restored", *ENDS],
                    "required": True,
                },
                **RUN,
                "begin": {"type": "bool", "default": True},
                "files": {"type": "list", "elements": "path"},
                "aside": {"type": "list", "elements": "path", "default": []},
                # Of the action plugin of this name.
                "aside_for": {"type": "dict"},
                "stopping": {"type": "dict"},
                "restores": {"type": "list", "elements": "path"},
                "overwrite_edited": {"type": "bool", "default": False},
                "backup_keep": {"type": "int", "default": 3},
                "facts": {"type": "dict", "default": {}},
                "source": {"type": "str", "choices": list(JOURNALS), "default": "open"},
            },
        ),
    )


if __name__ == "__main__":
    main()

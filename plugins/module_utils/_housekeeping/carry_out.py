# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what a plan of the housekeeping is made of, carries a plan out, and does both after a boot.

After a boot it is a program of its own, main(): the journal says to what the kernel's values are brought back, and what
it did goes to standard output.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.command import Run, run_command
from .._base.errors import PERMISSION, CPUManagerError, InputError, NodeError, Note, RefusedError, noted, option
from .._base.files import make_directory, remedy_for, remove_file, replace_file, why_not_writable
from .._base.secrets import text_redacted
from .._base.tree import Tree
from .._cgroup.hierarchy import Hierarchy
from .._cgroup.kubepods import Kubepods
from .._host.layers import (
    INTERRUPTS,
    PARTITION,
    RPS,
    SLICES,
    WATCHDOG,
    WORKQUEUES,
    KernelSetting,
    read_interrupts,
    read_later_slices,
    read_rps,
    read_slices,
    read_watchdog,
    read_workqueues,
)
from .._host.only_root import boot_id_of
from .._host.partitions import MEMBER, TopCgroup, kind_and_problem, read_place
from .._rollout.rollout_journal import SavedFile, save_files
from ..cpuset import CPUSet
from .at_boot import KIND
from .housekeeping_journal import (
    PATH,
    HousekeepingJournal,
    HousekeepingWish,
    clean_up,
    locked,
    read_journal,
    remove_journal,
    text_of,
    write_journal,
)
from .housekeeping_plan import plan_values
from .steps import (
    NETWORK,
    REFUSED_NOTE,
    CommandStep,
    FileStep,
    FoundHost,
    HousekeepingPlan,
    Link,
    Step,
    ValueStep,
    WantedHost,
    change_of,
    cpus_in,
)

_ONLINE = "/sys/devices/system/cpu/online"
# Less than TimeoutStartSec= of the service.
_PATIENCE_AT_BOOT = 60.0

_GONE = (errno.ENOENT, errno.ENODEV, errno.ENOTDIR)
# With these the kernel refuses a value, as that of an interrupt which it manages itself; all else can still be done.
_REFUSALS = (
    *(errno.EIO, errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSPC, errno.EBUSY),
    *(errno.EOPNOTSUPP, errno.ERANGE, errno.E2BIG),
)
NOT_TAKEN = "not taken"


class HousekeepingResult(NamedTuple):
    """What was done, or in check mode would be. steps: those that changed something. needs: what is left to others."""

    steps: Sequence[Step]
    changed: bool
    notes: Sequence[str]
    needs: Sequence[tuple[str, ...]]
    commands: Sequence[tuple[str, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as the module returns it."""
        changes = [change_of(step) for step in self.steps]
        return {
            "changes": [change for change in changes if change is not None],
            "commands": [list(words) for words in self.commands],
            **noted(self.notes),
        }


def after_boot(tree: Tree, part: str = "") -> HousekeepingResult | None:
    """Bring the kernel's values back to what the journal wishes; None where there is none. Raises NodeError.

    part: NETWORK or KERNEL for these alone; each service brings back its own.
    """
    if not tree.exists(PATH, follow=False):
        return None
    with locked(tree, _PATIENCE_AT_BOOT):
        journal = read_journal(tree)
        if journal is None:
            return None
        found = read(tree, journal.wish, journal)
        if part:
            own = [setting for setting in found.settings if (setting.layer == RPS) == (part == NETWORK)]
            found = found._replace(settings=own)
        plan = plan_values(found, journal, with_partition=part != NETWORK)
        return carry_out(tree, plan, runs=False, act=True, run=run_command)


# --- reading --------------------------------------------------------------------------------------------------


def read_settings(tree: Tree, layers: Iterable[str], cgroup_root: str = "") -> list[KernelSetting]:
    """Return the settings of these layers, also of slices that systemd makes later."""
    chosen = set(layers)
    found: list[KernelSetting] = []
    for layer, read in (
        (INTERRUPTS, read_interrupts),
        (WORKQUEUES, read_workqueues),
        (RPS, read_rps),
        (WATCHDOG, read_watchdog),
    ):
        if layer in chosen:
            found += read(tree)
    if SLICES in chosen:
        with suppress(NodeError):  # no cgroups with cpusets
            hierarchy = Hierarchy(tree)
            pods = Kubepods(hierarchy, cgroup_root).tops
            found += [*read_slices(tree, hierarchy, pods), *read_later_slices(tree, hierarchy, pods)]
    return found


def online_cpus(tree: Tree) -> CPUSet:
    """Return the CPUs of a node that are online. Raises NodeError."""
    try:
        text = tree.read_value(_ONLINE)
        online = CPUSet.parse(text or "")
    except InputError as error:
        raise tree.damaged(_ONLINE, str(error)) from error
    if not online:
        raise NodeError("does not say which CPUs are online", where=tree.path(_ONLINE))
    return online


def read(tree: Tree, wish: HousekeepingWish, journal: HousekeepingJournal | None) -> FoundHost:
    """Return what a plan is made of, without the files that may be written. Raises NodeError."""
    values = {} if journal is None else journal.values
    layers = {*wish.layers, *(saved.layer for saved in values.values())}
    own = () if wish.partition is None else (wish.partition.slice,)
    places = read_places(tree, [*own, *(() if journal is None else journal.slices)])
    # The slice of a partition is none of the host's, also while it is none yet.
    settings = [
        setting
        for setting in read_settings(tree, layers, wish.cgroup_root)
        if setting.layer != SLICES or setting.name not in places
    ]
    texts: dict[str, str | None] = {setting.path: setting.text for setting in settings if not setting.problem}
    for path in values:
        if path not in texts:
            texts[path] = _text(tree, path)
    no_file = frozenset(
        setting.path
        for setting in settings
        if setting.layer == SLICES and not setting.text and not tree.exists(setting.path)
    )
    for path in no_file:
        texts[path] = None
    boot_id = boot_id_of(tree)
    return FoundHost(settings, online_cpus(tree), boot_id, texts, {}, {}, (), no_file, places)


def read_places(tree: Tree, slices: Sequence[str]) -> dict[str, TopCgroup]:
    """Return these slices as they are. Raises NodeError."""
    if not slices:
        return {}
    hierarchy = Hierarchy(tree)
    return {name: read_place(hierarchy, name) for name in slices}


def _text(tree: Tree, path: str) -> str | None:
    try:
        return tree.read_value(path)
    except (NodeError, RefusedError):
        return None


def with_files(tree: Tree, found: FoundHost, wanted: WantedHost, journal: HousekeepingJournal | None) -> FoundHost:
    """Return what was found, with the files that are wanted. Raises NodeError for one that cannot be read."""
    kept = {} if journal is None else journal.files
    links = {} if journal is None else journal.links
    paths = dict.fromkeys([*(file.path for file in wanted.files), *kept])
    files: dict[str, SavedFile] = save_files(tree, list(paths))
    targets = {path: _target(tree, path) for path in dict.fromkeys([*wanted.links, *links])}
    missing: list[str] = []
    for path in [*(file.path for file in wanted.files), *wanted.links]:
        above = []
        directory = os.path.dirname(path)
        while directory != "/" and not tree.exists(directory):
            above.append(directory)
            directory = os.path.dirname(directory)
        missing += reversed(above)
    return found._replace(files=files, links=targets, missing=list(dict.fromkeys(missing)))


def _target(tree: Tree, path: str) -> str | None:
    """Return where a link leads to; empty for what is no link."""
    here = os.path.join(tree.path(os.path.dirname(path)), os.path.basename(path))
    try:
        return os.readlink(here)
    except OSError as error:
        return None if error.errno in _GONE else ""


# --- acting ---------------------------------------------------------------------------------------------------


def carry_out(tree: Tree, plan: HousekeepingPlan, runs: bool, act: bool, run: Run) -> HousekeepingResult:
    """Carry a plan out, where it is to be, and say what came of it."""
    needs = () if runs else plan.commands
    done = [step for step in plan.steps if not (isinstance(step, ValueStep) and step.was_refused)]
    if plan.changed:
        _check_writable(tree, plan)
    if not act:
        return HousekeepingResult(done, plan.changed, plan.notes, needs, plan.commands)
    clean_up(tree, [PATH])
    if plan.journal is not None:
        before = read_journal(tree)
        if before is not None and not before.is_done:
            clean_up(tree, before.files)
        write_journal(tree, plan.journal)
    refused = {} if plan.journal is None else dict(plan.journal.refused)
    now_refused: dict[str, list[str]] = {}
    done = []
    for step in plan.steps:
        if isinstance(step, ValueStep):
            problem = _set_partition(tree, step) if step.layer == PARTITION else set_value(tree, step)
            if problem:
                refused[step.path] = problem
                now_refused.setdefault(problem, []).append(step.name)
            elif problem is None:
                refused.pop(step.path, None)
                done.append(step)
        else:
            _do(tree, step, run)
            done.append(step)
    for directory in reversed(plan.directories):
        with suppress(OSError):
            os.rmdir(tree.path(directory))
    if plan.changed or done:
        _end(tree, plan.final, refused)
    notes = [*plan.notes, *_refused_notes(now_refused, plan.final is None)]
    return HousekeepingResult(done, bool(done) or (plan.changed and not now_refused), notes, needs, plan.commands)


def _do(tree: Tree, step: FileStep | Link | CommandStep, run: Run) -> None:
    if isinstance(step, FileStep):
        _write_file(tree, step)
    elif isinstance(step, Link):
        _write_link(tree, step)
    else:
        run(step.words)


def _end(tree: Tree, final: HousekeepingJournal | None, refused: Mapping[str, str]) -> None:
    if final is None:
        remove_journal(tree)
    else:
        write_journal(tree, final._replace(refused=dict(refused)))


def _refused_notes(names: Mapping[str, Sequence[str]], is_end: bool) -> list[str]:
    what = "the kernel refuses to put back %s (%s), which stays so until the next boot"
    if not is_end:
        what = "the kernel refuses to move %s (%s); it is tried again at each run"
    return [Note(REFUSED_NOTE, what % (", ".join(of), name)) for name, of in names.items()]


def _check_writable(tree: Tree, plan: HousekeepingPlan) -> None:
    """Raise what would keep the plan from being carried out, before anything is written."""
    sizes = [len(text_of(journal)) for journal in (plan.journal, plan.final) if journal is not None]
    errors = [why_not_writable(tree.path(PATH), sizes)]
    for step in plan.steps:
        if isinstance(step, FileStep):
            contents = [step.before if step.backup else None, step.after]
            lengths = [len(content) for content in contents if content is not None]
            errors.append(why_not_writable(tree.path(step.path), lengths))
        elif isinstance(step, Link):
            errors.append(why_not_writable(os.path.join(_directory_of(tree, step.path), "kubenode")))
        elif isinstance(step, ValueStep):
            errors.append(_why_not_value(tree, step))
    for error in errors:
        if error is not None:
            raise error


def _why_not_value(tree: Tree, step: ValueStep) -> CPUManagerError | None:
    here = tree.path(step.path)
    if not os.path.exists(here) or os.access(here, os.W_OK):
        return None
    if os.geteuid():
        return NodeError("cannot be written", where=here, remedy="write it as root (become: true)", kind=PERMISSION)
    return NodeError("cannot be written: it is mounted read-only; nothing was written", where=here)


def set_value(tree: Tree, step: ValueStep) -> str | None:
    """Write a file of the kernel; give None when it has taken it, why not, or "" where it is gone. Raises NodeError."""
    here = tree.path(step.path)
    try:
        descriptor = os.open(here, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in _GONE:
            return ""
        return _refusal(here, error)
    try:
        # The kernel does not see a write of nothing.
        length = os.write(descriptor, b"%s\n" % step.after.encode("ascii"))
        if not tree.live:
            os.ftruncate(descriptor, length)
    except OSError as error:
        return "" if error.errno in _GONE else _refusal(here, error)
    finally:
        os.close(descriptor)
    now = _text(tree, step.path)
    if now is None or now == step.after:
        return None
    if step.form == KIND:
        return NOT_TAKEN
    # It may leave CPUs out, or write them in another way.
    has, wanted = cpus_in(now, step.form), cpus_in(step.after, step.form)
    return None if has == wanted or (has and wanted and has <= wanted) else NOT_TAKEN


def _set_partition(tree: Tree, step: ValueStep) -> str | None:
    """Do what set_value() does, where the partition was asked for, so that a refusal is an error. Raises NodeError."""
    problem = set_value(tree, step)
    if problem is None or (not problem and step.after in ("", MEMBER)):
        return problem
    reason = kind_and_problem(_text(tree, step.path) or "")[1] or problem or "there is no such file"
    if step.form == KIND:
        # What is none must not become one by itself, when others change.
        set_value(tree, step._replace(before="", after=MEMBER))
    raise NodeError(
        "the kernel refuses %s: %s" % (step.after or "no CPUs", reason),
        where=tree.path(step.path),
        remedy="correct that and run again, or leave out %s; all else is done" % option("partition_cpus"),
    )


def _refusal(here: str, error: OSError) -> str:
    if error.errno in _REFUSALS:
        return errno.errorcode[error.errno or 0]
    raise NodeError("cannot be written: %s" % error.strerror, where=here, remedy=remedy_for(error)) from error


def _directory_of(tree: Tree, path: str) -> str:
    return tree.path(os.path.dirname(path))


def _write_file(tree: Tree, step: FileStep) -> None:
    here = tree.path(step.path)
    if step.after is None:
        if step.before is not None:
            remove_file(here, step.before, backup=False)
        return
    make_directory(os.path.dirname(here))
    replace_file(here, step.after, step.mode, step.before, step.backup, step.keep_mode, step.owner)


def _write_link(tree: Tree, step: Link) -> None:
    directory = _directory_of(tree, step.path)
    here = os.path.join(directory, os.path.basename(step.path))
    try:
        if step.is_made:
            make_directory(directory)
            os.symlink(step.target, here)
        else:
            os.unlink(here)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOENT):
            raise NodeError("cannot be written: %s" % error.strerror, where=here, remedy=remedy_for(error)) from error


def main(arguments: Sequence[str]) -> int:
    """Write what differs; 0 when all is as it is to be, 1 when it cannot be written, 2 where nothing is wished.

    arguments: the directory that holds the node's files, by default the node itself; and NETWORK or KERNEL where only
    that part is to be written.
    """
    try:
        tree = Tree(arguments[0] if arguments else "/")
        answer = after_boot(tree, *arguments[1:])
    except (CPUManagerError, OSError) as error:
        _tell("error: %s" % error)
        return 1
    if answer is None:
        _tell("error: %s: there is no such file, which says what is wished" % tree.path(PATH))
        return 2
    for note in answer.notes:
        _tell("note: %s" % note)
    for step in answer.steps:
        if isinstance(step, ValueStep):
            _tell("%s: %s: %s to %s" % (step.layer, step.name, step.before or "all", step.after))
    return 0


def _tell(line: str) -> None:
    sys.stdout.write(text_redacted(line) + "\n")

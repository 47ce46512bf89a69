# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divides the caches of a node as it is wished, or puts everything back."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Mapping, NamedTuple, Sequence

from .._base.command import Run, run_command
from .._base.errors import CPUManagerError, NodeError, Note, RefusedError, noted, option
from .._base.quantity import counted
from .._base.tree import RESCTRL, RESCTRL_TYPE, Tree
from .._host.only_root import boot_id_of
from .._node.exclusive import has_promise, read_exclusive
from .._node.node import Node
from .._node.reserved_cpus import kubelet_reservation
from ..cpuset import CPUSet
from .cache_journal import (
    CacheJournal,
    CacheTerms,
    former_masks,
    read_journal,
    remove_journal,
    with_masks,
    write_journal,
)
from .read import find_mount, is_supported, read_cores, read_domains, read_online, read_resctrl
from .resctrl import EXCLUSIVE_GROUP, OUR_GROUPS, ROOT, SHARED_GROUP, UNMEASURED, Cache, Resctrl
from .ways import CachedMachine, CacheWish, Pool, Target, check_tasks, divided_cache, make_target, restored
from .write import SCHEMATA, ResctrlStep, carry_out, check_mounted, lines_after, lines_of, locked, steps_back, steps_to

# Which CPUs are exclusive and which are shared, by the checkpoint of whoever assigns them.


def assigned_cpus(node: Node) -> tuple[CPUSet, CPUSet] | None:
    """The exclusive CPUs and the shared pool; None where there is no checkpoint. Raises RefusedError for a damaged one.

    Under the policies dynamic and isolated of this collection, by their own checkpoint in place of the kubelet's.
    """
    recorded = read_exclusive(node, node.found()[0] if has_promise(node) else None)
    if recorded.problem is not None:
        raise recorded.problem
    if recorded.state is None:
        return None
    return recorded.state.exclusive_cpus(), recorded.state.default_cpu_set


# What a plan for the caches needs of a node beside resctrl: its CPUs, its caches, and who has CPUs to himself.


def machine_of(node: Node, level: str) -> CachedMachine:
    """The node's CPUs, and which share a cache of this level. Raises NodeError."""
    online = read_online(node.tree)
    return CachedMachine(online, read_cores(node.tree, online), read_domains(node.tree, level, online))


def pool_of(node: Node, wish: CacheWish, notes: list[str]) -> Pool | None:
    """The CPUs by their use; None where there is no checkpoint. Raises RefusedError for a damaged one."""
    # Without a group of the shared pool, nobody needs to know what is reserved.
    reserved = _reserved(node, notes) if SHARED_GROUP in wish.groups else CPUSet()
    assigned = assigned_cpus(node)
    if assigned is None:
        text = "%s: no checkpoint there, so it is not known which CPUs are exclusive; the groups keep their CPUs"
        notes.append(Note(UNMEASURED, text % node.tree.path(node.checkpoint_path)))
        return None
    return Pool(*assigned, reserved)


def _reserved(node: Node, notes: list[str]) -> CPUSet:
    """What the kubelet is configured to reserve; none where that is not known, with a note."""
    try:
        configuration = node.configuration()
        return CPUSet() if configuration is None else kubelet_reservation(node, configuration).cpus
    except CPUManagerError as error:
        text = "what the kubelet reserves is not known, so the shared group has these CPUs, too: %s"
        notes.append(Note(UNMEASURED, text % error))
        return CPUSet()


# What is to become of the caches of a node, by the wish, the checkpoint and the journal. It only reads.


def plan_of(
    node: Node, found: Resctrl, wish: CacheWish, pool: Pool | None, old: CacheJournal | None
) -> tuple[Target, list[ResctrlStep], CacheJournal]:
    """What is to be, the steps to it, and the journal before them. Raises InputError or RefusedError."""
    cache = divided_cache(found)
    boot_id = boot_id_of(node.tree)
    former = former_masks(old, boot_id, cache.name, found.root.schemata.get(cache.name, {}))
    target = make_target(found, wish, machine_of(node, cache.name), pool, former)
    of_boot = old if old is not None and old.boot_id == boot_id else None
    journal = CacheJournal(
        wish,
        boot_id,
        cache.name,
        former,
        of_boot.ours if of_boot is not None and of_boot.level == cache.name else {},
        of_boot is not None and of_boot.is_mounted,
        CacheTerms() if old is None else old.terms,
    )
    return target, steps_to(found, target), with_masks(journal, target.masks(ROOT))


# The kinds of the errors where resctrl is not there.
NOT_MOUNTED, NOT_SUPPORTED = "not_mounted", "not_supported"
_STAYS = "cache-foreign-group"


class PartitionResult(NamedTuple):
    """What was done, or in check mode would be. before, after: our groups and the root, as lines.

    mounts: "mount" or "umount" where that is part of it. is_new: whether the wish is another than before.
    """

    steps: Sequence[ResctrlStep] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    target: Target | None = None
    mounts: str = ""
    is_new: bool = False
    notes: Sequence[str] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was changed."""
        return bool(self.steps or self.mounts or self.is_new)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        target = self.target
        return {
            "writes": [step.to_dict() for step in self.steps],
            "mounted": self.mounts == "mount",
            "unmounted": self.mounts == "umount",
            "level": "" if target is None else target.level,
            "groups": {} if target is None else {name: shown_group(target, name) for name in (ROOT, *target.groups)},
            **noted(self.notes),
        }


def shown_group(target: Target, name: str) -> dict[str, Any]:
    """What a group is to have, as plain data."""
    shown: dict[str, Any] = {"ways": {str(number): "%x" % mask for number, mask in target.masks(name).items()}}
    if name in target.cpus:
        shown["cpus"] = str(target.cpus[name])
    if name == SHARED_GROUP and target.bandwidth is not None:
        shown["bandwidth"] = {str(number): value for number, value in target.bandwidth.items()}
    if name == EXCLUSIVE_GROUP:
        shown["mode"] = target.mode
    return shown


# --- present -----------------------------------------------------------------------------------------------


def present(node: Node, wish: CacheWish, terms: CacheTerms, act: bool, run: Run = run_command) -> PartitionResult:
    """Divide the caches.

    Raises InputError or RefusedError for what cannot be, before anything is written, NodeError where the kernel
    refuses.
    """
    tree = node.tree
    if find_mount(tree) is not None:
        return _present(node, wish, terms, False, act)
    notes: list[str] = []
    pool_of(node, wish, notes)
    check_supported(tree)
    if not terms.mount:
        raise not_mounted(tree)
    if not act:
        notes.append("resctrl is not mounted, so it is not known yet what will be written")
        return PartitionResult(mounts="mount", notes=notes)
    check_mountable(tree)
    before = read_journal(tree)
    # Before the mount: a run that is killed after it can still be undone.
    write_journal(tree, CacheJournal(wish, boot_id_of(tree), "", {}, {}, True, terms))
    is_mounted = False
    try:
        mount_it(tree, run)
        is_mounted = True
        return _present(node, wish, terms, True, act)
    except CPUManagerError:
        now = read_journal(tree)
        if now is None or not now.level:
            # No group was written.
            with suppress(CPUManagerError):
                if is_mounted:
                    run(["umount", RESCTRL])
                if before is None:
                    remove_journal(tree)
                else:
                    write_journal(tree, before)
        raise


def _present(node: Node, wish: CacheWish, terms: CacheTerms, is_mounted: bool, act: bool) -> PartitionResult:
    tree = node.tree
    if not act:
        return _planned(node, wish, terms, is_mounted)[0]
    check_mounted(tree)
    with locked(tree, exclusive=True) as directory:
        answer, found, journal = _planned(node, wish, terms, is_mounted)
        if not answer.changed or answer.target is None:
            return answer
        old = read_journal(tree)
        is_first = old is None or not old.level
        write_journal(tree, journal)
        try:
            carry_out(tree, directory, answer.steps)
            check_done(tree, answer.target)
        except NodeError as error:
            if not is_first or not _is_taken_back(tree, directory, found.groups, journal):
                raise
            raise error.adding("everything is as it was before") from error
        write_journal(tree, journal._replace(ours={number: masks[-1:] for number, masks in journal.ours.items()}))
        return answer


def _planned(
    node: Node, wish: CacheWish, terms: CacheTerms, is_mounted: bool
) -> tuple[PartitionResult, Resctrl, CacheJournal]:
    """What is to be done, what is there, and the journal for it. It only reads."""
    tree = node.tree
    notes: list[str] = []
    pool = pool_of(node, wish, notes)
    found = needed_resctrl(tree)
    check_tasks(found)
    old = read_journal(tree)
    target, steps, journal = plan_of(node, found, wish, pool, old)
    journal = journal._replace(terms=terms, is_mounted=journal.is_mounted or is_mounted)
    before, after = lines_of(found, target.level), lines_after(found, target.level, steps)
    is_new = old is None or not old.level or (old.wish, old.terms) != (wish, terms)
    notes = [*notes, *target.notes]
    return PartitionResult(steps, before, after, target, "mount" if is_mounted else "", is_new, notes), found, journal


def check_done(tree: Tree, target: Target) -> None:
    """Raise NodeError where the kernel has taken all and made something else of it."""
    left = steps_to(needed_resctrl(tree), target)
    if left:
        raise NodeError(
            "the kernel has taken each write, and still this is to be done: %s" % "; ".join(map(str, left)),
            where=tree.path(RESCTRL),
            remedy="look for a different program that writes there, and run again",
        )


# --- absent ------------------------------------------------------------------------------------------------


def absent(node: Node, act: bool, run: Run = run_command) -> PartitionResult:
    """Put everything back. Raises RefusedError where processes are in a group of ours, NodeError."""
    tree = node.tree
    journal = read_journal(tree)
    if find_mount(tree) is None:
        # Without it, nothing of the kernel's is left.
        if act:
            remove_journal(tree)
        return PartitionResult(is_new=journal is not None)
    if not act:
        return _planned_back(tree, journal)[0]
    found = needed_resctrl(tree)
    if journal is None and not any(name in found.groups for name in OUR_GROUPS):
        remove_journal(tree)
        return _planned_back(tree, journal)[0]
    check_mounted(tree)
    with locked(tree, exclusive=True) as directory:
        # Whoever had the lock may have written the root, and the journal before it.
        answer = _planned_back(tree, read_journal(tree))[0]
        carry_out(tree, directory, answer.steps)
        # Under the lock: who waits for it finds nothing to bring back.
        remove_journal(tree)
    if answer.mounts:
        run(["umount", RESCTRL])
    return answer


def _planned_back(tree: Tree, journal: CacheJournal | None) -> tuple[PartitionResult, Resctrl]:
    found = needed_resctrl(tree)
    check_tasks(found)
    notes: list[str] = []
    try:
        cache = divided_cache(found)
    except RefusedError:
        # It was mounted otherwise since, so the masks are new.
        steps = steps_back(found, "", {})
        return PartitionResult(
            steps, lines_of(found, ""), lines_after(found, "", steps), is_new=journal is not None
        ), found
    root = root_before(tree, found, cache, journal, notes)
    steps = steps_back(found, cache.name, root)
    is_boot = journal is not None and journal.boot_id == boot_id_of(tree)
    mounts = "umount" if journal is not None and is_boot and journal.is_mounted else ""
    others = [group.name for group in found.foreign]
    monitors = sum(group.monitors for group in found.groups.values())
    if monitors:
        others.append(counted(monitors, "monitoring group"))
    if mounts and others:
        mounts = ""
        notes.append(Note(_STAYS, "resctrl stays mounted, as others use it: %s" % ", ".join(others)))
    before, after = lines_of(found, cache.name), lines_after(found, cache.name, steps)
    return PartitionResult(steps, before, after, None, mounts, journal is not None, notes), found


def root_before(
    tree: Tree, found: Resctrl, cache: Cache, journal: CacheJournal | None, notes: list[str]
) -> dict[int, int]:
    """{id: mask} of the root as it was, as far as nobody else has taken ways of it for himself since."""
    now = found.root.schemata.get(cache.name, {})
    before = former_masks(journal, boot_id_of(tree), cache.name, now)
    ours = [found.groups[name] for name in OUR_GROUPS if name in found.groups]
    if journal is None and ours:
        notes.append("there is no journal: the root group gets the ways of our groups back, which it had to share")
        before = {number: mask | _masks_of(ours, cache.name, number) for number, mask in now.items()}
    back = {number: restored(found, cache, number, mask) or now[number] for number, mask in before.items()}
    less = ["%d (%x of %x)" % (number, back[number], mask) for number, mask in before.items() if back[number] != mask]
    if less:
        text = "the root group gets back only a part of the ways of %s cache %s: others have the rest to themselves now"
        notes.append(Note(_STAYS, text % (cache.name, ", ".join(less))))
    return back


def _masks_of(groups: Sequence[Any], level: str, number: int) -> int:
    mask = 0
    for group in groups:
        mask |= group.mask(level, number)
    return mask


def _is_taken_back(tree: Tree, directory: int, before: Mapping[str, Any], journal: CacheJournal) -> bool:
    """After a refusal in the first run: remove what was made, and give the root what it had. Whether that was taken."""
    try:
        found = needed_resctrl(tree)
        cache = divided_cache(found)
        steps = steps_back(found, cache.name, root_before(tree, found, cache, journal, []))
        carry_out(tree, directory, [step for step in steps if step.file == SCHEMATA or step.group not in before])
        remove_journal(tree)
    except CPUManagerError:
        return False
    return True


# --- whether it is there -----------------------------------------------------------------------------------


def needed_resctrl(tree: Tree) -> Resctrl:
    """resctrl without counters. Raises NodeError where it is not mounted."""
    found = read_resctrl(tree, counters=False)
    if found is None:
        raise not_mounted(tree)
    return found


def check_supported(tree: Tree) -> None:
    """Raise NodeError where the kernel or the CPUs have no resctrl."""
    if not is_supported(tree):
        raise NodeError(
            "is not there, so the kernel or the CPUs of this machine have no resctrl",
            where=tree.path(RESCTRL),
            remedy="take this node out of those whose caches are divided",
            kind=NOT_SUPPORTED,
        )


def not_mounted(tree: Tree) -> NodeError:
    """What to say where resctrl could be mounted, and is not."""
    return NodeError(
        "resctrl is not mounted there",
        where=tree.path(RESCTRL),
        remedy="set %s, or run mount -t resctrl resctrl %s" % (option("mount"), RESCTRL),
        kind=NOT_MOUNTED,
    )


def check_mountable(tree: Tree) -> None:
    """Raise RefusedError for a saved node."""
    if not tree.live:
        raise RefusedError("nothing can be mounted in saved files", where=tree.path(RESCTRL))


def mount_it(tree: Tree, run: Run) -> None:
    """Mount resctrl. Raises NodeError where that fails."""
    run(["mount", "-t", RESCTRL_TYPE, RESCTRL_TYPE, RESCTRL])
    if find_mount(tree) is None:
        raise not_mounted(tree)

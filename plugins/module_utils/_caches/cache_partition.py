# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divides the caches of a node as it is wished, lets groups follow the checkpoint, or puts everything back.

The journal of it is on the node itself: the wish, and the root group as it was before. It is one file, replaced as a
whole before the root is written. resctrl loses all settings at each boot and each mount. So the values of the root are
valid for one boot, and of these only the masks that the root still has from us.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from .._base.command import Run, run_command
from .._base.errors import CPUManagerError, InputError, NodeError, Note, RefusedError, noted, option
from .._base.journal_file import CACHE as PATH
from .._base.journal_file import JournalFile
from .._base.quantity import counted
from .._base.tree import RESCTRL, RESCTRL_TYPE, Tree, is_number
from .._host.only_root import boot_id_of
from .._node.exclusive import has_promise, read_exclusive
from .._node.node import Node
from .._node.reserved_cpus import kubelet_reservation
from ..cpuset import CPUSet
from .resctrl import (
    EXCLUSIVE,
    EXCLUSIVE_GROUP,
    OUR_GROUPS,
    ROOT,
    SHAREABLE,
    SHARED_GROUP,
    UNMEASURED,
    Cache,
    Resctrl,
    find_mount,
    is_supported,
    read_cores,
    read_domains,
    read_online,
    read_resctrl,
)
from .ways import (
    CachedMachine,
    CacheWish,
    Pool,
    Target,
    check_tasks,
    divided_cache,
    make_target,
    parse_shares,
    restored,
    shown_shares,
)
from .write import SCHEMATA, ResctrlStep, carry_out, check_mounted, lines_after, lines_of, locked, steps_back, steps_to

_FILE = JournalFile(
    PATH,
    1,
    "is damaged: %s",
    "move it away; what the root group had before is then taken from the masks of our groups",
)

_MOST = 1 << 64
_PATHS = ("config_path", "kubelet_root")


class CacheTerms(NamedTuple):
    """The options beside the wish that also hold for the passes that follow.

    mount: whether resctrl may be mounted. allow_owners: the ids of programs that may manage CPUs beside this.
    config_path, kubelet_root: where the kubelet is, None where it is found.
    """

    mount: bool = False
    allow_owners: tuple[str, ...] = ()
    config_path: str | None = None
    kubelet_root: str | None = None


class CacheJournal(NamedTuple):
    """What is wished, and what was.

    level: the cache that is divided; empty while resctrl is being mounted for the first time. former: {id: mask of the
    root before}. ours: {id: the masks that we gave the root} in this boot, more than one while a change is under way.
    is_mounted: whether we have mounted resctrl in this boot, or were about to.
    """

    wish: CacheWish
    boot_id: str
    level: str
    former: Mapping[int, int]
    ours: Mapping[int, tuple[int, ...]]
    is_mounted: bool = False
    terms: CacheTerms = CacheTerms()


def former_masks(journal: CacheJournal | None, boot_id: str, level: str, root: Mapping[int, int]) -> dict[int, int]:
    """Return {id: mask} of the root before we divided it. root: its masks now.

    A mask that is not ours is what somebody has given it since, and counts as before.
    """
    if journal is None or journal.boot_id != boot_id or journal.level != level:
        return dict(root)
    return {
        number: journal.former.get(number, mask) if mask in journal.ours.get(number, ()) else mask
        for number, mask in root.items()
    }


def with_masks(journal: CacheJournal, masks: Mapping[int, int]) -> CacheJournal:
    """Return the journal before the root is given these masks."""
    ours = {
        number: tuple(dict.fromkeys((*journal.ours.get(number, ()), mask)))
        for number, mask in masks.items()
        if number in journal.former
    }
    return journal._replace(ours=ours)


def read_journal(tree: Tree) -> CacheJournal | None:
    """Return the journal of a node; None where there is none. Raises NodeError for a damaged one."""
    return _FILE.read(tree, _journal_of)


def _journal_of(data: Any) -> CacheJournal:
    return CacheJournal(
        wish_of(data["wish"]),
        str(data["boot_id"]),
        str(data["level"]),
        {_id(number): _mask(mask) for number, mask in data["former"].items()},
        {_id(number): tuple(map(_mask, masks)) for number, masks in data["ours"].items()},
        bool(data["is_mounted"]),
        terms_of(data["wish"]),
    )


def write_journal(tree: Tree, journal: CacheJournal) -> None:
    """Put the journal on the node, on its disk, unless it is there. Raises NodeError."""
    text, old = text_of(journal), tree.content(PATH)
    if text.encode("utf-8") != old:
        _FILE.replace(tree, text, old)


def remove_journal(tree: Tree) -> None:
    """Take it away, with what a killed run left beside it, and its directory, where nothing else is in that."""
    _FILE.remove(tree)


def text_of(journal: CacheJournal) -> str:
    """Return the journal as it is written."""
    data = {
        "wish": shown_wish(journal.wish, journal.terms),
        "boot_id": journal.boot_id,
        "level": journal.level,
        "former": {str(number): "%x" % mask for number, mask in journal.former.items()},
        "ours": {str(number): ["%x" % mask for mask in masks] for number, masks in journal.ours.items()},
        "is_mounted": journal.is_mounted,
    }
    return _FILE.text_of(data)


def shown_wish(wish: CacheWish, terms: CacheTerms) -> dict[str, Any]:
    """Return a wish as the options of cache_partition."""
    shown: dict[str, Any] = {"exclusive_share": shown_shares(wish.exclusive), "mode": wish.mode, "mount": terms.mount}
    if terms.allow_owners:
        shown["allow_owners"] = list(terms.allow_owners)
    shown.update((name, value) for name, value in terms._asdict().items() if name in _PATHS and value is not None)
    if wish.shared is not None:
        shown["shared_share"] = shown_shares(wish.shared)
    if wish.bandwidth is not None:
        shown["shared_bandwidth"] = wish.bandwidth
    return shown


def wish_of(given: Mapping[str, Any]) -> CacheWish:
    """Return the wish that these options are. Raises InputError."""
    shared, bandwidth, mode = given.get("shared_share"), given.get("shared_bandwidth"), given.get("mode", SHAREABLE)
    if mode not in (SHAREABLE, EXCLUSIVE):
        raise InputError("there is no mode %r" % (mode,))
    if bandwidth is not None and (isinstance(bandwidth, bool) or not isinstance(bandwidth, int)):
        raise InputError("%r is no bandwidth" % (bandwidth,))
    return CacheWish(
        parse_shares(given["exclusive_share"], "exclusive_share"),
        None if shared is None else parse_shares(shared, "shared_share"),
        bandwidth,
        mode,
    )


def terms_of(given: Mapping[str, Any]) -> CacheTerms:
    """Return the terms that these options are. Raises InputError."""
    owners = given.get("allow_owners") or ()
    paths = [given.get(name) for name in _PATHS]
    if not isinstance(owners, (list, tuple)) or not all(isinstance(text, str) for text in owners):
        raise InputError("%r are no ids of owners" % (owners,))
    if not all(path is None or isinstance(path, str) for path in paths):
        raise InputError("%r are no paths" % (paths,))
    return CacheTerms(bool(given.get("mount", False)), tuple(owners), *paths)


def _id(text: str) -> int:
    if not is_number(text) or len(text) > 9:
        raise InputError("%r is no id of a cache" % text)
    return int(text)


def _mask(text: Any) -> int:
    mask = int(text, 16)
    if not 0 < mask < _MOST:
        raise InputError("%r is no mask of ways" % (text,))
    return mask


def assigned_cpus(node: Node) -> tuple[CPUSet, CPUSet] | None:
    """Return the exclusive CPUs and the shared pool; None where there is no checkpoint. Raises RefusedError for a
    damaged one.

    Under the policies dynamic and isolated of this collection, by their own checkpoint in place of the kubelet's.
    """
    recorded = read_exclusive(node, node.found()[0] if has_promise(node) else None)
    if recorded.problem is not None:
        raise recorded.problem
    if recorded.state is None:
        return None
    return recorded.state.exclusive_cpus(), recorded.state.default_cpu_set


def machine_of(node: Node, level: str) -> CachedMachine:
    """Return the node's CPUs, and which share a cache of this level. Raises NodeError."""
    online = read_online(node.tree)
    return CachedMachine(online, read_cores(node.tree, online), read_domains(node.tree, level, online))


def pool_of(node: Node, wish: CacheWish, notes: list[str]) -> Pool | None:
    """Return the CPUs by their use; None where there is no checkpoint. Raises RefusedError for a damaged one."""
    # Without a group of the shared pool, nobody needs to know what is reserved.
    reserved = _reserved(node, notes) if SHARED_GROUP in wish.groups else CPUSet()
    assigned = assigned_cpus(node)
    if assigned is None:
        text = "%s: no checkpoint there, so it is not known which CPUs are exclusive; the groups keep their CPUs"
        notes.append(Note(UNMEASURED, text % node.tree.path(node.checkpoint_path)))
        return None
    return Pool(*assigned, reserved)


def _reserved(node: Node, notes: list[str]) -> CPUSet:
    """Return what the kubelet is configured to reserve; none where that is not known, with a note."""
    try:
        configuration = node.configuration()
        return CPUSet() if configuration is None else kubelet_reservation(node, configuration).cpus
    except CPUManagerError as error:
        text = "what the kubelet reserves is not known, so the shared group has these CPUs, too: %s"
        notes.append(Note(UNMEASURED, text % error))
        return CPUSet()


def plan_of(
    node: Node, found: Resctrl, wish: CacheWish, pool: Pool | None, old: CacheJournal | None
) -> tuple[Target, list[ResctrlStep], CacheJournal]:
    """Return what is to be, the steps to it, and the journal before them. Raises InputError or RefusedError."""
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
        """Return plain data, as modules return it."""
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
    """Return what a group is to have, as plain data."""
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
    """Return what is to be done, what is there, and the journal for it. It only reads."""
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
    """Return {id: mask} of the root as it was, as far as nobody else has taken ways of it for himself since."""
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
    """Remove what was made, and give the root what it had, after a refusal in the first run; return whether that was
    taken."""
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
    """Return resctrl without counters. Raises NodeError where it is not mounted."""
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
    """Return what to say where resctrl could be mounted, and is not."""
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


def caches_follow(node: Node, allow_owners: Sequence[str], say: Callable[[str], object]) -> bool:
    """Return whether the groups of the caches have the CPUs that they should have. say: takes each line for the
    journal.

    allow_owners: the ids of those who may manage CPUs beside this collection.
    """
    try:
        if not node.tree.exists(PATH, follow=False):
            return True
        for line in follow(node, allow_owners):
            say(line)
    except (InputError, NodeError, RefusedError, OSError) as error:
        say("error: %s" % error)
        return False
    return True


def follow(node: Node, allow_owners: Sequence[str] = ()) -> list[str]:
    """Bring the groups to what is wished; what was written, as lines. Mostly that is one list of CPUs, or nothing.

    allow_owners: the ids of those who may manage CPUs beside this. Raises RefusedError and NodeError, also where
    resctrl is not mounted any more.
    """
    tree = node.tree
    journal = read_journal(tree)
    if journal is None:
        return []
    terms = journal.terms
    if (terms.config_path, terms.kubelet_root) != (None, None):
        node = Node(tree, terms.config_path, terms.kubelet_root)
    if node.may_have_owners() or _has_classes(tree):
        # Imported here: on most nodes there is the kubelet alone.
        from .._node.owners_found import refuse_beside
        from .._owners.owners import CACHE

        refuse_beside(node, CACHE, (*allow_owners, *terms.allow_owners))
    if find_mount(tree) is None:
        raise not_mounted(tree)
    # Without the lock: mostly nothing is to be done.
    if not _followed(node, journal)[1]:
        return []
    check_mounted(tree)
    with locked(tree, exclusive=True) as directory:
        # Whoever had the lock may have changed the wish, or put everything back.
        journal = read_journal(tree)
        if journal is None:
            return []
        target, steps, new = _followed(node, journal)
        if any(not step.group for step in steps):
            # The root is written: what it was has to be known first.
            write_journal(tree, new)
        carry_out(tree, directory, steps)
        check_done(tree, target)
    return ["cache: %s" % str(step) for step in steps]


def _has_classes(tree: Tree) -> bool:
    """Return whether a container runtime, or a plugin of it, divides the caches, too."""
    # Imported here: only a pass asks it.
    from .._owners.owners import files_with_classes, goresctrl_groups

    return bool([*files_with_classes(tree), *goresctrl_groups(tree)])


def _followed(node: Node, journal: CacheJournal) -> tuple[Target, list[ResctrlStep], CacheJournal]:
    pool = pool_of(node, journal.wish, [])
    return plan_of(node, needed_resctrl(node.tree), journal.wish, pool, journal)

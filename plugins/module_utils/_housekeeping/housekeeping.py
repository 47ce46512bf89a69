# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings a node to what is wished, or puts everything back.

What is wished comes to files that keep the host's work on the reserved CPUs also after a restart of it.
"""

from __future__ import annotations

import os
import posixpath
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.command import Run, run_command
from .._base.errors import CPUManagerError, InputError, NodeError, Note, RefusedError, option
from .._base.journal_file import DIRECTORY, UNIT_DIRECTORY
from .._base.tree import OverlaidTree, Tree, own_ids
from .._cgroup.hierarchy import ROOT, Hierarchy
from .._cgroup.kubepods import Kubepods
from .._host.kernel_line import (
    NAMES,
    Argument,
    compare,
    default_features,
    parse_line,
    same_value,
    split_words,
    wanted_arguments,
)
from .._host.layers import (
    IRQBALANCE,
    MANAGER,
    SLICES,
    SYSTEMD_SLICES,
    TUNED,
    KernelSetting,
    allowed_cpus,
    banned_text,
    manager_affinity,
    read_irqbalance,
    wanted_cpus,
)
from .._host.partitions import pods_on, why_none
from .._node.node import Node, cgroup_root_of
from .._node.reserved_cpus import kubelet_reservation
from .._owners.owners import RECONCILE, Tuned, giving_policy, with_isolated
from ..cpuset import CPUSet
from .at_boot import AtBoot, boot_files, is_of_slice, slice_files
from .carry_out import HousekeepingResult, carry_out, read, with_files
from .housekeeping_journal import (
    LOAD,
    SLICE,
    HousekeepingJournal,
    HousekeepingWish,
    KeptFile,
    OwnCPUs,
    checksum,
    locked,
    read_journal,
    remove_journal,
    write_journal,
)
from .housekeeping_plan import has_place, is_of_tuned, plan_absent, plan_present
from .loader_entries import NO_LOADER
from .loaders import changes, commands, configured_line, find_loader
from .steps import (
    DAEMON_RELOAD,
    FOREIGN_NOTE,
    KERNEL_LINE,
    RESTART_IRQBALANCE,
    FileStep,
    FoundHost,
    Link,
    Step,
    ValueStep,
    WantedFile,
    WantedHost,
)
from .tuned_profile import apply_command_of, left_by_tuned

if TYPE_CHECKING:
    from .._kubelet.configuration import Configuration
    from .._owners.owners import Owner

# What is wished for a node, as its kubelet and its kernel are.


_COMMAND_LINE = "/proc/cmdline"


class KernelLine(NamedTuple):
    """The arguments that are wanted. rows: each as it is, as plain data. reboot: why the node has to be booted."""

    arguments: Sequence[Argument]
    rows: Sequence[dict[str, Any]]
    reboot: Sequence[str]


def reserved_cpus(node: Node, given: CPUSet | None) -> CPUSet:
    """Return the CPUs that are given, else those that the kubelet reserves. Raises NodeError, RefusedError for
    neither."""
    if given is not None:
        return given
    configuration = node.needed_configuration()
    found = kubelet_reservation(node, configuration).cpus
    if not found:
        raise RefusedError(
            "the kubelet reserves no CPUs, so it is not known which are the host's; nothing was written",
            # A kubelet that has only flags has no file.
            where=node.tree.root if node.config_path is None else node.tree.path(node.config_path),
            remedy="give them in %s or %s" % (option("reserved_system_cpus"), option("reservation")),
        )
    return found


def own_cpus(
    node: Node,
    configuration: Configuration | None,
    reserved: CPUSet,
    own: OwnCPUs,
    online: CPUSet,
    made: Sequence[str],
    owners: Sequence[Owner] = (),
) -> OwnCPUs:
    """Return a partition that can be, of CPUs that no pod may use.

    made: the slices that were made for one before. owners: who manages CPUs on the node.

    Raises RefusedError for what cannot be, and for CPUs that are given to pods; NodeError.
    """
    where, nothing = option("partition_cpus"), "; nothing was written"

    def refusal(what: str, remedy: str, at: str = where) -> RefusedError:
        return RefusedError(what + nothing, where=at, remedy=remedy)

    hierarchy = Hierarchy(node.tree)
    reason = why_none(hierarchy)
    if reason:
        raise refusal("partitions cannot be made: %s" % reason, "leave it out on this node")
    if not own.cpus or own.cpus - online:
        raise refusal("CPUs %s are not online" % (own.cpus - online or "(none)"), "give some of %s" % online)
    if own.cpus - reserved:
        what = "CPUs %s are not reserved, so they are the pods'" % (own.cpus - reserved)
        raise refusal(what, "give some of the reserved CPUs %s, or reserve more" % reserved)
    if not reserved & online - own.cpus:
        what = "they are all of the reserved CPUs that are online, and the host's own work would go to those of pods"
        raise refusal(what, "leave at least one of the reserved CPUs %s to the host" % reserved)
    _check_kubelet(node, configuration, own.cpus, refusal)
    _check_reconcile(node.tree, owners, refusal)
    pods = Kubepods(hierarchy, cgroup_root_of(configuration))
    held = pods_on(hierarchy, pods, own.cpus)
    if held:
        what = "CPUs %s belong to pods: %s has some of them%s" % (
            own.cpus,
            hierarchy.place(held[0]),
            ", and %d more" % (len(held) - 1) if held[1:] else "",
        )
        raise refusal(what, "give CPUs that no pod has, or drain the node first")
    is_name = SLICE.fullmatch(own.slice) and own.slice not in SYSTEMD_SLICES and own.slice not in pods.tops
    if not is_name:
        what = "%r can be no slice of its own right below the topmost one" % own.slice
        raise refusal(what, "give a name such as isolated.slice, without a dash", option("partition_slice"))
    unit = "%s/%s" % (UNIT_DIRECTORY, own.slice)
    if own.slice not in made and (own.slice in hierarchy.children(ROOT) or node.tree.exists(unit, follow=False)):
        what = "%s is there, and was not made here" % own.slice
        raise refusal(
            what, "give another name, and the services that are to run there Slice=", option("partition_slice")
        )
    return own


def _check_kubelet(
    node: Node, configuration: Configuration | None, cpus: CPUSet, refusal: Callable[[str, str], RefusedError]
) -> None:
    """Raise RefusedError where the kubelet's static policy gives some of these CPUs to pods."""
    if configuration is None or configuration.given(("cpuManagerPolicy",)).value != "static":
        return
    # Imported here: it is much, and hardly any node has a partition.
    from .._node.start_check import certain_config, predicted_starts

    config = certain_config(predicted_starts(node, {}, configuration).found)
    if cpus - config.reserved:
        what = "the kubelet gives CPUs %s to pods, as it reserves %s" % (
            cpus - config.reserved,
            config.reserved or "none",
        )
        raise refusal(what, "reserve them in the kubelet's configuration first")
    if not config.strict_reservation:
        what = "the kubelet gives the reserved CPUs also to containers without exclusive ones"
        raise refusal(what, "set strict-cpu-reservation in cpuManagerPolicyOptions first")


def _check_reconcile(tree: Tree, owners: Sequence[Owner], refusal: Callable[[str, str], RefusedError]) -> None:
    """Raise RefusedError where our own program gives CPUs out: its shared pool has reserved CPUs, too."""
    policy = giving_policy(tree) if any(owner.id == RECONCILE and owner.is_active for owner in owners) else ""
    if policy:
        raise refusal(
            "the role reconcile gives CPUs out here by its policy %s, and the reserved ones to containers without"
            " exclusive ones, too" % policy,
            "take its policy static (reconcile_policy: static) or remove it (reconcile_state: absent), or leave out %s"
            % option("partition_cpus"),
        )


def kernel_line(
    tree: Tree,
    reserved: CPUSet,
    possible: CPUSet,
    features: Sequence[str] | None,
    has_shared_pool: bool,
    is_written: bool,
) -> KernelLine:
    """Return what the kernel is to be booted with. is_written: or it is only shown.

    Raises InputError, RefusedError for what cannot be wanted, and for a node whose command line is not written here.
    """
    version = 2 if tree.exists("/sys/fs/cgroup/cgroup.controllers") else 1
    chosen = default_features(version) if features is None else features
    arguments = wanted_arguments(reserved, possible, chosen, has_shared_pool)
    loader = find_loader(tree)
    if is_written and loader.kind == NO_LOADER:
        raise RefusedError(
            "the kernel's command line cannot be written: %s; nothing was written" % loader.evidence,
            where=option("kernel_arguments"),
            remedy="leave it off, and give the kernel these arguments by your own means: %s"
            % " ".join(argument.text for argument in arguments),
        )
    booted = tree.read_value(_COMMAND_LINE) or ""
    configured: str | None = None
    try:
        configured = configured_line(tree, loader).text
    except CPUManagerError:
        if is_written:
            raise
    rows = compare(booted, configured, arguments)
    reboot = [
        "%s=%s counts from the next boot on" % (row.name, row.wanted)
        for row in rows
        if is_written and row.wanted and not same_value(row.name, row.booted, row.wanted)
    ]
    kept = {argument.name for argument in arguments if is_written}
    reboot += still_booted(tree, kept)
    return KernelLine(arguments, [row._asdict() for row in rows if row.wanted], reboot)


def waits_for_boot(tree: Tree, reserved: CPUSet) -> list[str]:
    """Return why systemd's own affinity is not what its files say, which it reads when it starts."""
    try:
        content = tree.content("/proc/1/status") or b""
    except CPUManagerError:
        return []
    for line in content.decode("ascii", "replace").splitlines():
        name, _colon, value = line.partition(":")
        if name == "Cpus_allowed_list":
            try:
                has = CPUSet.parse(value.strip())
            except InputError:
                return []
            return ["systemd itself runs on CPUs %s until the next boot" % has] if has - reserved else []
    return []


def still_booted(tree: Tree, kept: Collection[str] = ()) -> list[str]:
    """Return why a node has to be booted: the arguments of ours that its kernel has, without those that are kept."""
    try:
        words = split_words(parse_line(tree.read_value(_COMMAND_LINE) or ""))[1]
    except NodeError:
        return []
    names = [word.name for word in words if word.name in NAMES and word.name not in kept]
    return ["the kernel runs with %s until the next boot" % name for name in names]


_SYSTEMD = "/run/systemd/system"
_POSSIBLE = "/sys/devices/system/cpu/possible"
_DROP_IN = "/etc/systemd/system/%s.d/50-kubenode-housekeeping.conf"
_MANAGER_FILE = "/etc/systemd/system.conf.d/50-kubenode-housekeeping.conf"
# Of the units that can be right below the topmost cgroup, the section that has what all of them have.
_SECTIONS = {".slice": "Slice", ".scope": "Scope", ".service": "Service"}
# The empty setting takes back what other files give, which would be added.
_SETTING = "# The role housekeeping of kubenode.cpu_manager writes this file.\n[%s]\n%s=\n%s=%s\n"
_UNREAD = "housekeeping-unmeasured"


class Extras(NamedTuple):
    """What is written beside the layers. arguments: of the kernel's command line; None to leave it as it is.

    boot: how the kernel's values come back after a boot; None where they do not. runs: whether systemd and others are
    told here. tuned: what it is set to, where it is to isolate all other CPUs.
    """

    arguments: Sequence[Argument] | None = None
    boot: AtBoot | None = None
    runs: bool = False
    tuned: Tuned | None = None


def possible_cpus(tree: Tree, online: CPUSet) -> CPUSet:
    """Return all CPUs that can ever be online."""
    try:
        return CPUSet.parse(tree.read_value(_POSSIBLE) or "") | online
    except (InputError, NodeError):
        return online


def runs_systemd(tree: Tree) -> bool:
    """Return whether systemd is there to be told of changes."""
    return tree.live and os.path.isdir(_SYSTEMD)


def wanted_of(
    tree: Tree,
    wish: HousekeepingWish,
    extras: Extras,
    found: FoundHost,
    journal: HousekeepingJournal | None,
    notes: list[str],
) -> WantedHost:
    """Return what a node is to be. Raises NodeError for a file that cannot be read, RefusedError for one that is
    broken."""
    kept: Mapping[str, KeptFile] = {} if journal is None else journal.files
    files: list[WantedFile] = []
    words: list[tuple[str, ...]] = []
    if SLICES in wish.layers:
        files += _drop_ins(wish, found, journal)
        notes += _overridden(tree, wish, found, files)
        notes += _not_there(wish, found)
    if MANAGER in wish.layers:
        files += _manager(tree, wish, found, kept)
    if IRQBALANCE in wish.layers:
        files += _irqbalance(tree, wish, found, kept, notes)
    if extras.arguments is not None or _had_line(journal):
        files += _kernel_line(tree, extras.arguments)
        words += loader_commands(tree, extras.arguments, journal)
    if extras.tuned is not None:
        files += _tuned(tree, wish, found, kept, extras.tuned)
    links: Mapping[str, str] = {}
    if extras.boot is not None:
        made, links = boot_files(extras.boot, wish.layers)
        files += made
    if wish.partition is not None:
        made, own_links = slice_files(wish.partition, extras.boot is not None)
        files += made
        links = {**links, **own_links}
    # What is ours as a whole belongs to root, as systemd goes by it.
    files = [file if file.edits or file.owner else file._replace(owner=own_ids()) for file in files]
    return WantedHost(wish, files, links, words, extras.runs, apply_command_of(tree, wish, journal))


def _had_line(journal: HousekeepingJournal | None) -> bool:
    """Return whether the kernel's command line was written, or is still to be made of its files."""
    return journal is not None and (KERNEL_LINE in journal.wish.layers or LOAD in journal.pending)


def _not_there(wish: HousekeepingWish, found: FoundHost) -> list[str]:
    """Return what is excluded and cannot be; a name may be misspelled."""
    there = {setting.name for setting in found.settings if setting.layer == SLICES}
    missing = [name for name in wish.exclude_slices if name not in there]
    where = option("exclude_slices")
    return ["%s: there is no cgroup %r beside those of pods" % (where, name) for name in missing]


def loader_commands(
    tree: Tree, arguments: Sequence[Argument] | None, journal: HousekeepingJournal | None
) -> list[tuple[str, ...]]:
    """Return what makes a change of the kernel's command line count; None takes ours out."""
    is_pending = journal is not None and LOAD in journal.pending
    return [tuple(command) for command in commands(tree, find_loader(tree), arguments, is_pending)]


def unit_of(setting: KernelSetting) -> str:
    """Return the unit of systemd whose cgroup a setting is of; empty where it is none by its name."""
    unit = posixpath.basename(posixpath.dirname(setting.path))
    return unit if posixpath.splitext(unit)[1] in _SECTIONS else ""


def _drop_ins(wish: HousekeepingWish, found: FoundHost, journal: HousekeepingJournal | None) -> list[WantedFile]:
    """Return one for each unit that is to be limited, also where it is not there yet, and for each that was and is
    gone."""
    units = []
    for setting in found.settings:
        if setting.layer != SLICES or setting.problem or setting.name in wish.exclude_slices:
            continue
        saved = None if journal is None else journal.values.get(setting.path)
        is_ours = saved is not None and saved.is_ours
        if unit_of(setting) and (is_ours or wanted_cpus(setting, wish.reserved, found.online) is not None):
            units.append(unit_of(setting))
    for path, saved in ({} if journal is None else journal.values).items():
        gone = posixpath.basename(posixpath.dirname(path))
        if saved.layer == SLICES and saved.is_ours and saved.name not in wish.exclude_slices:
            units += [gone] if posixpath.splitext(gone)[1] in _SECTIONS else []
    return [
        WantedFile(SLICES, _DROP_IN % unit, _setting(_SECTIONS[posixpath.splitext(unit)[1]], "AllowedCPUs", wish))
        for unit in dict.fromkeys(units)
    ]


def _overridden(tree: Tree, wish: HousekeepingWish, found: FoundHost, files: Sequence[WantedFile]) -> Iterator[str]:
    """Yield a note on each unit to which a later file gives other CPUs, as systemd will do when it reads its files."""
    overlaid = OverlaidTree(tree, {file.path: file.content for file in files})
    for file in files:
        unit = posixpath.basename(posixpath.dirname(file.path))[: -len(".d")]
        configured = allowed_cpus(overlaid, unit)
        if configured is not None and configured.cpus is not None and (configured.cpus & found.online) - wish.reserved:
            yield Note(FOREIGN_NOTE, "%s: gives %s the CPUs %s all the same" % (configured.path, unit, configured.cpus))


def _setting(section: str, name: str, wish: HousekeepingWish) -> bytes:
    return (_SETTING % (section, name, name, wish.reserved)).encode("ascii")


def _manager(tree: Tree, wish: HousekeepingWish, found: FoundHost, kept: Mapping[str, KeptFile]) -> list[WantedFile]:
    configured = manager_affinity(tree)
    cpus = None if configured is None else configured.cpus
    if _MANAGER_FILE not in kept and cpus and cpus & found.online and cpus & found.online <= wish.reserved:
        return []
    return [WantedFile(MANAGER, _MANAGER_FILE, _setting("Manager", "CPUAffinity", wish))]


def _irqbalance(
    tree: Tree, wish: HousekeepingWish, found: FoundHost, kept: Mapping[str, KeptFile], notes: list[str]
) -> list[WantedFile]:
    irqbalance = read_irqbalance(tree)
    if irqbalance is None or not irqbalance.is_installed:
        return []
    if irqbalance.problem:
        notes.append(Note(_UNREAD, "%s: %s" % (irqbalance.source, irqbalance.problem)))
    others = found.online - wish.reserved
    banned = irqbalance.banned
    is_so = banned is not None and others <= banned and bool((found.online & wish.reserved) - banned)
    if is_so and irqbalance.file not in kept:
        return []
    if not irqbalance.file:
        notes.append(Note(_UNREAD, irqbalance.by_hand(others)))
        return []
    content = tree.content(irqbalance.file) or b""
    wanted = banned_text(content, possible_cpus(tree, found.online) - wish.reserved, irqbalance.key)
    return [WantedFile(IRQBALANCE, irqbalance.file, wanted, edits=tree.exists(irqbalance.file, follow=False))]


def _tuned(
    tree: Tree, wish: HousekeepingWish, found: FoundHost, kept: Mapping[str, KeptFile], tuned: Tuned
) -> list[WantedFile]:
    isolated = found.online - wish.reserved
    if tuned.isolated == isolated and tuned.variables not in kept:
        return []
    content = tree.content(tuned.variables)
    wanted = with_isolated(content or b"", isolated)
    return [WantedFile(TUNED, tuned.variables, wanted, edits=content is not None)]


def _kernel_line(tree: Tree, arguments: Sequence[Argument] | None) -> list[WantedFile]:
    """Return the loader's file; what is not wanted any more is put back as it was, or by its own marks."""
    if arguments is None:
        return []
    loader = find_loader(tree)
    made = changes(tree, loader, arguments)
    files = [
        WantedFile(KERNEL_LINE, tree.node_path(change.path), change.after, change.mode, edits=change.before is not None)
        for change in made
        if change.after is not None
    ]
    if not made and loader.file and tree.exists(loader.file, follow=False):
        # As it is to be already.
        files = [WantedFile(KERNEL_LINE, loader.file, tree.read_bytes(loader.file), edits=True)]
    return files


# What a housekeeping changed, as --diff shows it: each file, and all values of a layer at once. Pure.


def differences(answer: HousekeepingResult) -> list[tuple[str, str, str]]:
    """Return what it is of, what it held before, and what it holds now."""
    found: list[tuple[str, str, str]] = []
    layers = dict.fromkeys(step.layer for step in answer.steps if isinstance(step, ValueStep))
    for layer in layers:
        # Of a file that is written twice, only what it was and what it became.
        first: dict[str, ValueStep] = {}
        last: dict[str, ValueStep] = {}
        for step in answer.steps:
            if isinstance(step, ValueStep) and step.layer == layer:
                first.setdefault(step.path, step)
                last[step.path] = step
        found.append(
            (
                "CPUs of %s" % layer,
                "".join("%s: %s\n" % (step.name, step.before) for step in first.values()),
                "".join("%s: %s\n" % (step.name, step.after) for step in last.values()),
            )
        )
    return [*found, *_of_files(answer.steps)]


def _of_files(steps: Sequence[Step]) -> Iterable[tuple[str, str, str]]:
    for step in steps:
        if isinstance(step, FileStep):
            yield step.path, _text(step.before), _text(step.after)
        elif isinstance(step, Link):
            target = step.target + "\n"
            yield step.path, "" if step.is_made else target, target if step.is_made else ""


def _text(content: bytes | None) -> str:
    if content is None:
        return ""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return "sha256: %s\n" % checksum(content)


def needs_of(commands: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Return commands that are left to others, as the module returns them."""
    words = list(commands)
    others = [list(command) for command in words if not has_place(command)]
    return {
        "daemon_reload": DAEMON_RELOAD in words,
        "restart_irqbalance": RESTART_IRQBALANCE in words,
        "apply_tuned": [list(command) for command in words if is_of_tuned(command)],
        "slices": [command for command in others if is_of_slice(command)],
        "update_loader": [command for command in others if not is_of_slice(command)],
    }


# A new kernel command line is written into the configuration of each kernel.
_PATIENCE = 600.0


def present(
    tree: Tree, wish: HousekeepingWish, extras: Extras, act: bool, run: Run | None = None
) -> HousekeepingResult:
    """Bring a node to what is wished. Raises RefusedError or NodeError; before anything is written, where it can."""
    # A check writes nothing, so it waits for no other run.
    with locked(tree) if act else nullcontext():
        return _present(tree, wish, extras, act, run)


def _present(tree: Tree, wish: HousekeepingWish, extras: Extras, act: bool, run: Run | None) -> HousekeepingResult:
    journal = read_journal(tree)
    notes: list[str] = []
    found = read(tree, wish, journal)
    wanted = wanted_of(tree, wish, extras, found, journal, notes)
    found = with_files(tree, found, wanted, journal)
    plan = plan_present(found, wanted, journal)
    answer = carry_out(tree, plan._replace(notes=[*notes, *plan.notes]), wanted.runs, act, _runner(tree, run))
    if extras.tuned is None or not act or not wanted.runs:
        return answer
    return answer._replace(notes=[*answer.notes, *_left_by_tuned(tree, extras.tuned, wish, found)])


def _left_by_tuned(tree: Tree, tuned: Tuned, wish: HousekeepingWish, found: FoundHost) -> Sequence[str]:
    """Return notes on what tuned has not brought in line. The journal remembers what nobody can move, until the next
    boot."""
    journal = read_journal(tree)
    is_this_boot = journal is not None and journal.boot_id == found.boot_id
    before = journal.refused if journal is not None and is_this_boot else {}
    left = left_by_tuned(tree, tuned, wish.reserved, found.online, before)
    refused = {**before, **left.refused}
    if journal is not None and is_this_boot and refused != before:
        write_journal(tree, journal._replace(refused=refused))
    return left.notes


def absent(tree: Tree, act: bool, manage: bool = True, run: Run | None = None) -> HousekeepingResult:
    """Put everything back that the journal has. Raises as present()."""
    with locked(tree) if act and tree.exists(DIRECTORY) else nullcontext():
        return _absent(tree, act, manage, run)


def _absent(tree: Tree, act: bool, manage: bool, run: Run | None) -> HousekeepingResult:
    journal = read_journal(tree)
    if journal is None:
        if act and tree.exists(DIRECTORY):
            # A run that was killed before it had its journal has written nothing else.
            remove_journal(tree)
        return HousekeepingResult((), False, (), (), ())
    runs = manage and runs_systemd(tree)
    words = loader_commands(tree, None, journal) if _had_line(journal) else []
    found = with_files(tree, read(tree, journal.wish, journal), WantedHost(journal.wish), journal)
    apply = apply_command_of(tree, None, journal)
    return carry_out(tree, plan_absent(found, journal, words, runs, apply), runs, act, _runner(tree, run))


def _runner(tree: Tree, run: Run | None) -> Run:
    """Return what runs the commands of a plan. What does not run needs no restart, and its unit may be gone."""

    def call(words: Sequence[str]) -> str:
        if words == RESTART_IRQBALANCE:
            irqbalance = read_irqbalance(tree)
            if irqbalance is None or not irqbalance.is_running:
                return ""
        return run_command(words, _PATIENCE) if run is None else run(words)

    return call

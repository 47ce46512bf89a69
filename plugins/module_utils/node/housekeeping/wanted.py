# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that keep the host's work on the reserved CPUs also after a restart of it, as a node is to have them."""

from __future__ import annotations

import os
import posixpath
from typing import Iterator, Mapping, NamedTuple, Sequence

from ...cpuset import CPUSet
from ...errors import InputError, NodeError, Note, option
from ...host.irqbalance import banned_text, read_irqbalance
from ...host.kernel_line import Argument
from ...host.layers import IRQBALANCE, MANAGER, SLICES, TUNED, Setting, wanted_cpus
from ...host.loader.loaders import changes, commands, find_loader
from ...host.owner.tuned import Tuned, with_isolated
from ...host.slices import allowed_cpus, manager_affinity
from ...tree import OverlaidTree, Tree
from .at_boot import AtBoot, boot_files
from .journal import Journal, KeptFile, Wish
from .partition import slice_files
from .steps import FOREIGN_NOTE, KERNEL_LINE, Found, Wanted, WantedFile
from .tuned import apply_command_of

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
    """All CPUs that can ever be online."""
    try:
        return CPUSet.parse(tree.read_value(_POSSIBLE) or "") | online
    except (InputError, NodeError):
        return online


def runs_systemd(tree: Tree) -> bool:
    """Whether systemd is there to be told of changes."""
    return tree.live and os.path.isdir(_SYSTEMD)


def wanted_of(
    tree: Tree, wish: Wish, extras: Extras, found: Found, journal: Journal | None, notes: list[str]
) -> Wanted:
    """What a node is to be. Raises NodeError for a file that cannot be read, RefusedError for one that is broken."""
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
    if extras.arguments is not None or (journal is not None and KERNEL_LINE in journal.wish.layers):
        files += _kernel_line(tree, extras.arguments)
        words += loader_commands(tree, extras.arguments)
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
    return Wanted(wish, files, links, words, extras.runs, apply_command_of(tree, wish, journal))


def _not_there(wish: Wish, found: Found) -> list[str]:
    """What is excluded and cannot be; a name may be misspelled."""
    there = {setting.name for setting in found.settings if setting.layer == SLICES}
    missing = [name for name in wish.exclude_slices if name not in there]
    where = option("exclude_slices")
    return ["%s: there is no cgroup %r beside those of pods" % (where, name) for name in missing]


def loader_commands(tree: Tree, arguments: Sequence[Argument] | None) -> list[tuple[str, ...]]:
    """What makes a change of the kernel's command line count; None takes ours out."""
    return [tuple(command) for command in commands(tree, find_loader(tree), arguments)]


def unit_of(setting: Setting) -> str:
    """The unit of systemd whose cgroup a setting is of; empty where it is none by its name."""
    unit = posixpath.basename(posixpath.dirname(setting.path))
    return unit if posixpath.splitext(unit)[1] in _SECTIONS else ""


def _drop_ins(wish: Wish, found: Found, journal: Journal | None) -> list[WantedFile]:
    """One for each unit that is to be limited, also where it is not there yet, and for each that was and is gone."""
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


def _overridden(tree: Tree, wish: Wish, found: Found, files: Sequence[WantedFile]) -> Iterator[str]:
    """A note on each unit to which a later file gives other CPUs, as systemd will do when it reads its files."""
    overlaid = OverlaidTree(tree, {file.path: file.content for file in files})
    for file in files:
        unit = posixpath.basename(posixpath.dirname(file.path))[: -len(".d")]
        configured = allowed_cpus(overlaid, unit)
        if configured is not None and configured.cpus is not None and (configured.cpus & found.online) - wish.reserved:
            yield Note(FOREIGN_NOTE, "%s: gives %s the CPUs %s all the same" % (configured.path, unit, configured.cpus))


def _setting(section: str, name: str, wish: Wish) -> bytes:
    return (_SETTING % (section, name, name, wish.reserved)).encode("ascii")


def _manager(tree: Tree, wish: Wish, found: Found, kept: Mapping[str, KeptFile]) -> list[WantedFile]:
    configured = manager_affinity(tree)
    cpus = None if configured is None else configured.cpus
    if _MANAGER_FILE not in kept and cpus and cpus & found.online and cpus & found.online <= wish.reserved:
        return []
    return [WantedFile(MANAGER, _MANAGER_FILE, _setting("Manager", "CPUAffinity", wish))]


def _irqbalance(
    tree: Tree, wish: Wish, found: Found, kept: Mapping[str, KeptFile], notes: list[str]
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


def _tuned(tree: Tree, wish: Wish, found: Found, kept: Mapping[str, KeptFile], tuned: Tuned) -> list[WantedFile]:
    isolated = found.online - wish.reserved
    if tuned.isolated == isolated and tuned.variables not in kept:
        return []
    content = tree.content(tuned.variables)
    wanted = with_isolated(content or b"", isolated)
    return [WantedFile(TUNED, tuned.variables, wanted, edits=content is not None)]


def _kernel_line(tree: Tree, arguments: Sequence[Argument] | None) -> list[WantedFile]:
    """The loader's file; what is not wanted any more is put back as it was, or by its own marks."""
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

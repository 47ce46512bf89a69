# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node on which tuned sets some of the layers: whether it can be given its CPUs, and what it has left to be done."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, InputError, Note, RefusedError, option
from .._base.tree import Tree
from .._host.kernel_line import parse_line
from .._host.layers import TUNED, is_there, wanted_cpus
from .._owners import owners as host_owners
from .._owners.owners import ACTIVE_PROFILE, Tuned, isolated_in, read_tuned
from ..cpuset import CPUSet
from .carry_out import NOT_TAKEN, read_settings, set_value
from .housekeeping_journal import HousekeepingJournal, HousekeepingWish
from .steps import LEFT_TO_TUNED_NOTE, REFUSED_NOTE, TUNED_ADM, ValueStep

_COMMAND_LINE = "/proc/cmdline"
_PROGRAM_PLACES = ("/usr/sbin/", "/sbin/", "/usr/bin/")
_MOST_NAMES = 5


class Left(NamedTuple):
    """What tuned has not brought in line. refused: as Journal has it, of its layers."""

    refused: Mapping[str, str]
    notes: Sequence[str]


def layers_beside(layers: Iterable[str], tuned: Tuned | None) -> tuple[str, ...]:
    """Return those of the wished layers that tuned does not set, and TUNED where it sets any."""
    if tuned is None:
        return tuple(layers)
    return (*(layer for layer in layers if layer not in tuned.layers), TUNED)


def needed_tuned(tree: Tree, owners: Sequence[host_owners.Owner], with_arguments: bool) -> Tuned:
    """Return what tuned is set to, where its isolated CPUs can be written. with_arguments: whether the kernel's line
    is, too.

    Raises RefusedError.
    """
    tuned = read_tuned(tree)
    if tuned is None:
        raise _refusal(
            tree,
            ACTIVE_PROFILE,
            "tuned has no active profile",
            "choose one that isolates CPUs, such as with tuned-adm profile cpu-partitioning",
        )
    names, isolated = " ".join(tuned.profiles), "isolated_cores"
    if not tuned.isolates:
        what = "tuned's profile %s isolates no CPUs" % names
        remedy = "choose one that does, such as with tuned-adm profile cpu-partitioning"
        raise _refusal(tree, ACTIVE_PROFILE, what, remedy)
    if not any(owner.id == host_owners.TUNED and owner.is_active for owner in owners):
        what = "tuned does not run, nor does it start at the next boot"
        raise _refusal(tree, ACTIVE_PROFILE, what, "start it with systemctl enable --now tuned.service")
    if tuned.is_worked_out:
        what = "tuned works its isolated CPUs out itself: %s=%s" % (isolated, tuned.isolated_text)
        remedy = "write CPUs there, such as %s=2-7" % isolated
        raise _refusal(tree, tuned.variables or tuned.files[-1], what, remedy)
    if not tuned.variables:
        what = "tuned's profile %s does not take its isolated CPUs from a file of variables" % names
        remedy = (
            "have it include one, in its section variables, such as include=/etc/tuned/cpu-partitioning-variables.conf"
        )
        raise _refusal(tree, (*tuned.files[1:], ACTIVE_PROFILE)[0], what, remedy)
    if with_arguments and tuned.arguments:
        what = "tuned's profile %s gives the kernel %s itself" % (names, ", ".join(tuned.arguments))
        remedy = "leave out %s" % option("kernel_arguments")
        raise _refusal(tree, tuned.files[1], what, remedy)
    return tuned


def _refusal(tree: Tree, path: str, what: str, remedy: str) -> RefusedError:
    return RefusedError(
        "%s; nothing was written" % what,
        where=tree.path(path),
        remedy="%s; or leave out %s on this node" % (remedy, option("tuned")),
    )


def apply_command(tuned: Tuned) -> tuple[str, ...]:
    """Return what has tuned read its files again and apply the profile that it has; it fails where tuned does.

    A restart of its service would end well also where the profile could not be applied. "auto" is not to become
    "manual" by it.
    """
    return (TUNED_ADM, "auto_profile") if tuned.mode == "auto" else (TUNED_ADM, "profile", *tuned.profiles)


def apply_command_of(tree: Tree, wish: HousekeepingWish | None, journal: HousekeepingJournal | None) -> tuple[str, ...]:
    """Return what has tuned apply its profile, where a file of it is wished, or was written; empty where it has
    none."""
    if not any(of is not None and TUNED in of.layers for of in (wish, None if journal is None else journal.wish)):
        return ()
    tuned = read_tuned(tree)
    # Debian leaves its files behind when tuned itself is removed.
    is_gone = tree.live and not any(is_there(tree, place + TUNED_ADM) for place in _PROGRAM_PLACES)
    return () if tuned is None or is_gone else apply_command(tuned)


def left_by_tuned(tree: Tree, tuned: Tuned, reserved: CPUSet, online: CPUSet, before: Mapping[str, str]) -> Left:
    """Return what may run on other CPUs after tuned has applied its profile: what nobody can move, and what it has
    left.

    A write of what an interrupt has already tells whether it can be moved. before: what the kernel has refused so far,
    as Journal has it, which is not tried again. Raises NodeError.
    """
    refused: dict[str, str] = {}
    names: dict[tuple[str, str], list[str]] = {}
    for setting in read_settings(tree, tuned.layers):
        if setting.problem or wanted_cpus(setting, reserved, online) is None:
            continue
        layer, path, text = setting.layer, setting.path, setting.text
        problem = before.get(path) or set_value(tree, ValueStep(layer, setting.name, path, text, text, setting.form))
        if problem == "":
            continue  # it is gone
        if problem == NOT_TAKEN:
            problem = None  # somebody else has changed it meanwhile
        if problem is not None:
            refused[path] = problem
        names.setdefault((layer, problem or ""), []).append(setting.name)
    return Left(refused, [_note(layer, problem, of) for (layer, problem), of in names.items()])


def _note(layer: str, problem: str, names: Sequence[str]) -> str:
    more = " and %d more" % (len(names) - _MOST_NAMES) if len(names) > _MOST_NAMES else ""
    shown = ", ".join(names[:_MOST_NAMES]) + more
    if problem:
        text = "%s: the kernel refuses tuned to move %s (%s), which may run elsewhere"
        return Note(REFUSED_NOTE, text % (layer, shown, problem))
    text = "%s: tuned has left %s, which may run elsewhere; its log says why, /var/log/tuned/tuned.log"
    return Note(LEFT_TO_TUNED_NOTE, text % (layer, shown))


def isolated_before(journal: HousekeepingJournal) -> CPUSet | None:
    """Return the CPUs that tuned isolated before they were written; None where that is not known."""
    for kept in journal.files.values():
        if kept.layer == TUNED:
            return isolated_in(kept.before.content or b"")
    return None


def tuned_waits_for_boot(tree: Tree, isolated: CPUSet | None) -> list[str]:
    """Return why the node has to be booted: arguments of the kernel that tuned gives, for these CPUs."""
    tuned = read_tuned(tree)
    if tuned is None or not isolated or not tuned.arguments:
        return []
    try:
        booted = parse_line(tree.read_value(_COMMAND_LINE) or "")
    except CPUManagerError:
        return []
    values = {word.name: word.value for word in booted}
    waiting = [name for name in tuned.arguments if _cpus_in(values.get(name) or "") != isolated]
    if not waiting:
        return []
    return ["tuned gives the kernel %s for CPUs %s, which count from the next boot on" % (", ".join(waiting), isolated)]


def _cpus_in(value: str) -> CPUSet | None:
    """Return the CPUs of an argument, behind its flags, as "managed_irq,domain,2-7"."""
    words = value.split(",")
    while words and words[0][:1].isalpha():
        del words[0]
    try:
        return CPUSet.parse(",".join(words))
    except InputError:
        return None

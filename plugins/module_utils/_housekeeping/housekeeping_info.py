# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the host's own work may run, against the CPUs that are reserved for it. It only reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, InputError, NodeError, Note, RefusedError, noted
from .._base.journal_file import HOUSEKEEPING
from .._base.tree import Tree
from .._cgroup.hierarchy import Hierarchy
from .._cgroup.kubepods import Kubepods
from .._host.layers import (
    FIXED,
    MANAGER,
    REFUSED,
    RPS,
    TUNED,
    UNITS,
    UNREADABLE,
    Irqbalance,
    KernelSetting,
    allowed_cpus,
    manager_affinity,
    parsed,
    read_cpus,
    read_interrupts,
    read_irqbalance,
    read_later_slices,
    read_rps,
    read_slices,
    read_watchdog,
    read_workqueues,
    shown,
    text_at,
)
from .._host.partitions import ISOLATED, Partition, owned_cpus, read_partitions
from .._node.node import cgroup_root_of
from .._node.owners_found import owners_of
from .._node.reserved_cpus import HostReservation, kubelet_reservation
from .._owners.conflicts import contradictions
from .._owners.owners import CRIO_INTERRUPTS, read_tuned
from ..cpuset import CPUSet
from .host_findings import (
    ELSEWHERE,
    NOT_LASTING,
    HostCPUs,
    irqbalance_findings,
    lasting_findings,
    layer_findings,
    manager_findings,
    partition_findings,
    tuned_findings,
)

if TYPE_CHECKING:
    from .._host.kernel_line import Argument, ArgumentRow
    from .._host.systemd import ConfiguredCPUs
    from .._kubelet.configuration import Configuration
    from .._node.node import Node
    from .._owners.conflicts import Contradiction
    from .._owners.owners import Owner, Tuned
    from .unkept import LastRun


# The kernel's command line of a node as it was booted, against what is configured for the next time. It only reads.


NOT_BOOTED = "kernel-line-not-booted"
ODD = "kernel-line-odd"
NO_LOADER = "none"
_BOOTED = "/proc/cmdline"
# Where a loader has something, or what says that it is none of the node's own.
_LOADERS = (
    "/boot/grub",
    "/boot/grub2",
    "/boot/loader",
    "/boot/efi",
    "/efi",
    "/run/ostree-booted",
    "/etc/kernel/cmdline",
)
# What the arguments that are looked at have in them.
_NAMES = ("irqaffinity", "rcu_nocbs", "nohz_full", "isolcpus", "cpu_affinity", "kthread_cpus")


class Boot(NamedTuple):
    """shown: plain data for the answer. findings: arguments that wait for a boot. notes: what is odd about the line."""

    shown: dict[str, Any]
    findings: list[dict[str, str]]
    notes: list[str]


class BootTerms(NamedTuple):
    """What a line is compared with. reserved: empty where it is not known.

    has_pods: whether a kubelet has pods there. version: of cgroups. written: the arguments that the role housekeeping
    has written.
    """

    reserved: CPUSet
    possible: CPUSet
    has_pods: bool
    version: int
    written: Sequence[str] = ()


def read_boot(tree: Tree, terms: BootTerms, unmeasured: str) -> Boot:
    """Compare the kernel's command line, as booted and as configured, with the wish. unmeasured: the check of a note
    on what cannot be read."""
    notes: list[str] = []
    try:
        booted = tree.read_value(_BOOTED) or ""
        loaders = any(tree.exists(place) for place in _LOADERS)
    except CPUManagerError as error:
        notes.append(Note(unmeasured, "the kernel's command line is not known: %s" % error))
        booted, loaders = "", False
    if not loaders and not terms.written and not any(name in booted.replace("-", "_") for name in _NAMES):
        return Boot(_answer((), NO_LOADER, "", "nothing is there that starts a kernel"), [], notes)
    # Imported here: a node that something else starts, such as a virtual machine's host, needs none of it.
    from .._host.kernel_line import compare, line_problems
    from .loader_entries import ConfiguredLine
    from .loaders import configured_line, find_loader

    loader, configured = NO_LOADER, ConfiguredLine(None)
    try:
        found = find_loader(tree)
        loader, configured = found.kind, configured_line(tree, found)
    except CPUManagerError as error:
        notes.append(Note(unmeasured, "what the kernel's command line will be is not known: %s" % error))
    rows = compare(booted, configured.text, _wanted(terms))
    if terms.reserved:
        notes += [Note(ODD, text) for text in line_problems(booted, terms.reserved, terms.possible, terms.has_pods)]
    if configured.text is None:
        # What is not known is not compared.
        return Boot(_answer(rows, loader, configured.where, configured.problem), [], notes)
    findings = [
        {
            "check": NOT_BOOTED,
            "subject": row.name,
            "wanted": _shown(row.name, row.configured),
            "found": _shown(row.name, row.booted),
            "remedy": "boot the node again, once its pods are elsewhere",
        }
        for row in rows
        if booted and row.needs_reboot
    ]
    findings += [
        {
            "check": NOT_LASTING,
            "subject": row.name,
            "wanted": _shown(row.name, row.wanted),
            "found": "%s at the next boot" % _shown(row.name, row.configured),
            "remedy": "run the role housekeeping again, which has written it",
        }
        for row in rows
        if terms.written and row.wanted and row.needs_change
    ]
    return Boot(_answer(rows, loader, configured.where, configured.problem), findings, notes)


def _wanted(terms: BootTerms) -> Sequence[Argument]:
    """Return the arguments that were written, else those that would be by default."""
    from .._host.kernel_line import Argument, default_features, wanted_arguments

    if terms.written:
        return [Argument(name, value, "") for name, _equals, value in (text.partition("=") for text in terms.written)]
    try:
        return wanted_arguments(terms.reserved, terms.possible, default_features(terms.version), terms.has_pods)
    except CPUManagerError:  # nothing is reserved, or all
        return ()


def _answer(rows: Sequence[ArgumentRow], loader: str, where: str, problem: str) -> dict[str, Any]:
    return {
        "arguments": [
            {"name": row.name, "booted": row.booted, "configured": row.configured, "wanted": row.wanted or None}
            for row in rows
        ],
        "loader": loader,
        "configured_in": where,
        "problem": problem,
    }


def _shown(name: str, value: str | None) -> str:
    return "no %s" % name if value is None else "%s=%s" % (name, value) if value else name


UNMEASURED = "housekeeping-unmeasured"
_CPU = "/sys/devices/system/cpu/"
_FIRST_PROCESS = "/proc/1/status"
# Interrupts of one node; those that may be handled elsewhere come first.
MOST_INTERRUPTS = 256
# Settings that cannot be read, in one note.
_MOST_SHOWN = 5


def housekeeping(node: Node, reserved: CPUSet | None) -> dict[str, Any]:
    """Return what each layer of the host has, and is to have; see the module housekeeping_info for the shape.

    reserved: the CPUs for the host; None for those that the kubelet is configured to reserve. Raises NodeError where
    reading takes more rights.
    """
    tree = node.tree
    notes: list[str] = []
    online = read_cpus(tree, _CPU + "online") or node.topology.online
    configuration, problem = node.found()
    last_run = _last_run(tree, notes)
    reservation = HostReservation(CPUSet() if reserved is None else reserved, "options")
    if reserved is None:
        reservation = _reservation(node, configuration, problem, last_run, notes)
    hosts = reservation.cpus if last_run is None else last_run.narrowed(reservation.cpus)
    chosen = HostCPUs(hosts & online, online) if hosts & online else None
    if chosen is None:
        why = "CPUs %s are not online" % reservation.cpus if reservation.cpus else "no CPUs are reserved"
        notes.append(Note(UNMEASURED, "%s: what the host may use cannot be compared with them" % why))
    hierarchy = _hierarchy(node, notes)
    slices, later = _slices(hierarchy, cgroup_root_of(configuration), last_run, notes)
    isolated_now, partitions = (None, ()) if hierarchy is None else _partitions(hierarchy, notes)
    interrupts = read_interrupts(tree)
    others = [*read_workqueues(tree), *read_rps(tree), *read_watchdog(tree), *slices]
    if last_run is not None:
        interrupts, others = last_run.marked(interrupts), last_run.marked(others)
    owners = owners_of(node, configuration)
    tuned = _active_tuned(tree, owners)
    chosen = _with_wishes(chosen, last_run, tuned)
    notes += _unreadable([*interrupts, *others])
    irqbalance = read_irqbalance(tree)
    if irqbalance is not None and irqbalance.problem:
        notes.append(Note(UNMEASURED, "%s: %s" % (tree.path(irqbalance.source), irqbalance.problem)))
    configured = {
        setting.name: allowed_cpus(tree, setting.name)
        for setting in (*slices, *later)
        if setting.problem != FIXED and setting.name.endswith(UNITS)
    }
    affinity, isolated, manager = _affinity(tree), _isolated(tree), manager_affinity(tree)
    has_manager = hierarchy is None or hierarchy.version == 1 or (chosen is not None and MANAGER in chosen.layers)
    findings: list[dict[str, str]] = []
    if chosen is not None:
        findings = layer_findings([*interrupts, *others], chosen, _managed(tree))
        if has_manager:
            findings += manager_findings(affinity, chosen, manager)
        by_crio = any(owner.id == CRIO_INTERRUPTS and owner.is_active for owner in owners)
        findings += irqbalance_findings(irqbalance, isolated["isolated"] | isolated["nohz_full"], chosen, by_crio)
        findings += lasting_findings(slices, configured, chosen, later)
        findings = _with_tuned(findings, tuned, chosen)
    findings += partition_findings(partitions or ())
    if last_run is not None:
        from .unkept import unkept_findings

        findings += unkept_findings(tree, last_run, partitions)
    # The host keeps off the reserved CPUs that are a partition's, too.
    hosts -= owned_cpus(partitions or ())
    boot = read_boot(
        tree,
        BootTerms(
            hosts,
            read_cpus(tree, _CPU + "possible") or online,
            configuration is not None,
            2 if hierarchy is None else hierarchy.version,
            () if last_run is None else last_run.wish.arguments,
        ),
        UNMEASURED,
    )
    disputes = _disputes(owners)
    notes += [
        *boot.notes,
        *_lost_affinity(affinity, manager),
        *(Note("two-owners", "%s; %s" % (found.text(), found.remedy)) for found in disputes),
    ]
    rows = [_row(setting, chosen) for setting in interrupts]
    rows.sort(key=lambda row: (row["wanted"] is None, not row["problem"]))
    return {
        "reserved": str(reservation.cpus),
        "reserved_source": reservation.source,
        "online": str(online),
        "layers": [_row(setting, chosen) for setting in others if _is_shown(setting)],
        "interrupts": rows[:MOST_INTERRUPTS],
        "interrupts_left_out": len(rows[MOST_INTERRUPTS:]),
        "systemd": {
            "affinity": None if affinity is None else str(affinity),
            "manager": _configured(manager),
            "units": {unit: _configured(found) for unit, found in configured.items()},
            "wanted": _wanted_of_systemd(manager, configured, chosen, has_manager),
        },
        "partitions": _shown_partitions(isolated_now, partitions or ()),
        "irqbalance": None if irqbalance is None else _irqbalance(irqbalance, chosen, online),
        "tuned": None if tuned is None else _tuned(tuned, chosen),
        "kernel": {**boot.shown, **{name: str(cpus) for name, cpus in isolated.items()}},
        "owners": [owner.to_dict() for owner in owners],
        "contradictions": [found.to_dict() for found in disputes],
        "findings": [*findings, *boot.findings],
        **noted(notes),
    }


def _lost_affinity(affinity: CPUSet | None, manager: ConfiguredCPUs | None) -> list[str]:
    """Return where the first process, which does not change its own, has more CPUs than systemd was to give it."""
    if affinity is None or manager is None or manager.cpus is None or not affinity - manager.cpus:
        return []
    text = (
        "%s gives systemd CPUAffinity=%s, and it may use %s: it was started before that, or cgroups took it back, as"
        " version 2 does before Linux 6.2 when a kubelet turns the controller cpuset on; AllowedCPUs= of units lasts"
    )
    return [Note(UNMEASURED, text % (manager.path, manager.cpus, affinity))]


def _managed(tree: Tree) -> CPUSet:
    """Return the CPUs for which the kernel was booted with managed_irq."""
    line = text_at(tree, _BOOTED)
    if "managed_irq" not in line:
        return CPUSet()
    # Imported here: hardly any node is booted so.
    from .._host.kernel_line import managed_on

    return managed_on(line)


def _disputes(owners: Sequence[Owner]) -> Sequence[Contradiction]:
    if len(owners) < 2:
        return ()
    return contradictions(owners)


# --- what is reserved --------------------------------------------------------------------------------------


def _last_run(tree: Tree, notes: list[str]) -> LastRun | None:
    """Return what the role housekeeping was to bring this node to; None where it was not here."""
    try:
        if not tree.exists(HOUSEKEEPING, follow=False):
            return None
        # Imported here: only a node that has a journal needs it.
        from .unkept import read_last_run

        return read_last_run(tree)
    except (NodeError, RefusedError) as error:
        notes.append(Note(UNMEASURED, "what the role housekeeping has brought here is not known: %s" % error))
        return None


def _reservation(
    node: Node,
    configuration: Configuration | None,
    problem: NodeError | None,
    last_run: LastRun | None,
    notes: list[str],
) -> HostReservation:
    """Return what the kubelet is configured to reserve, else what the role housekeeping was given."""
    found = _kubelet_reservation(node, configuration, problem, notes)
    if found.cpus or last_run is None:
        return found
    return HostReservation(last_run.reserved, node.tree.path(HOUSEKEEPING))


def _kubelet_reservation(
    node: Node, configuration: Configuration | None, problem: NodeError | None, notes: list[str]
) -> HostReservation:
    if problem is not None:
        notes.append(Note(UNMEASURED, "what the kubelet reserves is not known: %s" % problem))
    try:
        return HostReservation(CPUSet(), "") if configuration is None else kubelet_reservation(node, configuration)
    except CPUManagerError as error:
        notes.append(Note(UNMEASURED, "what the kubelet reserves is not known: %s" % error))
        return HostReservation(CPUSet(), "")


# --- what is there -----------------------------------------------------------------------------------------


def _hierarchy(node: Node, notes: list[str]) -> Hierarchy | None:
    try:
        return Hierarchy(node.tree)
    except NodeError as error:
        # Of a saved node without cgroups there is nothing to say.
        if node.tree.live or node.tree.exists("/sys/fs/cgroup"):
            notes.append(Note(UNMEASURED, "on which CPUs services may run is not known: %s" % error))
        return None


def _slices(
    hierarchy: Hierarchy | None, cgroup_root: str, last_run: LastRun | None, notes: list[str]
) -> tuple[list[KernelSetting], list[KernelSetting]]:
    """Return the slices of the host, and those that systemd makes later, where these are to keep to the reserved
    CPUs."""
    if hierarchy is None:
        return [], []
    try:
        pods = Kubepods(hierarchy, cgroup_root).tops
    except InputError as error:
        notes.append(Note(UNMEASURED, "the cgroup of all pods is not known: %s" % error))
        pods = Kubepods(hierarchy).tops
    slices = read_slices(hierarchy.tree, hierarchy, pods)
    if last_run is None:
        return slices, []
    later = read_later_slices(hierarchy.tree, hierarchy, pods) if last_run.has_slices() else []
    return last_run.of_host(slices), later


def _partitions(hierarchy: Hierarchy, notes: list[str]) -> tuple[str | None, Sequence[Partition] | None]:
    """Return the isolated CPUs, None where the kernel does not show them, and the partitions, None where they are
    unknown."""
    isolated = read_cpus(hierarchy.tree, "%s/%s" % (hierarchy.mount, ISOLATED))
    try:
        return None if isolated is None else str(isolated), read_partitions(hierarchy)
    except (NodeError, RefusedError) as error:
        notes.append(Note(UNMEASURED, "the partitions of cgroups are not known: %s" % error))
        return None if isolated is None else str(isolated), None


def _shown_partitions(isolated: str | None, partitions: Sequence[Partition]) -> dict[str, Any] | None:
    """Return None where the kernel shows none."""
    if isolated is None and not partitions:
        return None
    cgroups = [
        {
            "cgroup": shown(os.fsencode(part.path)),
            "kind": part.kind,
            "cpus": str(part.effective or CPUSet()),
            "problem": part.problem,
        }
        for part in partitions
    ]
    return {"isolated": isolated or "", "cgroups": cgroups}


def _affinity(tree: Tree) -> CPUSet | None:
    """Return the CPUs that the first process may use; None where that is not known."""
    try:
        for line in (tree.content(_FIRST_PROCESS) or b"").decode("ascii", "replace").splitlines():
            if line.startswith("Cpus_allowed_list:"):
                return parsed(line.partition(":")[2].strip())
    except CPUManagerError:
        pass
    return None


def _active_tuned(tree: Tree, owners: Sequence[Owner]) -> Tuned | None:
    """Return what tuned is set to; None where it does not run, or isolates nothing."""
    if not any(owner.id == TUNED and owner.is_active for owner in owners):
        return None
    return read_tuned(tree)


def _with_wishes(chosen: HostCPUs | None, last_run: LastRun | None, tuned: Tuned | None) -> HostCPUs | None:
    """Return the CPUs with what the role housekeeping was to bring here, and with what it has left to tuned."""
    if chosen is None or last_run is None:
        return chosen
    layers = last_run.wish.layers
    if tuned is not None and TUNED in layers:
        layers += tuned.layers
    return chosen._replace(layers=layers, exclude_slices=last_run.wish.exclude_slices)


def _with_tuned(findings: list[dict[str, str]], tuned: Tuned | None, reserved: HostCPUs) -> list[dict[str, str]]:
    """Return the findings, and those on what tuned is set to. Where the role has given it its CPUs, it has to bring
    its own layers in line."""
    if tuned is None:
        return findings
    if TUNED in reserved.layers:
        from .tuned_profile import apply_command

        remedy = "have tuned apply its profile again: %s" % " ".join(apply_command(tuned))
        its = [found for found in findings if found["subject"] in tuned.layers and found["check"] == ELSEWHERE]
        findings = [{**found, "remedy": remedy} if found in its else found for found in findings]
    return [*findings, *tuned_findings(tuned, reserved)]


def _isolated(tree: Tree) -> dict[str, CPUSet]:
    """Return the CPUs that the running kernel was booted to isolate."""
    # A kernel that could and does not says "(null)".
    return {name: read_cpus(tree, _CPU + name) or CPUSet() for name in ("isolated", "nohz_full")}


def _unreadable(settings: Sequence[KernelSetting]) -> list[str]:
    paths = [setting.path for setting in settings if setting.problem == UNREADABLE]
    if not paths:
        return []
    shown = ", ".join(paths[:_MOST_SHOWN])
    more = " and %d more" % (len(paths) - _MOST_SHOWN) if len(paths) > _MOST_SHOWN else ""
    return [Note(UNMEASURED, "cannot be read as CPUs: %s%s" % (shown, more))]


# --- the answer --------------------------------------------------------------------------------------------


def _is_shown(setting: KernelSetting) -> bool:
    """Return whether a setting is shown, unlike the many queues of devices whose packets stay where they are."""
    return setting.layer != RPS or bool(setting.cpus) or bool(setting.problem)


def _row(setting: KernelSetting, reserved: HostCPUs | None) -> dict[str, Any]:
    wanted = None if reserved is None or setting.problem in (FIXED, REFUSED) else reserved.wanted(setting)
    return {
        "layer": setting.layer,
        "name": setting.name,
        "path": setting.path,
        "wanted": None if wanted is None else str(wanted),
        "found": None if setting.cpus is None else str(setting.cpus),
        "effective": None if setting.effective is None else str(setting.effective),
        "problem": setting.problem,
    }


def _wanted_of_systemd(
    manager: ConfiguredCPUs | None,
    units: Mapping[str, ConfiguredCPUs | None],
    reserved: HostCPUs | None,
    has_manager: bool,
) -> dict[str, Any]:
    """Return what the files of systemd are to say; None where they may stay as they are."""

    def wanted(found: ConfiguredCPUs | None, is_free: bool) -> str | None:
        return None if reserved is None or is_free or reserved.holds(found) else str(reserved.kept)

    excluded = () if reserved is None else reserved.exclude_slices
    return {
        "manager": wanted(manager, not has_manager),
        "units": {unit: wanted(found, unit in excluded) for unit, found in units.items()},
    }


def _configured(found: ConfiguredCPUs | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"cpus": None if found.cpus is None else str(found.cpus), "path": found.path}


def _irqbalance(irqbalance: Irqbalance, reserved: HostCPUs | None, online: CPUSet) -> dict[str, Any]:
    return {
        "file": irqbalance.source,
        "variable": irqbalance.key,
        "banned": None if irqbalance.banned is None else str(irqbalance.banned & online),
        "wanted": None if reserved is None else str(reserved.online - reserved.kept),
        "installed": irqbalance.is_installed,
        "running": irqbalance.is_running,
    }


def _tuned(tuned: Tuned, reserved: HostCPUs | None) -> dict[str, Any]:
    return {
        "profiles": list(tuned.profiles),
        "file": tuned.variables,
        "isolated": None if tuned.isolated is None else str(tuned.isolated),
        "wanted": None if reserved is None else str(reserved.online - reserved.kept),
        "layers": list(tuned.layers),
    }

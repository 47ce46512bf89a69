# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a host may run on CPUs that are not reserved. Pure.

A finding is {"check", "subject", "wanted", "found", "remedy"}, all texts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Collection, Iterable, Mapping, NamedTuple, Sequence

from .._host.layers import (
    FIXED,
    INTERRUPTS,
    IRQBALANCE,
    MANAGER,
    REFUSED,
    RPS,
    SLICES,
    TUNED,
    UNITS,
    UNREADABLE,
    WATCHDOG,
    WORKQUEUES,
    Irqbalance,
    KernelSetting,
    shown,
    wanted_cpus,
)
from .._host.partitions import Partition
from .._host.systemd import ConfiguredCPUs
from ..cpuset import CPUSet

if TYPE_CHECKING:
    from .._owners.owners import Tuned

ELSEWHERE = "host-on-exclusive-cpus"
NOT_MOVABLE = "interrupts-not-movable"
NOT_LASTING = "housekeeping-not-lasting"
NO_PARTITION = "partition-invalid"
_IMMOVABLE = (FIXED, REFUSED)
# Of many, how many are named.
_MOST_IN_FINDING = 5
_ROLE = "run the role housekeeping"
_REMEDY_REFUSED = "do what the kernel's error says, which the role housekeeping has in its notes; it tries again"
_REMEDY_MANAGED = (
    "the node is booted with isolcpus=managed_irq and these CPUs, which holds only where a queue has a reserved CPU,"
    " too: give the device fewer queues"
)
_REMEDY_BESIDE_CRIO = (
    "CRI-O writes %s for pods with irq-load-balancing.crio.io, and puts back what it found when it started: correct the"
    " file and restart CRI-O, or remove the annotation from allowed_annotations in its configuration and %s"
)
_REMEDY_NOT_MOVABLE = (
    "boot with isolcpus=managed_irq and the CPUs that are not reserved, which holds where a queue has a reserved CPU"
    " too, or give the device fewer queues"
)
# Of those that are FIXED, and of those that are REFUSED.
_NOT_MOVABLE_TEXTS = (
    "the kernel manages %d of %d itself, on others too: %s",
    "the kernel refuses to move %d of %d, on others too: %s",
)
_REMEDIES = {
    SLICES: "%s, which sets AllowedCPUs= of these units" % _ROLE,
    INTERRUPTS: "%s, which writes their CPUs into /proc/irq" % _ROLE,
    WORKQUEUES: "%s, which writes the CPUs of all unbound workqueues" % _ROLE,
    RPS: "%s, which takes the other CPUs out of the masks" % _ROLE,
    WATCHDOG: "%s, which writes kernel.watchdog_cpumask" % _ROLE,
}
_WORK = {
    SLICES: "host's processes run",
    INTERRUPTS: "interrupts are handled",
    WORKQUEUES: "workqueues run",
    RPS: "received packets are worked on",
    WATCHDOG: "the kernel looks for lockups",
}


class HostCPUs(NamedTuple):
    """The reserved CPUs that are online, and all that are.

    layers: those that are wished for this node. exclude_slices: the names of slices that are to keep their CPUs.
    """

    kept: CPUSet
    online: CPUSet
    layers: Collection[str] = ()
    exclude_slices: Collection[str] = ()

    def wanted(self, setting: KernelSetting) -> CPUSet | None:
        """Return which CPUs a setting is to have; None where it may stay as it is, or cannot be judged."""
        # Where nobody wishes otherwise, it may look for lockups everywhere.
        is_free = setting.layer == WATCHDOG and WATCHDOG not in self.layers
        is_excluded = setting.layer == SLICES and setting.name in self.exclude_slices
        if is_free or is_excluded or setting.problem == UNREADABLE:
            return None
        return wanted_cpus(setting, self.kept, self.online)

    def holds(self, configured: ConfiguredCPUs | None) -> bool:
        """Return whether what files give a unit is within the reserved CPUs."""
        cpus = None if configured is None else configured.cpus
        return cpus is not None and cpus & self.online <= self.kept

    def is_elsewhere(self, setting: KernelSetting) -> bool:
        """Return whether the work of a setting may be done on other CPUs."""
        if self.wanted(setting) is None:
            return False
        # What the kernel makes of it counts where nobody but itself can change that.
        if setting.effective is not None and (setting.layer == WORKQUEUES or setting.problem in _IMMOVABLE):
            return bool(setting.effective & self.online - self.kept)
        return True


def layer_findings(
    settings: Sequence[KernelSetting], reserved: HostCPUs, managed: CPUSet = CPUSet()
) -> list[dict[str, str]]:
    """Return for each layer a finding on the settings that may be changed, and one on interrupts that may not.

    managed: the CPUs for which the kernel was booted with managed_irq.
    """
    found = []
    for layer, work in _WORK.items():
        of_layer = [setting for setting in settings if setting.layer == layer]
        elsewhere = [setting for setting in of_layer if reserved.is_elsewhere(setting)]
        fixed, refused = ([setting for setting in elsewhere if setting.problem == kind] for kind in _IMMOVABLE)
        movable = [setting for setting in elsewhere if not setting.problem]
        if layer != INTERRUPTS:
            movable += refused
        wanted = "%s on the reserved CPUs %s only" % (work, reserved.kept)
        if movable:
            what = "%d of %d may run elsewhere: %s" % (len(movable), len(of_layer), _shown_settings(movable))
            remedy = _REMEDIES[layer] if len(movable) > len(refused) or layer == INTERRUPTS else _REMEDY_REFUSED
            remedy += _on_slices(movable, reserved) if layer == SLICES else ""
            found.append(finding(ELSEWHERE, layer, wanted, what, remedy))
        if layer == INTERRUPTS and (fixed or refused):
            what = "; ".join(
                text % (len(some), len(of_layer), _shown_settings(some))
                for text, some in zip(_NOT_MOVABLE_TEXTS, (fixed, refused))
                if some
            )
            is_booted = reserved.online - reserved.kept <= managed
            remedy = _REMEDY_MANAGED if is_booted else _REMEDY_NOT_MOVABLE
            found.append(finding(NOT_MOVABLE, layer, wanted, what, remedy))
    return found


def _on_slices(settings: Sequence[KernelSetting], reserved: HostCPUs) -> str:
    """Return what to know of slices before the role changes them: some are no units, and some have CPUs for a
    purpose."""
    others = [setting.name for setting in settings if not setting.name.endswith(UNITS)]
    fenced = [setting.name for setting in settings if setting.cpus and setting.cpus.isdisjoint(reserved.kept)]
    text = ""
    if others:
        text += (
            "; systemd does not have %s: there it writes the cpuset alone, and what makes the cgroup can undo that"
            " (Kata Containers: sandbox_cgroup_only = true puts the threads into the pod's cgroup)" % ", ".join(others)
        )
    if fenced:
        text += (
            "; first decide on %s: what is to keep its CPUs there, as virtual machines, needs them reserved"
            " (reserved_system_cpus), or named in housekeeping_exclude_slices" % ", ".join(fenced)
        )
    return text


def manager_findings(
    affinity: CPUSet | None, reserved: HostCPUs, configured: ConfiguredCPUs | None = None
) -> list[dict[str, str]]:
    """Return where the cgroups of services have no CPUs of their own, or this layer is wished.

    affinity: that of the first process. configured: what the files of systemd give it.
    """
    wanted = "services run on the reserved CPUs %s only" % reserved.kept
    is_configured = reserved.holds(configured)
    if affinity is not None and affinity & reserved.online - reserved.kept:
        remedy = "boot the node again, once its pods are elsewhere: systemd reads CPUAffinity= when it starts"
        if not is_configured:
            remedy = (
                "%s, which sets CPUAffinity= of systemd, and boot again; or use version 2 of cgroups, where slices"
                " have CPUs of their own" % _ROLE
            )
        return [finding(ELSEWHERE, MANAGER, wanted, "systemd and what it starts may use CPUs %s" % affinity, remedy)]
    if MANAGER in reserved.layers and not is_configured:
        found = "no file of systemd gives it these CPUs when it starts again"
        return [finding(NOT_LASTING, MANAGER, wanted, found, "%s with the layer manager" % _ROLE)]
    return []


def irqbalance_findings(
    irqbalance: Irqbalance | None, isolated: CPUSet, reserved: HostCPUs, beside_crio: bool = False
) -> list[dict[str, str]]:
    """Return the finding on irqbalance, if there is one. isolated: the CPUs that it leaves alone where nothing is
    configured. beside_crio: whether CRI-O writes its file, too."""
    if irqbalance is None or not irqbalance.is_running or irqbalance.problem:
        return []
    banned = isolated if irqbalance.banned is None else irqbalance.banned
    wanted = reserved.online - reserved.kept
    if wanted <= banned:
        return []
    remedy = irqbalance.by_hand(wanted)
    if irqbalance.file:
        remedy = "%s, which writes %s into %s" % (_ROLE, irqbalance.key, irqbalance.file)
        remedy = _REMEDY_BESIDE_CRIO % (irqbalance.file, remedy) if beside_crio else remedy
    return [
        finding(
            ELSEWHERE,
            IRQBALANCE,
            "it puts no interrupt on CPUs %s" % wanted,
            "it runs, and may put interrupts on CPUs %s" % (wanted - banned),
            remedy,
        )
    ]


def tuned_findings(tuned: Tuned, reserved: HostCPUs) -> list[dict[str, str]]:
    """Return where tuned, which is active, sets its layers for other CPUs than those that are not reserved."""
    others = reserved.online - reserved.kept
    isolated = tuned.isolated
    wanted = "tuned isolates CPUs %s" % others
    remedy = "give tuned's profile %s these CPUs" % " ".join(tuned.profiles)
    if tuned.variables:
        remedy = "%s with housekeeping_tuned: true, which writes isolated_cores into %s" % (_ROLE, tuned.variables)
    if isolated is not None and others - isolated:
        found = "it isolates CPUs %s, and may put the host's work on CPUs %s" % (isolated, others - isolated)
        return [finding(ELSEWHERE, TUNED, wanted, found, remedy)]
    if TUNED in reserved.layers and isolated != others:
        # It was written, and is to be so after the next start of tuned, too.
        found = "isolated_cores is %s" % (tuned.isolated_text or "not set")
        return [finding(NOT_LASTING, TUNED, wanted, found, remedy)]
    return []


def lasting_findings(
    settings: Iterable[KernelSetting],
    configured: Mapping[str, ConfiguredCPUs | None],
    reserved: HostCPUs,
    later: Iterable[KernelSetting] = (),
) -> list[dict[str, str]]:
    """Return slices that have their CPUs until systemd makes them anew.

    configured: by the names of units. later: slices that are not there, with what their files will give them.
    """
    if reserved.kept == reserved.online:
        return []
    lost = [setting for setting in later if reserved.wanted(setting) is not None]
    for setting in settings:
        if setting.layer != SLICES or setting.problem or setting.name not in configured or setting.cpus is None:
            continue
        is_kept = reserved.wanted(setting) is None and setting.name not in reserved.exclude_slices
        if is_kept and not reserved.holds(configured[setting.name]):
            lost.append(setting)
    if not lost:
        return []
    wanted = "AllowedCPUs=%s in a file of systemd" % reserved.kept
    found = "no file of systemd keeps them there: %s" % _shown_settings(lost)
    return [finding(NOT_LASTING, SLICES, wanted, found, _REMEDIES[SLICES])]


def partition_findings(partitions: Sequence[Partition]) -> list[dict[str, str]]:
    """Return one on the cgroups that are to be partitions, and that the kernel does not take for any."""
    broken = ["%s (%s)" % (shown(os.fsencode(part.path)), part.problem) for part in partitions if part.problem]
    if not broken:
        return []
    found = ", ".join(broken[:_MOST_IN_FINDING])
    more = len(broken) - _MOST_IN_FINDING
    return [
        finding(
            NO_PARTITION,
            "partitions",
            "cgroups that are made partitions have their CPUs for themselves",
            "others run there, too: " + found + (" and %d more" % more if more > 0 else ""),
            "do what the reason says; run the role housekeeping again where it has made the partition",
        )
    ]


def finding(check: str, subject: str, wanted: str, found: str, remedy: str) -> dict[str, str]:
    return {"check": check, "subject": subject, "wanted": wanted, "found": found, "remedy": remedy}


def _shown_settings(settings: Sequence[KernelSetting]) -> str:
    texts = ["%s (%s)" % (setting.name, _cpus(setting)) for setting in settings[:_MOST_IN_FINDING]]
    more = len(settings) - len(texts)
    return ", ".join(texts) + (" and %d more" % more if more else "")


def _cpus(setting: KernelSetting) -> str:
    cpus = setting.effective if setting.problem in _IMMOVABLE and setting.effective is not None else setting.cpus
    text = "no limit" if cpus is None else "CPUs %s" % cpus if cpus else "no CPUs"
    return text + ", refused" if setting.problem == REFUSED and setting.layer != INTERRUPTS else text

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves the layers of a host: what housekeeping_info reads of them, and no more.

What starts the kernel is in saved_loader.py, and who manages CPUs in saved_owners.py.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Callable, Mapping, Sequence

from ..cgroup.hierarchy import ROOT, Hierarchy
from ..cgroup.mounts import CPUS
from ..errors import CPUManagerError
from ..host.boot import BOOT_ID
from ..host.environment import read_environment, split_words
from ..host.interrupts import read_interrupts
from ..host.irqbalance import (
    BANNED_LIST,
    BANNED_MASK,
    MARKS,
    NAME,
    PROGRAMS,
    SERVICE,
    irqbalance_service,
    variables_of_command,
)
from ..host.kernel_line import NAMES, parse_line
from ..host.kernel_masks import read_rps, read_watchdog, read_workqueues
from ..host.partitions import EFFECTIVE as EXCLUSIVE_EFFECTIVE
from ..host.partitions import EXCLUSIVE, PARTITION, read_partitions
from ..host.service import SECTION, assignments_of
from ..host.slices import SYSTEMD_SLICES, UNITS
from ..host.units import MANAGER_SECTION, manager_paths, section_of, settings_in, unit_paths
from .collector import Collector
from .housekeeping.journal import PATH, essence_of, read_journal, text_of
from .housekeeping.unkept import AT_BOOT
from .redaction import escaped

_VARIABLES = (BANNED_LIST, BANNED_MASK)
_EFFECTIVE = "/effective_affinity_list"
_REQUESTED = "/sys/devices/virtual/workqueue/cpumask_requested"


def save_layers(collector: Collector) -> None:
    """Save the settings of the running kernel, and what systemd and irqbalance are configured to."""
    tree = collector.tree
    for setting in (*read_interrupts(tree), *read_workqueues(tree), *read_rps(tree), *read_watchdog(tree)):
        collector.file(setting.path)
        if setting.path.startswith("/proc/irq/"):
            collector.file(setting.path.rpartition("/")[0] + _EFFECTIVE)
    collector.file(_REQUESTED)
    collector.file("/sys/devices/system/cpu/possible")
    _reduced(collector, "/proc/interrupts", _names_of_interrupts)
    _reduced(collector, "/proc/cmdline", _arguments_about_cpus)
    _reduced(collector, "/proc/1/status", _affinity)
    _save_systemd(collector, _save_journal(collector))
    _save_irqbalance(collector)


def _save_journal(collector: Collector) -> Sequence[str]:
    """Save what the role housekeeping has brought the node to; give the slices that count also where they are not."""
    try:
        journal = read_journal(collector.tree)
    except CPUManagerError:
        return ()  # saved_owners.py saves that it is there
    if journal is None:
        return ()
    text = text_of(essence_of(journal))
    _reduced(collector, PATH, lambda _content: text.encode("utf-8"))
    collector.file(BOOT_ID)
    for path in (*(path for path, kept in journal.files.items() if kept.layer in AT_BOOT), *journal.links):
        collector.mark(path)
    return SYSTEMD_SLICES


def _save_systemd(collector: Collector, later: Sequence[str]) -> None:
    for path in manager_paths(collector.tree):
        _reduced(collector, path, _settings(MANAGER_SECTION, ("CPUAffinity",)))
    units: Sequence[str] = ()
    with suppress(CPUManagerError):
        hierarchy = Hierarchy(collector.tree)
        units = hierarchy.children(ROOT) if hierarchy.version == 2 else ()
        collector.file("%s/cpuset.cpus.isolated" % hierarchy.mount)
        for part in read_partitions(hierarchy):
            for name in (PARTITION, EXCLUSIVE, EXCLUSIVE_EFFECTIVE, CPUS):
                collector.file("%s/%s/%s" % (hierarchy.mount, part.path, name))
    for unit in dict.fromkeys((*units, *(later if units else ()))):
        if unit.endswith(UNITS):
            for path in unit_paths(collector.tree, unit):
                _reduced(collector, path, _settings(section_of(unit), ("AllowedCPUs",)))


def _save_irqbalance(collector: Collector) -> None:
    for path in PROGRAMS:
        _reduced(collector, path, _variables_of_program)
    service = irqbalance_service(collector.tree)
    given = {name: variable.value.replace("$", "$$") for name, variable in variables_of_command(service).items()}
    command = " ".join(["/usr/bin/env", *_words(given), PROGRAMS[0]])
    for path in unit_paths(collector.tree, SERVICE):
        _reduced(collector, path, partial(_irqbalance_unit, command=command))
    for path in service.files:
        _reduced(collector, path, _banned)
    for path in MARKS:
        collector.mark(path)


def _reduced(collector: Collector, path: str, change: Callable[[bytes], bytes]) -> None:
    """Save what is read of a file. What is left out of it is no secret that anybody would miss."""
    collector.file(path, change)
    collector.redacted.discard(path)


def _names_of_interrupts(content: bytes) -> bytes:
    """The numbers and handlers, without the counts."""
    first, *lines = content.splitlines() or [b""]
    found = [first.split(None, 1)[0] if first.split() else b""]
    for line in lines:
        number, _colon, rest = line.partition(b":")
        if number.strip().isdigit():
            found.append(number + b":  " + rest.rpartition(b"  ")[2])
    return b"\n".join(found) + b"\n"


def _arguments_about_cpus(content: bytes) -> bytes:
    words = [word for word in parse_line(content.decode("utf-8", "replace")) if word.key in NAMES]
    text = " ".join(word.name if word.value is None else "%s=%s" % word for word in words)
    return text.encode("utf-8") + b"\n"


def _affinity(content: bytes) -> bytes:
    return b"".join(line for line in content.splitlines(True) if line.startswith(b"Cpus_allowed_list:"))


def _settings(section: str, names: Sequence[str]) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        text = content.decode("utf-8", "surrogateescape")
        lines = ["%s=%s" % (name, value) for name, value in settings_in(text, section) if name in names]
        return "\n".join([section, *lines, ""]).encode("utf-8", "surrogateescape") if lines else b""

    return change


def _variables_of_program(content: bytes) -> bytes:
    names = (name.encode("ascii") for name in _VARIABLES)
    return b"\n".join(name for name in names if name in content)


def _irqbalance_unit(content: bytes, command: str) -> bytes:
    """What gives it the CPUs on which it puts nothing. What takes back all before it stays.

    command: what takes the place of a command line.
    """
    lines = []
    for name, value in settings_in(content.decode("utf-8", "surrogateescape"), SECTION):
        if name == "Environment" and value:
            lines += ["Environment=" + word for word in _words(assignments_of(value, NAME))]
        elif name == "ExecStart" and value:
            lines.append("ExecStart=" + command)
        elif name == "UnsetEnvironment" and value:
            words = [word for word in split_words(value) if word.partition("=")[0] in _VARIABLES]
            lines += ['UnsetEnvironment="%s"' % escaped(word) for word in words]
        elif name in ("Environment", "EnvironmentFile", "ExecStart", "UnsetEnvironment"):
            lines.append("%s=%s" % (name, value))
    return "\n".join([SECTION, *lines, ""]).encode("utf-8", "surrogateescape") if lines else b""


def _words(given: Mapping[str, str]) -> list[str]:
    """Variables about CPUs, as words of a unit."""
    return ['"%s=%s"' % (name, escaped(value)) for name, value in given.items() if name in _VARIABLES]


def _banned(content: bytes) -> bytes:
    given = read_environment(content.decode("utf-8", "surrogateescape")).items()
    return "".join('%s="%s"\n' % (name, _quoted(value)) for name, value in given if name in _VARIABLES).encode("utf-8")


def _quoted(value: str) -> str:
    return "".join("\\" + sign if sign in '"\\`$' else sign for sign in value)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layers of a host around its reserved CPUs: each setting that says on which CPUs something runs, and its
reader.
"""

from __future__ import annotations

import json
import os
import posixpath
import stat
from contextlib import suppress
from functools import lru_cache
from typing import Any, Collection, Mapping, NamedTuple

from .._base.errors import CPUManagerError, InputError, NodeError, RefusedError
from .._base.tree import Tree, is_number
from .._cgroup.hierarchy import CPUS, EFFECTIVE, ROOT, Hierarchy, joined
from ..cpuset import CPUSet
from .services import Service, Variable, read_service, split_words, variables_in, with_value
from .systemd import ConfiguredCPUs, manager_settings, merged_cpus, unit_settings

# Names that the kernel and its programs give, as people may see them. Pure.


def shown(name: bytes) -> str:
    """Return a name as text on one line: bytes that are no text, and what controls a terminal, are escaped."""
    text = name.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


SLICES, INTERRUPTS, WORKQUEUES, RPS, WATCHDOG = "slices", "interrupts", "workqueues", "rps", "watchdog"
IRQBALANCE, MANAGER, PARTITION = "irqbalance", "manager", "partition"
# Its isolated CPUs, by which it then sets some of the others itself.
TUNED = "tuned"
# Those that are written into the running kernel, in the order in which they are: first what new work starts with, then
# what moves work that is there.
LIVE_LAYERS = (INTERRUPTS, WORKQUEUES, RPS, WATCHDOG, SLICES)

# Why a setting cannot be changed.
FIXED = "fixed"  # the kernel offers it for reading only, as that of an interrupt that it manages itself
REFUSED = "refused"  # the kernel has refused to change it
UNREADABLE = "unreadable"  # what it holds cannot be read, or is no CPUs

# How a file writes CPUs.
LIST, MASK = "list", "mask"


class KernelSetting(NamedTuple):
    """One file of the running kernel that says on which CPUs something runs.

    name: of what, for people: "36 virtio1-req.0", "system.slice". text: what the file holds, to the byte but for the
    newline. cpus: what that means; None where it is empty and empty means that there is no limit. effective: what the
    kernel makes of it, where it shows that. problem: FIXED, REFUSED or UNREADABLE; empty where it can be changed.
    """

    layer: str
    name: str
    path: str
    text: str
    cpus: CPUSet | None
    form: str = LIST
    effective: CPUSet | None = None
    problem: str = ""


def wanted_cpus(setting: KernelSetting, reserved: CPUSet, online: CPUSet) -> CPUSet | None:
    """Return which CPUs a setting is to have; None where it may stay as it is."""
    kept = reserved & online
    if setting.layer == RPS:
        # Without a mask, packets are worked on where their interrupt is.
        return kept if setting.cpus and setting.cpus - reserved else None
    if setting.cpus is not None and setting.cpus & online and setting.cpus & online <= kept:
        return None
    return kept


def text_of(setting: KernelSetting, cpus: CPUSet) -> str:
    """Return the CPUs in the form of the setting's file."""
    return cpus.to_mask() if setting.form == MASK else str(cpus)


# Reads one setting of the running kernel. A file that is not there is no setting; one that is damaged is one all the
# same.


def read_setting(tree: Tree, layer: str, name: str, path: str, form: str = LIST) -> KernelSetting | None:
    """Return what a file says on which CPUs something runs; None where there is no such file."""
    try:
        text = tree.read_value(path)
        if text is None:
            return None
        # Only the kernel's own files are asked: it lets root write others, too.
        problem = "" if os.stat(tree.path(path)).st_mode & stat.S_IWUSR else FIXED
        return KernelSetting(layer, name, path, text, parsed(text, form), form, problem=problem)
    except FileNotFoundError:  # an interrupt or a network device that went away meanwhile
        return None
    except (InputError, NodeError, OSError, RefusedError):
        return KernelSetting(layer, name, path, "", None, form, problem=UNREADABLE)


def read_cpus(tree: Tree, path: str, form: str = LIST) -> CPUSet | None:
    """Return the CPUs in a file that is only for reading; None where it is not there, or holds none."""
    try:
        text = tree.read_value(path)
        return None if text is None else parsed(text, form)
    except (InputError, NodeError, RefusedError):
        return None


@lru_cache(maxsize=256)
def parsed(text: str, form: str = LIST) -> CPUSet:
    """Return the CPUs in the form of a file. Most files of a layer have the same ones. Raises InputError."""
    return CPUSet.parse_mask(text) if form == MASK else CPUSet.parse(text)


# Reading for a look at a node: what is not there or cannot be read shows nothing, and is no error.


# The longest file that is read here has every pod of a node.
_LONGEST = 1 << 26
_ENABLED = "/etc/systemd/system/%s.target.wants"


def is_there(tree: Tree, path: str) -> bool:
    """Return whether there is something at a path, be it a link to nothing."""
    try:
        return tree.exists(path, follow=False)
    except CPUManagerError:
        return False


def text_at(tree: Tree, path: str) -> str:
    """Return a file's text; empty where there is none."""
    try:
        content = tree.content(path) or b""
    except CPUManagerError:
        return ""
    return content.decode("utf-8", "replace") if len(content) <= _LONGEST else ""


def names_in(tree: Tree, directory: str) -> list[str]:
    """Return the sorted names in a directory."""
    try:
        return tree.names(directory)
    except CPUManagerError:
        return []


def members_at(tree: Tree, path: str) -> Mapping[str, Any]:
    """Return the members of the object in a JSON file."""
    text = text_at(tree, path)
    try:
        return members(json.loads(text)) if text else {}
    except (ValueError, RecursionError):
        return {}


def members(value: object) -> Mapping[str, Any]:
    """Return a JSON value's members, if it is an object."""
    return value if isinstance(value, dict) else {}


def enabled_at(tree: Tree, unit: str, target: str = "multi-user") -> list[str]:
    """Return the link by which systemd starts a unit at each boot, if there is one."""
    directory = _ENABLED % target
    # Listed, as the link of a saved node leads out of it.
    return ["%s/%s" % (directory, unit)] if unit in names_in(tree, directory) else []


# On which CPUs systemd's slices, and whatever else is at the top of the cgroups, may run, and what systemd is
# configured to give them.
#
# Its source: Linux's Documentation/admin-guide/cgroup-v2.rst, systemd.resource-control(5), systemd-system.conf(5).


_COMMAND_LINE = "/proc/cmdline"
_PARTITION = "cpuset.cpus.partition"
# What systemd can give CPUs.
UNITS = (".slice", ".scope", ".service")
# Those of systemd itself: the first is there from the start, the others while something runs in them.
SYSTEM_SLICE = "system.slice"
SYSTEMD_SLICES = (SYSTEM_SLICE, "machine.slice", "user.slice")
# The kernel's work for them takes a moment, and no process stays.
_WITHOUT_PROCESSES = (".mount", ".automount", ".swap", ".device")


def read_slices(tree: Tree, hierarchy: Hierarchy, above_pods: Collection[str]) -> list[KernelSetting]:
    """Return the CPUs of each cgroup right below the topmost one, without those that lead to pods and without
    partitions.

    above_pods: the names of those that lead to pods, as Kubepods.tops has them. A cgroup without a file of its own, as
    the controller is not enabled there, has what the topmost one has. On v1 the topmost cgroup keeps the processes that
    nobody has moved, and so its children are FIXED.
    """
    found = []
    for child in _children(hierarchy):
        if child in above_pods or child.endswith(_WITHOUT_PROCESSES) or _is_partition(tree, hierarchy, child):
            continue
        found.append(_setting(tree, hierarchy, child))
    return found


def read_later_slices(tree: Tree, hierarchy: Hierarchy, above_pods: Collection[str]) -> list[KernelSetting]:
    """Return Systemd's own slices that are not there, as it makes them: with the CPUs that its files will give them.

    None where systemd has no slices, and on v1, where it gives them no CPUs. above_pods: as for read_slices().
    """
    there = _children(hierarchy)
    if hierarchy.version == 1 or SYSTEM_SLICE not in there:
        return []
    later = [name for name in SYSTEMD_SLICES if name not in there and name not in above_pods]
    return [_later(tree, hierarchy, name) for name in later]


def _later(tree: Tree, hierarchy: Hierarchy, name: str) -> KernelSetting:
    configured = allowed_cpus(tree, name)
    cpus = None if configured is None else configured.cpus
    return KernelSetting(SLICES, name, joined(joined(hierarchy.mount, name), CPUS), "", cpus)


def _children(hierarchy: Hierarchy) -> list[str]:
    try:
        return hierarchy.children(ROOT)
    except (NodeError, RefusedError):
        return []


def _setting(tree: Tree, hierarchy: Hierarchy, child: str) -> KernelSetting:
    place = joined(hierarchy.mount, child)
    path = joined(place, CPUS)
    name = shown(child.encode("utf-8", "surrogateescape"))
    problem = FIXED if hierarchy.version == 1 else ""
    try:
        text = tree.read_value(path) or ""
        # Only in v2 an empty one is no limit.
        cpus = parsed(text) if text or hierarchy.version == 1 else None
    except (InputError, NodeError, RefusedError):
        return KernelSetting(SLICES, name, path, "", None, problem=UNREADABLE)
    effective = read_cpus(tree, joined(place, EFFECTIVE[hierarchy.version, CPUS]))
    if effective is None and cpus is None:
        effective = _all(hierarchy)
    return KernelSetting(SLICES, name, path, text, cpus, LIST, effective, problem)


def _all(hierarchy: Hierarchy) -> CPUSet | None:
    try:
        return hierarchy.online_cpus()
    except (NodeError, RefusedError):
        return None


def _is_partition(tree: Tree, hierarchy: Hierarchy, child: str) -> bool:
    """Return whether its CPUs are its own alone: nobody is kept off others there."""
    try:
        kind = tree.read_value("%s/%s/%s" % (hierarchy.mount, child, _PARTITION)) or ""
    except (NodeError, RefusedError):
        return False
    return kind in ("root", "isolated")


def allowed_cpus(tree: Tree, unit: str) -> ConfiguredCPUs | None:
    """Return the AllowedCPUs= that the files of a unit give it; None where they give none."""
    return merged_cpus(unit_settings(tree, unit, "AllowedCPUs"))


def manager_affinity(tree: Tree) -> ConfiguredCPUs | None:
    """Return the CPUAffinity= with which systemd and what it starts run; None where files and command line give
    none."""
    found = merged_cpus(manager_settings(tree, "CPUAffinity"))
    try:
        line = tree.read_value(_COMMAND_LINE) or ""
    except (NodeError, RefusedError):
        return found
    if "systemd.cpu_affinity" not in line:
        return found
    # Imported here: hardly any command line has it.
    from .kernel_line import parse_line

    values = [(_COMMAND_LINE, word.value) for word in parse_line(line) if word.name == "systemd.cpu_affinity"]
    return merged_cpus([(path, value) for path, value in values if value]) or found


# On which CPUs the kernel does work of its own: workqueues, received packets, the watchdog.
#
# Its source: Linux's Documentation/core-api/workqueue.rst, Documentation/networking/scaling.rst,
# Documentation/admin-guide/sysctl/kernel.rst and net.rst.


_WORKQUEUES = "/sys/devices/virtual/workqueue"
_DEVICES = "/sys/class/net"


def read_workqueues(tree: Tree) -> list[KernelSetting]:
    """Return the CPUs of all workqueues that are bound to none, and then those of each that has its own, by their
    names."""
    path = _WORKQUEUES + "/cpumask"
    every = read_setting(tree, WORKQUEUES, "all unbound workqueues", path, MASK)
    found = []
    if every is not None:
        # From Linux 6.8 on, the file shows what is left without CPUs that are isolated; undone is what was wanted.
        wanted = read_setting(tree, WORKQUEUES, every.name, path + "_requested", MASK)
        if wanted is not None and wanted.cpus is not None:
            every = every._replace(text=wanted.text, cpus=wanted.cpus, effective=every.cpus)
        found.append(every)
    limit = None if every is None else every.effective or every.cpus
    for name in _names(tree, _WORKQUEUES):
        setting = read_setting(tree, WORKQUEUES, name, "%s/%s/cpumask" % (_WORKQUEUES, name), MASK)
        if setting is not None:
            found.append(setting._replace(effective=_within(setting.cpus, limit)))
    return found


def _within(cpus: CPUSet | None, limit: CPUSet | None) -> CPUSet | None:
    """Return what the kernel makes of a workqueue's CPUs: those that all may have, or all of these where none is
    left."""
    if cpus is None or limit is None:
        return cpus
    return cpus & limit or limit


def read_rps(tree: Tree) -> list[KernelSetting]:
    """Return the CPUs that work on packets that others received: of queues that are new, then of each queue of each
    device.

    Without any, which is what the kernel begins with, a packet stays on the CPU of its interrupt.
    """
    found = [read_setting(tree, RPS, "new queues", "/proc/sys/net/core/rps_default_mask", MASK)]
    for device in _names(tree, _DEVICES):
        queues = "%s/%s/queues" % (_DEVICES, device)
        found += [
            read_setting(tree, RPS, "%s %s" % (device, queue), "%s/%s/rps_cpus" % (queues, queue), MASK)
            for queue in _names(tree, queues)
            if queue.startswith("rx-")
        ]
    return [setting for setting in found if setting is not None]


def read_watchdog(tree: Tree) -> list[KernelSetting]:
    """Return the CPUs on which the kernel looks for lockups."""
    setting = read_setting(tree, WATCHDOG, "watchdog", "/proc/sys/kernel/watchdog_cpumask")
    return [] if setting is None else [setting]


def _names(tree: Tree, path: str) -> list[str]:
    try:
        return tree.names(path)
    except (NodeError, RefusedError):
        return []


# On which CPUs irqbalance, which moves interrupts every few seconds, puts none.
#
# Its source: irqbalance(1) and setup_banned_cpus() in its cputree.c: IRQBALANCE_BANNED_CPUS, a mask, wins over
# IRQBALANCE_BANNED_CPULIST. Older versions do not have the list, and the mask is on its way out. Without either, the
# CPUs are banned that the kernel was booted to isolate. Both are variables of its environment, from wherever it has
# them: its unit, the files that this names, or a command line that sets them itself.


NAME = "irqbalance"
SERVICE = NAME + ".service"
BANNED_LIST, BANNED_MASK = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS"
# A list that bans none, as others write it, too: an empty one is as none in most versions.
_NO_CPUS = "-"
PROGRAMS = ("/usr/sbin/irqbalance", "/sbin/irqbalance", "/usr/bin/irqbalance")
# Of Red Hat and SUSE, and of Debian.
_FILES = ("/etc/sysconfig/irqbalance", "/etc/default/irqbalance")
# What is there while it runs: the cgroup of its service, in each version of cgroups, or its socket.
MARKS = (
    *("/sys/fs/cgroup%s/system.slice/%s" % (place, SERVICE) for place in ("", "/systemd", "/unified")),
    "/run/irqbalance",
    "/run/irqbalance.pid",
)


class Irqbalance(NamedTuple):
    """What is known of it. file: that of its variables which is to be written, and need not be there; empty where what
    is written to files does not count. source: what gives the variable that counts; where none does, the file.
    key: the variable that counts, or is to be set. banned: its CPUs; None where there are none, or where `problem` says
    why they cannot be read.
    """

    file: str
    source: str
    key: str
    banned: CPUSet | None
    is_installed: bool
    is_running: bool
    problem: str = ""

    def by_hand(self, cpus: CPUSet) -> str:
        """Return what to do about it where no file of variables counts."""
        value = cpus if _form(self.key) == LIST else cpus.to_mask()
        return "set %s=%s in %s, which no file of variables overrides" % (self.key, value, self.source or SERVICE)


def read_irqbalance(tree: Tree) -> Irqbalance | None:
    """Return what irqbalance is configured to; None where there is neither the program nor its file."""
    program = next((path for path in PROGRAMS if _is_there(tree, path)), None)
    service = irqbalance_service(tree)
    if program is None and not any(_is_there(tree, path) for path in service.files):
        return None
    names = _variables_of(tree, program)
    own = variables_of_command(service)
    # One that is empty is as one that is not there. The mask wins, wherever the list is.
    given = {name: variable for name, variable in {**service.variables, **own}.items() if variable.value}
    key = next((name for name in (BANNED_MASK, BANNED_LIST) if name in names and name in given), names[0])
    text, source = given.get(key, Variable("", ""))
    files = service.files
    file = source if source in files else files[-1] if files and key not in own else ""
    is_running = program is not None and any(_is_there(tree, path) for path in MARKS)
    banned, problem = None, ""
    try:
        banned = parsed("" if text == _NO_CPUS else text, _form(key)) if text else None
    except InputError as error:
        problem = str(error)
    return Irqbalance(file, source or file, key, banned, program is not None, is_running, problem)


def irqbalance_service(tree: Tree) -> Service:
    """Return what systemd gives it; where no unit says that, what is in the usual place."""
    service = read_service(tree, NAME)
    if any(service):
        return service
    usual = next((path for path in _FILES if _is_there(tree, path)), _FILES[-1])
    return Service([], variables_in(tree, usual), [usual])


def variables_of_command(service: Service) -> Mapping[str, Variable]:
    """Return the variables that stand before the program in its command line, as of env or of a shell's -c."""
    found: dict[str, Variable] = {}
    for word in (word for argument in service.command for word in split_words(argument)):
        if posixpath.basename(word) == NAME:
            break
        name, equals, value = word.partition("=")
        if equals and name in (BANNED_LIST, BANNED_MASK):
            found[name] = Variable(value.rstrip(";"), "ExecStart= of " + SERVICE)
    return found


def banned_text(content: bytes, banned: CPUSet, key: str) -> bytes:
    """Return the file of its variables with these CPUs banned, all else as it is. Raises RefusedError for one that is
    broken.

    key: BANNED_LIST or BANNED_MASK.
    """
    value = str(banned) or _NO_CPUS if _form(key) == LIST else banned.to_mask()
    # Each byte is one sign, so all others stay what they are.
    return with_value(content.decode("latin-1"), key, value).encode("latin-1")


def _form(key: str) -> str:
    return MASK if key == BANNED_MASK else LIST


def _variables_of(tree: Tree, program: str | None) -> tuple[str, ...]:
    """Return the variables that the program reads, the one to set first; both where that is not known."""
    content = b""
    if program is not None:
        with suppress(NodeError, RefusedError):
            content = tree.read_bytes(program)
    both = (BANNED_LIST, BANNED_MASK)
    return tuple(name for name in both if name.encode("ascii") in content) or both


def _is_there(tree: Tree, path: str) -> bool:
    try:
        return tree.exists(path)
    except (NodeError, RefusedError):
        return False


# On which CPUs the kernel handles interrupts.
#
# Its source: Linux's Documentation/core-api/irq/irq-affinity.rst and Documentation/filesystems/proc.rst.


_IRQ = "/proc/irq"
_NAMES = "/proc/interrupts"
DEFAULT = _IRQ + "/default_smp_affinity"
# No interrupt has a longer number.
_MOST_DIGITS = 9


def read_interrupts(tree: Tree) -> list[KernelSetting]:
    """Return the CPUs of interrupts that are new, and then those of each that has a handler, by their numbers.

    One without a handler takes those of new ones when it gets one. One that the kernel manages itself is FIXED on a new
    kernel; an older one lets it look as any other, and refuses a change with EIO.
    """
    found = [read_setting(tree, INTERRUPTS, "new interrupts", DEFAULT, MASK)]
    handlers = _handlers(tree)
    for number in _numbers(tree):
        if handlers is not None and number not in handlers:
            continue
        place = "%s/%d/" % (_IRQ, number)
        name = ("%d %s" % (number, (handlers or {}).get(number, ""))).rstrip()
        setting = read_setting(tree, INTERRUPTS, name, place + "smp_affinity_list")
        if setting is not None:
            # Of all the CPUs, mostly the first one that has room.
            found.append(setting._replace(effective=read_cpus(tree, place + "effective_affinity_list")))
    return [setting for setting in found if setting is not None]


def _numbers(tree: Tree) -> list[int]:
    try:
        names = tree.names(_IRQ)
    except (NodeError, RefusedError):
        return []
    return sorted(int(name) for name in names if is_number(name) and len(name) <= _MOST_DIGITS)


def _handlers(tree: Tree) -> dict[int, str] | None:
    """Return {number: who handles it}, of the interrupts that anybody does; None where that is not known."""
    try:
        content = tree.content(_NAMES)
    except (NodeError, RefusedError):
        return None
    if content is None or not content.lstrip().startswith(b"CPU"):
        return None
    found = {}
    for line in content.splitlines()[1:]:
        label, _colon, rest = line.partition(b":")
        number = label.strip()
        if number.isdigit() and len(number) <= _MOST_DIGITS:
            # The names of the handlers come last, after two blanks; before them are a count for each CPU and the chip.
            found[int(number)] = shown(rest.rpartition(b"  ")[2].strip())
    return found

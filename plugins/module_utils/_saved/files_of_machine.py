# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of a node are saved: what our modules read, and nothing else. The kubelet's are in files_of_kubelet.py.

Of a file of which some lines are read, only these are saved.
tests/unit/plugins/module_utils/_saved/test_files_of_machine.py compares this list with what the modules open.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from functools import partial
from typing import Callable, Mapping, Sequence

from .._base.errors import CPUManagerError, InputError
from .._base.journal_file import CACHE, PROMISE
from .._base.tree import RESCTRL, SAID, Tree, is_number
from .._caches.resctrl import (
    BANDWIDTHS,
    CACHE_FILES,
    CACHES,
    COUNTERS,
    GROUP_FILES,
    LEVELS,
    MON_DATA,
    MON_GROUPS,
    MONITORING,
    MONITORING_FILES,
    MOST_TASKS,
    NO_GROUPS,
    RESCTRL_BANDWIDTH_FILES,
    find_mount,
)
from .._cgroup.hierarchy import CPU as CPU_CONTROLLER
from .._cgroup.hierarchy import CPUS, MEMORY, ROOT, Hierarchy
from .._cgroup.kubepods import GUARANTEED, Kubepods
from .._containers.crictl import DIRECTORY as LOGS
from .._containers.crictl import LoggedContainer, hashed, names_of
from .._host.kernel_line import MARK, NAMES, parse_line
from .._host.layers import (
    BANNED_LIST,
    BANNED_MASK,
    MARKS,
    NAME,
    PROGRAMS,
    SERVICE,
    SYSTEMD_SLICES,
    UNITS,
    irqbalance_service,
    read_interrupts,
    read_rps,
    read_watchdog,
    read_workqueues,
    variables_of_command,
)
from .._host.only_root import BOOT_ID
from .._host.partitions import EFFECTIVE as EXCLUSIVE_EFFECTIVE
from .._host.partitions import EXCLUSIVE, PARTITION, read_partitions
from .._host.reach import QUOTA_FILES
from .._host.services import SECTION, assignments_of, read_environment, split_words
from .._host.systemd import MANAGER_SECTION, manager_paths, section_of, settings_in, unit_paths
from .._housekeeping.housekeeping_journal import PATH, essence_of, read_journal, text_of
from .._housekeeping.loader_entries import BLS, GRUB, NO_LOADER, SYSTEMD_BOOT
from .._housekeeping.loaders import find_loader
from .._housekeeping.unkept import AT_BOOT
from .._isolation.bandwidth import FILES as BANDWIDTH_FILES
from .._isolation.throttling_info import watched_containers
from .._kubelet.redaction import UnsafeError, escaped, runtime_redacted
from .._kubelet.start.surroundings import KERNEL_FLAGS
from .._node.beside_cpus import PCI_DEVICES, PCI_FILES
from .._node.exclusive import parse_promise
from .._node.module import FORMAT, KIND, SavedFacts
from .._node.node import Node, cgroup_root_of
from .._node.owners_found import owners_of
from .._node.pods_seen import MEMORY_LIMITS
from .._node.runtime import runtime_of, version_of
from .._owners import owners
from .._runtime.runtime_files import read_files
from ..topology.cpuinfo import FIELDS
from ..topology.sysfs import CORE_MASKS, CPU, DIE_MASKS, L3, NODE, SOCKET_MASKS
from .collector import Change, Collector
from .files_of_kubelet import save_kubelet, save_start

# Saves what shows who manages a node's CPUs, and what its container runtime is configured to, as far as that is read.
#
# Of an owner that is active. What another one has left behind would make it an active one in a saved node, where no
# process shows the difference.


_PROCESS = re.compile(r"process (\d+)")
_DIRECTORIES = ("/etc/crio", "/etc/containerd")
# In the path of a link by which systemd starts a unit.
_WANTS = ".target.wants/"


def save_owners(collector: Collector, node: Node) -> None:
    """Save what _node/owners_found.py and _node/runtime.py read of a node."""
    for directory in _DIRECTORIES:
        collector.mark(directory)
    _save_runtime(collector, node)
    for owner in owners_of(node):
        if owner.is_active and owner.id != owners.KUBELET_STATIC:
            for evidence in owner.evidence:
                _save_evidence(collector, owner.id, evidence)
            if owner.id == owners.TUNED:
                collector.file(owners.PROFILE_MODE)


def _save_runtime(collector: Collector, node: Node) -> None:
    try:
        runtime = runtime_of(node)
    except CPUManagerError:  # such as of Docker, of which nothing is read
        return
    paths = [runtime.config]
    try:
        paths = [file.path for file in read_files(node.tree, runtime)]
    except CPUManagerError:
        if runtime.drop_ins:
            paths += ["%s/%s" % (runtime.drop_ins, name) for name in collector.names(runtime.drop_ins)]
    for path in paths:
        collector.file(path, runtime_redacted)


def _save_evidence(collector: Collector, owner: str, evidence: str) -> None:
    process = _PROCESS.fullmatch(evidence)
    if process is not None:
        path = "/proc/%s/cmdline" % process.group(1)
        collector.add(collector.new_place(path), owners.OWNERS[owner].program.encode("ascii") + b"\0")
    elif evidence == owners.POLICY_CACHE:
        policy = json.dumps({"PolicyName": owners.POLICIES[owner]})
        collector.file(evidence, lambda _content: policy.encode("ascii"))
    elif _WANTS not in evidence and owner in _CONTENTS:
        collector.file(evidence, _CONTENTS[owner])
    elif evidence.startswith("/"):
        # That it is there is all that counts.
        collector.mark(evidence)


def _profile(content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    # /etc/tuned/active_profile has names of profiles, and no options.
    return content if "=" not in text else owners.essence(text).encode("utf-8")


# What is saved of the files that show an owner.
_CONTENTS = {
    owners.TUNED: _profile,
    owners.CRIO_INTERRUPTS: runtime_redacted,
    owners.CRIO_SHARED: runtime_redacted,
    owners.GORESCTRL_OWNER: runtime_redacted,
}


# Saves how the caches of a node are divided: what cache_info reads of resctrl, and of the caches that are divided.


_ROOT_FILES = ("mode", "cpus_list", "schemata")


def save_cache(collector: Collector, redact: bool) -> None:
    """Save it; nothing but that there is a directory, where resctrl is not mounted.

    redact: hash the names of containers.
    """
    if collector.file(CACHE) is not None:
        collector.file(BOOT_ID)
    collector.file(PROMISE, _without_names if redact else None)
    collector.mark(RESCTRL)
    try:
        if find_mount(collector.tree) is None:
            return
    except CPUManagerError:
        return
    for names, files in (
        (CACHES, CACHE_FILES),
        (BANDWIDTHS, RESCTRL_BANDWIDTH_FILES),
        ((MONITORING,), MONITORING_FILES),
    ):
        for name in names:
            if collector.mark("%s/info/%s" % (RESCTRL, name)):
                for file in files:
                    collector.file("%s/info/%s/%s" % (RESCTRL, name, file))
    _save_group(collector, RESCTRL, _ROOT_FILES)
    for name in collector.names(RESCTRL):
        if name not in NO_GROUPS and collector.place("%s/%s/schemata" % (RESCTRL, name)) is not None:
            _save_group(collector, "%s/%s" % (RESCTRL, name), GROUP_FILES)
    # The L3 caches are saved with the machine.
    for level in LEVELS[1:]:
        if any(collector.place("%s/info/%s" % (RESCTRL, name)) for name in CACHES if name.startswith(level)):
            _save_level(collector, level)


def _save_group(collector: Collector, path: str, files: tuple[str, ...]) -> None:
    collector.mark(path)
    for file in files:
        content = collector.file("%s/%s" % (path, file), _few if file == "tasks" else None)
        if file == "tasks" and content is not None:
            collector.redacted.discard("%s/%s" % (path, file))
            for pid in content.split(None, MOST_TASKS)[:MOST_TASKS]:
                if pid.isdigit() and len(pid) < 11:
                    collector.file("/proc/%d/cgroup" % int(pid))
    for name in collector.names("%s/%s" % (path, MON_GROUPS)):
        collector.mark("%s/%s/%s" % (path, MON_GROUPS, name))
    for domain in collector.names("%s/%s" % (path, MON_DATA)):
        collector.mark("%s/%s/%s" % (path, MON_DATA, domain))
        for name in collector.names("%s/%s/%s" % (path, MON_DATA, domain)):
            place = "%s/%s/%s/%s" % (path, MON_DATA, domain, name)
            if name in COUNTERS:
                collector.file(place)
            else:
                # With Sub-NUMA clustering, how many there are is read.
                collector.mark(place)


def _without_names(content: bytes) -> bytes:
    """Return what the policies dynamic and isolated have given out, with a hash for each container's name."""
    try:
        promise = parse_promise(content)
    except InputError as error:
        raise UnsafeError("it is no promise") from error
    held = {(pod, hashed(name)): cpus for (pod, name), cpus in promise.state.containers.items()}
    return promise._replace(state=promise.state._replace(containers=held), found={}, quotas={}).content()


def _few(content: bytes) -> bytes:
    """Return the processes that are looked at, and one more, so that it shows that there are more."""
    return b"".join(content.splitlines(keepends=True)[: MOST_TASKS + 1])


def _save_level(collector: Collector, level: str) -> None:
    """Save which CPUs share the caches of this level."""
    for name in collector.names(CPU):
        if not (name.startswith("cpu") and is_number(name[3:])):
            continue
        for index in collector.names("%s/%s/cache" % (CPU, name)):
            path = "%s/%s/cache/%s" % (CPU, name, index)
            if (collector.file(path + "/level") or b"").strip() == level[1:].encode("ascii"):
                for file in ("type", "id", "shared_cpu_map"):
                    collector.file("%s/%s" % (path, file))


# Saves what starts the kernel, as far as it says on which CPUs what is to run.
#
# Such files hold passwords of the loader, and command lines hold tokens and keys. So only the arguments about CPUs are
# saved, and the lines by which it is known what they are of.


_PROGRAMS = ("grub-mkconfig", "grub2-mkconfig", "grubby", "kernel-install")
_ENVIRONMENTS = ("/boot/grub2/grubenv", "/boot/grub/grubenv")
_CMDLINE = "/etc/kernel/cmdline"
_LINUX = re.compile(r"^[ \t]*linux(?:16|efi)?[ \t]+[^ \t\n]+(.*)$", re.MULTILINE)
_DEFAULT = re.compile(r'^[ \t]*set[ \t]+default="[^"\n]*"', re.MULTILINE)
_MADE = "### BEGIN /etc/grub.d/\n"
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?", re.ASCII)


def save_loader(collector: Collector) -> None:
    """Save what the reader of the next boot's arguments reads. Nothing where that cannot be read."""
    tree = collector.tree
    for path in ("/run/ostree-booted", "/usr/sbin/transactional-update"):
        collector.mark(path)
    with suppress(CPUManagerError):
        loader = find_loader(tree)
        if loader.kind == NO_LOADER:
            return
        for name in _PROGRAMS:
            for directory in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
                _reduced(collector, "%s/%s" % (directory, name), _reads_directory)
        if loader.kind == GRUB:
            for path in loader.results:
                _reduced(collector, path, _grub)
        elif loader.kind in (BLS, SYSTEMD_BOOT):
            for path in loader.results:
                _reduced(collector, path, _entry)
        for path in _ENVIRONMENTS:
            _reduced(collector, path, _environment)
        if loader.kind == SYSTEMD_BOOT:
            _reduced(collector, loader.evidence + "/loader.conf", _loader_conf)
            _reduced(collector, _CMDLINE, lambda content: (_about_cpus(_text(content)) + "\n").encode("latin-1"))
            place = loader.evidence.rpartition("/")[0]
            for name in tree.names(place + "/EFI/Linux"):
                if name.endswith(".efi"):
                    collector.mark("%s/EFI/Linux/%s" % (place, name))


def _reduced(collector: Collector, path: str, change: Callable[[bytes], bytes]) -> None:
    collector.file(path, change)
    collector.redacted.discard(path)


def _text(content: bytes) -> str:
    return content.decode("latin-1")


def _about_cpus(line: str) -> str:
    words = [word for word in parse_line(line) if word.key in NAMES or word.name == MARK]
    return " ".join(word.name if word.value is None else "%s=%s" % word for word in words)


def _reads_directory(content: bytes) -> bytes:
    return b"default/grub.d" if b"default/grub.d" in content else b""


def _grub(content: bytes) -> bytes:
    text = _text(content)
    lines = _DEFAULT.findall(text)
    if _MADE.strip() in text:
        lines.append(_MADE.strip())
    # A backslash is only GRUB's quoting.
    lines += ["linux x " + _about_cpus(line.replace("\\", "")) for line in _LINUX.findall(text)]
    return "".join(line + "\n" for line in lines).encode("latin-1")


def _entry(content: bytes) -> bytes:
    lines = re.findall(r"^[ \t]*options[ \t]+(.*)$", _text(content), re.MULTILINE)
    kept = (" ".join([_about_cpus(line), *_VARIABLE.findall(line)]).strip() for line in lines)
    return "".join("options %s\n" % line for line in kept).encode("latin-1")


def _environment(content: bytes) -> bytes:
    pairs = [line.partition("=") for line in _text(content).splitlines() if not line.startswith("#")]
    lines = [
        "%s=%s\n" % (name, value if name == "saved_entry" else _about_cpus(value))
        for name, equals, value in pairs
        if equals
    ]
    return "".join(lines).encode("latin-1")


def _loader_conf(content: bytes) -> bytes:
    lines = re.findall(r"^[ \t]*default[ \t]+\S+", _text(content), re.MULTILINE)
    return "".join(line + "\n" for line in lines).encode("latin-1")


# Saves the layers of a host: what housekeeping_info reads of them, and no more.
#


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
    _reduced_layer(collector, "/proc/interrupts", _names_of_interrupts)
    _reduced_layer(collector, "/proc/cmdline", _arguments_about_cpus)
    _reduced_layer(collector, "/proc/1/status", _affinity)
    _save_systemd(collector, _save_journal(collector))
    _save_irqbalance(collector)


def _save_journal(collector: Collector) -> Sequence[str]:
    """Save what the role housekeeping has brought the node to; give the slices that count also where they are not."""
    try:
        journal = read_journal(collector.tree)
    except CPUManagerError:
        return ()  # what shows owners says that it is there
    if journal is None:
        return ()
    text = text_of(essence_of(journal))
    _reduced_layer(collector, PATH, lambda _content: text.encode("utf-8"))
    collector.file(BOOT_ID)
    for path in (*(path for path, kept in journal.files.items() if kept.layer in AT_BOOT), *journal.links):
        collector.mark(path)
    return SYSTEMD_SLICES


def _save_systemd(collector: Collector, later: Sequence[str]) -> None:
    for path in manager_paths(collector.tree):
        _reduced_layer(collector, path, _settings(MANAGER_SECTION, ("CPUAffinity",)))
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
                _reduced_layer(collector, path, _settings(section_of(unit), ("AllowedCPUs",)))


def _save_irqbalance(collector: Collector) -> None:
    for path in PROGRAMS:
        _reduced_layer(collector, path, _variables_of_program)
    service = irqbalance_service(collector.tree)
    given = {name: variable.value.replace("$", "$$") for name, variable in variables_of_command(service).items()}
    command = " ".join(["/usr/bin/env", *_words(given), PROGRAMS[0]])
    for path in unit_paths(collector.tree, SERVICE):
        _reduced_layer(collector, path, partial(_irqbalance_unit, command=command))
    for path in service.files:
        _reduced_layer(collector, path, _banned)
    for path in MARKS:
        collector.mark(path)


def _reduced_layer(collector: Collector, path: str, change: Callable[[bytes], bytes]) -> None:
    """Save what is read of a file. What is left out of it is no secret that anybody would miss."""
    collector.file(path, change)
    collector.redacted.discard(path)


def _names_of_interrupts(content: bytes) -> bytes:
    """Return the numbers and handlers, without the counts."""
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
    """Return what gives it the CPUs on which it puts nothing. What takes back all before it stays.

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
    """Return variables about CPUs, as words of a unit."""
    return ['"%s=%s"' % (name, escaped(value)) for name, value in given.items() if name in _VARIABLES]


def _banned(content: bytes) -> bytes:
    given = read_environment(content.decode("utf-8", "surrogateescape")).items()
    return "".join('%s="%s"\n' % (name, _quoted(value)) for name, value in given if name in _VARIABLES).encode("utf-8")


def _quoted(value: str) -> str:
    return "".join("\\" + sign if sign in '"\\`$' else sign for sign in value)


# The version of this collection, which is in no file of a node.
COLLECTION = "0.1.0"

_CGROUP = "/sys/fs/cgroup"
_MOUNTS = ("/proc/mounts", "/proc/self/mounts")
_SAVED_KINDS = ([b"cgroup"], [b"cgroup2"], [b"resctrl"])
# By version of the cgroups: what is read of each.
_CGROUP_FILES = {
    1: (
        "cpuset.cpus",
        "cpuset.mems",
        "cpuset.effective_cpus",
        "cpuset.effective_mems",
        "cpuset.cpu_exclusive",
        "cpuset.mem_exclusive",
    ),
    2: (
        "cpuset.cpus",
        "cpuset.mems",
        "cpuset.cpus.effective",
        "cpuset.mems.effective",
        "cpuset.cpus.partition",
        "cgroup.events",
    ),
}
_PROCESSES, _THREADS = "cgroup.procs", "cgroup.threads"
# The hierarchies of v1 in which the kubelet makes cgroups.
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "hugetlb", "memory", "pids", "systemd")


def save_node(node: Node, name: str, redact: bool = False, now: float | None = None) -> tuple[bytes, dict[str, object]]:
    """Return the archive of a node, and what was written down in it: when it was saved, and what was left out.

    name: of the node. redact: hash the names of pods and containers. now: the time, in seconds since the epoch.
    Raises NodeError.
    """
    collector = Collector(node.tree)
    save_machine(collector)
    save_load(collector, node)
    names = save_names(collector, node, redact)
    save_cgroups(collector, node, set(names))
    save_bandwidth(collector, node)
    save_memory(collector, node)
    save_layers(collector)
    save_cache(collector, redact)
    save_loader(collector)
    save_owners(collector, node)
    save_kubelet(collector, node, redact)
    if collector.file("/etc/hostname") is None:
        collector.add(collector.new_place("/etc/hostname"), name.encode("utf-8", "surrogateescape") + b"\n")
    about = {
        "kind": KIND,
        "format": FORMAT,
        "collection": COLLECTION,
        "node": name,
        "saved": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "said": said_of(node).to_dict(),
        "names_hashed": redact,
        "left_out": [{"path": path, "why": why} for path, why in sorted(collector.left_out.items())],
        "redacted": sorted(collector.redacted),
    }
    content = (json.dumps(about, indent=1) + "\n").encode("ascii")
    return collector.archive((SAID, content)), {**about, "files": len(collector.members) + 1}


# --- the machine -------------------------------------------------------------------------------------------


def save_machine(collector: Collector) -> None:
    """Save what shows the machine's CPUs, memory and kernel."""
    tree = collector.tree
    for name in ("online", "present", "isolated", "nohz_full"):
        collector.file("%s/%s" % (CPU, name))
    for cpu in _numbered(tree, CPU, "cpu"):
        _save_cpu(collector, "%s/cpu%d" % (CPU, cpu))
    collector.file(NODE + "/online")
    for number in _numbered(tree, NODE, "node"):
        _save_numa_node(collector, "%s/node%d" % (NODE, number))
    for device in collector.names("/sys/class/net"):
        collector.mark("/sys/class/net/" + device)
        collector.file("/sys/class/net/%s/device/numa_node" % device)
    collector.mark(PCI_DEVICES)
    for device in collector.names(PCI_DEVICES):
        for name in PCI_FILES:
            collector.file("%s/%s/%s" % (PCI_DEVICES, device, name))
    collector.file("/proc/cpuinfo", _saved_cpuinfo)
    collector.file("/proc/meminfo", _lines_of(lambda line: line.startswith(("MemTotal", "MemAvailable", "Hugetlb"))))
    collector.file("/proc/swaps")
    for flag in (*KERNEL_FLAGS, "kernel/osrelease"):
        collector.file("/proc/sys/" + flag)
    collector.file("/etc/os-release")
    collector.mark("/run")
    collector.mark("/run/systemd/system")


def save_load(collector: Collector, node: Node) -> None:
    """Save what the plan of a benchmark says of the machine: its largest cache, and how busy it is."""
    collector.file("/proc/loadavg")
    collector.file(CPU + "/cpu0/cpufreq/scaling_governor")
    try:
        first = node.topology.online.first()
    except CPUManagerError:
        return
    for index in _numbered(collector.tree, "%s/cpu%d/cache" % (CPU, first), "index"):
        collector.file("%s/cpu%d/cache/index%d/size" % (CPU, first, index))


def _save_cpu(collector: Collector, path: str) -> None:
    collector.mark(path)
    collector.file(path + "/online")
    if not collector.mark(path + "/topology"):
        return
    for names in (CORE_MASKS, SOCKET_MASKS, DIE_MASKS):
        # The first that says something is read.
        any(collector.file("%s/topology/%s" % (path, name)) for name in names)
    for name in ("core_id", "physical_package_id", "die_id"):
        collector.file("%s/topology/%s" % (path, name))
    # As they are read: from the highest, which mostly is the L3 cache.
    for index in reversed(_numbered(collector.tree, path + "/cache", "index")):
        cache = "%s/cache/index%d" % (path, index)
        level, kind = collector.file(cache + "/level"), collector.file(cache + "/type")
        if (level or b"").strip() == L3.encode("ascii") and (kind or b"").strip() != b"Instruction":
            collector.file(cache + "/shared_cpu_map")
            collector.file(cache + "/id")
            break


def _save_numa_node(collector: Collector, path: str) -> None:
    if not collector.file(path + "/cpumap"):
        collector.file(path + "/cpulist")
    collector.file(path + "/distance")
    collector.file(path + "/meminfo", _lines_of(lambda line: "MemTotal" in line))
    for size in collector.names(path + "/hugepages"):
        collector.mark("%s/hugepages/%s" % (path, size))
        collector.file("%s/hugepages/%s/nr_hugepages" % (path, size))
    for access in ("access1", "access0"):
        for name in collector.names("%s/%s/initiators" % (path, access)):
            if name.startswith("node"):
                collector.mark("%s/%s/initiators/%s" % (path, access, name))


def _numbered(tree: Tree, path: str, prefix: str) -> list[int]:
    try:
        return tree.numbered(path, prefix)
    except CPUManagerError:
        return []


def _saved_cpuinfo(content: bytes) -> bytes:
    """Return the places of the CPUs, their model, and of the many flags only the one that is read."""
    shown = re.sub(rb"^(flags\s*:).*\bhypervisor\b.*$", rb"\1 hypervisor", content, flags=re.MULTILINE)
    return _lines_of(_is_read_of_cpuinfo, keep_numbers=True)(shown) or b""


def _is_read_of_cpuinfo(line: str) -> bool:
    field, _colon, value = line.partition(":")
    field = field.strip()
    if field == "flags":
        return value.strip() == "hypervisor"
    return field in FIELDS or field.startswith("processor") or field in ("cpu number", "model name")


def _lines_of(is_read: Callable[[str], bool], keep_numbers: bool = False) -> Change:
    """Return a change that leaves the lines that are read. keep_numbers: the others become empty, as messages number
    them."""

    def change(content: bytes) -> bytes:
        lines = content.decode("utf-8", "surrogateescape").split("\n")
        kept = [line if is_read(line) else "" for line in lines if keep_numbers or is_read(line)]
        return ("\n".join(kept) + ("" if keep_numbers else "\n")).encode("utf-8", "surrogateescape")

    return change


# --- what runs ---------------------------------------------------------------------------------------------


def save_names(collector: Collector, node: Node, redact: bool) -> list[str]:
    """Save the names of containers as the names of their logs; give the ids of the containers.

    Where there are no logs, those that the container runtime gives.
    """
    try:
        found = dict(names_of(node.tree)[0]) or _names_of_runtime(node)
    except CPUManagerError as error:
        collector.left_out[LOGS] = str(error)
        return []
    collector.mark(LOGS)
    for container_id, container in found.items():
        namespace, _slash, pod = container.pod_name.partition("/")
        names = (pod, namespace, container.name)
        pod, namespace, name = map(hashed, names) if redact else names
        collector.add(collector.new_place("%s/%s_%s_%s-%s.log" % (LOGS, pod, namespace, name, container_id)), b"")
    if found and redact:
        collector.redacted.add(LOGS)
    return list(found)


def _names_of_runtime(node: Node) -> dict[str, LoggedContainer]:
    """Return {container id: its names} of the containers of pods, where the node is live and its runtime answers."""
    configuration, _problem = node.found()
    if configuration is None or not node.runs_pods(cgroup_root_of(configuration)):
        return {}
    from .._containers.crictl import find_crictl

    runtime = find_crictl(node.tree, node.runtime_endpoint(configuration))
    if runtime is None:
        return {}
    runtime.read()
    return {
        container_id: container
        for container_id, container in runtime.names.items()
        # What it says becomes a file's name.
        if container.pod_name and "/" not in container.name and container.pod_name.count("/") == 1
    }


def save_cgroups(collector: Collector, node: Node, named: set[str]) -> None:
    """Save the cgroups' CPUs. named: the ids of the containers whose names are known."""
    tree = node.tree
    for path in _MOUNTS:
        if _save_mounts(collector, path):
            break
    collector.mark(_CGROUP)
    collector.file(_CGROUP + "/cgroup.controllers")
    collector.file(_CGROUP + "/unified/cgroup.controllers")
    for path in QUOTA_FILES:
        collector.file(path)
    try:
        hierarchy = Hierarchy(tree)
    except CPUManagerError:
        hierarchy = None
    if hierarchy is not None:
        for place in collector.directories(hierarchy.mount):
            for name in _CGROUP_FILES[hierarchy.version]:
                collector.file("%s/%s" % (place, name))
            _save_first_process(collector, place)
        if hierarchy.version == 2:
            # And of the cgroup of all pods, which can lack some.
            roots: list[str] = []
            with suppress(CPUManagerError):
                roots = Kubepods(hierarchy, cgroup_root_of(node.found()[0])).roots
            for place in (hierarchy.mount, *("%s/%s" % (hierarchy.mount, root) for root in roots)):
                collector.file(place + "/cgroup.controllers")
        _save_affinities(collector, node, hierarchy, named)
    if collector.place(_CGROUP + "/cgroup.controllers") is None:
        for controller in _CONTROLLERS:
            collector.directories("%s/%s" % (_CGROUP, controller))
    else:
        collector.directories(_CGROUP)


def save_bandwidth(collector: Collector, node: Node) -> None:
    """Save the quotas and weights of containers and of all cgroups above them, and what was counted there."""
    try:
        hierarchy = Hierarchy(node.tree, CPU_CONTROLLER)
        kubepods = Kubepods(hierarchy, cgroup_root_of(node.found()[0]))
        # With names from a runtime this saves also sandboxes, which are few files more.
        watched = watched_containers(kubepods, *names_of(node.tree))
    except CPUManagerError:
        return
    collector.mark(hierarchy.mount)
    collector.file("%s/cpu.shares" % hierarchy.mount)
    for path in dict.fromkeys(path for watch in watched for path in watch.levels):
        for name in BANDWIDTH_FILES[hierarchy.version]:
            collector.file("/".join(part for part in (hierarchy.mount, path, name) if part))


def save_memory(collector: Collector, node: Node) -> None:
    """Save how much memory containers of Guaranteed pods may have."""
    try:
        hierarchy = Hierarchy(node.tree, MEMORY)
        containers = Kubepods(hierarchy, cgroup_root_of(node.found()[0])).containers().values()
    except CPUManagerError:
        return
    name = MEMORY_LIMITS[hierarchy.version]
    collector.mark(hierarchy.mount)
    # By that of the root, v1 is found to have the controller.
    for path in ("", *(container.path for container in containers if container.qos_class == GUARANTEED)):
        collector.file("/".join(filter(None, (hierarchy.mount, path, name))))


def _save_mounts(collector: Collector, path: str) -> bool:
    """Save where the cgroups and resctrl are, of all mounts; of others, options may hold passwords."""
    try:
        if not collector.tree.exists(path):
            return False
        content = collector.tree.read_bytes(path)
    except CPUManagerError as error:
        collector.left_out[path] = error.what
        return False
    lines = [line for line in content.splitlines(True) if line.split(b" ")[2:3] in _SAVED_KINDS]
    # On a live node, this file is behind links that lead to the process that reads it.
    collector.add(path, b"".join(lines))
    if len(lines) < len(content.splitlines()):
        collector.redacted.add(path)
    return True


def _save_first_process(collector: Collector, place: str) -> None:
    path = "%s/%s" % (place, _PROCESSES)

    def first(content: bytes) -> bytes:
        return b"".join(content.splitlines(True)[:1])

    if collector.file(path, first) is None and collector.left_out.pop(path, ""):
        # In a threaded cgroup the kernel lists threads only, and the reader takes the first of them.
        content = collector.file("%s/%s" % (place, _THREADS))
        if content is not None:
            del collector.members["%s/%s" % (place, _THREADS)]
            collector.add(path, first(content))
    collector.redacted.discard(path)


def _save_affinities(collector: Collector, node: Node, hierarchy: Hierarchy, named: set[str]) -> None:
    """Save which CPUs the first process of each container may use."""
    try:
        root = cgroup_root_of(node.found()[0])
        containers = [
            container for container in Kubepods(hierarchy, root).containers().values() if container.id in named
        ]
    except CPUManagerError:
        return
    for process in sorted(set(hierarchy.first_processes(container.process_path for container in containers).values())):
        path = "/proc/%d/status" % process
        collector.file(path, _lines_of(lambda line: line.startswith("Cpus_allowed_list")))
        collector.redacted.discard(path)
        save_start(collector, "/proc/%d" % process)


def said_of(node: Node) -> SavedFacts:
    """Return what is to be saved of a node beside its files."""
    installation = node.installation
    try:
        storage = node.machine().storage
    except CPUManagerError:  # such as of a machine that shows no CPU
        storage = None
    running = installation is not None and installation.pid is not None
    return SavedFacts((node.version or "") if running else "", node.kubelet_notes(), storage, version_of(node))

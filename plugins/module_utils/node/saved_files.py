# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of a node are saved: what our modules read, and nothing else. The kubelet's are in saved_kubelet.py.

Of a file of which some lines are read, only these are saved. tests/unit/plugins/module_utils/node/test_saved_files.py
compares this list with what the modules open.
"""

from __future__ import annotations

import json
import re
import time
from typing import Callable

from ..cgroup.hierarchy import Hierarchy
from ..cgroup.kubepods import Kubepods
from ..cgroup.mounts import CPU as CPU_CONTROLLER
from ..errors import CPUManagerError
from ..isolation.bandwidth import FILES as BANDWIDTH_FILES
from ..topology.cpuinfo import FIELDS
from ..topology.sysfs import CORE_MASKS, CPU, DIE_MASKS, L3, NODE, SOCKET_MASKS
from ..tree import SAID, Tree
from ..workload.logs import DIRECTORY as LOGS
from ..workload.logs import LoggedContainer
from .collector import Change, Collector
from .node import Node, cgroup_root_of
from .observation import names_of
from .pod_names import hashed
from .saved_cache import save_cache
from .saved_kubelet import save_kubelet
from .saved_layers import save_layers
from .saved_loader import save_loader
from .saved_node import FORMAT, KIND, said_of
from .saved_owners import save_owners
from .throttling import watched_containers

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
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "systemd")
_KERNEL_FLAGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "kernel/osrelease",
)


def save_node(node: Node, name: str, redact: bool = False, now: float | None = None) -> tuple[bytes, dict[str, object]]:
    """The archive of a node, and what was written down in it: when it was saved, and what was left out.

    name: of the node. redact: hash the names of pods and containers. now: the time, in seconds since the epoch.
    Raises NodeError.
    """
    collector = Collector(node.tree)
    save_machine(collector)
    save_load(collector, node)
    names = save_names(collector, node, redact)
    save_cgroups(collector, node, set(names))
    save_bandwidth(collector, node)
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
    collector.file("/proc/cpuinfo", _saved_cpuinfo)
    collector.file("/proc/meminfo", _lines_of(lambda line: line.startswith(("MemTotal", "MemAvailable", "Hugetlb"))))
    collector.file("/proc/swaps")
    for flag in _KERNEL_FLAGS:
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
    """The places of the CPUs, their model, and of the many flags only the one that is read."""
    shown = re.sub(rb"^(flags\s*:).*\bhypervisor\b.*$", rb"\1 hypervisor", content, flags=re.MULTILINE)
    return _lines_of(_is_read_of_cpuinfo, keep_numbers=True)(shown) or b""


def _is_read_of_cpuinfo(line: str) -> bool:
    field, _colon, value = line.partition(":")
    field = field.strip()
    if field == "flags":
        return value.strip() == "hypervisor"
    return field in FIELDS or field.startswith("processor") or field in ("cpu number", "model name")


def _lines_of(is_read: Callable[[str], bool], keep_numbers: bool = False) -> Change:
    """A change that leaves the lines that are read. keep_numbers: the others become empty, as messages number them."""

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
    """{container id: its names} of the containers of pods, where the node is live and its runtime answers."""
    configuration, _problem = node.found()
    if configuration is None or not node.runs_pods(cgroup_root_of(configuration)):
        return {}
    from ..workload.crictl import find_crictl

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
            collector.file(hierarchy.mount + "/cgroup.controllers")
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

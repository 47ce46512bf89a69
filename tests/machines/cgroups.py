# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the cgroups of a node, as Linux shows their cpusets and as the kubelet and the container runtimes name them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

USUAL = "/sys/fs/cgroup"

_V1_CONTROLLERS = ("cpu,cpuacct", "cpuset", "memory", "pids")


class Files(NamedTuple):
    """What a cgroup's files are to hold; its effective sets follow from the kernel's rules."""

    cpus: str | None = ""
    mems: str | None = ""
    processes: tuple[int, ...] = ()
    cpu_exclusive: bool = False
    mem_exclusive: bool = False
    partition: str = "member"


class Style(NamedTuple):
    """How a hierarchy is mounted."""

    version: int
    mount: str
    mounts: tuple[str, ...]


_HEAD = ("sysfs /sys sysfs rw,nosuid 0 0", r"tmpfs /mnt/a\040disk tmpfs rw 0 0")
_V1_MOUNTS = tuple("cgroup %s/%s cgroup rw,nosuid,%s 0 0" % (USUAL, name, name) for name in _V1_CONTROLLERS)

V1 = Style(1, USUAL + "/cpuset", (*_HEAD, "tmpfs %s tmpfs ro,mode=755 0 0" % USUAL, *_V1_MOUNTS))
V2 = Style(2, USUAL, (*_HEAD, "cgroup2 %s cgroup2 rw,nosuid,nsdelegate 0 0" % USUAL))
# Beside v1, which has the controller.
HYBRID = Style(1, V1.mount, (*V1.mounts, "cgroup2 %s/unified cgroup2 rw,nsdelegate 0 0" % USUAL))
# Beside v1, which has other controllers.
HYBRID_V2 = Style(
    2,
    USUAL + "/unified",
    (*(line for line in V1.mounts if "cpuset" not in line), "cgroup2 %s/unified cgroup2 rw 0 0" % USUAL),
)
STYLES = {"v1": V1, "v2": V2, "hybrid": HYBRID, "hybrid-v2": HYBRID_V2}


def write_cgroups(
    root: Path,
    style: Style,
    cgroups: Mapping[str, Files],
    online: str = "0-7",
    nodes: str = "0-1",
    mounts: str | None = "/proc/mounts",
) -> Path:
    """Write these cgroups, by their paths, and those above them; give the directory of the hierarchy.

    mounts: where the tree tells what is mounted; None for one that does not.
    """
    top = root / style.mount[1:]
    if mounts is not None:
        _write(root / mounts[1:], "".join(line + "\n" for line in style.mounts))
    if style is HYBRID:
        _write(root / USUAL[1:] / "unified" / "cgroup.controllers", "hugetlb\n")
    whole = Files(online, nodes) if style.version == 1 else Files(None, None)
    parents = {parent: Files() for path in cgroups for parent in _above(path)}
    everything = {"": whole, **parents, **cgroups}
    effective = {"": (CPUSet.parse(online), CPUSet.parse(nodes))}
    for path in sorted(everything):
        files = everything[path]
        if path:
            above = effective[os.path.dirname(path)]
            effective[path] = (_effective(style, files.cpus, above[0]), _effective(style, files.mems, above[1]))
        below = any(candidate.startswith(path + "/") and everything[candidate].processes for candidate in everything)
        for name, text in _contents(style, path, files, effective[path], below).items():
            _write(top / path / name, text)
    return top


class CPUFiles(NamedTuple):
    """What a cgroup's files of the cpu controller are to hold, in microseconds; None for a file that is missing."""

    quota: int | None = None
    period: int = 100000
    burst: int | None = 0
    shares: int = 1024
    weight: int = 100
    # Periods, throttled periods, throttled time; what cpu.stat.local has.
    counted: tuple[int, int, int] = (0, 0, 0)
    local: int | None = 0


def cpu_mount(style: Style) -> str:
    """Return where a node with these mounts has the cpu controller: beside v1 that is v1, wherever cpusets are."""
    return USUAL if style is V2 else USUAL + "/cpu,cpuacct"


def write_cpu(root: Path, style: Style, cgroups: Mapping[str, CPUFiles]) -> Path:
    """Write these cgroups' files of the cpu controller, and those above them; give the directory of the hierarchy."""
    top = root / cpu_mount(style)[1:]
    for path in {"", *cgroups, *(above for below in cgroups for above in _above(below))}:
        files = cgroups.get(path, CPUFiles())
        contents = _cpu_files_of_v2(path, files) if style is V2 else _cpu_files_of_v1(files)
        for name, text in contents.items():
            _write(top / path / name, text + "\n")
    return top


def write_memory(root: Path, style: Style, limits: Mapping[str, int | None]) -> None:
    """Write the limits of these cgroups' memory, in bytes; None: none."""
    if style is V2:
        for path, limit in limits.items():
            _write(root / USUAL[1:] / path / "memory.max", "%s\n" % ("max" if limit is None else limit))
    else:
        # More than any machine has, in pages.
        none = (1 << 63) - 4096
        for path, limit in {"": None, **limits}.items():
            text = "%d\n" % (none if limit is None else limit)
            _write(root / USUAL[1:] / "memory" / path / "memory.limit_in_bytes", text)


def _cpu_files_of_v1(files: CPUFiles) -> dict[str, str]:
    periods, throttled, time = files.counted
    counted = "nr_periods %d\nnr_throttled %d\nthrottled_time %d" % (periods, throttled, time * 1000)
    found = {
        "cpu.cfs_quota_us": "%d" % (-1 if files.quota is None else files.quota),
        "cpu.cfs_period_us": "%d" % files.period,
        "cpu.shares": "%d" % files.shares,
        "cpu.stat": counted + ("" if files.burst is None else "\nnr_bursts 0\nburst_time 0"),
    }
    if files.burst is not None:
        found["cpu.cfs_burst_us"] = "%d" % files.burst
    if files.local is not None:
        found["cpu.stat.local"] = "throttled_time %d" % (files.local * 1000)
    return found


def _cpu_files_of_v2(path: str, files: CPUFiles) -> dict[str, str]:
    periods, throttled, time = files.counted
    usage = "usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\n"
    counted = "nr_periods %d\nnr_throttled %d\nthrottled_usec %d" % (periods, throttled, time)
    found = {"cpu.stat": usage + counted + ("" if files.burst is None else "\nnr_bursts 0\nburst_usec 0")}
    if files.local is not None:
        found["cpu.stat.local"] = "throttled_usec %d" % files.local
    if path:
        found["cpu.max"] = "%s %d" % ("max" if files.quota is None else files.quota, files.period)
        found["cpu.weight"] = "%d" % files.weight
        if files.burst is not None:
            found["cpu.max.burst"] = "%d" % files.burst
    return found


def _above(path: str) -> Iterator[str]:
    while path:
        path = os.path.dirname(path)
        if path:
            yield path


def _effective(style: Style, own: str | None, above: CPUSet) -> CPUSet:
    cpus = CPUSet.parse(own or "")
    return cpus if style.version == 1 else cpus & above or above


def _contents(
    style: Style, path: str, files: Files, effective: tuple[CPUSet, CPUSet], populated_below: bool
) -> dict[str, str]:
    found = {"cgroup.procs": "".join("%d\n" % pid for pid in files.processes)}
    if files.cpus is not None and files.mems is not None:
        found.update({"cpuset.cpus": files.cpus + "\n", "cpuset.mems": files.mems + "\n"})
    if style.version == 1:
        found["cpuset.effective_cpus"] = "%s\n" % effective[0]
        found["cpuset.effective_mems"] = "%s\n" % effective[1]
        found["cpuset.cpu_exclusive"] = "%d\n" % files.cpu_exclusive
        found["cpuset.mem_exclusive"] = "%d\n" % files.mem_exclusive
        return found
    found["cgroup.controllers"] = "cpuset cpu memory\n"
    if path:
        found["cgroup.events"] = "populated %d\nfrozen 0\n" % bool(files.processes or populated_below)
    if not path or files.cpus is not None:
        found["cpuset.cpus.effective"] = "%s\n" % effective[0]
        found["cpuset.mems.effective"] = "%s\n" % effective[1]
    if path and files.cpus is not None:
        found["cpuset.cpus.partition"] = files.partition + "\n"
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# --- the kubelet's names ----------------------------------------------------------------------------

SYSTEMD = "systemd"
CGROUPFS = "cgroupfs"

# The name of a container's cgroup, and of one inside, by runtime and driver.
CONTAINER_NAMES = {
    ("containerd", SYSTEMD): ("cri-containerd-%s.scope", ""),
    ("containerd", CGROUPFS): ("%s", ""),
    ("cri-o", SYSTEMD): ("crio-%s.scope", ""),
    ("cri-o", CGROUPFS): ("crio-%s", ""),
    ("cri-o+crun", SYSTEMD): ("crio-%s.scope", "container"),
    ("containerd+crun", SYSTEMD): ("cri-containerd-%s.scope", "container"),
    ("docker", SYSTEMD): ("docker-%s.scope", ""),
    ("docker", CGROUPFS): ("%s", ""),
}


QOS_DIRECTORIES = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}


def pod_path(driver: str, uid: str, qos_class: str) -> str:
    """Return the cgroup of a pod below the kubelet's own."""
    qos = QOS_DIRECTORIES[qos_class]
    if driver == CGROUPFS:
        return "/".join(filter(None, ("kubepods", qos, "pod" + uid)))
    name = "-".join(filter(None, ("kubepods", qos, "pod" + uid.replace("-", "_")))) + ".slice"
    return "/".join(filter(None, ("kubepods.slice", "kubepods-%s.slice" % qos if qos else "", name)))


def container_files(driver: str, runtime: str, pod: str, container: str, cpus: str) -> dict[str, Files]:
    """Return the cgroups of a container below its pod's, and what the runtime puts beside them."""
    name, inner = CONTAINER_NAMES[runtime, driver]
    path = "%s/%s" % (pod, name % container)
    process = (int(container[:6], 16),)
    found = {path: Files(cpus, "0", () if inner else process)}
    if inner:
        found["%s/%s" % (path, inner)] = Files("", "", process)
    if runtime.startswith("cri-o"):
        monitor = "crio-conmon-%s" % container + (".scope" if driver == SYSTEMD else "")
        found["%s/%s" % (pod, monitor)] = Files(cpus, "0", (process[0] + 1,))
    return found


# --- a whole node -----------------------------------------------------------------------------------

HOST = ("init.scope", "system.slice", "user.slice")


class Listed(NamedTuple):
    """A container as a line of text lists it; `cpus` is what its cgroup holds."""

    pod_uid: str
    qos_class: str
    pod: str
    container: str
    cpus: str

    @property
    def id(self) -> str:
        """The id that the runtime gave it: always the same for the same container."""
        return _id(self.pod_uid, self.container)


def read_listed(text: str) -> list[Listed]:
    """Return containers, one a line: the pod's UID and QoS class, namespace and name, the container, its CPUs.

    Raises InputError, which names the line.
    """
    listed = []
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split()
        if len(fields) != len(Listed._fields) or fields[1] not in QOS_DIRECTORIES or fields[2].count("/") != 1:
            raise InputError("line %d: %r is not UID QOS-CLASS NAMESPACE/POD CONTAINER CPUS" % (number, line))
        listed.append(Listed(*fields))
    return listed


def write_containers(root: Path, listed: Sequence[Listed], online: str, nodes: str) -> None:
    """Write the cgroups of v2 that a node with these containers has, and the links to their logs."""
    cgroups = dict.fromkeys(HOST, Files())
    logs = root / "var/log/containers"
    logs.mkdir(parents=True, exist_ok=True)
    for container in listed:
        pod = pod_path(SYSTEMD, container.pod_uid, container.qos_class)
        # The sandbox holds nothing, and so has all CPUs.
        cgroups.update(container_files(SYSTEMD, "containerd", pod, _id(container.pod_uid, ""), ""))
        cgroups.update(container_files(SYSTEMD, "containerd", pod, container.id, container.cpus))
        namespace, name = container.pod.split("/")
        (logs / ("%s_%s_%s-%s.log" % (name, namespace, container.container, container.id))).touch()
    write_cgroups(root, V2, cgroups, online, nodes)


def _id(pod_uid: str, container: str) -> str:
    return hashlib.sha256(("%s/%s" % (pod_uid, container)).encode()).hexdigest()

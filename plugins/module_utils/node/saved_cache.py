# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves how the caches of a node are divided: what cache_info reads of resctrl, and of the caches that are divided."""

from __future__ import annotations

from ..cache.mount import MOUNT
from ..cache.read import (
    BANDWIDTH_FILES,
    BANDWIDTHS,
    CACHE_FILES,
    CACHES,
    COUNTERS,
    GROUP_FILES,
    MON_DATA,
    MON_GROUPS,
    MONITORING,
    MONITORING_FILES,
    MOST_TASKS,
    NO_GROUPS,
    find_mount,
)
from ..cache.resctrl import LEVELS
from ..errors import CPUManagerError, InputError
from ..host.boot import BOOT_ID
from ..topology.sysfs import CPU
from ..tree import is_number
from .collector import Collector
from .dynamic.promise import parse_promise
from .places import CACHE, PROMISE
from .pod_names import hashed
from .redaction import UnsafeError

_ROOT_FILES = ("mode", "cpus_list", "schemata")


def save_cache(collector: Collector, redact: bool) -> None:
    """Save it; nothing but that there is a directory, where resctrl is not mounted.

    redact: hash the names of containers.
    """
    if collector.file(CACHE) is not None:
        collector.file(BOOT_ID)
    collector.file(PROMISE, _without_names if redact else None)
    collector.mark(MOUNT)
    try:
        if find_mount(collector.tree) is None:
            return
    except CPUManagerError:
        return
    for names, files in ((CACHES, CACHE_FILES), (BANDWIDTHS, BANDWIDTH_FILES), ((MONITORING,), MONITORING_FILES)):
        for name in names:
            if collector.mark("%s/info/%s" % (MOUNT, name)):
                for file in files:
                    collector.file("%s/info/%s/%s" % (MOUNT, name, file))
    _save_group(collector, MOUNT, _ROOT_FILES)
    for name in collector.names(MOUNT):
        if name not in NO_GROUPS and collector.place("%s/%s/schemata" % (MOUNT, name)) is not None:
            _save_group(collector, "%s/%s" % (MOUNT, name), GROUP_FILES)
    # The L3 caches are saved with the machine.
    for level in LEVELS[1:]:
        if any(collector.place("%s/info/%s" % (MOUNT, name)) for name in CACHES if name.startswith(level)):
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
    """What the policies dynamic and isolated have given out, with a hash for each container's name."""
    try:
        promise = parse_promise(content)
    except InputError as error:
        raise UnsafeError("it is no promise") from error
    held = {(pod, hashed(name)): cpus for (pod, name), cpus in promise.state.containers.items()}
    return promise._replace(state=promise.state._replace(containers=held), found={}, quotas={}).content()


def _few(content: bytes) -> bytes:
    """The processes that are looked at, and one more, so that it shows that there are more."""
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

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The quotas of one node's containers and what they did: cgroups, checkpoint and names together. It only reads."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterable, Mapping, Sequence

from .._base.errors import InputError, NodeError, Note, option
from .._base.quantity import counted
from .._cgroup.hierarchy import CPU, Hierarchy, find_controller, parent_of
from .._cgroup.kubepods import Kubepods
from .._containers.crictl import LoggedContainer, find_names
from .._kubelet.configuration import Configuration
from .._kubelet.gates import GATES, NO_EXCLUSIVE_QUOTA, Gates
from .._node.exclusive import Recorded, read_exclusive
from .._node.node import Node, cgroup_root_of, start_time
from ..cpuset import CPUSet
from ..state.assignments import State
from ..state.formats import NAMELESS
from .bandwidth import Level, read_levels
from .host_use import host_use
from .throttling import (
    Enforcer,
    ThrottlingSample,
    Watched,
    between,
    cgroup_rows,
    container_rows,
    findings_of,
    meaning_of,
    since_boot,
)

MOST_SECONDS = 3600
# Of one kind of problem, how many are shown.
_MOST_SHOWN = 5

Sleep = Callable[[float], None]


def throttling(node: Node, seconds: int, percent: int, sleep: Sleep = time.sleep) -> dict[str, Any]:
    """Return what limits each container, and what was throttled; see the module throttling_info for the shape.

    seconds: to count over; 0 for what was counted since each cgroup was made. percent: in which part of its periods a
    container may be throttled. Raises InputError for other numbers, NodeError where reading takes more rights.
    """
    for name, value, most in (("seconds", seconds, MOST_SECONDS), ("throttled_percent", percent, 100)):
        if not 0 <= value <= most:
            raise InputError("is %d" % value, option(name), "give 0 to %d" % most)
    configuration, problem = node.found()
    notes = [] if problem is None else [_note("pods below a cgroupRoot of their own are not found: %s" % problem)]
    cgroup_root = cgroup_root_of(configuration)
    try:
        hierarchy = Hierarchy(node.tree, CPU)
    except NodeError as error:
        # Of a saved node without cgroups there is nothing to say.
        if node.tree.live or node.runs_pods(cgroup_root):
            notes.insert(0, _note(str(error)))
        return _answer(node, None, [], {}, ThrottlingSample({}), [], notes)
    try:
        kubepods = Kubepods(hierarchy, cgroup_root)
    except InputError as error:
        return _answer(
            node, hierarchy, [], {}, ThrottlingSample({}), [], [_note("no pods are found: %s" % error), *notes]
        )
    host = host_use(hierarchy, kubepods.roots)
    names, all_named = find_names(node.tree, node.runtime_endpoint(configuration), node.hides_names)
    watched = watched_containers(kubepods, names, all_named)
    if not watched:
        return {**_answer(node, hierarchy, [], {}, ThrottlingSample({}), [], notes), "host": host}
    recorded = read_exclusive(node, configuration)
    watched, more = _with_exclusive_cpus(recorded, watched, all_named)
    levels, sample, missing = _read(hierarchy, watched, seconds, sleep)
    notes += [*more, *missing, *_whole_notes(recorded, watched, levels), *_notes(hierarchy, watched, levels)]
    findings = findings_of(watched, levels, sample, _enforcer(node, configuration, recorded.by_kubelet), percent)
    return {**_answer(node, hierarchy, watched, levels, sample, findings, notes), "host": host}


def _answer(
    node: Node,
    hierarchy: Hierarchy | None,
    watched: Sequence[Watched],
    levels: Mapping[str, Level],
    sample: ThrottlingSample,
    findings: Sequence[Mapping[str, str]],
    notes: list[str],
) -> dict[str, Any]:
    kernel, meaning = node.kernel(), []
    if hierarchy is not None:
        meaning = [*meaning_of(kernel, hierarchy.version, levels), *_split(hierarchy)]
    processes = (
        {} if hierarchy is None else hierarchy.first_processes(container.process_cgroup for container in watched)
    )
    return {
        "kernel": kernel,
        "meaning": meaning,
        "hierarchy": None if hierarchy is None else {"version": hierarchy.version, "mount": hierarchy.mount},
        "seconds": None if sample.seconds is None else round(sample.seconds, 3),
        "containers": [
            {**row, "started": _started(node, processes.get(container.process_cgroup))}
            for row, container in zip(container_rows(watched, levels, sample), watched)
        ],
        "cgroups": cgroup_rows(watched, levels, sample),
        "host": None,
        "findings": [dict(finding) for finding in findings],
        "notes": notes,
    }


def _started(node: Node, process: int | None) -> str:
    """Return when a process started, as 2026-11-29T07:10:00Z; empty where it is not known."""
    started = start_time(node.tree, process) if process else None
    # No clock has a later year.
    if started is None or not 0 <= started < 1 << 35:
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))


def _note(text: str) -> str:
    return Note("throttling-unmeasured", text)


# --- who is there ----------------------------------------------------------------------------------------


def watched_containers(kubepods: Kubepods, names: Mapping[str, LoggedContainer], all_named: bool) -> list[Watched]:
    """Return the containers whose cgroups are read, by pod and name: without sandboxes, where names show which these
    are."""
    found = []
    for container in kubepods.containers().values():
        if all_named and container.id not in names:
            continue
        pod, name = names.get(container.id, ("", None))
        top = next(top for top in kubepods.roots if container.path.startswith(top + "/"))
        paths = (container.path, parent_of(container.path), top, container.process_path)
        found.append(Watched(container.pod_uid, pod, name, container.id, container.qos_class, *paths))
    return sorted(found, key=lambda container: (container.pod, container.pod_uid, container.name or "", container.id))


def _with_exclusive_cpus(
    recorded: Recorded, watched: list[Watched], all_named: bool
) -> tuple[list[Watched], list[str]]:
    """Return the containers with the CPUs that each was given alone, and why that is not known of some."""
    state = recorded.state
    if state is None:
        if recorded.problem is None:
            return watched, []
        return watched, [_note("%s cannot be read: which containers have exclusive CPUs is not known" % recorded.where)]
    found = []
    for container in watched:
        # Of a container that has a part of a pod's CPUs, only the kubelet knows whether this is its own or shared.
        kind = "of_pod" if container.pod_uid in state.pod_assignments else "exclusive"
        requested = recorded.requests.get((container.pod_uid, container.name or ""))
        changed: dict[str, Any] = {kind: _assigned(container, state), "requested": requested}
        found.append(container._replace(**changed))
    unknown = {
        container.pod_uid
        for container in watched
        if container.name is None and state.assignments.get(container.pod_uid)
    }
    if all_named or not unknown:
        return found, []
    text = "the names of containers are not known, neither from logs nor from crictl: which of them have the exclusive"
    return found, [_note("%s CPUs of %s is not known" % (text, _list_of("pod", sorted(unknown))))]


def _assigned(container: Watched, state: State) -> CPUSet:
    # What a checkpoint of format 1 says, which has ids alone.
    by_id = state.assignments.get(container.id, {}).get(NAMELESS)
    return by_id or state.assignments.get(container.pod_uid, {}).get(container.name or "") or CPUSet()


def _whole_notes(recorded: Recorded, watched: Sequence[Watched], levels: Mapping[str, Level]) -> list[str]:
    """Return which pods that have CPUs as a whole are throttled as a whole, also containers with CPUs of their own."""
    whole = {} if recorded.state is None else recorded.state.pod_assignments
    text = (
        "the quota of pod %s, which has CPUs %s as a whole, is %s: when the containers that share CPUs use it up, all"
        " are throttled, also %s without a quota of %s own"
    )
    pods: dict[str, list[Watched]] = {}
    for container in watched:
        pods.setdefault(container.pod_cgroup, []).append(container)
    notes = []
    for path, members in pods.items():
        level, first = levels.get(path), members[0]
        free = [
            container.label
            for container in members
            if container.cgroup in levels and levels[container.cgroup].cpus is None and container.name is not None
        ]
        if first.pod_uid in whole and level is not None and level.cpus is not None and free:
            names = first.pod or first.pod_uid, whole[first.pod_uid], counted("%.4g" % level.cpus, "CPU")
            notes.append(text % (*names, _list_of("container", free), "its" if len(free) == 1 else "their"))
    return notes


def _enforcer(node: Node, configuration: Configuration | None, gives_cpus: bool) -> Enforcer:
    minor, lifts, sets_quotas = None if node.version is None else node.minor, None, None
    if configuration is not None:
        # Off is off, whichever version reads the file.
        sets_quotas = configuration.given(("cpuCFSQuota",)).value is not False
        lifts = None if minor is None else Gates.of(configuration.values, minor).enabled(NO_EXCLUSIVE_QUOTA)
    return Enforcer(NO_EXCLUSIVE_QUOTA, GATES[NO_EXCLUSIVE_QUOTA].life.since, minor, lifts, sets_quotas, gives_cpus)


# --- what was counted ------------------------------------------------------------------------------------


def _read(
    hierarchy: Hierarchy, watched: Sequence[Watched], seconds: int, sleep: Sleep
) -> tuple[dict[str, Level], ThrottlingSample, list[str]]:
    """Return the cgroups, what was counted in them, and why some of it was not."""
    paths = list(dict.fromkeys(path for container in watched for path in container.levels))
    levels = after = read_levels(hierarchy, paths)
    notes: list[str] = []
    sample = since_boot(levels)
    if seconds and not hierarchy.tree.live:
        text = "a saved node cannot be sampled for %s; give %s=0 for what was counted before it was saved"
        notes.append(_note(text % (counted(seconds, "second"), option("seconds"))))
        sample = ThrottlingSample({}, 0.0)
    elif seconds:
        # It does not jump when the clock is set.
        start = time.monotonic()
        sleep(seconds)
        after = read_levels(hierarchy, paths)
        sample = between(levels, after, time.monotonic() - start)
        levels = {**levels, **after}
        if sample.restarted:
            text = "were made anew or have counters that went backwards while they were looked at"
            notes.append(_note("%s %s" % (_list_of("cgroup", sample.restarted), text)))
    ended = [container.label for container in watched if container.cgroup not in after]
    if ended:
        text = "ended while they were looked at" if hierarchy.tree.live else "have no files of the cpu controller"
        notes.append(_note("%s %s" % (_list_of("container", ended), text)))
    return levels, sample, notes


def _notes(hierarchy: Hierarchy, watched: Sequence[Watched], levels: Mapping[str, Level]) -> list[str]:
    """Return what the files of cgroups do not show."""
    notes = [_note(text) for text in _few([problem for level in levels.values() for problem in level.problems])]
    without = [
        container.label
        for container in watched
        if container.cgroup in levels and not levels[container.cgroup].has_quota
    ]
    if without:
        why = "is its kernel built without CONFIG_CFS_BANDWIDTH?"
        if hierarchy.version == 2:
            why = "the cpu controller is not enabled there (cgroup.subtree_control), so that no limit of theirs holds"
        notes.append(_note("%s have no quota in %s: %s" % (_list_of("container", without), hierarchy.mount, why)))
    return notes


def _split(hierarchy: Hierarchy) -> list[str]:
    """Return where cpusets are, where that is another version of cgroups."""
    try:
        version, mount = find_controller(hierarchy.tree)
    except NodeError:
        return []
    if version == hierarchy.version:
        return []
    return [
        "the cpu controller is in version %d of cgroups at %s, and cpusets are in version %d at %s"
        % (hierarchy.version, hierarchy.mount, version, mount)
    ]


def _few(texts: Sequence[str]) -> Iterable[str]:
    yield from texts[:_MOST_SHOWN]
    if len(texts) > _MOST_SHOWN:
        yield "and %d more of that kind" % (len(texts) - _MOST_SHOWN)


def _list_of(noun: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_SHOWN])
    return "%d %s(s) (%s%s)" % (len(names), noun, shown, ", ..." if len(names) > _MOST_SHOWN else "")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel enforces, against what the checkpoint gives.

It decides and plans as the reconcile pass does: each difference here without a remedy is one that a pass writes.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, Note
from .._cgroup.hierarchy import lineage, parent_of
from .._host.partitions import owned_cpus
from ..cpuset import CPUSet
from ..state.acceptance import STATIC
from ..state.assignments import State
from .container_cpus import (
    KEPT,
    SKIPPED,
    WRITE,
    ContainerRow,
    Lost,
    Observed,
    Running,
    cuts,
    decide,
    lost_in,
    lost_notes,
    unowned_notes,
    ways_out,
)

_RESTART = "restart the kubelet, which then writes the cpusets of all its containers once"
_MOVE = "move a pod with exclusive CPUs to another node: %s"
_FENCES = {
    1: "keep services off them with CPUAffinity= in systemd's system.conf",
    2: "keep them off with AllowedCPUs= of these units (of a cgroup that is none, by what makes it)",
}
# What the kernel does where a cgroup lacks what the kubelet gives to containers in it.
_LACKING = {
    1: "a container that is given them does not start, as the kernel refuses what the runtime writes (EACCES)",
    2: "what the kubelet gives to containers in it is cut by them",
}


class Enforcement(NamedTuple):
    """What differs, and what is worth a note; see the module drift_info for the shapes."""

    drift: Sequence[dict[str, str]]
    notes: Sequence[str]
    # Whether a reconcile pass would write anything.
    to_reconcile: bool
    summary: dict[str, Any]
    lost: Sequence[Lost] = ()


def compare(observed: Observed, policy_name: str | None, state: State | None, coming: CPUSet = CPUSet()) -> Enforcement:
    """Return what runs on a node against its checkpoint. Without a state, which the kubelet would take, nothing
    differs.

    coming: then, the CPUs that a kubelet would give out from its next start on.
    """
    if state is None:
        return Enforcement((), tuple(_narrow(observed, CPUSet(), coming)), False, _summary(observed, ()))
    rows = decide(observed.running, policy_name, state, observed.online, observed.all_named)
    differing = [row for row in rows if row.result == WRITE]
    refused = _refused(observed, rows) if differing else {}
    writable = [row for row in differing if row.cgroup not in refused]
    exclusive = state.exclusive_cpus() & observed.online
    drift = [
        *_cutting(observed, writable),
        *_refusing(observed, differing, refused),
        *(_different(observed, row, refused.get(row.cgroup)) for row in differing),
        *_trespassing(observed, rows, state),
        *_fences(observed, exclusive),
    ]
    lost = lost_in(observed, state)
    notes = [
        *_unfenced(observed, exclusive),
        *_narrow(observed, exclusive, state.default_cpu_set),
        *_no_partitions(observed),
        *_strays(observed),
        *_idle(observed, state),
        *lost_notes(lost),
        *unowned_notes(state, observed.pod_names()),
        *_bound(observed),
        *(_left_over(observed) if policy_name != STATIC else ()),
    ]
    return Enforcement(drift, notes, bool(writable), _summary(observed, rows), lost)


def _refused(observed: Observed, rows: Sequence[ContainerRow]) -> Mapping[str, CPUManagerError]:
    """Return which of these a pass could not write, and why, by their cgroups. It reads more of the node."""
    # Imported here: on most nodes nothing differs.
    from .container_writes import rehearse

    return rehearse(observed.hierarchy, observed.online, observed.running, rows)


def _summary(observed: Observed, rows: Sequence[ContainerRow]) -> dict[str, object]:
    results = [row.result for row in rows] or [SKIPPED] * len(observed.running)
    return {
        "version": observed.version,
        "mount": observed.mount,
        "containers": {
            "kept": results.count(KEPT),
            "different": results.count(WRITE),
            "skipped": results.count(SKIPPED),
        },
        "cgroups": [
            {"path": path, "cpus": str(observed.held(path)), "effective": str(observed.effective[path] or "")}
            for path in (*observed.kubelets, *observed.hosts)
        ],
    }


def _name(owner: ContainerRow | Running, container: str | None) -> str:
    return "%s/%s" % (owner.pod or owner.pod_uid, container or owner.id[:12])


def _by_pod(state: State) -> dict[str, CPUSet]:
    """Return {pod UID: all CPUs that it or its containers have to themselves}"""
    found: dict[str, CPUSet] = {}
    for uid, _container, cpus in state.owners():
        found[uid] = found.get(uid, CPUSet()) | cpus
    return found


# --- differences --------------------------------------------------------------------------------------


def _different(observed: Observed, row: ContainerRow, refused: CPUManagerError | None) -> dict[str, str]:
    """Return a container that has other CPUs than it is to have."""
    found, held = str(row.effective), observed.held(row.cgroup)
    if held != row.effective:
        found += " (cpuset.cpus: %s)" % (held or "empty")
    subject = "container " + _name(row, row.container)
    return {"subject": subject, "wanted": str(row.wanted), "found": found, **_remedy(refused)}


def _remedy(refused: CPUManagerError | None) -> dict[str, str]:
    return {} if refused is None else {"remedy": str(refused)}


def _refusing(
    observed: Observed, differing: Sequence[ContainerRow], refused: Mapping[str, CPUManagerError]
) -> Iterator[dict[str, str]]:
    """Yield the cgroups above containers that no pass can widen for them."""
    needs: dict[str, CPUSet] = {}
    errors = {}
    for row in differing:
        error = refused.get(row.cgroup)
        if error is not None and error.where in observed.above(row.cgroup):
            needs[error.where] = needs.get(error.where, CPUSet()) | row.wanted
            errors[error.where] = error
    for path, wanted in sorted(needs.items()):
        held = observed.held(path)
        yield {
            "subject": "cgroup " + path,
            "wanted": str(held | wanted),
            "found": str(held),
            **_remedy(errors[path]),
        }


def _cutting(observed: Observed, differing: Sequence[ContainerRow]) -> Iterator[dict[str, str]]:
    """Yield the cgroups above these containers that let less through than they want: on v2 without any error."""
    needs: dict[str, CPUSet] = {}
    for row in differing:
        for path in observed.above(row.cgroup):
            needs[path] = needs.get(path, CPUSet()) | row.wanted
    for path in sorted(needs):
        held = observed.held(path)
        # What it holds itself, since what is effective may be cut above it, where it is told already.
        if cuts(observed.version, held, needs[path]):
            yield {"subject": "cgroup " + path, "wanted": str(held | needs[path]), "found": str(held)}


def _trespassing(observed: Observed, rows: Sequence[ContainerRow], state: State) -> Iterator[dict[str, str]]:
    """Yield containers whose own CPUs cannot be determined, but which have those of others."""
    own, exclusive = _by_pod(state), state.exclusive_cpus()
    for container, row in zip(observed.running, rows):
        foreign = row.effective & (exclusive - own.get(container.pod_uid, CPUSet()))
        # A sandbox may have all CPUs: it only sleeps.
        if row.result == SKIPPED and container.name is not None and foreign:
            yield {
                "subject": "container " + _name(row, row.container),
                "wanted": str(row.effective - foreign),
                "found": str(row.effective),
                "remedy": _RESTART if container.pod_uid in state.pod_assignments else _MOVE % row.why,
            }


def _fences(observed: Observed, exclusive: CPUSet) -> Iterator[dict[str, str]]:
    """Yield the host's cgroups that somebody has fenced in, and not off the exclusive CPUs."""
    # What a partition has, no container can have: that is said of the container.
    owned = {part.path for part in observed.partitions if not part.problem}
    for path in (path for path in observed.hosts if path not in owned):
        effective = observed.effective[path] or CPUSet()
        if effective < observed.online and not effective.isdisjoint(exclusive):
            wanted = effective - exclusive or observed.online - exclusive
            yield {
                "subject": "cgroup " + path,
                "wanted": str(wanted),
                "found": str(effective),
                "remedy": "give %s only the CPUs %s, and its unit too if it is one of systemd's" % (path, wanted),
            }


# --- notes --------------------------------------------------------------------------------------------


def _unfenced(observed: Observed, exclusive: CPUSet) -> Iterator[str]:
    open_ones = [path for path in observed.hosts if observed.effective[path] == observed.online]
    # On v1, what has no cgroup of its own is in the topmost.
    if observed.version == 1 and not observed.hosts:
        open_ones = ["the topmost cgroup"]
    if exclusive and open_ones:
        yield Note(
            "host-not-fenced",
            "what runs in %s may run on the exclusive CPUs %s, too: %s"
            % (", ".join(open_ones), exclusive, _FENCES[observed.version]),
        )


def _narrow(observed: Observed, exclusive: CPUSet, shared: CPUSet) -> Iterator[str]:
    lacking: dict[str, CPUSet] = {}
    # What the topmost cgroup lacks is told of the node; what a container has as a partition is lacking above it.
    reachable = (observed.topmost or observed.online) - owned_cpus(
        part for part in observed.partitions if not set(lineage(part.path)).isdisjoint(observed.kubelets)
    )
    for path in observed.kubelets:
        # Only Guaranteed pods have exclusive CPUs, and they are in no class's cgroup.
        given = shared if parent_of(path) in observed.kubelets else exclusive | shared
        missing = (given & observed.online & reachable) - (observed.effective[path] or CPUSet())
        if missing:
            above = reversed(list(lineage(path)))
            who = next((cgroup for cgroup in above if cuts(observed.version, observed.held(cgroup), missing)), path)
            lacking[who] = lacking.get(who, CPUSet()) | missing
    for path, missing in lacking.items():
        text = "%s has no CPUs %s: %s" % (path, missing, _LACKING[observed.version])
        if path not in observed.kubelets:
            text += "; it is above the kubelet's cgroups (cgroupRoot): " + ways_out(missing, ["it"])
        yield Note("kubepods-narrow", text)


def _no_partitions(observed: Observed) -> Iterator[str]:
    containers = {container.cgroup: container for container in observed.running}
    for part in observed.partitions:
        container = containers.get(part.path)
        if container is not None and part.problem:
            text = "container %s is to be a partition of the kind %s, and the kernel does not take it for one: %s"
            yield Note(
                "container-partition-invalid", text % (_name(container, container.name), part.kind, part.problem)
            )


def _idle(observed: Observed, state: State) -> Iterator[str]:
    here = {container.pod_uid for container in observed.running}
    for uid, cpus in _by_pod(state).items():
        if uid not in here:
            text = "CPUs %s are exclusive to pod %s, of which nothing runs here" % (cpus, uid)
            yield Note("exclusive-cpus-idle", text)


def _bound(observed: Observed) -> Iterator[str]:
    bound, binders = [], set()
    for container in observed.running:
        allowed = observed.affinities.get(container.id, observed.online) & observed.online
        if container.effective is not None and allowed < container.effective:
            bound.append("%s: %s of %s" % (_name(container, container.name), allowed, container.effective))
            binders |= {what for what, cpus in observed.binders.items() if cpus & observed.online == allowed}
    if bound:
        yield Note(
            "process-bound",
            "containers whose first process is bound to fewer CPUs than its cgroup has: %d (%s%s); %s Linux keeps the"
            " affinity that a process begins with from 6.2 on, and runc lifts it from 1.3.1 on"
            % (len(bound), bound[0], ", ..." * (len(bound) > 1), _by_whom(sorted(binders))),
        )


def _strays(observed: Observed) -> Iterator[str]:
    """Yield containers whose runtime takes a name that the systemd driver gives for one of a directory."""
    strays = [path for path in observed.hosts if ".slice:" in path]
    if strays:
        text = (
            "containers are in cgroups that no kubelet looks for: %d (%s%s); their runtime makes these by the driver"
            " cgroupfs, and the kubelet by systemd: give it that driver, too (SystemdCgroup = true in containerd's"
            " configuration), and drain the node before both are restarted"
        )
        yield Note("cgroups-unreadable", text % (len(strays), strays[0], ", ..." * (len(strays) > 1)))


def _by_whom(binders: Sequence[str]) -> str:
    if binders:
        return (
            "these are the CPUs of %s: take that out, where AllowedCPUs= binds the host's services alone."
            % " and of ".join(binders)
        )
    return "it binds itself, or has the CPUAffinity= of the service that started it or of systemd (system.conf):"


def _left_over(observed: Observed) -> Iterator[str]:
    few = [
        container
        for container in observed.running
        if container.name and container.effective and container.effective < observed.online
    ]
    if few:
        yield Note(
            "cpusets-left-over",
            "containers that have fewer CPUs than the node, although the policy gives none out: %d (%s: %s%s); a static"
            " policy has left that, or another tool wrote it"
            % (len(few), _name(few[0], few[0].name), few[0].effective, ", ..." * (len(few) > 1)),
        )

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What to write so that each container has its CPUs. Pure: it reads and writes nothing."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from ...cgroup.hierarchy import Cgroup, lineage, parent_of
from ...cgroup.mounts import CPUS
from ...cgroup.plan import Plan, Wanted, Write, plan_writes
from ...cpuset import CPUSet
from ...errors import InputError, RefusedError, option
from ...policy.options import StaticOptions
from ...state.assignments import State
from ...state.config import STATIC, CPUManagerConfig
from ...state.repair import pins_of, repair
from ...topology.kubelet_view import CPUTopology
from ...workload.pods import APP, Container, Pod
from ...workload.qos import GUARANTEED
from .decide import Running, cuts, widened

# --- one container's writes ---------------------------------------------------------------------------


def above_of(version: int, container: Running) -> list[str]:
    """The cgroups above a container beside which others may have its CPUs to themselves: those that may be widened, and
    on v1 all.
    """
    return list(lineage(parent_of(container.cgroup))) if version == 1 else _between(container)


def plan_container(
    version: int, cgroups: Mapping[str, Cgroup], container: Running, wanted: CPUSet, online: CPUSet, mems: CPUSet
) -> Plan:
    """The writes that make a set effective in a container's cgroup: those above it are widened where they cut it.

    cgroups: all around it and above_of() it, as they are when it is written.
    Raises RefusedError with the reason when there are no such writes.
    """
    above = _between(container)
    # A partition has CPUs of its own, which those above it do not have any more.
    partition = next((place for place, path in enumerate(above) if cgroups[path].is_valid_partition()), None)
    if partition is not None:
        outside, above = cgroups[above[partition]], above[:partition]
    else:
        outside = cgroups[parent_of(above[-1] if above else container.cgroup)]
    missing = wanted - outside.effective_cpus
    if missing:
        raise _lacking(version, cgroups, outside.path, missing)
    holders = _holders(cgroups, wanted, container.cgroup) if version != 1 else []
    if holders:
        where, owners = container.cgroup, ", ".join(holders)
        raise RefusedError("cannot have all of %s" % wanted, where, "partitions have them: " + owners)
    asked = []
    # A cgroup of v2 remembers CPUs that are offline.
    allowed = online
    for path in above:
        held = cgroups[path].cpus or CPUSet()
        wider = widened(version, held, cgroups[path].effective_cpus, wanted)
        if wider is not None:
            asked.append(Wanted(path, wider))
            allowed = allowed | held if version != 1 else allowed
    asked.append(Wanted(container.cgroup, wanted))
    own, inner = cgroups[container.cgroup], cgroups[container.process_cgroup]
    if inner.path != container.cgroup and (version == 1 or cuts(version, inner.cpus or CPUSet(), wanted)):
        asked.append(Wanted(inner.path, wanted))
    plan = plan_writes(version, cgroups, asked, allowed, mems)
    # Else what was done for another container has widened what cut this one.
    cut = [cpus for cpus in (own.effective_cpus, inner.effective_cpus) if cpus != wanted]
    if not plan.writes and cut:
        raise RefusedError(
            "its %s is %s already, and the kernel makes only %s of it effective" % (CPUS, wanted, cut[0])
        )
    return plan


def after_writes(version: int, cgroups: Mapping[str, Cgroup], writes: Iterable[Write]) -> dict[str, Cgroup]:
    """What is in the cgroups after these writes of CPUs."""
    found = dict(cgroups)
    for write in writes:
        found[write.path] = found[write.path]._replace(cpus=write.new, effective_cpus=write.new)
        if version == 1:
            continue
        for path in sorted(found):
            if path == write.path or path.startswith(write.path + "/"):
                own, above = found[path].cpus or CPUSet(), found[parent_of(path)].effective_cpus
                found[path] = found[path]._replace(effective_cpus=own & above or above)
    return found


def ways_out(missing: CPUSet, narrow: Sequence[str] = ()) -> str:
    """What can be done where containers are given CPUs that a cgroup above the kubelet's own does not have."""
    reserve = "reserve CPUs %s, too, with strict-cpu-reservation (from 1.32 on), so that no container is given them"
    return ("widen %s, or " % " and ".join(narrow) if narrow else "") + reserve % missing


def _lacking(version: int, cgroups: Mapping[str, Cgroup], outside: str, missing: CPUSet) -> RefusedError:
    """What to say of the cgroup that the kubelet's are in, or a container that has no kubelet."""
    above = [cgroups[path] for path in reversed(list(lineage(outside)))]
    narrow = [cgroup.path for cgroup in above if cuts(version, cgroup.cpus or CPUSet(), missing)]
    holders = ", ".join(_holders(cgroups, missing, outside))
    owners = ("exclusive cgroups" if version == 1 else "partitions") + " have them: %s; " % holders if holders else ""
    return RefusedError(
        "has no CPUs %s, and is not the kubelet's to widen" % missing,
        where=(narrow or [outside or "/"])[0],
        remedy=owners + ways_out(missing, narrow if len(narrow) > 1 else ["it"] * len(narrow)),
    )


def _holders(cgroups: Mapping[str, Cgroup], cpus: CPUSet, path: str) -> list[str]:
    """The cgroups, none of them above this one, that have some of these CPUs to themselves."""
    above = set(lineage(path))
    return [
        "%s (%s)" % (holder, cgroup.effective_cpus & cpus)
        for holder, cgroup in sorted(cgroups.items())
        if holder
        and holder not in above
        and (cgroup.is_valid_partition() or cgroup.cpu_exclusive)
        and not cpus.isdisjoint(cgroup.effective_cpus)
    ]


def _between(container: Running) -> list[str]:
    """The cgroups above a container that may be widened, from below."""
    paths = []
    path = container.cgroup
    while container.top and path != container.top:
        path = parent_of(path)
        paths.append(path)
    return paths


# --- a node without a kubelet -------------------------------------------------------------------------


class Listed(NamedTuple):
    """A container of a node without a kubelet: its pod, its name, its cgroup, and how many CPUs are its own."""

    pod: str
    name: str
    cgroup: str
    cpus: int


class Rules(NamedTuple):
    """By what the CPUs are given out."""

    topology: CPUTopology
    options: StaticOptions
    reserved: CPUSet
    minor: int


def allocate(listed: Sequence[Listed], old: bytes | None, rules: Rules) -> tuple[State, list[str]]:
    """The state in which each listed container has its CPUs, and notes on those that could not keep theirs.

    What the checkpoint `old` gives is kept where it has the right count and harms nobody; what is not listed is
    taken back. Raises RefusedError when there are not enough CPUs, InputError for a container that is listed twice.
    """
    # A node with a kubelet does without them.
    from ...policy.packed import SAFE
    from ...policy.policy import AllocationError
    from ...policy.running_state import RunningState
    from ...policy.static import StaticPolicy

    policy = StaticPolicy(rules.topology, rules.options, rules.reserved, rules.minor, SAFE)
    counts = _counts(listed)
    unknown = rules.reserved - rules.topology.all_cpus()
    if unknown:
        raise InputError("the node has no CPUs %s online" % unknown, where=option("reserved_system_cpus"))
    config = CPUManagerConfig(
        STATIC, rules.topology.all_cpus(), rules.reserved, rules.options.strict_cpu_reservation, rules.minor
    )
    pods = list(dict.fromkeys(container.pod for container in listed))
    repaired = repair(pins_of(old), config, pods)
    notes = [loss.to_text() for loss in repaired.losses]
    state = RunningState(repaired.state)
    for pod, containers in repaired.state.assignments.items():
        for name, cpus in containers.items():
            if counts.get((pod, name), 0) != len(cpus) or not cpus:
                policy.remove(state, pod, name)
    for uid in pods:
        own = [container for container in listed if container.pod == uid]
        whole = Pod(uid, uid, tuple(_as_specified(container) for container in own), GUARANTEED)
        # Only those that have nothing: the kubelet would look first whether the node has room for all.
        for container in own:
            if state.get(uid, container.name) is not None:
                continue
            try:
                policy.allocate(state, whole, container.name, None)
            except AllocationError as error:
                where = "pod %s, container %s" % (uid, container.name)
                raise RefusedError("%s; nothing was written" % error, where) from error
    if not state.default:
        raise RefusedError("no CPU would be left for the shared pool; nothing was written", remedy="reserve fewer")
    return state.snapshot(), notes


def _counts(listed: Iterable[Listed]) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for container in listed:
        if (container.pod, container.name) in counts:
            raise InputError(
                "pod %s has two containers named %s" % (container.pod, container.name), where=option("containers")
            )
        if container.cpus < 0:
            where = "%s: pod %s, container %s" % (option("containers"), container.pod, container.name)
            raise InputError("%d CPUs are fewer than none" % container.cpus, where)
        counts[container.pod, container.name] = container.cpus
    return counts


def _as_specified(container: Listed) -> Container:
    cpu = {"cpu": 1000 * container.cpus}
    return Container(container.name, APP, cpu, cpu)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Repair a checkpoint: the state that a kubelet accepts and that keeps every exclusive CPU it can.

A container keeps its CPUs when all of them are still there, none is reserved, and no other pod has one of them.
The containers of one pod may share CPUs, as init containers do with those that follow. All other CPUs go to the
shared pool.
"""

from __future__ import annotations

from typing import Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import GoError
from .._base.golang import read_cpus
from ..cpuset import CPUSet
from .acceptance import STATIC, CPUManagerConfig, pooled_cpus
from .assignments import State
from .checkpoint import decoded_or_none
from .formats import NAMELESS, Checkpoint, ContainerIDs, Format1, Format3

# In place of a container's name: the CPUs of a pod as a whole.
WHOLE_POD = ""


class Pin(NamedTuple):
    """Exclusive CPUs that a checkpoint names, their set as text, since it may be damaged."""

    pod: str
    container: str
    cpus: str


class Loss(NamedTuple):
    """A pin that cannot be kept, and why."""

    pin: Pin
    why: str

    def to_text(self) -> str:
        """Return one line about it."""
        pin = self.pin
        owner = "pod %s" % pin.pod
        if pin.container == NAMELESS:
            owner = "container id %s" % pin.pod
        elif pin.container != WHOLE_POD:
            owner += ", container %s" % pin.container
        return "%s: CPUs %s: %s" % (owner, pin.cpus, self.why)


class Repair(NamedTuple):
    """The repaired state, what is lost by it, and the pins of pods that no longer exist."""

    state: State
    losses: Sequence[Loss]
    stale: Sequence[Pin]


def pins_of(content: bytes | None, container_ids: ContainerIDs | None = None) -> list[Pin]:
    """Return all exclusive CPUs that a checkpoint names, whatever else is wrong with it; none if it cannot be read
    at all."""
    checkpoint = decoded_or_none(content)
    return [] if checkpoint is None else sorted(_pins(checkpoint, container_ids or {}))


def _pins(checkpoint: Checkpoint, container_ids: ContainerIDs) -> Iterator[Pin]:
    for key, value in (checkpoint.entries or {}).items():
        if checkpoint.version == Format1.version:
            yield Pin(*container_ids.get(key, (key, NAMELESS)), value)
        else:
            for container, text in (value or {}).items():
                yield Pin(key, container, text)
    if isinstance(checkpoint, Format3):
        for pod, cpus in (checkpoint.pod_entries or {}).items():
            yield Pin(pod, WHOLE_POD, str(cpus))


def repair(pins: Sequence[Pin], config: CPUManagerConfig, live_pods: Sequence[str] | None = None) -> Repair:
    """Make the state that a kubelet with this configuration accepts and that keeps the most pins.

    live_pods: the UIDs of the pods that exist, the oldest first: of two pods with the same CPU it keeps it. Without
    them all pods of the checkpoint are taken for live, in the order of their UIDs.
    """
    live, stale = list(pins), []
    if live_pods is not None:
        order = {pod: number for number, pod in enumerate(live_pods)}
        # A pod as a whole has nothing where none of its containers has: no removal would free it.
        divided = {pin.pod for pin in pins if pin.container != WHOLE_POD}
        stale = [
            pin
            for pin in pins
            if pin.container != NAMELESS and (pin.pod not in order or (pin.pod not in divided and not pin.container))
        ]
        gone = set(stale)
        live = [pin for pin in pins if pin not in gone]
        live.sort(key=lambda pin: order.get(pin.pod, len(order)))
    if config.policy_name != STATIC:
        why = "the policy %s gives no exclusive CPUs" % config.policy_name
        return Repair(State(CPUSet(), {}), [Loss(pin, why) for pin in live], stale)
    kept: dict[Pin, CPUSet] = {}
    losses = []
    owners = _Owners()
    for pin in live:
        cpus, why = _judge(pin, config, owners)
        if why:
            losses.append(Loss(pin, why))
        else:
            kept[pin] = cpus
            owners.add(pin.pod, cpus)
    pool = pooled_cpus(config)
    youngest: list[Loss] = []
    for pin, cpus in list(kept.items()):
        # A kubelet without a shared pool would not start: the youngest give their CPUs back.
        if cpus and (youngest or pool <= cpus):
            youngest.append(Loss(pin, "no CPU would be left for the shared pool"))
            del kept[pin]
        else:
            pool -= cpus
    return Repair(_state(pool, kept), [*losses, *reversed(youngest)], stale)


class _Owners:
    """The pods that keep CPUs. No two of them have the same."""

    def __init__(self) -> None:
        self._all = CPUSet()
        self._of_pods: dict[str, CPUSet] = {}
        self._by_cpu: dict[int, str] = {}

    def add(self, pod: str, cpus: CPUSet) -> None:
        self._by_cpu.update(dict.fromkeys(cpus - self._all, pod))
        self._all |= cpus
        self._of_pods[pod] = self._of_pods.get(pod, CPUSet()) | cpus

    def another(self, pod: str, cpus: CPUSet) -> tuple[str, CPUSet] | None:
        """Return another pod that has some of these CPUs, and which; None where none has."""
        taken = (self._all & cpus) - self._of_pods.get(pod, CPUSet())
        if not taken:
            return None
        owner = self._by_cpu[taken.first()]
        return owner, cpus & self._of_pods[owner]


def _judge(pin: Pin, config: CPUManagerConfig, owners: _Owners) -> tuple[CPUSet, str]:
    """Return the pin's CPUs, and why it cannot be kept; an empty text when it can."""
    try:
        cpus = read_cpus(pin.cpus)
    except GoError as error:
        return CPUSet(), "the set cannot be read (%s)" % error
    return cpus, next(_reasons(pin, cpus, config, owners), "")


def _reasons(pin: Pin, cpus: CPUSet, config: CPUManagerConfig, owners: _Owners) -> Iterator[str]:
    if pin.container == NAMELESS:
        yield "which pod it belongs to is not known; give the containers that run"
    if pin.container == WHOLE_POD and not config.pod_level:
        yield "this kubelet gives no CPUs to whole pods"
    if not cpus <= config.all_cpus:
        yield "CPUs %s are not online" % (cpus - config.all_cpus)
    if not cpus.isdisjoint(config.reserved):
        yield "CPUs %s are reserved now" % (cpus & config.reserved)
    another = owners.another(pin.pod, cpus)
    if another is not None:
        yield "CPUs %s belong to pod %s, too" % (another[1], another[0])


def _state(pool: CPUSet, kept: Mapping[Pin, CPUSet]) -> State:
    assignments: dict[str, dict[str, CPUSet]] = {}
    whole_pods = {}
    for pin, cpus in kept.items():
        if pin.container == WHOLE_POD:
            whole_pods[pin.pod] = cpus
        else:
            assignments.setdefault(pin.pod, {})[pin.container] = cpus
    return State(pool, assignments, whole_pods)

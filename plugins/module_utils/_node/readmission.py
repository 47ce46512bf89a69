# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a start of the kubelet does to each pod that runs: it keeps what it has, is moved, or is refused. Pure.

A kubelet that starts admits all pods of its node anew, with what its states give to them. Until it has heard of all,
it takes nothing back, so what a refused pod has is not free for the others. Plugins of devices register only later.
Sources: syncLoopIteration and HandlePodAdditions in pkg/kubelet/kubelet.go; AddContainer in
pkg/kubelet/cm/memorymanager/memory_manager.go; devicesToAllocate in pkg/kubelet/cm/devicemanager/manager.go.
"""

from __future__ import annotations

from typing import Any, Collection, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import Note
from .._base.quantity import counted
from .._cgroup.kubepods import BURSTABLE, GUARANTEED
from .._containers.pods import APP, INIT, Container, Pod
from .._kubelet.gates import Gates
from ..cpuset import CPUSet
from ..policy.assignment import EndlessDistributionError
from ..policy.devices import Device, DeviceManager, Owned
from ..policy.hints import OtherManagers
from ..policy.manager import CPU, Admission, CPUManager
from ..state.acceptance import readable
from ..state.assignments import State
from ..state.memory_manager import MEMORY, memory_amounts, memory_of_pods
from ..state.restored import DamageError, DeviceState, read_devices
from .allocation import (
    ENDLESS,
    KUBELET,
    Question,
    Room,
    allocatable,
    beside_of,
    listed_running,
    planned_question,
    predicted_start,
    seen_by,
    start_manager,
    why_refused,
)
from .beside_cpus import device_masks
from .container_cpus import running_names, sharing_in
from .providers import BesideCPUs

KEEPS, MOVES, REFUSED = "keeps", "moves", "refused"

# Some memory, in thousandths of a byte, where it is only known that there is some.
_SOME = 1
# The check of the note.
PODS_LOST = "pods-lost-at-restart"
# From this minor version on, a pod whose containers do not run gets no devices that are not healthy.
_LOOKS_AT_HEALTH = 26
# So many pods are named in a note.
_TOLD = 10


class Written(NamedTuple):
    """The files of the kubelet's managers as they are now; None where there is none."""

    checkpoint: bytes | None
    memory_state: bytes | None


class Fate(NamedTuple):
    """What becomes of a pod. reason, message: the kubelet's, of one that it refuses."""

    uid: str
    pod: str
    fate: str
    reason: str = ""
    message: str = ""
    # What did not fit, or what is moved.
    why: str = ""
    # What is not known of the pod, and what it was taken for.
    assumed: str = ""
    # Whether the pod loses what it has: it is refused, or CPUs of its own are moved.
    is_loss: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        row = dict(self._asdict())
        del row["is_loss"]
        return row

    def to_text(self) -> str:
        """Return `shop/db-0: SMTAlignmentError, SMT Alignment Error: ...`"""
        said = "%s, %s" % (self.reason, self.message) if self.reason else self.fate
        more = "; ".join(filter(None, (self.why, self.assumed)))
        return "%s: %s%s" % (self.pod, said, " (%s)" % more if more else "")


def fates_of(question: Question, written: Written) -> list[Fate]:
    """Return what the kubelet that the question describes, which starts with its states, does to each pod that runs.

    question.pods: manifests, of which those count that run; the others that run are read from the states as they are
    `written` now. Raises as plan_allocations().
    """
    if question.policy != KUBELET:
        return []
    now = readable(written.checkpoint).state or State(CPUSet(), {})
    question, settings = planned_question(question)
    prediction = predicted_start(question)
    memory = {} if written.memory_state is None else memory_amounts(written.memory_state)
    owned = _device_state(question.others)
    uids = {*now.assignments, *(uid for uid, _name in memory), *(uid for uid, *_more in owned.owned)}
    pods = [pod.as_allocated() for pod in listed_running(question, {*uids, *now.pod_assignments})]
    whole = {} if written.memory_state is None else memory_of_pods(written.memory_state)
    pods += _unlisted(question, now, memory, whole, owned)
    others = question.others._replace(devices=(), device_state=None)
    beside = beside_of(question._replace(others=others, pods=pods), settings, prediction)
    if beside is not None:
        beside.devices = _starting(question, owned, pods)
    manager = start_manager(question, settings, prediction, [], () if beside is None else beside.providers)
    # They were given what they have before any of them is admitted.
    manager.is_ready = False
    room = Room(allocatable(question.configuration.values, question.machine), question.machine.minor)
    restart = _Restart(manager, beside, room, now, settings)
    restart.listed = {pod.name for pod in question.pods}
    fates = [restart.admit(pod) for pod in pods]
    if question.machine.minor < _LOOKS_AT_HEALTH:
        return fates
    return [
        _booted(fate, sorted({kind for uid, _name, kind, *_more in owned.owned if uid == fate.uid})) for fate in fates
    ]


def _booted(fate: Fate, devices: Sequence[str]) -> Fate:
    """Return the fate of a pod with these devices, which is another one where its containers do not run."""
    if not devices or fate.is_loss:
        return fate
    text = "that its containers run: a start after a boot refuses the pod until the plugin of %s has registered"
    return fate._replace(assumed="; ".join(filter(None, (fate.assumed, text % " and ".join(devices)))))


def loss_notes(fates: Sequence[Fate], start: str) -> list[str]:
    """Return one note on the pods that lose what they have; none where none does. start: which one of the kubelet it
    is."""
    lost = [fate.to_text() for fate in fates if fate.is_loss]
    if not lost:
        return []
    more = ["and %s more" % counted(len(lost) - _TOLD, "pod")] if len(lost) > _TOLD else []
    text = "%s admits all pods that run anew, and %s would lose what they have: %s; drain the node before"
    return [Note(PODS_LOST, text % (start, counted(len(lost), "pod"), "; ".join([*lost[:_TOLD], *more])))]


class _Restart:
    """The admissions of one start, in turn."""

    def __init__(
        self, manager: CPUManager, beside: BesideCPUs | None, room: Room, now: State, settings: Mapping[str, Any]
    ) -> None:
        self.manager, self.beside, self.room, self.now, self.settings = manager, beside, room, now, settings
        # The names of the pods whose manifests are given.
        self.listed: Collection[str] = ()

    def admit(self, pod: Pod) -> Fate:
        """Return the next pod."""
        pod, assumed = self._with_memory(pod)
        try:
            admission = self.manager.add(pod)
        except EndlessDistributionError as error:
            return _refused(pod, ENDLESS, str(error), "no later pod would start")
        if not admission.admitted:
            whys = why_refused(self.manager, pod, admission, self.beside), self._cause(pod, admission)
            return _refused(pod, admission.reason, admission.message, "; ".join(filter(None, whys)), assumed)
        lacking = self.room.refusal(pod)
        if lacking:
            return _refused(pod, *lacking)
        self.room.take(pod)
        moved = "; ".join((*self._lost_as_whole(pod), *self._moved(pod)))
        had = any(self.now.assignments.get(pod.uid, {}).values())
        fate = MOVES if moved else KEEPS
        return Fate(pod.uid, pod.name, fate, why=moved, assumed=assumed, is_loss=bool(moved and had))

    def _with_memory(self, pod: Pod) -> tuple[Pod, str]:
        """Return the pod, and what was assumed: what a container asks for is in no state once that has forgotten it."""
        memory = None if self.beside is None else self.beside.memory
        if memory is None or pod.is_divided:
            return pod, self._assumed_of_whole(pod)
        own = memory.entries.get(pod.uid, {})
        most = max((container.requests.get(MEMORY, 0) for container in pod.containers), default=0)
        unknown = [
            container.name
            for container in pod.containers
            if container.name not in own and MEMORY not in container.requests
        ]
        if not unknown or pod.qos(self.room.minor) != GUARANTEED:
            return pod, ""
        text = "what container %s asks for is not known, and " % " and ".join(unknown)
        if not most:
            return pod, text + "its memory is not counted"
        amount = {MEMORY: most}
        containers = tuple(
            container._replace(requests={**container.requests, **amount}, limits={**container.limits, **amount})
            if container.name in unknown
            else container
            for container in pod.containers
        )
        return pod._replace(containers=containers), text + "taken for as much memory as the largest of its pod"

    def _assumed_of_whole(self, pod: Pod) -> str:
        """Return what cannot be seen of a pod with CPUs as a whole whose manifest is not given."""
        whole, own = self.now.pod_assignments.get(pod.uid), self.now.assignments.get(pod.uid, {})
        if pod.name in self.listed or not whole or not any(own.values()):
            return ""
        is_apart = not any(own[name] & own[sibling] for name in own for sibling in own if sibling != name)
        used = CPUSet(cpu for cpus in own.values() for cpu in cpus)
        # A pool that nobody else has looks like CPUs of its own.
        text = "whether container %s shares the pod's CPUs is not in the states, and it is taken for one with its own"
        return text % " or ".join(own) if is_apart and used == whole else ""

    def _cause(self, pod: Pod, admission: Admission) -> str:
        """Return why a pod that was admitted once is not admitted again."""
        member = next((member for member in pod.containers if member.name == admission.container), None)
        if member is not None and member.kind == INIT and MEMORY in admission.not_aligned:
            return "init container %s has ended and given its memory back, and asks for it again" % member.name
        if admission.reason == "SMTAlignmentError" and self.manager.state.get(pod.uid, admission.container) is not None:
            return "free cores are counted before it is seen that container %s has its CPUs" % admission.container
        return ""

    def _lost_as_whole(self, pod: Pod) -> Iterator[str]:
        """Yield what was the pod's as a whole and is nobody's afterwards.

        Source: AllocatePod in pkg/kubelet/cm/cpumanager/policy_static.go of 1.36.
        """
        had = self.now.pod_assignments.get(pod.uid, CPUSet())
        has = CPUSet.from_mask(self.manager.state.pods.get(pod.uid, 0))
        after = self.manager.state.snapshot()
        lost = had - after.default_cpu_set - after.exclusive_cpus()
        if has and had != has and lost:
            text = (
                "the pod is given %s a second time, CPUs %s for %s; CPUs %s are then nobody's, and the start after that"
                " one is refused"
            )
            yield text % (counted(len(has), "CPU"), has, had, lost)

    def _moved(self, pod: Pod) -> Iterator[str]:
        """Yield each container whose CPUs are others afterwards; an init container that has ended uses none."""
        before = self.now.assignments.get(pod.uid, {})
        for container in pod.containers:
            own = self.manager.state.get(pod.uid, container.name)
            had = before.get(container.name, CPUSet())
            has = CPUSet() if own is None else CPUSet.from_mask(own)
            if had != has and container.kind != INIT:
                yield "container %s: from %s to %s" % (container.name, _place(had), _place(has))


def _refused(pod: Pod, reason: str, message: str, why: str = "", assumed: str = "") -> Fate:
    return Fate(pod.uid, pod.name, REFUSED, reason, message, why, assumed, is_loss=True)


def _place(cpus: CPUSet) -> str:
    return "CPUs %s" % cpus if cpus else "the shared pool"


# --- what the states alone tell of pods -----------------------------------------------------------------------


def _unlisted(
    question: Question,
    now: State,
    memory: Mapping[tuple[str, str], Mapping[str, int]],
    whole: Mapping[str, Mapping[str, int]],
    owned: DeviceState,
) -> Iterator[Pod]:
    """Yield pods with what they have. In which order they came is not known. whole: the memory of pods as a whole."""
    gates = Gates.of(question.configuration.values, question.machine.minor)
    told = {pod.uid for pod in question.pods}
    here = running_names(question.running)
    shown = {container.pod_uid: container.pod for container in question.running if container.pod}
    # {pod UID: {container: {resource: amount}}}
    others: dict[str, dict[str, dict[str, int]]] = {}
    for (uid, name), sizes in memory.items():
        others.setdefault(uid, {}).setdefault(name, {}).update(sizes)
    with_memory = {uid: set(containers) for uid, containers in others.items()}
    for uid, name, resource, places in owned.owned:
        devices = others.setdefault(uid, {}).setdefault(name, {})
        devices[resource] = devices.get(resource, 0) + len({device for some in places.values() for device in some})
    for uid in sorted({*now.assignments, *others} - told):
        own, further = now.assignments.get(uid, {}), others.get(uid, {})
        names = {*own, *further}
        ended = _ended(names, here.get(uid, set()), own, with_memory.get(uid, set()))
        sharing = sharing_in(now.pod_assignments.get(uid, CPUSet()), own, here.get(uid, ()))
        containers = []
        for name in sorted(names, key=lambda name: (name not in ended, name)):
            requests = {kind: 1000 * amount for kind, amount in further.get(name, {}).items()}
            requests[CPU] = 1000 * len(own.get(name, ()))
            if uid in now.pod_assignments:
                requests.setdefault(MEMORY, _SOME)
                if name in sharing:
                    requests[CPU] = 0
            containers.append(Container(name, INIT if name in ended else APP, requests, requests))
        qos_class = GUARANTEED if uid in now.assignments or uid in with_memory else BURSTABLE
        pod = Pod(uid, shown.get(uid, uid), tuple(containers), qos_class)
        if uid in now.pod_assignments:
            asked = {CPU: 1000 * len(now.pod_assignments[uid]), MEMORY: _SOME}
            asked.update((kind, 1000 * size) for kind, size in whole.get(uid, {}).items())
            pod = seen_by(gates, pod._replace(pod_level=(asked, asked)))
        yield pod


def _ended(names: set[str], here: set[str], own: Mapping[str, CPUSet], with_memory: set[str]) -> set[str]:
    """Return the init containers among the containers of a pod: those that do not run beside others, or of which it
    shows."""
    if here & names:
        return names - here
    without_memory = names - with_memory if with_memory else set()
    reused = {
        name
        for name in own
        if any(
            own[name] <= cpus and (own[name] != cpus or name < later) for later, cpus in own.items() if later != name
        )
    }
    return without_memory | reused


# --- devices while their plugins are not back yet -------------------------------------------------------------


def _device_state(others: OtherManagers) -> DeviceState:
    try:
        return DeviceState([], {}) if others.device_state is None else read_devices(others.device_state)
    except DamageError:
        # The kubelet passes over it, too.
        return DeviceState([], {})


def _starting(question: Question, state: DeviceState, pods: Sequence[Pod]) -> DeviceManager:
    """Return the device manager as it starts: it knows who has which devices, and no device is healthy yet."""
    nodes = [node.id for node in question.topology.numa_nodes]
    healthy: dict[str, Sequence[Device]] = dict.fromkeys([*state.registered, *(row[2] for row in state.owned)], ())
    owned = [Owned(uid, name, kind, sorted(device_masks(places, nodes))) for uid, name, kind, places in state.owned]
    manager = DeviceManager(healthy, nodes, owned)
    here = running_names(question.running)
    manager.running = {
        (pod.uid, container.name)
        for pod in pods
        for container in pod.containers
        if (container.name in here[pod.uid] if pod.uid in here else container.kind != INIT)
    }
    return manager

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trace: which pods come to a node and go, and how many of their threads want to run when. Pure.

It is a value with its JSON, or made by chance for a machine of any size: the same name, seed and number of CPUs give
the same trace. All amounts of these grow with the machine. Each pod has one container, and does nothing in its first 20
seconds but to start. The load of a pod is how many of its threads want to run; it changes every 30 seconds, but for
noise of a tenth, as its kind says. No trace requests more than the static policy can give, so that it admits all pods.

- services: a day of services in two hours. They request half of the CPUs and come in the first five minutes. A third of
  them is rigid and uses up to 0.9 of what it requests. The others are elastic up to three times, and their load goes
  from a quarter of what they request to two and a half times as much and back, each at its own time. Shared pods
  request a tenth of the CPUs and use up to that.
- batch: jobs that come and go for two hours. They request up to 0.7 of the CPUs at a time, live for 5 to 20 minutes,
  are elastic up to four times, and always have so many threads. Shared pods request a tenth.
- crowded: a node that is nearly full for two hours. Rigid pods come and go after 3 to 15 minutes, and elastic services
  of which two thirds are busy stay. Together they request up to 0.84 of the CPUs. Shared pods request a tenth, and
  their load goes up to that and down to a quarter every 40 minutes.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from types import MappingProxyType
from typing import Any, Callable, Mapping, NamedTuple, Sequence, Tuple

from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import counted, millis
from ...module_utils._cgroup.kubepods import BEST_EFFORT, BURSTABLE, GUARANTEED
from ...module_utils.policy.dynamic_state import parse_range

VERSION = 1

# Above what is of use: a typing error must not take a day.
_MOST_PODS, _MOST_CHANGES, _MOST_SECONDS, _MOST_THREADS = 10000, 1000000, 31 * 86400, 1 << 16
_MOST_RESOURCES = _MOST_CONTAINERS = 20

# (seconds after it came, how many threads want to run from then on).
Load = Sequence[Tuple[float, float]]


class TracePod(NamedTuple):
    """A pod of one container. cpu: what it requests, in thousandths. most: see elastic; 0 where it is not elastic.

    arrives, leaves: seconds from the trace's beginning. resources: what it requests beside CPUs and is limited to, such
    as memory and devices, in thousandths. containers: of a pod that requests all of that as a whole, how many CPUs each
    of its containers is to have for itself; 0 for those that share the rest.
    """

    name: str
    qos_class: str
    cpu: int
    most: int
    arrives: float
    leaves: float
    load: Load
    resources: Mapping[str, int] = MappingProxyType({})
    containers: Mapping[str, int] = MappingProxyType({})

    @property
    def is_shared(self) -> bool:
        """Whether containers of a pod that requests CPUs as a whole share the rest of these."""
        return not all(self.containers.values())

    @property
    def exclusive(self) -> int:
        """How many exclusive CPUs the static policy gives it."""
        return self.cpu // 1000 if self.qos_class == GUARANTEED and not self.cpu % 1000 else 0


class Trace(NamedTuple):
    """Pods in the order in which they come. duration: seconds."""

    name: str
    description: str
    duration: float
    pods: Sequence[TracePod]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; read_trace() reads it back."""
        return {
            "version": VERSION,
            "name": self.name,
            "description": self.description,
            "duration": self.duration,
            "pods": [
                {
                    "name": pod.name,
                    "qosClass": pod.qos_class,
                    "cpu": "%dm" % pod.cpu,
                    **({"elastic": "%d-%d" % (pod.exclusive, pod.most)} if pod.most else {}),
                    "arrives": pod.arrives,
                    "leaves": pod.leaves,
                    **(
                        {"resources": {name: _quantity(milli) for name, milli in pod.resources.items()}}
                        if pod.resources
                        else {}
                    ),
                    **({"containers": dict(pod.containers)} if pod.containers else {}),
                    "load": [list(change) for change in pod.load],
                }
                for pod in self.pods
            ],
        }


def read_trace(data: object) -> Trace:
    """Read a trace. Raises InputError, which names the pod and the field."""
    try:
        if not isinstance(data, Mapping):
            raise InputError("is not a mapping")
        if data.get("version") != VERSION:
            raise InputError("version %r is not known" % data.get("version"), remedy="give version %d" % VERSION)
        duration = _number(data.get("duration"), "duration", 1, _MOST_SECONDS)
        rows = _list(data.get("pods"), "pods", _MOST_PODS)
        pods = [_pod(row, number, duration) for number, row in enumerate(rows)]
        twice = sorted(name for name, times in Counter(pod.name for pod in pods).items() if times > 1)
        if twice:
            raise InputError("two pods are named %s" % twice[0])
        if sum(len(pod.load) for pod in pods) > _MOST_CHANGES:
            raise InputError("there are more than %d changes of load" % _MOST_CHANGES)
    except InputError as error:
        raise error.within("trace") from error
    name, description = (_text(data.get(field), field) for field in ("name", "description"))
    return Trace(name, description, duration, sorted(pods, key=lambda pod: pod.arrives))


def _pod(row: object, number: int, duration: float) -> TracePod:
    where = "pods[%d]" % number
    if not isinstance(row, Mapping):
        raise InputError("is not a mapping", where)
    try:
        qos_class = row.get("qosClass")
        if qos_class not in (GUARANTEED, BURSTABLE, BEST_EFFORT):
            raise InputError("%r is no QoS class" % (qos_class,), "qosClass")
        arrives = _number(row.get("arrives"), "arrives", 0, duration)
        leaves = _number(row.get("leaves", duration), "leaves", arrives, duration)
        cpu = millis(row.get("cpu", 0))
        if not 0 <= cpu <= 1000 * _MOST_THREADS or bool(cpu) is (qos_class == BEST_EFFORT):
            raise InputError("%s is not possible in the class %s" % (row.get("cpu", 0), qos_class), "cpu")
        name, load = _text(row.get("name"), "name"), _load(row.get("load"))
        pod = TracePod(name, qos_class, cpu, 0, arrives, leaves, load, _resources(row.get("resources"), qos_class))
        if row.get("containers") is not None:
            return pod._replace(containers=_containers(row["containers"], pod, row.get("elastic")))
        if row.get("elastic") is None:
            return pod
        least, most = parse_range(row["elastic"])
        if least != pod.exclusive:
            raise InputError(
                "%s does not begin with its exclusive CPUs, %d" % (row["elastic"], pod.exclusive), "elastic"
            )
    except InputError as error:
        raise error.within(where) from error
    return pod._replace(most=most)


def _containers(data: object, pod: TracePod, elastic: object) -> Mapping[str, int]:
    where = "containers"
    if not isinstance(data, Mapping) or not 0 < len(data) <= _MOST_CONTAINERS:
        raise InputError("is no mapping of at most %d containers to CPUs" % _MOST_CONTAINERS, where)
    if not pod.exclusive or elastic is not None:
        raise InputError("are of pods of the class Guaranteed that request whole CPUs and are not elastic", where)
    found = {_text(name, where): _number(count, where, 0, pod.exclusive) for name, count in data.items()}
    if any(count % 1 for count in found.values()) or sum(found.values()) > pod.exclusive:
        raise InputError("have no whole CPUs, or more than the %d of the pod" % pod.exclusive, where)
    return {name: int(count) for name, count in found.items()}


def _resources(data: object, qos_class: str) -> Mapping[str, int]:
    if data is None:
        return MappingProxyType({})
    if not isinstance(data, Mapping) or "cpu" in data or len(data) > _MOST_RESOURCES:
        raise InputError("is not a mapping of resources beside cpu, of at most %d" % _MOST_RESOURCES, "resources")
    found = {}
    for name, quantity in data.items():
        place = "resources.%s" % _text(name, "resources")
        try:
            found[name] = amount = millis(quantity)
        except InputError as error:
            raise error.within(place) from error
        if amount < 0 or (name == "memory" and bool(amount) is (qos_class == BEST_EFFORT)):
            raise InputError("%s is not possible in the class %s" % (quantity, qos_class), place)
    return found


def _quantity(milli: int) -> str:
    return "%dm" % milli if milli % 1000 else "%d" % (milli // 1000)


def _load(rows: object) -> Load:
    load: list[tuple[float, float]] = []
    for row in _list(rows, "load", _MOST_CHANGES):
        if not isinstance(row, (list, tuple)) or len(row) != 2:
            raise InputError("%r is not [seconds, threads]" % (row,), "load")
        after = load[-1][0] if load else 0
        load.append((_number(row[0], "load", after, _MOST_SECONDS), _number(row[1], "load", 0, _MOST_THREADS)))
    return tuple(load)


def _list(data: object, where: str, most: int) -> Sequence[Any]:
    if not isinstance(data, (list, tuple)) or len(data) > most:
        raise InputError("is not a list of at most %d" % most, where)
    return data


def _number(value: Any, where: str, least: float, most: float) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= value <= most:
        raise InputError("%r is not a number from %g to %g" % (value, least, most), where)
    return float(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value or len(value) > 1000 or not value.isprintable():
        raise InputError("%s is no text" % repr(value)[:80], where)
    return value


SECONDS = 7200.0
STARTING, STARTING_LOAD = 20.0, 0.1
_STEP, _NOISE = 30.0, 0.1
# For the system: no trace requests them. Fewer CPUs than _FEWEST are too few to give parts of.
_SYSTEM, _FEWEST = 0.06, 8

_Wave = Callable[[float], float]


def make_trace(name: str, seed: int, cpus: int) -> Trace:
    """Return the trace of this name. Raises InputError for another name, and for a machine of fewer than 8 CPUs."""
    if name not in TRACES:
        raise InputError("%r is no trace" % (name,), remedy="there are %s" % ", ".join(TRACES))
    if cpus < _FEWEST:
        raise InputError("a trace takes %s, and there are %d" % (counted(_FEWEST, "CPU"), cpus))
    maker = _Maker(random.Random("%s %d %d" % (name, seed, cpus)), cpus)
    TRACES[name](maker)
    description = "%s, seed %d, for %s" % (name, seed, counted(cpus, "CPU"))
    return Trace(name, description, SECONDS, sorted(maker.pods, key=lambda pod: pod.arrives))


class _Maker:
    """A trace in progress."""

    def __init__(self, choose: random.Random, cpus: int) -> None:
        self.choose, self.cpus = choose, cpus
        self.pods: list[TracePod] = []

    def between(self, low: float, high: float) -> float:
        """Return any number between two: random() alone gives the same in all versions of Python."""
        return low + (high - low) * self.choose.random()

    def size(self) -> int:
        """Return how many CPUs a pod requests: 1 to an eighth of the machine, small ones more often."""
        return 1 + int((max(2, self.cpus // 8) - 1) * self.choose.random() ** 2)

    def add(self, name: str, cpu: int, most: int, arrives: float, leaves: float, wave: _Wave) -> None:
        """Add a pod whose load is wave(seconds of the trace), with noise; cpu: in thousandths."""
        load = [(0.0, min(STARTING_LOAD, cpu / 1000))]
        at = arrives + STARTING
        while at < leaves:
            load.append((round(at - arrives, 1), round(wave(at) * self.between(1 - _NOISE, 1 + _NOISE), 3)))
            at += _STEP
        qos_class = BURSTABLE if most < 0 else GUARANTEED
        number = sum(1 for pod in self.pods if pod.name.startswith(name))
        self.pods.append(TracePod("%s-%d" % (name, number), qos_class, cpu, max(0, most), arrives, leaves, tuple(load)))

    def fill(self, share: float, add: Callable[[int], None]) -> None:
        """Add pods until they request this share of the CPUs."""
        left = int(share * self.cpus)
        while left > 0:
            count = min(left, self.size())
            add(count)
            left -= count

    def requested(self, at: float) -> int:
        """Return how many exclusive CPUs are requested at a time, or are going to be by pods that come later."""
        return sum(pod.exclusive for pod in self.pods if at < pod.leaves)

    def come_and_go(
        self, share: float, shortest: float, longest: float, add: Callable[[int, float, float], None]
    ) -> None:
        """Add pods that come, each time one finds room in this share of the CPUs, a minute at most after the last
        one."""
        at = 0.0
        while at < SECONDS - shortest:
            count = self.size()
            if self.requested(at) + count <= share * self.cpus:
                add(count, round(at, 1), round(min(SECONDS, at + self.between(shortest, longest)), 1))
            at += self.between(1, 2000 / self.cpus if self.cpus > 33 else 60)

    def shared(self, wave: Callable[[float], _Wave]) -> None:
        """Add burstable pods that request a tenth of the CPUs; wave: of how many CPUs each requests."""
        parts = max(2, self.cpus // 16)
        for _number in range(parts):
            cpu = 100 * max(1, self.cpus // parts)
            self.add("shared", cpu, -1, round(self.between(0, 60), 1), SECONDS, wave(cpu / 1000))

    def slow(self, low: float, high: float, period: float) -> _Wave:
        """Return a wave between two values, and back, beginning anywhere."""
        phase = self.choose.random()
        return lambda at: low + (high - low) * (0.5 - 0.5 * math.cos(2 * math.pi * (at / period + phase)))


def _services(maker: _Maker) -> None:
    def rigid(count: int) -> None:
        wave = maker.slow(0.3 * count, 0.9 * count / (1 + _NOISE), SECONDS)
        maker.add("rigid", 1000 * count, 0, round(maker.between(0, 300), 1), SECONDS, wave)

    def elastic(count: int) -> None:
        wave = maker.slow(0.25 * count, 2.5 * count, SECONDS)
        maker.add("service", 1000 * count, 3 * count, round(maker.between(0, 300), 1), SECONDS, wave)

    maker.fill(0.5 / 3, rigid)
    maker.fill(1.0 / 3, elastic)
    maker.shared(lambda cpus: maker.slow(0.3 * cpus, cpus / (1 + _NOISE), 2400))


def _batch(maker: _Maker) -> None:
    def job(count: int, arrives: float, leaves: float) -> None:
        maker.add("job", 1000 * count, 4 * count, arrives, leaves, lambda _at: 4.0 * count)

    maker.shared(lambda cpus: maker.slow(0.3 * cpus, cpus / (1 + _NOISE), 2400))
    maker.come_and_go(0.7, 300, 1200, job)


def _crowded(maker: _Maker) -> None:
    def service(count: int) -> None:
        is_busy = maker.choose.random() < 2 / 3
        wave = maker.slow(1.2 * count, 2.5 * count, 1800) if is_busy else maker.slow(0.1 * count, 0.6 * count, 1800)
        maker.add("service", 1000 * count, 3 * count, round(maker.between(0, 60), 1), SECONDS, wave)

    def rigid(count: int, arrives: float, leaves: float) -> None:
        wave = maker.slow(0.5 * count, 0.9 * count, 600)
        maker.add("rigid", 1000 * count, 0, arrives, leaves, wave)

    maker.fill(0.35, service)
    maker.shared(lambda cpus: maker.slow(0.25 * cpus, cpus / (1 + _NOISE), 2400))
    maker.come_and_go(1 - _SYSTEM - 0.1, 180, 900, rigid)


TRACES: Mapping[str, Callable[[_Maker], None]] = {"services": _services, "batch": _batch, "crowded": _crowded}

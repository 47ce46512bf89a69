# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trace: which pods come to a node and go, and how many of their threads want to run when. A value, and its JSON."""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple, Sequence, Tuple

from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import millis
from ...module_utils._cgroup.kubepods import BEST_EFFORT, BURSTABLE, GUARANTEED
from ...module_utils.policy.dynamic_state import parse_range

VERSION = 1

# Above what is of use: a typing error must not take a day.
_MOST_PODS, _MOST_CHANGES, _MOST_SECONDS, _MOST_THREADS = 10000, 1000000, 31 * 86400, 1 << 16

# (seconds after it came, how many threads want to run from then on).
Load = Sequence[Tuple[float, float]]


class TracePod(NamedTuple):
    """A pod of one container. cpu: what it requests, in thousandths. most: see elastic; 0 where it is not elastic.

    arrives, leaves: seconds from the trace's beginning.
    """

    name: str
    qos_class: str
    cpu: int
    most: int
    arrives: float
    leaves: float
    load: Load

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
        """Plain data; read_trace() reads it back."""
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
                    "load": [list(change) for change in pod.load],
                }
                for pod in self.pods
            ],
        }


def read_trace(data: object) -> Trace:
    """Read a trace. Raises InputError, which names the pod and the field."""
    try:
        if not isinstance(data, Mapping):
            raise InputError("is no mapping")
        if data.get("version") != VERSION:
            raise InputError("version %r is not known" % data.get("version"), remedy="give version %d" % VERSION)
        duration = _number(data.get("duration"), "duration", 1, _MOST_SECONDS)
        rows = _list(data.get("pods"), "pods", _MOST_PODS)
        pods = [_pod(row, number, duration) for number, row in enumerate(rows)]
        names = [pod.name for pod in pods]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ()
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
        raise InputError("is no mapping", where)
    try:
        qos_class = row.get("qosClass")
        if qos_class not in (GUARANTEED, BURSTABLE, BEST_EFFORT):
            raise InputError("%r is no QoS class" % (qos_class,), "qosClass")
        arrives = _number(row.get("arrives"), "arrives", 0, duration)
        leaves = _number(row.get("leaves", duration), "leaves", arrives, duration)
        cpu = millis(row.get("cpu", 0))
        if not 0 <= cpu <= 1000 * _MOST_THREADS or bool(cpu) is (qos_class == BEST_EFFORT):
            raise InputError("%s does not go with the class %s" % (row.get("cpu", 0), qos_class), "cpu")
        pod = TracePod(_text(row.get("name"), "name"), qos_class, cpu, 0, arrives, leaves, _load(row.get("load")))
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
        raise InputError("is no list of at most %d" % most, where)
    return data


def _number(value: Any, where: str, least: float, most: float) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= value <= most:
        raise InputError("%r is no number from %g to %g" % (value, least, most), where)
    return float(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value or len(value) > 1000 or not value.isprintable():
        raise InputError("%s is no text" % repr(value)[:80], where)
    return value

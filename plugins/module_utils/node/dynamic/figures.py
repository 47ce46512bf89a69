# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of the program for Prometheus, as a textfile of node_exporter's textfile collector. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Iterable

from ...cpuset import count_bits
from ...policy.moves import ANNOUNCE, EXCLUSIVE, POOL, REMOVE, SHARE, Move
from .report import Report

_PREFIX = "kubenode_cpu_manager_dynamic_"


class Figures:
    """What is counted from the start of the program on, beside what the last pass found."""

    def __init__(self) -> None:
        self._moves: Counter[str] = Counter(dict.fromkeys((ANNOUNCE, EXCLUSIVE, SHARE, POOL, REMOVE), 0))
        self._passes = self._failures = self._refusals = 0

    def count(self, moves: Iterable[Move], refusals: int, success: bool) -> None:
        """One pass more."""
        self._moves.update(move.what for move in moves)
        self._passes += 1
        self._refusals += refusals
        self._failures += not success

    def text(self, report: Report, success: bool, timestamp: float) -> str:
        """The file."""
        held = report.state.containers if report.state is not None else {}
        lines = [
            *_metric("success", "gauge", "Whether the last pass went through.", [("", int(success))]),
            *_metric("timestamp_seconds", "gauge", "When the last pass ended.", [("", round(timestamp, 3))]),
            *_metric("duration_seconds", "gauge", "How long it took.", [("", round(report.seconds, 6))]),
            *_metric("passes_total", "counter", "Passes since the start.", [("", self._passes)]),
            *_metric("failures_total", "counter", "Passes that did not go through.", [("", self._failures)]),
            *_metric("refusals_total", "counter", "Moves that were refused or failed.", [("", self._refusals)]),
            *_metric(
                "moves_total",
                "counter",
                "Moves that were made, by what they are.",
                [('{what="%s"}' % what, count) for what, count in sorted(self._moves.items())],
            ),
            *_metric("waiting", "gauge", "Containers that wait for their first set.", [("", len(report.waiting))]),
            *_metric(
                "shared_cpus",
                "gauge",
                "CPUs of the shared pool.",
                [("", 0 if report.state is None else count_bits(report.state.shared))],
            ),
            *_metric(
                "cpus",
                "gauge",
                "Exclusive CPUs of a container.",
                [(_labels(*key), count_bits(container.cpus)) for key, container in held.items()],
            ),
            *_metric(
                "admitted_cpus",
                "gauge",
                "Exclusive CPUs that a container was admitted with.",
                [(_labels(*key), count_bits(container.admitted)) for key, container in held.items()],
            ),
        ]
        return "".join(line + "\n" for line in lines)


def _metric(name: str, kind: str, text: str, values: Iterable[tuple[str, float]]) -> list[str]:
    full = _PREFIX + name
    head = ["# HELP %s %s" % (full, text), "# TYPE %s %s" % (full, kind)]
    return [*head, *("%s%s %s" % (full, labels, value) for labels, value in values)]


def _labels(pod_uid: str, container: str) -> str:
    return '{pod_uid="%s",container="%s"}' % (_escaped(pod_uid), _escaped(container))


def _escaped(text: str) -> str:
    """A label as Prometheus wants it: a runtime may give any name."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

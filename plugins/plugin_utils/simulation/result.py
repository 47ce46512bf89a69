# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What replays of a trace come to: figures, how one serves each pod beside another, and a picture. Pure.

The picture is one SVG of who had which CPU when, with a panel for each policy. Time goes to the right, and down go
the CPUs by NUMA node and core. A pod has the same colour in all panels. The shared pool is light, and the reserved
CPUs are marked at the left edge.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Sequence
from xml.sax.saxutils import escape

from ...module_utils._base.quantity import counted
from ...module_utils.cpuset import CPUSet, iterate_bits
from ...module_utils.policy.dynamic_state import DynamicRules
from ...module_utils.topology.kubelet_view import CPUTopology
from .replay import Placement, Replay

# What the order of a sum can make, and seconds of threads that nobody misses.
_ROUNDING, _SECONDS = 1e-9, 1e-3


class Comparison(NamedTuple):
    """How a policy serves the pods of a trace beside another one.

    worse, better: (pod, by how many seconds of threads it waits longer or shorter), the most first. saved: by how many
    seconds of threads all together wait shorter, and of those that they wait under the other, which part.
    """

    policy: str
    beside: str
    pods: int
    worse: Sequence[tuple[str, float]]
    better: Sequence[tuple[str, float]]
    saved: float
    saved_part: float

    def to_text(self) -> str:
        """Return a text for people."""
        pods = counted(self.pods, "pod")
        worse = "no pod waits longer than under %s" % self.beside
        if self.worse:
            name, seconds = self.worse[0]
            worse = "%d of %s wait longer than under %s, most of all %s, by %.1f thread-seconds" % (
                len(self.worse),
                pods,
                self.beside,
                name,
                seconds,
            )
        text = "%s: %s; %d of %s wait shorter; in all the threads wait %.0f seconds less"
        if self.saved <= 0:
            return "%s: %s; it is not better: in all the threads wait %.0f seconds more" % (
                self.policy,
                worse,
                abs(self.saved),
            )
        text %= (self.policy, worse, len(self.better), pods, self.saved)
        return "%s (%.0f %%)" % (text, 100 * self.saved_part)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "policy": self.policy,
            "beside": self.beside,
            "never_worse": not self.worse,
            "worse": [{"pod": name, "thread_seconds": round(seconds, 3)} for name, seconds in self.worse],
            "better": [{"pod": name, "thread_seconds": round(seconds, 3)} for name, seconds in self.better],
            "thread_seconds_saved": round(self.saved, 3),
            "part_saved": round(self.saved_part, 4),
            "text": self.to_text(),
        }


def compare(found: Replay, beside: Replay) -> Comparison:
    """Return how `found` serves each pod beside another replay of the same trace."""
    worse, better = [], []
    for mine, theirs in zip(found.served, beside.served):
        longer = mine.waited - theirs.waited
        if abs(longer) <= _SECONDS + _ROUNDING * mine.wanted:
            continue
        if longer > 0:
            worse.append((mine.pod.name, longer))
        else:
            better.append((mine.pod.name, -longer))
    saved = beside.waited - found.waited
    return Comparison(
        found.policy,
        beside.policy,
        len(found.served),
        sorted(worse, key=lambda row: -row[1]),
        sorted(better, key=lambda row: -row[1]),
        saved,
        saved / beside.waited if beside.waited else 0.0,
    )


def summary(replay: Replay) -> dict[str, Any]:
    """Return a replay as plain data: utilisation and waiting of the node, and of each pod."""
    owned = sum(served.owned for served in replay.served)
    return {
        "policy": replay.policy,
        "utilisation": round(replay.ran / replay.capacity, 4),
        "exclusive_utilisation": round(sum(served.on_own for served in replay.served) / owned, 4) if owned else None,
        "thread_seconds_waited": round(replay.waited, 3),
        "waiting_part": round(replay.waited / (replay.ran + replay.waited), 4) if replay.ran + replay.waited else 0.0,
        "refused": [served.pod.name for served in replay.served if served.refused],
        "moves": replay.moves,
        "pods": [served.to_dict() for served in replay.served],
    }


def table(summaries: Sequence[dict[str, Any]]) -> str:
    """Return the figures of each policy as lines for people."""
    lines = ["policy     utilisation  of exclusive  waiting  thread-seconds waited  moves  refused"]
    for row in summaries:
        own = row["exclusive_utilisation"]
        lines.append(
            "%-10s %9.1f %% %11s %6.1f %% %22.0f %6d %8d"
            % (
                row["policy"],
                100 * row["utilisation"],
                "-" if own is None else "%.1f %%" % (100 * own),
                100 * row["waiting_part"],
                row["thread_seconds_waited"],
                row["moves"],
                len(row["refused"]),
            )
        )
    return "\n".join(lines)


# In pixels.
_WIDTH, _LEFT, _RIGHT, _TOP, _HEAD, _GAP, _AXIS = 1000, 56, 20, 46, 10, 48, 8
# Of a panel, and of a CPU.
_LEAST_HEIGHT, _LEAST_ROW = 240, 2
_TICKS = (60, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_SHARED, _RESERVED, _TEXT, _DIM = "#e6eaef", "#56616f", "#1b2330", "#56616f"


class _Run(NamedTuple):
    """Rows from the first to the last that have the same owner, "" for the shared pool."""

    first: int
    last: int
    owner: str


class _Panel:
    """Where everything is in a panel. rows: the CPUs from above."""

    def __init__(self, rules: DynamicRules, seconds: float) -> None:
        self.rows = _rows(rules.topology)
        self.row_of = {cpu: row for row, cpu in enumerate(self.rows)}
        self.per_row = max(_LEAST_ROW, _LEAST_HEIGHT / len(self.rows))
        self.height = self.per_row * len(self.rows)
        self.seconds, self.scale = seconds, (_WIDTH - _LEFT - _RIGHT) / seconds
        self.rules = rules

    def boxes(self, timeline: Sequence[tuple[float, Placement]]) -> Iterator[tuple[float, float, _Run]]:
        """Yield (from when, until when, what) with as few boxes as possible."""
        begun: dict[_Run, float] = {}
        for at, placement in timeline:
            found = set(self.runs(placement))
            for run in [run for run in begun if run not in found]:
                yield begun.pop(run), at, run
            for run in sorted(found):
                begun.setdefault(run, at)
        for run, begins in begun.items():
            yield begins, self.seconds, run

    def runs(self, placement: Placement) -> Iterator[_Run]:
        """Yield what is beside each other."""
        for owner, mask in [("", placement.shared), *placement.exclusive.items()]:
            rows = CPUSet(self.row_of[cpu] for cpu in iterate_bits(mask))
            for first, last in rows.ranges():
                yield _Run(first, last, owner)

    def draw(self, replay: Replay, top: float, colours: dict[str, str]) -> Iterator[str]:
        for begins, ends, run in self.boxes(replay.timeline):
            cpus = CPUSet(self.rows[run.first : run.last + 1])
            yield '<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s</title></rect>' % (
                _LEFT + begins * self.scale,
                top + run.first * self.per_row,
                max(0.3, (ends - begins) * self.scale),
                (run.last - run.first + 1) * self.per_row,
                colours.get(run.owner, _SHARED),
                escape("%s: CPUs %s from %d to %d s" % (run.owner or "shared pool", cpus, begins, ends)),
            )

    def axes(self, top: float) -> Iterator[str]:
        rows = CPUSet(self.row_of[cpu] for cpu in self.rules.reserved)
        for first, last in rows.ranges():
            yield '<rect x="%d" y="%.1f" width="4" height="%.1f" fill="%s"><title>reserved</title></rect>' % (
                _LEFT - 6,
                top + first * self.per_row,
                (last - first + 1) * self.per_row,
                _RESERVED,
            )
        for node, mask in sorted(self.rules.topology.numa_nodes.items()):
            row = min(self.row_of[cpu] for cpu in iterate_bits(mask))
            yield _text(_LEFT - 10, top + row * self.per_row + 10, "node %d" % node, _DIM, "end", 10)
        step = next((tick for tick in _TICKS if self.seconds / tick <= 13), _TICKS[-1])
        for at in range(0, int(self.seconds) + 1, step):
            label = "%d min" % (at // 60)
            yield _text(_LEFT + at * self.scale, top + self.height + 14, label, _DIM, "middle", 10)


def draw(title: str, replays: Sequence[Replay], rules: DynamicRules, seconds: float) -> str:
    """Return the picture, as the text of an SVG file. seconds: the trace's duration."""
    panel = _Panel(rules, seconds)
    names = dict.fromkeys(name for replay in replays for _at, placed in replay.timeline for name in placed.exclusive)
    colours = {name: _colour(number) for number, name in enumerate(names)}
    height = _TOP + len(replays) * (panel.height + _HEAD + _GAP) - _AXIS
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"'
        ' font-family="system-ui, sans-serif">' % (_WIDTH, height, _WIDTH, height),
        "<title>%s</title>" % escape(title),
        '<rect width="100%" height="100%" fill="#fff"/>',
        _text(6, 22, title, _TEXT, size=15),
    ]
    at: float = _TOP
    for replay in replays:
        found = summary(replay)
        figures = "%.1f %% of the CPUs run threads, %.1f %% of the threads wait" % (
            100 * found["utilisation"],
            100 * found["waiting_part"],
        )
        parts.append(_text(_LEFT, at, "%s: %s" % (replay.policy, figures), _TEXT))
        parts += panel.draw(replay, at + _HEAD, colours)
        parts += panel.axes(at + _HEAD)
        at += _HEAD + panel.height + _GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


def _rows(topology: CPUTopology) -> list[int]:
    cores = topology.inside("numa_nodes", "cores")
    return [
        cpu
        for node, mask in sorted(topology.numa_nodes.items())
        for _number, core in cores[node]
        for cpu in iterate_bits(core & mask)
    ]


def _text(x: float, y: float, text: str, colour: str, anchor: str = "start", size: int = 12) -> str:
    return '<text x="%.1f" y="%.1f" fill="%s" text-anchor="%s" font-size="%d">%s</text>' % (
        x,
        y,
        colour,
        anchor,
        size,
        escape(text),
    )


def _colour(number: int) -> str:
    """Return the colour of a number; neighbours are far apart on the circle of hues, and in three degrees of light."""
    return "hsl(%d, 55%%, %d%%)" % (round(number * 137.508) % 360, (45, 60, 70)[number % 3])

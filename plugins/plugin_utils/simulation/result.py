# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What replays of a trace come to: a summary of each policy, and whether one serves a pod worse than another. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ...module_utils._base.quantity import counted
from .replay import Replay, Served

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
        """For people."""
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
        """Plain data."""
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
    """How `found` serves each pod beside another replay of the same trace."""
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
    """A replay as plain data: utilisation and waiting of the node, and of each pod."""
    owned = sum(served.owned for served in replay.served)
    return {
        "policy": replay.policy,
        "utilisation": round(replay.ran / replay.capacity, 4),
        "exclusive_utilisation": round(_ran_on_own(replay.served) / owned, 4) if owned else None,
        "thread_seconds_waited": round(replay.waited, 3),
        "waiting_part": round(replay.waited / (replay.ran + replay.waited), 4) if replay.ran + replay.waited else 0.0,
        "refused": [served.pod.name for served in replay.served if served.refused],
        "moves": replay.moves,
        "pods": [served.to_dict() for served in replay.served],
    }


def _ran_on_own(served: Sequence[Served]) -> float:
    return sum(row.ran for row in served if row.owned)


def table(summaries: Sequence[dict[str, Any]]) -> str:
    """The figures of each policy as lines for people."""
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

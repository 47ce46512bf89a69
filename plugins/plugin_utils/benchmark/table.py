# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of benchmarks as tables of text, and the words and figures of all forms. Pure."""

from __future__ import annotations

import unicodedata
from typing import Any, Iterator, Mapping, Sequence

from ...module_utils._base.quantity import counted

_HEADS = ("workload", "beside", "CPUs", "run time", "p50", "p99")
METRICS = {"seconds": "run time", "p50": "p50 latency", "p99": "p99 latency"}
PLACEMENTS = {"shared": "shared", "exclusive": "exclusive", "exclusive-cores": "whole cores"}
EXPERIMENTS = {
    "stand-alone": "Stand-alone",
    "aggressor": "Protection from an aggressor",
    "co-located": "Co-located workloads",
}


def duration(seconds: float) -> str:
    """A time with three digits: 1.23 s, 45.6 ms, 789 us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return "%s %s" % (_three_digits(seconds / size), unit)
    return "%s us" % _three_digits(seconds * 1e6)


def _three_digits(number: float) -> str:
    return "%.0f" % number if number >= 100 else "%.1f" % number if number >= 10 else "%.2f" % number


def measure(value: Mapping[str, float] | None) -> str:
    """A median with its interval."""
    if value is None:
        return "-"
    return "%s [%s, %s]" % tuple(duration(value[name]) for name in ("median", "low", "high"))


def workload(row: Mapping[str, object]) -> str:
    """What was measured in a row of a summary."""
    return "%s (%s)" % (row["workload"], row["qos_class"])


def place_name(row: Mapping[str, Any]) -> str:
    """Where it ran: on exclusive CPUs, on the whole shared pool, or on what others left of that."""
    return PLACEMENTS[row["placement"]] if row["exclusive"] or row["placement"] == "shared" else "pool left"


def placement(row: Mapping[str, object]) -> str:
    """Where it ran, with the CPUs."""
    return "%s: %s" % (place_name(row), row["cpus"])


def benchmark_table(host: str, result: Mapping[str, Any]) -> str:
    """The results of one node as text. A control character of a node's answer is left out."""
    lines = ["%s: %s of each, seed %d" % (host, counted(result["settings"]["runs"], "run"), result["seed"])]
    for name, title in EXPERIMENTS.items():
        rows = [
            (workload(row), " ".join(row["beside"]) or "-", placement(row), *(measure(row[key]) for key in METRICS))
            for row in result["summary"]
            if row["experiment"] == name
        ]
        if rows:
            lines += ["", title, *_aligned([_HEADS, *rows])]
    lines.append("")
    lines += ["%s: %s" % (answer["answer"].upper(), answer["text"]) for answer in result["verdict"]]
    lines += ["not run: " + text for text in result["left_out"]]
    lines += ["note: " + text for text in result["notes"]]
    return "".join(_printable(line) + "\n" for line in lines)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()


def _printable(text: str) -> str:
    return "".join(character for character in text if unicodedata.category(character)[0] != "C")


def confidence_note(result: Mapping[str, Any]) -> str:
    """How sure the intervals are."""
    found = [row[name]["confidence"] for row in result["summary"] for name in METRICS if row[name] is not None]
    if not found:
        return "nothing was measured"
    return (
        "Intervals are distribution-free: between two order statistics of the runs, which hold the true median with a"
        " probability of %.1f %%." % (100 * min(found))
    )

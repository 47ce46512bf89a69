# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a benchmark as a node returned it: checked before it is shown, then as a table of text. Pure.

A node may be hostile: nothing is taken over but texts, which are cut to what can be shown, and numbers. Medians, boxes
and verdict are computed here, from the runs. The words and figures of all forms are here, too.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Any, Iterator, Mapping, Sequence

from ...module_utils._base.errors import InputError, option
from ...module_utils._base.quantity import counted
from ...module_utils._benchmark.benchmark_plan import EXPERIMENTS, PLACEMENTS, ROLES
from ...module_utils._benchmark.result import METRICS, summarized
from ...module_utils._benchmark.run import SCHEMA_VERSION
from ...module_utils._cgroup.kubepods import BURSTABLE, GUARANTEED
from ..report.answers import WRONG, items, line

_MOST_ROWS = 100000
_MOST_SECONDS = 1e6
_NUMBERS = ("cpus", "cores", "sockets", "numa_nodes", "threads_per_core")
_WORDS = ("model", "kernel", "load", "governor")
# What is written in tables and pictures.
_HEADS = ("workload", "beside", "CPUs", "run time", "p50", "p99")
METRIC_NAMES = {"seconds": "run time", "p50": "p50 latency", "p99": "p99 latency"}
PLACEMENT_NAMES = {"shared": "shared", "exclusive": "exclusive", "exclusive-cores": "whole cores"}
EXPERIMENT_NAMES = {
    "stand-alone": "Stand-alone",
    "aggressor": "Protection from an aggressor",
    "co-located": "Co-located workloads",
}


def checked_result(host: str, result: Any) -> dict[str, Any]:
    """Return what is shown of a node's result. Raises InputError where it is none."""
    try:
        if str(result["schema_version"]).partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
            raise ValueError("schema version %s is not known" % line(result["schema_version"])[:20])
        cases = [_case(case) for case in items(result["cases"])]
        if len(result["rows"]) > _MOST_ROWS:
            raise ValueError("there are more than %d rows" % _MOST_ROWS)
        rows = [_row(row, len(cases)) for row in result["rows"]]
        return {
            "schema_version": SCHEMA_VERSION,
            "machine": _machine(result["machine"]),
            "seed": int(result["seed"]),
            "settings": {
                "runs": int(result["settings"]["runs"]),
                **{name: line(value)[:300] for name, value in result["settings"].items() if name != "runs"},
            },
            "cases": cases,
            "rows": rows,
            **summarized(cases, rows),
            "left_out": [line(text)[:500] for text in items(result["left_out"])],
            "notes": [line(text)[:500] for text in items(result["notes"])],
        }
    except WRONG as error:
        raise InputError(
            "is no result of isolation_benchmark (%s: %s)" % (type(error).__name__, line(str(error))[:200]),
            where="%s of %s" % (option("results"), host),
            remedy="run the benchmark on this node again",
        ) from error


def _machine(given: Mapping[str, Any]) -> dict[str, object]:
    return {
        **{name: int(given[name]) for name in _NUMBERS},
        **{name: line(given[name])[:100] for name in _WORDS},
        "virtual": bool(given["virtual"]),
    }


def _case(given: Mapping[str, object]) -> dict[str, Any]:
    return {
        "experiment": _choice(given["experiment"], EXPERIMENTS),
        "placement": _choice(given["placement"], PLACEMENTS),
        "containers": [
            {
                "workload": _choice(container["workload"], tuple(ROLES)),
                "qos_class": _choice(container["qos_class"], (GUARANTEED, BURSTABLE)),
                "cpus": line(container["cpus"])[:200],
                "exclusive": bool(container["exclusive"]),
            }
            for container in items(given["containers"])
        ],
    }


def _row(given: Mapping[str, Any], cases: int) -> dict[str, object]:
    case = int(given["case"])
    if not 0 <= case < cases:
        raise ValueError("there is no case %d" % case)
    return {
        "case": case,
        **{name: int(given[name]) for name in ("run", "place")},
        "workload": _choice(given["workload"], tuple(ROLES)),
        "qos_class": _choice(given["qos_class"], (GUARANTEED, BURSTABLE)),
        **{name: _seconds(given[name], name) for name in (*METRICS, "longest")},
    }


def _choice(value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError("%s is none of %s" % (line(value)[:40], ", ".join(choices)))
    return str(value)


def _seconds(value: Any, name: str) -> float | None:
    if value is None and name != "seconds":
        return None
    number = float(value)
    if not 0 < number < _MOST_SECONDS or math.isnan(number):
        raise ValueError("%s of %s is no time" % (line(value)[:40], name))
    return number


def duration(seconds: float) -> str:
    """Return a time with three digits: 1.23 s, 45.6 ms, 789 us."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return "%s %s" % (_three_digits(seconds / size), unit)
    return "%s us" % _three_digits(seconds * 1e6)


def _three_digits(number: float) -> str:
    return "%.0f" % number if number >= 100 else "%.1f" % number if number >= 10 else "%.2f" % number


def measure(value: Mapping[str, float] | None) -> str:
    """Return a median with its interval."""
    if value is None:
        return "-"
    return "%s [%s, %s]" % tuple(duration(value[name]) for name in ("median", "low", "high"))


def workload(row: Mapping[str, object]) -> str:
    """Return what was measured in a row of a summary."""
    return "%s (%s)" % (row["workload"], row["qos_class"])


def place_name(row: Mapping[str, Any]) -> str:
    """Return where it ran: on exclusive CPUs, on the whole shared pool, or on what others left of that."""
    return PLACEMENT_NAMES[row["placement"]] if row["exclusive"] or row["placement"] == "shared" else "pool left"


def placement(row: Mapping[str, object]) -> str:
    """Return where it ran, with the CPUs."""
    return "%s: %s" % (place_name(row), row["cpus"])


def benchmark_table(host: str, result: Mapping[str, Any]) -> str:
    """Return the results of one node as text. A control character of a node's answer is left out."""
    lines = ["%s: %s of each, seed %d" % (host, counted(result["settings"]["runs"], "run"), result["seed"])]
    for name, title in EXPERIMENT_NAMES.items():
        rows = [
            (
                workload(row),
                " ".join(row["beside"]) or "-",
                placement(row),
                *(measure(row[key]) for key in METRIC_NAMES),
            )
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
    """Return how sure the intervals are."""
    found = [row[name]["confidence"] for row in result["summary"] for name in METRIC_NAMES if row[name] is not None]
    if not found:
        return "nothing was measured"
    return (
        "Intervals are distribution-free: between two order statistics of the runs, which hold the true median with a"
        " probability of %.1f %%." % (100 * min(found))
    )

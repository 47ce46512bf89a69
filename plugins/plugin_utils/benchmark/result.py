# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result of a benchmark as a node returned it, before it is shown: a node may be hostile. Pure.

Nothing is taken over but texts, which are cut to what can be shown, and numbers. Medians, boxes and verdict are
computed here, from the runs.
"""

from __future__ import annotations

import math
from typing import Any, Mapping

from ...module_utils._base.errors import InputError, option
from ...module_utils._benchmark.benchmark_plan import EXPERIMENTS, PLACEMENTS
from ...module_utils._benchmark.node_benchmark import SCHEMA_VERSION
from ...module_utils._benchmark.result import METRICS, summarized
from ...module_utils._benchmark.workloads import ROLES
from ...module_utils._cgroup.kubepods import BURSTABLE, GUARANTEED
from ..report.answers import WRONG, items, line

_MOST_ROWS = 100000
_MOST_SECONDS = 1e6
_NUMBERS = ("cpus", "cores", "sockets", "numa_nodes", "threads_per_core")
_WORDS = ("model", "kernel", "load", "governor")


def checked_result(host: str, result: Any) -> dict[str, Any]:
    """What is shown of a node's result. Raises InputError where it is none."""
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

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of benchmarks as one HTML file that loads nothing. It runs on the controller.

Its boxes are those of the summary of a result: multiples of the best run of a workload in an experiment, 1.00 is the
best.
"""

from __future__ import annotations

import base64
import hashlib
import math
from typing import Any, Iterable, Iterator, Mapping, Sequence

from jinja2 import DictLoader, Environment, StrictUndefined

from ...module_utils._base.quantity import counted
from .result import (
    EXPERIMENT_NAMES,
    METRIC_NAMES,
    PLACEMENT_NAMES,
    confidence_note,
    measure,
    place_name,
    placement,
    workload,
)

# What is drawn: p50 is in the table only.
_DRAWN = ("seconds", "p99")
# Of a chart, in pixels: its width, where the axis begins and ends, the heights of a title, a row and the axis.
_WIDTH, _LEFT, _RIGHT = 560, 92, 500
_TITLE, _ROW, _AXIS, _HALF = 24, 24, 26, 7
# From this on an axis is logarithmic.
_LOGARITHMIC = 6.0


def page(report: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """Return the HTML of a report: {title, made, nodes: [{host, result}]}.

    parts: {template: text of benchmark.html.j2, chart: that of chart.svg.j2, style}.
    """
    if "</style" in parts["style"].lower():
        raise ValueError("the style of the page has an end tag")
    digest = hashlib.sha256(parts["style"].encode("utf-8")).digest()
    return str(
        _environment(parts)
        .get_template("template")
        .render(
            report=report,
            nodes=[shown_node(node["host"], node["result"]) for node in report["nodes"]],
            style=parts["style"],
            style_hash="sha256-" + base64.b64encode(digest).decode("ascii"),
            placements=PLACEMENT_NAMES,
        )
    )


def _environment(parts: Mapping[str, str]) -> Environment:
    # Its own environment: that of Ansible's templates escapes nothing by itself.
    return Environment(
        loader=DictLoader(parts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def shown_node(host: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a node."""
    experiments = []
    for name, title in EXPERIMENT_NAMES.items():
        rows = [row for row in result["summary"] if row["experiment"] == name]
        if rows:
            experiments.append(
                {
                    "title": title,
                    "charts": [chart for metric in _DRAWN for chart in _charts(rows, metric)],
                    "rows": [
                        {
                            "workload": workload(row),
                            "beside": ", ".join(row["beside"]),
                            "placement": row["placement"],
                            "where": placement(row),
                            "measures": [measure(row[metric]) for metric in METRIC_NAMES],
                        }
                        for row in rows
                    ],
                }
            )
    machine = result["machine"]
    shape = ", ".join(counted(machine[name + "s"], name) for name in ("cpu", "core", "socket")).replace("cpu", "CPU")
    return {
        "host": host,
        "facts": [
            fact
            for fact in (
                machine["model"],
                shape + (", virtual machine" if machine["virtual"] else ""),
                "kernel " + machine["kernel"],
                "load before %s" % machine["load"] if machine["load"] else "",
                "reserved CPUs %s" % result["settings"]["reserved"],
                "%s of each in random order, seed %d" % (counted(result["settings"]["runs"], "run"), result["seed"]),
            )
            if fact
        ],
        "confidence": confidence_note(result),
        "verdict": result["verdict"],
        "experiments": experiments,
        "left_out": result["left_out"],
        "notes": result["notes"],
    }


# --- charts -------------------------------------------------------------------------------------------


def _charts(rows: Sequence[Mapping[str, object]], metric: str) -> Iterator[dict[str, object]]:
    """Yield one chart of what was measured by this metric, with all places in pixels; none where nothing was."""
    groups = _groups(rows, metric)
    if not groups:
        return
    boxes = [row[metric]["box"] for members in groups.values() for row in members]
    axis = _axis_of(boxes)
    drawn, at = [], 0
    for title, members in groups.items():
        drawn.append(
            {
                "title": title,
                "y": at + 16,
                "rows": [
                    _drawn(row, row[metric]["box"], axis, at + _TITLE + _ROW * number + _ROW // 2)
                    for number, row in enumerate(members)
                ],
            }
        )
        at += _TITLE + _ROW * len(members) + 6
    yield {
        "title": "%s, multiples of the best run" % METRIC_NAMES[metric],
        "is_logarithmic": axis.is_logarithmic,
        "groups": drawn,
        "width": _WIDTH,
        "height": at + _AXIS,
        "bottom": at,
        "left": _LEFT,
        "right": _RIGHT,
        "ticks": [{"x": axis.place(tick), "label": "%g" % tick if tick != 1 else "1.00"} for tick in axis.ticks()],
    }


def _groups(rows: Sequence[Mapping[str, Any]], metric: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows that show this metric, by what they measured beside what."""
    groups: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        if row[metric] is not None:
            beside = " beside " + ", ".join(row["beside"]) if row["beside"] else ""
            groups.setdefault(workload(row) + beside, []).append(row)
    return groups


def _drawn(row: Mapping[str, Any], box: Mapping[str, Any], axis: _Axis, middle: int) -> dict[str, Any]:
    places = {name: axis.place(box[name]) for name in ("low", "first", "median", "third", "high")}
    return {
        **places,
        "placement": row["placement"],
        "label": place_name(row),
        "y": middle,
        "top": middle - _HALF,
        "height": 2 * _HALF,
        "width": round(max(1.0, places["third"] - places["first"]), 1),
        "beyond": [axis.place(value) for value in box["beyond"]],
        "value": "%.2f" % box["median"],
    }


class _Axis:
    """From 1.00, the best run, to the highest value: in pixels."""

    def __init__(self, highest: float) -> None:
        self.highest = max(highest * 1.02, 1.05)
        self.is_logarithmic = self.highest > _LOGARITHMIC

    def place(self, value: float) -> float:
        """Return where a value is."""
        share = (value - 1) / (self.highest - 1)
        if self.is_logarithmic:
            share = math.log(max(value, 1.0)) / math.log(self.highest)
        return round(_LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[float]:
        """Return round values, 1 the first of them."""
        if self.is_logarithmic:
            found = [step * 10.0**power for power in range(9) for step in (1, 2, 5)]
            return [tick for tick in found if tick <= self.highest]
        steps = [step * 10.0**power for power in (-2, -1, 0) for step in (1, 2, 5)]
        step = next(step for step in steps if (self.highest - 1) / step <= 6)
        return [round(1 + number * step, 2) for number in range(int((self.highest - 1) / step) + 1)]


def _axis_of(boxes: Iterable[Mapping[str, Any]]) -> _Axis:
    return _Axis(max(max(box["high"], box["third"], *box["beyond"]) for box in boxes))

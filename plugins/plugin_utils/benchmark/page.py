# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of benchmarks as one HTML file that loads nothing, as SVG and as PNG. It runs on the controller.

All forms draw the same boxes, which the summary of a result has: multiples of the best run of a workload in an
experiment, 1.00 is the best.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
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
WIDTH, _LEFT, _RIGHT = 560, 92, 500
_TITLE, _ROW, _AXIS, _HALF = 24, 24, 26, 7
# From this on an axis is logarithmic.
_LOGARITHMIC = 6.0
# The colours of a placement in pictures that stand alone, on white.
_COLOURS = {"shared": "#c2570c", "exclusive": "#2459b8", "exclusive-cores": "#1d7a40"}


def page(report: Mapping[str, Any], parts: Mapping[str, str]) -> str:
    """The HTML of a report: {title, made, nodes: [{host, result}]}.

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
            nodes=[_node(node["host"], node["result"]) for node in report["nodes"]],
            style=parts["style"],
            style_hash="sha256-" + base64.b64encode(digest).decode("ascii"),
            placements=PLACEMENT_NAMES,
        )
    )


def svg(host: str, result: Mapping[str, object], parts: Mapping[str, str]) -> str:
    """All box plots of a node as one picture. parts: {picture: text of picture.svg.j2, chart}."""
    charts, at = [], 40
    for chart in all_charts(result):
        charts.append({**chart, "top": at})
        at += chart["height"] + 44
    return str(_environment(parts).get_template("picture").render(host=host, charts=charts, width=WIDTH, height=at))


def _environment(parts: Mapping[str, str]) -> Environment:
    # Its own environment: that of Ansible's templates escapes nothing by itself.
    return Environment(
        loader=DictLoader(parts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _node(host: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """What the page shows of a node."""
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


def all_charts(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All charts of a node, in the order of the page."""
    for name, title in EXPERIMENT_NAMES.items():
        rows = [row for row in result["summary"] if row["experiment"] == name]
        for metric in _DRAWN:
            for chart in _charts(rows, metric):
                yield {**chart, "title": "%s: %s" % (title, chart["title"])}


def _charts(rows: Sequence[Mapping[str, object]], metric: str) -> Iterator[dict[str, object]]:
    """One chart of what was measured by this metric, with all places in pixels; none where nothing was."""
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
        "width": WIDTH,
        "height": at + _AXIS,
        "bottom": at,
        "left": _LEFT,
        "right": _RIGHT,
        "ticks": [{"x": axis.place(tick), "label": "%g" % tick if tick != 1 else "1.00"} for tick in axis.ticks()],
    }


def _groups(rows: Sequence[Mapping[str, Any]], metric: str) -> dict[str, list[Mapping[str, Any]]]:
    """The rows that show this metric, by what they measured beside what."""
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
        """Where a value is."""
        share = (value - 1) / (self.highest - 1)
        if self.is_logarithmic:
            share = math.log(max(value, 1.0)) / math.log(self.highest)
        return round(_LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[float]:
        """Round values, 1 the first of them."""
        if self.is_logarithmic:
            found = [step * 10.0**power for power in range(9) for step in (1, 2, 5)]
            return [tick for tick in found if tick <= self.highest]
        steps = [step * 10.0**power for power in (-2, -1, 0) for step in (1, 2, 5)]
        step = next(step for step in steps if (self.highest - 1) / step <= 6)
        return [round(1 + number * step, 2) for number in range(int((self.highest - 1) / step) + 1)]


def _axis_of(boxes: Iterable[Mapping[str, Any]]) -> _Axis:
    return _Axis(max(max(box["high"], box["third"], *box["beyond"]) for box in boxes))


# --- PNG ----------------------------------------------------------------------------------------------


def has_png() -> bool:
    """Whether the library that draws PNG is installed."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def png(host: str, result: Mapping[str, Any]) -> bytes:
    """All box plots of a node as one picture."""
    # Without pyplot, which keeps figures and looks for a display.
    figures: Any = importlib.import_module("matplotlib.figure")
    rows = {name: [row for row in result["summary"] if row["experiment"] == name] for name in EXPERIMENT_NAMES}
    shown = [name for name in EXPERIMENT_NAMES if rows[name]] or [next(iter(EXPERIMENT_NAMES))]
    heights = [1.2 + len(rows[name]) for name in shown]
    figure = figures.Figure(figsize=(14, 1 + 0.36 * sum(heights)), dpi=120, layout="constrained")
    figure.suptitle(
        "%s: what exclusive CPUs are worth; 1.00 is the best run" % _plain(host), x=0.01, ha="left", weight="bold"
    )
    plots = figure.subplots(len(shown), len(_DRAWN), squeeze=False, gridspec_kw={"height_ratios": heights})
    for line, name in zip(plots, shown):
        for plot, metric in zip(line, _DRAWN):
            _draw(plot, "%s: %s" % (EXPERIMENT_NAMES[name], METRIC_NAMES[metric]), _groups(rows[name], metric), metric)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def _draw(plot: Any, title: str, groups: Mapping[str, Sequence[Mapping[str, Any]]], metric: str) -> None:
    """One box plot; an empty space where nothing was measured."""
    if not groups:
        plot.set_visible(False)
        return
    names: list[str] = []
    rows = [(group, row) for group, members in groups.items() for row in members]
    for number, (group, row) in enumerate(rows):
        box, colour = row[metric]["box"], _COLOURS.get(row["placement"], "#56616f")
        names.append("%s\n%s" % (group, placement(row)))
        drawn = {"med": box["median"], "q1": box["first"], "q3": box["third"], "fliers": box["beyond"]}
        lines = {"color": colour, "linewidth": 1.2}
        plot.bxp(
            [{**drawn, "whislo": box["low"], "whishi": box["high"]}],
            positions=[-number],
            orientation="horizontal",
            widths=0.6,
            patch_artist=True,
            boxprops={"facecolor": colour + "40", "edgecolor": colour, "linewidth": 1.2},
            medianprops={"color": colour, "linewidth": 2.6},
            whiskerprops=lines,
            capprops=lines,
            flierprops={"marker": "o", "markersize": 3.5, "markeredgecolor": colour},
        )
    axis = _axis_of(row[metric]["box"] for _group, row in rows)
    if axis.is_logarithmic:
        plot.set_xscale("log")
        plot.minorticks_off()
    plot.set_xlim(1 - 0.02 * (axis.highest - 1) if not axis.is_logarithmic else 0.97, axis.highest)
    plot.set_xticks(axis.ticks(), ["%g" % tick if tick != 1 else "1.00" for tick in axis.ticks()], fontsize=8)
    plot.set_yticks([-number for number in range(len(rows))], [_plain(name) for name in names], fontsize=7)
    plot.set_ylim(0.6 - len(rows), 0.6)
    plot.set_title(title + (" (logarithmic)" if axis.is_logarithmic else ""), fontsize=10, loc="left")
    plot.grid(axis="x", alpha=0.3)
    plot.tick_params(length=0)
    plot.spines[["top", "right", "left"]].set_visible(False)


def _plain(text: str) -> str:
    """Not as a formula, which a dollar sign would begin."""
    return text.replace("$", r"\$")

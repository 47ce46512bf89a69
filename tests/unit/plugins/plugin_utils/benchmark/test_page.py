# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.benchmark.page import page, shown_node
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.benchmark.result import checked_result

ROLE = Path(__file__).parents[5] / "roles" / "isolation_benchmark"
PARTS = {
    "template": (ROLE / "templates" / "benchmark.html.j2").read_text("utf-8"),
    "chart": (ROLE / "templates" / "chart.svg.j2").read_text("utf-8"),
    "style": (ROLE / "files" / "benchmark.css").read_text("utf-8"),
}
MARKUP = "</style><script>document.title='owned'</script>$x^2$\x1b[2J"
VICTIM = {"workload": "victim", "qos_class": "Guaranteed", "cpus": "1,5", "exclusive": True}
AGGRESSOR = {"workload": "aggressor", "qos_class": "Burstable", "cpus": "0", "exclusive": False}


def result(scale: float = 1.0) -> dict[str, Any]:
    """Return what a node returns, with all placements; on shared CPUs it takes `scale` times as long."""
    cases = [
        {"experiment": experiment, "placement": placement, "containers": [VICTIM, *others]}
        for experiment, others in (("stand-alone", []), ("aggressor", [AGGRESSOR]))
        for placement in ("shared", "exclusive", "exclusive-cores")
    ]
    rows = [
        {
            "case": case,
            "run": run,
            "place": 6 * run + case,
            "workload": "victim",
            "qos_class": "Guaranteed",
            **{
                name: value * (1 + run / 50) * (scale if case % 3 == 0 else 1)
                for name, value in (("seconds", 1.0), ("p50", 0.002), ("p99", 0.003), ("longest", 0.009))
            },
        }
        for case in range(6)
        for run in range(6)
    ]
    numbers = dict.fromkeys(("cpus", "cores", "sockets", "numa_nodes", "threads_per_core"), 2)
    words = dict.fromkeys(("model", "kernel", "load", "governor"), "x")
    return {
        "schema_version": "1.0",
        "machine": {**numbers, **words, "virtual": True},
        "seed": 1,
        "settings": {"runs": 6, "reserved": "0"},
        "cases": cases,
        "rows": rows,
        "left_out": [],
        "notes": [],
    }


def html(host: str, given_result: dict[str, Any]) -> str:
    report = {"title": "T", "made": "2026-11-23T15:04:05Z", "nodes": [{"host": host, "result": given_result}]}
    return page(report, PARTS)


@pytest.mark.parametrize("scale", [1.0, 3.0, 400.0])
def test_all_boxes_are_inside_their_chart(scale: float) -> None:
    shown = shown_node("a", checked_result("a", result(scale)))
    charts = [chart for experiment in shown["experiments"] for chart in experiment["charts"]]
    assert len(charts) == 4
    for chart in charts:
        assert chart["is_logarithmic"] == (scale > 100)
        assert 2 <= len(chart["ticks"]) <= 10
        rows = [row for group in chart["groups"] for row in group["rows"]]
        assert [row["label"] for row in rows] == ["shared", "exclusive", "whole cores"]
        for row in rows:
            places = [row[name] for name in ("low", "first", "median", "third", "high")]
            assert places == sorted(places)
            assert chart["left"] <= places[0] <= places[-1] <= chart["right"]
            assert 0 < row["top"] < row["top"] + row["height"] < chart["bottom"]
        # The best run of all is at 1.00.
        assert min(row["low"] for row in rows) == chart["ticks"][0]["x"] == chart["left"]


def test_what_a_node_says_is_only_text() -> None:
    hostile = copy.deepcopy(result())
    hostile["notes"] = hostile["left_out"] = [MARKUP]
    hostile["machine"]["model"] = hostile["cases"][0]["containers"][0]["cpus"] = MARKUP
    hostile["settings"]["reserved"] = MARKUP
    # What it says of its own figures does not count.
    hostile["verdict"] = [{"answer": MARKUP, "text": MARKUP}]
    hostile["summary"] = [{"experiment": MARKUP}]
    checked = checked_result("a", hostile)
    text = html(MARKUP, checked)
    assert "<script" not in text
    assert "\x1b" not in html("a", checked)
    assert text.count("</style>") == 1
    assert "owned&#39;)" not in text


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema_version",), "2.0"),
        (("rows", 0, "seconds"), "NaN"),
        (("rows", 0, "seconds"), None),
        (("rows", 0, "p99"), -1),
        (("rows", 0, "p99"), 1e300),
        (("rows", 0, "case"), 6),
        (("rows", 0, "case"), -1),
        (("rows", 0, "workload"), MARKUP),
        (("cases", 0, "placement"), "everywhere"),
        (("cases", 0, "experiment"), []),
        (("cases", 0, "containers"), []),
        (("machine", "cpus"), "many"),
        (("machine",), None),
        (("rows",), None),
        (("seed",), {}),
    ],
)
def test_another_result_is_refused(place: tuple[Any, ...], value: Any) -> None:
    wrong = result()
    at: Any = wrong
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(InputError, match="results of worker-1: is no result of isolation_benchmark"):
        checked_result("worker-1", wrong)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(result())), ANYTHING)
def test_anything_is_shown_or_refused(key: str, value: Any) -> None:
    try:
        checked = checked_result("a", {**result(), key: value})
    except InputError:
        return
    assert not re.search("<script", html("a", checked))

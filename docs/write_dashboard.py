#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the dashboard for Grafana from the panels below: python docs/write_dashboard.py

Each panel is one row of a table here; Grafana's form, which repeats itself, is made of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, Sequence

FILE = Path(__file__).resolve().parents[1] / "extensions" / "monitoring" / "dashboard.json"

_WIDTH = 24
_HEIGHT = 8
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_FLEET = '{fleet=~"$fleet"}'
_STRANDED = "Shared CPUs that no container can get for itself, though the scheduler counts them."
_NODE = '{fleet="", instance=~"$instance"}'


class Panel(NamedTuple):
    """What is drawn. queries: (expression, name of a series); width: in 24ths of a row.

    kind: "timeseries"; "stat" for the values of now; "name" for the names of those series that there are now.
    """

    title: str
    queries: Sequence[tuple[str, str]]
    width: int = 12
    kind: str = "timeseries"
    unit: str = "short"
    about: str = ""


def _fleet(name: str) -> str:
    return "kubenode_cpu_%s%s" % (name, _FLEET)


def _node(name: str) -> str:
    return "kubenode_cpu_%s%s" % (name, _NODE)


def _role(name: str) -> str:
    return "kubenode_cpu_manager_%s%s" % (name, _NODE)


ROWS: dict[str, Sequence[Panel]] = {
    "The fleet": (
        Panel("Outcome", [(_fleet("report_outcome") + " == 1", "{{fleet}}: {{outcome}}")], 4, "name"),
        Panel("Grade", [(_fleet("report_grade") + " == 1", "{{fleet}}: {{grade}}")], 4, "name"),
        Panel(
            "Exit status",
            [(_fleet("report_exit_status"), "{{fleet}}")],
            4,
            "stat",
            about="0 clean, 1 unknown, 2 drift, 3 danger",
        ),
        Panel(
            "Age of the report, and of its oldest look",
            [
                ("time() - " + _fleet("report_timestamp_seconds"), "report of {{fleet}}"),
                ("time() - " + _fleet("oldest_look_timestamp_seconds"), "oldest look of {{fleet}}"),
            ],
            8,
            "stat",
            "s",
        ),
        Panel("Result files not used", [(_fleet("report_problems"), "{{fleet}}")], 4, "stat"),
        Panel("Nodes by state", [("sum by (state) (%s)" % _fleet("nodes"), "{{state}}")]),
        Panel(
            "Nodes with a finding, by check",
            [("sum by (check) (%s) > 0" % _fleet("drift"), "{{check}}")],
            about="Isolation, throttling and caches are among them, where drift_report_look_at has them.",
        ),
        Panel("Nodes as wanted", [(_fleet("nodes_as_wanted_percent"), "{{fleet}}")], unit="percent"),
        Panel(
            "Age of the oldest finding, by check",
            [("time() - min by (check) (%s)" % _fleet("oldest_finding_timestamp_seconds"), "{{check}}")],
            unit="s",
            about="Where each report has the one before it as drift_report_baseline.",
        ),
        Panel("CPUs by pool", [("sum by (pool) (%s)" % _fleet("pool_cpus"), "{{pool}}")]),
        Panel("Stranded CPUs", [(_fleet("stranded_cpus"), "{{fleet}}")], about=_STRANDED),
        Panel(
            "Containers on other CPUs than their own",
            [
                (_fleet("mispinned_containers"), "containers of {{fleet}}"),
                (_fleet("mispinned_cpus"), "CPUs of {{fleet}}"),
            ],
            8,
        ),
        Panel("Findings that are waived", [("sum by (check) (%s) > 0" % _fleet("findings_waived"), "{{check}}")], 8),
        Panel(
            "Nodes by owner of the configuration",
            [("sum by (owner) (%s)" % _fleet("owner_nodes"), "{{owner}}")],
            8,
        ),
    ),
    "A node": (
        Panel("Read", [(_node("look_success"), "{{instance}}")], 6, "stat"),
        Panel(
            "Age of the last look",
            [("time() - " + _node("look_timestamp_seconds"), "{{instance}}")],
            6,
            "stat",
            "s",
        ),
        Panel("Owner of the configuration", [(_node("owner_info"), "{{instance}}: {{owner}}")], 12, "name"),
        Panel("Findings", [(_node("drift"), "{{instance}}: {{check}}")]),
        Panel(
            "Containers on other CPUs than their own",
            [
                (_node("mispinned_containers"), "containers of {{instance}}"),
                (_node("mispinned_cpus"), "CPUs of {{instance}}"),
            ],
        ),
        Panel("CPUs by pool", [(_node("pool_cpus"), "{{instance}}: {{pool}}")]),
        Panel("Stranded CPUs", [(_node("stranded_cpus"), "{{instance}}")], about=_STRANDED),
    ),
    "The role reconcile": (
        Panel(
            "Passes that went through",
            [
                (_role("reconcile_success"), "{{instance}}"),
                (_role("dynamic_success"), "{{instance}}, dynamic"),
            ],
            8,
        ),
        Panel(
            "Containers by what became of their CPUs",
            [(_role("reconcile_containers"), "{{instance}}: {{result}}")],
            8,
        ),
        Panel(
            "How long a pass took",
            [
                (_role("reconcile_duration_seconds"), "{{instance}}"),
                (_role("dynamic_duration_seconds"), "{{instance}}, dynamic"),
            ],
            8,
            unit="s",
        ),
        Panel(
            "Moves of the policy dynamic",
            [("rate(%s[5m])" % _role("dynamic_moves_total"), "{{instance}}: {{what}}")],
            8,
            unit="cps",
        ),
        Panel(
            "CPUs of the shared pool, and of containers",
            [
                (_role("dynamic_shared_cpus"), "{{instance}}: shared"),
                (_role("dynamic_cpus"), "{{instance}}: {{container}}"),
            ],
            8,
        ),
        Panel("Containers that wait for CPUs", [(_role("dynamic_waiting"), "{{instance}}")], 8),
    ),
}


def dashboard() -> dict[str, Any]:
    """Return what Grafana imports."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        panels.append(
            {"type": "row", "title": title, "collapsed": False, "panels": [], **_place(len(panels), 0, top, _WIDTH, 1)}
        )
        left, top = 0, top + 1
        for panel in row:
            if left + panel.width > _WIDTH:
                left, top = 0, top + _HEIGHT
            panels.append({**_drawn(panel), **_place(len(panels), left, top, panel.width, _HEIGHT)})
            left += panel.width
        top += _HEIGHT
    return {
        "title": "CPU management of kubelets",
        "uid": "kubenode-cpu-manager",
        "tags": ["kubernetes", "kubelet", "cpu"],
        "schemaVersion": 38,
        "editable": True,
        "time": {"from": "now-7d", "to": "now"},
        "refresh": "1m",
        "templating": {
            "list": [
                _SOURCES,
                _variable("fleet", "kubenode_cpu_nodes"),
                _variable("instance", "kubenode_cpu_look_success"),
            ]
        },
        "panels": panels,
    }


# What is chosen above the panels: a label, and a metric that has all of its values.
_CHOSEN = {"fleet": "kubenode_cpu_nodes", "instance": "kubenode_cpu_look_success"}
_SOURCES = {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}


def _variable(label: str, metric: str) -> dict[str, Any]:
    query = "label_values(%s, %s)" % (metric, label)
    choice = {"multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": query,
        "refresh": 2,
        **choice,
    }


def _place(number: int, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    return {"id": number + 1, "gridPos": {"x": left, "y": top, "w": width, "h": height}}


def _drawn(panel: Panel) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": expression, "legendFormat": name}
        for number, (expression, name) in enumerate(panel.queries)
    ]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    shown: dict[str, Any] = {"legend": {"placement": "bottom"}}
    if panel.kind in ("stat", "name"):
        shown = {"textMode": "name" if panel.kind == "name" else "value_and_name"}
        # Over the time of the dashboard, each outcome and grade that was there once would still have its last value, 1.
        targets = [{**target, "instant": True, "range": False} for target in targets]
        # Grafana's own colours are red from 80 on, and so for an age of two minutes.
        defaults["color"] = {"mode": "fixed", "fixedColor": "text"}
    return {
        "type": "stat" if panel.kind == "name" else panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": shown,
    }


def text() -> str:
    """Return the file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules for Prometheus and the dashboard for Grafana: each metric and each runbook is there."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import PassReport
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.program import Figures
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs.reconcile_program import METRICS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.metrics import HELP

from .pages import CHECKOUT, GUIDES

HERE = Path(__file__).resolve().parent
MONITORING = CHECKOUT / "extensions" / "monitoring"
PICTURE = GUIDES / "images" / "dashboard.png"
RULES = MONITORING / "rules.yml"
NAME = re.compile(r"\bkubenode_cpu_\w+")
# Of the role reconcile, what a person looks at when one of the others says that something is wrong.
NOT_DRAWN = {
    "kubenode_cpu_manager_dynamic_admitted_cpus",
    "kubenode_cpu_manager_dynamic_failures_total",
    "kubenode_cpu_manager_dynamic_passes_total",
    "kubenode_cpu_manager_dynamic_refusals_total",
    "kubenode_cpu_manager_reconcile_checkpoint",
    "kubenode_cpu_manager_reconcile_kubelet",
}


def written() -> set[str]:
    """Return the names of all metrics that the collection writes."""
    dynamic = Figures().text(PassReport(), True, 0.0)
    return {*HELP, *re.findall(r"# HELP (\w+)", METRICS + dynamic)}


@pytest.fixture(scope="module")
def writer() -> Any:
    sys.path.insert(0, str(CHECKOUT / "docs"))
    try:
        return importlib.import_module("write_dashboard")
    finally:
        sys.path.remove(str(CHECKOUT / "docs"))


def test_the_dashboard_is_what_its_table_says(writer: Any) -> None:
    assert (MONITORING / "dashboard.json").read_text("utf-8") == writer.text(), "docs/write_dashboard.py writes it anew"


def texts_of_png(picture: bytes) -> Iterator[tuple[str, str]]:
    """Yield (keyword, text) of each chunk of text."""
    place = 8
    while place < len(picture):
        length, kind = struct.unpack_from(">I4s", picture, place)
        if kind == b"tEXt":
            keyword, _null, text = picture[place + 8 : place + 8 + length].decode("latin-1").partition("\0")
            yield keyword, text
        place += length + 12


def test_the_picture_is_of_this_dashboard() -> None:
    drawn = dict(texts_of_png(PICTURE.read_bytes()))
    dashboard = (MONITORING / "dashboard.json").read_bytes()
    assert drawn["dashboard.json"] == hashlib.sha256(dashboard).hexdigest(), "docs/draw_dashboard draws it anew"


def test_a_panel_of_one_value_asks_for_now(writer: Any) -> None:
    """Else each outcome and grade that was there once in the time of the dashboard is shown, all with the value 1."""
    panels = [panel for panel in writer.dashboard()["panels"] if panel["type"] == "stat"]
    assert panels
    assert all(target["instant"] and not target["range"] for panel in panels for target in panel["targets"])
    assert all(panel["fieldConfig"]["defaults"]["color"]["mode"] == "fixed" for panel in panels)
    # The value of these says nothing, as it is always 1.
    names = [panel["title"] for panel in panels if panel["options"]["textMode"] == "name"]
    assert names == ["Outcome", "Grade", "Owner of the configuration"]


def test_every_metric_is_drawn_or_alerts(writer: Any) -> None:
    named = set(NAME.findall(writer.text() + RULES.read_text("utf-8")))
    assert named - written() == set()
    assert written() - named == NOT_DRAWN


def test_panels_do_not_overlap(writer: Any) -> None:
    places = [panel["gridPos"] for panel in writer.dashboard()["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _y in cells) < 24


def test_every_runbook_is_a_page() -> None:
    """What stands for a check is one of those of the report, each of which has a page."""
    rules = [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]
    assert rules
    for rule in rules:
        address = rule["annotations"]["runbook_url"].partition("}}/")[2]
        if "check" in address and "{{" in address:
            assert address == "docsite/checks.html#{{ $labels.check }}"
            assert " check)" in rule["expr"]
        elif address.startswith("docsite/checks.html#"):
            assert address.partition("#")[2] in CHECKS, address
        elif address.startswith("docsite/"):
            assert (GUIDES / address[len("docsite/") :]).with_suffix(".rst").is_file(), address
        else:
            assert (CHECKOUT / "roles" / address.partition("_role.html")[0]).is_dir(), address


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("command", [("check", "rules", str(RULES)), ("test", "rules", str(HERE / "rules_test.yml"))])
def test_promtool_passes_the_rules(command: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, cwd=HERE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("promtool")
def test_promtool_reads_every_expression_of_the_dashboard(writer: Any, tmp_path: Path) -> None:
    """As rules, with a value in place of each of Grafana's variables."""
    expressions = [query[0] for row in writer.ROWS.values() for panel in row for query in panel.queries]
    rules = [
        {"record": "panel:%d" % number, "expr": re.sub(r"[$](fleet|instance)", ".*", expression)}
        for number, expression in enumerate(expressions)
    ]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

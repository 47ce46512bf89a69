# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a fleet as text; tests/browser/ has it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.page import page, read_parts
from ansible_collections.kubenode.cpu_manager.tests.browser.fleet_report import (
    CLOSING,
    IMAGE,
    SCRIPT,
    Report,
    fleet_report,
    with_markup,
)

ROLE = Path(__file__).resolve().parents[5] / "roles" / "drift_report"
PARTS = read_parts(ROLE)


class Reader(HTMLParser):
    """The elements of a page: its tags, attributes, texts by tag, and the texts of its rows."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, str] = {}
        self.rows: list[str] = []
        self.shown = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if (dict(attrs).get("class") or "").split(" ")[0] == "node":
            self.rows.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "ul":
            self.shown += "\n"

    def handle_data(self, data: str) -> None:
        tag = self.tags[-1] if self.tags else ""
        self.texts[tag] = self.texts.get(tag, "") + data
        if tag not in ("style", "script"):
            self.shown += data
        if self.rows:
            self.rows[-1] += data


def data_of(text: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def values(reader: Reader, tag: str, name: str) -> list[str]:
    return [value for tag_of, name_of, value in reader.attributes if (tag_of, name_of) == (tag, name)]


@pytest.fixture(scope="module")
def report() -> Report:
    return fleet_report(300)


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return page(report, PARTS)


def test_the_policy_allows_this_style_and_this_script_alone(text: str) -> None:
    (policy,) = values(Reader(text), "meta", "content")[:1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": "'%s'" % _hash("style", text),
        "script-src": "'%s'" % _hash("script", text),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def _hash(tag: str, text: str) -> str:
    (found,) = re.findall("<%s>(.*?)</%s>" % (tag, tag), text, re.DOTALL)
    return "sha256-" + base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()


def test_the_page_loads_nothing(text: str) -> None:
    reader = Reader(text)
    assert not set(reader.tags) & {"link", "img", "iframe", "object", "embed", "base", "audio", "video"}
    assert not [name for _tag, name, _value in reader.attributes if name in ("src", "style") or name.startswith("on")]
    assert {link[0] for link in values(reader, "a", "href")} == {"#"}
    assert "url(" not in PARTS["style"]
    assert "@import" not in PARTS["style"]


def test_the_script_makes_no_html_of_texts() -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch("):
        assert word not in PARTS["script"]


def test_each_node_has_a_row_and_the_same_place_in_the_data(report: Report, text: str) -> None:
    reader, data = Reader(text), data_of(text)
    ids = [value.partition("=")[2] for value in values(reader, "li", "id")]
    assert ids == [node["host"] for node in data["nodes"]]
    assert sorted(ids) == sorted(node["host"] for node in report["nodes"])
    assert len(reader.rows) == 300


def test_the_data_is_that_of_the_report(report: Report, text: str) -> None:
    data = data_of(text)
    shown = {node["host"]: node for node in data["nodes"]}
    for node in report["nodes"]:
        found = shown[node["host"]]
        for key in ("findings", "ways"):
            assert [data["values"][number] for number in found.get(key, [])] == node[key]
        for key in ("pools", "owners", "containers", "elsewhere", "refusals"):
            assert (data["values"][found[key]] if key in found else type(node[key])()) == node[key]
        group = data["groups"][found["group"]]
        assert group["id"] == ("none" if node["group"] is None else str(node["group"]))


def test_values_that_nodes_share_are_there_once(text: str) -> None:
    texts = [json.dumps(value) for value in data_of(text)["values"]]
    assert len(texts) == len(set(texts))


def test_a_row_says_what_is_wrong_without_a_script(report: Report, text: str) -> None:
    rows = {row.split()[0].partition("refused")[0].partition("drift")[0]: row for row in Reader(text).rows}
    wrong = [node for node in report["nodes"] if node["state"] in ("drift", "refused")]
    assert wrong
    for node in wrong:
        (row,) = [row for host, row in rows.items() if host == node["host"]]
        assert node["state"] in row
        assert all(finding["check"] in row and finding["found"] in row for finding in node["findings"])


def test_groups_with_trouble_come_first_and_outliers_before_others(report: Report, text: str) -> None:
    order = [group["id"] for group in data_of(text)["groups"]]
    calm = {"clean", "nothing wanted", "no kubelet"}
    wrong = [str(group["id"]) for group in report["groups"] if not set(group["states"]) <= calm]
    right = [str(group["id"]) for group in report["groups"] if set(group["states"]) <= calm]
    assert wrong
    assert right
    assert order == ["none", *wrong, *right]


def test_what_is_unlike_most_nodes_is_marked(report: Report, text: str) -> None:
    settings = {group["id"]: group["settings"]["topology_manager_policy"] for group in report["groups"]}
    assert text.count("topology_manager_policy=single-numa-node</span>") == 1
    marked = re.findall(r'title="most nodes: single-numa-node">.*?topology_manager_policy=(\w+)</span>', text)
    assert marked == ["restricted"] * sum(value != "single-numa-node" for value in settings.values())
    assert marked


def test_the_summary_has_all_states_and_checks(report: Report, text: str) -> None:
    shown = " ".join(Reader(text).shown.split())
    for check in report["summary"]["checks"]:
        assert "%s %s" % (report["checks"][check["check"]]["title"], check["check"]) in shown
    unread = {state: report["summary"]["states"][state] for state in ("unreachable", "failed", "missing")}
    assert "%d not read" % sum(unread.values()) in shown
    assert all("%d %s" % (number, state) in shown for state, number in unread.items())
    assert "4 findings of it are gone" in shown
    assert re.search(r"are gone\. policy-differs cpu_manager_policy: worker-.*worker-", shown)
    assert "2 result files not used" in shown
    assert "is cut off at byte 812" in shown


def test_without_a_baseline_nothing_is_new(report: Report) -> None:
    without: Report = {**report, "summary": {**report["summary"], "gone": None}, "gone": []}
    shown = page(without, PARTS)
    assert "baseline" not in Reader(shown).shown
    assert "<option>new</option>" not in shown


def test_what_is_gone_is_bounded(report: Report) -> None:
    gone = [{"host": "w-%d" % number, "check": "x", "subject": str(number)} for number in range(5000)]
    gone += [{"host": "w-%d" % number, "check": "y", "subject": "s"} for number in range(0, 10000, 3)]
    many: Report = {**report, "gone": gone}
    shown = " ".join(Reader(page(many, PARTS)).shown.split())
    assert re.search("y s: w-0, w-3, .{,400} and 3[0-9]{3} more x 0: w-0 x 1: w-1", shown)
    assert "x 198: w-198" in shown
    assert "x 199: w-199" not in shown
    assert "and 4801 more findings, which the JSON has" in shown


def test_an_empty_fleet_has_a_page() -> None:
    report = fleet_report(0)
    report["problems"] = []
    assert data_of(page(report, PARTS))["nodes"] == []


@pytest.mark.parametrize("markup", [SCRIPT, IMAGE, CLOSING])
def test_markup_is_text(markup: str) -> None:
    report = fleet_report(60, drift=0.5)
    honest, hostile = Reader(page(report, PARTS)), Reader(page(with_markup(report, markup), PARTS))
    assert set(hostile.tags) <= set(honest.tags)
    assert hostile.tags.count("script") == 2
    assert not [name for _tag, name, _value in hostile.attributes if name in ("src", "style") or name.startswith("on")]
    assert hostile.shown.count(markup) > 100


def test_a_state_and_a_severity_that_are_new_do_not_stop_the_page(report: Report) -> None:
    text = json.dumps(report).replace('"drift"', '"odd"').replace('"warning"', '"strange"')
    assert "odd" in page(json.loads(text), PARTS)


@pytest.mark.parametrize("name", ["style", "script"])
def test_a_part_that_would_end_its_element_is_refused(report: Report, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        page(report, {**PARTS, name: "/* </%s > */" % name.upper()})

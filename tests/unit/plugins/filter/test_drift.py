# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.filter.drift import FilterModule
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

FILTERS = FilterModule().filters()
TEMPLATE = (Path(__file__).resolve().parents[4] / "roles/drift_report/templates/report.html.j2").read_text("utf-8")

# What each ends, or begins, where it is not escaped.
MARKUP = ("<script>owned()</script>", "\"'><img src=x onerror=owned()>", "</pre></style></title><b>", "{{ 7 * 7 }}")

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "header", "span"),
    *("table", "tr", "th", "td", "code", "pre", "ul", "li", "div", "b", "i"),
}


class Reader(HTMLParser):
    """The tags, the attributes and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.values: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _value in attrs}
        self.values += [value or "" for _name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(*nodes: dict[str, Any], title: str = "Report", skip: bool = False) -> str:
    answer = FILTERS["drift_page"](list(nodes), TEMPLATE, title, "2026-01-02 03:04", skip)
    assert isinstance(answer, str)
    return answer


def hostile(markup: str) -> dict[str, Any]:
    """An answer with markup in every place that the page shows."""
    return {
        "host": markup,
        "status": markup,
        "message": markup,
        "topology": {**parse_name("1s2c2t").topology().to_dict(), "problems": [markup]},
        "drift": [{"subject": markup, "found": {markup: markup}, "wanted": markup, "remedy": markup}],
        "actions": [markup],
        "checkpoint": {"verdict": "refused", "remedy": markup},
        "enforcement": {"version": markup, "containers": {"kept": markup, "different": markup, "skipped": markup}},
        "refusals": [{"where": markup, "text": markup, "remedy": markup}],
        "elsewhere": {"name": markup, "why": markup, "snippet": markup},
        "cpus": {"online": markup, "reserved": markup},
        "owners": [{"use": "exclusive", "owner": markup, "cpus": "0"}, {"use": markup, "owner": markup, "cpus": "1"}],
        "notes": [markup],
    }


@pytest.mark.parametrize("markup", MARKUP)
def test_markup_is_text(markup: str) -> None:
    read = Reader(page(hostile(markup), title=markup))
    assert read.tags <= TAGS
    assert read.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "id", "title"}
    assert read.text.count(markup) > 20
    assert "CPU 0: exclusive to " + markup in read.values
    # An id, as the host is called.
    assert markup in read.values


def test_only_the_type_of_a_status_is_a_class() -> None:
    statuses = ("clean", "drift", "no kubelet", "nothing wanted", "failed", "unreachable", "x onclick")
    text = page(*({"host": str(at), "status": status} for at, status in enumerate(statuses)))
    assert re.findall(r'class="status ([^"]*)">([^<]*)<', text) == [
        ("clean", "clean"),
        ("failed", "drift"),
        ("none", "no kubelet"),
        ("unset", "nothing wanted"),
        ("failed", "failed"),
        ("failed", "unreachable"),
        ("failed", "x onclick"),
    ]
    # Each that is good, or neither good nor bad, has its own colour.
    colours = re.findall(r"\.status\.(\w+) \{ background: (\S+) \}", text)
    assert {name for name, _colour in colours} == {"clean", "none", "unset"}
    assert len({colour for _name, colour in colours}) == 3
    assert "7 nodes:\n1 clean, 1 drift, 1 failed, 1 no kubelet, 1 nothing wanted, 1 unreachable, 1 x onclick." in text


def test_no_script_is_allowed() -> None:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert '<meta http-equiv="Content-Security-Policy" content="%s">' % policy in page()


def test_hosts_without_a_kubelet() -> None:
    nodes = [{"host": name, "status": status} for name, status in (("a", "clean"), ("b", "no kubelet"))]
    told, quiet = page(*nodes), page(*nodes, skip=True)
    assert re.findall(r'<section id="(.*?)">', told) == ["a", "b"]
    assert re.findall(r'<section id="(.*?)">', quiet) == ["a"]
    assert "No kubelet, skipped: b." in quiet
    assert "skipped" not in told
    table = FILTERS["drift_table"]
    assert [line.split()[0] for line in table(nodes).splitlines()] == ["NODE", "a", "b"]
    assert table(nodes, skip_hosts_without_kubelet=True).splitlines()[1:] == ["a     clean", "No kubelet, skipped: b"]


def test_refusals_and_snippets_are_on_the_page() -> None:
    text = page(
        {
            "host": "a",
            "status": "drift",
            "refusals": [{"where": "x", "text": "managed", "remedy": "use y"}],
            "elsewhere": {"name": "Talos", "why": "use the machine configuration", "snippet": "machine:\n  a: <1>\n"},
        }
    )
    assert "Cannot be changed: x: managed; use y." in text
    assert "Talos: use the machine configuration." in text
    assert "<pre>machine:\n  a: &lt;1&gt;\n</pre>" in text


def test_nodes() -> None:
    assert FILTERS["drift_nodes"]({"a": {"status": "clean"}}) == [{"host": "a", "status": "clean"}]


def test_each_is_documented() -> None:
    """In a file of its name."""
    root = Path(__file__).resolve().parents[4]
    assert set(FILTERS) <= {path.stem for path in (root / "plugins/filter").glob("*.yml")}

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a fleet in a browser: speed with 10,000 nodes, use, accessibility, and nodes whose texts are markup.

The browser starts once: driver.js does everything there, and the tests look at what it saw. With PICTURES=folder it
leaves pictures of the page there.
"""

from __future__ import annotations

import json
import os
import re
import time
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.page import page, read_parts

from .chromium import CHROMIUM, driven, node_modules
from .fleet_report import CLOSING, IMAGE, SCRIPT, Report, fleet_report, with_long_texts, with_markup

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROLE = ROOT / "roles" / "drift_report"

pytestmark = pytest.mark.needs(CHROMIUM or "chromium", "node", "npm")

PARTS = read_parts(ROLE)
# Fleets of 10,000 nodes: of 40 shapes, and of one shape where all drift.
LARGE: dict[str, dict[str, Any]] = {
    "large": {"nodes": 10_000},
    "worst": {"nodes": 10_000, "shapes": 1, "drift": 1.0},
}
# A screen, and a telephone, in pixels.
WIDTHS = (1400, 400)
MARKUP = {"script": SCRIPT, "image": IMAGE, "closing": CLOSING}
SEARCHES = ("worker", "fra1", "drift", "policy-differs", "worker-fra1-0176", "static 128", "no such node", "")

# Megabytes, seconds, megabytes of Python's memory, seconds, milliseconds.
MOST_SIZE, MOST_BUILT, MOST_MEMORY, MOST_PAINTED, MOST_SEARCH = 20, 15, 200, 5, 200
OF_LARGE = {
    "test_a_page_of_10000_nodes_is_small_and_soon_there",
    "test_the_page_takes_little_memory",
    "test_a_search_over_10000_nodes_is_quick",
}


class Seen(NamedTuple):
    """What the driver saw, by scenario, and the reports of the pages that it opened."""

    results: dict[str, Any]
    reports: dict[str, Report]
    built: dict[str, dict[str, float]]

    def of(self, scenario: str) -> Any:
        result = self.results[scenario]
        assert "error" not in result, result["error"]
        return result


def build(report: Report) -> tuple[str, dict[str, float]]:
    start = time.perf_counter()
    made = page(report, PARTS)
    return made, {"seconds": time.perf_counter() - start, "size": len(made.encode()) / 1e6}


def memory_of(report: Report) -> float:
    """Return the most memory that Python takes for the page, in megabytes. It takes its time."""
    tracemalloc.start()
    page(report, PARTS)
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return memory


def without_policy(text: str) -> str:
    open_page, found = re.subn(r'<meta http-equiv="Content-Security-Policy".*?>', "", text)
    assert found == 1
    return open_page


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Seen:
    modules = node_modules()
    directory = tmp_path_factory.mktemp("pages")
    # These take most of the time, and few tests look at them.
    large = LARGE if OF_LARGE & {item.name.partition("[")[0] for item in request.session.items} else {}
    reports = {"small": fleet_report(300), **{name: fleet_report(**size) for name, size in large.items()}}
    pages, built = {}, {}
    for name, report in reports.items():
        pages[name], built[name] = build(report)
    few = fleet_report(40, drift=0.5)
    few_page = page(few, PARTS)
    for name, markup in MARKUP.items():
        text = page(with_markup(few, markup), PARTS)
        pages["hostile %s" % name] = text
        pages["hostile %s, no policy" % name] = without_policy(text)
        # What happens where a text is not escaped: with the policy nothing, without it harm.
        broken = few_page.replace("</main>", markup + "</main>")
        pages["hostile %s, not escaped" % name] = broken
        pages["hostile %s, not escaped, no policy" % name] = without_policy(broken)
    pages["long texts"] = page(with_long_texts(fleet_report(16, drift=0.5)), PARTS)
    for name, text in pages.items():
        (directory / (name + ".html")).write_text(text, encoding="utf-8")
    refused = next(node["host"] for node in reports["small"]["nodes"] if node["ways"] and node["elsewhere"])
    pictures = os.environ.get("PICTURES")
    job = {
        "modules": str(modules),
        "chromium": CHROMIUM,
        "pictures": os.path.abspath(pictures) if pictures else None,
        "pages": {name: str(directory / (name + ".html")) for name in pages},
        "speed": list(large),
        "widths": WIDTHS,
        "searches": SEARCHES,
        "last": reports["large"]["nodes"][-1]["host"] if large else "",
        "refused": refused,
    }
    (directory / "job.json").write_text(json.dumps(job), encoding="utf-8")
    return Seen(driven(HERE / "driver.js", directory / "job.json"), reports, built)


# --- speed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LARGE)
def test_a_page_of_10000_nodes_is_small_and_soon_there(seen: Seen, name: str) -> None:
    built, times = seen.built[name], seen.of("speed " + name)
    print("%s: %.1f MB, built in %.2f s" % (name, built["size"], built["seconds"]))
    print("first paint %.0f ms, ready %.0f ms" % (times["painted"], times["ready"]))
    print("a link to the last node, reloaded, %d ms" % times["linked"])
    assert built["size"] < MOST_SIZE
    assert built["seconds"] < MOST_BUILT
    assert times["painted"] < MOST_PAINTED * 1000
    assert times["ready"] < MOST_PAINTED * 1000


def test_the_page_takes_little_memory(seen: Seen) -> None:
    memory = memory_of(seen.reports["large"])
    print("%.0f MB of memory" % memory)
    assert memory < MOST_MEMORY


@pytest.mark.parametrize("name", LARGE)
def test_a_search_over_10000_nodes_is_quick(seen: Seen, name: str) -> None:
    searches = seen.of("speed " + name)["searches"]
    for search in searches:
        print("%(query)r: %(count)s, %(milliseconds).0f ms" % search)
    counts = {search["query"]: search["count"] for search in searches}
    assert counts["worker"] == "10000 of 10000 nodes"
    assert counts["fra1"] == "2500 of 10000 nodes"
    assert counts["worker-fra1-0176"] == "1 of 10000 nodes"
    assert counts["no such node"] == "0 of 10000 nodes"
    assert counts[""] == "10000 nodes"
    assert max(search["milliseconds"] for search in searches) < MOST_SEARCH


# --- use ----------------------------------------------------------------------------------------------


def hosts(report: Report, **wanted: Any) -> set[str]:
    """Return the hosts with a finding that is so, waived or not; a finding that is waived only where it is wanted."""
    wanted = {"waived": False, **wanted}
    return {
        node["host"]
        for node in report["nodes"]
        for finding in node["findings"]
        if all((bool(finding[key]) if key == "waived" else finding[key]) == value for key, value in wanted.items())
    }


def test_the_page_loads_nothing_and_does_not_break_its_policy(seen: Seen) -> None:
    did = seen.of("use")["seen"]
    assert {address.partition("#")[0].rpartition("/")[2] for address in did["requests"]} == {"small.html"}
    assert did["complaints"] == []


def test_search_is_by_host_and_check(seen: Seen) -> None:
    did, report = seen.of("use"), seen.reports["small"]
    found = {host for host in hosts(report, check="would-not-start") if "fra1" in host}
    assert found
    assert did["start"] == "300 nodes"
    assert set(did["typed"]["nodes"]) == found
    assert did["typed"]["count"] == "%d of 300 nodes" % len(found)
    assert did["typed"]["hash"] == "#q=WOULD-NOT-START+fra1"
    assert did["reset"] == {"count": "300 nodes", "hash": ""}


def test_filters_agree_with_the_summary(seen: Seen) -> None:
    did, report = seen.of("use"), seen.reports["small"]
    first = report["summary"]["checks"][0]
    assert did["check"]["hash"] == "#check=" + first["check"]
    assert did["check"]["count"] == "%d of 300 nodes" % first["nodes"]
    assert set(did["check"]["nodes"]) == hosts(report, check=first["check"])
    filters = did["filters"]
    assert set(filters["state"]["nodes"]) == {node["host"] for node in report["nodes"] if node["state"] == "refused"}
    assert set(filters["severity"]["nodes"]) == hosts(report, severity="note")
    assert set(filters["group"]["nodes"]) == {node["host"] for node in report["nodes"] if node["group"] == 3}
    assert set(filters["findings"]["nodes"]) == hosts(report, waived=True)
    assert [found["field"] for found in filters.values()] == ["refused", "note", "3", "waived"]
    unread = {"failed", "unreachable", "missing", "stale"}
    assert set(did["unread"]["nodes"]) == {node["host"] for node in report["nodes"] if node["state"] in unread}
    assert did["unread"]["nodes"]


def test_a_link_to_a_node_outlives_a_reload(seen: Seen) -> None:
    did = seen.of("use")
    host = did["opened"]
    assert (did["before"], did["after"]) == ("false", "true")
    assert did["reloaded"]["hash"] == "%s&node=%s" % (did["check"]["hash"], host)
    assert did["reloaded"]["count"] == did["check"]["count"]
    assert did["reloaded"]["open"] == [host]
    assert did["reloaded"]["focus"] == host
    assert did["closed"] == did["check"]["hash"]


def test_an_open_node_has_all_that_was_found(seen: Seen) -> None:
    did, report = seen.of("use"), seen.reports["small"]
    (node,) = [node for node in report["nodes"] if node["host"] == did["opened"]]
    shown = did["detail"]
    for finding in node["findings"]:
        assert report["checks"][finding["check"]]["title"] in shown
        for key in ("subject", "wanted", "found", "source", "text", "remedy"):
            assert finding[key] in shown, key
        assert finding["first_seen"].replace("T", " ").replace("Z", " UTC") in shown
    assert re.search(r"2026-11-02 03:00:00 UTC, [0-9]+ days before this report", shown)
    assert node["actions"] in shown
    assert all(refusal in shown for refusal in node["refusals"])
    for text in (
        *("Who ran on the exclusive CPUs (in 5.002 s)", "93.1 %", "kernel thread kworker/5:1-events 6.4 %; interrupts"),
        *("Quotas and throttling (since each cgroup was made)", "0.5 CPUs: 50 ms in each 100 ms, of the container"),
        *("40 % of the periods", "And 3 more."),
    ):
        assert text in shown, text


def test_what_differs_from_the_wanted_value_stands_out(seen: Seen) -> None:
    shown = seen.of("light")
    (node,) = [node for node in seen.reports["small"]["nodes"] if node["host"] == shown["host"]]
    assert shown["odd"] == ["≠stands out: " + way[place] for way in node["ways"] for place in way["odd"]]


def test_the_cpus_are_drawn_on_demand(seen: Seen) -> None:
    did, report = seen.of("use"), seen.reports["small"]
    (node,) = [node for node in report["nodes"] if node["host"] == did["opened"]]
    (group,) = [group for group in report["groups"] if group["id"] == node["group"]]
    assert did["cells_before"] == 0
    cpus = sorted(int(title.split(":")[0].split()[1]) for title in did["titles"])
    assert cpus == sorted(drawn_cpus(group["map"]["boxes"]) + group["map"]["offline"])
    use, owner, text = node["owners"][0]
    cpu = text.replace("-", ",").split(",")[0]
    (title,) = [title for title in did["titles"] if title.startswith("CPU %s:" % cpu)]
    assert title.startswith("CPU %s: %s to %s" % (cpu, use, owner))


def drawn_cpus(boxes: list[dict[str, Any]]) -> list[int]:
    return [cpu for box in boxes for cpu in (box["core"] if "core" in box else drawn_cpus(box["members"]))]


def test_paper_has_the_nodes_that_are_open(seen: Seen) -> None:
    did = seen.of("use")
    assert did["printed"] == {"nodes": [did["opened"]], "tools": False}


def test_without_script_the_summary_and_the_nodes_can_be_read(seen: Seen) -> None:
    found, report = seen.of("without script"), seen.reports["small"]
    assert not found["tools"]
    for check in report["summary"]["checks"]:
        assert check["check"] in found["text"]
    for node in report["nodes"]:
        if node["findings"] and node["state"] != "clean":
            (row,) = [row for row in found["rows"] if row.startswith(node["host"] + node["state"])]
            assert node["findings"][0]["check"] in row
            assert node["findings"][0]["found"] in row
            assert node["findings"][0]["text"] in row


# --- where things are ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_no_word_is_broken_or_cut_off(seen: Seen, width: int) -> None:
    found = seen.of("width %d" % width)
    assert (found["broken"], found["cut"]) == ([], [])
    assert found["page"] == width


@pytest.mark.parametrize("width", WIDTHS)
def test_the_table_of_checks_fits_with_all_its_columns(seen: Seen, width: int) -> None:
    found = seen.of("width %d" % width)
    assert found["heads"] == ["Severity", "Check", "Nodes", "New", "Waived"]
    wide, room = found["checks"]
    assert wide <= room


@pytest.mark.parametrize("width", WIDTHS)
def test_a_node_with_nothing_but_notes_takes_little_room(seen: Seen, width: int) -> None:
    names = seen.of("width %d" % width)["names"]
    assert [name for name in names if "3 notes" in name["text"]]
    # Two lines at most: the name, and how many notes.
    assert max(name["height"] for name in names) < 60
    assert min(name["width"] for name in names) > 210


# --- accessibility ------------------------------------------------------------------------------------


def test_the_keyboard_reaches_the_nodes_first(seen: Seen) -> None:
    did = seen.of("use")
    assert did["first_stop"] == "Skip to the nodes"
    assert did["slash"] == "q"
    assert did["skipped"] == {"count": did["typed"]["count"], "focus": "nodes"}


@pytest.mark.parametrize("name", ["light", "dark", "narrow"])
def test_axe_finds_nothing_serious(seen: Seen, name: str) -> None:
    found = seen.of(name)
    assert {"color-contrast", "document-title", "html-has-lang", "label"} <= set(found["passed"])
    print("%d rules passed; others: %s" % (len(found["passed"]), found["violations"]))
    assert [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")] == []


# --- hostile nodes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MARKUP)
@pytest.mark.parametrize("policy", ["", ", no policy"])
def test_markup_of_a_node_is_text(seen: Seen, name: str, policy: str) -> None:
    found = seen.of("hostile %s%s" % (name, policy))
    assert not found["is_owned"]
    assert found["title"] == "%s: %s" % (MARKUP[name], MARKUP[name])
    assert found["foreign"] == []
    assert found["open"] == 5
    assert len(found["requests"]) == 1
    assert found["text"].count(MARKUP[name]) > 100


@pytest.mark.parametrize("name", MARKUP)
def test_the_policy_holds_where_a_text_is_not_escaped(seen: Seen, name: str) -> None:
    assert not seen.of("hostile %s, not escaped" % name)["is_owned"]
    # What would happen without it.
    assert seen.of("hostile %s, not escaped, no policy" % name)["is_owned"]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/where.py: where the containers of a fleet are."""

from __future__ import annotations

import csv
import json
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.page import page
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.where import COLUMNS, csv_form, where_table
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import CLEAN_ANSWER, LOOKED_AT, MADE
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

from .test_page import PARTS

NODE = {
    **CLEAN_ANSWER,
    # Cores 0,8 1,9 ... on NUMA nodes 0-3 and 4-7.
    "topology": parse_name("2s1n4c2t").topology().to_dict(),
    "cpus": {"online": "0-15", "shared": "1-3,5-7,9-11,13-15"},
    "owners": [{"use": "exclusive", "owner": "shop/db-0/server", "cpus": "4,12"}, {"use": "shared", "cpus": "1-3"}],
}


def container(pod: str, name: str, exclusive: str = "", **more: Any) -> dict[str, Any]:
    return {"pod": pod, "pod_uid": "uid", "container": name, "exclusive": exclusive, "throttled_percent": None, **more}


def report(*containers: Mapping[str, Any], host: str = "worker-1") -> Any:
    looks = {"throttling": {"containers": list(containers)}} if containers else {}
    return assemble([Result(host, LOOKED_AT, NODE, {}, [], looks)], ReportTerms("", MADE))


def rows(made: Any) -> list[list[str]]:
    return list(csv.reader("".join(csv_form(made)).splitlines()))[1:]


def test_a_report_without_a_look_has_the_containers_with_cpus_of_their_own() -> None:
    assert rows(report()) == [["shop/db-0", "server", "worker-1", "exclusive", "4,12", "whole", "1", "1", "", ""]]


def test_with_the_look_it_has_all_containers() -> None:
    made = report(
        container("shop/web-1", "nginx", throttled_percent=12.5, started="2020-02-03T04:05:06Z"),
        container("shop/db-0", "server", "3-4", throttled_percent=0),
    )
    assert rows(made) == [
        ["shop/db-0", "server", "worker-1", "exclusive", "3-4", "split", "0-1", "0-1", "0", ""],
        [
            *("shop/web-1", "nginx", "worker-1", "shared", "1-3,5-7,9-11,13-15", "", "0-1", "0-1", "12.5"),
            "2020-02-03T04:05:06Z",
        ],
    ]
    table = where_table(made, "shop/web")
    assert table.splitlines()[0].split() == [
        *("POD", "CONTAINER", "NODE", "USE", "CPUS", "CORES", "NUMA", "L3", "THROTTLED", "%", "SINCE")
    ]
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["shop/web-1"]
    assert where_table(made, "shop/x") == "no container of a pod shop/x was found on 1 nodes"


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"])
def test_no_cell_is_a_formula_and_no_name_makes_a_row(name: str) -> None:
    made = report(container(name, name + '\n"x",=1', "4"))
    (row,) = rows(made)
    assert len(row) == len(COLUMNS)
    assert all(not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d")) for cell in row)
    text = "".join(csv_form(made))
    assert text.count("\n") == text.count("\r\n") == 2


@pytest.mark.parametrize("name", ["\x1b[2J", "\u202e", "</script><script>alert(1)</script>", "a\nb", "\ud800"])
def test_a_name_is_text_on_the_terminal_and_on_the_page(name: str) -> None:
    made = report(container("shop/" + name, name))
    table = where_table(made, "")
    assert len(table.splitlines()) == 2
    assert "\x1b" not in table
    assert "\u202e" not in table
    html = page(made, PARTS)
    assert "<script>alert" not in html
    data = json.loads(html.partition('id="data">')[2].partition("</script>")[0])
    assert any("places" in node for node in data["nodes"])


HOSTILE: list[dict[str, Any]] = [
    {"started": "2999-01-01T00:00:00Z"},
    {"started": "soon"},
    {"started": 5},
    {"throttled_percent": "x"},
    {"throttled_percent": -1},
    {"throttled_percent": 1e9},
    {"throttled_percent": float("nan")},
    {"exclusive": "0-99999999999"},
    {"exclusive": ["x"]},
]


@pytest.mark.parametrize("more", HOSTILE)
def test_what_cannot_be_is_left_out(more: dict[str, Any]) -> None:
    """A clock that is wrong, a share that is none, CPUs that are none."""
    (row,) = rows(report(container("a/b", "c", **{"exclusive": "", **more})))
    assert row[-2:] == ["", ""]
    assert row[0] == "a/b"

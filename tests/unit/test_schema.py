# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schemas of what is written for other programs: docs/schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

import jsonschema
import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import Cluster, impact_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.gate import with_waivers
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import (
    KIND,
    OUTCOMES,
    SCHEMA_VERSION,
    STATES,
    ReportTerms,
    assemble,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import SEVERITIES
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import (
    Problem,
    Result,
    file_name,
    write_result,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.schedule import (
    FleetToChange,
    schedule_of,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import (
    LOOKED_AT,
    OF_THE_REPORT,
    big,
    hostile,
    node,
    report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
REPORT, NODE, IMPACT, SCHEDULE = (
    json.loads((SCHEMAS / (name + "-1.json")).read_text("utf-8")) for name in ("report", "node", "impact", "schedule")
)
NODE_FILE = {
    "schema_version": "1.0",
    "kind": "kubenode.cpu_manager/node",
    "fleet": "",
    "host": "worker-3",
    "looked_at": LOOKED_AT,
    "answer": {"status": "clean"},
}
ANSWER: dict[str, Any] = {
    "status": "drift",
    "topology": parse_name("2s1n2c2t").topology().to_dict(),
    "wanted": {"cpu_manager_policy": "static"},
    "found": {"cpu_manager_policy": "none"},
    "drift": [{"subject": "cpu_manager_policy", "found": "none", "wanted": "static"}],
    "enforcement": {"version": 2, "containers": {"kept": 4, "different": 1, "skipped": 0}},
    "cpus": {"online": "0-7", "reserved": "0,4"},
    "owners": [{"use": "reserved", "owner": "", "cpus": "0,4"}],
    "elsewhere": {"name": "kubespray", "why": "x", "snippet": ""},
    "refusals": [{"text": "no"}],
}


def errors(value: Any, schema: Any) -> list[str]:
    """Return where the value is not as the schema says."""
    validator = jsonschema.Draft202012Validator(schema)
    return sorted("/".join(map(str, error.absolute_path)) for error in validator.iter_errors(value))


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each object in a value."""
    if isinstance(value, dict):
        yield place
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*place, key))


def copy_of(value: Any) -> Any:
    return json.loads(json.dumps(value))


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


ALL = {"report": REPORT, "node": NODE, "impact": IMPACT, "schedule": SCHEDULE}


@pytest.mark.parametrize("schema", ALL.values(), ids=ALL)
def test_a_schema_is_one(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("schema", ALL.values(), ids=ALL)
def test_what_has_members_is_described_and_open(schema: Any) -> None:
    for place in places(schema):
        part = at(schema, place)
        if place and place[-1] not in ("properties", "$defs") and "$ref" not in part and place[-2:-1] != ("oneOf",):
            assert part.get("description") or place[-1] in ("items", "additionalProperties", "contains"), place
        if part.get("type") == "object" and "properties" in part:
            assert part["additionalProperties"] is True, place
            assert set(part["required"]) <= set(part["properties"]), place


# --- a report -----------------------------------------------------------------------------------------


HOSTILE = hostile(keep=[*OF_THE_REPORT, "owners"])


@pytest.mark.parametrize("value", [report(), report([]), HOSTILE, big(100)], ids=["all", "none", "hostile", "big"])
def test_a_report_is_as_its_schema_says(value: Any) -> None:
    assert errors(value, REPORT) == []


def test_a_report_that_is_made_is_as_its_schema_says() -> None:
    results: list[Result | Problem] = [
        Result(
            "a", LOOKED_AT, ANSWER, {"cpu_manager_policy": "none"}, [{"check": "policy-differs", "until": "2027-01-01"}]
        ),
        Result("b", LOOKED_AT, {"failed": True, "msg": "x"}, {}, []),
        Result("c", LOOKED_AT, {"status": "no kubelet"}, {}, [], may_lack_kubelet=True),
        Problem("x.json", "is cut off", "copy it again"),
    ]
    made = assemble(results, ReportTerms("CPU drift report", 1795446245, "east", ["a", "b", "c", "d"]))
    assert errors(made, REPORT) == []
    assert {item["state"] for item in made["nodes"]} == {"drift", "failed", "no kubelet", "missing"}
    assert made["nodes"] != []


def test_more_members_may_come() -> None:
    value = report()
    for place in list(places(value)):
        part = at(value, place)
        if place[-1:] not in (("states",), ("settings",), ("checks",), ("pools",), ("containers",)):
            part["added_later"] = {"x": [1]}
    assert errors(value, REPORT) == []


def test_every_member_is_needed() -> None:
    value = report([item for item in report()["nodes"] if item["host"] in ("worker-2", "worker-5")])
    free = ("settings", "states", "pools", "containers", "elsewhere", "checks")
    for place in list(places(value)):
        for key in at(value, place):
            if not place or place[-1] not in free:
                changed = copy_of(value)
                del at(changed, place)[key]
                assert errors(changed, REPORT) != [], (*place, key)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (("schema_version",), "2.0"),
        (("schema_version",), 1.0),
        (("kind",), "kubenode.cpu_manager/node"),
        (("made",), "yesterday"),
        (("fleet",), None),
        (("summary", "outcome"), "fine"),
        (("summary", "exit_status"), 4),
        (("summary", "gone"), "4"),
        (("summary", "states"), {"fine": 1}),
        (("summary", "states"), {"clean": 0}),
        (("summary", "checks", 0, "severity"), "fatal"),
        (("summary", "nodes"), -1),
        (("groups", 0, "map", "boxes"), [{"kind": "socket"}]),
        (("groups", 0, "map", "boxes"), [{"kind": "rack", "name": "x", "members": []}]),
        (("groups", 0, "map", "offline"), ["0"]),
        (("groups", 0, "settings"), {"x": 1}),
        (("nodes", 0, "state"), "fine"),
        (("nodes", 0, "looked_at"), None),
        (("nodes", 0, "group"), "0"),
        (("nodes", 0, "answer"), []),
        (("nodes", 0, "findings", 0, "waived"), {"reason": "x"}),
        (("nodes", 0, "findings", 0, "since"), "today"),
        (("nodes", 0, "findings", 0, "found"), None),
        (("nodes", 0, "ways", 0, "kubelet"), 1),
        (("nodes", 0, "ways", 0, "odd"), ["nowhere"]),
        (("nodes", 0, "owners"), [["exclusive", "x"]]),
        (("nodes", 0, "owners"), [["mine", "x", "0"]]),
        (("nodes", 0, "pools"), {"online": None}),
        (("nodes", 0, "looks"), []),
        (("nodes", 0, "looks"), {"isolation": {"is_measured": True}}),
    ],
    ids=str,
)
def test_what_is_wrong_is_found(place: tuple[Any, ...], wrong: Any) -> None:
    value = copy_of(report([item for item in report()["nodes"] if item["host"] == "worker-2"]))
    at(value, place[:-1])[place[-1]] = wrong
    found = errors(value, REPORT)
    assert found != []
    assert all(where.startswith("/".join(map(str, place))) for where in found)


@pytest.mark.parametrize("answer", [None, {}, {"status": "clean"}])
def test_a_node_may_have_its_whole_answer(answer: Any) -> None:
    assert errors(report([node(answer=answer)]), REPORT) == []


def test_the_words_are_those_of_the_code() -> None:
    assert REPORT["properties"]["kind"]["const"] == KIND
    assert set(REPORT["$defs"]["state"]["enum"]) == set(STATES)
    assert REPORT["$defs"]["severity"]["enum"] == list(SEVERITIES)
    summary = REPORT["properties"]["summary"]["properties"]
    assert summary["outcome"]["enum"] == list(OUTCOMES)
    assert summary["exit_status"]["enum"] == list(OUTCOMES.values())
    assert SCHEMA_VERSION.startswith("1.")


# --- a node's result ----------------------------------------------------------------------------------


def test_a_result_that_is_written_is_as_its_schema_says(tmp_path: Path) -> None:
    write_result(str(tmp_path), Result("a", LOOKED_AT, ANSWER, {"x": "y"}, [], fleet="east"))
    written = json.loads((tmp_path / "nodes" / file_name("a")).read_text("utf-8"))
    assert errors(written, NODE) == []


def test_a_result_file() -> None:
    assert errors(NODE_FILE, NODE) == []
    assert errors({**NODE_FILE, "added_later": 1}, NODE) == []
    for name in NODE_FILE:
        assert errors({key: value for key, value in NODE_FILE.items() if key != name}, NODE) == [""]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("schema_version", "2.0"),
        ("kind", "kubenode.cpu_manager/report"),
        ("fleet", None),
        ("host", 1),
        ("looked_at", ""),
        ("looked_at", "2026-11-23 15:00:00"),
        ("answer", None),
        ("running", []),
        ("waivers", {}),
        ("looks", []),
    ],
)
def test_a_result_that_is_wrong(name: str, wrong: Any) -> None:
    assert errors({**NODE_FILE, name: wrong}, NODE) == [name]


# --- an impact ----------------------------------------------------------------------------------------


def test_an_impact_is_as_its_schema_says() -> None:
    plans = {"a": plan_of(), "b": plan_of({"cpu_manager_policy": "none"})}
    pods = [pod_of("odd", "a", "3"), pod_of("even", "a", "2"), pod_of("late", "b", "2"), pod_of("lost", "")]
    cluster = Cluster({name: (name, plan) for name, plan in plans.items()}, [node_of("a"), node_of("b")], pods)
    for waivers in ([], [{"workload": "Pod shop/odd", "reason": "known", "until": "2026-12-31", "cluster": ""}]):
        written = copy_of(with_waivers(impact_of([cluster]), waivers, "2026-11-27"))
        assert errors(written, IMPACT) == []
        # It has no more and no less than the schema describes.
        assert set(written) == set(IMPACT["properties"])
        for rows in ("workloads", "nodes"):
            assert set(written[rows][0]) == set(IMPACT["properties"][rows]["items"]["properties"])


# --- a schedule ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, 300])
def test_a_schedule_is_as_its_schema_says(seconds: int) -> None:
    fleet = FleetToChange({"a": ("a", "shape", True)}, [node_of("a")], [pod_of("db", "a", "2"), None], [None])
    written = copy_of(schedule_of(fleet, seconds))
    assert errors(written, SCHEDULE) == []
    assert set(written) == set(SCHEDULE["properties"])

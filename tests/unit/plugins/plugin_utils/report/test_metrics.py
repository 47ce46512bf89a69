# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Mapping

import pytest
from hypothesis import given
from prometheus_client.parser import text_string_to_metric_families

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.metrics import (
    CPUSET_DIFFERS,
    fleet_metrics,
    node_metrics,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import (
    HOSTILE,
    LOOKED_AT,
    MADE,
    STATES,
    finding,
    group,
    hostile,
    hostile_texts,
    node,
    report,
)

WAIVED = {"reason": "", "until": ""}
AT_MADE, AT_LOOKED_AT = 1795446245, 1795446000

Samples = Mapping[str, Mapping[tuple[str, ...], float]]


def parsed(text: str) -> Samples:
    """Return {name: {values of the labels: value}}; it raises for what is no exposition, or has a sample twice."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert (family.type, family.name.startswith("kubenode_cpu_")) == ("gauge", True)
        assert family.documentation
        assert family.name not in found
        for sample in family.samples:
            assert sample.timestamp is None
            key = tuple(sample.labels.values())
            assert key not in found.setdefault(sample.name, {})
            found[sample.name][key] = sample.value
    return found


def of_fleet(*nodes: Any, **parts: Any) -> Samples:
    return parsed(fleet_metrics(report(nodes, **parts)))


def of_node(**parts: Any) -> Samples:
    return parsed(node_metrics(node(**parts), MADE))


# --- a fleet ------------------------------------------------------------------------------------------


def test_the_figures_of_a_fleet() -> None:
    assert parsed(fleet_metrics(report(fleet="east"))) == {
        "kubenode_cpu_nodes": {
            ("east", state): {"drift": 4, "clean": 2}.get(state, 1)
            for state in STATES
        },
        "kubenode_cpu_drift": {
            ("east", "checkpoint-refused", "danger"): 1,
            ("east", "own-check", "danger"): 1,
            # The node whose result is too old has it, too.
            ("east", "policy-differs", "warning"): 4,
            ("east", "cpuset-differs", "warning"): 3,
            ("east", "change-refused", "warning"): 1,
            ("east", "field-differs", "warning"): 0,
            ("east", "reservation-splits-cores", "note"): 4,
        },
        "kubenode_cpu_findings_waived": {
            ("east", check): 4 if check == "field-differs" else 0
            for check in (
                "checkpoint-refused", "own-check", "policy-differs", "cpuset-differs", "change-refused",
                "field-differs", "reservation-splits-cores",
            )
        },
        "kubenode_cpu_mispinned_containers": {("east",): 3},
        # Of three nodes six each.
        "kubenode_cpu_mispinned_cpus": {("east",): 18},
        "kubenode_cpu_pool_cpus": {("east", "exclusive"): 6, ("east", "shared"): 132, ("east", "reserved"): 6},
        "kubenode_cpu_stranded_cpus": {("east",): 6},
        # Four of thirteen.
        "kubenode_cpu_nodes_as_wanted_percent": {("east",): 18},
        "kubenode_cpu_report_grade": {("east", grade): int(grade == "F") for grade in "ABCDF"},
        "kubenode_cpu_owner_nodes": {("east", "kubeadm"): 8},
        "kubenode_cpu_report_exit_status": {("east",): 3},
        "kubenode_cpu_report_problems": {("east",): 1},
        "kubenode_cpu_report_outcome": {
            ("east", "clean"): 0,
            ("east", "unknown"): 0,
            ("east", "drift"): 0,
            ("east", "danger"): 1,
        },
        "kubenode_cpu_report_timestamp_seconds": {("east",): AT_MADE},
        "kubenode_cpu_oldest_look_timestamp_seconds": {("east",): AT_LOOKED_AT},
    }  # fmt: skip


def test_a_node_with_several_findings_of_a_check_counts_once() -> None:
    found = of_fleet(node(findings=[finding(), finding(subject="x"), finding(subject="y", waived=WAIVED)]))
    assert found["kubenode_cpu_drift"] == {("default", "policy-differs", "warning"): 1}
    assert found["kubenode_cpu_findings_waived"] == {("default", "policy-differs"): 1}


def test_a_state_without_nodes_is_zero() -> None:
    assert of_fleet()["kubenode_cpu_nodes"] == {("default", state): 0 for state in STATES}
    assert "kubenode_cpu_oldest_look_timestamp_seconds" not in of_fleet()


def test_the_oldest_look() -> None:
    nodes = [node("a"), node("b", looked_at="2026-11-22T00:00:00Z"), node("c", looked_at=""), node("d", looked_at="x")]
    name = "kubenode_cpu_oldest_look_timestamp_seconds"
    assert of_fleet(*nodes)[name] == {("default",): 1795305600}
    # When somebody tried in vain says nothing of how old the figures are.
    unread = [node(state, state, looked_at="2026-11-01T00:00:00Z") for state in ("failed", "unreachable")]
    assert of_fleet(*nodes, *unread)[name] == {("default",): 1795305600}
    assert name not in of_fleet(*unread)


@pytest.mark.parametrize(
    ("good", "bad", "percent", "grade"), [(40, 0, 100, "A"), (39, 1, 97, "B"), (16, 4, 80, "C"), (299, 1, 99, "B")]
)
def test_the_grade(good: int, bad: int, percent: int, grade: str) -> None:
    """Of what a manager looks at as a line; the figures of earlier reports are with Prometheus."""
    nodes = [node("a%d" % number) for number in range(good)]
    nodes += [node("b%d" % number, "drift", findings=[finding()]) for number in range(bad)]
    found = of_fleet(*nodes)
    assert found["kubenode_cpu_nodes_as_wanted_percent"] == {("default",): percent}
    assert [labels[1] for labels, value in found["kubenode_cpu_report_grade"].items() if value] == [grade]


def test_a_fleet_without_nodes_has_no_grade() -> None:
    found = of_fleet()
    assert "kubenode_cpu_nodes_as_wanted_percent" not in found
    assert set(found["kubenode_cpu_report_grade"].values()) == {0}


def test_since_when_a_check_is_found() -> None:
    name = "kubenode_cpu_oldest_finding_timestamp_seconds"
    days = {day: "2026-11-%02dT00:00:00Z" % day for day in (19, 20, 21, 22)}
    nodes = [
        node("a", "drift", findings=[finding(first_seen=days[22])]),
        node("b", "drift", findings=[finding(first_seen=days[21]), finding("field-differs", first_seen="yesterday")]),
        # What is accepted, and what is for information, is as old as it likes.
        node("c", findings=[finding(first_seen=days[20], waived=WAIVED)]),
        node("d", findings=[finding("reservation-splits-cores", first_seen=days[19])]),
    ]
    assert of_fleet(*nodes)[name] == {("default", "policy-differs"): 1795219200}
    # Without a baseline nobody knows.
    assert name not in of_fleet(node("a", "drift", findings=[finding()]))


def test_a_time_that_cannot_be_read_is_left_out() -> None:
    assert "kubenode_cpu_report_timestamp_seconds" not in of_fleet(made="yesterday")


def test_labels_that_are_the_same_once_shortened_are_one_sample() -> None:
    nodes = [node(findings=[finding("x" * 300 + letter, severity="note")]) for letter in "ab"]
    assert of_fleet(*nodes)["kubenode_cpu_drift"] == {("default", "x" * 200, "note"): 2}


# --- a node -------------------------------------------------------------------------------------------


def test_the_figures_of_a_node() -> None:
    drift = report()["nodes"][5]
    text = node_metrics(drift, MADE)
    assert parsed(text) == {
        "kubenode_cpu_drift": {("cpuset-differs", "warning"): 1, ("policy-differs", "warning"): 1},
        "kubenode_cpu_mispinned_containers": {(): 1},
        "kubenode_cpu_mispinned_cpus": {(): 6},
        "kubenode_cpu_pool_cpus": {("exclusive",): 2, ("shared",): 44, ("reserved",): 2},
        "kubenode_cpu_stranded_cpus": {(): 2},
        "kubenode_cpu_look_success": {(): 1},
        "kubenode_cpu_look_timestamp_seconds": {(): AT_LOOKED_AT},
        "kubenode_cpu_owner_info": {("kubespray",): 1},
    }
    # Neither its name nor those of pods.
    assert drift["host"] not in text
    assert "shop" not in text


@pytest.mark.parametrize(
    ("found", "wanted", "count"),
    [
        ("0-3", "4-5", 6),
        ("0-3 (cpuset.cpus: 0-7)", "0-3", 0),
        ("0-3", "0-1", 2),
        ("0", "0-1", 1),
        ("", "0-1", 2),
        ("0-99999999", "0-1", 0),
        ("x", "0-1", 0),
        ("0-3", "0:", 0),
    ],
)
def test_mispinned_cpus(found: str, wanted: str, count: int) -> None:
    container = finding(CPUSET_DIFFERS, found=found, wanted=wanted)
    assert of_node(findings=[container])["kubenode_cpu_mispinned_cpus"] == {(): count}
    twice = [container, container, {**container, "waived": WAIVED, "found": "50-60"}]
    assert of_node(findings=twice)["kubenode_cpu_mispinned_cpus"] == {(): count}


@pytest.mark.parametrize(
    ("stranded", "count"), [("4-5,7", 3), ("", 0), ("x", 0), ("0-99999999", 0), ("0:", 0), ("9" * 9999, 0)]
)
def test_stranded_cpus(stranded: str, count: int) -> None:
    pools = {"exclusive": "1", "shared": "2-7", "reserved": "0", "stranded": stranded}
    assert of_node(pools=pools)["kubenode_cpu_stranded_cpus"] == {(): count}
    assert of_fleet(node("a", pools=pools), node("b", pools=pools))["kubenode_cpu_stranded_cpus"] == {
        ("default",): 2 * count
    }


def test_a_host_without_a_kubelet_has_no_pools() -> None:
    figures = of_node(state="no kubelet", pools={"shared": "0-7", "reserved": ""})
    assert set(figures["kubenode_cpu_pool_cpus"].values()) == {0}


def test_a_result_of_an_earlier_version_has_no_stranded_cpus() -> None:
    assert of_node(pools={"shared": "0-7"})["kubenode_cpu_stranded_cpus"] == {(): 0}


def test_the_check_of_containers_is_there() -> None:
    assert CHECKS[CPUSET_DIFFERS].subjects == ("container ",)


@pytest.mark.parametrize(
    ("text", "count"), [("12", 12), ("0", 0), ("", 0), ("-1", 0), ("1e9", 0), ("9" * 30, 0), ("\uff11", 0)]
)
def test_mispinned_containers(text: str, count: int) -> None:
    assert of_node(containers={"different": text})["kubenode_cpu_mispinned_containers"] == {(): count}


def test_when_the_node_was_looked_at() -> None:
    name = "kubenode_cpu_look_timestamp_seconds"
    assert of_node()[name] == {(): AT_LOOKED_AT}
    assert of_node(looked_at="")[name] == {(): AT_MADE}
    assert of_node(state="stale", looked_at=LOOKED_AT)[name] == {(): AT_LOOKED_AT}


@pytest.mark.parametrize("state", STATES)
def test_whether_the_node_was_read(state: str) -> None:
    figures = of_node(state=state)
    was_read = state not in ("failed", "unreachable", "missing")
    assert figures["kubenode_cpu_look_success"] == {(): int(was_read)}
    assert ("kubenode_cpu_look_timestamp_seconds" in figures) is was_read
    if not was_read:
        assert set(figures) == {"kubenode_cpu_look_success"}


@pytest.mark.parametrize(
    ("parts", "owner"),
    [
        ({"answer": {"kubelet": {"distribution": "k3s"}}, "elsewhere": {"name": "kubespray"}}, "k3s"),
        ({"answer": {"kubelet": {"distribution": ["x"]}}}, "[x]"),
        ({"answer": {"kubelet": "x"}, "elsewhere": {"name": "rke2"}}, "rke2"),
        ({"answer": None, "elsewhere": {"name": "rke2"}}, "rke2"),
        ({}, None),
    ],
)
def test_owner(parts: dict[str, Any], owner: str | None) -> None:
    assert of_node(**parts).get("kubenode_cpu_owner_info") == (None if owner is None else {(owner,): 1})


def test_owners_of_a_fleet() -> None:
    nodes = [
        node("a", group=1, elsewhere={"name": "kubespray"}),
        node("b", group=2, elsewhere={"name": "kubespray"}),
        node("c", group=2),
        node("d", "missing"),
    ]
    groups = [group(id=1, distribution="k3s"), group(id=2, distribution="")]
    owners = {("default", "k3s"): 1, ("default", "kubespray"): 1}
    assert of_fleet(*nodes, groups=groups)["kubenode_cpu_owner_nodes"] == owners


def test_a_fleet_and_a_node_of_one_machine_have_no_sample_in_common() -> None:
    """node_exporter puts all files together, with one text of help for each name."""
    both = fleet_metrics(report(fleet="")), node_metrics(report()["nodes"][5], MADE)
    samples = [set(text.splitlines()) for text in both]
    shared = samples[0] & samples[1]
    assert {line.split()[2] for line in shared} == {
        "kubenode_cpu_drift",
        "kubenode_cpu_mispinned_containers",
        "kubenode_cpu_mispinned_cpus",
        "kubenode_cpu_pool_cpus",
        "kubenode_cpu_stranded_cpus",
    }
    assert all(line.startswith("# ") for line in shared)
    keys = [{line.rpartition(" ")[0] for line in text if not line.startswith("#")} for text in samples]
    assert keys[0] & keys[1] == set()


# --- hostile ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
def test_a_label_is_the_text(text: str) -> None:
    (found,) = of_node(elsewhere={"name": text})["kubenode_cpu_owner_info"]
    if text.isascii() and text.isprintable():
        assert found == (" ".join(text.split())[:200],)


@given(hostile_texts)
def test_any_text_gives_the_same_figures(texts: list[str]) -> None:
    plain, found = parsed(fleet_metrics(report())), parsed(fleet_metrics(hostile(texts)))
    for name in ("kubenode_cpu_nodes", "kubenode_cpu_drift", "kubenode_cpu_findings_waived"):
        assert {key[1:]: value for key, value in found[name].items()} == {
            key[1:]: value for key, value in plain[name].items()
        }


@given(hostile_texts)
def test_any_report_has_figures(texts: list[str]) -> None:
    value = hostile(texts, keep=())
    for text in (fleet_metrics(value), *(node_metrics(item, value["made"]) for item in value["nodes"])):
        parsed(text)
        assert text.endswith("\n")

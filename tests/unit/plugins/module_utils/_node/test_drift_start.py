# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the drift report says where the node's files tell whether its kubelet would start."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    Prediction,
    Starts,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.drifted import file, state, told
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import STATIC


def predicted(wanted: Mapping[str, Any], found: Prediction, planned: Prediction) -> dict[str, Any]:
    topology = parse_name("1s4c2t").topology()
    machine = Host(kubelet_view(topology))
    return report(topology, machine, file(STATIC), state("0-7"), wanted, starts=Starts(found, planned))


GOOD = predict_values(file(STATIC).values, Host(kubelet_view(parse_name("1s4c2t").topology())))
FLAG = Finding("unknown flag: --x", "there is no such flag", "remove it", True, "--x", "failed to parse kubelet flag: ")
BAD = Prediction([FLAG])
UNKNOWN = Prediction([], [Unknown("it is written in a strange way", "config.yaml")])
PERIOD = {"cpu_manager_reconcile_period": "5s"}


def test_a_prediction_of_the_nodes_files_counts_before_one_of_the_configuration() -> None:
    refusal = "failed to parse kubelet flag: unknown flag: --x (there is no such flag)"
    for wanted, found_refusal in ((PERIOD, "--x: " + refusal), ({}, "--x: " + refusal)):
        found = predicted(wanted, BAD, BAD)
        assert found["found_refusal"] == found_refusal
        assert found["drift"][-1] == {
            "subject": "start",
            "wanted": "starts",
            "found": "refused: --x: the kubelet would not start: " + refusal,
            "source": "--x",
            "remedy": "remove it",
        }
        assert found["cpus"]["reserved"] == found["cpus"]["reserved_wanted"] == "0,4"
        assert (found["checkpoint"]["verdict"], found["notes"]) == ("not judged", [])
    cured = predicted(PERIOD, BAD, GOOD)
    assert [row["subject"] for row in cured["drift"]] == ["cpu_manager_reconcile_period"]
    assert cured["notes"] == ["as the node is, its kubelet would not start again: --x: " + refusal]
    with pytest.raises(RefusedError, match=r"^--x: the kubelet would not start: failed to parse kubelet flag: unknown"):
        predicted(PERIOD, GOOD, BAD)


def test_what_cannot_be_predicted_is_found_and_no_refusal() -> None:
    for wanted in ({}, PERIOD):
        found = predicted(wanted, UNKNOWN, UNKNOWN)
        assert found["found_refusal"] == ""
        assert found["drift"][-1]["found"] == (
            "refused: it cannot be determined with what the CPU manager would start: it is written in a strange way"
        )
        assert found["notes"] == ["whether the kubelet starts cannot be determined: it is written in a strange way"]
    # Where it is certain what the CPU manager does, all else can be compared.
    unseen = GOOD._replace(unknown=UNKNOWN.unknown)
    found = predicted({}, unseen, unseen)
    assert (found["drift"], found["found_refusal"], found["checkpoint"]["verdict"]) == ([], "", "accepted")
    assert found["notes"] == ["whether the kubelet starts cannot be determined: it is written in a strange way"]
    with pytest.raises(RefusedError, match="it cannot be determined with what the CPU manager would start"):
        predicted(PERIOD, GOOD, UNKNOWN)


def test_what_nobody_can_want_is_reported_where_it_is_found() -> None:
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-7\n"
    for wanted in ({}, PERIOD):
        found = told(wanted, text, state("0-7"))
        assert found["drift"][-1]["found"].startswith("refused: reserving all of the CPUs 0-7 leaves none")
        # The kubelet itself would take it.
        assert found["found_refusal"] == ""

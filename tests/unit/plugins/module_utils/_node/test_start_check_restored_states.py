# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node after a power cut: the checkpoints of a kubelet's other managers are damaged, and what each version says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import start_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, drift_of, node
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import STATIC

KUBELET = "/var/lib/kubelet"
ALLOCATED, ACTUATED = KUBELET + "/allocated_pods_state", KUBELET + "/actuated_pods_state"
STATUS, CLAIMS = KUBELET + "/pod_status_manager_state", KUBELET + "/dra_manager_state"
DEVICES = KUBELET + "/device-plugins/kubelet_internal_checkpoint"

# A file that was longer before: its end is still there.
TAIL = '{"data":"{\\"entries\\":{}}","checksum":1}"cpu":"100m"}}}","checksum":3071498376}'
AFTER = "invalid character '\"' after top-level value"
POWER_CUT = (ALLOCATED, ACTUATED, STATUS, CLAIMS, DEVICES)

RESOURCES = (
    "could not restore state from checkpoint: %s, please drain this node and delete pod resource information checkpoint"
    ' file "%s" before restarting Kubelet'
)
ALLOCATION = (
    "could not restore state from checkpoint: %s, please drain this node and delete pod allocation checkpoint file"
    ' "%s" before restarting Kubelet'
)
PREPARED = "GetOrCreate() on checkpoint state: failed to get checkpoint dra_manager_state: %s"
FORGOTTEN = "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date"
RESIZING, PREPARING = "InPlacePodVerticalScaling", "DynamicResourceAllocation"


def damage(root: Path, *paths: str, content: str = TAIL) -> None:
    for path in paths:
        write(root, path[1:], content)


def configured(root: Path, **gates: bool) -> None:
    lines = "".join("  %s: %s\n" % (name, str(on).lower()) for name, on in gates.items())
    write(root, CONFIG, HEADER + STATIC + ("featureGates:\n" + lines if gates else ""))


def found(root: Path, minor: int) -> dict[str, str]:
    """Return {file: what the kubelet says of it}"""
    told = start_report(node(root, minor), {})
    findings = [finding for finding in told["findings"] if finding["where"] in POWER_CUT]
    assert all(finding["cause"] and finding["remedy"] for finding in findings)
    fatal = {finding["where"] for finding in findings if finding["fatal"]}
    assert fatal == {finding["where"] for finding in findings} - {DEVICES}
    assert told["starts"] is not bool(fatal)
    return {finding["where"]: finding["text"] for finding in findings}


@pytest.mark.parametrize("minor", [33, 34, 35, 36, 37])
def test_a_kubelet_panics_on_what_pods_were_resized_to(root: Path, minor: int) -> None:
    damage(root, ALLOCATED, ACTUATED, STATUS)
    assert found(root, minor) == {path: RESOURCES % (AFTER, path) for path in (ALLOCATED, ACTUATED)}
    finding, _actuated = start_report(node(root, minor), {})["findings"]
    assert finding["context"] == "panic: "


@pytest.mark.parametrize(
    ("minor", "gates", "said"),
    [
        # Without their gates, kubelets do not read them.
        (32, {}, {}),
        (33, {RESIZING: False}, {}),
        (26, {}, {}),
        (32, {RESIZING: True}, {STATUS: ALLOCATION % (AFTER, STATUS)}),
        (27, {RESIZING: True}, {STATUS: ALLOCATION % (AFTER, STATUS)}),
        (33, {}, {path: RESOURCES % (AFTER, path) for path in (ALLOCATED, ACTUATED)}),
        (33, {RESIZING: False, PREPARING: True}, {CLAIMS: PREPARED % AFTER}),
        (31, {PREPARING: True}, {CLAIMS: PREPARED % AFTER}),
        (34, {RESIZING: False}, {CLAIMS: PREPARED % AFTER}),
        (34, {RESIZING: False, PREPARING: False}, {}),
    ],
)
def test_which_files_count_is_a_matter_of_version_and_gates(
    root: Path, minor: int, gates: dict[str, bool], said: dict[str, str]
) -> None:
    damage(root, *POWER_CUT)
    configured(root, **gates)
    assert found(root, minor) == {**said, DEVICES: FORGOTTEN}


@pytest.mark.parametrize(
    ("content", "cause"),
    [("", "unexpected end of JSON input"), ("\0" * 40, "invalid character '\\x00' looking for beginning of value")],
)
def test_a_file_of_nothing_and_one_of_zeros(root: Path, content: str, cause: str) -> None:
    damage(root, ALLOCATED, content=content)
    assert found(root, 36) == {ALLOCATED: RESOURCES % (cause, ALLOCATED)}


def test_odd_places(root: Path) -> None:
    (root / ALLOCATED[1:]).mkdir()
    (root / ACTUATED[1:]).symlink_to("nothing")
    assert found(root, 36) == {ALLOCATED: RESOURCES % ("read %s: is a directory" % ALLOCATED, ALLOCATED)}


def test_another_root_directory(root: Path) -> None:
    """The devices' file stays where it is."""
    damage(root, "/data/kubelet/allocated_pods_state", DEVICES, CLAIMS)
    write(
        root,
        "etc/systemd/system/kubelet.service",
        "[Service]\nExecStart=/usr/bin/kubelet --root-dir=/data/kubelet --config=/%s\n" % CONFIG,
    )
    told = start_report(node(root, 36), {})
    assert [finding["where"] for finding in told["findings"]] == ["/data/kubelet/allocated_pods_state", DEVICES]


def test_a_sum_that_is_not_known_is_no_guess(root: Path) -> None:
    damage(root, STATUS, content='{"allocationEntries":{"a":{}},"checksum":7}')
    configured(root, **{RESIZING: True})
    told = start_report(node(root, 31), {})
    assert told["starts"] is None
    assert told["unknown"] == [{"reason": "whether the checksum in it is right is not known here", "where": STATUS}]


def test_it_is_drift_and_keeps_a_rollout_from_beginning(root: Path) -> None:
    damage(root, ALLOCATED)
    text = RESOURCES % (AFTER, ALLOCATED)
    for wanted in ({}, {"cpu_manager_reconcile_period": "5s"}):
        told = drift_of(root, wanted)
        assert told["status"] == "drift"
        assert told["found_refusal"].startswith("%s: panic: %s (" % (ALLOCATED, text))
        assert [row["source"] for row in told["drift"] if row["subject"] == "start"] == [ALLOCATED]
        plan = rollout_report(node(root, 33), wanted, ChangeTerms())
        assert (plan["starts"], [refusal["kind"] for refusal in plan["refusals"]]) == (False, ["would_not_start"])
    # An upgrade would meet it, too, and a downgrade to what does not read it would not.
    assert start_report(node(root, 37), {})["starts"] is False
    assert start_report(node(root, 32), {})["starts"] is True

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/container_cpus.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import (
    ABSENT,
    ENDED,
    KEPT,
    SKIPPED,
    WRITE,
    Running,
    cuts,
    decide,
    widened,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

ONLINE = cpus("0-7")
STATE = State(
    cpus("0-1,6-9"),
    {"uid-a": {"app": cpus("2-3"), "gone": cpus("8-9"), "empty": CPUSet()}, "id-v1": {"?": cpus("4")}},
    {"uid-whole": cpus("5")},
)


def container(
    effective: str | None, pod_uid: str = "uid-a", name: str | None = "app", container_id: str = "id"
) -> Running:
    path = "kubepods/pod%s/%s" % (pod_uid, container_id)
    found = None if effective is None else cpus(effective)
    return Running(pod_uid, "shop/pod", name, container_id, path, path, "kubepods", found)


# --- what each container is to have -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("running", "policy", "expected"),
    [
        (container("2-3"), "static", (KEPT, "2-3", "")),
        (container("0-7"), "static", (WRITE, "2-3", "")),
        (container("2-3", name="sidecar"), "static", (WRITE, "0-1,6-7", "CPUs 8-9 are not online")),  # the shared pool
        (container("0-1,6-7", "uid-b"), "static", (KEPT, "0-1,6-7", "CPUs 8-9 are not online")),
        (container("0-7", "uid-b", None), "static", (WRITE, "0-1,6-7", "CPUs 8-9 are not online")),  # whoever it is
        (container("0-7", "uid-v1", None, "id-v1"), "static", (WRITE, "4", "")),  # format 1
        (container("0-7"), "none", (SKIPPED, "", "the policy is none")),
        (container("0-7"), None, (SKIPPED, "", "the policy is None")),
        (container("0-7", name=None), "static", (SKIPPED, "", "its name is not known")),
        (container("0-7", "uid-whole"), "static", (SKIPPED, "", "its pod has CPUs as a whole")),
        (container("0-7", name="empty"), "static", (SKIPPED, "", "its wanted set is empty")),
        (container("0-7", name="gone"), "static", (SKIPPED, "", "none of its CPUs 8-9 is online")),
        (container(None), "static", (SKIPPED, "2-3", ENDED)),
    ],
)
def test_decide(running: Running, policy: str | None, expected: tuple[str, str, str]) -> None:
    row = decide([running], policy, STATE, ONLINE)[0]
    result, wanted, why = expected
    assert (row.result, str(row.wanted)) == (result, wanted)
    assert row.why.startswith(why)
    assert bool(row.why) == bool(why)


def test_what_nobody_names_is_no_container() -> None:
    sandbox = container("0-7", "uid-b", None)
    row = decide([sandbox], "static", STATE, ONLINE, all_named=True)[0]
    assert row.result == SKIPPED
    assert "neither the runtime nor a log names it" in row.why
    assert decide([container("0-7")], "static", STATE, ONLINE, all_named=True)[0].result == WRITE


def test_a_row_is_plain_data() -> None:
    rows = decide([container("0-7"), container("2-3"), container(None)], "static", STATE, ONLINE, absent=ABSENT)
    told = [row.to_dict() for row in rows]
    assert told[0] == {
        "pod_uid": "uid-a",
        "pod": "shop/pod",
        "container": "app",
        "id": "id",
        "cgroup": "kubepods/poduid-a/id",
        "wanted": "2-3",
        "effective": "0-7",
        "result": WRITE,
        "why": "",
    }
    assert (told[1]["effective"], told[2]["effective"], told[2]["why"]) == ("2-3", "", ABSENT)


# --- what is above them -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "held", "effective", "wanted", "expected"),
    [
        (1, "0-3", "0-3", "2-3", None),
        (1, "0-1", "0-1", "1-2", "0-2"),
        (1, "", "", "1", "1"),
        (2, "", "0-7", "1", None),  # an empty set cuts nothing
        (2, "", "0-3", "5", None),  # what is above it does
        (2, "0-1", "0-1", "1-2", "0-2"),
        (2, "0-1,9", "0-1", "1-2", "0-2,9"),  # offline, and remembered
        (2, "6", "0-3", "1", "0-3,6"),  # nothing of its own is effective, so all of its parent's comes through
    ],
)
def test_widened(version: int, held: str, effective: str, wanted: str, expected: str | None) -> None:
    wider = widened(version, cpus(held), cpus(effective), cpus(wanted))
    assert (None if wider is None else str(wider)) == expected
    if wider is not None:
        assert not cuts(version, wider, cpus(wanted))

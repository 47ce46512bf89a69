# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole fleet is planned before the first node is touched: one that refuses stops all, with a check as without."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run

from .bad_days import ABSENT_CPUS, BEFORE, CHANGING, DRAINING, HEALTHY, NO_YAML, STOPPING, BadNode, Day, add_days
from .fleet import JOURNAL, LAST, ROLLOUT, Fleet
from .kubelet_node import CHECKPOINT, CONFIG
from .pods import Pods
from .rollouts import REPAIR, ROLLBACK, names_of

PERIOD = {"kubelet_cpu_manager_reconcile_period": "2s"}


def run_with(fleet: Fleet, special: dict[str, Any], playbook: str, *arguments: str) -> Run:
    """Run a playbook on all nodes, of which the second has variables of its own."""
    hosts = {name: fleet.variables(name, **PERIOD) for name in fleet.nodes}
    hosts[sorted(hosts)[1]].update(special)
    return fleet.run_on(hosts, playbook, *arguments)


def spoil_last(bad_node: BadNode) -> None:
    """Have no YAML in what a rollback would put back."""
    last = json.loads(bad_node.node.read(LAST) or b"")
    last["files"][CONFIG]["content"] = "Ogo="
    bad_node.node.write(LAST, json.dumps(last))


@pytest.mark.parametrize(
    ("playbook", "day", "special", "said"),
    [
        (ROLLOUT, Day(HEALTHY), {"kubelet_reserved_system_cpus": "0,99"}, "0,99"),
        (ROLLOUT, Day(HEALTHY), {"kubelet_cpu_manager_policy": "none"}, "kubelet_discard_assignments"),
        (ROLLOUT, Day(NO_YAML), {}, "rollback"),
        (REPAIR, Day(NO_YAML), {}, "rollback"),
        (REPAIR, Day(ABSENT_CPUS, DRAINING), {}, "rollback"),
    ],
    ids=["absent CPUs", "pods would lose CPUs", "unreadable", "repair of unreadable", "repair of absent CPUs"],
)
def test_a_node_that_refuses_stops_all(
    alone: Fleet, playbook: str, day: Day, special: dict[str, Any], said: str
) -> None:
    # One would be changed, one refuses, and one is to be taken back.
    nodes = add_days(alone, [Day(HEALTHY), day, Day(HEALTHY, CHANGING, runs=False)])
    found = {name: (node.state(), node.node.log()) for name, node in nodes.items()}
    for check in (["--check"], []):
        run = run_with(alone, special, playbook, *check)
        assert run.status != 0
        refusing = sorted(nodes)[1]
        message = run.last(refusing)["msg"]
        assert run.last(refusing)["outcome"] == "failed"
        assert said in message, message
        # It is in the plan, too, which all see.
        assert re.search("%s:\n(.*\n)*.*cannot be (changed|planned):" % refusing, run.output), run.output
        assert {name: (node.state(), node.node.log()) for name, node in nodes.items()} == found, run.account()


@pytest.mark.parametrize(
    ("playbook", "day"),
    [(ROLLOUT, Day(HEALTHY)), (ROLLBACK, Day(NO_YAML)), (REPAIR, Day(HEALTHY, STOPPING))],
    ids=["rollout", "rollback", "repair"],
)
def test_a_node_that_cannot_be_written_stops_all(alone: Fleet, playbook: str, day: Day) -> None:
    nodes = add_days(alone, [Day(HEALTHY), day, Day(HEALTHY, CHANGING, runs=False)])
    found = {name: (node.state(), node.node.log()) for name, node in nodes.items()}
    refusing = sorted(nodes)[1]
    alone.around = read_only("%s/var/lib" % nodes[refusing].node.root)
    for check in (["--check"], []):
        run = run_with(alone, {}, playbook, *check)
        assert run.status != 0
        message = run.last(refusing)["msg"]
        assert "Read-only file system" in message, message
        assert {name: (node.state(), node.node.log()) for name, node in nodes.items()} == found, run.account()


def read_only(directory: str) -> tuple[str, ...]:
    """Return what to put before a command that is not to write there."""
    mounts = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    return ("unshare", "--mount", "sh", "-ec", mounts, "sh", directory)


def test_a_rollback_that_one_node_refuses_stops_all(alone: Fleet) -> None:
    """What it would put back is no configuration; or takes the CPUs of a pod. Both are told at once."""
    nodes = add_days(alone, [Day(HEALTHY), Day(HEALTHY), Day(HEALTHY)])
    willing, unreadable, pinned = list(nodes.values())
    spoil_last(unreadable)
    pinned.before = pinned.before.replace(b"cpuManagerPolicy: static", b"cpuManagerPolicy: none")
    pinned.save_last()
    found = {name: (node.state(), node.node.log()) for name, node in nodes.items()}
    for check in (["--check"], []):
        run = run_with(alone, {}, ROLLBACK, *check)
        assert run.status != 0
        assert "cannot be read either" in run.last(unreadable.node.name)["msg"]
        assert "kubelet_discard_assignments" in run.last(pinned.node.name)["msg"]
        assert {name: (each.state(), each.node.log()) for name, each in nodes.items()} == found, run.account()
    # Without them, it is done.
    assert alone.run(ROLLBACK, "--limit", willing.node.name).status == 0
    assert willing.is_well(BEFORE), willing.account()


def test_a_rollback_of_a_mere_period_drains_nobody(fleet: Fleet, pods: Pods) -> None:
    node = fleet.add("worker")
    pods.deploy("Deployment", "web", replicas=1)
    assert fleet.run(ROLLOUT, kubelet_cpu_manager_policy="none", **PERIOD).status == 0
    before = pods.on("worker")
    run = fleet.run(ROLLBACK)
    assert run.status == 0, run.account()
    (saved,) = [result for result in run.results["worker"] if "restored" in result]
    assert (saved["changed"], saved["restored"]) == (True, [CONFIG]), run.account()
    assert "Cordon and drain the node" not in names_of(run, "worker")
    assert (pods.on("worker"), node.configuration()["cpuManagerReconcilePeriod"]) == (before, "500ms")
    # That of a policy does.
    assert fleet.run(ROLLOUT).status == 0
    run = fleet.run(ROLLBACK)
    assert run.status == 0, run.account()
    assert "Cordon and drain the node" in names_of(run, "worker")
    assert (fleet.policy("worker"), fleet.is_open("worker")) == ("none", True)


def test_check_mode_says_what_the_run_refuses(alone: Fleet) -> None:
    """A running kubelet that nobody stops would overwrite its checkpoint."""
    node = alone.add("worker")
    found = node.read(CONFIG), node.read(CHECKPOINT), node.log()
    for check in (["--check"], []):
        run = alone.run(ROLLOUT, *check, kubelet_manage_service=False)
        assert run.status != 0
        assert "kubelet_manage_service" in run.last("worker")["msg"]
        assert (node.read(CONFIG), node.read(CHECKPOINT), node.log()) == found


def test_check_mode_says_what_another_run_has_begun(alone: Fleet) -> None:
    """Its change would be taken back first, or it cannot be determined what it has begun."""
    nodes = add_days(alone, [Day(HEALTHY, CHANGING, runs=False)])
    first = next(iter(nodes.values()))
    found = first.state()
    run = alone.run(ROLLOUT, "--check", **PERIOD)
    assert run.status == 0, run.account()
    assert "take back a change that was interrupted" in run.output
    assert first.state() == found
    first.node.write(JOURNAL, "{}")
    found = first.state()
    for check in (["--check"], []):
        run = alone.run(ROLLOUT, *check, **PERIOD)
        assert run.status != 0
        assert "cannot be read as the journal of a change" in run.last(first.node.name)["msg"]
        assert first.state() == found


# How many lines a rollout takes for a node that changes, and for one that does not.
LINES, QUIET = 16, 5


def lines_of(run: Run, name: str) -> list[str]:
    """Return what the output says of a node, with the task that each line is of."""
    found, task = [], ""
    for line in run.output.splitlines():
        title = re.match(r"TASK \[(.+)\]", line)
        task = title.group(1) if title else task
        if re.match(r"(ok|changed|skipping|included|fatal|failed): .*\b%s\b" % name, line):
            found.append("%s: %s" % (task, line))
    # Not the task of the test itself.
    return found[1:]


def test_a_rollout_says_little(alone: Fleet, record_property: Any) -> None:
    for name in ("one", "two"):
        alone.add(name)
    for wanted in (LINES, QUIET):
        run = alone.run(ROLLOUT)
        assert run.status == 0, run.account()
        for name in alone.nodes:
            lines = lines_of(run, name)
            record_property("lines of " + name, len(lines))
            assert len(lines) <= wanted, "\n".join(lines)

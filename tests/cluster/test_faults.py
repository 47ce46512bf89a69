# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rollout that is killed, or has no room on the disk: what it leaves is whole, and the next run finishes."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    STOPPING,
    RolloutJournal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.tests.faults import mounts
from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child
from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook, play
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import SERVICE_MANAGER

from .bad_days import CONTAINER, HEALTHY, NEXT, STATIC_PODS, Day, add_days
from .fleet import JOURNAL, ROLLOUT, Fleet
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode, wait_until
from .pods import Pods
from .rollouts import STOP, names_of, wait_until_a_run

# --- a run that is killed ---------------------------------------------------------------------------------


def kill_at(fleet: Fleet, step: str, name: str, **variables: Any) -> bool:
    """Run the role on a node, and kill all of it when a task begins; whether there was such a task."""
    directory = fleet.directory / "killed"
    hosts = {name: fleet.variables(name, **variables)}
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    environment = {"KILL_AT": step, "ANSIBLE_CALLBACKS_ENABLED": "record,kill_at"}
    run = ansible_playbook(directory, plays, hosts, prefix=fleet.prefix(), environment=environment)
    return run.status == -signal.SIGKILL


STEPS = (
    STOP,
    "Write the kubelet's configuration",
    "Reset or repair the checkpoint if the kubelet would refuse it",
    "Start the kubelet",
    "End the change",
    "Write down that the change is done",
)


def is_whole(node: KubeletNode, old: bytes | None) -> bool:
    """Whether the configuration is the old one or the new one."""
    new = (old or b"").replace(b"cpuManagerPolicy: none", b"cpuManagerPolicy: static")
    return node.read(CONFIG) in (old, new)


def test_a_run_that_is_killed_at_any_task(alone: Fleet, count: Count) -> None:
    """Afterwards the configuration is the old or the new one, whole, and the next run finishes."""
    for number, step in enumerate(STEPS):
        node = alone.add("worker-%d" % number)
        old = node.read(CONFIG)
        assert kill_at(alone, step, node.name), step
        assert is_whole(node, old)
        count("kills", 1)
    run = alone.run(ROLLOUT, "-e", "cpu_manager_serial=100%")
    assert run.status == 0, run.account()
    for name, node in alone.nodes.items():
        assert (alone.policy(name), node.read(JOURNAL)) == ("static", None)
        assert any("[cpumanager] starting with static policy" in line for line in node.log())


@pytest.mark.parametrize("step", ["Cordon and drain the node", "Wait until the node is ready"])
def test_a_run_that_is_killed_while_the_node_is_drained(fleet: Fleet, step: str, count: Count) -> None:
    node = fleet.add("worker")
    assert kill_at(fleet, step, "worker")
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.account()
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    count("kills", 1)


def test_a_run_that_is_killed_where_pinned_pods_stay(fleet: Fleet, pods: Pods, count: Count) -> None:
    """That of a DaemonSet has exclusive CPUs as soon as the kubelet has started anew."""
    node = fleet.add("worker")
    pods.deploy("DaemonSet", "agent", cpu="1")
    assert kill_at(fleet, "Wait until the node is ready", "worker")
    wait_until(lambda: len(node.entries()) == 1)
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.account()
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    assert [list(containers) for containers in node.entries().values()] == [["agent"]]
    count("kills", 1)


def test_containers_that_came_after_a_run_was_killed(alone: Fleet, count: Count) -> None:
    """They keep their CPUs when the change is taken back, also where the saved checkpoint would give them others."""
    (bad_node,) = list(add_days(alone, [Day(HEALTHY)]).values())
    node, period = bad_node.node, {"kubelet_cpu_manager_reconcile_period": NEXT}
    first = node.root / STATIC_PODS[1:] / (CONTAINER + ".yaml")
    manifest = yaml.safe_load(first.read_text(encoding="utf-8"))
    assert kill_at(alone, "Write down that the change is done", node.name, **period)
    # One more comes, and the one that was there goes.
    manifest["metadata"]["name"] = manifest["spec"]["containers"][0]["name"] = "late"
    node.write(STATIC_PODS + "/late.yaml", yaml.safe_dump(manifest))
    node.restart()
    wait_until(lambda: len(node.entries()) == 2, lambda: "\n".join(node.log()))
    first.unlink()
    node.restart()
    wait_until(lambda: len(node.entries()) == 1, lambda: "\n".join(node.log()))
    came = node.entries()
    assert [list(containers.items()) for containers in came.values()] == [[("late", "2,6")]]
    run = alone.run(ROLLOUT, **period)
    assert run.status == 0, run.account()
    assert "Take the change over" in names_of(run, node.name)
    assert (node.entries(), bad_node.period(), node.read(JOURNAL)) == (came, NEXT, None)
    count("kills", 1)


def test_a_recovered_node_runs_where_another_one_fails(alone: Fleet) -> None:
    """The run ends between the recovery of a node and its restart with the new settings."""
    for name in ("a", "b"):
        alone.add(name)
        assert kill_at(alone, "Write the kubelet's configuration", name)
    is_lost = "kubelet_obstacle is defined and inventory_hostname == 'b'"
    lost = "{{ '/proc/none' if %s else '/tmp' }}" % is_lost
    run = alone.run(ROLLOUT, "-e", "cpu_manager_serial=100%", ansible_remote_tmp=lost)
    assert run.status != 0
    assert run.last("b")["outcome"] == "unreachable"
    for node in alone.nodes.values():
        assert (node.is_active(), node.read(JOURNAL)) == (True, None), run.account()


# --- two runs at one node ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        "Cordon and drain the node",
        STOP,
        "Write the kubelet's configuration",
        "Wait until the node is ready",
    ],
)
def test_a_run_that_another_one_overtakes(fleet: Fleet, step: str) -> None:
    """A run that slept while another one changed the node touches nothing of what that did."""
    node = fleet.add("worker")
    held = fleet.directory / "held"
    with ThreadPoolExecutor() as pool:
        first = pool.submit(begin, fleet, step, held)
        try:
            wait_until_a_run(first, held.exists)
            second = fleet.run(ROLLOUT)
            after, words = node.read(CONFIG), node.log()
        finally:
            held.unlink(missing_ok=True)
        run = first.result()
    assert second.status == 0, second.account()
    assert run.status != 0
    message = run.last("worker")["msg"]
    assert "another run has ended the change" in message
    assert message.endswith("; nothing more was done here")
    assert (node.read(CONFIG), node.is_active()) == (after, True)
    assert node.log() == words
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)


def test_an_operator_who_finishes_an_interrupted_change(alone: Fleet) -> None:
    """The restart that was planned is not needed any more, and the change is closed all the same."""
    node = alone.add("worker")
    # As a run leaves it that is killed between the two halves of its first step.
    write_journal(Tree(str(node.root)), RolloutJournal(STOPPING, {}, {}, "2026-01-01T00:00:00.000000"))
    node.stop()
    held = alone.directory / "held"
    with ThreadPoolExecutor() as pool:
        run = pool.submit(begin, alone, "Take the change over", held)
        try:
            wait_until_a_run(run, held.exists)
            assert node.read(JOURNAL)
            node.stop()
            settings = b"cpuManagerPolicy: static\ncpuManagerReconcilePeriod: 1s"
            text = (node.read(CONFIG) or b"").replace(b"cpuManagerPolicy: none", settings)
            node.write(CONFIG, text.replace(b"cpuManagerReconcilePeriod: 500ms\n", b"").decode())
            (node.root / CHECKPOINT.lstrip("/")).unlink()
            node.start()
            node.wait_for(STARTED)
        finally:
            held.unlink(missing_ok=True)
    assert run.result().status == 0, run.result().account()
    assert STOP not in [result["task"].rpartition(" : ")[2] for result in run.result().results["worker"]]
    assert (alone.policy("worker"), node.read(JOURNAL), node.is_active()) == ("static", None, True)


def begin(fleet: Fleet, step: str, held: Path) -> Run:
    """Run the role on all nodes, with a period of its own; at a task it waits as long as there is the file."""
    period = {"kubelet_cpu_manager_reconcile_period": "1s"}
    hosts = {name: fleet.variables(name, **period) for name in fleet.nodes}
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    environment = {"HOLD_AT": step, "HOLD": str(held), "ANSIBLE_CALLBACKS_ENABLED": "record,hold_at"}
    return ansible_playbook(fleet.directory / "first", plays, hosts, prefix=fleet.prefix(), environment=environment)


# --- a disk that is full -----------------------------------------------------------------------------------

KUBELET_ROOT, JOURNALS = "/var/lib/kubelet", "/var/lib/kubenode-cpu-manager"
PAGES, FILES = 32, 32


def fill(disk: Path, pages: int) -> None:
    """Leave room for so many pages."""
    space = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes((space.f_bfree - pages) * space.f_bsize))


def roll_out_on_full_disk(directory: Path, disk: str, pages: int) -> tuple[bool, list[bool], int, str]:
    """Whether the role failed, what holds afterwards, and the status and the policy of a run with room again."""
    signal.alarm(240)
    mounts.own_namespace()
    fleet = Fleet(directory)
    place = directory / "worker/node" / disk[1:]
    place.mkdir(parents=True)
    mounts.mount_disk(str(place), PAGES, FILES)
    try:
        node = fleet.add("worker")
        old = node.read(CONFIG)
        fill(place, pages)
        run = fleet.run(ROLLOUT)
        holds = [is_whole(node, old)]
        (place / "filler").unlink()
        again = fleet.run(ROLLOUT)
        holds += [node.read(JOURNAL) is None, node.is_active(), STARTED in node.log()]
        return run.status != 0, holds, again.status, fleet.policy("worker")
    finally:
        fleet.stop()


@pytest.mark.parametrize(("disk", "pages"), [(JOURNALS, 0), (KUBELET_ROOT, 0), (KUBELET_ROOT, 1)])
def test_a_full_disk(tmp_path: Path, private_services: None, disk: str, pages: int, count: Count) -> None:
    if mounts.why_not():
        pytest.skip(mounts.why_not())
    failed, holds, status, policy = Child(partial(roll_out_on_full_disk, tmp_path, disk, pages)).answer()
    assert (failed, all(holds), status, policy) == (True, True, 0, "static"), holds
    count("full disks", 1)

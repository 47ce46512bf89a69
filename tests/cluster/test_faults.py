# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rollout that is killed, or has no room on the disk: what it leaves is whole, and the next run finishes."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.change_service import PROGRESS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    STOPPING,
    RolloutJournal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.tests.faults import mounts
from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child
from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook, play
from ansible_collections.kubenode.cpu_manager.tests.playbooks.drift_report import checks_of
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import SERVICE_MANAGER
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL, how_many

from .bad_days import CONTAINER, HEALTHY, NEXT, STATIC_PODS, Day, add_days
from .control_plane import ControlPlane
from .fleet import JOURNAL, ROLLOUT, Fleet
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode, wait_until
from .pods import Pods
from .rollouts import CHANGE, STOP, names_of, wait_until_a_run

# --- a run that is killed ---------------------------------------------------------------------------------


def kill_at(fleet: Fleet, step: str, name: str, **variables: Any) -> bool:
    """Run the role on a node, and kill all of it when a task begins; whether there was such a task."""
    directory = fleet.directory / "killed"
    hosts = {name: fleet.variables(name, **variables)}
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    environment = {"KILL_AT": step, "ANSIBLE_CALLBACKS_ENABLED": "record,kill_at"}
    run = ansible_playbook(directory, plays, hosts, prefix=fleet.prefix(), environment=environment)
    return run.status == -signal.SIGKILL


def is_whole(node: KubeletNode, old: bytes | None) -> bool:
    """Return whether the configuration is the old one or the new one."""
    new = (old or b"").replace(b"cpuManagerPolicy: none", b"cpuManagerPolicy: static")
    return node.read(CONFIG) in (old, new)


def test_a_run_that_is_killed_before_the_change(alone: Fleet, count: Count) -> None:
    node = alone.add("worker")
    old = node.read(CONFIG)
    assert kill_at(alone, CHANGE, node.name)
    assert (node.read(CONFIG), node.read(JOURNAL), node.is_active()) == (old, None, True)
    run = alone.run(ROLLOUT)
    assert run.status == 0, run.account()
    assert (alone.policy(node.name), node.read(JOURNAL)) == ("static", None)
    count("kills", 1)


# --- a change that goes on, or back, whatever is killed -----------------------------------------------------

# The controller and all that it started; the process that carries the change out; who watches over that; all three.
CONTROLLER, EXECUTOR, SUPERVISOR, EVERYTHING = "controller", "executor", "supervisor", "everything"


def processes(text: str) -> list[int]:
    """Return the processes whose command line has this text."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


def parents() -> dict[int, int]:
    """Return {process: its parent}"""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found[int(place.name)] = int((place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return found


def below(top: list[int]) -> set[int]:
    """Return these processes, and all that they started."""
    every = parents()
    found = set(top)
    while True:
        more = {pid for pid, parent in every.items() if parent in found} - found
        if not more:
            return found
        found |= more


def of_change(node: KubeletNode) -> tuple[list[int], list[int]]:
    """Return the processes that watch over the change of a node, and those that carry it out."""
    both = [pid for pid in processes("\0%s\0supervised" % node.root) if b"change_service" in cmdline(pid)]
    every = parents()
    return [pid for pid in both if every.get(pid) not in both], [pid for pid in both if every.get(pid) in both]


def cmdline(pid: int) -> bytes:
    with suppress(OSError):
        return Path("/proc/%d/cmdline" % pid).read_bytes()
    return b""


def kill(fleet: Fleet, node: KubeletNode, whom: str) -> None:
    """Kill the processes of a run, or some of them."""
    supervisors, executors = of_change(node)
    of_run = below(processes(str(fleet.directory / "first"))) - {*supervisors, *executors, os.getpid()}
    chosen = {CONTROLLER: of_run, EXECUTOR: set(executors), SUPERVISOR: set(supervisors)}
    everything = [*of_run, *supervisors, *executors]
    for pid in everything if whom == EVERYTHING else chosen[whom]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_in_change(fleet: Fleet, node: KubeletNode, whom: str, moment: float | None, **variables: Any) -> Run:
    """Run the role, and kill some of its processes so many seconds after the change has begun; the run.

    moment: None where the kubelet has started and is looked at.
    """
    progress = node.root / PROGRESS[1:]
    hosts = {node.name: fleet.variables(node.name, **variables)}
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    with ThreadPoolExecutor() as pool:
        run = pool.submit(ansible_playbook, fleet.directory / "first", plays, hosts, prefix=fleet.prefix())
        wait_until_a_run(run, lambda: bool(of_change(node)[1]))
        if moment is None:
            wait_until_a_run(run, lambda: progress.exists() and b"Start the kubelet" in progress.read_bytes())
            wait_until(node.is_active)
        else:
            time.sleep(moment)
        kill(fleet, node, whom)
        return run.result()


def is_settled(node: KubeletNode) -> bool:
    return not any(of_change(node)) and node.read(JOURNAL) is None and node.is_active()


SEED, MOMENTS = how_many("SEED", 57, 57), how_many("MOMENTS", 9, 201)
# Seconds: as long as a change of these nodes takes.
LONGEST = 3.0


def test_a_change_ends_well_whatever_is_killed(alone: Fleet, count: Count) -> None:
    """The controller, with all that it has started; the process that carries it out; or who watches over that."""
    node = alone.add("worker")
    choice = random.Random(SEED)
    for number in range(MOMENTS):
        whom = (CONTROLLER, EXECUTOR, SUPERVISOR)[number % 3]
        moment = choice.uniform(0, LONGEST)
        old, period = node.read(CONFIG), "%dms" % (600 + number)
        run = kill_in_change(alone, node, whom, moment, kubelet_cpu_manager_reconcile_period=period)
        told = "SEED=%d number %d: %s after %.3f s\n%s" % (SEED, number, whom, moment, run.account())
        wait_until(partial(is_settled, node), lambda told=told: told + "\n".join(node.log()[-8:]))  # type: ignore[misc]
        new = node.configuration()["cpuManagerReconcilePeriod"] == period
        assert new or node.read(CONFIG) == old, told
        # The kubelet runs with what is there.
        started = next(line for line in reversed(node.log()) if "[cpumanager] starting" in line)
        assert node.configuration()["cpuManagerPolicy"] in started, told
        if whom != CONTROLLER:
            # Whoever is asked for it says what became of it.
            assert (run.status == 0) == new, told
            assert run.status == 0 or run.last("worker")["msg"].endswith("; the node is as it was"), told
    count("kills", MOMENTS)


def test_a_second_run_finds_the_change_of_the_first(alone: Fleet, count: Count) -> None:
    """The first controller is killed. The second waits until the change has ended, and finds it made."""
    node = alone.add("worker")
    kill_in_change(alone, node, CONTROLLER, None, kubelet_verify_seconds=8)
    assert any(of_change(node))
    assert node.read(JOURNAL) is not None
    run = alone.run(ROLLOUT)
    assert (alone.policy("worker"), node.read(JOURNAL), node.is_active()) == ("static", None, True), run.account()
    assert run.status == 0, run.account()
    # As it was at first, and by the first run.
    assert node.log().count("service: start") == 2
    count("kills", 1)


def test_two_controllers_at_one_node(alone: Fleet) -> None:
    """Both begin at once: the kubelet is stopped once, and both find the node as they wanted it, or say why not."""
    node = alone.add("worker")
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    hosts = {"worker": alone.variables("worker")}
    with ThreadPoolExecutor() as pool:
        each = [
            pool.submit(ansible_playbook, alone.directory / name, plays, hosts, prefix=alone.prefix())
            for name in ("first", "second")
        ]
        runs = [run.result() for run in each]
    assert 0 in [run.status for run in runs], runs[0].account() + runs[1].account()
    assert (alone.policy("worker"), node.read(JOURNAL), node.is_active()) == ("static", None, True)
    assert node.log().count("service: start") == 2


@pytest.mark.parametrize("step", ["Cordon and drain the node", "Wait until the node is ready"])
def test_a_run_that_is_killed_while_the_node_is_drained(fleet: Fleet, step: str, count: Count) -> None:
    node = fleet.add("worker")
    assert kill_at(fleet, step, "worker")
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.account()
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    count("kills", 1)


def told(fleet: Fleet) -> list[str]:
    """Return the nodes of which the drift report tells that a cordon was left over there."""
    given = {"drift_report_directory": str(fleet.directory / "report"), "drift_report_forms": ["json"]}
    fleet.run("kubenode.cpu_manager.drift_report", "-e", json.dumps(given))
    report = json.loads((fleet.directory / "report/drift.json").read_text(encoding="utf-8"))
    return [node["host"] for node in report["nodes"] if "node-cordoned" in checks_of(node)]


@pytest.mark.parametrize("playbook", ["rollback", "rollout", "repair"] if IS_FULL else ["rollback"])
def test_a_cordon_of_a_run_that_ended_is_told_and_lifted_by_the_next_of_any_playbook(
    fleet: Fleet, control_plane: ControlPlane, playbook: str, count: Count
) -> None:
    """Also where nothing else is to be changed on the node; a cordon of others stays."""
    node, theirs = fleet.add("worker"), fleet.add("theirs")
    control_plane.kubectl("cordon", "theirs")
    assert kill_at(fleet, "Wait until only pods of DaemonSets, static pods and ended ones are left", "worker")
    assert (fleet.is_open("worker"), told(fleet)) == (False, ["worker"])
    # What is wanted now is what is there.
    wanted = {"kubelet_cpu_manager_policy": "none"}
    run = fleet.run("kubenode.cpu_manager." + playbook, **wanted)
    assert run.status == 0, run.account()
    assert (fleet.is_open("worker"), fleet.policy("worker"), node.read(JOURNAL)) == (True, "none", None)
    assert (fleet.is_open("theirs"), theirs.read(JOURNAL)) == (False, None)
    assert told(fleet) == []
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
    kill_in_change(alone, node, EVERYTHING, None, **period)
    assert node.read(JOURNAL) is not None
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
        kill_in_change(alone, alone.add(name), EVERYTHING, None)
        alone.nodes[name].stop()
    is_lost = "kubelet_taken is defined and inventory_hostname == 'b'"
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
        CHANGE,
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
    assert STOP not in names_of(run.result(), "worker")
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
# The code of a change is there, too.
PAGES, FILES = 1024, 64


def fill(disk: Path, pages: int) -> None:
    """Leave room for so many pages."""
    space = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes((space.f_bfree - pages) * space.f_bsize))


def roll_out_on_full_disk(directory: Path, disk: str, pages: int) -> tuple[bool, list[bool], int, str]:
    """Return whether the role failed, what holds afterwards, and the status and the policy of a run with room again."""
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

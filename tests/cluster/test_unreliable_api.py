# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server that fails single calls: no change that is good is taken back for that, and no run ends by it.

With FULL=1 each command meets calls that fail, in turn in each way. With API=all each call of each command fails alone,
too: once, twice, and for 30 seconds, in each way, which takes hours.
"""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER, Kubelet, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL, how_many

from .control_plane import ControlPlane
from .fleet import JOURNAL, ROLLOUT, Fleet
from .kubelet_node import CHECKPOINT
from .pods import Pods
from .rollouts import REPAIR, ROLLBACK, deploy, failure, names_of
from .unreliable import BUSY, FAULTS, INTERNAL, LOST, RESET, SILENT, Call, Decides, UnreliableAPI

IMPACT, PROPOSE = "kubenode.cpu_manager.impact", "kubenode.cpu_manager.propose"
PROPOSED = "proposed.example.org"
UNDONE = {"Undo what was done", "Restore the files"}
# Seconds. A busy machine takes long for a call that is well.
TIMEOUT = how_many("API_TIMEOUT", 30, 30)
OUTAGE = 30


@pytest.fixture
def door(control_plane: ControlPlane) -> Iterator[UnreliableAPI]:
    with UnreliableAPI(control_plane.admin) as opened:
        yield opened


def through(door: UnreliableAPI, directory: Path) -> dict[str, Any]:
    return {"kubelet_kubeconfig": door.kubeconfig(directory), "kubelet_api_timeout": TIMEOUT}


def each_call(fault: str, times: int = 1) -> Decides:
    """Return each call fails the first times that it is made."""
    return lambda call: fault if call.before < times else None


def one_call(number: int, fault: str, times: int) -> Decides:
    """Return the call of this number fails, and when it is repeated."""
    found: list[Call] = []

    def decides(call: Call) -> str | None:
        if call.number == number:
            found.append(call)
        is_it = bool(found) and call.what == found[0].what and call.before < found[0].before + times
        return fault if is_it else None

    return decides


def outage(number: int, fault: str) -> Decides:
    """Return a function by which all calls fail for some seconds, from the call of this number on."""
    began: list[float] = []

    def decides(call: Call) -> str | None:
        if call.number == number:
            began.append(call.at)
        return fault if began and call.at < began[0] + OUTAGE else None

    return decides


class Commands:
    """The commands that ask an API server, on nodes of their own, each by its name; what each leaves is looked at."""

    def __init__(self, fleet: Fleet, door: UnreliableAPI, directory: Path) -> None:
        self.fleet, self.door, self.directory = fleet, door, directory
        self.node = fleet.add("worker")
        shape = parse_name("2s1n4c2t")
        write_tree(shape.topology(), directory / "proposed", shape.whole())
        write_kubelet(directory / "proposed", Kubelet({"/var/lib/kubelet/config.yaml": HEADER}, "1.36"))

    def on_worker(self, playbook: str, policy: str) -> Run:
        run = self.fleet.run(playbook, **through(self.door, self.directory))
        assert run.status == 0, run.account()
        assert UNDONE.isdisjoint(names_of(run, "worker")), run.account()
        assert (self.fleet.policy("worker"), self.fleet.is_open("worker")) == (policy, True)
        assert self.node.read(JOURNAL) is None
        return run

    def rollout(self) -> None:
        self.on_worker(ROLLOUT, "static")

    def repair(self) -> None:
        self.node.stop()
        self.node.write(CHECKPOINT, "{}")
        self.node.start()
        self.on_worker(REPAIR, "static")

    def impact(self) -> None:
        self.on_worker(IMPACT, "static")

    def rollback(self) -> None:
        self.on_worker(ROLLBACK, "none")

    def propose(self) -> None:
        host = {"kubelet_node_root": str(self.directory / "proposed"), "kubelet_target_version": "1.36"}
        host.update(cpu_manager_workload="latency", kubelet_node_name=PROPOSED)
        given = {"cpu_manager_node_objects": ["labels"], "cpu_manager_apply_node_objects": True}
        given.update(through(self.door, self.directory))
        run = ansible_playbook(self.directory / "propose", PROPOSE, {"it": host}, "-e", json.dumps(given))
        assert run.status == 0, run.account()

    def all(self) -> list[Callable[[], None]]:
        """Return all commands, in an order in which each has something to do, again and again."""
        return [self.rollout, self.repair, self.impact, self.rollback, self.propose]


@pytest.fixture
def commands(
    fleet: Fleet, control_plane: ControlPlane, pods: Pods, door: UnreliableAPI, tmp_path: Path
) -> Iterator[Commands]:
    made = Commands(fleet, door, tmp_path)
    deploy(pods, replicas=1, available=0)
    control_plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": PROPOSED}})
    yield made
    control_plane.kubectl("delete", "node/" + PROPOSED)


def test_calls_that_fail_are_made_again_and_no_change_is_undone(
    commands: Commands, door: UnreliableAPI, count: Count
) -> None:
    """With FULL=1 each command and each way; with API=all each command in each way, once and twice."""
    # A module makes several calls: the silence of each of them takes more time than there is.
    told = [fault for fault in FAULTS if fault != SILENT]
    some = [(commands.rollout, INTERNAL, 1), (commands.rollback, RESET, 1)]
    every = [(command, *way) for way in product(told, (1, 2)) for command in commands.all()]
    # Commands stay in their order, as each makes what the next one undoes.
    in_turn = [(command, told[at % len(told)], 1 + at % 2) for at, command in enumerate(commands.all() * 2)]
    for command, fault, times in every if os.environ.get("API") == "all" else in_turn if IS_FULL else some:
        door.begin(each_call(fault, times))
        command()
        failed = {call.what for call in door.failed}
        # A repair drains nobody, and asks for nothing.
        assert bool(failed) is (command.__name__ != "repair"), (command, fault)
        assert failed == {call.what for call in door.calls if call.before == 0}
        count("calls that failed", len(door.failed))


@pytest.mark.skipif(os.environ.get("API") != "all", reason="it takes hours: API=all has it")
def test_each_call_alone(commands: Commands, door: UnreliableAPI, count: Count) -> None:
    """It fails once, twice, and with all others for 30 seconds, in each way."""
    numbers = {}
    for command in commands.all():
        door.begin(lambda _call: None)
        command()
        numbers[command.__name__] = len(door.calls)
        assert door.calls
    for fault, times, number in product(FAULTS, (1, 2, 0), range(max(numbers.values()))):
        for command in commands.all():
            # All are run, as each makes what the next one undoes.
            decides = one_call(number, fault, times) if times else outage(number, fault)
            door.begin(decides if number < numbers[command.__name__] else lambda _call: None)
            command()
            count("calls that failed", len(door.failed))


def cut_at_uncordon(fault: str) -> Decides:
    """Return a function by which all calls fail from the second change of the node on, which lets pods come back."""
    cut: list[Call] = []

    def decides(call: Call) -> str | None:
        if call.what.startswith("PATCH ") and call.before == 1:
            cut.append(call)
        return fault if cut else None

    return decides


def test_a_change_stays_if_the_api_server_lets_no_pods_come_back(
    fleet: Fleet, pods: Pods, door: UnreliableAPI, tmp_path: Path, count: Count
) -> None:
    node = fleet.add("worker")
    deploy(pods, replicas=1, available=0)
    for fault in [*FAULTS, "403"] if IS_FULL else [RESET]:
        door.begin(cut_at_uncordon(fault))
        run = fleet.run(ROLLOUT, **through(door, tmp_path))
        message = failure(run, "worker")
        assert "the node was changed, but it is not back in the cluster: Let pods come back to the node: " in message
        assert message.endswith("run this again, or run kubectl uncordon worker")
        assert UNDONE.isdisjoint(names_of(run, "worker"))
        # What is refused is not asked again. On a busy machine, silence leaves no time to ask again.
        assert (len(door.failed) == 1) is (fault == "403") or fault == SILENT
        # An answer that is lost was given.
        assert (fleet.policy("worker"), fleet.is_open("worker")) == ("static", fault == LOST)
        # The next run brings the node back, and leaves its kubelet alone.
        log = node.log()
        again = fleet.run(ROLLOUT)
        assert again.status == 0, again.account()
        assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
        assert node.log() == log
        # And the change can still be taken back.
        back = fleet.run(ROLLBACK)
        assert back.status == 0, back.account()
        assert (fleet.policy("worker"), fleet.is_open("worker")) == ("none", True)
        count("changes that stayed", 1)


@pytest.mark.skipif(not IS_FULL, reason="FULL=1 has it")
def test_an_outage_of_half_a_minute_when_pods_may_come_back(
    fleet: Fleet, pods: Pods, door: UnreliableAPI, tmp_path: Path, count: Count
) -> None:
    node = fleet.add("worker")
    deploy(pods, replicas=1, available=0)
    cut = cut_at_uncordon(BUSY)
    began: list[float] = []

    def decides(call: Call) -> str | None:
        fault = cut(call)
        began.extend([call.at] if fault and not began else [])
        return fault if fault and call.at < began[0] + OUTAGE else None

    door.begin(decides)
    run = fleet.run(ROLLOUT, **through(door, tmp_path))
    assert run.status == 0, run.account()
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    assert len(door.failed) > 1
    count("changes that stayed", 1)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands on nodes that are damaged: each is cured, or refused with nothing changed; and all of that again where the
command is killed at a random task.

    PAIRS=200 SEED=7 pytest tests/cluster/test_bad_days.py -k random
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Result, Run
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .bad_days import (
    ABSENT_CPUS,
    AFTER,
    BEFORE,
    CHANGING,
    CLOSED,
    CPUS,
    DAMAGES,
    DRAINING,
    HEALTHY,
    MISSING,
    NEXT,
    OFFLINE,
    STOPPING,
    BadNode,
    Day,
    add_days,
)
from .fleet import ROLLOUT, Fleet
from .rollouts import REPAIR, ROLLBACK

REPORT = "kubenode.cpu_manager.drift_report"
ALL_AT_ONCE = json.dumps({"cpu_manager_serial": "100%", "cpu_manager_max_fail_percentage": 100})


def command(
    fleet: Fleet,
    playbook: str,
    nodes: Mapping[str, BadNode],
    *arguments: str,
    kill_after: Mapping[str, int] | None = None,
    begun: Path | None = None,
) -> Run:
    """Run a playbook on these nodes alone, all at once; it ends for each of `kill_after` at that task.

    begun: a file that gets the node's name for each task that begins.
    """
    hosts = {name: fleet.variables(name, kubelet_cpu_manager_reconcile_period=NEXT) for name in nodes}
    environment = {}
    if kill_after is not None:
        killed = fleet.directory / "killed"
        killed.unlink(missing_ok=True)
        environment = {"KILL_AFTER": json.dumps(kill_after), "KILLED": str(killed), "ANSIBLE_STRATEGY": "mortal"}
        environment.update({"BEGUN": str(begun)} if begun is not None else {})
    return fleet.run_on(hosts, playbook, "-e", ALL_AT_ONCE, *arguments, environment=environment)


def plan_of(run: Run, name: str) -> Result:
    """Return the last plan of a node."""
    return [result for result in run.results[name] if "refusals" in result][-1]


def reported(run: Run, name: str) -> Result:
    """Return what a node answered to the report."""
    (path,) = [result["file"] for result in run.results[name] if "file" in result]
    answer: Result = json.loads(Path(path).read_text(encoding="utf-8"))["answer"]
    return answer


# --- each damage, by name -----------------------------------------------------------------------------------

OPEN_OR_CLOSED = [
    *(Day(damage, CLOSED, runs) for damage in DAMAGES for runs in (True, False)),
    *(Day(damage, DRAINING) for damage in DAMAGES),
    *(Day(damage, STOPPING, runs=False) for damage in DAMAGES),
]


def test_what_only_a_rollback_cures(alone: Fleet, count: Count) -> None:
    """Nothing is saved in the open journal yet: report, repair and rollout say what is wrong and change nothing."""
    nodes = add_days(alone, OPEN_OR_CLOSED)
    found = {name: node.state() for name, node in nodes.items()}

    report = command(alone, REPORT, nodes)
    assert report.status == 0, report.account()
    for name, node in nodes.items():
        subjects = [row["subject"] for row in reported(report, name)["drift"]]
        assert ("start" if node.day.damage == ABSENT_CPUS else "configuration") in subjects, node.account()
    assert {name: node.state() for name, node in nodes.items()} == found

    for playbook in (REPAIR, ROLLOUT):
        run = command(alone, playbook, nodes)
        assert run.status != 0
        assert "Traceback" not in run.output
        for name in nodes:
            message = run.last(name)["msg"]
            assert run.last(name)["outcome"] == "failed"
            assert "nothing was changed" in message
            assert "rollback" in message, message
        assert {name: node.state() for name, node in nodes.items()} == found, playbook
    run = command(alone, ROLLBACK, nodes)
    assert run.status == 0, run.account()
    for node in nodes.values():
        assert node.is_well(BEFORE), node.account()
    count("damaged nodes", len(nodes))


def test_what_an_open_journal_cures(alone: Fleet, count: Count) -> None:
    """Whatever the command is, it first puts back all that the journal has saved."""
    wanted = {ROLLOUT: NEXT, REPAIR: AFTER, ROLLBACK: BEFORE}
    for playbook, period in wanted.items():
        days = [Day(damage, CHANGING, runs=number % 2 == 0) for number, damage in enumerate(DAMAGES)]
        nodes = add_days(alone, days, playbook.rpartition(".")[2] + "-")
        run = command(alone, playbook, nodes)
        assert run.status == 0, run.account()
        for node in nodes.values():
            assert node.is_well(period), node.account()
        count("damaged nodes", len(nodes))


def test_a_rollback_of_an_interrupted_rollout_that_had_saved_nothing(alone: Fleet) -> None:
    """The kubelet would not start without it either: what is saved of the rollout before cures that."""
    facts = {"rollout": "2026-11-02T09:30:00"}
    days = [Day(ABSENT_CPUS, STOPPING, False, facts), Day(MISSING, DRAINING, True, facts)]
    healthy = [Day(HEALTHY, STOPPING, False, facts), Day(HEALTHY, DRAINING, False, facts)]
    broken, whole = add_days(alone, days, "broken-"), add_days(alone, healthy, "whole-")
    run = command(alone, ROLLBACK, {**broken, **whole})
    assert run.status == 0, run.account()
    assert [node.account() for node in broken.values() if not node.is_well(BEFORE)] == []
    # The others are back at what was before the rollout that was interrupted.
    assert [node.account() for node in whole.values() if not node.is_well(AFTER)] == []


def test_a_rollback_where_the_checkpoint_is_what_is_wrong(alone: Fleet) -> None:
    """It has nothing to put back, says so, and a repair takes the interrupted change back."""
    facts = {"rollout": "2026-11-02T09:30:00"}
    nodes = add_days(alone, [Day(OFFLINE, STOPPING, False, facts)])
    bad_node = next(iter(nodes.values()))
    found = bad_node.state()
    run = command(alone, ROLLBACK, nodes)
    assert run.status != 0
    assert "run the playbook repair" in run.last(bad_node.node.name)["msg"]
    assert bad_node.state() == found
    run = command(alone, REPAIR, nodes)
    assert run.status == 0, run.account()
    assert bad_node.is_well(AFTER), bad_node.account()


# --- random damage, and a command that is killed at a random task ---------------------------------------------

PAIRS, SEED, BATCH = how_many("PAIRS", 8, 8), how_many("SEED", 17, 17), 8


class Kind(NamedTuple):
    """A command, and nodes on which it does the same: of one fleet, one that cannot be changed stops all."""

    playbook: str
    # Whether the configuration of its nodes can be read.
    readable: bool
    # What it brings; None where it refuses or changes nothing.
    period: str | None


KINDS = (
    Kind(ROLLOUT, True, NEXT),
    Kind(ROLLBACK, False, BEFORE),
    Kind(REPAIR, True, AFTER),
    Kind(ROLLOUT, False, None),
    Kind(ROLLBACK, True, BEFORE),
    Kind(REPAIR, False, None),
    Kind(REPORT, False, None),
)
# {kind, the day's name: how many tasks a run begins on such a node, with those that are skipped}
TASKS: dict[tuple[Kind, str], int] = {}


def random_day(choice: random.Random, kind: Kind) -> Day:
    """Damage that the command meets."""
    while True:
        damage = choice.choice([*DAMAGES, HEALTHY, OFFLINE])
        phase = choice.choice([CLOSED, DRAINING, STOPPING, CHANGING])
        day = Day(damage, phase, choice.random() < 0.5 and damage != OFFLINE)
        # Where nothing is wrong and nothing was begun, a repair has nothing to do.
        if day.is_readable == kind.readable and not (damage == HEALTHY and phase == CLOSED and kind.period == AFTER):
            return day


def count_tasks(fleet: Fleet, kind: Kind, days: Sequence[Day]) -> None:
    """Run the command to its end on nodes of their own."""
    new = {day.name: day for day in days if (kind, day.name) not in TASKS}
    if not new:
        return
    twins = add_days(fleet, list(new.values()), "twin-")
    begun = fleet.directory / "begun"
    command(fleet, kind.playbook, twins, kill_after={}, begun=begun)
    names = Counter(begun.read_text(encoding="utf-8").splitlines())
    TASKS.update({(kind, twin.day.name): names[name] for name, twin in twins.items()})


@pytest.mark.parametrize("number", range((PAIRS + BATCH - 1) // BATCH))
def test_random_pairs(alone: Fleet, number: int, count: Count) -> None:
    """Afterwards the configuration is whole, old or new, the pod has its CPUs, and the next run finishes."""
    print("SEED=%d, batch %d" % (SEED, number))
    choice = random.Random("%d %d" % (SEED, number))
    kind = KINDS[number % len(KINDS)]
    days = [random_day(choice, kind) for _each in range(min(BATCH, PAIRS - BATCH * number))]
    count_tasks(alone, kind, days)
    nodes = add_days(alone, days)
    found = {name: node.state() for name, node in nodes.items()}
    # The first makes services of the nodes, for this test alone.
    kill_after = {name: choice.randint(2, TASKS[kind, node.day.name]) for name, node in nodes.items()}
    killed = command(alone, kind.playbook, nodes, kill_after=kill_after)
    told = (alone.directory / "killed").read_text(encoding="utf-8").splitlines()
    print("\n".join(told))
    for node in nodes.values():
        assert node.is_whole(), node.account()
        assert node.kept_cpus() == CPUS, node.account()
    assert "Traceback" not in killed.output

    again = command(alone, kind.playbook, nodes)
    if kind.period is not None or kind.playbook == REPORT:
        assert again.status == 0, again.account() + "\n".join(node.account() for node in nodes.values())
    if kind.period is None:
        # Refused, or only reported: as if nobody had been there. What the refusal names then cures it.
        assert {name: node.state() for name, node in nodes.items()} == found
        assert (again.status == 0) == (kind.playbook == REPORT), again.account()
        again = command(alone, ROLLBACK, nodes)
        assert again.status == 0, again.account()
    for node in nodes.values():
        assert node.is_well(kind.period or BEFORE), node.account()
    count("kills", len(told))
    count("damaged nodes", len(nodes))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program of the policies dynamic and isolated is killed between any two of its system calls, and the next pass
completes it; so is the end of it all.

`make kills` does it as often as it is told; else KILLS is small.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import PROMISE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup import writer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPUS, Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import Agent, release
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import read_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.exclusive import Promise, read_promise
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import DYNAMIC
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicState
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.isolated import ISOLATED
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, Style
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import PERIOD_US, ElasticNode, Pod
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from . import tracer
from .counting import Count
from .tracer import Traced

KILLS = how_many("KILLS", 12, 200)
SEED = how_many("SEED", 17, 17)
DB, CACHE, WEB = Pod("db", 2, "2-7"), Pod("cache", 2, "2-8"), Pod("web", 0, "", "Burstable")
SANDBOX = "sandbox "


def comes(node: ElasticNode) -> None:
    """Have three containers come to an empty node."""
    node.add(DB, CACHE, WEB)


def grows(node: ElasticNode) -> None:
    """Have one of three containers grow: it is busy, and its quota is lifted."""
    comes(node)
    node.agent().one_pass()


def is_announced(node: ElasticNode) -> None:
    """Have a container grow, and another one come for which it is to leave what it has grown into."""
    grows(node)
    agent = node.agent()
    node.work_under(agent, 4, 10, {"db": 8.0, "cache": 0.5, "web": 0.5})
    agent.one_pass()
    node.work(1, {"db": 8.0})
    node.add(Pod("big", 8))


def leaves(node: ElasticNode) -> None:
    """Have the grown container leave what it has grown into; others get it, and the quota is put back."""
    is_announced(node)
    node.agent().one_pass()
    node.work(5, {"db": 1.0})


def ends(node: ElasticNode) -> None:
    """Have two containers end, one of them with CPUs of its own, and another one come."""
    is_announced(node)
    node.remove("db")
    node.remove("web")
    node.add(Pod("late", 3))


def is_isolated(node: ElasticNode) -> None:
    """Have two containers come to a node whose exclusive CPUs are isolated, where another has just ended."""
    (node.root / "sys/devices/system/cpu/isolated").write_text("2-7,10-15\n")
    comes(node)
    node.agent(policy=ISOLATED).one_pass()
    node.remove("db")
    node.add(Pod("late", 4), Pod("next", 2))


SCENES: dict[str, Callable[[ElasticNode], None]] = {
    scene.__name__: scene for scene in (comes, grows, is_announced, leaves, ends, is_isolated)
}


class Scene:
    """A node before a pass, to which it can be brought back."""

    def __init__(self, root: Path, name: str, style: Style) -> None:
        self.node = ElasticNode(root, "1s8c2t", style)
        SCENES[name](self.node)
        self.is_busy = name == "grows"
        self.policy = ISOLATED if name == "is_isolated" else DYNAMIC
        self._places = [root / "sys/fs/cgroup", root / "run"]
        self._files = self._read()
        # Before the first pass over them, containers have the CPUs that the runtime gave them.
        self.masks = self.node.masks()
        self.before = read_promise(Tree(str(root)))[0] or Promise("dynamic", DynamicState(0))

    def agent(self) -> Agent:
        """Return a program that has just been started."""
        return self.node.agent(policy=self.policy)

    def one_pass(self) -> None:
        """Have the program do one pass."""
        agent = self.agent()
        if self.is_busy:
            # It has measured before.
            agent._meter._read = {
                path: (self.node.now - 10, count, 0.0)
                for path, count in (("kubepods.slice", -100.0), (DB.cgroup, -80.0))
            }
        agent.one_pass()

    def restore(self) -> None:
        """Bring back what a pass has changed."""
        now = self._read()
        for path in now.keys() - self._files.keys():
            path.unlink()
        for path, content in self._files.items():
            if now.get(path) != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def follow(self) -> None:
        """Do what a kernel does at once: let the effective sets of v2 follow what was written."""
        hierarchy = Hierarchy(Tree(str(self.node.root)))
        for path in hierarchy.cgroups() if hierarchy.version == 2 else ():
            writer._follow(hierarchy, path, CPUS)

    def _read(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for place in self._places for path in place.rglob("*") if path.is_file()}

    # --- laws ------------------------------------------------------------------------------------------------

    def promise(self) -> Promise:
        """Return what is promised now."""
        return read_promise(Tree(str(self.node.root)))[0] or self.before

    def check_alone(self) -> None:
        """Check that whoever has CPUs alone shares them with nobody, but for those that the runtime has just put
        there."""
        masks, after = self.node.masks(), self.promise()
        alone: dict[str, int] = {}
        for (uid, _name), held in [*self.before.state.containers.items(), *after.state.containers.items()]:
            alone[uid] = alone.get(uid, 0) | held.cpus
        for uid, promised in alone.items():
            mask = masks.get(uid, 0)
            if not mask or mask & ~promised:
                continue  # it runs on the shared pool
            for name, held_mask in masks.items():
                if name != uid and held_mask & mask:
                    assert held_mask == self.masks[name], "%s has CPUs of %s" % (name, uid)

    def check_agreement(self) -> None:
        """Check that the promise, the kernel and the files say the same."""
        state, masks = self.promise().state, self.node.masks()
        held = {uid: assignment for (uid, _name), assignment in state.containers.items()}
        for name, mask in masks.items():
            assert mask == (held[name].cpus if name in held else state.shared), name
        taken = state.shared
        for assignment in held.values():
            assert not assignment.cpus & taken
            taken |= assignment.cpus
        for uid, pod in self.node.pods.items():
            said = self.node.file(uid)
            assert said["effective"] == str(CPUSet.from_mask(masks[uid]))
            kept = held[uid].cpus & ~held[uid].leaving if uid in held else state.shared
            assert (said["cpus"], said["exclusive"]) == (str(CPUSet.from_mask(kept)), uid in held)
            is_grown = uid in held and held[uid].cpus != held[uid].admitted
            for of_pod in (False, True):
                limit = self.node.quota(uid, of_pod)
                assert limit == ("-1" if self.node.style is V1 else "max") or not is_grown
                assert limit == "%d" % (pod.cpus * PERIOD_US) or is_grown or not pod.cpus
        published = self.node.root / "run/kubenode/cpus"
        assert sorted(os.listdir(published)) == sorted(self.node.pods)
        assert not [path for path in (self.node.root / "run").rglob("*") if path.name.endswith(".new")]


@pytest.fixture(params=[V1, V2], ids=["v1", "v2"])
def style(request: pytest.FixtureRequest) -> Style:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[Scene]:
    """Return a list, at first empty, of scenes whose law is looked at after each write of a cgroup in this process."""
    scenes: list[Scene] = []
    real = writer._put

    def put(*arguments: Any) -> None:
        real(*arguments)
        for scene in scenes:
            scene.check_alone()

    monkeypatch.setattr(writer, "_put", put)
    return scenes


@pytest.mark.parametrize("name", SCENES)
def test_a_pass_that_nobody_kills(name: str, style: Style, tmp_path: Path, watched: list[Scene]) -> None:
    scene = Scene(tmp_path, name, style)
    watched.append(scene)
    scene.one_pass()
    scene.check_agreement()
    again = json.dumps(scene.node.sets())
    assert scene.agent().one_pass().moves == []
    assert json.dumps(scene.node.sets()) == again


@pytest.mark.parametrize("name", SCENES)
def test_killed_between_two_system_calls(
    name: str, style: Style, tmp_path: Path, watched: list[Scene], count: Count
) -> None:
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    scene = Scene(tmp_path, name, style)
    traced = Traced(scene.one_pass)
    while traced.next_stop():
        pass
    stops = traced.stops
    traced.answer()
    watched.append(scene)
    chance = random.Random("%d %s %d" % (SEED, name, style.version))
    kills = max(2, KILLS // (2 * len(SCENES)))
    for number in sorted(chance.choices(range(1, stops), k=kills)):
        scene.restore()
        traced = Traced(scene.one_pass)
        for _stop in range(number):
            assert traced.next_stop()
        traced.kill()
        scene.follow()
        scene.check_alone()
        # The next program.
        assert scene.agent().one_pass().refused == []
        scene.check_agreement()
    count("kills", kills)


def test_an_end_that_is_killed(style: Style, tmp_path: Path, count: Count) -> None:
    """The next end completes it: all CPUs, the quotas that were, nothing promised and nothing published."""
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    scene = Scene(tmp_path, "is_announced", style)
    settings = read_settings({"policy": DYNAMIC})

    def end() -> None:
        assert release(Tree(str(tmp_path)), settings) == []

    traced = Traced(end)
    while traced.next_stop():
        pass
    stops = traced.stops
    traced.answer()
    kills = max(2, KILLS // (2 * len(SCENES)))
    for number in sorted(random.Random("%d end %d" % (SEED, style.version)).choices(range(1, stops), k=kills)):
        scene.restore()
        traced = Traced(end)
        for _stop in range(number):
            assert traced.next_stop()
        traced.kill()
        scene.follow()
        end()
        scene.follow()
        assert set(scene.node.sets().values()) == {scene.node.online}
        assert (scene.node.quota("db"), scene.node.quota("db", of_pod=True)) == ("%d" % (2 * PERIOD_US),) * 2
        assert not (tmp_path / PROMISE[1:]).exists()
        assert not list((tmp_path / "run/kubenode/cpus").rglob("*.json"))
    count("kills", kills)

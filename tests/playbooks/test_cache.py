# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role cache and its modules as ansible-playbook runs them: divided, again, and put back to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import JOURNAL, give, write, write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS

from .conftest import Run, ansible_playbook, play, task

SHAPE = PLATFORMS["xeon-l3-mba-mbm"]
UNIT = "etc/systemd/system/sys-fs-resctrl.mount"
# One that the service sees, which the tests' own need not be.
PYTHON = "/usr/bin/python3"


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Mounted]:
    for found in mounted(tmp_path / "node"):
        found.load(SHAPE)
        write_node(found.root, SHAPE)
        give(found.root, {1, 9}, set(SHAPE.online) - {1, 9})
        (found.root / UNIT).parent.mkdir(parents=True)
        yield found


def run_role(model: Mounted, directory: Path, *arguments: str, **more: Any) -> Run:
    role = {"name": "Divide the caches", "ansible.builtin.import_role": {"name": "kubenode.cpu_manager.cache"}}
    host = {"cache_node_root": str(model.root), "reconcile_interpreter": PYTHON, **more}
    return ansible_playbook(directory / "run", play(role), {"worker": host}, *arguments)


def changed(run: Run) -> list[str]:
    """Return the tasks that changed something."""
    assert run.status == 0, run.account()
    return [result["task"] for result in run.results["worker"] if result.get("changed")]


def answer(run: Run) -> Any:
    """Return what the module answered."""
    assert run.status == 0, run.account()
    (found,) = (result for result in run.results["worker"] if "writes" in result)
    return found


def test_the_role(model: Mounted, tmp_path: Path) -> None:
    before = model.state()
    checked = answer(run_role(model, tmp_path, "--check", "--diff", cache_mount=True))
    assert (model.state(), model.writes()) == (before, [])
    brought = answer(run_role(model, tmp_path, "--diff", cache_mount=True))
    for name in ("changed", "diff", "groups", "level", "notes", "writes"):
        assert checked[name] == brought[name], name
    exclusive = {"cpus": "1,9", "mode": "shareable", "ways": {"0": "3f", "1": "3f"}}
    assert brought["groups"]["kubenode.exclusive"] == exclusive
    assert "root: L3:0=7c0;1=7c0" in brought["diff"]["after"]
    assert len(model.writes()) == 4
    assert (model.root / UNIT).read_text().count("resctrl") >= 3
    assert (model.root / "usr/local/lib/kubenode/cpu-manager-reconcile.pyz").exists()
    again = run_role(model, tmp_path, cache_mount=True)
    assert changed(again) == []
    assert model.writes() == []
    assert answer(run_role(model, tmp_path, cache_state="absent"))["changed"]
    assert model.state() == before
    assert not (model.root / JOURNAL).exists()
    assert not (model.root / UNIT).exists()


def test_the_role_mounts_where_it_is_asked_to(model: Mounted, tmp_path: Path) -> None:
    before = model.state()
    assert answer(run_role(model, tmp_path, cache_mount=True))["changed"]
    assert (model.root / UNIT).exists()
    assert answer(run_role(model, tmp_path, cache_mount=False))["changed"]
    assert not (model.root / UNIT).exists()
    assert changed(run_role(model, tmp_path, cache_mount=False)) == []
    assert answer(run_role(model, tmp_path, cache_mount=True))["changed"]
    assert answer(run_role(model, tmp_path, cache_state="absent"))["changed"]
    assert model.state() == before
    assert not (model.root / JOURNAL).exists()
    assert not (model.root / UNIT).exists()
    assert changed(run_role(model, tmp_path, cache_state="absent")) == []


def test_the_playbook_changes_only_nodes_that_change(model: Mounted, tmp_path: Path) -> None:
    host = {"kubelet_node_root": str(model.root), "reconcile_interpreter": PYTHON, "cache_mount": True}

    def run_playbook(*arguments: str, **more: Any) -> tuple[Run, list[bool]]:
        """Return the run, and what each call of the module says of a change: to find the node, and to change it."""
        run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.cache", {"worker": {**host, **more}}, *arguments)
        assert run.status == 0, run.account()
        return run, [result["changed"] for result in run.results["worker"] if "writes" in result]

    before = model.state()
    assert run_playbook("--check")[1] == [True, True]
    assert (model.state(), model.writes()) == (before, [])
    run, said = run_playbook()
    assert said == [True, True]
    assert (model.root / "usr/local/lib/kubenode/cpu-manager-reconcile.pyz").exists()
    assert len(model.writes()) == 4, run.account()
    assert run_playbook()[1] == [False]
    assert run_playbook(cache_state="absent")[1] == [True, True]
    assert model.state() == before


def test_what_is_read_is_what_is_taken(model: Mounted, tmp_path: Path) -> None:
    """The wish that cache_info has is the wish of another node."""
    wish: dict[str, Any] = {"exclusive_share": {"0": 4, "all": "30%"}, "shared_bandwidth": 50, "mode": "exclusive"}
    tasks = [
        task("cache_partition", root=str(model.root), **wish),
        task("cache_info", root=str(model.root)),
    ]
    run = ansible_playbook(tmp_path / "run", play(*tasks), {"worker": {}})
    _divided, read = run.results["worker"]
    assert {name: read["partition"][name] for name in wish} == {**wish, "exclusive_share": {"0": "4", "all": "30%"}}
    same = task("cache_partition", root=str(model.root), **read["partition"])
    run = ansible_playbook(tmp_path / "run", play(same), {"worker": {}})
    assert not run.results["worker"][0]["changed"]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("var/lib/kubelet/plugins_registry/dra.cpu-reg.sock", "", "the DRA CPU driver"),
        ("var/lib/nri-resource-policy/cache", '{"PolicyName": "balloons"}', "the NRI policy balloons"),
        ("etc/containerd/config.toml", 'rdt_config_file = "/etc/rdt.yaml"\n', "classes of goresctrl"),
    ],
)
def test_other_owners_are_refused_by_name(model: Mounted, tmp_path: Path, path: str, text: str, name: str) -> None:
    write(model.root / path, text)
    tasks = play(task("cache_partition", root=str(model.root), exclusive_share=4))
    run = ansible_playbook(tmp_path / "run", tasks, {"worker": {}})
    (result,) = run.results["worker"]
    assert result["failure"]["kind"] == "other_owner"
    assert name in result["msg"]
    assert model.writes() == []

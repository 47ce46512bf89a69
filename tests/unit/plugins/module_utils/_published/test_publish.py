# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_published/publish.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import (
    PublishedCPUs,
    Publishing,
    opened,
    publish_node,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import SOUND, Saved, write_saved

MACHINE = describe_machine("1 socket x 4 cores x 2 threads")
PLACE = "run/kubenode/cpus"


def entry(pod: str, name: str, cpus: str = "1-2") -> PublishedCPUs:
    return PublishedCPUs(pod, name, CPUSet.parse(cpus), True, "kubelet", CPUSet.parse(cpus))


class Pass:
    """Passes over a node, and how often each of them needs the machine."""

    def __init__(self, root: Path) -> None:
        self.root, self.looks = root, 0

    def __call__(self, *entries: PublishedCPUs, pods: tuple[str, ...] = (), now: float = 1.0) -> list[str]:
        present = {*pods, *(entry.pod_uid for entry in entries)}
        with opened(Tree(str(self.root))) as directory:
            return Publishing(directory, MACHINE.online, self._topology, now).finish(entries, lambda: present)

    def _topology(self) -> Topology:
        self.looks += 1
        return MACHINE

    def files(self) -> dict[str, Any]:
        top = self.root / PLACE
        return {str(path.relative_to(top)): json.loads(path.read_text()) for path in top.rglob("*.json")}


def test_containers_come_change_and_go(tmp_path: Path) -> None:
    one_pass = Pass(tmp_path)
    assert one_pass(entry("a", "app"), entry("a", "side"), entry("b", "app")) == []
    assert set(one_pass.files()) == {"a/app.json", "a/side.json", "b/app.json"}
    before = {path: path.stat().st_ino for path in (tmp_path / PLACE).rglob("*.json")}
    looks = one_pass.looks
    assert one_pass(entry("a", "app"), entry("a", "side"), entry("b", "app"), now=2.0) == []
    assert before == {path: path.stat().st_ino for path in (tmp_path / PLACE).rglob("*.json")}
    assert one_pass.looks == looks
    one_pass(entry("a", "app", "1-3"), entry("a", "side"), entry("b", "app"), now=3.0)
    assert [one_pass.files()[name]["since"] for name in ("a/app.json", "a/side.json")] == [3.0, 1.0]
    # The pod keeps its directory as long as it is there: it may have it mounted.
    one_pass(entry("a", "side"), pods=("b",))
    assert set(one_pass.files()) == {"a/side.json"}
    assert sorted(os.listdir(tmp_path / PLACE)) == ["a", "b"]
    one_pass(entry("a", "side"))
    assert os.listdir(tmp_path / PLACE) == ["a"]


def test_since_stays_where_only_the_kernel_follows(tmp_path: Path) -> None:
    one_pass = Pass(tmp_path)
    one_pass(entry("a", "app")._replace(effective=CPUSet.parse("0-7")), now=1.0)
    one_pass(entry("a", "app"), now=2.0)
    (data,) = one_pass.files().values()
    assert (data["since"], data["effective"]) == (1.0, "1-2")


def test_a_file_that_somebody_has_changed_is_written_anew(tmp_path: Path) -> None:
    one_pass = Pass(tmp_path)
    one_pass(entry("a", "app"))
    file = tmp_path / PLACE / "a/app.json"
    right = file.read_bytes()
    for wrong in (b"", right[:-3], right.replace(b'"1-2"', b'"0-7"')):
        file.write_bytes(wrong)
        one_pass(entry("a", "app"), now=1.0)
        assert file.read_bytes() == right


@pytest.mark.parametrize(
    ("pod", "name"), [("../../etc", "app"), ("a", "../b"), ("..", "app"), ("a", "x" * 500), ("", "a")]
)
def test_hostile_names(pod: str, name: str, tmp_path: Path) -> None:
    root = tmp_path / "node"
    root.mkdir()
    (note,) = Pass(root)(entry(pod, name), entry("good", "app"))
    assert "can be that of no file" in note
    assert len(note) < 150
    assert [str(path.relative_to(root / PLACE)) for path in root.rglob("*.json")] == ["good/app.json"]
    assert os.listdir(tmp_path) == ["node"]


def test_the_trouble_of_one_pod_is_not_that_of_the_next(tmp_path: Path) -> None:
    one_pass = Pass(tmp_path)
    one_pass()
    (tmp_path / PLACE / "a").symlink_to(tmp_path)
    (note,) = one_pass(entry("a", "app"), entry("b", "app"))
    assert "/a" in note
    assert set(one_pass.files()) == {"b/app.json"}


def owned(saved: Saved, root: Path) -> dict[str, tuple[str, bool, str]]:
    """Return {file: by whom, exclusive, CPUs} of what a saved node publishes."""
    assert publish_node(Node(write_saved(saved, root), minor=saved.minor)) == []
    found = {}
    for path in sorted((root / PLACE).rglob("*.json")):
        data = json.loads(path.read_text())
        found[str(path.relative_to(root / PLACE))] = (data["by"], data["exclusive"], data["effective"])
    return found


def test_a_node_of_the_kubelet(tmp_path: Path) -> None:
    assert owned(SOUND, tmp_path)["uid-db/server.json"] == ("kubelet", True, "1,5")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock": "",
                "/var/run/cdi/dra.cpu.json": json.dumps(
                    {"devices": [{"containerEdits": {"env": ["DRA_CPUSET_c1=1,5", "DRA_CPUSET_c2=x"]}}]}
                ),
            },
            ("dra-driver-cpu", True, "1,5"),
        ),
        ({"/var/lib/nri-resource-policy/cache": '{"PolicyName": "balloons"}'}, ("nri-balloons", True, "1,5")),
    ],
)
def test_a_node_of_another_owner(files: dict[str, str], expected: tuple[str, bool, str], tmp_path: Path) -> None:
    assert owned(SOUND.having(files), tmp_path)["uid-db/server.json"] == expected


def test_a_node_without_pods(tmp_path: Path) -> None:
    assert owned(SOUND._replace(cgroups={}), tmp_path) == {}
    assert not (tmp_path / "run").exists()

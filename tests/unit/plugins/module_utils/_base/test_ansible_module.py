# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, Mapping, NoReturn

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.ansible_module import Outcome, run
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    ConfigurationError,
    CPUManagerError,
    RefusedError,
    option,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import planned_config
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import wanted_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree


def call(capsys: pytest.CaptureFixture[str], root: Path, work: Any, **parameters: Any) -> dict[str, Any]:
    """Return what a module with this work prints."""
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/hostname").write_text("worker-3\n", encoding="utf-8")
    with patch_module_args({"root": str(root), **parameters}), pytest.raises(SystemExit):
        run(work)
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def fails_with(error: Exception) -> Any:
    def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> NoReturn:
        raise error

    return work


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "make room"), (errno.EROFS, "for writing"), (errno.EIO, "kernel log")],
    ids=["full", "read-only", "broken"],
)
def test_an_error_of_the_system_has_node_path_and_remedy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, number: int, remedy: str
) -> None:
    printed = call(capsys, tmp_path, fails_with(OSError(number, os.strerror(number), "/var/lib/kubelet")))
    assert printed["failed"]
    assert printed["msg"].startswith("worker-3: /var/lib/kubelet: %s; " % os.strerror(number))
    assert (printed["failure"]["kind"], printed["failure"]["where"]) == ("node", "/var/lib/kubelet")
    assert remedy in printed["failure"]["remedy"]


def test_an_error_of_the_system_without_a_path(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    printed = call(capsys, tmp_path, fails_with(OSError("it broke")))
    assert printed["msg"].startswith("worker-3: it broke; ")
    assert printed["failure"]["where"] == ""


def test_a_refusal_names_the_variables_of_the_caller(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> NoReturn:
        raise RefusedError("it is not wanted", "here", "set %s" % option("force"), "unwanted")

    printed = call(capsys, tmp_path, work, option_names={"force": "kubelet_force"})
    assert printed["msg"] == "worker-3: here: it is not wanted; set kubelet_force"
    assert printed["failure"] == {"kind": "unwanted", "where": "here", "remedy": "set kubelet_force"}


def test_an_error_of_the_program_is_none_of_the_node(tmp_path: Path) -> None:
    with patch_module_args({"root": str(tmp_path)}), pytest.raises(ZeroDivisionError):
        run(fails_with(ZeroDivisionError()))


def test_a_root_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with patch_module_args({"root": str(tmp_path / "none")}), pytest.raises(SystemExit):
        run(fails_with(AssertionError("nothing is done")))
    printed = json.loads(capsys.readouterr().out)
    assert str(tmp_path / "none") in printed["msg"]
    assert set(printed["failure"]) == set(CPUManagerError("x").to_dict())


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_work_is_given_tree_parameters_and_check_mode(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, check_mode: bool
) -> None:
    def work(tree: Tree, parameters: Mapping[str, Any], check: bool) -> Outcome:
        return Outcome({"given": [tree.path("x"), parameters["root"], check], "name": "\udcff"}, changed=True)

    printed = call(capsys, tmp_path, work, _ansible_check_mode=check_mode)
    assert printed["given"] == [str(tmp_path / "x"), str(tmp_path), check_mode]
    assert (printed["changed"], printed["node"], printed["name"]) == (True, "worker-3", "\\xff")
    assert "diff" not in printed


def test_what_the_cpu_manager_would_start_with(tmp_path: Path) -> None:
    shape = parse_name("1s4c2t")
    write_tree(shape.topology(), tmp_path, shape.whole())
    config = tmp_path / "var/lib/kubelet/config.yaml"
    config.parent.mkdir(parents=True)
    header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

    def planned(text: str, **wanted: Any) -> CPUSet:
        config.write_text(header + text, encoding="utf-8")
        parameters = {**dict.fromkeys(SETTINGS), "reservation": None, **wanted}
        node = Node(Tree(str(tmp_path)))
        return planned_config(node, wanted_settings(node, parameters)).reserved

    static = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
    assert planned(static) == CPUSet([0, 4])
    assert planned(static, reserved_system_cpus="0") == CPUSet([0])
    # What the kubelet refuses for other reasons is refused, too.
    with pytest.raises(RefusedError, match=r"^maxPods: the kubelet would not start: "):
        planned(static + "maxPods: -1\n", reserved_system_cpus="0")
    with pytest.raises(RefusedError, match=r"^reserving all of the CPUs 0-7"):
        planned(static, reserved_system_cpus="0-7")
    with pytest.raises(ConfigurationError, match="cpuManagerReconcilePeriod"):
        planned(static + "cpuManagerReconcilePeriod: soon\n")

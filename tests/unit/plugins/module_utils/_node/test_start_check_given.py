# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/start_check.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    PERMISSION,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.placement import plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import Absent
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import GivenToKubelet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    given_of,
    given_with,
    planned_values,
    predict_start,
    read_sources,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
CONFIG, DROP_INS = "/var/lib/kubelet/config.yaml", "/etc/kubelet.d"
WANTED: dict[str, Any] = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"}


def write(root: Path, path: str, text: str) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def node(root: Path, *arguments: str, minor: int = 36) -> Node:
    """Return a node whose kubelet was started with these, if there are any."""
    return Node(Tree(str(root)), minor=minor, command_line=("/usr/bin/kubelet", *arguments) if arguments else ())


# --- what is there ----------------------------------------------------------------------------------------


def test_a_file(tmp_path: Path) -> None:
    write(tmp_path, CONFIG, HEADER)
    assert given_of(node(tmp_path)) == GivenToKubelet([], HEADER.encode(), None, CONFIG)
    write(tmp_path, "var/lib/kubelet/kubeadm-flags.env", "KUBELET_KUBEADM_ARGS=--v=4 --x\n")
    assert given_of(node(tmp_path)).arguments == ["--v=4", "--x"]
    assert given_of(node(tmp_path, "--config", CONFIG)) == GivenToKubelet(
        ["--config", CONFIG], HEADER.encode(), None, CONFIG
    )


def test_no_file(tmp_path: Path) -> None:
    """A kubelet that was started with one that is gone is refused, one that was never there is none."""
    for found in (node(tmp_path), Node(Tree(str(tmp_path)), config_path=CONFIG)):
        with pytest.raises(NodeError):
            given_of(found)
    assert given_of(node(tmp_path, "--config=/x")) == GivenToKubelet(["--config=/x"], Absent.MISSING, None, "/x")
    assert given_of(node(tmp_path, "--v=4")) == GivenToKubelet(["--v=4"], None, None)


def test_what_is_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, "/file", "")
    states = {
        "directory": Absent.DIRECTORY,
        "dangling": Absent.MISSING,
        "loop": Absent.UNREADABLE,
        "pipe": Absent.UNREADABLE,
        "file/below": Absent.MISSING,
        "file": b"",
    }
    for name, state in states.items():
        assert given_of(node(tmp_path, "--config=/" + name)).file == state
    (tmp_path / "leak").symlink_to("/etc/hostname")
    with pytest.raises(RefusedError, match="this link is not followed"):
        given_of(node(tmp_path, "--config=/leak"))


def test_what_takes_more_rights_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, CONFIG, HEADER)
    found = node(tmp_path)

    def content(path: str, *_limit: int) -> bytes:
        raise NodeError("cannot be read: Permission denied", path, "run as root", PERMISSION)

    # Root, who may run these tests, reads everything.
    monkeypatch.setattr(found.tree, "content", content)
    with pytest.raises(NodeError, match="Permission denied"):
        given_of(found)
    monkeypatch.undo()
    monkeypatch.setattr(found.tree, "read_bytes", content)
    for plan in (given_with, planned_values):
        with pytest.raises(NodeError, match="Permission denied"):
            plan(found, WANTED)


def test_drop_ins(tmp_path: Path) -> None:
    arguments = ["--config-dir=" + DROP_INS + "/"]
    assert given_of(node(tmp_path, *arguments)).drop_ins == Absent.MISSING
    for name in ("20.conf", "10.d/b.conf", "README"):
        write(tmp_path, "%s/%s" % (DROP_INS, name), name)
    (tmp_path / "etc/kubelet.d/30.conf").mkdir()
    (tmp_path / "etc/kubelet.d/40.conf").symlink_to("nothing")
    found = given_of(node(tmp_path, *arguments))
    assert found.drop_ins == [
        *[("10.d/b.conf", b"10.d/b.conf"), ("20.conf", b"20.conf")],
        *[("40.conf", Absent.MISSING), ("README", b"README")],
    ]
    assert (found.file, found.path, found.config_dir) == (None, "", DROP_INS + "/")
    (tmp_path / "etc/kubelet.d").rename(tmp_path / "etc/other.d")
    (tmp_path / "etc/kubelet.d").symlink_to("other.d")
    # The kubelet does not follow it.
    assert given_of(node(tmp_path, *arguments)).drop_ins == []


@pytest.mark.parametrize("name", KUBELETS)
def test_the_kubelets_of_all_distributions_start(tmp_path: Path, name: str) -> None:
    """As they are, and with settings where these are written."""
    kubelet = KUBELETS[name]
    write_machine(tmp_path, "1s4c2t")
    write_kubelet(tmp_path, kubelet)
    found = Node(Tree(str(tmp_path)), minor=minor_version(kubelet.version))
    for wanted in ({}, WANTED):
        prediction = predict_start(found, wanted)
        assert (prediction.refusal, prediction.starts) == (None, True)
        assert prediction.checked is not None
        assert prediction.checked.cpu_manager is not None
        assert prediction.checked.cpu_manager.policy_name == wanted.get("cpu_manager_policy", "none")


# --- what there would be ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KUBELETS)
def test_settings_are_where_they_are_written(tmp_path: Path, name: str) -> None:
    write_kubelet(tmp_path, KUBELETS[name])
    found = Node(Tree(str(tmp_path)), minor=minor_version(KUBELETS[name].version))
    plan = plan_settings(WANTED, found.needed_configuration(), found.minor)
    # Beside kubeadm's patches, which no kubelet reads.
    files = plan_files(read_sources(found, ""), plan, WANTED, found.minor)
    assert files
    planned = given_with(found, WANTED)
    assert planned != given_of(found)
    for file in files:
        write(tmp_path, found.tree.node_path(file.path), file.after)
    after = Node(Tree(str(tmp_path)), minor=found.minor)
    assert given_of(after) == planned
    assert given_with(after, WANTED) == planned


def test_settings_where_nothing_may_be_written(tmp_path: Path) -> None:
    """They come another way, and count then."""
    write(tmp_path, "etc/os-release", "ID=talos\n")
    write(tmp_path, "etc/kubernetes/kubelet.yaml", HEADER + "maxPods: 20\n")
    found = node(tmp_path, "--config=/etc/kubernetes/kubelet.yaml", "--reserved-cpus=1")
    planned = given_with(found, WANTED)
    assert (planned.arguments, planned.drop_ins, planned.path) == ((), None, "/etc/kubernetes/kubelet.yaml")
    assert isinstance(planned.file, bytes)
    assert json.loads(planned.file) == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "maxPods": 20,
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0,4",
    }


@pytest.mark.parametrize(
    "text", ["", "- a\n", HEADER + "a: [\n", HEADER + "cpuManagerReconcilePeriod: soon\n", "\ufeff\0"]
)
def test_a_file_that_cannot_be_read_stays_as_it_is(tmp_path: Path, text: str) -> None:
    write(tmp_path, CONFIG, text)
    found = node(tmp_path)
    assert given_with(found, WANTED) == given_of(found)
    assert planned_values(found, WANTED) is None
    write(tmp_path, CONFIG, HEADER).write_bytes(b"\xff")
    found = node(tmp_path)
    assert given_with(found, WANTED) == given_of(found)


@pytest.mark.parametrize(
    ("arguments", "is_all"),
    [
        ([], True),
        (["--config=" + CONFIG, "--root-dir=/var/lib/kubelet"], True),
        (["--config=" + CONFIG, "--v=2"], False),
        (["--config", CONFIG], False),
        (["--config=" + CONFIG, "--config-dir=" + DROP_INS], False),
    ],
)
def test_values_of_a_file_that_is_all(tmp_path: Path, arguments: Sequence[str], is_all: bool) -> None:
    """Then what is planned need not be written and read to be known."""
    write(tmp_path, CONFIG, HEADER + "maxPods: 20\n")
    found = node(tmp_path, *arguments)
    assert given_of(found).is_alone == is_all
    values = planned_values(found, WANTED)
    assert values is not None
    assert values == planned_values(found, WANTED, found.needed_configuration())
    assert values == plan_settings(WANTED, found.needed_configuration()).configuration.values
    assert values["cpuManagerPolicy"] == "static"

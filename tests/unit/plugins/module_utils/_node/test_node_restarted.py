# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/node.py."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import (
    Node,
    not_restarted_notes,
    start_time,
)

BOOT = 1_700_000_000
TICKS = os.sysconf("SC_CLK_TCK")
PID = 712
# It started 1,000 s after the boot.
STARTED = BOOT + 1000

CONFIG = "/var/lib/kubelet/config.yaml"
KUBELET = ("/usr/bin/kubelet", "--config=" + CONFIG)
K3S = ("/usr/local/bin/k3s", "agent")
K3S_DIRECTORY = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d"


def make_node(root: Path, arguments: tuple[str, ...], files: dict[str, float], stat: str | None = None) -> Node:
    """Return a node whose kubelet runs, with files of these times of change."""
    process = root / "proc" / str(PID)
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"".join(argument.encode() + b"\0" for argument in arguments))
    # The name of a program may have spaces and brackets.
    fields = " ".join(["S", "1"] + ["0"] * 17 + [str(1000 * TICKS)] + ["0"] * 30)
    (process / "stat").write_text("%d (a) b (kubelet) %s\n" % (PID, fields) if stat is None else stat, "utf-8")
    (root / "proc/stat").write_text("cpu 1 2 3\nbtime %d\n" % BOOT, "utf-8")
    for path, changed in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", "utf-8")
        os.utime(file, (changed, changed))
    for directory in {root / path.lstrip("/") for path in files}:
        os.utime(directory.parent, (BOOT, BOOT))
    return Node(Tree(str(root)))


def test_the_start_of_a_process(tmp_path: Path) -> None:
    node = make_node(tmp_path, KUBELET, {})
    assert start_time(node.tree, PID) == STARTED
    assert start_time(node.tree, PID + 1) is None


def test_the_start_of_this_process() -> None:
    assert abs((start_time(Tree("/"), os.getpid()) or 0) - time.time()) < 3 * 3600


@pytest.mark.parametrize("stat", ["", "712 (kubelet)", "712 (kubelet) S x", "712 (kubelet) " + "x " * 30])
def test_a_process_that_cannot_be_read_gives_no_note(tmp_path: Path, stat: str) -> None:
    node = make_node(tmp_path, KUBELET, {CONFIG: STARTED + 100}, stat)
    assert start_time(node.tree, PID) is None
    assert not_restarted_notes(node) == []


@pytest.mark.parametrize(
    ("arguments", "files", "changed"),
    [
        (KUBELET, {CONFIG: STARTED - 5}, ""),
        (KUBELET, {CONFIG: STARTED + 0.5}, ""),
        (KUBELET, {CONFIG: STARTED + 5}, CONFIG),
        (
            KUBELET,
            {CONFIG: BOOT, "/var/lib/kubelet/kubeadm-flags.env": STARTED + 5},
            "/var/lib/kubelet/kubeadm-flags.env",
        ),
        ((*KUBELET, "--config-dir=/etc/d"), {CONFIG: BOOT, "/etc/d/1.conf": STARTED + 5}, "/etc/d/1.conf"),
        (K3S, {K3S_DIRECTORY + "/00-k3s.conf": STARTED + 5}, ""),
        (K3S, {K3S_DIRECTORY + "/00-k3s.conf": STARTED + 65}, K3S_DIRECTORY + "/00-k3s.conf"),
    ],
)
def test_a_file_that_changed_after_the_start(
    tmp_path: Path, arguments: tuple[str, ...], files: dict[str, float], changed: str
) -> None:
    notes = not_restarted_notes(make_node(tmp_path, arguments, files))
    assert [getattr(note, "check", "") for note in notes] == (["kubelet-not-restarted"] if changed else [])
    assert all("before %s changed" % changed in note for note in notes)


def test_a_drop_in_that_was_removed_is_noticed(tmp_path: Path) -> None:
    node = make_node(tmp_path, (*KUBELET, "--config-dir=/etc/d"), {CONFIG: BOOT, "/etc/d/1.conf": BOOT})
    (tmp_path / "etc/d/1.conf").unlink()
    os.utime(tmp_path / "etc/d", (STARTED + 5, STARTED + 5))
    assert "before /etc/d changed" in not_restarted_notes(node)[0]


def test_a_kubelet_that_does_not_run_gives_no_note(tmp_path: Path) -> None:
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    (tmp_path / "var/lib/kubelet/config.yaml").write_text("kind: KubeletConfiguration\n", "utf-8")
    assert not_restarted_notes(Node(Tree(str(tmp_path)))) == []
    assert Node(Tree(str(tmp_path))).own_notes() == []


def test_it_is_a_note_of_the_node(tmp_path: Path) -> None:
    node = make_node(tmp_path, KUBELET, {CONFIG: STARTED + 5})
    assert node.own_notes() == not_restarted_notes(node) != []

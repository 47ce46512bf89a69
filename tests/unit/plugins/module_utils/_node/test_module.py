# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/module.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, Note
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import SAID, OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.module import (
    FORMAT,
    KIND,
    KUBELET,
    SavedFacts,
    SavedNode,
    node_of,
    read_said,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.runtime import version_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import said_of
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

NOTES = (Note("kubelet-ambiguous", "2 kubelets run"), "another")
SAVED = SavedFacts("1.34.2", NOTES, 5 << 30, "1.7")
NOTHING: dict[str, Any] = dict.fromkeys(KUBELET.options)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_tree(parse_name("2s1n4c2t").topology(), tmp_path)
    write_kubelet(tmp_path, KUBELETS["kubeadm-drop-ins"])
    write_said(tmp_path, SAVED.to_dict())
    return tmp_path


def write_said(root: Path, said: Any, **more: Any) -> None:
    data = {"kind": KIND, "format": FORMAT, "said": said, **more}
    (root / SAID.lstrip("/")).write_text(json.dumps(data), encoding="utf-8")


def test_what_a_live_node_said_is_said_of_the_saved_one(root: Path) -> None:
    node = node_of(Tree(str(root)), NOTHING)
    assert (node.version, node.minor) == ("1.34.2", 34)
    assert node.machine().storage == 5 << 30
    assert not node.machine().is_assumed
    notes = [note for note in node.own_notes() if note in NOTES]
    assert notes == list(NOTES)
    assert [getattr(note, "check", "") for note in notes] == ["kubelet-ambiguous", ""]
    assert said_of(node) == SAVED
    assert (node.kubelet(node.configuration()) or {})["version"] == "1.34.2"


def test_it_is_the_same_with_other_files(root: Path) -> None:
    node = node_of(Tree(str(root)), NOTHING)
    overlaid = node.on(OverlaidTree(node.tree, {"/etc/x": b""}))
    assert (overlaid.version, overlaid.machine().storage) == ("1.34.2", 5 << 30)
    newer = node.of_version(36)
    assert (newer.version, newer.machine().storage) == ("1.36", 5 << 30)
    node.topology = parse_name("1s1n1c").topology()
    assert node.machine().storage is None


def test_the_version_of_its_runtime_is_as_it_was(root: Path) -> None:
    assert version_of(node_of(Tree(str(root)), NOTHING)) == "1.7"
    said = SAVED.to_dict()
    del said["runtime"]  # as it was before it was saved
    write_said(root, said)
    assert version_of(node_of(Tree(str(root)), NOTHING)) == ""


def test_what_is_given_counts_first(root: Path) -> None:
    assert node_of(Tree(str(root)), {**NOTHING, "kubelet_version": "1.35.1"}).version == "1.35"


def test_without_a_running_kubelet_there_is_no_version(root: Path) -> None:
    (root / "proc/4711/cmdline").unlink()
    assert node_of(Tree(str(root)), NOTHING).version is None


def test_a_saved_node_without_it_is_as_it_always_was(root: Path) -> None:
    (root / SAID.lstrip("/")).unlink()
    node = node_of(Tree(str(root)), NOTHING)
    assert not isinstance(node, SavedNode)
    assert said_of(node) == SavedFacts()


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        [],
        {**SAVED.to_dict(), "version": "1.34; rm"},
        {**SAVED.to_dict(), "version": 5},
        {**SAVED.to_dict(), "storage": -1},
        {**SAVED.to_dict(), "runtime": "1.7; rm"},
        {**SAVED.to_dict(), "runtime": 5},
        {**SAVED.to_dict(), "storage": "5"},
        {**SAVED.to_dict(), "notes": 5},
        {**SAVED.to_dict(), "notes": [{"check": "<b>", "text": "x"}]},
        {**SAVED.to_dict(), "notes": [{"check": "", "text": 5}]},
    ],
)
def test_a_file_of_another_kind(root: Path, said: Any) -> None:
    write_said(root, said)
    with pytest.raises(NodeError, match="is not what node_save writes"):
        SavedNode(Tree(str(root)))


@pytest.mark.parametrize("more", [{"kind": "other"}, {"format": 2}])
def test_a_file_of_another_format(root: Path, more: dict[str, Any]) -> None:
    write_said(root, SAVED.to_dict(), **more)
    with pytest.raises(NodeError, match="it is of another kind or format"):
        read_said(Tree(str(root)))


def test_many_and_long_notes_are_cut(root: Path) -> None:
    write_said(root, {**SAVED.to_dict(), "notes": [{"check": "", "text": "x" * 5000}] * 50})
    notes = read_said(Tree(str(root))).notes
    assert (len(notes), len(notes[0])) == (20, 1000)

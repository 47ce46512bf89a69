# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A journal comes back as it was written, for root alone, and each kind of damage is one error."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import (
    DIRECTORY,
    JournalFile,
    remove_left_over,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree

FILE = JournalFile(DIRECTORY + "/a.json", 2, "is no journal: %s", "remove it")


def test_written_and_taken_away(tmp_path: Path) -> None:
    tree, text = Tree(str(tmp_path)), FILE.text_of({"a": 1})
    assert FILE.read(tree, dict) is None
    FILE.replace(tree, text, None)
    assert FILE.read(tree, dict) == {"format": 2, "a": 1}
    assert tree.read_text(FILE.path) == text == '{\n "a": 1,\n "format": 2\n}\n'
    modes = [stat.S_IMODE((tmp_path / path[1:]).stat().st_mode) for path in (DIRECTORY, FILE.path)]
    assert modes == [0o700, 0o600]
    FILE.remove(tree)
    assert not (tmp_path / DIRECTORY[1:]).exists()
    FILE.remove(tree)


def test_the_deepest(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    FILE.replace(tree, '{"format": 2, "a": ' + "[" * 99 + "]" * 99 + "}", None)
    assert FILE.read(tree, lambda data: len(data["a"])) == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"{", "Expecting property name"),
        (b"[]", "list indices must be integers"),
        (b"\xff", "codec can't decode"),
        (b'{"format": 1}', "it is of another format"),
        (b'{"format": 2}', "'a'"),
        (b'{"format": 2, "a": ' + b"[" * 100 + b"]" * 100 + b"}", "it is nested deeper than 100 times"),
    ],
)
def test_damaged(tmp_path: Path, content: bytes, error: str) -> None:
    place = tmp_path / FILE.path[1:]
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    with pytest.raises(NodeError, match="is no journal: .*%s.*; remove it" % error) as caught:
        FILE.read(Tree(str(tmp_path)), lambda data: data["a"])
    assert caught.value.where == str(place)


def test_the_directory_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("")
    with pytest.raises(NodeError, match="cannot be made: Not a directory"):
        FILE.replace(Tree(str(tmp_path)), "", None)


def test_what_a_killed_run_left(tmp_path: Path) -> None:
    directory = tmp_path / DIRECTORY[1:]
    directory.mkdir(parents=True)
    (directory / ".a.json.kubenode-0123456789abcdef").write_text("half")
    remove_left_over(Tree(str(tmp_path)), FILE.path)
    assert list(directory.iterdir()) == []

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_host/layers.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    enabled_at,
    is_there,
    members,
    members_at,
    names_in,
    text_at,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "file").write_bytes(b"caf\xe9")
    return Tree(str(tmp_path))


def test_what_is_there(tree: Tree) -> None:
    assert [name for name in ("directory", "loop", "nowhere", "file", "missing") if is_there(tree, "/" + name)] == [
        "directory",
        "loop",
        "nowhere",
        "file",
    ]
    assert not is_there(tree, "/out/hostname")


@pytest.mark.parametrize("name", ["directory", "loop", "nowhere", "missing", "out/hostname", "file/x"])
def test_no_text(name: str, tree: Tree) -> None:
    assert (text_at(tree, "/" + name), members_at(tree, "/" + name)) == ("", {})


def test_text(tree: Tree) -> None:
    assert text_at(tree, "/file") == "caf\N{REPLACEMENT CHARACTER}"


def test_names(tree: Tree) -> None:
    assert names_in(tree, "/") == ["directory", "file", "loop", "nowhere", "out"]
    assert [names_in(tree, name) for name in ("/loop", "/missing", "/file", "/out")] == [[], [], [], []]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[]", {}),
        ("", {}),
        ("{", {}),
        ("[" * 100_000, {}),
        ('"text"', {}),
    ],
)
def test_members(text: str, found: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    assert members_at(Tree(str(tmp_path)), "/file") == found
    assert members(found) == found
    assert members([found]) == {}


def test_enabled(tmp_path: Path) -> None:
    link = tmp_path / "etc/systemd/system/multi-user.target.wants/tuned.service"
    link.parent.mkdir(parents=True)
    tree = Tree(str(tmp_path))
    assert enabled_at(tree, "tuned.service") == []
    link.symlink_to("/usr/lib/systemd/system/tuned.service")
    assert enabled_at(tree, "tuned.service") == ["/etc/systemd/system/multi-user.target.wants/tuned.service"]
    assert enabled_at(tree, "tuned.service", "timers") == []

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/exclusive.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import PROMISE as PATH
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Quota
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.exclusive import (
    Promise,
    forget_promise,
    read_promise,
    write_promise,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicState, Held

STATE = DynamicState(0b11, {("u", "app"): Held(0b100, 0b1100, 0b1000, 5.0)}, {1.0: 0b1000})
PROMISE = Promise("dynamic", STATE, {("u", "app"): 0b11100}, {"kubepods/podu": Quota(200000, 100000)})


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / PATH[1:]).parent.mkdir(parents=True)
    return Tree(str(tmp_path))


def test_what_was_promised_is_read_again(tree: Tree, tmp_path: Path) -> None:
    assert read_promise(tree) == (None, None)
    content = write_promise(tree, PROMISE, None)
    assert read_promise(tree) == (PROMISE, content)
    file = tmp_path / PATH[1:]
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.stat().st_ino
    assert write_promise(tree, PROMISE, content) == content
    assert file.stat().st_ino == before
    forget_promise(tree)
    forget_promise(tree)
    assert read_promise(tree) == (None, None)


def _changed(**members: Any) -> str:
    return json.dumps({**json.loads(PROMISE.content()), **members})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[" * 5000,
        _changed(version=2),
        _changed(state={}),
        _changed(found=[{"pod": "u"}]),
        _changed(found=[{"pod": "u", "container": "app", "cpus": "x"}]),
        _changed(quotas={"a": [1]}),
        _changed(quotas={"a": [True, 1]}),
        _changed(quotas={"a": [0, 1]}),
        _changed(quotas=[]),
        _changed(state={**PROMISE.state.to_dict(), "changed": [{"at": 10**400, "cpus": "1"}]}),
    ],
)
def test_one_that_is_damaged(tree: Tree, tmp_path: Path, text: str) -> None:
    (tmp_path / PATH[1:]).write_text(text)
    with pytest.raises(RefusedError, match=r"is damaged .*remove it: .* quotas .*delete their pods"):
        read_promise(tree)


def test_somebody_else_has_written_it(tree: Tree) -> None:
    content = write_promise(tree, PROMISE, None)
    write_promise(tree, PROMISE._replace(found={}), content)
    with pytest.raises(RefusedError, match="was changed"):
        write_promise(tree, PROMISE._replace(quotas={}), content)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.distributions import (
    DISTRIBUTIONS,
    find_config,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree


def write(root: Path, path: str) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("kind: KubeletConfiguration\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_finds_the_file_of(distribution: tuple[str, str], tmp_path: Path) -> None:
    write(tmp_path, distribution[1])
    assert find_config(Tree(str(tmp_path))) == distribution[1]


def test_the_first_one_counts(tmp_path: Path) -> None:
    for distribution in DISTRIBUTIONS:
        write(tmp_path, distribution.config_path)
    for distribution in DISTRIBUTIONS:
        assert find_config(Tree(str(tmp_path))) == distribution.config_path
        (tmp_path / distribution.config_path.lstrip("/")).unlink()
    assert find_config(Tree(str(tmp_path))) is None


def test_finds_none(tmp_path: Path) -> None:
    write(tmp_path, "/etc/kubernetes/other.yaml")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    assert find_config(Tree(str(tmp_path))) is None


def test_does_not_leave_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "node"
    outside = write(tmp_path, "/config.yaml")
    link = write(root, "/var/lib/kubelet/config.yaml")
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(RefusedError, match="this link is not followed"):
        find_config(Tree(str(root)))


def test_each_has_its_own_path() -> None:
    paths = [distribution.config_path for distribution in DISTRIBUTIONS]
    assert len(set(paths)) == len(paths)
    assert all(path.startswith("/") for path in paths)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import Argument
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loader_entries import (
    BLS,
    GRUB,
    NO_LOADER,
    SYSTEMD_BOOT,
    ConfiguredLine,
    entries_in,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loaders import (
    changes,
    commands,
    configured_line,
    find_loader,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import loaders
from ansible_collections.kubenode.cpu_manager.tests.machines.loaders import write

WANTED = (Argument("irqaffinity", "0-1", "why"),)
KINDS: dict[str, Callable[[Path], Tree]] = {
    GRUB: lambda root: loaders.grub(root, directory={}),
    BLS: lambda root: loaders.bls(root, {"6.1": "ro"}),
    SYSTEMD_BOOT: lambda root: loaders.systemd_boot(root, {"6.1": "ro"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(tmp_path: Path, kind: str) -> None:
    tree = KINDS[kind](tmp_path)
    loader = find_loader(tree)
    assert loader.kind == kind
    assert "ro" in (configured_line(tree, loader).text or "").split()
    assert [change.path for change in changes(tree, loader, WANTED)] == [tree.path(loader.file)] * (kind != BLS)
    assert commands(tree, loader, WANTED)
    assert changes(tree, loader, None) == []
    assert commands(tree, loader, None) == []


@pytest.mark.parametrize(
    ("files", "evidence"),
    [
        ({}, "neither GRUB"),
        ({"/run/ostree-booted": ""}, "rpm-ostree kargs"),
        ({"/usr/sbin/transactional-update": ""}, "transactional-update is there"),
        ({"/etc/os-release": 'NAME=x\nID="talos"\n'}, "the system is talos"),
        ({"/usr/lib/os-release": "ID=flatcar\n"}, "the system is flatcar"),
    ],
)
@pytest.mark.parametrize("has_grub", [True, False])
def test_no_loader_is_a_state(tmp_path: Path, files: dict[str, str], evidence: str, has_grub: bool) -> None:
    if has_grub and files:
        loaders.grub(tmp_path)
    for path, text in files.items():
        write(tmp_path, path, text)
    tree = Tree(str(tmp_path))
    loader = find_loader(tree)
    assert loader.kind == NO_LOADER
    assert evidence in loader.evidence
    assert configured_line(tree, loader) == ConfiguredLine(None, "", loader.evidence)
    assert changes(tree, loader, WANTED) == []
    assert commands(tree, loader, WANTED) == []


@pytest.mark.parametrize(
    ("started_by", "kind"), [(None, GRUB), ("systemd-boot 255", SYSTEMD_BOOT), ("GRUB 2.12", GRUB)]
)
def test_two_are_there(tmp_path: Path, started_by: str | None, kind: str) -> None:
    """What has started the node says so, where it keeps to the interface."""
    tree = loaders.grub(tmp_path)
    loaders.systemd_boot(tmp_path, {"6.1": "ro"})
    if started_by is not None:
        name = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
        write(tmp_path, name, "\6\0\0\0" + (started_by + "\0").encode("utf-16-le").decode("latin-1"))
    assert find_loader(tree).kind == kind


def test_entries_are_sorted_as_versions(tmp_path: Path) -> None:
    for name in ("a-5.9-1.conf", "a-5.10-1.conf", "b", "a-0-rescue.conf"):
        write(tmp_path, "/e/" + name, "")
    found = entries_in(Tree(str(tmp_path)), "/e")
    assert found == ["/e/a-5.10-1.conf", "/e/a-5.9-1.conf", "/e/a-0-rescue.conf"]

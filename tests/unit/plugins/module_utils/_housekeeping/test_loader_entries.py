# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import Argument, block_text
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import loader_entries as bls
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loader_entries import (
    BLS,
    ConfiguredLine,
    Loader,
    configured_entries,
    entry_commands,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import loaders
from ansible_collections.kubenode.cpu_manager.tests.machines.loaders import ENTRY

WANTED = (Argument("irqaffinity", "0-1", "why"), Argument("isolcpus", "managed_irq,2-7", "why"))
BLOCK = block_text(WANTED)
OLD = block_text(WANTED[:1])
PLACE = "/boot/loader/entries/" + ENTRY
ALL = ["/usr/sbin/grubby", "--update-kernel=ALL"]


found = partial(loaders.found_by, bls.find_bls)


def test_found(tmp_path: Path) -> None:
    loader = found(loaders.bls(tmp_path, {"5.14.0-9": "ro", "5.14.0-70": "ro", "0-rescue": "ro"}))
    names = tuple(PLACE % version for version in ("5.14.0-70", "5.14.0-9", "0-rescue"))
    assert loader == Loader(BLS, "/boot/loader/entries", "", names, "/usr/sbin/grubby")


@pytest.mark.parametrize("lacks", ["usr/sbin/grubby", "boot/loader/entries/" + ENTRY % "5.14", "boot/grub2"])
def test_half_of_it(tmp_path: Path, lacks: str) -> None:
    tree = loaders.bls(tmp_path, {"5.14": "ro"})
    (tmp_path / lacks).rename(tmp_path / "gone")
    assert bls.find_bls(tree) is None


@pytest.mark.parametrize(
    ("environment", "version", "text", "problem"),
    [
        ("", "6.2", "ro new", ""),
        ("saved_entry=\n", "6.2", "ro new", ""),
        ("saved_entry=%s\n" % (ENTRY % "6.1")[:-5], "6.1", "ro old root=/dev/x", ""),
        ("saved_entry=gone\n", "6.2", "ro new", "the default entry is 'gone', and the newest was read"),
    ],
)
def test_configured_line(tmp_path: Path, environment: str, version: str, text: str, problem: str) -> None:
    entries = {"6.1": "ro old ${kernelopts} $none", "6.2": "ro new"}
    tree = loaders.bls(tmp_path, entries, environment + "kernelopts=root=/dev/x\n")
    assert configured_entries(tree, found(tree)) == ConfiguredLine(text, PLACE % version, problem)


@pytest.mark.parametrize(
    ("options", "wanted", "expected"),
    [
        (["ro", "ro"], WANTED, [["--args=" + BLOCK]]),
        (["ro " + BLOCK, "ro " + BLOCK + " quiet"], WANTED, []),
        # A new kernel that was installed meanwhile, and an older reservation.
        (["ro " + BLOCK, "ro"], WANTED, [["--remove-args=" + BLOCK], ["--args=" + BLOCK]]),
        (["ro " + OLD, "ro " + OLD], WANTED, [["--remove-args=" + OLD], ["--args=" + BLOCK]]),
        (["ro " + OLD, "ro " + BLOCK], None, [["--remove-args=" + OLD], ["--remove-args=" + BLOCK]]),
        (["ro", "ro"], None, []),
        (["ro irqaffinity=3", "ro"], None, []),
        (["ro", "ro"], (), []),
        # What is there by somebody else's hand is not ours, and stays when ours goes.
        (["irqaffinity=0,1", "irqaffinity=0-1"], WANTED, [["--args=" + block_text(WANTED[1:])]]),
    ],
)
def test_commands(
    tmp_path: Path, options: list[str], wanted: tuple[Argument, ...] | None, expected: list[list[str]]
) -> None:
    tree = loaders.bls(tmp_path, {"6.%d" % number: text for number, text in enumerate(options)})
    assert entry_commands(tree, found(tree), wanted) == [ALL + words for words in expected]


def test_arguments_in_a_variable(tmp_path: Path) -> None:
    """As in RHEL 8: all entries have the variable."""
    tree = loaders.bls(tmp_path, {"4.18": "$kernelopts $tuned_params"}, "kernelopts=ro %s\ntuned_params=\n" % BLOCK)
    assert entry_commands(tree, found(tree), WANTED) == []
    assert entry_commands(tree, found(tree), None) == [[*ALL, "--remove-args=" + BLOCK]]


@pytest.mark.parametrize(
    ("entries", "environment", "what", "where"),
    [
        ({"6.1": "ro", "6.2": "irqaffinity=2"}, "", "which somebody else sets, and", PLACE % "6.2"),
        ({"6.1": "ro", "6.2": "irqaffinity=0-1"}, "", "other entries have not", PLACE % "6.2"),
        ({"6.1": "ro $tuned_params"}, "tuned_params=isolcpus=2\n", "arguments of tuned", "/boot/grub2/grubenv"),
    ],
)
def test_refused(tmp_path: Path, entries: dict[str, str], environment: str, what: str, where: str) -> None:
    tree = loaders.bls(tmp_path, entries, environment)
    with pytest.raises(RefusedError, match=what) as caught:
        entry_commands(tree, found(tree), WANTED)
    assert caught.value.where == tree.path(where)
    assert entry_commands(tree, found(tree), None) == []

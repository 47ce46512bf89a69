# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    DEFAULT,
    FIXED,
    INTERRUPTS,
    LIST,
    MASK,
    UNREADABLE,
    KernelSetting,
    read_interrupts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write, write_layers

cpus = CPUSet.parse


def test_each_interrupt_with_a_handler(tmp_path: Path) -> None:
    write_layers(tmp_path, "0-3", "0-1")
    assert read_interrupts(Tree(str(tmp_path))) == [
        KernelSetting(INTERRUPTS, "new interrupts", DEFAULT, "3", cpus("0-1"), MASK),
        KernelSetting(INTERRUPTS, "24 eth0-0", "/proc/irq/24/smp_affinity_list", "0-1", cpus("0-1"), LIST, cpus("1")),
        KernelSetting(
            INTERRUPTS, "25 eth0-1", "/proc/irq/25/smp_affinity_list", "0-3", cpus("0-3"), LIST, cpus("3"), FIXED
        ),
        KernelSetting(INTERRUPTS, "26 eth0-2", "/proc/irq/26/smp_affinity_list", "0-1", cpus("0-1"), LIST, cpus("1")),
    ]


def test_nothing_is_there(tmp_path: Path) -> None:
    assert read_interrupts(Tree(str(tmp_path))) == []


def names(root: Path) -> list[str]:
    return [setting.name for setting in read_interrupts(Tree(str(root)))]


@pytest.mark.parametrize("content", [None, b"", b"\xff\x00", b"no columns\n 24: 1 x\n", b"24: 0  eth0\n"])
def test_without_the_names_all_are_read(tmp_path: Path, content: bytes | None) -> None:
    write_layers(tmp_path, "0-3", interrupts=1)
    (tmp_path / "proc/interrupts").unlink()
    if content is not None:
        write(tmp_path, "/proc/interrupts", content)
    assert names(tmp_path) == ["new interrupts", "5", "24"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("  5:   1   0  IO-APIC   5-edge      ACPI:Ged", "5 ACPI:Ged"),
        ("5:   1   0  IO-APIC   5-edge      ehci_hcd:usb1, eth 0", "5 ehci_hcd:usb1, eth 0"),
        # One that was never handled by anybody.
        ("5:   1   0  IO-APIC   5-edge    ", "5"),
        ("5:", "5"),
        ("5: 1 2 GICv3 27 Level  arch_timer", "5 arch_timer"),
        ("5: 1 2  \x1b[31mred", "5 \\x1b[31mred"),
    ],
)
def test_who_handles_it(tmp_path: Path, line: str, name: str) -> None:
    write_layers(tmp_path, "0-1", interrupts=0)
    write(tmp_path, "/proc/interrupts", "    CPU0   CPU1\n%s\nLOC: 1 2   Local timer interrupts\n" % line)
    assert names(tmp_path) == ["new interrupts", name]


def test_what_is_no_interrupt(tmp_path: Path) -> None:
    write_layers(tmp_path, "0-1", interrupts=1)
    for name in ("²", "24a", "9" * 20, "-1", "x"):
        write(tmp_path, "/proc/irq/%s/smp_affinity_list" % name, "0\n")
    (tmp_path / "proc/interrupts").unlink()
    assert names(tmp_path) == ["new interrupts", "5", "24"]
    # One that went away meanwhile.
    (tmp_path / "proc/irq/24/smp_affinity_list").unlink()
    assert names(tmp_path) == ["new interrupts", "5"]


@pytest.mark.parametrize("content", [b"x", b"0-", b"\xff", b"999999999", b"-1"])
def test_one_that_is_damaged_is_named(tmp_path: Path, content: bytes) -> None:
    write_layers(tmp_path, "0-1", interrupts=1)
    write(tmp_path, "/proc/irq/24/smp_affinity_list", content)
    write(tmp_path, "/proc/irq/default_smp_affinity", "zz")
    first, last = read_interrupts(Tree(str(tmp_path)))
    assert (first.problem, first.cpus, first.form) == (UNREADABLE, None, MASK)
    assert (last.problem, last.cpus, last.name) == (UNREADABLE, None, "24 eth0-0")


def test_a_damaged_effective_set_is_none(tmp_path: Path) -> None:
    write_layers(tmp_path, "0-1", interrupts=1)
    write(tmp_path, "/proc/irq/24/effective_affinity_list", "?")
    assert read_interrupts(Tree(str(tmp_path)))[-1].effective is None


def test_odd_things_in_their_places(tmp_path: Path) -> None:
    write(tmp_path, "/proc/irq", "a file")
    assert read_interrupts(Tree(str(tmp_path))) == []
    (tmp_path / "proc/irq").unlink()
    (tmp_path / "proc/irq").symlink_to("/")
    (found,) = read_interrupts(Tree(str(tmp_path)))
    assert found.problem == UNREADABLE
    (tmp_path / "proc/irq").unlink()
    (tmp_path / "proc/irq").symlink_to("irq")
    assert [setting.problem for setting in read_interrupts(Tree(str(tmp_path)))] in ([], [UNREADABLE])
    (tmp_path / "proc/interrupts").mkdir()
    (tmp_path / "proc/irq").unlink()
    assert read_interrupts(Tree(str(tmp_path))) == []


@given(st.binary(max_size=200))
def test_any_content_is_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    root = tmp_path_factory.mktemp("node")
    write_layers(root, "0-1", interrupts=1)
    write(root, "/proc/interrupts", b"CPU0 CPU1\n" + content)
    write(root, "/proc/irq/24/smp_affinity_list", content)
    for setting in read_interrupts(Tree(str(root))):
        assert setting.name.isprintable()
        assert setting.cpus is not None or setting.problem == UNREADABLE

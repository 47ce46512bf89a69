# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of this machine's own interrupts, workqueues and network devices, before and after they are changed."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    DEFAULT,
    FIXED,
    INTERRUPTS,
    LIVE_LAYERS,
    KernelSetting,
    read_interrupts,
    read_rps,
    read_watchdog,
    read_workqueues,
    text_of,
    wanted_cpus,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_info import housekeeping
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

TREE = Tree("/")
ONLINE = CPUSet.parse(Path("/sys/devices/system/cpu/online").read_text("ascii"))
FIRST = CPUSet([min(ONLINE)])


def settings() -> list[KernelSetting]:
    return [*read_interrupts(TREE), *read_workqueues(TREE), *read_rps(TREE), *read_watchdog(TREE)]


@pytest.fixture
def changeable() -> Iterator[None]:
    if os.geteuid():
        pytest.skip("only root can write the kernel's settings")
    if len(ONLINE) < 2:
        pytest.skip("this machine has one CPU")
    if not os.access(DEFAULT, os.W_OK):
        pytest.skip("%s is not there, or read-only" % DEFAULT)
    with alone():
        yield


@contextmanager
def written(setting: KernelSetting, text: str) -> Iterator[None]:
    """Give the kernel another value during the context."""
    path = Path(setting.path)
    path.write_text(text + "\n", "ascii")
    try:
        yield
    finally:
        path.write_text(setting.text + "\n", "ascii")


def test_every_setting_is_what_its_file_says() -> None:
    found = settings()
    assert len({setting.path for setting in found}) == len(found)
    for setting in found:
        assert setting.layer in LIVE_LAYERS
        assert setting.problem in ("", FIXED), setting
        assert setting.cpus is not None
        if not setting.path.endswith("/workqueue/cpumask"):
            assert Path(setting.path).read_text("ascii").rstrip("\n") == setting.text


def test_every_interrupt_of_the_kernels_list_is_read() -> None:
    lines = Path("/proc/interrupts").read_text("utf-8").splitlines()
    numbers = [line.split(":")[0].strip() for line in lines if line.split(":")[0].strip().isdigit()]
    found = [setting.name for setting in read_interrupts(TREE) if setting.path != DEFAULT]
    assert [name.split(" ")[0] for name in found] == numbers
    for name, line in zip(found, (line for line in lines if line.split(":")[0].strip().isdigit())):
        assert line.endswith(name.partition(" ")[2])


def test_what_is_written_is_read_again(changeable: None) -> None:
    before = settings()
    tried = 0
    for setting in before:
        wanted = wanted_cpus(setting, FIRST, ONLINE)
        if wanted is None or setting.problem:
            continue
        with written(setting, text_of(setting, wanted)):
            (after,) = (found for found in settings() if found.path == setting.path)
            assert after.cpus == wanted, setting
            # An interrupt moves when it comes the next time.
            assert after.layer == INTERRUPTS or after.effective in (None, wanted)
            assert wanted_cpus(after, FIRST, ONLINE) is None
            tried += 1
    assert tried > 0
    assert [setting.text for setting in settings()] == [setting.text for setting in before]


def test_packets_are_worked_on_elsewhere(changeable: None) -> None:
    queue = next((mask for mask in read_rps(TREE) if mask.name.startswith("lo ") and not mask.problem), None)
    if queue is None:
        pytest.skip("lo has no receive queue")
    with written(queue, ONLINE.to_mask()):
        (found,) = (mask for mask in read_rps(TREE) if mask.path == queue.path)
        assert (found.cpus, wanted_cpus(found, FIRST, ONLINE)) == (ONLINE, FIRST)
    assert [mask.text for mask in read_rps(TREE) if mask.path == queue.path] == [queue.text]


def test_an_interrupt_without_a_write_bit_refuses(changeable: None) -> None:
    fixed = [mask for mask in read_interrupts(TREE) if mask.problem == FIXED]
    if not fixed:
        pytest.skip("the kernel manages no interrupt itself, or shows none")
    with pytest.raises(OSError, match=r"Operation not permitted|Input/output error"):
        # Root may open it all the same.
        Path(fixed[0].path).write_text(fixed[0].text + "\n", "ascii")


def answer() -> dict[str, Any]:
    return housekeeping(Node(TREE), FIRST)


def test_the_report_of_this_machine(changeable: None) -> None:
    before = answer()
    rows = [*before["interrupts"], *before["layers"]]
    assert {row["layer"] for row in rows} >= {"interrupts"}
    assert before["online"] == str(ONLINE)
    to_do = [row for row in rows if row["layer"] == "workqueues" and row["wanted"] is not None]
    subjects = {finding["subject"] for finding in before["findings"]}
    assert ("workqueues" in subjects) is bool(to_do)
    # All unbound workqueues together are enough.
    every = next((mask for mask in read_workqueues(TREE) if mask.path.endswith("workqueue/cpumask")), None)
    if every is not None:
        with written(every, FIRST.to_mask()):
            assert "workqueues" not in {finding["subject"] for finding in answer()["findings"]}

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    BANNED_LIST,
    BANNED_MASK,
    Irqbalance,
    banned_text,
    read_irqbalance,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.services import read_environment
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.collector import Collector
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_layers
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

PROGRAM, DEBIAN, RED_HAT = "/usr/sbin/irqbalance", "/etc/default/irqbalance", "/etc/sysconfig/irqbalance"
NEW = b"\x7fELF\0IRQBALANCE_BANNED_CPUS\0IRQBALANCE_BANNED_CPULIST\0"
NEWEST = b"\x7fELF\0IRQBALANCE_BANNED_CPULIST\0"
OLD = b"\x7fELF\0IRQBALANCE_BANNED_CPUS\0"


def test_there_is_none(tmp_path: Path) -> None:
    assert read_irqbalance(Tree(str(tmp_path))) is None
    write(tmp_path, "/etc/sysconfig/network", "")
    assert read_irqbalance(Tree(str(tmp_path))) is None


@pytest.mark.parametrize(
    ("program", "file", "text", "key", "banned"),
    [
        (NEW, DEBIAN, "", BANNED_LIST, None),
        (NEW, DEBIAN, "#IRQBALANCE_BANNED_CPULIST=1\n", BANNED_LIST, None),
        (NEW, DEBIAN, "IRQBALANCE_BANNED_CPULIST=2-7\n", BANNED_LIST, "2-7"),
        (NEW, DEBIAN, 'IRQBALANCE_BANNED_CPULIST=""\n', BANNED_LIST, None),
        # The mask wins, also where it says that no CPU is banned.
        (NEW, DEBIAN, "IRQBALANCE_BANNED_CPUS=0\nIRQBALANCE_BANNED_CPULIST=2-7\n", BANNED_MASK, ""),
        (NEW, RED_HAT, "IRQBALANCE_BANNED_CPULIST=2-7\nIRQBALANCE_BANNED_CPUS=f0,000000fc\n", BANNED_MASK, "2-7,36-39"),
        (NEW, RED_HAT, "IRQBALANCE_BANNED_CPUS=\nIRQBALANCE_BANNED_CPULIST=2\n", BANNED_LIST, "2"),
        # An old version does not have the list.
        (OLD, RED_HAT, "IRQBALANCE_BANNED_CPULIST=2-7\n", BANNED_MASK, None),
        (OLD, RED_HAT, "", BANNED_MASK, None),
        (None, RED_HAT, "IRQBALANCE_BANNED_CPULIST=2\n", BANNED_LIST, "2"),
        # A version without the mask.
        (NEWEST, RED_HAT, "IRQBALANCE_BANNED_CPUS=f\nIRQBALANCE_BANNED_CPULIST=2\n", BANNED_LIST, "2"),
        (NEWEST, RED_HAT, "IRQBALANCE_BANNED_CPULIST=-\n", BANNED_LIST, ""),
        (b"a script", RED_HAT, "IRQBALANCE_BANNED_CPUS=f\n", BANNED_MASK, "0-3"),
    ],
)
def test_what_is_banned(
    tmp_path: Path, program: bytes | None, file: str, text: str, key: str, banned: str | None
) -> None:
    if program is not None:
        write(tmp_path, PROGRAM, program)
    write(tmp_path, file, text)
    found = read_irqbalance(Tree(str(tmp_path)))
    assert found is not None
    assert (found.file, found.key, found.problem) == (file, key, "")
    assert (None if found.banned is None else str(found.banned)) == banned
    assert (found.is_installed, found.is_running) == (program is not None, False)


def test_what_cannot_be_read_as_cpus(tmp_path: Path) -> None:
    write(tmp_path, DEBIAN, "IRQBALANCE_BANNED_CPULIST=2 # the others\n")
    found = read_irqbalance(Tree(str(tmp_path)))
    assert found is not None
    assert found.banned is None
    assert "position 2" in found.problem


@pytest.mark.parametrize(
    "mark",
    [
        "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs",
        "/sys/fs/cgroup/systemd/system.slice/irqbalance.service/tasks",
        "/run/irqbalance/irqbalance12.sock",
        "/run/irqbalance.pid",
    ],
)
def test_it_runs(tmp_path: Path, mark: str) -> None:
    write(tmp_path, mark, "")
    write(tmp_path, DEBIAN, "")
    tree = Tree(str(tmp_path))
    found = read_irqbalance(tree)
    assert found is not None
    # A mark that was left.
    assert not found.is_running
    write(tmp_path, PROGRAM, NEW)
    found = read_irqbalance(tree)
    assert found is not None
    assert found.is_running


def test_the_files_of_its_unit(tmp_path: Path) -> None:
    write(tmp_path, PROGRAM, NEW)
    unit = "[Service]\nEnvironmentFile=-/usr/lib/irqbalance/defaults.env\nEnvironmentFile=-/etc/irqbalance.env\n"
    write(tmp_path, "/usr/lib/systemd/system/irqbalance.service", unit)
    tree = Tree(str(tmp_path))
    found = read_irqbalance(tree)
    assert found is not None
    # It is to be written where it is not there yet.
    assert (found.file, found.key, found.banned) == ("/etc/irqbalance.env", BANNED_LIST, None)
    write(tmp_path, "/usr/lib/irqbalance/defaults.env", "IRQBALANCE_BANNED_CPULIST=3\n")
    found = read_irqbalance(tree)
    assert found is not None
    assert (found.file, found.banned) == ("/usr/lib/irqbalance/defaults.env", CPUSet([3]))
    write(tmp_path, "/etc/irqbalance.env", "IRQBALANCE_BANNED_CPULIST=4\n")
    found = read_irqbalance(tree)
    assert found is not None
    assert (found.file, found.banned) == ("/etc/irqbalance.env", CPUSet([4]))


PLACE, DROP_IN = "/etc/systemd/system", "/etc/systemd/system/irqbalance.service.d/override.conf"
UNIT = "/usr/lib/systemd/system/irqbalance.service"
RUN = "ExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS"
READS = "EnvironmentFile=-%s\n%s" % (DEBIAN, RUN)
COMMAND = "ExecStart= of irqbalance.service"
LIST, MASK = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS"
# A drop-in file, and the file of the package.
OURS, FIVE = "Environment=%s=2-7" % LIST, LIST + "=5\n"
ENV = "ExecStart=\nExecStart=/usr/bin/env %s=2-7 /usr/sbin/irqbalance --foreground" % LIST
SHELL = "Environment=OURS=6\nExecStart=\nExecStart=/bin/sh -c '%s=2,${OURS} exec irqbalance -f'" % LIST


def told(files: dict[str, str | bytes], root: Path) -> Irqbalance:
    """Return what is read of a node with these files, and of its copy, too."""
    for path, text in {PROGRAM: NEW, **files}.items():
        write(root / "node", path, text)
    found = read_irqbalance(Tree(str(root / "node")))
    assert found is not None
    collector = Collector(Tree(str(root / "node")))
    save_layers(collector)
    for path, member in collector.members.items():
        if member.content is not None:
            write(root / "copy", path, member.content)
    assert read_irqbalance(Tree(str(root / "copy"))) == found
    return found


@pytest.mark.parametrize(
    ("drop_in", "text", "banned", "source", "file"),
    [
        ('Environment="%s=2-7"' % LIST, "", "2-7", DROP_IN, DEBIAN),
        ("Environment=A=1 %s=fc" % MASK, "", "2-7", DROP_IN, DEBIAN),
        # A file comes after all units, and what is empty takes back what came before.
        (OURS, FIVE, "5", DEBIAN, DEBIAN),
        (OURS, LIST + "=\n", None, DEBIAN, DEBIAN),
        ("EnvironmentFile=\nEnvironmentFile=/etc/i.env", FIVE, None, "/etc/i.env", "/etc/i.env"),
        (OURS + "\nEnvironment=", "", None, DEBIAN, DEBIAN),
        ("UnsetEnvironment=A " + LIST, FIVE, None, DEBIAN, DEBIAN),
        # The mask wins, wherever the list is.
        ("Environment=%s=4" % MASK, FIVE, "2", DROP_IN, DEBIAN),
        # Its command line sets them, and then no file does.
        (ENV, FIVE, "2-7", COMMAND, ""),
        (SHELL, FIVE, "2,6", COMMAND, ""),
        ("ExecStart=\nExecStart=/usr/sbin/irqbalance %s=2" % LIST, "", None, DEBIAN, DEBIAN),
        # A unit that reads no file.
        ("EnvironmentFile=", FIVE, None, "", ""),
    ],
)
def test_what_systemd_gives_it(
    tmp_path: Path, drop_in: str, text: str, banned: str | None, source: str, file: str
) -> None:
    found = told({UNIT: "[Service]\n" + READS, DEBIAN: text, DROP_IN: "[Service]\n" + drop_in}, tmp_path)
    assert (None if found.banned is None else str(found.banned)) == banned
    assert (found.source, found.file) == (source, file)


@pytest.mark.parametrize("place", [PLACE + "/service.d/", PLACE + ".control/irqbalance.service.d/"])
def test_other_places_of_drop_in_files(tmp_path: Path, place: str) -> None:
    found = told({UNIT: "[Service]\n" + READS, place + "50.conf": "[Service]\n" + OURS}, tmp_path)
    assert (str(found.banned), found.source) == ("2-7", place + "50.conf")


def test_what_no_file_overrides_is_set_by_hand(tmp_path: Path) -> None:
    found = told({UNIT: "[Service]\n" + READS, DROP_IN: "[Service]\n" + ENV}, tmp_path)
    assert found.by_hand(CPUSet((2, 3))) == (
        "set IRQBALANCE_BANNED_CPULIST=2-3 in ExecStart= of irqbalance.service, which no file of variables overrides"
    )


def test_a_command_line_without_its_secrets(tmp_path: Path) -> None:
    command = "ExecStart=/usr/bin/env TOKEN=hunter2 IRQBALANCE_BANNED_CPULIST=2 /usr/sbin/irqbalance --x=hunter2\n"
    write(tmp_path, UNIT, "[Service]\nEnvironment=A=hunter2\nUnsetEnvironment=B=hunter2\n" + command)
    write(tmp_path, PROGRAM, NEW)
    collector = Collector(Tree(str(tmp_path)))
    save_layers(collector)
    saved = collector.members[UNIT].content
    assert saved is not None
    assert b"hunter2" not in saved
    assert b"IRQBALANCE_BANNED_CPULIST=2" in saved


@pytest.mark.parametrize(
    ("content", "key", "changed"),
    [
        (b"", BANNED_LIST, b"IRQBALANCE_BANNED_CPULIST=2-3,34\n"),
        (b"# \xff\nA=1", BANNED_MASK, b"# \xff\nA=1\nIRQBALANCE_BANNED_CPUS=4,0000000c\n"),
        (
            b'A=1\nIRQBALANCE_BANNED_CPULIST="1"\nB=2\n',
            BANNED_LIST,
            b"A=1\nIRQBALANCE_BANNED_CPULIST=2-3,34\nB=2\n",
        ),
        (b'IRQBALANCE_BANNED_CPULIST="2-3,34"\n', BANNED_LIST, b'IRQBALANCE_BANNED_CPULIST="2-3,34"\n'),
    ],
)
def test_one_line_is_changed(content: bytes, key: str, changed: bytes) -> None:
    assert banned_text(content, CPUSet.parse("2-3,34"), key) == changed


def test_no_cpu_is_banned() -> None:
    assert banned_text(b"", CPUSet(), BANNED_MASK) == b"IRQBALANCE_BANNED_CPUS=0\n"
    assert banned_text(b"", CPUSet(), BANNED_LIST) == b"IRQBALANCE_BANNED_CPULIST=-\n"


@given(st.binary(max_size=60), st.integers(1, 1 << 40), st.sampled_from([BANNED_LIST, BANNED_MASK]))
def test_any_file_can_be_changed_once(content: bytes, mask: int, key: str) -> None:
    banned = CPUSet.from_mask(mask)
    try:
        changed = banned_text(content, banned, key)
    except RefusedError:
        return
    assert banned_text(changed, banned, key) == changed
    value = read_environment(changed.decode("latin-1")).get(key, "")
    assert (CPUSet.parse_mask(value) if key == BANNED_MASK else CPUSet.parse(value)) == banned

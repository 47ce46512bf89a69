# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.systemd import (
    manager_settings,
    merged_cpus,
    settings_in,
    unit_paths,
    unit_settings,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("[Slice]\nA=1\n", [("A", "1")]),
        ("A=1\n[Slice]\nA = 2 \n[Unit]\nA=3\n[Slice]\nB=4", [("A", "2"), ("B", "4")]),
        ("[Slice]\n#A=1\n;A=2\n A=3\n", [("A", "3")]),
        ("[Slice]\nA=1 \\\n# comment\n 2\nB=\n", [("A", "1  2"), ("B", "")]),
        ("[Slice]\r\nA=1\r\n", [("A", "1")]),
        ("[slice]\nA=1\n", []),
        ("[Slice]\nA\n", []),
    ],
)
def test_what_a_section_says(text: str, found: list[tuple[str, str]]) -> None:
    assert list(settings_in(text, "[Slice]")) == found


def slice_of(cpus: str) -> str:
    return "[Slice]\nAllowedCPUs=%s\n" % cpus


def test_the_files_of_a_unit_in_their_order(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    for place, cpus in {
        "/usr/lib/systemd/system/a-b.slice": "0",
        "/etc/systemd/system/a-b.slice": "1",
        "/usr/lib/systemd/system/slice.d/10-kind.conf": "2",
        "/usr/lib/systemd/system/a-.slice.d/20-stem.conf": "3",
        "/etc/systemd/system/a-b.slice.d/05-own.conf": "4",
        # A file hides those of its name in places that count less.
        "/run/systemd/system/a-b.slice.d/05-own.conf": "5",
        "/usr/lib/systemd/system/a-b.slice.d/20-stem.conf": "6",
        "/etc/systemd/system.control/a-b.slice.d/50-AllowedCPUs.conf": "7",
        "/etc/systemd/system/a-b.slice.d/x.txt": "8",
        "/etc/systemd/system/a.slice.d/y.conf": "9",
        "/etc/systemd/system/service.d/y.conf": "10",
    }.items():
        write(tmp_path, place, slice_of(cpus))
    assert unit_settings(tree, "a-b.slice", "AllowedCPUs") == [
        ("/etc/systemd/system/a-b.slice", "1"),
        ("/etc/systemd/system/a-b.slice.d/05-own.conf", "4"),
        ("/usr/lib/systemd/system/slice.d/10-kind.conf", "2"),
        ("/usr/lib/systemd/system/a-b.slice.d/20-stem.conf", "6"),
        ("/etc/systemd/system.control/a-b.slice.d/50-AllowedCPUs.conf", "7"),
    ]
    assert unit_settings(tree, "a-b.slice", "CPUAffinity") == []


def test_the_stems_of_a_name(tmp_path: Path) -> None:
    for directory in ("a-b-c.slice.d", "a-b-.slice.d", "a-.slice.d", "a-b.slice.d"):
        write(tmp_path, "/etc/systemd/system/%s/%s.conf" % (directory, directory), "")
    names = [Path(path).name for path in unit_paths(Tree(str(tmp_path)), "a-b-c.slice")]
    assert names == ["a-.slice.d.conf", "a-b-.slice.d.conf", "a-b-c.slice.d.conf"]
    for unit in ("-.slice", "--.slice", "a", "a-", "-a.slice", ".slice"):
        assert unit_paths(Tree(str(tmp_path)), unit) == []


def test_a_masked_or_damaged_file_says_nothing(tmp_path: Path) -> None:
    drop_ins = "/etc/systemd/system/a.slice.d/"
    write(tmp_path, drop_ins + "1.conf", b"[Slice]\nAllowedCPUs=\xff\n")
    (tmp_path / (drop_ins + "2.conf").lstrip("/")).symlink_to("/dev/null")
    (tmp_path / (drop_ins + "3.conf").lstrip("/")).mkdir()
    assert unit_settings(Tree(str(tmp_path)), "a.slice", "AllowedCPUs") == [(drop_ins + "1.conf", "\udcff")]


def test_the_manager(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert manager_settings(tree, "CPUAffinity") == []
    write(tmp_path, "/usr/lib/systemd/system.conf", "[Manager]\nCPUAffinity=0\n")
    assert manager_settings(tree, "CPUAffinity") == [("/usr/lib/systemd/system.conf", "0")]
    write(tmp_path, "/etc/systemd/system.conf", "[Manager]\n#CPUAffinity=\n[Slice]\nCPUAffinity=9\n")
    write(tmp_path, "/run/systemd/system.conf.d/20.conf", "[Manager]\nCPUAffinity=2\n")
    write(tmp_path, "/etc/systemd/system.conf.d/10.conf", "[Manager]\nCPUAffinity=1\n")
    assert manager_settings(tree, "CPUAffinity") == [
        ("/etc/systemd/system.conf.d/10.conf", "1"),
        ("/run/systemd/system.conf.d/20.conf", "2"),
    ]


@pytest.mark.parametrize(
    ("values", "cpus", "path"),
    [
        (["0-1"], "0-1", "0"),
        (["0 1,3  5-6"], "0-1,3,5-6", "0"),
        (["0", "4"], "0,4", "1"),
        (["0", "", "4"], "4", "2"),
        # systemd leaves out what it cannot read.
        (["0", "x"], "0", "0"),
        (["0", "3-1"], "0", "0"),
        (["0", "0-7:1/2"], "0", "0"),
        (["\"0\" '1'"], "0-1", "0"),
        (["numa"], None, "0"),
        (["numa", "2"], "2", "1"),
    ],
)
def test_lists_of_several_places_are_one(values: list[str], cpus: str | None, path: str) -> None:
    found = merged_cpus([(str(number), value) for number, value in enumerate(values)])
    assert found is not None
    assert (None if found.cpus is None else str(found.cpus), found.path) == (cpus, path)


@pytest.mark.parametrize("values", [[], [""], ["0", ""], ["x"], ["numa", " "]])
def test_no_list(values: list[str]) -> None:
    assert merged_cpus([("x", value) for value in values]) is None


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for name, value in settings_in("[Slice]\n" + text, "[Slice]"):
        found = merged_cpus([(name, value)])
        assert found is None or found.path == name

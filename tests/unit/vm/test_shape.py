# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/vm/shape.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.tests.vm.shape import Place, find_shape, read_shapes

GOOD = """
one:
  sockets: 2
  cores: 2
  threads: 2
  numbering: %s
  numa_nodes:
    - {cores: 0-1, memory: 64}
    - {cores: 2-3}
    - {memory: 32}
"""


def shape_of(directory: Path, text: str) -> None:
    file = directory / "shapes.yml"
    file.write_text(text, encoding="utf-8")
    read_shapes(file)


@pytest.mark.parametrize("name", read_shapes())
def test_each_shape_has_its_name_for_what_it_is(name: str) -> None:
    shape = find_shape(name)
    counts = [(shape.sockets, "s"), (shape.cores, "c")] if shape.sockets > 1 else [(shape.cores, "c")]
    assert all("%d%s" % count in name for count in counts)
    assert len(shape.numbered_places()) == shape.cpus == len(set(shape.places()))


@pytest.mark.parametrize(
    ("numbering", "second", "fourth"),
    [
        ("adjacent", Place(0, 0, 0, 1), Place(0, 0, 1, 1)),
        ("threads-last", Place(0, 0, 1, 0), Place(1, 0, 1, 0)),
        ("interleaved", Place(1, 0, 0, 0), Place(1, 0, 1, 0)),
    ],
)
def test_numbering(tmp_path: Path, numbering: str, second: Place, fourth: Place) -> None:
    file = tmp_path / "shapes.yml"
    file.write_text(GOOD % numbering, encoding="utf-8")
    places = read_shapes(file)["one"].numbered_places()
    assert (places[0], places[1], places[3]) == (Place(0, 0, 0, 0), second, fourth)


@pytest.mark.parametrize(
    ("found", "replaced", "message"),
    [
        ("  cores: 2\n", "", "one: a shape needs cores"),
        ("threads", "strands", "one: a shape knows no strands"),
        ("cores: 2\n", "cores: 0\n", "one: sockets, dies, cores and threads are 1 at least"),
        ("sockets: 2", "sockets: 99", "one: has 396 CPUs, and QEMU takes 255"),
        ("adjacent", "random", "one: numbering is one of threads-last, interleaved, adjacent"),
        ("threads: 2", "cgroup: 3", "one: cgroup is 1 or 2"),
        ("cores: 2-3", "cores: 1-3", "one: each of its 4 cores is in one NUMA node"),
        ("cores: 2-3", "cores: 2", "one: each of its 4 cores is in one NUMA node"),
        ("cores: 2-3", "cpus: 2-3", "one: a NUMA node has cores and memory, or one of them"),
        (", memory: 64", "", "one: the first NUMA node has memory: the kernel starts there"),
        ("threads: 2", "distances: [[10]]", "one: distances are 3 rows of 3"),
        ("threads: 2", "plugged_later: 4", "one: plugged_later is less than its 4 CPUs"),
        ("threads: 2", "kernel: quiet", "one: kernel is a list of arguments, each a text"),
        ("threads: 2", "kernel: [1]", "one: kernel is a list of arguments, each a text"),
    ],
)
def test_wrong_shapes(tmp_path: Path, found: str, replaced: str, message: str) -> None:
    text = GOOD % "adjacent"
    assert found in text
    with pytest.raises(InputError, match=message):
        shape_of(tmp_path, text.replace(found, replaced, 1))


def test_cpus_that_are_plugged_later_are_the_last(tmp_path: Path) -> None:
    text = (GOOD % "interleaved").replace("  threads: 2\n", "  plugged_later: 1\n")
    with pytest.raises(InputError, match="numbering must be adjacent"):
        shape_of(tmp_path, text)


def test_no_such_shape() -> None:
    with pytest.raises(InputError, match=r"there is no shape cray; shapes\.yml has small-2s2c2t, "):
        find_shape("cray")

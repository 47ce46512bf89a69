# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import isolation_drift, isolation_notes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name


@pytest.mark.parametrize(
    ("name", "reserved", "expected"),
    [
        ("8c", "0-1", []),
        ("8c+isolated2-7+nohz2-7", "0-1", []),
        ("8c+isolated2-7+nohz2-7", "", []),
        ("8c+isolated1-7", "0-1", [("isolated", "2-7", "1-7")]),
        ("8c+isolated0-1", "0-1", [("isolated", "", "0-1")]),
        ("8c+isolated1-7+nohz1", "0-1", [("isolated", "2-7", "1-7"), ("nohz_full", "", "1")]),
    ],
)
def test_a_reservation_of_isolated_cpus(name: str, reserved: str, expected: list[tuple[str, str, str]]) -> None:
    drift = isolation_drift(parse_name(name).topology(), CPUSet.parse(reserved), CPUSet())
    assert [(row["subject"], row["wanted"], row["found"]) for row in drift] == expected
    parameters = {"isolated": "isolcpus", "nohz_full": "nohz_full"}
    for row in drift:
        assert "out of %s= on the kernel's command line" % parameters[row["subject"]] in row["remedy"]


def test_reserved_cpus_of_a_partition() -> None:
    """What runs there is to be left alone by the host, too."""
    topology = parse_name("8c+isolated1-7+nohz3-7").topology()
    drift = isolation_drift(topology, CPUSet.parse("0-3"), CPUSet.parse("2-3"))
    assert [(row["subject"], row["wanted"]) for row in drift] == [("isolated", "2-7")]


@pytest.mark.parametrize(
    ("name", "shared", "exclusive", "expected"),
    [
        ("8c", "0-5", "6-7", []),
        ("8c+isolated4-7", "0-3", "4-5", []),
        ("8c+isolated4-7", "0-5", "6-7", ["the shared pool has the isolated CPUs 4-5, over which"]),
        ("8c+isolated4-7", "0-1", "2-5", ["the exclusive CPUs 2-3 are not isolated, as CPUs 4-7 are"]),
        ("8c+offline7+isolated7", "0-5", "6", []),
    ],
)
def test_notes(name: str, shared: str, exclusive: str, expected: list[str]) -> None:
    notes = isolation_notes(parse_name(name).topology(), CPUSet.parse(shared), CPUSet.parse(exclusive))
    assert [note.startswith(text) for note, text in zip(notes, expected)] == [True] * len(expected)
    assert len(notes) == len(expected)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_owners/owners.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    Tuned,
    essence,
    isolated_in,
    read_tuned,
    with_isolated,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines import owned

# In short what tuned's own profiles have.
PARTITIONING = """\
[main]
summary=Optimize for CPU partitioning
include=network-latency

[variables]
include=/etc/tuned/cpu-partitioning-variables.conf
isolated_cores = ${isolated_cores}

[irqbalance]
banned_cpus=${isolated_cores}
"""
LATENCY = "[main]\nsummary=low latency\n\n[sysctl]\nnet.core.busy_poll=50\n"
VARIABLES = """\
# Examples:
# isolated_cores=2,4-7
isolated_cores=2-7
#
no_balance_cores=5
"""
ACTIVE, VARIABLES_PATH = "etc/tuned/active_profile", "etc/tuned/cpu-partitioning-variables.conf"
OLD, NEW = "usr/lib/tuned/%s/tuned.conf", "usr/lib/tuned/profiles/%s/tuned.conf"
SITE = "etc/tuned/%s/tuned.conf"


def node(root: Path, files: dict[str, str]) -> Tree:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Tree(str(root))


@pytest.mark.parametrize("place", [OLD, NEW, SITE])
def test_cpu_partitioning(place: str, tmp_path: Path) -> None:
    files = {
        ACTIVE: "cpu-partitioning\n",
        "etc/tuned/profile_mode": "manual\n",
        VARIABLES_PATH: VARIABLES,
        place % "cpu-partitioning": PARTITIONING,
        OLD % "network-latency": LATENCY,
    }
    assert read_tuned(node(tmp_path, files)) == Tuned(
        ("cpu-partitioning",),
        "manual",
        True,
        "2-7",
        CPUSet(range(2, 8)),
        "/" + VARIABLES_PATH,
        (
            "/" + ACTIVE,
            "/" + place % "cpu-partitioning",
            "/" + OLD % "network-latency",
            "/" + VARIABLES_PATH,
        ),
        ("irqbalance",),
    )


@pytest.mark.parametrize(
    ("files", "profiles", "isolates", "text"),
    [
        pytest.param({ACTIVE: "network-latency\n", OLD % "network-latency": LATENCY}, 1, False, "", id="another"),
        pytest.param({ACTIVE: "cpu-partitioning\n"}, 1, True, "", id="without its file"),
        pytest.param({ACTIVE: "realtime-virtual-host"}, 1, True, "", id="realtime without its file"),
        pytest.param({ACTIVE: "balanced"}, 1, False, "", id="another without its file"),
        pytest.param(
            {
                ACTIVE: "site",
                SITE % "site": "[main]\ninclude=cpu-partitioning\n",
                OLD % "cpu-partitioning": PARTITIONING,
            },
            1,
            True,
            "",
            id="a child",
        ),
        pytest.param(
            {
                ACTIVE: "site",
                SITE % "site": "[main]\ninclude=cpu-partitioning\n[variables]\nisolated_cores='3,5'\n",
                OLD % "cpu-partitioning": PARTITIONING,
                VARIABLES_PATH: VARIABLES,
            },
            1,
            True,
            "3,5",
            id="a child with CPUs of its own",
        ),
        pytest.param(
            {
                ACTIVE: "balanced cpu-partitioning",
                OLD % "balanced": LATENCY,
                OLD % "cpu-partitioning": PARTITIONING,
                VARIABLES_PATH: "isolated_cores=${f:calc_isolated_cores:1}\n",
            },
            2,
            True,
            "${f:calc_isolated_cores:1}",
            id="two, and a function",
        ),
        pytest.param(
            {ACTIVE: "site", SITE % "site": "[main]\ninclude=site\n"}, 1, False, "", id="one that includes itself"
        ),
        pytest.param(
            {ACTIVE: "../x", "etc/x/tuned.conf": PARTITIONING}, 1, False, "", id="a name that leads elsewhere"
        ),
        pytest.param(
            {ACTIVE: "site", SITE % "site": "[main]\ninclude=${f:virt_check:a:b}, cpu-partitioning\n"}
            | {OLD % "cpu-partitioning": PARTITIONING},
            1,
            True,
            "",
            id="one that only tuned can work out",
        ),
        pytest.param({ACTIVE: "x", SITE % "x": "[scheduler]\nisolated_cores=1\n"}, 1, True, "1", id="its scheduler"),
        pytest.param({ACTIVE: "x", SITE % "x": "; [scheduler]\n#isolated_cores=1\nx\n"}, 1, False, "", id="comments"),
    ],
)
def test_profiles(files: dict[str, str], profiles: int, isolates: bool, text: str, tmp_path: Path) -> None:
    tuned = read_tuned(node(tmp_path, files))
    assert tuned is not None
    assert (len(tuned.profiles), tuned.isolates, tuned.isolated_text) == (profiles, isolates, text)
    assert (tuned.isolated is None) == (not text or "$" in text)


@pytest.mark.parametrize("is_saved", [False, True])
def test_what_a_profile_sets(is_saved: bool, tmp_path: Path) -> None:
    files = dict(owned.TUNED_FILES)
    if is_saved:
        for path in (owned.TUNED_PROFILE, owned.TUNED_VARIABLES):
            files[path] = essence(files[path])
            assert essence(files[path]) == files[path]
        assert "secret" not in files[owned.TUNED_PROFILE]
    tuned = read_tuned(node(tmp_path, files))
    assert tuned is not None
    assert (tuned.isolated, tuned.variables) == (CPUSet.parse("6-7"), "/" + owned.TUNED_VARIABLES)
    assert tuned.layers == ("interrupts", "workqueues", "irqbalance", "manager")
    assert tuned.arguments == ("nohz_full", "rcu_nocbs")
    assert not tuned.is_worked_out


@pytest.mark.parametrize(
    ("child", "left_out"),
    [
        ("[irqbalance]\nenabled=0\n", {"irqbalance"}),
        ("[irqbalance]\nenabled=1\n", set()),
        ("[irqbalance]\nreplace=1\n", {"irqbalance"}),
        ("[irqbalance]\nreplace=1\nbanned_cpus=1\n", set()),
        ("[systemd]\ndrop=cpu_affinity\n", {"manager"}),
        ("[systemd]\ndrop=x, cpu_affinity\nenabled=true\n", {"manager"}),
        ("[scheduler]\nirq_process=0\n", {"interrupts"}),
        ("[scheduler]\ntype=script\n", {"interrupts"}),
        ("[mine]\ntype=scheduler\nisolated_cores=1\n[scheduler]\nenabled=false\n", set()),
        ("[sysfs]\nreplace=true\n/sys/kernel/x=1\n", {"workqueues"}),
        ("[sysfs]\nreplace=true\n/sys/bus/workqueue/devices/writeback/cpumask=1\n", set()),
        ("[other]\nenabled=0\n", set()),
    ],
)
@pytest.mark.parametrize("is_saved", [False, True])
def test_what_a_profile_leaves_out(child: str, left_out: set[str], is_saved: bool, tmp_path: Path) -> None:
    child = "[main]\ninclude=cpu-partitioning\n" + child
    files = {**owned.TUNED_FILES, ACTIVE: "site", SITE % "site": essence(child) if is_saved else child}
    tuned = read_tuned(node(tmp_path, files))
    assert tuned is not None
    assert tuned.isolates
    assert set(tuned.layers) == {"interrupts", "workqueues", "irqbalance", "manager"} - left_out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "isolated_cores=2-7\n"),
        ("x=1", "x=1\nisolated_cores=2-7\n"),
        ("x=1\n", "x=1\nisolated_cores=2-7\n"),
        ("isolated_cores=1\n", "isolated_cores=2-7\n"),
        ("isolated_cores=1", "isolated_cores=2-7"),
        ("isolated_cores=\n", "isolated_cores=2-7\n"),
        ("isolated_cores = 1,3 \nx=1", "isolated_cores = 2-7 \nx=1"),
        ("isolated_cores='1'\r\nx=1\r\n", "isolated_cores=2-7\r\nx=1\r\n"),
        ("isolated_cores=1 # why\n", "isolated_cores=2-7 # why\n"),
        ("isolated_cores= # why\n", "isolated_cores=2-7 # why\n"),
        ("isolated_cores=1\nisolated_cores=3\n", "isolated_cores=1\nisolated_cores=2-7\n"),
        ("# isolated_cores=1\n;isolated_cores=1\n", "# isolated_cores=1\n;isolated_cores=1\nisolated_cores=2-7\n"),
        ("no_isolated_cores=1\n", "no_isolated_cores=1\nisolated_cores=2-7\n"),
        ("\u00e9\u0085=1\nisolated_cores=1\n", "\u00e9\u0085=1\nisolated_cores=2-7\n"),
        ("isolated_cores=${f:calc_isolated_cores:1}\n", "isolated_cores=2-7\n"),
    ],
)
def test_only_the_isolated_cpus_are_written(before: str, after: str) -> None:
    cpus = CPUSet.parse("2-7")
    written = with_isolated(before.encode("latin-1"), cpus)
    assert written == after.encode("latin-1")
    assert isolated_in(written) == cpus
    assert with_isolated(written, cpus) == written


@given(st.binary(max_size=200))
def test_any_file_of_variables_can_be_written(content: bytes) -> None:
    cpus = CPUSet.parse("1,3-4")
    written = with_isolated(content, cpus)
    assert with_isolated(written, cpus) == written
    assert len(written.splitlines()) - len(content.splitlines()) in (0, 1)


@pytest.mark.parametrize("text", ["2-7 # all", "2-7\t#", "'2-7'", "2-7"])
def test_a_comment_behind_a_value(text: str) -> None:
    assert isolated_in(b"isolated_cores=%s\n" % text.encode()) == CPUSet.parse("2-7")


@pytest.mark.parametrize("files", [{}, {ACTIVE: ""}, {ACTIVE: " \n"}, {ACTIVE + "/directory": ""}])
def test_without_a_profile(files: dict[str, str], tmp_path: Path) -> None:
    assert read_tuned(node(tmp_path, files)) is None


def test_hostile_content(tmp_path: Path) -> None:
    tree = node(tmp_path, {OLD % "cpu-partitioning": PARTITIONING, ACTIVE: "cpu-partitioning"})
    (tmp_path / VARIABLES_PATH).write_bytes(b"\xff\xfe\x00isolated_cores=1\nisolated_cores=9999999\n[[[\n=\n")
    tuned = read_tuned(tree)
    assert tuned is not None
    assert (tuned.isolates, tuned.isolated_text, tuned.isolated) == (True, "9999999", None)


def test_many_profiles(tmp_path: Path) -> None:
    files = {SITE % ("p%d" % number): "[main]\ninclude=p%d\n" % (number + 1) for number in range(100)}
    tuned = read_tuned(node(tmp_path, {**files, ACTIVE: "p0"}))
    assert tuned is not None
    assert len(tuned.files) == 33

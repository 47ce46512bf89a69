# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_owners/owners.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import CrioSettings, read_crio

MAIN, FIRST, LAST = "etc/crio/crio.conf", "etc/crio/crio.conf.d/10-crio.conf", "etc/crio/crio.conf.d/99-runtimes.conf"
ALLOWED = """\
[crio.runtime.runtimes.high-performance]
inherit_default_runtime = true
allowed_annotations = [
    "cpu-load-balancing.crio.io", # quotas, too
    "irq-load-balancing.crio.io",
]
"""
NOT_ALLOWED = ALLOWED.replace('    "irq', '    # "irq')
SHARED = '[crio.runtime]\nshared_cpuset = "%s"\n'
# openshift-kni/performance-addon-operators#695
PINNED = """\
[crio.runtime.workloads.management]
activation_annotation = "target.workload.openshift.io/management"
annotation_prefix = "resources.workload.openshift.io"
resources = { "cpushares" = 0, "cpuset" = "%s" }
"""
IN_A_TABLE = '[crio.runtime.workloads.management.resources]\ncpuset = "%s"\n'


@pytest.mark.parametrize(
    ("files", "settings"),
    [
        pytest.param({}, CrioSettings(), id="nothing"),
        pytest.param({MAIN: '[crio]\nroot = "/x"\n'}, CrioSettings(), id="neither"),
        pytest.param({LAST: ALLOWED}, CrioSettings(("/" + LAST,)), id="allowed"),
        pytest.param({MAIN: ALLOWED}, CrioSettings(("/" + MAIN,)), id="allowed in the main file"),
        pytest.param(
            {LAST: ALLOWED.replace("runtimes.high", "workloads.high")}, CrioSettings(("/" + LAST,)), id="workload"
        ),
        pytest.param({LAST: NOT_ALLOWED}, CrioSettings(), id="a comment"),
        pytest.param({FIRST: ALLOWED, LAST: NOT_ALLOWED}, CrioSettings(), id="the last counts"),
        pytest.param(
            {FIRST: NOT_ALLOWED, LAST: ALLOWED.replace("[crio.runtime", "#[crio.runtime")},
            CrioSettings(),
            id="no table",
        ),
        pytest.param({LAST: SHARED % "2,3"}, CrioSettings((), "2,3", "/" + LAST), id="shared"),
        pytest.param({FIRST: SHARED % "2", LAST: SHARED % ""}, CrioSettings(), id="shared no longer"),
        pytest.param(
            {FIRST: SHARED % "0-1", LAST: ALLOWED}, CrioSettings(("/" + LAST,), "0-1", "/" + FIRST), id="both"
        ),
        pytest.param({FIRST: "[[[ = \x00", LAST: SHARED % "1"}, CrioSettings((), "1", "/" + LAST), id="no TOML"),
        pytest.param({LAST: PINNED % "0-1"}, CrioSettings(workloads=("/" + LAST,)), id="workload that is pinned"),
        pytest.param({LAST: IN_A_TABLE % "0-1"}, CrioSettings(workloads=("/" + LAST,)), id="pinned in a table"),
        pytest.param({FIRST: PINNED % "0-1", LAST: IN_A_TABLE % ""}, CrioSettings(), id="pinned no longer"),
        pytest.param({LAST: PINNED.replace('"cpuset" = "%s"', '"memory" = 1')}, CrioSettings(), id="other resources"),
        pytest.param({LAST: ALLOWED.replace("[\n", "7 #[\n", 1)}, CrioSettings(), id="no list"),
    ],
)
def test_settings(files: dict[str, str], settings: CrioSettings, tmp_path: Path) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert read_crio(Tree(str(tmp_path))) == settings


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "etc/crio").mkdir(parents=True)
    (tmp_path / "etc/crio/crio.conf.d").symlink_to("crio.conf.d")
    (tmp_path / MAIN).symlink_to("crio.conf")
    assert read_crio(Tree(str(tmp_path))) == CrioSettings()

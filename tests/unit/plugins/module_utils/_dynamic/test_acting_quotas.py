# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/acting.py and _cgroup/writer.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPU, Hierarchy, Quota
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writer import read_quota, write_quota
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.acting import Quotas
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    V1,
    V2,
    CPUFiles,
    Style,
    write_cgroups,
    write_cpu,
)

POD, APP = "kubepods/podu", "kubepods/podu/app"


@pytest.fixture(params=[V1, V2], ids=["v1", "v2"])
def cpu(request: pytest.FixtureRequest, tmp_path: Path) -> Hierarchy:
    style: Style = request.param
    write_cgroups(tmp_path, style, {})
    write_cpu(tmp_path, style, {POD: CPUFiles(300000), APP: CPUFiles(200000)})
    return Hierarchy(Tree(str(tmp_path)), CPU)


def both(cpu: Hierarchy) -> list[Quota | None]:
    return [read_quota(cpu, path) for path in (POD, APP)]


BEFORE = [Quota(300000, 100000), Quota(200000, 100000)]
LIFTED = [Quota(None, 100000)] * 2


def test_lifted_and_put_back(cpu: Hierarchy) -> None:
    quotas = Quotas(cpu, {})
    quotas.remember([APP, POD])
    assert quotas.remembered == {POD: BEFORE[0], APP: BEFORE[1]}
    assert both(cpu) == BEFORE
    assert (quotas.lift(), both(cpu)) == ([], LIFTED)
    # The next pass has only what was written down.
    later = Quotas(cpu, quotas.remembered)
    later.remember([APP, POD])
    assert later.lift() == later.put_back() == []
    assert (later.remembered, both(cpu)) == (quotas.remembered, LIFTED)
    last = Quotas(cpu, later.remembered)
    last.remember([])
    assert (last.lift(), last.put_back(), last.remembered) == ([], [], {})
    assert both(cpu) == BEFORE


def test_what_somebody_has_written_meanwhile_counts(cpu: Hierarchy) -> None:
    write_quota(cpu, APP, Quota(400000, 100000))
    quotas = Quotas(cpu, {APP: BEFORE[1]})
    quotas.remember([APP])
    assert quotas.remembered == {APP: Quota(400000, 100000)}
    restarted = Quotas(cpu, {APP: BEFORE[1]})
    assert (restarted.put_back(), restarted.remembered) == ([], {})
    assert read_quota(cpu, APP) == Quota(400000, 100000)


def test_cgroups_that_are_gone_or_have_no_quota(cpu: Hierarchy) -> None:
    quotas = Quotas(cpu, {"kubepods/gone": BEFORE[0]})
    quotas.remember(["kubepods"])
    assert (quotas.lift(), quotas.put_back(), quotas.remembered) == ([], [], {})
    none = Quotas(None, {})
    none.remember([APP])
    assert (none.lift(), none.put_back()) == ([], [])


def test_what_the_kernel_refuses_is_remembered(cpu: Hierarchy, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = Quotas(cpu, {})
    quotas.remember([APP])
    quotas.lift()
    later = Quotas(cpu, quotas.remembered)

    def refuse(*_arguments: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.write", refuse)
    (refused,) = later.put_back()
    assert "the kernel refuses" in refused
    assert "Invalid argument" in refused
    assert later.remembered == quotas.remembered


@pytest.mark.parametrize("text", ["", "x", "1", "x 100000", "100000 0", "-5 100000", "1 2 3"])
def test_what_is_no_quota(text: str, tmp_path: Path) -> None:
    write_cgroups(tmp_path, V2, {})
    top = write_cpu(tmp_path, V2, {APP: CPUFiles(200000)})
    (top / APP / "cpu.max").write_text(text + "\n")
    assert read_quota(Hierarchy(Tree(str(tmp_path)), CPU), APP) is None

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass over the containers that somebody has listed, on a node without a kubelet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup import writer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import container_writes as settle
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_writes import Listed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import (
    ReconcileResult,
    reconcile_listed,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.reconciled import (
    CHECKPOINT,
    STYLES,
    node,
    results,
    told,
    whys,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

LISTED = (Listed("db", "server", "apps/db", 2), Listed("web", "app", "/sys/fs/cgroup/cpuset/apps/web", 0))


def other_node(root: Path) -> Path:
    write_machine(root, "1s4c2t")
    saved.write_cgroups(
        root,
        saved.V1,
        {"apps": saved.Files("0-7", "0"), "apps/db": saved.Files("0-7", "0"), "apps/web": saved.Files("0-7", "0")},
    )
    return root


def listed_pass(root: Path, listed: Sequence[Listed] = LISTED, act: bool = True) -> ReconcileResult:
    return reconcile_listed(node(root), listed, StaticOptions(full_pcpus_only=True), CPUSet.parse("0,4"), act)


def test_a_node_without_a_kubelet(tmp_path: Path) -> None:
    other_node(tmp_path)
    check = listed_pass(tmp_path, act=False)
    assert not (tmp_path / CHECKPOINT).exists()
    run = listed_pass(tmp_path)
    assert told(check) == told(run)
    assert run.changed
    top = tmp_path / saved.V1.mount[1:] / "apps"
    assert (top / "db/cpuset.cpus").read_text() == "1,5\n"
    assert (top / "web/cpuset.cpus").read_text() == "0,2-4,6-7\n"
    assert decode_checkpoint((tmp_path / CHECKPOINT).read_bytes()).entries == {"db": {"server": "1,5"}}
    assert (tmp_path / CHECKPOINT).stat().st_mode & 0o777 == 0o600
    assert run.after().splitlines() == [
        "default CPU set: 0,2-4,6-7",
        "pod db, container server: 1,5",
        "apps/db: 1,5",
        "apps/web: 0,2-4,6-7",
    ]
    assert not listed_pass(tmp_path).changed
    # Gone from the list, and gone from the node.
    shutil.rmtree(top / "web")
    last = listed_pass(tmp_path, LISTED[1:])
    assert results(last) == {"app": "skipped"}
    assert whys(last) == {"app": "there is no such cgroup"}
    assert decode_checkpoint((tmp_path / CHECKPOINT).read_bytes()).default_cpu_set == "0-7"


@STYLES
def test_each_listed_container_has_a_result(tmp_path: Path, style: saved.Style) -> None:
    other_node(tmp_path)
    sets = {"a": "0-7", "a/db": "1,5", "a/web": "0-7", "fence": "0-1", "fence/log": "0-1"}
    saved.write_cgroups(tmp_path, style, {path: saved.Files(cpus, "0") for path, cpus in sets.items()})
    if style is saved.V2:
        shutil.rmtree(tmp_path / saved.V1.mount[1:])
    listed = [
        Listed("db", "server", "a/db", 2),
        Listed("db", "backup", "a/web", 0),
        Listed("log", "agent", "fence/log", 0),
        Listed("gone", "job", "a/gone", 2),
    ]
    check, run = (listed_pass(tmp_path, listed, act) for act in (False, True))
    assert told(check) == told(run)
    assert [(row.pod, row.container, row.result, row.why.partition("; widen it")[0]) for row in run.rows] == [
        ("db", "server", "kept", ""),
        ("db", "backup", "written", ""),
        ("log", "agent", "failed", "fence: has no CPUs 3-4,7, and is not the kubelet's to widen"),
        ("gone", "job", "skipped", "there is no such cgroup"),
    ]
    assert run.to_dict()["counts"] == {"kept": 1, "written": 1, "failed": 1, "skipped": 1}
    # Also the CPUs of one that is still to start are its own.
    assert run.to_dict()["shared_pool"] == "0,3-4,7"
    top = tmp_path / style.mount[1:]
    assert (top / "a/web/cpuset.cpus").read_text() == "0,3-4,7\n"
    assert (top / "fence/log/cpuset.cpus").read_text() == "0-1\n"
    # The fence taken down, the next pass does what this one could not.
    saved.write_cgroups(tmp_path, style, {"fence": saved.Files("0-7", "0"), "fence/log": saved.Files("0-1", "0")})
    again = listed_pass(tmp_path, listed)
    assert [row.result for row in again.rows] == ["kept", "kept", "written", "skipped"]


def test_an_interrupted_pass_has_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_node(tmp_path)

    def interrupt(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    carry_out = writer.carry_out
    monkeypatch.setattr(settle, "carry_out", interrupt)
    with pytest.raises(KeyboardInterrupt):
        listed_pass(tmp_path)
    written = (tmp_path / CHECKPOINT).read_bytes()
    monkeypatch.setattr(settle, "carry_out", carry_out)
    assert results(listed_pass(tmp_path)) == {"server": "written", "app": "written"}
    assert (tmp_path / CHECKPOINT).read_bytes() == written


def test_a_fence_is_not_widened(tmp_path: Path) -> None:
    other_node(tmp_path)
    saved.write_cgroups(
        tmp_path,
        saved.V1,
        {"apps": saved.Files("0-1", "0"), "apps/db": saved.Files("0", "0"), "apps/web": saved.Files("0", "0")},
    )
    assert results(listed_pass(tmp_path)) == {"server": "failed", "app": "failed"}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("process", RefusedError, r"the node has a kubelet \(process 4711\)"),
        ("configuration", RefusedError, r"the node has a kubelet \(its configuration is /var/lib"),
        ("twice", InputError, "two of them have the cgroup apps/db"),
        ("outside", InputError, "leads out of the hierarchy"),
    ],
)
def test_what_is_not_for_a_node_without_a_kubelet(
    tmp_path: Path, change: str, error: type[Exception], message: str
) -> None:
    other_node(tmp_path)
    listed = list(LISTED)
    if change == "process":
        (tmp_path / "proc/4711").mkdir(parents=True)
        (tmp_path / "proc/4711/cmdline").write_text("/usr/bin/kubelet\0")
    elif change == "configuration":
        (tmp_path / "var/lib/kubelet").mkdir(parents=True)
        (tmp_path / "var/lib/kubelet/config.yaml").write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        )
    else:
        listed.append(Listed("a", "b", "apps//db" if change == "twice" else "../x", 0))
    with pytest.raises(error, match=message):
        listed_pass(tmp_path, listed)
    assert not (tmp_path / CHECKPOINT).exists()

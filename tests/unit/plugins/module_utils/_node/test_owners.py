# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_reconcile/reconcile.py and program.py: whom a pass does not write beside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.module import KUBELET
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import SETTINGS_ARGUMENTS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs.reconcile_program import main
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import (
    check_owners,
    reconcile_listed,
    reconcile_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.modules import drift_info
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import EMPTY, SOUND, Saved, cgroups, write_saved
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import fingerprint

FILES = {
    "dra-driver-cpu": {"/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock": ""},
    "nri-balloons": {"/var/lib/nri-resource-policy/cache": '{"PolicyName": "balloons"}'},
    "nri-topology-aware": {"/opt/nri/plugins/10-topology-aware": ""},
    "crio-shared-cpus": {"/etc/crio/crio.conf": '[crio.runtime]\nshared_cpuset = "2"\n'},
}
MOVED = SOUND._replace(cgroups=cgroups(own="1-2,5"))


def node(saved: Saved, root: Path) -> Node:
    return Node(write_saved(saved, root), minor=saved.minor)


@pytest.mark.parametrize("owner", FILES)
@pytest.mark.parametrize("act", [True, False])
def test_a_pass_is_refused(owner: str, act: bool, tmp_path: Path) -> None:
    there = node(MOVED.having(FILES[owner]), tmp_path)
    before = fingerprint(tmp_path)
    with pytest.raises(RefusedError, match="the role reconcile cannot be used beside") as refused:
        reconcile_pods(there, None, act)
    assert refused.value.kind == "other_owner"
    assert next(iter(FILES[owner])) in str(refused.value)
    assert fingerprint(tmp_path) == before
    assert reconcile_pods(there, None, act, [owner]).changed


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"/etc/crio/crio.conf": "[crio]\n"},
        {"/opt/nri/plugins/10-logger": "", "/etc/tuned/active_profile": "cpu-partitioning"},
    ],
)
def test_nobody_is_in_the_way(files: dict[str, str], tmp_path: Path) -> None:
    check_owners(node(MOVED.having(files), tmp_path), ())


def test_a_node_without_a_kubelet(tmp_path: Path) -> None:
    there = node(EMPTY._replace(files={}).having(FILES["nri-balloons"]), tmp_path)
    with pytest.raises(RefusedError, match="the NRI policy balloons"):
        reconcile_listed(there, [], StaticOptions(), CPUSet(), True)
    assert reconcile_listed(there, [], StaticOptions(), CPUSet(), True, ["nri-balloons"]).rows == ()


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "node"
    write_saved(MOVED.having(FILES["dra-driver-cpu"]), root)
    settings = tmp_path / "settings.json"
    before = fingerprint(root)
    settings.write_text(json.dumps({"root": str(root), "use_runtime": False}))
    assert main([str(settings)]) == 1
    assert "error: the role reconcile cannot be used beside the DRA CPU driver" in capsys.readouterr().out
    # Who has which CPUs is published all the same, as the kernel has it.
    after = {path: value for path, value in fingerprint(root).items() if path.partition("/")[0] != "run"}
    assert after == {path: value for path, value in before.items() if path.partition("/")[0] != "run"}
    published = json.loads((root / "run/kubenode/cpus/uid-db/server.json").read_text())
    assert (published["by"], published["effective"]) == ("kubelet", "1-2,5")
    settings.write_text(json.dumps({"root": str(root), "use_runtime": False, "allow_owners": ["dra-driver-cpu"]}))
    assert main([str(settings)]) == 0
    assert fingerprint(root) != before


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (FILES["crio-shared-cpus"], "the role reconcile cannot be used beside CRI-O's CPUs of containers"),
        ({"/run/koordlet/koordlet.sock": ""}, "the role reconcile cannot be used beside Koordinator's koordlet"),
        ({"/proc/31/cmdline": "/crane-agent\0"}, "the role reconcile cannot be used beside Crane's crane-agent"),
        (FILES["dra-driver-cpu"], "the role reconcile cannot be used beside the DRA CPU driver"),
        ({"/etc/crio/crio.conf": "[crio]\n"}, ""),
    ],
)
@pytest.mark.parametrize("saved", [SOUND, MOVED], ids=["sound", "moved"])
def test_drift_of_cpusets_names_who_has_written_them(
    saved: Saved, files: dict[str, str], said: str, tmp_path: Path
) -> None:
    write_saved(saved.having(files), tmp_path)
    parameters = {**dict.fromkeys([*KUBELET.options, *SETTINGS_ARGUMENTS.options]), "kubelet_version": "1.36"}
    notes = drift_info.work(Tree(str(tmp_path)), parameters, True).result["notes"]
    assert isinstance(notes, list)
    found = [note for note in notes if "the role reconcile" in note]
    assert [note.startswith(said) for note in found] == ([True] if said and saved is MOVED else [])

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_owners/owners.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    NAMES,
    TUNED,
    Facts,
    Owner,
    claims_of,
    find_owners,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import (
    CACHE,
    REGISTRY,
    SIGNS,
    Sign,
    spec,
    write_owned,
)


def live(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Return the same files as those of the running machine."""
    monkeypatch.setattr(Tree, "live", property(lambda _tree: True))
    return tree


@pytest.mark.parametrize("sign", SIGNS, ids=[sign.name for sign in SIGNS])
def test_a_single_owner(sign: Sign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = write_owned(tmp_path, sign.files)
    (saved,) = find_owners(tree, sign.facts)
    assert (saved.id, saved.evidence, saved.is_active) == (sign.owner, sign.evidence, True)
    assert find_owners(live(tree, monkeypatch), sign.facts) == [saved._replace(is_active=sign.is_active)]


def test_each_owner_has_a_case() -> None:
    assert {sign.owner for sign in SIGNS} == set(NAMES)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"etc/default/irqbalance": "", "etc/sysconfig/irqbalance": ""}, id="irqbalance's files alone"),
        pytest.param({"etc/tuned/active_profile": "virtual-guest"}, id="tuned without isolated CPUs"),
        pytest.param({"etc/crio/crio.conf": "[crio]\n"}, id="cri-o without either"),
        pytest.param({REGISTRY + "csi.example-reg.sock": "", "run/cdi/nvidia.yaml": ""}, id="other plugins"),
        pytest.param({REGISTRY + "dra.cpus-reg.sock": "", REGISTRY + "dra.cpu-x": ""}, id="nearly its name"),
        pytest.param(
            {"opt/nri/plugins/10-logger": "", "opt/nri/plugins/10-hot-balloons-x": ""}, id="other NRI plugins"
        ),
        pytest.param({"etc/nri/conf.d/logger.conf": ""}, id="settings of others"),
        pytest.param({CACHE: '{"PolicyName": ""}'}, id="an empty cache"),
        pytest.param({CACHE: '{"PolicyName": "template"}'}, id="another policy"),
        # Whoever makes a pod chooses its labels.
        pytest.param(
            {CACHE: '{"Pods": {"a": {"Labels": {"PolicyName": "balloons"}}}, "PolicyName": ""}'}, id="a pod's label"
        ),
        pytest.param({CACHE: '{"PolicyName": ["balloons"]}'}, id="no text"),
        pytest.param({CACHE: "[" * 100_000}, id="deep"),
        pytest.param({CACHE: '"PolicyName": "balloons"'}, id="no JSON"),
        pytest.param({CACHE + "/x": ""}, id="a directory"),
    ],
)
def test_a_clean_node_has_none(files: dict[str, str], tmp_path: Path) -> None:
    assert find_owners(write_owned(tmp_path, files), Facts("none", ("/var/lib/kubelet/config.yaml",))) == []


def test_the_order_is_that_of_the_names(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    processes: dict[str, Any] = {}
    for sign in SIGNS:
        files.update(sign.files)
        processes.update(sign.facts.processes)
    found = find_owners(write_owned(tmp_path, files), Facts("static", ("x",), processes=processes))
    assert [owner.id for owner in found] == list(NAMES)
    assert found[0].to_dict() == {
        "id": "kubelet-static",
        "name": "the kubelet's static CPU manager policy",
        "evidence": ["x"],
        "active": True,
    }


def test_the_name_has_the_profile(tmp_path: Path) -> None:
    (owner,) = find_owners(write_owned(tmp_path, {"etc/tuned/active_profile": "realtime x"}), Facts())
    assert owner == Owner(TUNED, "tuned with the profile realtime x", ("/etc/tuned/active_profile",), True)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        (spec("DRA_CPUSET_a=4-7", "DRA_CPUSET_b=1"), {"DRA_CPUSET_a=4-7", "DRA_CPUSET_b=1"}),
        (spec("PATH=/bin", 7, None), set()),
        ('{"devices": 1}', set()),
        ('{"devices": [1, {"containerEdits": 2}, {"containerEdits": {"env": 3}}]}', set()),
        ("DRA_CPUSET_a=4-7", set()),
    ],
)
def test_claims(text: str, claims: set[str], tmp_path: Path) -> None:
    assert claims_of(write_owned(tmp_path, {"run/cdi/dra.cpu.json": text})) == claims

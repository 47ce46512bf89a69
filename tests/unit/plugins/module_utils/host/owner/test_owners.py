# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/host/owners.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.owner.owners import (
    BALLOONS,
    CRIO_INTERRUPTS,
    CRIO_SHARED,
    DRA_CPU,
    GORESCTRL,
    HOUSEKEEPING,
    IRQBALANCE,
    KUBELET_STATIC,
    NAMES,
    RECONCILE,
    TOPOLOGY_AWARE,
    TUNED,
    Facts,
    Owner,
    claims_of,
    find_owners,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.owner.owners import CACHE as CACHE_PARTITION
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree

REGISTRY = "var/lib/kubelet/plugins_registry/"
CACHE = "var/lib/nri-resource-policy/cache"
WANTS = "etc/systemd/system/%s.target.wants/%s"
JOURNAL = "var/lib/kubenode-cpu-manager/housekeeping.json"
CACHE_JOURNAL = "var/lib/kubenode-cpu-manager/cache.json"
TIMER = "kubenode-cpu-manager-reconcile.timer"
ALLOWED = '[crio.runtime.runtimes.fast]\nallowed_annotations = ["irq-load-balancing.crio.io"]\n'
SHARED = '[crio.runtime]\nshared_cpuset = "2-3"\n'
NO_FACTS = Facts()


def node(root: Path, files: dict[str, str]) -> Tree:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Tree(str(root))


def live(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """The same files as those of the running machine."""
    monkeypatch.setattr(Tree, "live", property(lambda _tree: True))
    return tree


def spec(*lines: object) -> str:
    devices = [{"name": "claim-%d" % number, "containerEdits": {"env": [line]}} for number, line in enumerate(lines)]
    return json.dumps({"cdiVersion": "0.8.0", "kind": "dra.k8s.io/cpu", "devices": devices})


# Each owner by each of its signs: (the files, the facts, its id, the evidence, whether it is active on a live node).
SINGLE: list[Any] = [
    pytest.param(
        {},
        Facts("static", ("/var/lib/kubelet/config.yaml", "process 7")),
        KUBELET_STATIC,
        ("/var/lib/kubelet/config.yaml", "process 7"),
        True,
        id="kubelet",
    ),
    pytest.param({REGISTRY + "dra.cpu-reg.sock": ""}, NO_FACTS, DRA_CPU, ("/" + REGISTRY + "dra.cpu-reg.sock",), True),
    pytest.param(
        {REGISTRY + "dra.cpu-0f3f7f0a-reg.sock": ""},
        NO_FACTS,
        DRA_CPU,
        ("/" + REGISTRY + "dra.cpu-0f3f7f0a-reg.sock",),
        True,
        id="dra, a pod of a rolling update",
    ),
    pytest.param(
        {"mnt/kubelet/plugins_registry/dra.cpu-reg.sock": ""},
        Facts(kubelet_root="/mnt/kubelet/"),
        DRA_CPU,
        ("/mnt/kubelet/plugins_registry/dra.cpu-reg.sock",),
        True,
        id="dra, at a kubelet elsewhere",
    ),
    pytest.param({"run/cdi/dra.cpu.json": spec()}, NO_FACTS, DRA_CPU, ("/run/cdi/dra.cpu.json",), False, id="dra, cdi"),
    pytest.param(
        {"var/run/cdi/dra.k8s.io-cpu_x.yaml": ""},
        Facts(processes={"dracpu": [9]}),
        DRA_CPU,
        ("/var/run/cdi/dra.k8s.io-cpu_x.yaml", "process 9"),
        True,
        id="dra, its process",
    ),
    pytest.param(
        {"run/cdi/dra.cpu.json": spec("DRA_CPUSET_a=4-7")},
        Facts(claims=[8, 11]),
        DRA_CPU,
        ("/run/cdi/dra.cpu.json", "DRA_CPUSET_* in the environment of process 8, 11"),
        False,
        id="dra, only its containers",
    ),
    pytest.param({CACHE: '{"PolicyName": "balloons"}'}, NO_FACTS, BALLOONS, ("/" + CACHE,), False, id="balloons, left"),
    pytest.param(
        {CACHE: '{"PolicyName": "topology-aware"}'},
        NO_FACTS,
        TOPOLOGY_AWARE,
        ("/" + CACHE,),
        False,
        id="topology, left",
    ),
    pytest.param(
        {},
        Facts(processes={"nri-resource-policy-balloons": [5]}),
        BALLOONS,
        ("process 5",),
        True,
        id="balloons, its process",
    ),
    pytest.param(
        {"opt/nri/plugins/10-nri-resource-policy-topology-aware": ""},
        Facts(processes={"nri-resource-policy-topology-aware": [5]}),
        TOPOLOGY_AWARE,
        ("/opt/nri/plugins/10-nri-resource-policy-topology-aware", "process 5"),
        True,
        id="topology, started by the runtime",
    ),
    pytest.param(
        {"opt/nri/plugins/90-balloons": "", "etc/nri/conf.d/90-balloons.conf": ""},
        NO_FACTS,
        BALLOONS,
        ("/opt/nri/plugins/90-balloons", "/etc/nri/conf.d/90-balloons.conf"),
        False,
        id="balloons, plugin files",
    ),
    pytest.param(
        {"etc/crio/crio.conf.d/99.conf": ALLOWED, WANTS % ("multi-user", "crio.service"): ""},
        NO_FACTS,
        CRIO_INTERRUPTS,
        ("/etc/crio/crio.conf.d/99.conf",),
        True,
        id="crio, interrupts",
    ),
    pytest.param(
        {"etc/crio/crio.conf": SHARED},
        Facts(processes={"crio": [4]}),
        CRIO_SHARED,
        ("/etc/crio/crio.conf", "process 4"),
        True,
        id="crio, shared",
    ),
    pytest.param(
        {"etc/crio/crio.conf": SHARED}, NO_FACTS, CRIO_SHARED, ("/etc/crio/crio.conf",), False, id="crio, left"
    ),
    pytest.param(
        {"etc/tuned/active_profile": "cpu-partitioning"},
        Facts(processes={"tuned": [3]}),
        TUNED,
        ("/etc/tuned/active_profile", "process 3"),
        True,
        id="tuned",
    ),
    pytest.param(
        {"etc/tuned/active_profile": "realtime", WANTS % ("multi-user", "tuned.service"): ""},
        NO_FACTS,
        TUNED,
        ("/etc/tuned/active_profile", "/" + WANTS % ("multi-user", "tuned.service")),
        True,
        id="tuned, at boot",
    ),
    pytest.param(
        {"etc/tuned/active_profile": "realtime"},
        NO_FACTS,
        TUNED,
        ("/etc/tuned/active_profile",),
        False,
        id="tuned, left",
    ),
    pytest.param(
        {"etc/default/irqbalance": ""},
        Facts(processes={"irqbalance": [2]}),
        IRQBALANCE,
        ("/etc/default/irqbalance", "process 2"),
        True,
        id="irqbalance",
    ),
    pytest.param(
        {WANTS % ("multi-user", "irqbalance.service"): ""},
        NO_FACTS,
        IRQBALANCE,
        ("/" + WANTS % ("multi-user", "irqbalance.service"),),
        True,
        id="irqbalance, at boot",
    ),
    pytest.param(
        {WANTS % ("timers", TIMER): "", "etc/systemd/system/" + TIMER: ""},
        NO_FACTS,
        RECONCILE,
        ("/" + WANTS % ("timers", TIMER), "/etc/systemd/system/" + TIMER),
        True,
        id="reconcile",
    ),
    pytest.param(
        {"etc/kubenode/cpu-manager-reconcile.json": "{}"},
        NO_FACTS,
        RECONCILE,
        ("/etc/kubenode/cpu-manager-reconcile.json",),
        False,
        id="reconcile, left",
    ),
    pytest.param({JOURNAL: "{}"}, NO_FACTS, HOUSEKEEPING, ("/" + JOURNAL,), True, id="housekeeping"),
    pytest.param(
        {"etc/containerd/config.toml": '[plugins."x"]\nrdt_config_file = "/etc/rdt.yaml"\n'},
        NO_FACTS,
        GORESCTRL,
        ("/etc/containerd/config.toml",),
        True,
        id="goresctrl in containerd",
    ),
    pytest.param(
        {"sys/fs/resctrl/goresctrl.Guaranteed/schemata": "L3:0=f\n"},
        NO_FACTS,
        GORESCTRL,
        ("/sys/fs/resctrl/goresctrl.Guaranteed",),
        True,
        id="groups of goresctrl",
    ),
    pytest.param({CACHE_JOURNAL: "{}"}, NO_FACTS, CACHE_PARTITION, ("/" + CACHE_JOURNAL,), True, id="cache"),
]


@pytest.mark.parametrize(("files", "facts", "owner", "evidence", "is_active"), SINGLE)
def test_a_single_owner(
    files: dict[str, str],
    facts: Facts,
    owner: str,
    evidence: tuple[str, ...],
    is_active: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = node(tmp_path, files)
    (saved,) = find_owners(tree, facts)
    assert (saved.id, saved.evidence, saved.is_active) == (owner, evidence, True)
    assert find_owners(live(tree, monkeypatch), facts) == [saved._replace(is_active=is_active)]


def test_each_owner_has_a_case() -> None:
    assert {case.values[2] for case in SINGLE} == set(NAMES)


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
    assert find_owners(node(tmp_path, files), Facts("none", ("/var/lib/kubelet/config.yaml",))) == []


def test_the_order_is_that_of_the_names(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    processes: dict[str, Any] = {}
    for case in SINGLE:
        files.update(case.values[0])
        processes.update(case.values[1].processes)
    found = find_owners(node(tmp_path, files), Facts("static", ("x",), processes=processes))
    assert [owner.id for owner in found] == list(NAMES)
    assert found[0].to_dict() == {
        "id": "kubelet-static",
        "name": "the kubelet's static CPU manager policy",
        "evidence": ["x"],
        "active": True,
    }


def test_the_name_has_the_profile(tmp_path: Path) -> None:
    (owner,) = find_owners(node(tmp_path, {"etc/tuned/active_profile": "realtime x"}), Facts())
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
    assert claims_of(node(tmp_path, {"run/cdi/dra.cpu.json": text})) == claims

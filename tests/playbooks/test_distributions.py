# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One rollout over a fleet of many distributions and versions: each node gets its settings where it takes them from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import (
    DISTRIBUTIONS,
    NOWHERE,
    Distribution,
    marks_of,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, PLAIN, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .conftest import Run, ansible_playbook, fingerprint, play

ROLLOUT = "kubenode.cpu_manager.rollout"
MACHINE = "2s1n4c2t"
# What a rollback would begin with, and the locks of the change.
JOURNAL = "/var/lib/kubenode-cpu-manager/last-change.json"
LOCKS = ("/var/lib/kubenode-cpu-manager/change/starting", "/var/lib/kubenode-cpu-manager/change/running")

DISTRIBUTION_OF = {
    "kubeadm": "kubeadm",
    "kubeadm-patches": "kubeadm",
    "kubeadm-drop-ins": "kubeadm",
    "elsewhere": "unknown",
    "kubespray": "kubespray",
    "kops": "kOps",
    "gardener": "Gardener",
    "k3s": "k3s",
    "k3s-flags": "k3s",
    "k3s-rancher": "k3s",
    "rke2": "RKE2",
    "microk8s": "MicroK8s",
    "eks": "EKS AL2023",
    "eks-drop-ins": "EKS AL2023",
}

WANTED: dict[str, Any] = {
    "kubelet_cpu_manager_policy": "static",
    # Alpha in 1.36: with its feature gate.
    "kubelet_cpu_manager_policy_options": {"full-pcpus-only": True, "align-by-socket": True},
    "kubelet_topology_manager_policy": "restricted",
    "kubelet_topology_manager_scope": "pod",
    "kubelet_topology_manager_policy_options": {"prefer-closest-numa-nodes": True},
    "kubelet_cpu_cfs_quota_period": "50ms",
    "kubelet_reservation": {"count": 4, "strategy": "spread"},
}


class Story(NamedTuple):
    """The runs on the fleet, and its files after each."""

    fleet: Path
    runs: dict[str, Run]
    files: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    directory = tmp_path_factory.mktemp("distributions")
    fleet = directory / "fleet"
    hosts = {}
    for name, kubelet in KUBELETS.items():
        root = fleet / name
        write_tree(parse_name(MACHINE).topology(), root, parse_name(MACHINE).whole())
        write_kubelet(root, kubelet)
        hosts[name] = {"kubelet_node_root": str(root), "kubelet_target_version": kubelet.version, **WANTED}
    runs, files = {}, {"": fingerprint(fleet)}
    # All nodes at once: it is the same code for each.
    everywhere = ("-e", "cpu_manager_serial=100%")
    for step, arguments in {"preview": ("--check", "--diff"), "rollout": ("--diff",), "again": ()}.items():
        runs[step] = ansible_playbook(directory / step, ROLLOUT, hosts, *everywhere, *arguments)
        files[step] = fingerprint(fleet)
    return Story(fleet, runs, files)


def change_result(run: Run, name: str) -> dict[str, Any]:
    """Return the answer of kubelet_change on a host."""
    (result,) = (result for result in run.results[name] if "steps" in result)
    return result


def test_check_mode_tells_what_the_rollout_does(story: Story) -> None:
    preview, rollout = story.runs["preview"], story.runs["rollout"]
    assert (preview.status, rollout.status) == (0, 0), preview.account() + rollout.account()
    assert story.files["preview"] == story.files[""]
    for name, kubelet in KUBELETS.items():
        paths = ["%s%s" % (story.fleet / name, path) for path in kubelet.written]
        planned, done = change_result(preview, name), change_result(rollout, name)
        # One difference is no list.
        diffs = done["diff"] if isinstance(done["diff"], list) else [done["diff"]]
        assert [entry["before_header"] for entry in diffs] == paths
        assert (planned["diff"], planned["steps"]) == (done["diff"], done["steps"])


def test_only_the_files_of_the_settings_are_written(story: Story) -> None:
    before, after = story.files[""], story.files["rollout"]
    changed = {path for path in after if after[path] != before.get(path) and not path.endswith("~")}
    files = {name + path for name, kubelet in KUBELETS.items() for path in (*kubelet.written, JOURNAL, *LOCKS)}
    # And the directories that were not there.
    assert changed - files <= {str(parent) for path in files for parent in Path(path).parents}
    assert files <= changed
    assert set(before) <= set(after)


def test_every_node_has_what_is_wanted(story: Story) -> None:
    assert story.runs["again"].status == 0, story.runs["again"].account()
    for name, kubelet in KUBELETS.items():
        (answer,) = [result for result in story.runs["again"].results[name] if "found" in result]
        assert (answer["status"], answer["drift"], answer["actions"]) == ("clean", [], [])
        assert answer["wanted"]["reserved_system_cpus"] == "0,4,8,12"
        assert {setting: answer["found"][setting] for setting in answer["wanted"]} == answer["wanted"]
        assert answer["kubelet"]["command_line"] == kubelet.command_line.split()


def test_a_second_rollout_changes_nothing(story: Story) -> None:
    assert story.files["again"] == story.files["rollout"]
    assert not any(result["changed"] for results in story.runs["again"].results.values() for result in results)


def test_drift_names_distribution_and_source(story: Story) -> None:
    told = {
        name: next(result for result in story.runs["rollout"].results[name] if "found" in result) for name in KUBELETS
    }
    assert {name: result["kubelet"]["distribution"] for name, result in told.items()} == DISTRIBUTION_OF
    assert told["elsewhere"]["kubelet"]["kubelet_root"] == "/data/kubelet"
    assert told["microk8s"]["kubelet"]["kubelet_root"] == "/var/snap/microk8s/common/var/lib/kubelet"
    assert told["microk8s"]["kubelet"]["service"] == "snap.microk8s.daemon-kubelite"
    services = {name: result["kubelet"]["service"] for name, result in told.items()}
    assert (services["k3s"], services["rke2"], services["kubeadm"]) == ("k3s", "rke2-server", "kubelet")
    logs = {name: result["kubelet"]["log_file"] for name, result in told.items()}
    assert {name: log for name, log in logs.items() if log} == {"rke2": "/var/lib/rancher/rke2/agent/logs/kubelet.log"}
    cgroup = next(row for row in told["eks"]["drift"] if row["subject"] == "kubeReservedCgroup")
    assert (cgroup["wanted"], cgroup["found"]) == ("", "/runtime")
    assert cgroup["source"].endswith("/etc/kubernetes/kubelet/config.json")


def test_the_fleet_is_mixed() -> None:
    """At least five distributions and three versions in the one run above."""
    assert len({KUBELETS[name].version.lstrip("v").split(".")[1] for name in KUBELETS}) >= 3
    assert len(set(DISTRIBUTION_OF.values()) - {"unknown"}) >= 5


def make_managed_node(root: Path, distribution: Distribution) -> None:
    """Make a node of a system that manages its kubelets itself."""
    write_tree(parse_name(MACHINE).topology(), root, parse_name(MACHINE).whole())
    files = dict.fromkeys(marks_of(distribution)[:1], "")
    if distribution.os_id:
        files = {"/etc/os-release": "ID=%s\n" % distribution.os_id}
    if distribution.config_path:
        files[distribution.config_path] = PLAIN
    for path, text in files.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text(text, encoding="utf-8")


def test_systems_that_manage_their_kubelets_are_refused(tmp_path: Path) -> None:
    managed = {
        distribution.name.lower(): distribution for distribution in DISTRIBUTIONS if distribution.place == NOWHERE
    }
    assert {"openshift", "talos", "bottlerocket", "gke", "aks"} <= set(managed)
    for name, distribution in managed.items():
        make_managed_node(tmp_path / "fleet" / name, distribution)
    before = fingerprint(tmp_path / "fleet")
    hosts = {name: {"kubelet_node_root": str(tmp_path / "fleet" / name), **WANTED} for name in managed}
    plays = play(roles=["kubenode.cpu_manager.kubelet"])
    run = ansible_playbook(tmp_path / "run", plays, hosts)
    for name, distribution in managed.items():
        assert run.last(name)["outcome"] == "failed", name
        assert "%s manages its kubelets itself; %s" % (distribution.name, distribution.pointer) in run.last(name)["msg"]
    assert fingerprint(tmp_path / "fleet") == before

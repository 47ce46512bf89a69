# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles on saved nodes where others manage CPUs: refused with both names, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .conftest import CopyOf, Run, ansible_playbook, fingerprint, play, task

DRA, BALLOONS, TOPOLOGY = "dra-driver-cpu", "nri-balloons", "nri-topology-aware"
SOCKET = "var/lib/kubelet/plugins_registry/dra.cpu-reg.sock"
CACHE = "var/lib/nri-resource-policy/cache"
# Each owner as it is on a node, and what it is called.
OWNERS = {
    DRA: ({SOCKET: ""}, "the DRA CPU driver"),
    BALLOONS: ({CACHE: '{"PolicyName": "balloons"}'}, "the NRI policy balloons"),
    TOPOLOGY: ({"opt/nri/plugins/10-topology-aware": ""}, "the NRI policy topology-aware"),
}
STATIC = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0-3"}


def saved(copy_of: CopyOf, host: str, name: str, owner: str) -> Path:
    root = copy_of(host, name)
    for path, text in OWNERS[owner][0].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def run_role(directory: Path, role: str, hosts: dict[str, dict[str, Any]]) -> Run:
    plays = play()
    del plays[0]["tasks"]
    plays[0]["roles"] = [{"role": "kubenode.cpu_manager." + role}]
    return ansible_playbook(directory, plays, hosts)


def test_the_role_kubelet(copy_of: CopyOf, tmp_path: Path) -> None:
    roots = {owner: saved(copy_of, "xeon", owner, owner) for owner in OWNERS}
    hosts = {owner: {**STATIC, "kubelet_node_root": str(root)} for owner, root in roots.items()}
    before = {owner: fingerprint(root) for owner, root in roots.items()}
    run = run_role(tmp_path / "refused", "kubelet", hosts)
    assert run.status == 2, run.account()
    for owner, root in roots.items():
        message = run.last(owner)["msg"]
        assert "nothing was changed" in message
        assert "the kubelet's static CPU manager policy cannot be used beside %s" % OWNERS[owner][1] in message
        assert "/" + next(iter(OWNERS[owner][0])) in message
        assert "set the kubelet's cpuManagerPolicy to none" in message
        assert "add %s to kubelet_allow_owners" % owner in message
        assert fingerprint(root) == before[owner]
    allowed = {owner: {**variables, "kubelet_allow_owners": [owner]} for owner, variables in hosts.items()}
    run = run_role(tmp_path / "allowed", "kubelet", allowed)
    assert run.status == 0, run.account()
    for root in roots.values():
        assert "cpuManagerPolicy: static" in (root / "var/lib/kubelet/config.yaml").read_text("utf-8")


def test_what_stays_as_it_is_is_a_note(copy_of: CopyOf, tmp_path: Path) -> None:
    root = saved(copy_of, "epyc", "node", DRA)
    before = fingerprint(root)
    tasks = play(
        task("rollout_info", root=str(root), cpu_manager_policy="static"),
        task("drift_info", root=str(root), cpu_manager_policy="static"),
    )
    run = ansible_playbook(tmp_path / "look", tasks, {"node": {}})
    assert run.status == 0, run.account()
    rollout, drift = run.results["node"]
    for answer in (rollout, drift):
        (note,) = [text for text, check in zip(answer["notes"], answer["note_checks"]) if check == "two-owners"]
        assert "the kubelet's static CPU manager policy" in note
        assert "the DRA CPU driver (/%s)" % SOCKET in note
    assert "the kubelet's static CPU manager policy cannot be used" not in str(rollout["refusals"])
    assert fingerprint(root) == before


def test_the_role_reconcile(copy_of: CopyOf, tmp_path: Path) -> None:
    root = saved(copy_of, "epyc", "node", DRA)
    (root / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    variables = {
        "reconcile_node_root": str(root),
        "reconcile_manage_service": False,
        "reconcile_interpreter": "/usr/bin/python3",
    }
    before = fingerprint(root)
    refused = run_role(tmp_path / "refused", "reconcile", {"node": variables})
    assert refused.status == 2, refused.account()
    message = refused.last("node")["msg"]
    assert "the role reconcile cannot be used beside %s" % OWNERS[DRA][1] in message
    assert "add %s to reconcile_allow_owners" % DRA in message
    assert refused.last("node")["failure"]["kind"] == "other_owner"
    assert fingerprint(root) == before
    allowed = run_role(tmp_path / "allowed", "reconcile", {"node": {**variables, "reconcile_allow_owners": [DRA]}})
    assert allowed.status == 0, allowed.account()
    assert DRA in (root / "etc/kubenode/cpu-manager-reconcile.json").read_text("utf-8")


def test_the_module_reconcile(copy_of: CopyOf, tmp_path: Path) -> None:
    root = saved(copy_of, "epyc", "node", BALLOONS)
    before = fingerprint(root)
    tasks = play(
        {**task("reconcile", root=str(root)), "ignore_errors": True},
        {**task("reconcile", root=str(root), allow_owners=["balloons"]), "ignore_errors": True},
    )
    run = ansible_playbook(tmp_path / "run", tasks, {"node": {}})
    refused, misspelt = run.results["node"]
    assert "the role reconcile cannot be used beside the NRI policy balloons" in refused["msg"]
    assert "allow_owners: there is no owner balloons" in misspelt["msg"]
    assert fingerprint(root) == before

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role and the playbook housekeeping on saved nodes: brought, again, and taken back to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    BALLOONS,
    CRIO_INTERRUPTS,
    TOPOLOGY_AWARE,
    TUNED,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import (
    SIGNS,
    TUNED_FILES,
    TUNED_VARIABLES,
    write_owned,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import Run, ansible_playbook, fingerprint, play, task

PLAYBOOK = "kubenode.cpu_manager.housekeeping"
# One that the service sees, which the tests' own need not be.
PYTHON = "/usr/bin/python3"
CONFIGURATION = HEADER + 'cpuManagerPolicy: static\nreservedSystemCPUs: "0-1"\n'


def node(root: Path) -> Path:
    write_machine(root, "1s4c2t")
    housekept.write_node(root)
    (root / "etc/hostname").write_text("worker\n")
    (root / "var/lib/kubelet").mkdir(parents=True)
    (root / "var/lib/kubelet/config.yaml").write_text(CONFIGURATION)
    return root


def variables(root: Path, **more: Any) -> dict[str, Any]:
    return {"housekeeping_node_root": str(root), "housekeeping_interpreter": PYTHON, **more}


def answer(run: Run, host: str) -> Any:
    """Return what the module answered: the last time, as the playbook finds the nodes that change before."""
    *_before, found = (result for result in run.results[host] if "changes" in result)
    return found


def held(root: Path, path: str) -> str:
    return (root / path).read_text().strip()


def test_the_playbook(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    roots = {name: node(nodes / name) for name in ("kubelet", "given", "planned")}
    hosts = {
        "kubelet": variables(roots["kubelet"], housekeeping_kernel_arguments=True),
        "given": variables(roots["given"], housekeeping_reserved_system_cpus="0,4", kubelet_reserved_system_cpus="2"),
        "planned": variables(
            roots["planned"],
            kubelet_reservation={"count": 2},
            housekeeping_layers=["interrupts", "watchdog"],
            housekeeping_persistent=False,
        ),
    }
    before = fingerprint(nodes)
    check = ansible_playbook(tmp_path / "check", PLAYBOOK, hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    assert fingerprint(nodes) == before
    assert "+AllowedCPUs=0-1" in check.output
    assert "+24 eth0-0: 0-1" in check.output

    run = ansible_playbook(tmp_path / "run", PLAYBOOK, hosts, "--diff")
    assert run.status == 0, run.account()
    after = fingerprint(nodes)
    for name in hosts:
        assert answer(run, name)["changes"] == answer(check, name)["changes"]
        assert answer(run, name)["changed"]
    wanted = {"kubelet": "0-1", "given": "0,4", "planned": "0-1"}
    assert {name: answer(run, name)["reserved"] for name in hosts} == {**wanted, "planned": "0,4"}
    kubelet, planned = roots["kubelet"], roots["planned"]
    assert held(kubelet, "proc/irq/24/smp_affinity_list") == "0-1"
    assert held(kubelet, "sys/fs/cgroup/system.slice/cpuset.cpus") == "0-1"
    assert held(kubelet, "sys/fs/cgroup/kubepods.slice/cpuset.cpus") == ""
    assert held(kubelet, "etc/default/irqbalance").endswith("IRQBALANCE_BANNED_CPULIST=2-15")
    assert "rcu_nocbs=2-15" in "".join(path.read_text() for path in (kubelet / "etc/default").rglob("*grub*/*.cfg"))
    assert held(planned, "proc/sys/kernel/watchdog_cpumask") == "0,4"
    assert held(planned, "sys/devices/virtual/workqueue/cpumask") == "ff"
    needs = answer(run, "kubelet")["needs"]
    assert needs["daemon_reload"]
    assert needs["restart_irqbalance"]
    assert len(needs["update_loader"]) == 1
    assert "rcu_nocbs=2-15 counts from the next boot on" in needs["reboot"]
    assert answer(run, "given")["needs"]["reboot"] == []
    assert any("eth0-1" in note for note in answer(run, "given")["notes"])

    # A node that needs nothing takes one call of a module.
    again = ansible_playbook(tmp_path / "again", PLAYBOOK, hosts)
    assert again.status == 0, again.account()
    assert fingerprint(nodes) == after
    assert "changed=0" in again.output
    assert "changed=1" not in again.output
    for name in hosts:
        names = [result["task"].partition(" : ")[2] for result in again.results[name]]
        assert [name for name in names if not name.startswith("Validating")] == [
            "Bring the host's own work to its CPUs",
            "Tell what is left to do",
        ]

    back = ansible_playbook(
        tmp_path / "back", PLAYBOOK, {name: {**given, "housekeeping_state": "absent"} for name, given in hosts.items()}
    )
    assert back.status == 0, back.account()
    assert fingerprint(nodes) == before
    gone = ansible_playbook(
        tmp_path / "gone", PLAYBOOK, {name: {**given, "housekeeping_state": "absent"} for name, given in hosts.items()}
    )
    assert "changed=1" not in gone.output, gone.account()


def test_what_is_refused(tmp_path: Path) -> None:
    root = node(tmp_path / "node")
    wrong: dict[str, dict[str, Any]] = {
        "leave none for pods": {"reserved_system_cpus": "0-7"},
        "none is online": {"reserved_system_cpus": "9"},
        "isolcpus=domain": {"kernel_isolation": ["domain"]},
        "the service does not see what is in /tmp": {"interpreter": "/tmp/python"},
        "there is no owner me": {"allow_owners": ["me"]},
    }
    before = fingerprint(root)
    tasks = [
        {**task("housekeeping", root="{{ root }}", **{"interpreter": PYTHON, **given}), "ignore_errors": True}
        for given in wrong.values()
    ]
    run = ansible_playbook(tmp_path / "run", play(*tasks), {"node": {"root": str(root)}})
    assert len(run.results["node"]) == len(wrong)
    for message, result in zip(wrong, run.results["node"]):
        assert message in result["msg"]
    assert fingerprint(root) == before


def test_what_others_manage_is_refused(tmp_path: Path) -> None:
    """Each node has the files of one other owner: both names, the way out, and nothing is written."""
    signs = {sign.name: sign for sign in SIGNS}
    others = {
        "tuned, left": (TUNED, "tuned with the profile realtime", "take another profile with tuned-adm"),
        "crio, interrupts": (
            CRIO_INTERRUPTS,
            "CRI-O's annotation irq-load-balancing",
            "remove irq-load-balancing.crio.io from allowed_annotations",
        ),
        "balloons, plugin files": (BALLOONS, "the NRI policy balloons", "uninstall the NRI policy"),
        "topology, left": (TOPOLOGY_AWARE, "the NRI policy topology-aware", "uninstall the NRI policy"),
    }
    roots = {owner: node(tmp_path / owner) for owner, _name, _remedy in others.values()}
    for name, (owner, _name, _remedy) in others.items():
        write_owned(roots[owner], signs[name].files)
    before = {owner: fingerprint(root) for owner, root in roots.items()}
    tasks = play(
        {**task("housekeeping", root="{{ root }}", interpreter=PYTHON), "ignore_errors": True},
        {**task("housekeeping", root="{{ root }}", interpreter=PYTHON), "ignore_errors": True, "check_mode": True},
        task("housekeeping", root="{{ root }}", interpreter=PYTHON, state="absent"),
        {
            **task("housekeeping", root="{{ root }}", interpreter=PYTHON, allow_owners=["{{ owner }}"]),
            "check_mode": True,
        },
        {
            **task("housekeeping", root="{{ root }}", interpreter=PYTHON, layers=["slices", "workqueues"]),
            "check_mode": True,
            "ignore_errors": True,
        },
    )
    hosts = {owner: {"root": str(root), "owner": owner} for owner, root in roots.items()}
    run = ansible_playbook(tmp_path / "run", tasks, hosts)
    assert run.status == 0, run.account()
    for sign, (owner, name, remedy) in others.items():
        refused, checked, absent, allowed, without_interrupts = run.results[owner]
        # The others write interrupts only.
        assert ("failure" in without_interrupts) == (owner == TUNED)
        assert refused["msg"] == checked["msg"]
        assert "the role housekeeping cannot be used beside %s, which was found here" % name in refused["msg"]
        assert signs[sign].evidence[0] in refused["msg"]
        assert remedy in refused["msg"]
        assert "add %s to allow_owners" % owner in refused["msg"]
        assert refused["failure"]["kind"] == "other_owner"
        assert (absent["changed"], allowed["changed"]) == (False, True)
        assert fingerprint(roots[owner]) == before[owner]


def test_tuned_is_given_its_cpus(tmp_path: Path) -> None:
    root = node(tmp_path / "node")
    write_owned(root, TUNED_FILES)
    before = fingerprint(root)
    hosts = {"node": variables(root, housekeeping_tuned=True)}
    refused = ansible_playbook(tmp_path / "refused", PLAYBOOK, {"node": variables(root)})
    assert refused.status == 2, refused.account()
    assert "housekeeping_tuned: true" in refused.last("node")["msg"]
    apply = ["tuned-adm", "profile", "cpu-partitioning"]
    check = ansible_playbook(tmp_path / "check", PLAYBOOK, hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    assert fingerprint(root) == before
    assert "+isolated_cores=2-7" in check.output
    assert "-isolated_cores=6-7" in check.output
    assert apply in answer(check, "node")["commands"]

    run = ansible_playbook(tmp_path / "run", PLAYBOOK, hosts)
    assert run.status == 0, run.account()
    assert answer(run, "node")["changes"] == answer(check, "node")["changes"]
    assert held(root, TUNED_VARIABLES).endswith("isolated_cores=2-7")
    assert held(root, "etc/default/irqbalance") == housekept.VARIABLES.strip()
    assert held(root, "sys/fs/cgroup/system.slice/cpuset.cpus") == "0-1"
    needs = answer(run, "node")["needs"]
    assert needs["apply_tuned"] == [apply]
    waits = "tuned gives the kernel nohz_full, rcu_nocbs for CPUs %s, which count from the next boot on"
    assert needs["reboot"] == [waits % "2-7"]
    after = fingerprint(root)

    again = ansible_playbook(tmp_path / "again", PLAYBOOK, hosts)
    assert "changed=0" in again.output, again.account()
    assert fingerprint(root) == after
    look = ansible_playbook(tmp_path / "look", play(task("housekeeping_info", root=str(root))), {"node": {}})
    (found,) = look.results["node"]
    assert (found["tuned"]["isolated"], found["tuned"]["wanted"]) == ("2-7", "2-7")
    assert (found["contradictions"], "two-owners" in found["note_checks"]) == ([], False)
    assert not [finding for finding in found["findings"] if finding["subject"] == "tuned"]

    back = ansible_playbook(tmp_path / "back", PLAYBOOK, {"node": {**hosts["node"], "housekeeping_state": "absent"}})
    assert back.status == 0, back.account()
    assert fingerprint(root) == before
    assert answer(back, "node")["needs"]["apply_tuned"] == [apply]
    assert answer(back, "node")["needs"]["reboot"] == [waits % "6-7"]


def test_tuned_that_cannot_be_given_cpus(tmp_path: Path) -> None:
    """Before anything is written: what is in the way, the file, and the way out."""
    wrong = {
        "function": ({TUNED_VARIABLES: "isolated_cores=${f:calc_isolated_cores:1}\n"}, TUNED_VARIABLES),
        "none": ({"etc/tuned/active_profile": ""}, "etc/tuned/active_profile"),
        "other": ({"etc/tuned/active_profile": "balanced\n"}, "etc/tuned/active_profile"),
    }
    roots = {name: node(tmp_path / name) for name in wrong}
    for name, (files, _path) in wrong.items():
        write_owned(roots[name], {**TUNED_FILES, **files})
    before = {name: fingerprint(root) for name, root in roots.items()}
    hosts = {name: variables(root, housekeeping_tuned=True) for name, root in roots.items()}
    run = ansible_playbook(tmp_path / "run", PLAYBOOK, hosts)
    assert run.status == 2, run.account()
    for name, (_files, path) in wrong.items():
        message = run.last(name)["msg"]
        assert "%s/%s: " % (roots[name], path) in message
        assert "or leave out housekeeping_tuned on this node" in message
        assert fingerprint(roots[name]) == before[name]


def test_a_kubelet_whose_configuration_cannot_be_read(tmp_path: Path) -> None:
    """It says where the pods are: without it, they might be confined to the reserved CPUs."""
    roots = {name: node(tmp_path / "nodes" / name) for name in ("damaged", "gone")}
    (roots["damaged"] / "var/lib/kubelet/config.yaml").write_text("cgroupRoot: /a\n- b\n")
    (roots["gone"] / "var/lib/kubelet/config.yaml").unlink()
    process = roots["gone"] / "proc/4711"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")
    before = fingerprint(tmp_path / "nodes")
    hosts = {name: variables(root, housekeeping_reserved_system_cpus="0-1") for name, root in roots.items()}
    run = ansible_playbook(tmp_path / "run", PLAYBOOK, hosts)
    assert run.status != 0
    for name in roots:
        assert "config.yaml" in run.last(name)["msg"]
        assert run.last(name)["failure"]["where"].endswith("/var/lib/kubelet/config.yaml")
    assert fingerprint(tmp_path / "nodes") == before


def test_without_a_reservation(tmp_path: Path) -> None:
    """And with CPU 0 alone for a partition, which is no empty wish."""
    root, wished = node(tmp_path / "node"), node(tmp_path / "wished")
    file = root / "var/lib/kubelet/config.yaml"
    file.write_text(CONFIGURATION.replace('reservedSystemCPUs: "0-1"\n', "").replace("static", "none"))
    before = fingerprint(root), fingerprint(wished)
    bastion = tmp_path / "bastion"
    write_machine(bastion, "1s2c")
    hosts = {
        "node": variables(root),
        "wished": variables(wished, housekeeping_partition_cpus=0),
        # Without a kubelet, and to be left out.
        "bastion": variables(bastion, cpu_manager_skip_hosts_without_kubelet=True),
    }
    run = ansible_playbook(tmp_path / "run", PLAYBOOK, hosts)
    assert run.status != 0
    assert not [result for result in run.results["bastion"] if result.get("failed")]
    assert "housekeeping_partition_cpus" in run.last("wished")["msg"]
    assert "reserves no CPUs" in run.last("node")["msg"]
    assert "housekeeping_reserved_system_cpus" in run.last("node")["msg"]
    assert (fingerprint(root), fingerprint(wished)) == before

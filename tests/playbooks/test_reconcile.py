# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module reconcile, on a node with a kubelet and on one without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import ansible_playbook, check_and_run, fingerprint, play, task

FILE = "var/lib/kubelet/cpu_manager_state"
ID = "a" * 64

LISTED: dict[str, Any] = {
    "reserved_system_cpus": "0,4",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "containers": [
        {"pod": "db", "name": "server", "cgroup": "apps/db", "cpus": 2},
        {"pod": "web", "name": "app", "cgroup": "apps/web"},
    ],
}


def make_machine(root: Path) -> Path:
    write_machine(root, "1s4c2t")
    return root


def kubelet_node(root: Path) -> Path:
    """Return a node whose container has lost its CPUs, and whose pods were narrowed."""
    pod = saved.pod_path(saved.SYSTEMD, "uid-db", "Guaranteed")
    cgroups = {"kubepods.slice": saved.Files("0-3", "0"), pod: saved.Files("0-3", "0")}
    saved.write_cgroups(
        make_machine(root), saved.V1, {**cgroups, **saved.container_files(saved.SYSTEMD, "containerd", pod, ID, "0-3")}
    )
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / ("db-0_shop_server-%s.log" % ID)).touch()
    (root / FILE).parent.mkdir(parents=True)
    state = State(CPUSet.parse("0,2-4,6-7"), {"uid-db": {"server": CPUSet.parse("1,5")}})
    (root / FILE).write_bytes(write_checkpoint("static", state))
    return root


def bare_node(root: Path) -> Path:
    whole = saved.Files("0-7", "0")
    saved.write_cgroups(make_machine(root), saved.V1, {"apps": whole, "apps/db": whole, "apps/web": whole})
    return root


def test_check_run_and_run_again(tmp_path: Path) -> None:
    roots = {"kubelet": kubelet_node(tmp_path / "nodes/kubelet"), "bare": bare_node(tmp_path / "nodes/bare")}
    hosts = {name: {"root": str(root)} for name, root in roots.items()}
    plays = [
        *play(task("reconcile", root="{{ root }}"), hosts="kubelet"),
        *play(task("reconcile", root="{{ root }}", **LISTED), hosts="bare"),
    ]
    check, run = check_and_run(tmp_path, plays, hosts)
    after = fingerprint(tmp_path / "nodes")
    again = ansible_playbook(tmp_path / "again", plays, hosts)
    assert again.status == 0, again.account()
    assert fingerprint(tmp_path / "nodes") == after
    for name in hosts:
        assert check.last(name) == run.last(name)
        assert run.last(name)["changed"]
        assert not again.last(name)["changed"]
        assert again.last(name)["counts"]["kept"] == len(run.last(name)["containers"])

    top = {name: root / saved.V1.mount[1:] for name, root in roots.items()}
    told = run.last("kubelet")
    assert [(row["pod"], row["container"], row["effective"], row["wanted"]) for row in told["containers"]] == [
        ("shop/db-0", "server", "0-3", "1,5")
    ]
    assert [(write["path"], write["new"]) for write in told["widened"]] == [
        ("kubepods.slice", "0-3,5"),
        ("kubepods.slice/kubepods-poduid_db.slice", "0-3,5"),
    ]
    assert (top["kubelet"] / told["containers"][0]["cgroup"] / "cpuset.cpus").read_text() == "1,5\n"
    assert (top["bare"] / "apps/db/cpuset.cpus").read_text() == "1,5\n"
    assert (top["bare"] / "apps/web/cpuset.cpus").read_text() == "0,2-4,6-7\n"
    assert run.last("bare")["shared_pool"] == "0,2-4,6-7"
    assert "+pod db, container server: 1,5" in run.output


def test_what_is_refused(tmp_path: Path) -> None:
    root = bare_node(tmp_path / "node")
    wrong: dict[str, dict[str, Any]] = {
        "not enough free physical CPUs": {"containers": [{**LISTED["containers"][0], "cpus": 8}]},
        "reserved_system_cpus: CPU list": {"reserved_system_cpus": "0,,1"},
        'cpu_manager_policy_options: unknown CPU Manager Policy option: "full-pcpu"': {
            "cpu_manager_policy_options": {"full-pcpu": True}
        },
    }
    tasks = [
        {**task("reconcile", root="{{ root }}", **{**LISTED, **given}), "ignore_errors": True}
        for given in wrong.values()
    ]
    run = ansible_playbook(tmp_path / "run", play(*tasks), {"node": {"root": str(root)}})
    for message, result in zip(wrong, run.results["node"]):
        assert message in result["msg"]
    assert len(run.results["node"]) == len(wrong)
    assert not (root / FILE).exists()

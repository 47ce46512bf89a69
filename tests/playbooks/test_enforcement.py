# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What drift_info tells of the cgroups of nodes of each kind, and that reconcile does what it tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    STYLES,
    SYSTEMD,
    Files,
    Style,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import ansible_playbook, fingerprint, play, task

OWN, SHARED = "a" * 64, "b" * 64
CONFIGURATION = HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
# Without it a kubelet from 1.35 on does not start with version 1 of cgroups.
V1 = "failCgroupV1: false\n"


def make_node(root: Path, style: Style | None, more: str = V1) -> Path:
    """Return a node whose database has lost its CPUs and whose pods were narrowed; without a style, no pod runs.

    more: of its kubelet's configuration.
    """
    write_machine(root, "1s4c2t")
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text(CONFIGURATION + more)
    state = State(CPUSet.parse("0,2-4,6-7"), {"uid-db": {"server": CPUSet.parse("1,5")}})
    (kubelet / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
    if style is None:
        return root
    database, web = pod_path(SYSTEMD, "uid-db", "Guaranteed"), pod_path(SYSTEMD, "uid-web", "Burstable")
    above = {path: Files("0-7", "0") for path in ("kubepods.slice", "kubepods.slice/kubepods-burstable.slice", web)}
    cgroups = {
        "system.slice": Files("0-1", "0", (4242,)),
        **above,
        database: Files("0-3", "0"),
        **container_files(SYSTEMD, "containerd", database, OWN, "0-3"),
        **container_files(SYSTEMD, "containerd", web, SHARED, "0,2-4,6-7"),
    }
    write_cgroups(root, style, cgroups)
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    for name, container in (("db-0_shop_server", OWN), ("web-1_shop_app", SHARED)):
        (logs / ("%s-%s.log" % (name, container))).touch()
    return root


def test_each_kind_of_cgroups(tmp_path: Path) -> None:
    styles: dict[str, Style | None] = {**STYLES, "empty": None}
    nodes = tmp_path / "nodes"
    hosts: dict[str, dict[str, Any]] = {
        name: {"root": str(make_node(nodes / name, style))} for name, style in styles.items()
    }
    before = fingerprint(nodes)
    look, act = task("drift_info", root="{{ root }}"), task("reconcile", root="{{ root }}")
    check = ansible_playbook(tmp_path / "check", play(look, act), hosts, "--check")
    assert check.status == 0, check.account()
    assert fingerprint(nodes) == before
    run = ansible_playbook(tmp_path / "run", play(look, act, look), hosts)
    assert run.status == 0, run.account()
    for name in hosts:
        found, written, after = run.results[name]
        assert [found, written] == check.results[name]
        drift = {row["subject"]: (row["wanted"], row["found"]) for row in found["drift"] if "remedy" not in row}
        rows = [row for row in written.get("containers", ()) if row["result"] == "written"]
        widened = {"cgroup " + write["path"]: (write["new"], write["old"]) for write in written["widened"]}
        assert drift == {
            **widened,
            **{"container %(pod)s/%(container)s" % row: (row["wanted"], row["effective"]) for row in rows},
        }
        # What is left is nobody's to write but the administrator's. A kubelet uses v2 only where it is all there is.
        left = {"empty": [], "hybrid-v2": ["start", "cgroup system.slice"]}.get(name, ["cgroup system.slice"])
        assert [row["subject"] for row in after["drift"]] == left
        assert after["actions"] == []
        owners = {owner["owner"] or owner["use"]: owner["cpus"] for owner in found["owners"]}
        database = "uid-db/server" if name == "empty" else "shop/db-0/server"
        assert owners == {database: "1,5", "reserved": "0,4", "shared": "2-3,6-7"}
        if name == "empty":
            assert (found["status"], found["enforcement"]) == ("nothing wanted", None)
            continue
        assert found["status"] == "drift"
        assert found["actions"] == ["reconcile"]
        assert len(rows) == len(widened) == 1
        assert (found["enforcement"]["version"], found["enforcement"]["mount"]) == (
            (STYLES[name].version, STYLES[name].mount)
        )
        assert found["enforcement"]["containers"] == {"kept": 1, "different": 1, "skipped": 0}
        assert after["enforcement"]["containers"] == {"kept": 2, "different": 0, "skipped": 0}


def test_cgroups_of_a_kubelet_that_would_not_start_again(tmp_path: Path) -> None:
    """What it gave out while it ran counts as long as its containers run."""
    name, style = next((name, style) for name, style in STYLES.items() if style.version == 1)
    root = make_node(tmp_path / "node", style, more="")
    run = ansible_playbook(tmp_path / "run", play(task("drift_info", root=str(root))), {name: {}})
    assert run.status == 0, run.account()
    found = run.last(name)
    assert found["found_refusal"].startswith("failCgroupV1: ")
    assert (found["status"], found["actions"], found["checkpoint"]["verdict"]) == ("drift", ["reconcile"], "accepted")
    assert found["enforcement"]["containers"] == {"kept": 1, "different": 1, "skipped": 0}
    assert {row["subject"] for row in found["drift"]} == {
        "start",
        "container shop/db-0/server",
        "cgroup kubepods.slice/kubepods-poduid_db.slice",
        "cgroup system.slice",
    }

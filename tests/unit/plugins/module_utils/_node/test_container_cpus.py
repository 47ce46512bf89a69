# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/container_cpus.py."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers import crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import (
    Crictl,
    LoggedContainer,
    hashed,
    names_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import (
    ABSENT,
    ENDED,
    KEPT,
    SKIPPED,
    WRITE,
    Running,
    cuts,
    decide,
    find_hierarchy,
    observe,
    widened,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

ONLINE = cpus("0-7,10-11")
MIXED = {"uid-mixed": {"own": cpus("10"), "shared": cpus("11")}}
STATE = State(
    cpus("0-1,6-9"),
    {"uid-a": {"app": cpus("2-3"), "gone": cpus("8-9"), "empty": CPUSet()}, "id-v1": {"?": cpus("4")}, **MIXED},
    {"uid-whole": cpus("5"), "uid-mixed": cpus("10-11")},
)


def container(
    effective: str | None, pod_uid: str = "uid-a", name: str | None = "app", container_id: str = "id"
) -> Running:
    path = "kubepods/pod%s/%s" % (pod_uid, container_id)
    found = None if effective is None else cpus(effective)
    return Running(pod_uid, "shop/pod", name, container_id, path, path, "kubepods", found)


# --- what each container is to have -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("running", "policy", "expected"),
    [
        (container("2-3"), "static", (KEPT, "2-3", "")),
        (container("0-7"), "static", (WRITE, "2-3", "")),
        (container("2-3", name="sidecar"), "static", (WRITE, "0-1,6-7", "CPUs 8-9 are not online")),  # the shared pool
        (container("0-1,6-7", "uid-b"), "static", (KEPT, "0-1,6-7", "CPUs 8-9 are not online")),
        (container("0-7", "uid-b", None), "static", (WRITE, "0-1,6-7", "CPUs 8-9 are not online")),  # whoever it is
        (container("0-7", "uid-v1", None, "id-v1"), "static", (WRITE, "4", "")),  # format 1
        (container("0-7"), "none", (SKIPPED, "", "the policy is none")),
        (container("0-7"), None, (SKIPPED, "", "the policy is None")),
        (container("0-7", name=None), "static", (SKIPPED, "", "its name is not known")),
        (container("0-7", "uid-whole"), "static", (SKIPPED, "", "its pod has CPUs as a whole, and none of its")),
        # Those that share what is left of their pod's have that, and not the node's pool.
        (container("0-7", "uid-mixed", "own"), "static", (WRITE, "10", "")),
        (container("0-7", "uid-mixed", "shared"), "static", (WRITE, "11", "")),
        (container("0-7", "uid-mixed", None), "static", (SKIPPED, "", "its name is not known")),
        (container("0-7", name="empty"), "static", (SKIPPED, "", "its wanted set is empty")),
        (container("0-7", name="gone"), "static", (SKIPPED, "", "none of its CPUs 8-9 is online")),
        (container(None), "static", (SKIPPED, "2-3", ENDED)),
    ],
)
def test_decide(running: Running, policy: str | None, expected: tuple[str, str, str]) -> None:
    row = decide([running], policy, STATE, ONLINE)[0]
    result, wanted, why = expected
    assert (row.result, str(row.wanted)) == (result, wanted)
    assert row.why.startswith(why)
    assert bool(row.why) == bool(why)


def test_what_nobody_names_is_no_container() -> None:
    sandbox = container("0-7", "uid-b", None)
    row = decide([sandbox], "static", STATE, ONLINE, all_named=True)[0]
    assert row.result == SKIPPED
    assert "neither the runtime nor a log names it" in row.why
    assert decide([container("0-7")], "static", STATE, ONLINE, all_named=True)[0].result == WRITE


def test_a_row_is_plain_data() -> None:
    rows = decide([container("0-7"), container("2-3"), container(None)], "static", STATE, ONLINE, absent=ABSENT)
    told = [row.to_dict() for row in rows]
    assert told[0] == {
        "pod_uid": "uid-a",
        "pod": "shop/pod",
        "container": "app",
        "id": "id",
        "cgroup": "kubepods/poduid-a/id",
        "wanted": "2-3",
        "effective": "0-7",
        "result": WRITE,
        "why": "",
    }
    assert (told[1]["effective"], told[2]["effective"], told[2]["why"]) == ("2-3", "", ABSENT)


# --- what is above them -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "held", "effective", "wanted", "expected"),
    [
        (1, "0-3", "0-3", "2-3", None),
        (1, "0-1", "0-1", "1-2", "0-2"),
        (1, "", "", "1", "1"),
        (2, "", "0-7", "1", None),  # an empty set cuts nothing
        (2, "", "0-3", "5", None),  # what is above it does
        (2, "0-1", "0-1", "1-2", "0-2"),
        (2, "0-1,9", "0-1", "1-2", "0-2,9"),  # offline, and remembered
        (2, "6", "0-3", "1", "0-3,6"),  # nothing of its own is effective, so all of its parent's comes through
    ],
)
def test_widened(version: int, held: str, effective: str, wanted: str, expected: str | None) -> None:
    wider = widened(version, cpus(held), cpus(effective), cpus(wanted))
    assert (None if wider is None else str(wider)) == expected
    if wider is not None:
        assert not cuts(version, wider, cpus(wanted))


OWN, SANDBOX = "a" * 64, "d" * 64


def make_node(
    root: Path, style: saved.Style, driver: str = saved.CGROUPFS, runtime: str = "containerd", below: str = ""
) -> str:
    """Return a saved node with a container and its sandbox; give the container's cgroup."""
    pod = "/".join(filter(None, (below, saved.pod_path(driver, "uid-db", "Burstable"))))
    own = saved.container_files(driver, runtime, pod, OWN, "2-3")
    kubepods = {
        path: saved.Files("0-7", "0") for path in (pod, os.path.dirname(pod), os.path.dirname(os.path.dirname(pod)))
    }
    host = {"system.slice": saved.Files("0-1", "0"), "system.slice/sshd.service": saved.Files("0", "0", (7,))}
    # On v2 a mount, in which nothing runs.
    host.update({} if style.version == 1 else {"dev-hugepages.mount": saved.Files(None, None)})
    sandbox = saved.container_files(driver, runtime, pod, SANDBOX, "0-7")
    saved.write_cgroups(root, style, {**host, **kubepods, **own, **sandbox})
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / ("db-0_shop_server-%s.log" % OWN)).touch()
    return next(iter(own))


@pytest.mark.parametrize(("runtime", "driver"), list(saved.CONTAINER_NAMES))
@pytest.mark.parametrize("style", list(saved.STYLES.values()), ids=list(saved.STYLES))
def test_what_runs(tmp_path: Path, style: saved.Style, runtime: str, driver: str) -> None:
    path = make_node(tmp_path, style, driver, runtime)
    found, notes = observe(Tree(str(tmp_path)), "")
    assert found is not None
    assert notes == []
    assert (found.version, found.mount, found.online) == (style.version, style.mount, cpus("0-7"))
    by_id = {container.id: container for container in found.running}
    own, sandbox = by_id.pop(OWN), by_id.pop(SANDBOX)
    assert by_id == {}
    assert (own.cgroup, own.pod, own.name, own.pod_uid) == (path, "shop/db-0", "server", "uid-db")
    # On v1, a cgroup inside has nothing by itself.
    empty_inside = runtime.endswith("crun") and style.version == 1
    assert (own.effective, own.inner) == (cpus("2-3"), CPUSet() if empty_inside else None)
    assert (sandbox.name, found.all_named, found.pod_names()) == (None, True, {"uid-db": "shop/db-0"})
    assert len(found.kubelets) == 2
    assert found.hosts == ["system.slice"]
    assert found.effective["system.slice"] == found.held("system.slice") == cpus("0-1")
    above = found.above(path)
    assert len(above) == 3
    # Each of which something is to be told was read, and nothing of the host's that is further down.
    assert set(found.cpus) == set(found.effective) == {*above, own.cgroup, sandbox.cgroup, *found.hosts}
    assert found.held(path) == cpus("2-3")
    assert found.held("no/such") == CPUSet()
    # No process of a saved node is there.
    assert found.affinities == {}


def test_the_kubelets_own_root(tmp_path: Path) -> None:
    path = make_node(tmp_path, saved.V2, below="fence")
    tree = Tree(str(tmp_path))
    found, _notes = observe(tree, "fence")
    assert found is not None
    assert found.running[0].cgroup == path
    assert found.kubelets == ["fence/kubepods", "fence/kubepods/burstable"]
    # Not the host's: pods are in it.
    assert found.hosts == ["system.slice"]
    assert "fence" in found.cpus
    nobody, _notes = observe(tree, "")
    assert nobody is not None
    assert (nobody.running, nobody.kubelets, nobody.hosts) == ([], [], ["fence", "system.slice"])


@pytest.mark.parametrize(
    "status", ["Name:\tsleep\nCpus_allowed_list:\t3\n", "Name:\tsleep\n", "Cpus_allowed_list:\tx\n"]
)
def test_what_a_process_may_use(tmp_path: Path, status: str) -> None:
    make_node(tmp_path, saved.V1)
    process = tmp_path / "proc" / str(int(OWN[:6], 16))
    process.mkdir()
    (process / "status").write_text(status)
    # A sandbox only sleeps.
    sandbox = tmp_path / "proc" / str(int(SANDBOX[:6], 16))
    sandbox.mkdir()
    (sandbox / "status").write_text("Cpus_allowed_list:\t1\n")
    found, _notes = observe(Tree(str(tmp_path)), "")
    assert found is not None
    assert found.affinities == ({OWN: cpus("3")} if status.endswith("3\n") else {})


def test_containers_that_nobody_names(tmp_path: Path) -> None:
    make_node(tmp_path, saved.V1)
    next((tmp_path / "var/log/containers").iterdir()).unlink()
    found, _notes = observe(Tree(str(tmp_path)), "")
    assert found is not None
    assert ({container.name for container in found.running}, found.all_named, found.pod_names()) == ({None}, False, {})


def test_a_node_without_cpusets(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert find_hierarchy(tree)[0] is None
    found, notes = observe(tree, "")
    assert found is None
    assert "no cpuset controller" in notes[0]


# --- names --------------------------------------------------------------------------------------------


def test_names(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert names_of(tree) == ({}, False)
    make_node(tmp_path, saved.V1)
    logged = {OWN: LoggedContainer("shop/db-0", "server")}
    assert names_of(tree) == (logged, True)
    runtime = Crictl("crictl", None, lambda _arguments: '{"containers": null}')
    runtime.read()
    # It may be another one than the kubelet's.
    assert names_of(tree, runtime) == (logged, True)
    broken = Crictl("crictl", None, lambda _arguments: "")
    broken.read()
    assert names_of(tree, broken) == (logged, True)


def test_the_runtime_is_asked_where_there_are_no_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_node(tmp_path, saved.V1)
    asked = []

    def find(_tree: Tree, endpoint: str | None) -> Crictl:
        asked.append(endpoint)
        listed: dict[str, Any] = {"id": OWN, "metadata": {"name": "server"}, "labels": None}
        return Crictl("crictl", None, lambda _arguments: json.dumps({"containers": [listed]}))

    monkeypatch.setattr(crictl, "find_crictl", find)
    observe(Tree(str(tmp_path)), "")
    assert asked == []
    next((tmp_path / "var/log/containers").iterdir()).unlink()
    found, _notes = observe(Tree(str(tmp_path)), "", "unix:///run/of-it.sock")
    assert found is not None
    assert sorted(str(container.name) for container in found.running) == ["None", "server"]
    assert (asked, found.all_named) == (["unix:///run/of-it.sock"], True)
    hidden, _notes = observe(Tree(str(tmp_path)), "", hide_names=True)
    assert hidden is not None
    assert sorted(str(container.name) for container in hidden.running) == sorted(["None", hashed("server")])


def test_a_damaged_set_names_its_file(tmp_path: Path) -> None:
    path = make_node(tmp_path, saved.V2)
    (tmp_path / saved.V2.mount[1:] / path / "cpuset.cpus.effective").write_text("3-1\n")
    with pytest.raises(NodeError, match=r"cpuset.cpus.effective: CPU list '3-1', position 1: the range"):
        observe(Tree(str(tmp_path)), "")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node: its machine, its pods, its states, its name, its version and its container runtime."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree, node_name
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import NEWEST_MINOR, minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.hidden_names import with_hidden_names
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node, cgroup_root_of
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import STYLES, Files, Style, write_cgroups
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER as CONFIG
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

NAME = "2s1n2c2t+offline7"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "node"
    write_machine(root, NAME)
    return root


def test_machine(root: Path) -> None:
    node = Node(Tree(str(root)))
    assert node.topology == parse_name(NAME).topology()
    machine = node.machine()
    assert str(machine.topology.all_cpus()) == "0-6"
    assert machine.minor == NEWEST_MINOR
    assert Node(Tree(str(root)), minor=33).machine().minor == 33


@pytest.mark.parametrize(("file", "warns"), [("etc/machine-config-daemon/a", True), ("etc/kubernetes/a", False)])
def test_the_kubelet_of_openshift_only_warns_of_gates_that_it_does_not_have(root: Path, file: str, warns: bool) -> None:
    write(root, file, b"")
    write(root, "etc/kubernetes/kubelet.conf", CONFIG.encode())
    assert Node(Tree(str(root))).machine().warns_of_gates is warns


def test_the_machine_is_read_once(root: Path) -> None:
    node = Node(Tree(str(root)))
    topology = node.topology
    (root / "sys/devices/system/cpu/online").unlink()
    assert node.topology is topology


def test_no_machine(tmp_path: Path) -> None:
    with pytest.raises(NodeError):
        _topology = Node(Tree(str(tmp_path))).topology


def test_another_machine_in_its_place(root: Path) -> None:
    node = Node(Tree(str(root)))
    write(root, "proc/meminfo", b"MemTotal: 1024 kB\n")
    write(root, "sys/fs/cgroup/cpuset/tasks", b"")
    assert (node.machine().memory, node.machine().cgroup_v1) == (1 << 20, True)
    node.topology = parse_name("1s4c2t").topology()
    machine = node.machine()
    assert str(machine.topology.all_cpus()) == "0-7"
    # Memory and cgroups would be those of the machine that is here.
    assert (machine.memory, machine.cgroup_v1, machine.minor, machine.nodes()) == (None, False, node.minor, (0,))


def test_the_same_node_with_other_files(root: Path) -> None:
    file = write(root, "etc/kubelet.yaml", CONFIG.encode())
    node = Node(Tree(str(root)), "/etc/kubelet.yaml", "/data", 33, ["/usr/bin/kubelet", "--cpu-cfs-quota=false"])
    overlaid = node.on(OverlaidTree(node.tree, {"/data/cpu_manager_state": b"{}"}))
    assert (overlaid.config_path, overlaid.checkpoint(), overlaid.minor) == ("/etc/kubelet.yaml", b"{}", 33)
    assert overlaid.needed_configuration().values["cpuCFSQuota"] is False
    file.unlink()
    assert overlaid.configuration() is None
    assert node.checkpoint() is None


def test_names_stay_hidden(root: Path) -> None:
    node = Node(Tree(str(root)))
    assert not node.on(node.tree).hides_names
    hidden = with_hidden_names(node)
    assert hidden.on(node.tree).hides_names
    assert hidden.of_version(35).hides_names


def test_where_containers_are_looked_for(root: Path) -> None:
    """On a node without pods nothing is, and nothing is said of it."""
    write(root, "var/lib/kubelet/config.yaml", CONFIG.encode())
    node = Node(Tree(str(root)))
    assert node.observed(node.configuration()) == (None, [])
    write_cgroups(root, STYLES["v2"], {"kubepods": Files("0-6", "0")})
    assert node.observed(None) == (None, [])
    observed, notes = node.observed(node.configuration())
    assert observed is not None
    assert (observed.kubelets, notes) == (["kubepods"], [])


@pytest.mark.parametrize("style", list(STYLES.values()), ids=list(STYLES))
@pytest.mark.parametrize("name", ["kubepods.slice", "kubepods"])
def test_whether_pods_run(root: Path, style: Style, name: str) -> None:
    node = Node(Tree(str(root)))
    assert not node.runs_pods("")
    write_cgroups(root, style, {"system.slice": Files()})
    assert not node.runs_pods("")
    write_cgroups(root, style, {name: Files()})
    assert node.runs_pods("")


def test_the_root_of_the_kubelets_cgroups(root: Path) -> None:
    node = Node(Tree(str(root)))
    assert cgroup_root_of(node.configuration()) == ""
    for text, expected in (("", ""), ("cgroupRoot: /\n", ""), ("cgroupRoot: /a/b/\n", "a/b")):
        write(root, "var/lib/kubelet/config.yaml", (CONFIG + text).encode())
        configuration = Node(Tree(str(root))).configuration()
        assert cgroup_root_of(configuration) == expected
    # Where it is, only the hierarchy tells.
    assert node.runs_pods("a/b")


def test_checkpoint(root: Path) -> None:
    node = Node(Tree(str(root)))
    assert node.checkpoint_path == "/var/lib/kubelet/cpu_manager_state"
    file = write(root, "var/lib/kubelet/cpu_manager_state", b"")
    assert node.checkpoint() == b""  # an empty file is not no file
    file.write_bytes(b"{\xff}")
    assert node.checkpoint() == b"{\xff}"
    # What is there and cannot be read is not absent.
    file.unlink()
    file.symlink_to("nothing")
    with pytest.raises(NodeError, match="cpu_manager_state: cannot be read: No such file or directory"):
        node.checkpoint()
    file.unlink()
    file.mkdir()
    with pytest.raises(NodeError, match="cpu_manager_state: is not a regular file"):
        node.checkpoint()


@pytest.mark.parametrize("kubelet_root", ["/data/kubelet", "/data/kubelet/"])
def test_checkpoint_elsewhere(root: Path, kubelet_root: str) -> None:
    write(root, "data/kubelet/cpu_manager_state", b"{}")
    node = Node(Tree(str(root)), kubelet_root=kubelet_root)
    assert node.checkpoint_path == "/data/kubelet/cpu_manager_state"
    assert node.memory_state_path == "/data/kubelet/memory_manager_state"
    assert node.state_paths == (node.checkpoint_path, node.memory_state_path)
    assert node.memory_state() is None
    write(root, "data/kubelet/memory_manager_state", b"{ }")
    assert node.memory_state() == b"{ }"
    assert node.checkpoint() == b"{}"


def test_name(root: Path) -> None:
    tree = Tree(str(root))
    assert node_name(tree) == "node"  # the directory's
    hostname = write(root, "etc/hostname", b"worker-3\n")
    assert node_name(tree) == "worker-3"
    hostname.write_bytes(b"\n")
    assert node_name(tree) == "node"
    # A message needs a name, whatever is in this place.
    hostname.unlink()
    hostname.symlink_to("../../../hostname")
    assert node_name(tree) == "node"
    hostname.unlink()
    hostname.mkdir()
    assert node_name(tree) == "node"


def test_name_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree("/")
    monkeypatch.setattr(tree, "read_value", lambda path: {"/etc/hostname": None}[path])
    assert node_name(tree) == os.uname().nodename


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("1.36", 36),
        ("v1.36", 36),
        ("v1.36.3", 36),
        ("1.33.13", 33),
        ("v1.32.4+k3s1", 32),
        ("1.20", 20),
        ("v1.31.5-eks-5d632ec", 31),
    ],
)
def test_minor_version(version: str, minor: int) -> None:
    assert minor_version(version) == minor


@pytest.mark.parametrize(
    "version", ["", "v", "1", "36", "v2.0", "1.x", "1.", "latest", "1.36-rc.1", "1.-3", "1.\u00b2"]
)
def test_no_version(version: str) -> None:
    with pytest.raises(InputError) as caught:
        minor_version(version)
    assert str(caught.value) == "kubelet_version: %r is not a version; write one such as 1.36 or v1.35.6" % version


def test_a_change_that_did_not_come_to_its_end(root: Path) -> None:
    assert Node(Tree(str(root))).unfinished() == []
    journal = write(root, "var/lib/kubenode-cpu-manager/change.json", b"")
    (note,) = Node(Tree(str(root))).unfinished()
    assert note.startswith("%s: a change of this node is under way or was interrupted" % journal)


OURS = {"node": "worker-1", "cordoned": False}


@pytest.mark.parametrize(
    ("facts", "began", "said"),
    [
        (OURS, 1796000000, "the node worker-1 is cordoned since 2026-11-30T00:53:20Z by a rollout"),
        (OURS, None, "the node worker-1 is cordoned by a rollout that did not end: run rollout, rollback"),
        (OURS, True, "worker-1 is cordoned by"),
        (OURS, "yesterday", "worker-1 is cordoned by"),
        (OURS, 1 << 39, "worker-1 is cordoned by"),
        ({**OURS, "cordoned": True}, 1796000000, ""),
        ({"node": "worker-1"}, 1796000000, ""),
        ({"cordoned": False}, 1796000000, ""),
        ({**OURS, "node": "worker-1\x1b[2J"}, None, ""),
        ({**OURS, "node": "worker-1\nworker-2"}, None, ""),
        ({**OURS, "node": "worker-1; reboot"}, None, ""),
        ({**OURS, "node": "w" * 254}, None, ""),
        ({**OURS, "node": ["worker-1"]}, None, ""),
        (["node"], None, ""),
    ],
)
def test_a_cordon_that_a_change_has_left_over(root: Path, facts: Any, began: Any, said: str) -> None:
    """Not one of others, and nothing that is no name of a node, whatever the journal has in its place."""
    data = {"format": 1, "phase": "draining", "files": {}, "facts": facts, "began": began}
    path = write(root, "var/lib/kubenode-cpu-manager/change.json", json.dumps(data).encode())
    found = [str(note) for note in Node(Tree(str(root))).unfinished()[1:]]
    assert len(found) == bool(said)
    assert not said or (said in found[0] and found[0].startswith("%s: " % path))


def test_a_journal_that_others_may_write_tells_of_no_cordon(root: Path) -> None:
    data = {"format": 1, "phase": "draining", "files": {}, "facts": OURS}
    path = write(root, "var/lib/kubenode-cpu-manager/change.json", json.dumps(data).encode())
    Path(path).chmod(0o666)
    assert len(Node(Tree(str(root))).unfinished()) == 1


@pytest.mark.parametrize(
    ("text", "files", "endpoint"),
    [
        ("", (), None),
        # Before 1.24 it may be Docker's, and this one without CRI.
        ("", ("run/containerd/containerd.sock",), None),
        ("containerRuntimeEndpoint: unix:///run/crio/crio.sock\n", (), "unix:///run/crio/crio.sock"),
        ("containerRuntimeEndpoint: /run/crio/crio.sock\n", (), "unix:///run/crio/crio.sock"),
    ],
)
def test_the_runtimes_endpoint(root: Path, text: str, files: tuple[str, ...], endpoint: str | None) -> None:
    write(root, "var/lib/kubelet/config.yaml", (CONFIG + text).encode())
    for path in files:
        write(root, path, b"")
    node = Node(Tree(str(root)))
    assert node.runtime_endpoint(node.configuration()) == endpoint


@pytest.mark.parametrize(("socket", "endpoint"), [("run/k3s/containerd/containerd.sock", True), ("run/other", False)])
def test_the_endpoint_of_a_distribution(root: Path, socket: str, endpoint: bool) -> None:
    (root / "var/lib/rancher/k3s/agent").mkdir(parents=True)
    write(root, socket, b"")
    node = Node(Tree(str(root)))
    assert node.runtime_endpoint(None) == ("unix:///" + socket if endpoint else None)


def test_a_version_without_quotes() -> None:
    with pytest.raises(
        InputError,
        match=r"^kubelet_version: '1\.3' is older than 1\.20, the oldest that is known here; write it in quotes",
    ):
        minor_version("1.3")


@pytest.mark.parametrize(("minor", "version"), [(None, None), (34, "1.34")])
def test_the_version_is_told(root: Path, minor: int | None, version: str | None) -> None:
    """So that it is known when the kubelet is stopped, too."""
    write(root, "var/lib/kubelet/config.yaml", CONFIG.encode())
    node = Node(Tree(str(root)), minor=minor)
    told = node.kubelet(node.configuration())
    assert told is not None
    assert told["version"] == version
    assert node.minor == (minor or NEWEST_MINOR)

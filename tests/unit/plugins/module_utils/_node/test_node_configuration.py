# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a node's configuration is looked for, and what is said where it is missing, gone or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    PERMISSION,
    ConfigurationError,
    NodeError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER as CONFIG
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "node"
    write_machine(root, "2s1n2c2t+offline7")
    return root


def test_no_kubelet(root: Path) -> None:
    node = Node(Tree(str(root)))
    assert node.config_path is None
    assert node.configuration() is None
    assert node.checkpoint() is None
    with pytest.raises(NodeError) as caught:
        node.needed_configuration()
    assert caught.value.kind == "no_kubelet"
    message = str(caught.value)
    assert message.startswith("%s: no kubelet runs here, and there is no file of one; " % root)
    # What to do depends on the host.
    assert "take a host that has none, as a bastion or one of etcd alone, out of the hosts of the play" in message
    assert message.endswith("name the file that the kubelet's --config gives in config_path")
    # A report does not fail for it, and says it.
    assert node.own_notes() == [message]
    assert node.kubelet(None) is None
    assert node.elsewhere({}, None) is None
    assert node.found() == (None, None)


def test_a_configuration_that_is_missing(root: Path) -> None:
    node = Node(Tree(str(root)), config_path="/etc/kubelet.yaml")
    (note,) = node.own_notes()
    assert note == (
        "%s/etc/kubelet.yaml: no kubelet configuration there; name the file that the kubelet's --config gives in"
        " config_path" % root
    )
    with pytest.raises(NodeError) as caught:
        node.needed_configuration()
    assert (str(caught.value), caught.value.kind) == (note, "no_configuration")
    assert node.kubelet(None) is None
    assert node.found() == (None, None)


def run(root: Path, *arguments: str) -> Node:
    """Return a node whose kubelet was started with these."""
    write(root, "proc/7/cmdline", "".join(word + "\0" for word in ("/usr/bin/kubelet", *arguments)).encode())
    return Node(Tree(str(root)))


def test_a_kubelet_whose_file_is_gone(root: Path) -> None:
    """It runs still, and would not start again."""
    node = run(root, "--config=/etc/kubelet.yaml")
    # What is found wrong is not said a second time.
    assert node.own_notes() == []
    configuration, problem = node.found()
    assert configuration is None
    assert problem is not None
    assert problem.where == "%s/etc/kubelet.yaml" % root
    assert "the kubelet was started with it" in problem.problem
    assert "rollback" in problem.remedy
    write(root, "etc/kubelet.yaml", CONFIG.encode())
    configuration, problem = node.found()
    assert configuration is not None
    assert problem is None


def test_a_configuration_that_was_there_before_the_last_change(root: Path) -> None:
    journal = write(root, "var/lib/kubenode-cpu-manager/last-change.json", b"{}")
    configuration, problem = Node(Tree(str(root))).found()
    assert configuration is None
    assert problem is not None
    assert (problem.where, "rollback" in problem.remedy) == (str(journal), True)
    write(root, "var/lib/kubelet/config.yaml", CONFIG.encode())
    configuration, problem = Node(Tree(str(root))).found()
    assert configuration is not None
    assert problem is None


def test_files_that_take_more_rights_are_no_finding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read with these rights may be in order."""
    write(root, "var/lib/kubelet/config.yaml", CONFIG.encode())
    node = Node(Tree(str(root)))

    def read_text(path: str, *_limit: int) -> str:
        raise NodeError("cannot be read: Permission denied", path, "run as root", PERMISSION)

    # Root, who may run these tests, reads everything.
    monkeypatch.setattr(node.tree, "read_text", read_text)
    with pytest.raises(NodeError, match="Permission denied"):
        node.found()


def test_a_kubelet_without_a_file(root: Path) -> None:
    """Flags alone, or nothing at all, which leaves the defaults."""
    node = run(root)
    assert node.config_path is None
    configuration = node.configuration()
    assert configuration is not None
    assert configuration.values.get("cpuManagerPolicy") is None
    assert (node.configuration_paths(), node.own_notes()) == ([], [])
    assert run(root, "--cpu-manager-policy=static").needed_configuration().values["cpuManagerPolicy"] == "static"


def test_drop_ins(root: Path) -> None:
    for name, text in (("20-b.conf", "maxPods: 2\n"), ("10-a.conf", "maxPods: 1\n"), ("README", "no YAML: [")):
        write(root, "etc/kubelet.d/" + name, (CONFIG + text).encode())
    paths = ["/etc/kubelet.d/10-a.conf", "/etc/kubelet.d/20-b.conf"]
    node = run(root, "--config-dir=/etc/kubelet.d")
    assert node.configuration_paths() == paths
    assert [file.values["maxPods"] for file in node.drop_ins()] == [1, 2]
    write(root, "etc/kubelet.yaml", CONFIG.encode())
    node = run(root, "--config=/etc/kubelet.yaml", "--config-dir=/etc/kubelet.d")
    assert node.configuration_paths() == ["/etc/kubelet.yaml", *paths]
    assert node.needed_configuration().values["maxPods"] == 2


def test_notes_on_the_kubelet(root: Path) -> None:
    write(root, "var/lib/kubelet/config.yaml", CONFIG.encode())
    for pid in ("7", "8"):
        write(root, "proc/%s/cmdline" % pid, b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")
    node = Node(Tree(str(root)))
    assert node.own_notes() == ["2 kubelets run (processes 7, 8); what is said here is of process 7"]
    assert node.installation is not None
    assert list(node.installation.notes) == node.own_notes()


def test_configuration(root: Path) -> None:
    file = write(root, "etc/kubernetes/kubelet-config.yaml", CONFIG.replace("\n", "\r\n").encode())
    node = Node(Tree(str(root)))
    assert node.config_path == "/etc/kubernetes/kubelet-config.yaml"
    configuration = node.configuration()
    assert isinstance(configuration, KubeletConfiguration)
    assert configuration.source == str(file)
    # Every byte of it: it is written back.
    assert configuration.text == CONFIG.replace("\n", "\r\n")
    assert node.needed_configuration().values == configuration.values


def test_configuration_elsewhere(root: Path) -> None:
    write(root, "var/lib/kubelet/config.yaml", b"not this one")
    file = write(root, "opt/kubelet.yaml", CONFIG.encode())
    node = Node(Tree(str(root)), config_path="/opt/kubelet.yaml")
    assert node.needed_configuration().source == str(file)
    missing = Node(Tree(str(root)), config_path="/opt/missing.yaml")
    assert missing.configuration() is None
    with pytest.raises(NodeError, match=r"/opt/missing\.yaml: no kubelet configuration there"):
        missing.needed_configuration()


def test_a_distribution_with_drop_ins_and_settings_elsewhere(root: Path) -> None:
    """Which is seen by its files, without any flag."""
    (root / "etc/machine-config-daemon").mkdir(parents=True)
    write(root, "etc/kubernetes/kubelet.conf", (CONFIG + "maxPods: 1\n").encode())
    write(root, "etc/openshift/kubelet.conf.d/10-a.conf", (CONFIG + "maxPods: 2\n").encode())
    node = Node(Tree(str(root)))
    assert node.needed_configuration().values["maxPods"] == 2
    elsewhere = node.elsewhere({"cpu_manager_policy": "static"}, node.configuration())
    assert elsewhere is not None
    assert elsewhere["name"] == "OpenShift"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "config.yaml: the file is empty, expected a KubeletConfiguration"),
        (b"kind: Pod\n", "config.yaml: 'apiVersion' is missing"),
        (b"\xff\xfe", "config.yaml: is not UTF-8 text"),
    ],
)
def test_damaged_configuration(root: Path, content: bytes, message: str) -> None:
    write(root, "var/lib/kubelet/config.yaml", content)
    with pytest.raises(NodeError, match=message) as caught:
        Node(Tree(str(root))).configuration()
    assert isinstance(caught.value, ConfigurationError) == (content != b"\xff\xfe")

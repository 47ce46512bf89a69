# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Odd files of a kubelet; test_files_of_machine.py compares whole nodes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import ClassVar, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers import crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import LoggedContainer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.services import helpers_of, unit_command
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import KUBELET_ROOT
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.state_removal import removals
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved import files_of_machine as saved_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.collector import Collector
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_kubelet import save_kubelet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.restored import read_devices
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import GPU, device_state

CONFIG = "/var/lib/kubelet/config.yaml"
PLAIN = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
UNIT = "/etc/systemd/system/kubelet.service"


def saved(root: Path, files: dict[str, bytes]) -> tuple[Collector, dict[str, bytes]]:
    for path, content in {CONFIG: PLAIN.encode(), **files}.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    collector = Collector(Tree(str(root)))
    save_kubelet(collector, Node(collector.tree), False)
    return collector, {path: member.content for path, member in collector.members.items() if member.content is not None}


def test_what_is_no_text_stays_none(tmp_path: Path) -> None:
    _collector, found = saved(tmp_path, {CONFIG: b"hunter2: \xc3(hunter2"})
    assert found[CONFIG] == b" " * 9 + b"\xff"


@pytest.mark.parametrize("journal", [b"", b"[]", b"{}", b'{"files": {"/etc/x": {"content": "?"}}}', b'{"files": 5}'])
def test_a_damaged_journal_is_left_out(tmp_path: Path, journal: bytes) -> None:
    path = "/var/lib/kubenode-cpu-manager/change.json"
    collector, found = saved(tmp_path, {path: journal})
    assert path not in found
    assert list(collector.left_out) == [path]


def test_of_what_the_kubelet_restores_only_what_it_says_is_saved(tmp_path: Path) -> None:
    """Devices can have been given secrets, and what pods were resized to names containers."""
    directory = "/var/lib/kubelet/"
    files = {
        directory + "allocated_pods_state": b'{"data":"{\\"entries\\":{}}","checksum":1}"hunter2":"',
        directory
        + "device-plugins/kubelet_internal_checkpoint": b'{"Data":{"RegisteredDevices":{"hunter2":[]}},"Checksum":1}',
        directory + "actuated_pods_state": b'{"data":["hunter2"]}',
    }
    collector, found = saved(tmp_path, files)
    assert b"hunter2" not in b"".join(found.values())
    assert found[directory + "allocated_pods_state"] == b'{}"'
    assert found[directory + "device-plugins/kubelet_internal_checkpoint"] == b'{"checksum":7}'
    assert list(collector.left_out) == [directory + "actuated_pods_state"]
    path = directory + "device-plugins/kubelet_internal_checkpoint"
    given = device_state({GPU: ["hunter2"]}, ("uid-db", {"0": ["hunter2"]}))
    assert given.count(b"hunter2") == 2
    assert base64.b64encode(b"hunter2") in given
    _collector, found = saved(tmp_path, {path: given})
    assert b"hunter2" not in found[path]
    assert base64.b64encode(b"hunter2") not in found[path]
    assert read_devices(found[path]).owned == [("uid-db", "c", GPU, {0: ["0"]})]


def test_what_a_journal_remembers_is_kept_without_secrets(tmp_path: Path) -> None:
    path = "/var/lib/kubenode-cpu-manager/change.json"
    facts = {
        "rollout": "1",
        "token": "hunter2",
        "drained": True,
        "x": [{"url": "https://a:hunter2@x", "password": ["hunter2"]}],
    }
    journal = {"format": 1, "phase": "stopping", "run": "now", "facts": facts, "files": {"/etc/x": None}}
    collector, found = saved(tmp_path, {path: json.dumps(journal).encode()})
    kept = {
        "rollout": "1",
        "token": "redacted",
        "drained": True,
        "x": [{"url": "https://redacted@x", "password": ["redacted"]}],
    }
    assert json.loads(found[path]) == {**journal, "facts": kept}
    assert collector.redacted == {path}


def test_each_copy_of_a_file_in_a_journal_is_kept_as_the_file_is(tmp_path: Path) -> None:
    """What nobody here has written in a journal is left out."""
    path = "/var/lib/kubenode-cpu-manager/last-change.json"
    contents = {
        CONFIG: PLAIN + "token: hunter2\n",
        "/etc/x.toml": "version = 2\npassword = 'hunter2'\n",
        "/etc/y": "hunter2",
    }
    copies = {name: base64.b64encode(text.encode()).decode() for name, text in contents.items()}
    mode = {"mode": 384, "uid": 0, "gid": 7}
    files = {name: {**mode, "content": copy, "more": "hunter2"} for name, copy in copies.items()}
    journal = {"format": 1, "phase": "changing", "facts": {}, "files": {**files, "/etc/z": None}, "more": "hunter2"}
    kept = {CONFIG: PLAIN + 'token: "redacted"\n', "/etc/x.toml": "version = 2\n", "/etc/y": "redacted\n"}
    expected = {name: base64.b64encode(text.encode()).decode() for name, text in kept.items()}
    for written in ({}, {"written": {**copies, "/etc/z": None}}):
        _collector, found = saved(tmp_path, {path: json.dumps({**journal, **written}).encode()})
        assert json.loads(found[path]) == {
            "format": 1,
            "phase": "changing",
            "facts": {},
            "files": {**{name: {**mode, "content": copy} for name, copy in expected.items()}, "/etc/z": None},
            **({"written": {**expected, "/etc/z": None}} if written else {}),
        }


def test_a_unit_gives_the_same_command(tmp_path: Path) -> None:
    unit = (
        b"[Unit]\nDescription=x\n[Service]\n# a comment\n"
        b"Environment=A=--v=2 'B=--node-labels=\"1 2\" --x' TOKEN=hunter2\n"
        b"EnvironmentFile=-/etc/%p.env\nExecStart=\n"
        b"ExecStart=/usr/bin/kubelet $A $B \\\n; in between\n --pod-cidr=%%${C} --cgroup-root=$D --root-dir=/%p%%\n"
    )
    drop_in = b"[Service]\nEnvironment=D=d%%d\\x41 PASSWORD=hunter2\n[Install]\nEnvironment=A=--no\n"
    files = {UNIT: unit, UNIT + ".d/5.conf": drop_in, "/etc/kubelet.env": b'C="c $d"\nSECRET=hunter2\n'}
    collector, found = saved(tmp_path / "node", files)
    assert all(b"hunter2" not in content for content in found.values())
    expected = unit_command(collector.tree, "kubelet")
    assert unit_command(written(found, tmp_path / "copy"), "kubelet") == expected
    assert expected == [
        *("/usr/bin/kubelet", "--v=2", "--node-labels=1 2", "--x", "--pod-cidr=%c $d"),
        *("--cgroup-root=$D", "--root-dir=/kubelet%"),
    ]


@pytest.mark.parametrize("setting", ["ExecStartPre", "ExecStartPost", "ExecStopPost"])
@pytest.mark.parametrize(
    "command",
    [
        "-/bin/sh -c 'TOKEN=hunter2 curl --header hunter2 x; rm -f /var/lib/kubelet/*_manager_state'",
        "/bin/truncate -s 0 %s/cpu_manager_state" % KUBELET_ROOT,
        "/opt/prepare --token=hunter2",
        "/bin/mkdir -p /etc/hunter2",
    ],
)
def test_a_unit_removes_the_same_states_and_tells_no_secret(setting: str, command: str, tmp_path: Path) -> None:
    unit = "[Service]\nExecStart=/usr/bin/kubelet --config=%s\n" % CONFIG
    drop_in = "[Service]\n%s=/bin/rm -rf %s\n%s=\n%s=%s\n" % (setting, KUBELET_ROOT, setting, setting, command)
    collector, found = saved(tmp_path / "node", {UNIT: unit.encode(), UNIT + ".d/5.conf": drop_in.encode()})
    assert all(b"hunter2" not in content for content in found.values())
    states = Node(collector.tree).state_paths
    of_node, of_copy = (
        {path: removal.how for path, removal in removals(tree, "kubelet", states).items()}
        for tree in (collector.tree, written(found, tmp_path / "copy"))
    )
    assert of_copy == of_node


@pytest.mark.parametrize("link", ["kubelet.service.wants", "multi-user.target.wants"])
def test_a_unit_that_runs_before_the_kubelets_is_saved_with_what_it_removes(link: str, tmp_path: Path) -> None:
    place = "/etc/systemd/system/"
    helper = "[Unit]\nBefore=kubelet.service\n[Service]\nType=oneshot\n%s"
    lines = "Environment=TOKEN=hunter2\nExecStart=/bin/rm -f %s/cpu_manager_state\n" % KUBELET_ROOT
    unit = "[Service]\nExecStart=/usr/bin/kubelet --config=%s\n" % CONFIG
    files = {
        UNIT: unit.encode(),
        place + "clean.service": (helper % lines).encode(),
        place + link + "/clean.service": b"",
    }
    collector, found = saved(tmp_path / "node", files)
    assert all(b"hunter2" not in content for content in found.values())
    states = Node(collector.tree).state_paths
    of_node, of_copy = (
        (
            {path: removal.how for path, removal in removals(tree, "kubelet", states).items()},
            helpers_of(tree, "kubelet"),
        )
        for tree in (collector.tree, written(found, tmp_path / "copy"))
    )
    assert of_copy == of_node
    assert of_node[1]
    assert bool(of_node[0]) is (link == "kubelet.service.wants")


def written(found: dict[str, bytes], root: Path) -> Tree:
    for path, content in found.items():
        copy = root / path.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    return Tree(str(root))


def test_the_names_of_the_runtime_become_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no logs have them, and never as a path that leads elsewhere."""

    class Runtime:
        names: ClassVar = {
            "a" * 64: LoggedContainer("shop/db-0", "server"),
            "b" * 64: LoggedContainer("shop/../x", "server"),
            "c" * 64: LoggedContainer("", "nobody's"),
            "d" * 64: LoggedContainer("shop/db-0", "../server"),
        }
        calls: Sequence[str] = ()

        def read(self) -> None:
            self.calls = [*self.calls, "read"]

    runtime = Runtime()
    monkeypatch.setattr(crictl, "find_crictl", lambda *_arguments: runtime)
    collector, _found = saved(tmp_path, {"/sys/fs/cgroup/kubepods.slice/cgroup.procs": b""})
    ids = saved_files.save_names(collector, Node(collector.tree), redact=False)
    assert runtime.calls == ["read"]
    assert ids == ["a" * 64]
    logs = [path for path in collector.members if path.startswith("/var/log")]
    assert logs == ["/var/log/containers/db-0_shop_server-%s.log" % ("a" * 64)]

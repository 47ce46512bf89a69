# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The control plane: it comes up, other processes find it, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .control_plane import QEMU_HOST, ControlPlane
from .daemons import DaemonError
from .ports import LOOPBACK

COMMAND = (sys.executable, str(Path(__file__).parent))

# Brings a control plane up and then hangs, so that it can be killed.
HANG = """\
import sys, time
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from pathlib import Path
from ansible_collections.kubenode.cpu_manager.tests.cluster.control_plane import ControlPlane
with ControlPlane(Path(sys.argv[2]), Path(sys.argv[3])):
    print("up", flush=True)
    time.sleep(600)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run python tests/cluster ARGUMENTS."""
    return subprocess.run(
        [*COMMAND, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )


def processes(directory: Path) -> list[str]:
    """Return the programs that run with a file below a directory."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:  # it ended meanwhile
            continue
        if any(str(directory) + "/" in word for word in words[1:]):
            found.append(os.path.basename(words[0]))
    return sorted(found)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_is_kubernetes(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "--output=json"))
    assert {version["gitVersion"] for version in versions.values()} == {
        "v" + kubernetes.version_of(control_plane.programs / "kube-apiserver")
    }
    assert processes(control_plane.directory) == [
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ]


def test_its_controllers_work(control_plane: ControlPlane) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    }
    # Those that another test may have left.
    control_plane.kubectl("delete", "nodes", "--all")
    control_plane.kubectl("create", "namespace", "controllers")
    namespace = "--namespace=controllers"
    control_plane.kubectl("create", namespace, "--filename=-", given=json.dumps(deployment))

    def unschedulable() -> list[str]:
        pods = control_plane.objects("pods", namespace)
        conditions = [condition for pod in pods for condition in pod["status"].get("conditions", [])]
        return [condition["message"] for condition in conditions if condition["reason"] == "Unschedulable"]

    wait_for(lambda: len(unschedulable()) == 2)
    assert set(unschedulable()) == {"no nodes available to schedule pods"}
    control_plane.kubectl("delete", "namespace", "controllers")


def test_a_node_may_only_do_what_nodes_do(control_plane: ControlPlane) -> None:
    def may(user: Path, *arguments: str) -> bool:
        command = [str(control_plane.programs / "kubectl"), "--kubeconfig=%s" % user, "auth", "can-i", *arguments]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
        assert answer in ("yes", "no")
        return answer == "yes"

    node = control_plane.node_kubeconfig("worker")
    assert may(node, "create", "nodes")
    assert not may(node, "delete", "deployments")
    assert may(control_plane.admin, "delete", "deployments")


def test_guests_of_qemu_know_it_by_its_certificate(control_plane: ControlPlane) -> None:
    given = json.loads(control_plane.node_kubeconfig("guest", QEMU_HOST).read_text(encoding="utf-8"))
    port = int(given["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    assert given["clusters"][0]["cluster"]["server"] == "https://10.0.2.2:%d" % port
    context = ssl.create_default_context(cafile=control_plane.directory / "ca.crt")
    with socket.create_connection((LOOPBACK, port)) as connection:
        # Raises where the certificate does not have this name.
        context.wrap_socket(connection, server_hostname=QEMU_HOST).close()


def test_it_goes_with_whoever_has_it_up(control_plane: ControlPlane, tmp_path: Path) -> None:
    directory = tmp_path / "control-plane"
    arguments = [sys.executable, "-c", HANG, str(Path(__file__).parent.parent), str(directory)]
    with subprocess.Popen([*arguments, str(control_plane.programs)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert len(processes(directory)) == 4
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: processes(directory) == [])


def test_a_start_that_fails_leaves_nothing(control_plane: ControlPlane, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "etcd").symlink_to(control_plane.programs / "etcd")
    broken = programs / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho No, thank you\nexit 3\n", encoding="ascii")
    broken.chmod(0o755)
    directory = tmp_path / "control-plane"
    with pytest.raises(DaemonError, match=r"^kube-apiserver ended with status 3:\nNo, thank you$"):
        ControlPlane(directory, programs).start()
    assert processes(directory) == []
    assert not directory.exists()


def test_another_process_takes_it_down(control_plane: ControlPlane, tmp_path: Path) -> None:
    directory = tmp_path / "control-plane"
    try:
        up = run("up", str(directory))
        assert up.stderr == ""
        command = [str(control_plane.programs / "kubectl"), "--kubeconfig=" + up.stdout.strip(), "get", "--raw=/readyz"]
        assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"ok"
        assert run("up", str(directory)).returncode == 1
        assert len(processes(directory)) == 4
        node = run("node", str(directory), "guest")
        assert "https://10.0.2.2:" in Path(node.stdout.strip()).read_text(encoding="utf-8")
    finally:
        down = run("down", str(directory))
    assert down.returncode == 0
    assert processes(directory) == []
    assert not directory.exists()


def test_what_is_no_control_plane_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    assert run("down", str(tmp_path)).returncode == 1
    assert run("up", str(tmp_path)).returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]

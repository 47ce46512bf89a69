# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.process import Process, find_kubelet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree


def node(root: Path, *command_lines: str) -> Tree:
    """A saved node with these processes, from id 100 on."""
    for pid, line in enumerate(command_lines, 100):
        process = root / "proc" / str(pid)
        process.mkdir(parents=True)
        (process / "cmdline").write_text("".join(word + "\0" for word in line.split()))
    (root / "proc" / "self").mkdir(parents=True)
    return Tree(str(root))


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml",
        "kubelet",
        "/snap/microk8s/8000/kubelite --scheduler-args-file=/x",
        "/usr/local/bin/k3s server --disable traefik",
        "/usr/local/bin/k3s agent",
        "/var/lib/rancher/k3s/data/current/bin/k3s-agent",
    ],
)
def test_a_kubelet(tmp_path: Path, line: str) -> None:
    tree = node(tmp_path, "/sbin/init", "", line)
    assert find_kubelet(tree) == Process(102, tuple(line.split()))


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/kubectl logs kubelet",
        "/usr/bin/vim /var/lib/kubelet/config.yaml",
        "journalctl -u kubelet",
        "/usr/local/bin/k3s kubectl get nodes",
        "/usr/local/bin/k3s server --disable-agent",
        "/usr/local/bin/k3s",
    ],
)
def test_no_kubelet(tmp_path: Path, line: str) -> None:
    assert find_kubelet(node(tmp_path, "/sbin/init", line)) is None


def titled(root: Path, title: bytes) -> Tree:
    """A saved node with a process that has written this over its arguments."""
    tree = node(root, "/sbin/init", "k3s")
    (root / "proc/101/cmdline").write_bytes(title)
    return tree


@pytest.mark.parametrize(
    ("title", "arguments"),
    [
        (b"/usr/local/bin/k3s server\0", ("/usr/local/bin/k3s", "server")),
        (b"/usr/local/bin/k3s agent" + b"\0" * 90, ("/usr/local/bin/k3s", "agent")),
        (b"/usr/local/bin/k3s server" + b" " * 40 + b"\0", ("/usr/local/bin/k3s", "server")),
    ],
)
def test_k3s_hides_its_arguments(tmp_path: Path, title: bytes, arguments: tuple[str, ...]) -> None:
    assert find_kubelet(titled(tmp_path, title)) == Process(101, arguments)


@pytest.mark.parametrize("title", [b"/usr/local/bin/k3s secrets-encrypt\0", b"/usr/bin/vim /etc/k3s server\0"])
def test_other_titles(tmp_path: Path, title: bytes) -> None:
    assert find_kubelet(titled(tmp_path, title)) is None


def test_a_node_without_proc(tmp_path: Path) -> None:
    assert find_kubelet(Tree(str(tmp_path))) is None


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that is called kubelet, and waits."""
    sleep = shutil.which("sleep")
    assert sleep is not None
    return Path(shutil.copy(sleep, tmp_path / "kubelet"))


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_process_of_this_machine(program: Path) -> None:
    with subprocess.Popen([str(program), "60"]) as process:
        try:
            # For a moment a new process has no command line.
            wait_for(Path("/proc/%d/cmdline" % process.pid).read_bytes)
            found = find_kubelet(Tree("/"))
            if found is not None and found.pid < process.pid:
                pytest.skip("another kubelet runs on this machine")
            assert found == Process(process.pid, (str(program), "60"))
        finally:
            process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a namespace of processes")
def test_a_process_in_a_container_of_this_machine(program: Path) -> None:
    """A node in a container of this one has a kubelet of its own."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", str(program), "60"]
    with subprocess.Popen(unshare) as process:
        try:
            children = Path("/proc/%d/task/%d/children" % (process.pid, process.pid))
            wait_for(children.read_text)
            wait_for(Path("/proc/%s/cmdline" % children.read_text().strip()).read_bytes)
            found = find_kubelet(Tree("/"))
            assert found is None or str(program) not in found.arguments
        finally:
            process.kill()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/installation.py."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import (
    KubeletProcess,
    Search,
    find_kubelet,
    search_kubelet,
    trusted_users,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.in_cgroup import in_cgroup
from ansible_collections.kubenode.cpu_manager.tests.support.directories import open_to_all


def node(root: Path, *command_lines: str) -> Tree:
    """Return a saved node with these processes, from id 100 on."""
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
    assert find_kubelet(tree) == KubeletProcess(102, tuple(line.split()))


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
    """Return a saved node with a process that has written this over its arguments."""
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
    assert find_kubelet(titled(tmp_path, title)) == KubeletProcess(101, arguments)


@pytest.mark.parametrize("title", [b"/usr/local/bin/k3s secrets-encrypt\0", b"/usr/bin/vim /etc/k3s server\0"])
def test_other_titles(tmp_path: Path, title: bytes) -> None:
    assert find_kubelet(titled(tmp_path, title)) is None


def test_a_node_without_proc(tmp_path: Path) -> None:
    assert find_kubelet(Tree(str(tmp_path))) is None


# --- what ends at once, and what comes twice ----------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/kubelet --version",
        "/usr/bin/kubelet --version=raw --config=/x",
        "kubelet --v=2 --help",
        "kubelet -h",
        "/snap/microk8s/8000/kubelite --version",
        "/usr/local/bin/k3s server --help",
        "/usr/local/bin/k3s --version",
        "/var/lib/rancher/k3s/data/current/bin/k3s-agent --version",
    ],
)
def test_what_says_something_and_ends_hides_no_kubelet(tmp_path: Path, line: str) -> None:
    real = "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml"
    tree = node(tmp_path, "/sbin/init", line, real)
    assert search_kubelet(tree) == Search(KubeletProcess(102, tuple(real.split())))


@pytest.mark.parametrize("flag", ["--version=false", "--node-labels=--version", "-- --version", "-v 2", "--versions"])
def test_what_does_not_end(tmp_path: Path, flag: str) -> None:
    assert find_kubelet(node(tmp_path, "kubelet " + flag)) is not None


def test_k3s_with_its_agent_after_all(tmp_path: Path) -> None:
    assert find_kubelet(node(tmp_path, "k3s server --disable-agent=false")) is not None
    assert find_kubelet(node(tmp_path / "other", "k3s server --disable-agent=true")) is None


def test_two_saved_kubelets(tmp_path: Path) -> None:
    tree = node(tmp_path, "kubelet --config=/a", "kubelet --config=/b")
    kubelet, notes, _owners = search_kubelet(tree)
    assert kubelet == KubeletProcess(100, ("kubelet", "--config=/a"))
    assert notes == ("2 kubelets run (processes 100, 101); what is said here is of process 100",)


@pytest.mark.parametrize("flag", ["--rootless", "--rootless=true"])
def test_a_rootless_k3s_is_not_the_kubelet_of_the_node(tmp_path: Path, flag: str) -> None:
    """Its files are in the home of a user: nothing is to be written to /etc/rancher, which it does not read."""
    tree = node(tmp_path, "/usr/local/bin/k3s server " + flag)
    found = search_kubelet(tree)
    assert found.kubelet is None
    assert "is called k3s and does not count as one: it is rootless" in found.notes[0]
    assert find_kubelet(node(tmp_path / "other", "/usr/local/bin/k3s server --rootless=false")) is not None


def test_a_path_that_is_no_text(tmp_path: Path) -> None:
    """Its bytes lead to the file."""
    name = b"/etc/caf\xe9-\xc3\xa9.yaml"
    tree = titled(tmp_path, b"kubelet\0--config=" + name + b"\0")
    kubelet = find_kubelet(tree)
    assert kubelet is not None
    path = kubelet.arguments[1].partition("=")[2]
    assert os.fsencode(path) == name
    place = os.fsencode(tmp_path) + name
    os.makedirs(os.path.dirname(place))
    with open(place, "wb") as file:
        file.write(b"here")
    assert tree.read_bytes(path) == b"here"


# --- live processes -----------------------------------------------------------------------------------

takes_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")
NOBODY = 65534


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Yield all see the processes of this machine, so of these tests only one runs at a time, whoever runs them."""
    with open(Path(tempfile.gettempdir()) / "kubenode-processes.lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program that is called kubelet, and waits."""
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
            assert found == KubeletProcess(process.pid, (str(program), "60"))
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


class Live:
    """Processes of this machine that are called as a kubelet."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, program: Path, *users: int, name: str = "") -> int:
        """Start a program that waits, as users: real, effective and saved."""
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [name or str(program), "60"],
            executable=str(program),
            preexec_fn=(lambda: os.setresuid(*users)) if users else None,  # noqa: PLW1509 # pylint: disable=W1509
        )
        self.processes.append(process)
        wait_for(Path("/proc/%d/cmdline" % process.pid).read_bytes)
        return process.pid

    def search(self, pid: int) -> tuple[bool, str]:
        """Return whether this process is among the kubelets that count, and what is said of it."""
        kubelet, notes, _owners = search_kubelet(Tree("/"))
        told = [note for note in notes if str(pid) in note.replace(",", " ").replace(")", " ").split()]
        counts = (kubelet is not None and kubelet.pid == pid) or any("kubelets run" in note for note in told)
        return counts, "; ".join(told)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def live() -> Iterator[Live]:
    processes = Live()
    yield processes
    processes.end()


@pytest.fixture
def open_program(program: Path) -> Path:
    """Return the program, where any user may start it."""
    program.chmod(0o755)
    open_to_all(program.parent)
    return program


@takes_root
@pytest.mark.parametrize("users", [(NOBODY, NOBODY, NOBODY), (NOBODY, 0, 0), (0, NOBODY, NOBODY)])
def test_a_process_of_another_user(live: Live, open_program: Path, users: tuple[int, int, int]) -> None:
    """Also of a set-user-ID program, which somebody else has called by this name."""
    pid = live.start(open_program, *users)
    counts, note = live.search(pid)
    assert not counts
    assert note.startswith("process %d is called kubelet and does not count as one: it runs as user 65534" % pid)
    assert not trusted_users(pid)


@takes_root
def test_many_processes_of_another_user(live: Live, open_program: Path) -> None:
    """They fill no report."""
    for _each in range(9):
        live.start(open_program, NOBODY, NOBODY, NOBODY)
    _kubelet, notes, _owners = search_kubelet(Tree("/"))
    assert len(notes) <= 5
    assert any("more processes are called so and do not count" in note for note in notes)


@takes_root
@pytest.mark.parametrize(
    "name", ["kubelet", "/usr/bin/kubelet", "/snap/microk8s/1/kubelite", "k3s-server", "k3s-agent"]
)
def test_another_program_of_this_name(live: Live, name: str) -> None:
    """As one that root may start for anybody."""
    pid = live.start(Path(str(shutil.which("sleep"))), name=name)
    counts, note = live.search(pid)
    assert not counts
    assert "does not count as one: its program is '" in note


@takes_root
@pytest.mark.parametrize(("mode", "owner"), [(0o757, 0), (0o755, NOBODY)])
def test_a_program_that_others_may_write(live: Live, program: Path, mode: int, owner: int) -> None:
    os.chown(program, owner, 0)
    program.chmod(mode)
    counts, note = live.search(live.start(program))
    assert not counts
    assert "its program '%s' may be written by others than root" % program in note


@pytest.mark.parametrize(
    ("file", "name"), [("k3s", "k3s-server"), ("k3s", "/usr/local/bin/k3s-agent"), ("kubelite", "kubelite")]
)
def test_programs_that_hold_a_kubelet(live: Live, program: Path, file: str, name: str) -> None:
    assert live.search(live.start(program.rename(program.parent / file), name=name))[0]


def test_a_kubelet_whose_program_was_replaced(live: Live, program: Path) -> None:
    """As by an upgrade of its package."""
    pid = live.start(program)
    program.unlink()
    assert live.search(pid)[0]


@takes_root
@pytest.mark.parametrize(
    ("group", "program_name", "counts"),
    [
        # What root has made a service of may have any program; it comes before all others.
        ("kubenode-test.slice/kubelet.service", "sleep", True),
        ("kubenode-test.slice/k3s.service", "sleep", True),
        ("kubenode-test.slice/other.service", "sleep", False),
        # A user's own manager of services.
        ("user@1000.service/kubelet.service", "sleep", False),
        ("kubepods-test.slice/kubelet.service", "kubelet", False),
        ("kubepods-test/pod1", "kubelet", False),
        # Of a kubelet with --cgroup-root, by both drivers, and with --cgroups-per-qos=false.
        ("kubenode-test.slice/kubenode-test-kubepods.slice/kubenode-test-kubepods-pod1.slice", "kubelet", False),
        ("kubenode-test.slice/kubenode-test-kubepods-burstable.slice", "kubelet", False),
        ("kubenode-test/kubepods/burstable/pod1", "kubelet", False),
        ("kubenode-test.slice/cri-containerd-%s.scope" % ("a" * 64), "kubelet", False),
        ("kubenode-test.slice/crio-%s.scope" % ("a" * 64), "kubelet", False),
    ],
)
def test_services_and_pods(live: Live, program: Path, group: str, program_name: str, counts: bool) -> None:
    before = live.start(program)
    pid = live.start(program if program_name == "kubelet" else Path(str(shutil.which("sleep"))), name="kubelet")
    with in_cgroup(group, pid):
        kubelet, notes, _owners = search_kubelet(Tree("/"))
        assert live.search(pid)[0] is counts
        if counts:
            # Another one runs, too, and was there before.
            assert before < pid
            assert kubelet == KubeletProcess(pid, ("kubelet", "60"))
            assert any(note.endswith("what is said here is of process %d, which is a service" % pid) for note in notes)
        elif program_name == "kubelet":
            assert live.search(pid)[1].endswith("it is in a pod")

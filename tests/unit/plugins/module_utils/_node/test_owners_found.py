# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/owners_found.py: on saved nodes, and with processes of this machine."""

from __future__ import annotations

import builtins
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import Note
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import OWNER_PROGRAMS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import owners_found as owners
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.owners_found import (
    contradiction_notes,
    owners_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    BALLOONS,
    DRA_CPU,
    IRQBALANCE_OWNER,
    KUBELET_STATIC,
    POD_PROGRAMS,
    TUNED,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.in_cgroup import in_cgroup
from ansible_collections.kubenode.cpu_manager.tests.support.directories import open_to_all

CONFIG = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
KUBELET = "var/lib/kubelet/config.yaml"
SOCKET = "var/lib/kubelet/plugins_registry/dra.cpu-reg.sock"
CACHE = "var/lib/nri-resource-policy/cache"


def node(root: Path, files: dict[str, str], *command_lines: str) -> Node:
    """Return a saved node with these files, and these processes from id 100 on."""
    for pid, line in enumerate(command_lines, 100):
        files = {**files, "proc/%d/cmdline" % pid: "".join(word + "\0" for word in line.split())}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Node(Tree(str(root)))


@pytest.mark.parametrize("text", [CONFIG, CONFIG + "cpuManagerPolicy: none\n", CONFIG + 'cpuManagerPolicy: ""\n'])
def test_a_clean_node_has_none(text: str, tmp_path: Path) -> None:
    lines = ("/sbin/init", "/usr/bin/containerd", "/usr/bin/vim /usr/sbin/irqbalance.c", "grep tuned dracpu.txt")
    found = node(tmp_path, {KUBELET: text, "var/lib/kubelet/plugins_registry/csi-reg.sock": ""}, *lines)
    assert owners_of(found) == []
    assert not found.may_have_owners()
    assert contradiction_notes(found, found.configuration()) == []


def test_a_host_without_a_kubelet(tmp_path: Path) -> None:
    assert owners_of(node(tmp_path, {})) == []
    (owner,) = owners_of(node(tmp_path, {}, "/usr/sbin/irqbalance --foreground"))
    assert (owner.id, owner.evidence) == (IRQBALANCE_OWNER, ("process 100",))


def test_the_kubelet(tmp_path: Path) -> None:
    (owner,) = owners_of(node(tmp_path, {KUBELET: CONFIG + "cpuManagerPolicy: static\n"}))
    assert (owner.id, owner.evidence, owner.is_active) == (KUBELET_STATIC, ("/" + KUBELET,), True)
    running = node(tmp_path, {}, "/usr/bin/kubelet --config=/%s" % KUBELET)
    assert owners_of(running)[0].evidence == ("/" + KUBELET, "process 100")


def test_the_policy_of_a_flag(tmp_path: Path) -> None:
    line = "/usr/bin/kubelet --config=/%s --cpu-manager-policy=static" % KUBELET
    (owner,) = owners_of(node(tmp_path, {KUBELET: CONFIG}, line))
    assert owner.id == KUBELET_STATIC
    assert "cpu-manager-policy" in owner.evidence[0]


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("/usr/sbin/irqbalance", IRQBALANCE_OWNER),
        ("/usr/bin/python3 -Es /usr/sbin/tuned -l -P", TUNED),
        ("/dracpu --v=4", DRA_CPU),
        ("/bin/nri-resource-policy-balloons --host-root /host", BALLOONS),
    ],
)
def test_the_processes_of_a_saved_node(line: str, owner: str, tmp_path: Path) -> None:
    files = {"etc/tuned/active_profile": "realtime"} if owner == TUNED else {}
    (found,) = owners_of(node(tmp_path, files, "/sbin/init", line))
    assert (found.id, found.evidence[-1]) == (owner, "process 101")


def test_the_registry_of_a_kubelet_elsewhere(tmp_path: Path) -> None:
    files = {KUBELET: CONFIG, "mnt/k/plugins_registry/dra.cpu-reg.sock": ""}
    line = "/usr/bin/kubelet --config=/%s --root-dir=/mnt/k" % KUBELET
    found = node(tmp_path, files, line)
    assert [owner.id for owner in owners_of(found)] == [DRA_CPU]
    assert found.may_have_owners()


def test_two_owners_are_noted(tmp_path: Path) -> None:
    found = node(tmp_path, {KUBELET: CONFIG + "cpuManagerPolicy: static\n", SOCKET: ""})
    (note,) = contradiction_notes(found, found.configuration())
    assert isinstance(note, Note)
    assert note.check == "two-owners"
    assert note.startswith(
        "the kubelet's static CPU manager policy (/%s) and the DRA CPU driver (/%s): " % (KUBELET, SOCKET)
    )


def test_one_beside_policy_none_is_no_note(tmp_path: Path) -> None:
    found = node(tmp_path, {KUBELET: CONFIG, CACHE: '{"PolicyName": "balloons"}'})
    assert found.may_have_owners()
    assert contradiction_notes(found, found.configuration()) == []


# --- processes of this machine --------------------------------------------------------------------------------

Start = Callable[..., int]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts a program, a copy of sleep, by its name, and returns its process id. It ends with
    the test."""
    started: list[subprocess.Popen[bytes]] = []
    found: list[int] = []
    open_to_all(tmp_path)

    def start(name: str, *prefix: str, title: str = "", mode: int = 0o755) -> int:
        program = tmp_path / name
        if not program.exists():
            shutil.copy("/bin/sleep", program)
            program.chmod(mode)
        words = [str(program), "600"]
        if title:
            words = ["bash", "-c", 'exec -a "$1" "$0" 600', str(program), title]
        started.append(subprocess.Popen([*prefix, *words]))
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit() and _command_line(entry)[:1] == [(title or str(program)).encode()]:
                    found.append(int(entry.name))
                    return found[-1]
            time.sleep(0.01)
        raise AssertionError("%s was not started" % name)

    yield start
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    for process in started:
        process.kill()
        process.wait()


def _command_line(entry: Path) -> list[bytes]:
    try:
        return (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def evidence(owner: str) -> str:
    return " ".join(line for found in owners_of(Node(Tree("/"))) if found.id == owner for line in found.evidence)


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts processes of other users")


@pytest.mark.usefixtures("as_root")
def test_a_program_of_root_counts(start: Start) -> None:
    pid = start("irqbalance")
    assert "process %d" % pid in evidence(IRQBALANCE_OWNER)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("name", ["irqbalance", "dracpu", "nri-resource-policy-balloons"])
def test_another_users_process_does_not_count(name: str, start: Start) -> None:
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    pid = start(name, *nobody)
    owner = {"irqbalance": IRQBALANCE_OWNER, "dracpu": DRA_CPU}.get(name, BALLOONS)
    assert "process %d" % pid not in evidence(owner)


@pytest.mark.usefixtures("as_root")
def test_another_program_of_root_does_not_count(start: Start, tmp_path: Path) -> None:
    pid = start("something", title="%s/elsewhere/irqbalance" % tmp_path)
    assert "process %d" % pid not in evidence(IRQBALANCE_OWNER)


@pytest.mark.usefixtures("as_root")
def test_a_program_that_others_write_does_not_count(start: Start) -> None:
    pid = start("irqbalance", mode=0o777)
    assert "process %d" % pid not in evidence(IRQBALANCE_OWNER)


IN_CONTAINER = ("unshare", "--mount", "--pid", "--kill-child", "sh", "-c")


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("mount", "counts"),
    [
        ("mount --bind {nri} /mnt", True),
        # Of its own, in the place of the host's.
        ("mount -t tmpfs none {nri}", False),
        # As a pod gets it that mounts its own directory of those that are published, or makes one in it.
        ("mount --bind {beside}/cpus/nri /mnt", False),
        ("mount --bind {beside}/nri {nri}", False),
        ("true", False),
    ],
)
def test_a_process_in_a_container_counts_with_the_hosts_nri(
    mount: str, counts: bool, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run([*IN_CONTAINER, "true"], check=False).returncode:
        pytest.skip("no namespaces can be made here")
    directory, beside = tmp_path / "run/nri", tmp_path / "run/kubenode"
    for path in (directory, beside / "nri", beside / "cpus/nri"):
        path.mkdir(parents=True)
    monkeypatch.setattr(owners, "_OF_RUNTIME", (str(directory),))
    monkeypatch.setattr(owners, "_OF_CGROUPS", ())
    pid = start("dracpu", *IN_CONTAINER, mount.format(nri=directory, beside=beside) + ' && exec "$@"', "sh")
    assert ("process %d" % pid in evidence(DRA_CPU)) == counts


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("mount", "counts"),
    [
        ("mount --bind {cgroups} /mnt", True),
        # As cAdvisor and other readers have it.
        ("mount --bind {cgroups} /mnt && mount -o remount,bind,ro /mnt", False),
        # A container's own part of the hierarchy.
        ("mount --bind {cgroups}/own /mnt", False),
        ("mount --bind {cgroups}/own {cgroups}", False),
        ("mount --bind {run} /mnt", True),
        ("true", False),
    ],
)
@pytest.mark.parametrize("program", ["koordlet", "crane-agent", "cpusetter"])
def test_an_agent_in_a_pod_counts_if_it_can_set_cpusets(
    program: str, mount: str, counts: bool, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run([*IN_CONTAINER, "true"], check=False).returncode:
        pytest.skip("no namespaces can be made here")
    for path in ("cgroups/own", "run/containerd"):
        (tmp_path / path).mkdir(parents=True)
    monkeypatch.setattr(owners, "_OF_RUNTIME", (str(tmp_path / "run/containerd"),))
    monkeypatch.setattr(owners, "_OF_CGROUPS", (str(tmp_path / "cgroups"), str(tmp_path / "none")))
    command = mount.format(cgroups=tmp_path / "cgroups", run=tmp_path / "run/containerd")
    pid = start(program, *IN_CONTAINER, command + ' && exec "$@"', "sh")
    node = Node(Tree("/"))
    assert node.may_have_owners()
    assert ("process %d" % pid in " ".join(word for owner in owners_of(node) for word in owner.evidence)) == counts


def test_each_program_of_pods_is_noticed_in_the_look_for_the_kubelet() -> None:
    assert all(any(part in program for part in OWNER_PROGRAMS) for program in POD_PROGRAMS)
    assert all(any(part in program for program in POD_PROGRAMS) for part in OWNER_PROGRAMS)


@pytest.mark.parametrize(
    "line", ["/koordlet -addr=:9316", "/crane-agent -v=2", "/cpusetter", "cri-resmgr --relay-socket x"]
)
def test_an_agent_beside_the_static_policy_is_noted(line: str, tmp_path: Path) -> None:
    found = node(tmp_path, {KUBELET: CONFIG + "cpuManagerPolicy: static\n"}, line)
    assert found.may_have_owners()
    (note,) = contradiction_notes(found, found.configuration())
    assert "process 100" in note


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("group", "counts"),
    [
        ("kubenode-test.slice/other.service", True),
        ("kubenode-test.slice/kubenode-test-kubepods.slice/kubenode-test-kubepods-pod1.slice", False),
    ],
)
def test_a_pod_below_a_cgroup_root_does_not_count_without_nri(
    group: str, counts: bool, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "_OF_RUNTIME", ())
    monkeypatch.setattr(owners, "_OF_CGROUPS", ())
    pid = start("nri-resource-policy-balloons")
    with in_cgroup(group, pid):
        assert ("process %d" % pid in evidence(BALLOONS)) == counts


@pytest.mark.usefixtures("as_root")
def test_links_of_a_container_are_not_followed(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the list of its mounts and the look at them, it may put a link to the host's directory in their place."""
    directory, beside, place = tmp_path / "run/nri", tmp_path / "beside/nri", tmp_path / "mounts"
    for path in (directory, beside, place / "inner/nri"):
        path.mkdir(parents=True)
    monkeypatch.setattr(owners, "_OF_RUNTIME", (str(directory),))
    monkeypatch.setattr(owners, "_OF_CGROUPS", ())
    swap = "mount --bind %s inner/nri && mv inner away && ln -s %s inner" % (beside, directory.parent)
    pid = start("dracpu", *IN_CONTAINER, "cd %s && %s" % (place, swap) + ' && exec "$@"', "sh")
    # What the list said before: the link leads to the host's directory.
    listed = Path("/proc/%d/mountinfo" % pid).read_text(encoding="utf-8").replace("/away/nri", "/inner/nri")
    fake = tmp_path / "mountinfo"
    fake.write_text(listed, encoding="utf-8")
    real = builtins.open

    def opened(path: Any, *arguments: Any, **named: Any) -> Any:
        return real(fake if path == "/proc/%d/mountinfo" % pid else path, *arguments, **named)

    monkeypatch.setattr(builtins, "open", opened)
    assert (place / "inner/nri").samefile(directory)
    assert "process %d" % pid not in evidence(DRA_CPU)


@pytest.mark.usefixtures("as_root")
def test_containers_with_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "DRA_CPUSET_test_%d=0" % os.getpid()
    monkeypatch.setattr(owners, "claims_of", lambda _tree: frozenset([line]))
    name, _equals, value = line.partition("=")
    process = subprocess.Popen(["/bin/sleep", "600"], env={name: value, "HOME": str(tmp_path)})
    fake = subprocess.Popen(["/bin/sleep", "600"], env={name: "1"})
    try:
        deadline = time.monotonic() + 10
        while _command_line(Path("/proc/%d" % fake.pid))[:1] != [b"/bin/sleep"] and time.monotonic() < deadline:
            time.sleep(0.01)
        text = evidence(DRA_CPU)
    finally:
        for started in (process, fake):
            started.kill()
            started.wait()
    assert text == "DRA_CPUSET_* in the environment of process %d" % process.pid

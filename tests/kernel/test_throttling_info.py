# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What throttling_info says of real processes that this machine's kernel throttles, in cgroups of v1."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPU, Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.modules import throttling_info as module

OWN, SHARED, IDLE = ("%064x" % number for number in (0xA, 0xB, 0xC))
DB, WEB = "kubepods/poduid-db", "kubepods/burstable/poduid-web"
OWN_PATH, SHARED_PATH, IDLE_PATH = DB + "/" + OWN, WEB + "/" + SHARED, WEB + "/" + IDLE
# {id: pod, name}, as the container runtime knows them.
NAMES = {OWN: ("db-0", "server"), SHARED: ("web-1", "app"), IDLE: ("web-1", "idle")}
CRICTL = "#!/bin/sh\ncat <<'END'\n%s\nEND\n"
BUSY = ["sh", "-c", "while :; do :; done"]
# Short periods, so that a sample has many of them.
PERIOD, QUOTA = 20000, 1000


class Machine:
    """This machine with a kubelet whose pods are below a cgroup of their own."""

    def __init__(self, directory: Path) -> None:
        self.hierarchy = Hierarchy(Tree("/"), CPU)
        self.top = "kubenode-test-%d-%s" % (os.getpid(), os.urandom(4).hex())
        self.directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []
        for path in ("", "kubepods", "kubepods/burstable", DB, WEB, OWN_PATH, SHARED_PATH, IDLE_PATH):
            os.mkdir(self.place(path))
        # Whatever else runs on this machine, these use their quotas up.
        self.write("", "cpu.shares", 262144)

    def place(self, path: str, name: str = "") -> str:
        return self.hierarchy.place("/".join(filter(None, (self.top, path))), name)

    def write(self, path: str, name: str, value: int) -> None:
        Path(self.place(path, name)).write_text(str(value), encoding="ascii")

    def limit(self, path: str, quota: int) -> None:
        self.write(path, "cpu.cfs_period_us", PERIOD)
        self.write(path, "cpu.cfs_quota_us", quota)

    def run(self, path: str, command: list[str]) -> None:
        process = subprocess.Popen(command)
        self.processes.append(process)
        self.write(path, "cgroup.procs", process.pid)

    def run_idle(self, path: str) -> None:
        """Run a process, and wait until it sleeps: to start, it needs a CPU, too."""
        self.run(path, ["sleep", "60"])
        stat = Path("/proc/%d/wchan" % self.processes[-1].pid)
        for _attempt in range(200):
            if "nanosleep" in stat.read_text("ascii"):
                return
            time.sleep(0.01)
        pytest.fail("sleep does not sleep")

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()

    def remove(self, path: str = "") -> None:
        for cgroup in [*reversed(list(self.hierarchy.cgroups(self.full(path)))), self.full(path)]:
            for _attempt in range(200):
                try:
                    os.rmdir(self.hierarchy.place(cgroup))
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    # A process that was killed leaves its cgroup a little later.
                    time.sleep(0.01)

    def full(self, path: str) -> str:
        return "/".join(filter(None, (self.top, path)))

    def look(self, seconds: int, **more: Any) -> Mapping[str, Any]:
        parameters = {
            "config_path": str(self.directory / "config.yaml"),
            "kubelet_root": str(self.directory),
            "kubelet_version": "1.32",
            "command_line": None,
            "seconds": seconds,
            "throttled_percent": 25,
            "hide_names": False,
            **more,
        }
        return module.work(Tree("/"), parameters, True).result


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    try:
        hierarchy = Hierarchy(Tree("/"), CPU)
    except NodeError as error:
        pytest.skip(str(error))
    if hierarchy.version != 1 or os.geteuid() != 0 or not os.access(hierarchy.place(""), os.W_OK):
        pytest.skip("no cgroups of v1 with the cpu controller can be made here")
    made = Machine(tmp_path)
    try:
        config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n" % made.top
        (tmp_path / "config.yaml").write_text(config)
        state = State(CPUSet.parse("0"), {"uid-db": {"server": CPUSet.parse("1")}})
        (tmp_path / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
        containers = [
            {
                "id": container,
                "metadata": {"name": name},
                "labels": {"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": "shop"},
            }
            for container, (pod, name) in NAMES.items()
        ]
        crictl = tmp_path / "crictl"
        crictl.write_text(CRICTL % json.dumps({"containers": containers}))
        crictl.chmod(0o755)
        monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
        yield made
    finally:
        made.end()
        made.remove()


def rows(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {"%(pod)s/%(container)s" % row: row for row in found["containers"]}


def checks(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(row["check"], row["subject"]) for row in found["findings"]]


def test_a_container_that_its_own_quota_throttles(machine: Machine) -> None:
    machine.limit(OWN_PATH, QUOTA)
    machine.limit(SHARED_PATH, 2 * QUOTA)
    machine.write(SHARED_PATH, "cpu.shares", 512)
    machine.run_idle(IDLE_PATH)
    for path in (OWN_PATH, SHARED_PATH):
        machine.run(path, BUSY)
    found = machine.look(1)
    assert (found["notes"], found["hierarchy"]["version"]) == ([], 1)
    assert 1 <= found["seconds"] < 1.5
    own, shared, idle = (rows(found)[name] for name in ("shop/db-0/server", "shop/web-1/app", "shop/web-1/idle"))
    assert (own["exclusive"], own["limit"]) == ("1", {"cgroup": machine.full(OWN_PATH), "cpus": 0.05})
    assert found["cgroups"][machine.full(SHARED_PATH)]["shares"] == 512
    for row in (own, shared):
        assert row["counted"]["periods"] >= 40
        assert row["throttled_percent"] > 50
        assert row["counted"]["throttled_us"] > 20000
    assert idle["counted"] == dict.fromkeys(idle["counted"], 0)
    assert idle["throttled_percent"] is None
    # The container on exclusive CPUs has a quota that is less than these: that is all there is to say of it.
    assert checks(found) == [("limit-below-request", "shop/db-0/server"), ("container-throttled", "shop/web-1/app")]
    # All time has at least what the sample has, and this machine's kernel counts nanoseconds.
    whole = rows(machine.look(0))["shop/db-0/server"]["counted"]
    assert whole["periods"] >= own["counted"]["periods"]
    machine.end()
    # The timer of the periods goes on a little.
    time.sleep(10 * PERIOD / 1000000)
    text = Path(machine.place(OWN_PATH, "cpu.stat")).read_text("ascii")
    last = rows(machine.look(0))["shop/db-0/server"]["counted"]
    assert "throttled_time %d" % last["throttled_us"] in text
    assert "nr_periods %d\n" % last["periods"] in text


def test_a_container_that_its_pods_quota_throttles(machine: Machine) -> None:
    machine.limit(WEB, QUOTA)
    machine.limit(DB, PERIOD)
    machine.run_idle(IDLE_PATH)
    machine.run(SHARED_PATH, BUSY)
    found = machine.look(1)
    shared = rows(found)["shop/web-1/app"]
    assert shared["limit"] == {"cgroup": machine.full(WEB), "cpus": 0.05}
    assert shared["counted"]["periods"] == 0
    assert found["cgroups"][machine.full(WEB)]["counted"]["throttled_periods"] > 20
    assert checks(found) == [
        ("exclusive-cpus-with-quota", "shop/db-0/server"),
        ("container-throttled", "shop/web-1/app"),
    ]
    if shared["counted"]["local_us"] is not None:
        assert shared["counted"]["local_us"] > 20000
        assert rows(found)["shop/web-1/idle"]["counted"]["local_us"] == 0
    assert "bring it to 1.33" in found["findings"][0]["remedy"]


def test_containers_that_end_and_begin_while_it_looks(machine: Machine) -> None:
    def change() -> None:
        time.sleep(0.3)
        machine.remove(OWN_PATH)
        # The same name, and another cgroup.
        machine.remove(IDLE_PATH)
        os.mkdir(machine.place(IDLE_PATH))

    thread = threading.Thread(target=change)
    thread.start()
    found = machine.look(1)
    thread.join()
    assert [note for note in found["notes"] if "1 container(s) (shop/db-0/server) ended" in note]
    assert [note for note in found["notes"] if "1 cgroup(s) (%s) were made anew" % machine.full(IDLE_PATH) in note]
    assert found["note_checks"] == ["throttling-unmeasured"] * 2
    assert rows(found)["shop/db-0/server"]["counted"] is None


def test_names_from_the_runtime_are_hidden(machine: Machine) -> None:
    found = machine.look(0, hide_names=True)
    assert len(found["containers"]) == 3
    assert not any(name in json.dumps(found) for name in ("db-0", "web-1", "server", "shop"))
    # The checkpoint has the same hashes.
    assert [row["exclusive"] for row in found["containers"] if row["pod_uid"] == "uid-db"] == ["1"]

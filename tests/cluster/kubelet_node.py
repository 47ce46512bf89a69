# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node with a stand-in for the kubelet, as a test has it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from . import service
from .control_plane import ControlPlane
from .kubelet.configuration import API_VERSION, KIND
from .kubelet.faults import Fault
from .ports import LOOPBACK, take_ports

_HERE = Path(__file__).parent

CONFIG = "/var/lib/kubelet/config.yaml"
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
KUBECONFIG = "/etc/kubernetes/kubelet.conf"
# What a kubelet says when it has started all, its managers too.
STARTED = "Starting Kubelet Plugin Manager"
# Keeps a real kubelet from what it would do to this machine.
QUIET: Mapping[str, Any] = {
    "address": LOOPBACK,
    "authentication": {"webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "evictionHard": {},
    "failSwapOn": False,
    "makeIPTablesUtilChains": False,
    "readOnlyPort": 0,
    "volumePluginDir": "/var/lib/kubelet/volume-plugins",
}
# Seconds, on a busy machine too.
_PATIENCE = 90.0


class KubeletNode:
    """A machine that exists as files, and its kubelet as a service. A context: afterwards nothing runs."""

    def __init__(
        self,
        directory: Path,
        machine: str,
        configuration: Mapping[str, Any],
        flags: Sequence[str] = (),
        control_plane: ControlPlane | None = None,
        real: Path | None = None,
    ) -> None:
        """Make `directory`, and in it a node with the same name. A configuration needs no ports.

        With `real`, the directory of the programs, its kubelet is the real one.
        """
        self.name, self.directory, self.root = directory.name, directory, directory / "node"
        self.become(machine)
        self.write("/etc/hostname", self.name + "\n")
        header: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, **(QUIET if real else {})}
        version = kubernetes.version_of(real / "kubelet") if real else ""
        header.update(kubernetes.fields(version) if real else {})
        header["healthzPort"], header["port"] = take_ports(2)
        self.configure({**header, **configuration})
        flags = ["--config=" + CONFIG, "--hostname-override=" + self.name, *flags]
        if control_plane:
            self.write(KUBECONFIG, control_plane.node_kubeconfig(self.name).read_text(encoding="utf-8"))
            flags.append("--kubeconfig=" + KUBECONFIG)
        if real:
            command = [str(_HERE / "real_kubelet"), str(real), str(self.root), *kubernetes.flags("kubelet", version)]
        else:
            faults = ["--faults", str(directory / "faults.json")]
            command = [sys.executable, str(_HERE / "kubelet"), "--node", str(self.root), *faults, "--"]
        service.Service([*command, *flags], owner=os.getpid()).write(directory)

    def __enter__(self) -> KubeletNode:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    # --- its service --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the service; its kubelet may yet refuse to."""
        self._service("start")

    def stop(self) -> None:
        """Stop it, if it runs."""
        self._service("stop")

    def restart(self) -> None:
        """Stop it and start it."""
        self._service("restart")

    def _service(self, action: str) -> None:
        subprocess.run(["sh", "-c", self.init_script(), "sh", action], check=True)

    def is_active(self) -> bool:
        """Return whether the service runs, however often its kubelet ends."""
        return bool(service.pid_of(self.directory))

    def init_script(self) -> str:
        """Return the service's script for /etc/init.d."""
        return service.init_script(self.directory)

    def log(self) -> list[str]:
        """Return what the service and its kubelets said, without times and process ids."""
        path = self.directory / "log"
        if not path.exists():
            return []
        return [re.sub("^[A-Z][^]]*] ", "", line) for line in path.read_text(encoding="utf-8").splitlines()]

    def wait_for(self, said: str, times: int = 1) -> None:
        """Wait until something was said so many times."""
        wait_until(lambda: sum(said in line for line in self.log()) >= times, lambda: "\n".join(self.log()))

    def fail(self, *faults: Fault) -> None:
        """Have these faults happen from the next start on."""
        (self.directory / "faults.json").write_text(json.dumps([fault._asdict() for fault in faults]), encoding="utf-8")

    # --- its files ----------------------------------------------------------------------------------------

    def become(self, machine: str) -> None:
        """Have another machine's CPUs, or others of them online. Its kubelet must not run."""
        for name in ("proc", "sys"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        write_machine(self.root, machine)

    def write(self, path: str, text: str) -> None:
        """Write a file of the node."""
        here = Path("%s/%s" % (self.root, path))
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_text(text, encoding="utf-8")

    def configure(self, configuration: Mapping[str, Any]) -> None:
        """Write the kubelet's configuration."""
        self.write(CONFIG, yaml.safe_dump(dict(configuration), sort_keys=False))

    def configuration(self) -> dict[str, Any]:
        """Return the kubelet's configuration."""
        values: dict[str, Any] = yaml.safe_load(self.read(CONFIG) or b"")
        return values

    def read(self, path: str) -> bytes | None:
        """Return a file of the node; None where it is not."""
        here = Path("%s/%s" % (self.root, path))
        return here.read_bytes() if here.exists() else None

    def checkpoint(self) -> Checkpoint | None:
        """Return what the checkpoint says; None where there is none."""
        content = self.read(CHECKPOINT)
        return None if content is None else decode_checkpoint(content)

    def entries(self) -> dict[str, dict[str, str]]:
        """Return the CPUs that the checkpoint gives to containers, by pod."""
        checkpoint = self.checkpoint()
        return {} if checkpoint is None else checkpoint.entries or {}


def saved(policy: str, default: str, minor: int = 20, **containers: str) -> bytes:
    """Return a checkpoint as the version 1.`minor` writes it, in which each container is in a pod of its own."""
    assignments = {"pod-" + name: {name: CPUSet.parse(cpus)} for name, cpus in containers.items()}
    return write_checkpoint(policy, State(CPUSet.parse(default), assignments), format_for(minor))


def wait_until(condition: Callable[[], object], told: Callable[[], str] = str) -> None:
    """Wait until something is so. Fails with what is told then."""
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


@contextmanager
def joining(control_plane: ControlPlane) -> Iterator[Callable[[KubeletNode], None]]:
    """Yield a function that waits until a started node has joined the cluster. At the end, stop all such nodes, and
    remove them from the cluster."""
    joined: list[KubeletNode] = []

    def join(node: KubeletNode) -> None:
        joined.append(node)
        control_plane.wait_for("node/" + node.name, "Ready")

    try:
        yield join
    finally:
        # A kubelet that runs would bring its node back.
        for node in joined:
            node.stop()
        control_plane.kubectl("delete", "nodes", *(node.name for node in joined))

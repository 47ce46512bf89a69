# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small nodes as files on which all is as it should be, and their copies in which one thing is not.

SOUND                                         # the static policy, one pod with exclusive CPUs, one in the shared pool
SOUND.having({CONFIG: HEADER})                # the same node with another configuration
write_saved(SOUND, root)                      # its files below the directory `root`
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import (
    Account,
    Exclusive,
    Runner,
    RunnerShare,
    rows,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    RolloutJournal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

from .cgroups import SYSTEMD, V2, CPUFiles, Files, container_files, pod_path, write_cgroups, write_cpu
from .kubelets import HEADER
from .samples import ELAPSED, sample
from .tree import NODE_MEMORY

CONFIG = "/var/lib/kubelet/config.yaml"
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
MEMORY_STATE = "/var/lib/kubelet/memory_manager_state"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
MEMORY_STATIC = (
    "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)

# The container with exclusive CPUs, and the one in the shared pool: their ids, and the cgroups of their pods.
OWN_ID, SHARED_ID = "a" * 64, "b" * 64
OWN_POD, SHARED_POD = pod_path(SYSTEMD, "uid-db", "Guaranteed"), pod_path(SYSTEMD, "uid-web", "Burstable")
KUBEPODS = "kubepods.slice"
HOST = "system.slice"
_LOGS = "/var/log/containers/"

BOOT = 1_700_000_000
# When the kubelet of RUNNING has started.
STARTED = BOOT + 1000


def state(policy: str = "static", shared: str = "0,2-4,6-7", **own: str) -> bytes:
    """Return a checkpoint with the shared pool, and the CPUs of these containers, each in the pod uid-NAME."""
    assignments = {"uid-" + name: {"server": CPUSet.parse(cpus)} for name, cpus in own.items()}
    return write_checkpoint(policy, State(CPUSet.parse(shared), assignments))


def memory_state(policy: str, reserved: int = 0) -> bytes:
    """Return a first state of the memory manager on a machine of one NUMA node. reserved: in bytes."""
    machine = {0: {"memory": NODE_MEMORY * 1024}}
    return memory_state_after(None, MemoryConfig(policy, {0: {"memory": reserved}}, 36, machine=machine)) or b""


def cgroups(own: str = "1,5", shared: str = "0,2-4,6-7", host: str = "0,4", kubepods: str = "") -> dict[str, Files]:
    """Return what the cgroups of the two containers, of the host's services and of all pods hold."""
    return {
        HOST: Files(host, "0", (1,)),
        KUBEPODS: Files(kubepods, ""),
        **container_files(SYSTEMD, "containerd", OWN_POD, OWN_ID, own),
        **container_files(SYSTEMD, "containerd", SHARED_POD, SHARED_ID, shared),
    }


def container_path(pod: str, container: str) -> str:
    """Return the cgroup of a container of SOUND."""
    (path,) = container_files(SYSTEMD, "containerd", pod, container, "")
    return path


def isolation_answer(kernel_thread: float = 0.0) -> dict[str, Any]:
    """Return what isolation_info answers for SOUND while it runs. kernel_thread: the share of CPU 1 that one takes."""
    own = Runner("container", "shop/db-0/server", OWN_ID)
    parts = {own: RunnerShare(0.9, True)}
    if kernel_thread:
        parts[Runner("kernel thread", "kworker/1:1-events")] = RunnerShare(kernel_thread, True)
    found = {1: Account(parts, 0.0, 0.1 - kernel_thread, 0.0, 0.0, 0.0)}
    exclusive = Exclusive("uid-db", "shop/db-0", "server", CPUSet((1, 5)), frozenset((OWN_ID,)))
    containers, findings = rows([exclusive], found, sample(), 0.01)
    answer = {"seconds": ELAPSED, "threshold": 1.0, "containers": containers, "findings": findings}
    return {**answer, "notes": [], "note_checks": []}


def process(pid: int, *words: str) -> dict[str, bytes]:
    """Return the files of a process that has started at STARTED."""
    ticks = 1000 * os.sysconf("SC_CLK_TCK")
    fields = " ".join(["S", "1"] + ["0"] * 17 + [str(ticks)] + ["0"] * 30)
    return {
        "/proc/%d/cmdline" % pid: b"".join(word.encode() + b"\0" for word in words),
        "/proc/%d/stat" % pid: ("%d (kubelet) %s\n" % (pid, fields)).encode(),
        "/proc/stat": b"cpu 1 2 3\nbtime %d\n" % BOOT,
    }


class Saved(NamedTuple):
    """A node as files. Every file was changed last at the boot, long before a kubelet started."""

    machine: str
    # By path on the node; None: it is taken away.
    files: Mapping[str, bytes | None]
    # None: the node shows no cgroups.
    cgroups: Mapping[str, Files] | None
    # None: it is not known.
    minor: int | None = 36
    # A change that is under way.
    journal: RolloutJournal | None = None
    # The files that changed after the kubelet had started.
    changed: tuple[str, ...] = ()
    # By the path of the cgroup. None: the node shows no cpu controller.
    quotas: Mapping[str, CPUFiles] | None = None
    # The files that the kernel lets nobody write.
    fixed: tuple[str, ...] = ()
    # Those that anybody may write.
    writable: tuple[str, ...] = ()

    def having(self, files: Mapping[str, str | bytes | None]) -> Saved:
        """Return the same node with these files too; None for one that is not there."""
        written = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        return self._replace(files={**self.files, **written})

    def configured(self, text: str) -> Saved:
        """Return the same node with another configuration; its first two lines are added."""
        return self.having({CONFIG: HEADER + text})


SOUND = Saved(
    "1s4c2t",
    {
        CONFIG: (HEADER + STATIC).encode(),
        CHECKPOINT: state(db="1,5"),
        "%sdb-0_shop_server-%s.log" % (_LOGS, OWN_ID): b"",
        "%sweb-1_shop_app-%s.log" % (_LOGS, SHARED_ID): b"",
    },
    cgroups(),
)
# Without pods: its machine and settings can be any.
EMPTY = Saved("1s4c2t", {CONFIG: (HEADER + STATIC).encode()}, None)
RUNNING = SOUND.having(process(7, "/usr/bin/kubelet", "--config=" + CONFIG))


def write_saved(saved: Saved, root: Path) -> Tree:
    """Write the files of a node below `root`."""
    topology = write_machine(root, saved.machine)
    if saved.cgroups is not None:
        write_cgroups(root, V2, saved.cgroups, str(topology.online), "0")
    if saved.quotas is not None:
        write_cpu(root, V2, saved.quotas)
    for path, content in saved.files.items():
        file = root / path.lstrip("/")
        if content is None:
            file.unlink(missing_ok=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    for path in (path for path, content in saved.files.items() if content is not None):
        moment = STARTED + 5 if path in saved.changed else BOOT
        os.utime(root / path.lstrip("/"), (moment, moment))
    for path in saved.fixed:
        (root / path.lstrip("/")).chmod(0o444)
    for path in saved.writable:
        (root / path.lstrip("/")).chmod(0o666)
    tree = Tree(str(root))
    if saved.journal is not None:
        write_journal(tree, saved.journal)
    return tree

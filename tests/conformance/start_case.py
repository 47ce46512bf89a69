# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A start of a real kubelet as a saved node: the files, the flags and the machine of a case, and what is predicted."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import lru_cache
from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import states_after

ROOT = "/var/lib/kubelet"
CONFIG = ROOT + "/config.yaml"
DROP_INS = ROOT + "/config.conf.d"
STATES = {"ckpt": ROOT + "/cpu_manager_state", "mem": ROOT + "/memory_manager_state"}

# In the place of a file: there is none, a directory, a link to nothing; and no --config at all.
MISSING, DIRECTORY, DANGLING = "MISSING", "DIR", "DANGLING"
NO_CONFIG = "None"

# What each kubelet was given before the flags of its case.
BASE_FLAGS = (
    "--hostname-override=n1",
    "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
    "--authorization-mode=AlwaysAllow",
    "--authentication-token-webhook=false",
    "--volume-plugin-dir=/var/lib/kubelet/vp",
    "--root-dir=/var/lib/kubelet",
    "--v=2",
)

# The machines' files tell no size of a disk, and the one that the kubelets saw was this.
_MEMORY = "MemTotal:       24684096 kB\n"
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "systemd")


class StartCase:
    """One start."""

    def __init__(self, case: Mapping[str, Any], version: str) -> None:
        self.case = case
        flags = [*BASE_FLAGS, *case.get("flags", ())]
        drop_ins = ["--config-dir=" + DROP_INS] if "dropins" in case else []
        config = [] if case["config"] == NO_CONFIG else ["--config=" + CONFIG]
        command_line = ["/usr/bin/kubelet", *config, *drop_ins, *flags]
        self.node = Node(self._tree(), minor=minor_version(version), command_line=command_line)

    def _tree(self) -> Tree:
        files = {CONFIG: self.case["config"]}
        files.update({"%s/%s" % (DROP_INS, name): text for name, text in self.case.get("dropins", {}).items()})
        files.update({path: self.case[key] for key, path in STATES.items() if key in self.case})
        files.update({DROP_INS: DIRECTORY} if self.case.get("dropins") == {} else {})
        marks = (MISSING, DIRECTORY, DANGLING, NO_CONFIG)
        plain = {path: _content(text) for path, text in files.items() if text not in marks}
        odd = {path: text for path, text in files.items() if text in (DIRECTORY, DANGLING)}
        root = (
            _odd_machine(self.case["machine"], tuple(sorted(odd.items())))
            if odd
            else machine_root(self.case["machine"])
        )
        return OverlaidTree(Tree(root), plain)

    def answer(self) -> dict[str, Any]:
        """Return whether the kubelet starts, and what it says; None, and why, where that cannot be determined."""
        prediction = predict_start(self.node)
        refusal = prediction.refusal
        text = refusal.text if refusal is not None else "; ".join(doubt.reason for doubt in prediction.unknown)
        return {"starts": prediction.starts, "text": text}

    def states_after(self) -> dict[str, str]:
        """Return the managers' states after a start."""
        found = states_after(self.node)
        return {
            os.path.basename(path): content.decode("utf-8")
            for path, content in found.items()
            if content is not None and os.path.dirname(path) == ROOT
        }


def _content(text: str) -> bytes:
    """Return the bytes of a text. One file began with the mark of UTF-16, which is no character."""
    if text.startswith("\ufffd\ufffd"):
        return b"\xff\xfe" + text[2:].encode("utf-8")
    return text.encode("utf-8")


@lru_cache(maxsize=None)
def machine_root(machine: str) -> str:
    """Return the directory of the files of a machine, by its shape's name."""
    root = tempfile.mkdtemp(prefix="machine-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    write_machine(root, machine)
    for path, text in {"proc/meminfo": _MEMORY, "proc/swaps": "Filename Type Size Used Priority\n"}.items():
        with open(os.path.join(root, path), "w", encoding="ascii") as file:
            file.write(text)
    for directory in ("run", *("sys/fs/cgroup/" + name for name in _CONTROLLERS)):
        os.makedirs(os.path.join(root, directory))
    return root


@lru_cache(maxsize=None)
def _odd_machine(machine: str, odd: tuple[tuple[str, str], ...]) -> str:
    """Return the same with something else in the places of files."""
    root = tempfile.mkdtemp(prefix="machine-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    shutil.copytree(machine_root(machine), root, symlinks=True, dirs_exist_ok=True)
    for path, kind in odd:
        here = root + path
        os.makedirs(os.path.dirname(here), exist_ok=True)
        if kind == DIRECTORY:
            os.mkdir(here)
        else:
            os.symlink("nothing", here)
    return root

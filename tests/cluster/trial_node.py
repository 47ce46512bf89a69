# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""This machine as a live node with a real kubelet, for trials; live_node makes its mounts."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

import yaml

from .certificates import Authority
from .kubelet.configuration import API_VERSION, KIND

_HERE = Path(__file__).parent
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
STATIC: dict[str, Any] = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
# Seconds, on a machine that does other things.
_PATIENCE = 180


class LiveNode:
    """This machine as a live node, in mounts of its own."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self.programs, self.root = programs, directory
        self.program = "/opt/bin/kubelet"
        self.flags = ["--config=/var/lib/kubelet/config.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf"]
        # It would make a key otherwise, which takes seconds.
        (self.root / "var/lib/kubelet/pki").mkdir(parents=True)
        Authority().issue("node", hosts=["node"]).write(self.root / "var/lib/kubelet/pki/kubelet")
        self.write("/etc/kubernetes/kubelet.conf", "no kubeconfig\n")
        self.write("/etc/kubernetes/manifests/pod.yaml", "no pod\n")
        self.configure(STATIC)

    def configure(self, configuration: Mapping[str, Any]) -> None:
        """Write the kubelet's configuration."""
        header = {"apiVersion": API_VERSION, "kind": KIND, "staticPodPath": "/etc/kubernetes/manifests"}
        self.write("/var/lib/kubelet/config.yaml", yaml.safe_dump({**header, **configuration}, sort_keys=False))

    def write(self, path: str, text: str) -> None:
        """Write a file of the node."""
        here = Path("%s/%s" % (self.root, path))
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_text(text, encoding="utf-8")

    def answer(self, do: str, *before: str, **request: Any) -> dict[str, Any]:
        """Return what the driver answers to a request. before: words in front of its command line."""
        done = self.run([*before, sys.executable, str(_HERE / "trial_driver.py")], json.dumps({"do": do, **request}))
        answer: dict[str, Any] = json.loads(done)
        return answer

    def write_unit(self) -> None:
        """Write the unit of the kubelet's service."""
        unit = "[Service]\nExecStart=%s %s\n" % (self.program, " ".join(self.flags))
        self.write("/etc/systemd/system/kubelet.service", unit)

    def python(self, *before: str) -> Path:
        """Return a Python that runs on the node, for Ansible. before: words in front of its command line."""
        self.write_unit()
        path = self.root.with_suffix(".python")
        command = [str(_HERE / "live_node"), str(self.programs), str(self.root), *before, sys.executable]
        path.write_text('#!/bin/sh\nexec %s "$@"\n' % shlex.join(command), encoding="utf-8")
        path.chmod(0o755)
        return path

    def run(self, command: Sequence[str], text: str = "") -> str:
        """Return what a command on the node prints."""
        self.write_unit()
        done = subprocess.run(
            [str(_HERE / "live_node"), str(self.programs), str(self.root), *command],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE * 10,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def tried(self, **request: Any) -> dict[str, Any]:
        """Return the answer of a trial, of which nothing is left and by which nothing has changed."""
        done = self.answer("try", **request)
        assert done["after"] == done["before"]
        answer: dict[str, Any] = done["answer"]
        return answer

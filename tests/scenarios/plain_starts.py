# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starts of the kubelet on a virtual machine, tried and done: cases as JSON come in, a line for each goes out.

It runs on the machine, which has a kubelet: python3 plain_starts.py COLLECTIONS. A plain start has nothing between
the program and the machine: the real containerd, the real root directory, the real cgroups.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])

# pylint: disable=wrong-import-position
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_plan import Words
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import trial_report

_UNIT = Path("/etc/systemd/system/kubelet.service")
_ROOT = Path("/var/lib/kubelet")
_LOG = "/var/log/plain_start.log"
_STATE = _ROOT / "cpu_manager_state"
_COMMAND = [
    "/usr/local/bin/kubelet",
    "--config=/var/lib/kubelet/config.yaml",
    "--container-runtime=remote",
    "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
    # There is no API server to ask.
    "--authorization-mode=AlwaysAllow",
    "--authentication-token-webhook=false",
]
# Seconds.
_PATIENCE = 120


def main() -> None:
    for case in json.load(sys.stdin):
        command = [*_COMMAND, *case["flags"]]
        _UNIT.write_text("[Service]\nExecStart=%s\n" % shlex.join(command), encoding="utf-8")
        _furnish(case["files"])
        tried = trial_report(Node(Tree("/")), {}, timeout=_PATIENCE)
        _furnish(case["files"])
        print(json.dumps({"tried": {key: tried[key] for key in _KEPT}, "started": _started(command)}), flush=True)


_KEPT = ("starts", "message", "reason", "prediction_differs", "seconds")


def _furnish(files: dict[str, str]) -> None:
    """Have these files, and nothing else, in the kubelet's root directory."""
    _ROOT.mkdir(exist_ok=True)
    for path in _ROOT.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


def _started(command: list[str]) -> dict[str, Any]:
    """Return whether a kubelet starts, and what it says where it does not."""
    words, began = Words(), time.monotonic()
    with open(_LOG, "wb") as log, open(_LOG, "rb") as said:
        kubelet = subprocess.Popen(command, stdout=log, stderr=log)
        while kubelet.poll() is None and time.monotonic() - began < _PATIENCE:
            words.hear(said.read())
            if words.has_started and _STATE.exists():
                break
            time.sleep(0.05)
        starts = words.has_started and kubelet.poll() is None
        with suppress(ProcessLookupError):
            kubelet.kill()
        kubelet.wait()
        words.hear(said.read())
    return {"starts": starts, "message": "" if starts else words.why(), "seconds": time.monotonic() - began}


if __name__ == "__main__":
    main()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules make of a saved node's kubelet process: names that are no text, and a wait that does not wait."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.ansible_module import printable

from .conftest import CopyOf, ansible_playbook, play, task

NAME = b"caf\xe9-\xc3\xbc.yaml"
READABLE = "/etc/caf\\xe9-\u00fc.yaml"


def with_kubelet(root: Path, *arguments: bytes) -> None:
    process = root / "proc/7"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"\0".join([b"/usr/bin/kubelet", *arguments, b""]))


def with_odd_name(root: Path) -> bytes:
    """Give the configuration a name of which one sign is Latin-1 and one UTF-8."""
    with_kubelet(root, b"--config=/etc/" + NAME)
    place = os.fsencode(root) + b"/etc/" + NAME
    os.rename(root / "var/lib/kubelet/config.yaml", place)
    return place


def test_a_path_that_is_no_text(copy_of: CopyOf, tmp_path: Path) -> None:
    """It is found, read and written, and a result has it in a form that every program can read."""
    roots = {name: copy_of("xeon", name) for name in ("found", "lost")}
    place = with_odd_name(roots["found"])
    os.unlink(with_odd_name(roots["lost"]))
    tasks = [
        task("drift_info", root="{{ root }}"),
        {
            **task("kubelet_config", root="{{ root }}", cpu_manager_reconcile_period="7s", backup=True),
            "ignore_errors": True,
        },
    ]
    # In a locale without any encoding, too, in which the names of files are ASCII alone.
    ascii_python = tmp_path / "ascii-python"
    ascii_python.write_text('#!/bin/sh\nLC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 exec /usr/bin/python3 "$@"\n')
    ascii_python.chmod(0o755)
    for python in (sys.executable, str(ascii_python)):
        hosts = {name: {"root": str(root), "ansible_python_interpreter": python} for name, root in roots.items()}
        run = ansible_playbook(tmp_path / "run", play(*tasks), hosts, "-vvv", "--diff")
        assert "Traceback" not in run.output, run.output
        assert len(run.results["found"]) == len(tasks), run.account()
        drift, configured = run.results["found"]
        assert drift["kubelet"]["config_path"] == READABLE
        assert drift["kubelet"]["command_line"] == ["/usr/bin/kubelet", "--config=" + READABLE]
        # The second finds it as the first has left it.
        written = [str(roots["found"]) + READABLE] if python == sys.executable else []
        assert configured["files"] == written, run.account()
        with open(place, encoding="utf-8") as file:
            assert "cpuManagerReconcilePeriod: 7s" in file.read()
        drift, configured = run.results["lost"]
        assert drift["status"] == "drift"
        assert READABLE in configured["msg"]
        assert READABLE in configured["failure"]["where"]


def test_wait_for_kubelet_in_check_mode(copy_of: CopyOf, tmp_path: Path) -> None:
    roots = {name: copy_of("xeon", name) for name in ("runs", "stopped", "none")}
    with_kubelet(roots["runs"], b"--config=/var/lib/kubelet/config.yaml")
    (roots["none"] / "var/lib/kubelet/config.yaml").unlink()
    wait = task("wait_for_kubelet", root="{{ root }}", seconds=300, timeout=500)
    start = time.monotonic()
    hosts = {name: {"root": str(root)} for name, root in roots.items()}
    run = ansible_playbook(tmp_path, play(wait), hosts, "--check")
    assert time.monotonic() - start < 200
    for name, pid in (("runs", 7), ("stopped", None)):
        result = run.last(name)
        assert (result["pid"], result["seconds"], result["changed"]) == (pid, 0, False), run.account()
        assert result["waits_for"] == {
            "seconds": 300,
            "timeout": 500,
            "healthz": ["http://127.0.0.1:10248/healthz"],
            "checkpoint": str(roots[name] / "var/lib/kubelet/cpu_manager_state"),
            "cpu_manager_policy": "none",
        }
    # What the run refuses is refused.
    assert run.last("none")["failure"]["kind"] == "no_kubelet"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("/etc/x", "/etc/x"), ("\u00fc\udcff", "\u00fc\\xff"), ("\ud800\u00fc", "\\ud800\u00fc")],
    ids=["text", "byte", "half a character"],
)
def test_what_a_result_shows(text: str, shown: str) -> None:
    assert printable({text: [text, 3, None, {"a": (text,)}]}) == {shown: [shown, 3, None, {"a": [shown]}]}

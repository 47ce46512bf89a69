# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pods of extensions/without_ssh print becomes an inventory of saved nodes, whatever they print."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.save_program import framed

from .conftest import CopyOf, ansible_playbook

PROGRAM = Path(__file__).parents[2] / "extensions/without_ssh/saved_nodes.py"
# Prints what is in files beside it: the pods, and the log of each.
KUBECTL = """\
#!/bin/sh
here=${0%/*}
case "$*" in
    "--namespace=kubenode-save get pods "*) exec cat "$here/pods.json" ;;
    "--namespace=kubenode-save logs "*" --container=save") exec cat "$here/$3.log" ;;
esac
exit 9
"""


def build(program: Path) -> None:
    """Write what the pods run."""
    subprocess.run([sys.executable, str(PROGRAM), "program", str(program)], check=True)


def archive_in(printed: bytes) -> bytes:
    """Return the archive that the program has printed."""
    lines = printed.split(b"\n")
    return base64.b64decode(b"".join(lines[1:-2]), validate=True)


class Cluster:
    """A kubectl that knows pods and what they have printed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._pods: list[dict[str, Any]] = []
        program = directory / "kubectl"
        program.write_text(KUBECTL, encoding="utf-8")
        program.chmod(0o755)

    def add(self, node: str, pod: str, log: bytes) -> None:
        """Add a pod on a node, with its log. A name that no pod can have gets no log."""
        self._pods.append({"metadata": {"name": pod}, "spec": {"nodeName": node}})
        if "/" not in pod:
            (self.directory / (pod + ".log")).write_bytes(log)

    def take(self, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run the program that reads the logs."""
        (self.directory / "pods.json").write_text(json.dumps({"items": self._pods}), encoding="utf-8")
        search = {**os.environ, "PATH": "%s:%s" % (self.directory, os.environ["PATH"])}
        command = [sys.executable, str(PROGRAM), "take", str(directory)]
        return subprocess.run(command, env=search, capture_output=True, text=True, check=False)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "bin").mkdir()
    return Cluster(tmp_path / "bin")


def printed(root: Path) -> bytes:
    content, _about = save_node(Node(Tree(str(root))), root.name)
    return framed(content).encode("ascii")


def test_the_report_takes_what_pods_have_printed(cluster: Cluster, copy_of: CopyOf, tmp_path: Path) -> None:
    for node in ("edge", "epyc"):
        # Whatever a runtime or a library says before it.
        cluster.add("%s.example.org" % node, "kubenode-save-" + node, b"a warning\n" + printed(copy_of(node, node)))
    taken = cluster.take(tmp_path / "saved nodes")
    assert (taken.returncode, taken.stderr) == (0, "")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "saved nodes").iterdir()} == {0o600}
    run = ansible_playbook(
        tmp_path / "run", "kubenode.cpu_manager.drift_report", {}, "-i", str(tmp_path / "saved nodes/inventory.json")
    )
    assert run.status == 0, run.account()
    report = json.loads((tmp_path / "run/drift-report/drift.json").read_text("utf-8"))
    assert {node["host"]: node["state"] != "unreached" for node in report["nodes"]} == {
        "edge.example.org": True,
        "epyc.example.org": True,
    }


def test_what_is_no_archive_is_named_and_writes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    content = b"an archive"
    whole = framed(content).encode("ascii")
    text = base64.b64encode(content)
    logs = {
        "empty": (b"", "its log is empty"),
        "words": (b"\x1b[2Jerror: /: no\n", "its last line is '\\x1b[2Jerror: /: no'"),
        "cut": (whole[:-3], "it has not printed a whole archive"),
        "changed": (whole.replace(text, text.swapcase()), "its archive is damaged"),
        "padded": (whole.replace(text, b"=" + text), "its archive is damaged"),
        "shorter": (whole.replace(b" 10 ", b" 9 "), "its archive is damaged"),
        "long": (b"x" * (17 << 20), "it has printed more than 16 MiB"),
        # Names that would lead elsewhere are none that an API server gives out.
        "../../elsewhere": (whole, ""),
    }
    for node, (log, _said) in logs.items():
        cluster.add(node, "pod-" + node.rpartition("/")[2], log)
    cluster.add("option", "--all-containers", whole)
    cluster.add("path", "pods/x", whole)
    taken = cluster.take(tmp_path / "saved")
    assert taken.returncode == 1
    said = [line for _log, line in logs.values() if line]
    lines = taken.stderr.splitlines()
    assert len(lines) == len(said) + 1
    for line, wanted in zip(lines, said):
        assert wanted in line
    assert "apply daemonset.yml first" in lines[-1]
    assert list((tmp_path / "saved").iterdir()) == []
    assert not list(tmp_path.rglob("elsewhere*.tar.gz"))


def test_the_others_are_written(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add("bad", "pod-bad", b"")
    cluster.add("good", "pod-good", framed(b"an archive").encode("ascii"))
    assert cluster.take(tmp_path / "saved").returncode == 1
    assert (tmp_path / "saved/good.tar.gz").read_bytes() == b"an archive"
    assert list(json.loads((tmp_path / "saved/inventory.json").read_text("utf-8"))["all"]["hosts"]) == ["good"]


DIGEST = "@sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("image", "is_pinned"),
    [
        ("python" + DIGEST, True),
        ("registry.example.org:5000/mirror/python" + DIGEST, True),
        ("python:3.13-slim" + DIGEST, True),
        # A tag can be given to another image.
        ("python", False),
        ("python:3.13-slim", False),
        ("python@sha256:" + "0" * 63, False),
        ("python@sha256:" + "G" * 64, False),
        ("python%s\n              command: [sh]" % DIGEST, False),
        (DIGEST, False),
        ("NAME@sha256:DIGEST", False),
    ],
)
def test_whoever_runs_the_pods_names_their_image_by_its_digest(image: str, is_pinned: bool) -> None:
    command = [sys.executable, str(PROGRAM), "pods", image]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is is_pinned
    if not is_pinned:
        assert done.stdout == ""
        assert "is no image with a digest: write it as NAME@sha256:DIGEST" in done.stderr
        return
    items = yaml.safe_load(done.stdout)["items"]
    (spec,) = (item["spec"]["template"]["spec"] for item in items if item["kind"] == "DaemonSet")
    assert [container["image"] for container in spec["containers"]] == [image]


def test_no_runtime_takes_the_manifest_as_it_is() -> None:
    """Who applies it without an image runs nothing: a name is of small letters."""
    text = (PROGRAM.parent / "daemonset.yml").read_text(encoding="utf-8")
    assert [line.split(": ")[1] for line in text.splitlines() if " image: " in line] == ["NAME@sha256:DIGEST"]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trial starts with each container runtime: containerd 1.6 to 2 as Debian has them, and CRI-O that does not start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_paths import SOCKET
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import KUBERNETES, lacking, need
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

from .binaries import NEWER_RUNTIMES, RUNTIME, binaries
from .debian import UnavailableError
from .kubelet_node import saved
from .trial_node import CHECKPOINT, STATIC, LiveNode

# Makes a node with these programs: each by its name there, as a file or as text.
MakeLiveNode = Callable[..., LiveNode]


@pytest.fixture
def live_node(tmp_path: Path) -> Iterator[MakeLiveNode]:
    """Yield one at a time on this machine, as its cgroups are looked at."""
    need("unshare", "mount")

    def make(**programs: Path | str) -> LiveNode:
        directory = tmp_path / "programs"
        directory.mkdir()
        for name, program in programs.items():
            if isinstance(program, Path):
                (directory / name).symlink_to(program)
            else:
                (directory / name).write_text(program, encoding="utf-8")
                (directory / name).chmod(0o755)
        return LiveNode(directory, tmp_path / "node")

    with alone():
        yield make


def runtime(name: str) -> Path:
    """Return the program of a container runtime."""
    try:
        return binaries([name]) / name
    except UnavailableError as error:
        lacking(KUBERNETES, "no %s: %s" % (name, error))


def test_the_kubelet_starts_with_a_newer_containerd(live_node: MakeLiveNode, real_kubelet: Path) -> None:
    node = live_node(kubelet=real_kubelet / "kubelet", containerd=runtime("containerd-1.7"))
    answer = node.tried()
    assert (answer["starts"], answer["message"], answer["reason"]) == (True, "", "")
    assert answer["runtime"] == "/opt/bin/containerd"
    # What is found after the runtime was asked.
    node.write(CHECKPOINT, saved("none", "").decode("ascii"))
    answer = node.tried()
    assert answer["starts"] is False
    assert 'configured policy "static" differs from' in answer["message"]


def test_a_kubelet_that_is_too_old_for_its_containerd(live_node: MakeLiveNode, real_kubelet: Path) -> None:
    """No table knows this refusal: the runtime is the node's, and it answers."""
    node = live_node(kubelet=real_kubelet / "kubelet", containerd=runtime("containerd-2"))
    answer = node.tried()
    assert (answer["starts"], answer["runtime"]) == (False, "/opt/bin/containerd")
    assert "unknown service runtime.v1alpha2.RuntimeService" in answer["message"]
    assert answer["prediction_differs"]


_CRICTL = Path(__file__).parents[1] / "vm/files/runtime/usr/local/lib/crictl.py"
# Asks the runtime what a kubelet of today asks it at its start, and says what it hears.
_ASKS = """\
#!%s -S
import sys
crictl = {"__name__": "crictl"}
exec(%r, crictl)

class Options:
    runtime_endpoint = %r

def heard(method):
    try:
        return crictl["ask"](Options, method, b"").hex()
    except SystemExit:
        return "nothing"

if "--version" in sys.argv:
    print("Kubernetes v1.36.3")
else:
    print("heard:", *map(heard, ("Version", "Status", "RuntimeConfig")))
    sys.exit(1)
"""
# RuntimeConfigResponse: of Linux, the cgroup driver is cgroupfs, which is 1.
_CGROUPFS = "0a020801"


@pytest.mark.parametrize(
    ("name", "driver"), [(RUNTIME[0], "nothing"), ("containerd-1.7", "nothing"), ("containerd-2", _CGROUPFS)]
)
def test_each_containerd_answers_a_kubelet_of_today(live_node: MakeLiveNode, name: str, driver: str) -> None:
    """The runtime and its network are ready; and who names a cgroup driver to the kubelet names that of the trial."""
    asks = _ASKS % (os.path.realpath(sys.executable), _CRICTL.read_text(encoding="utf-8"), SOCKET)
    node = live_node(kubelet=asks, containerd=runtime(name))
    answer = node.tried()
    assert answer["starts"] is False
    heard, version, status, told = answer["message"].split()
    assert heard == "heard:"
    assert b"containerd" in bytes.fromhex(version)
    for condition in (b"RuntimeReady", b"NetworkReady"):
        assert condition + b"\x10\x01" in bytes.fromhex(status)
    assert told == driver


def test_the_versions_of_containerd_are_those_of_their_names() -> None:
    for name in NEWER_RUNTIMES:
        done = subprocess.run([runtime(name), "--version"], stdout=subprocess.PIPE, text=True, check=True)
        assert done.stdout.split()[2].startswith(name.rpartition("-")[2] + ".")


def test_without_a_runtime_what_comes_before_it_is_tried(live_node: MakeLiveNode, real_kubelet: Path) -> None:
    node = live_node(kubelet=real_kubelet / "kubelet")
    answer = node.tried()
    assert (answer["starts"], answer["runtime"]) == (None, None)
    assert "container runtime" in answer["reason"]
    node.configure({**STATIC, "reservedSystemCPUs": "999"})
    answer = node.tried()
    assert answer["starts"] is False
    assert "Invalid cpuset" in answer["message"]
    assert any("container runtime" in what for what in answer["not_tried"])


# --- CRI-O ----------------------------------------------------------------------------------------------------

_OF_CRIO = [
    *kubernetes.flags("kubelet", kubernetes.version()),
    "--container-runtime-endpoint=unix:///var/run/crio/crio.sock",
]
_ENDS = "#!/bin/sh\necho 'level=fatal msg=\"no storage for a trial\"'\nexit 1\n"


@pytest.mark.parametrize("program", ["", _ENDS], ids=["absent", "ends"])
def test_where_cri_o_does_not_start_for_a_trial(live_node: MakeLiveNode, real_kubelet: Path, program: str) -> None:
    """What is checked before a runtime is asked is tried, and no containerd stands in, which is there, too."""
    more = {"crio": program} if program else {}
    node = live_node(kubelet=real_kubelet / "kubelet", containerd=real_kubelet / "containerd", **more)
    node.flags += _OF_CRIO
    answer = node.tried()
    assert (answer["starts"], answer["runtime"]) == (None, None)
    assert "no refusal before it asked the container runtime, and there is none for a trial" in answer["reason"]
    assert ("no storage for a trial" in answer["reason"]) == bool(program)
    assert any("container runtime" in what for what in answer["not_tried"])
    node.configure({**STATIC, "reservedSystemCPUs": "999"})
    answer = node.tried()
    assert (answer["starts"], answer["runtime"]) == (False, None)
    assert "Invalid cpuset" in answer["message"]

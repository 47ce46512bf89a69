# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module cpuset on saved nodes of each kind, and on the real cgroups of the machine that the tests run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.kernel.cgroups import Cgroups, why_not
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    CGROUPFS,
    STYLES,
    SYSTEMD,
    Files,
    container_files,
    pod_path,
    write_cgroups,
)

from .conftest import Result, ansible_playbook, fingerprint, play, task

# The runtime and the driver of each node, which have the styles' names.
NODES = {
    "v1": ("containerd", CGROUPFS),
    "v2": ("containerd", SYSTEMD),
    "hybrid": ("docker", CGROUPFS),
    "hybrid-v2": ("cri-o+crun", SYSTEMD),
}
POD = "8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a"


def saved_node(root: Path, style: str) -> list[str]:
    """Return a node whose one pod, of the class Burstable, is on CPUs 0-3; the paths of its cgroups."""
    runtime, driver = NODES[style]
    pod = pod_path(driver, POD, "Burstable")
    paths = [pod.split("/", depth)[:depth] for depth in (1, 2)]
    cgroups = {**{"/".join(path): Files("0-3", "0") for path in paths}, pod: Files("0-3", "0")}
    cgroups.update(container_files(driver, runtime, pod, "ab" * 32, "0-3"))
    write_cgroups(root, STYLES[style], cgroups)
    return [path for path, files in cgroups.items() if files.cpus]


def comparable(result: Result) -> Result:
    return {key: value for key, value in result.items() if key != "task"}


def test_saved_nodes(tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {}
    for style in NODES:
        root = tmp_path / "nodes" / style
        paths = saved_node(root, style)
        moved = [{"path": path, "cpus": "4-7", "mems": "1"} for path in paths]
        hosts[style] = {"node": str(root), "moved": moved}
    moving = task("cpuset", root="{{ node }}", cgroups="{{ moved }}")

    before = fingerprint(tmp_path / "nodes")
    check = ansible_playbook(tmp_path / "check", play(moving), hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    assert fingerprint(tmp_path / "nodes") == before
    run = ansible_playbook(tmp_path / "run", play(moving), hosts, "--diff")
    assert run.status == 0, run.account()
    again = ansible_playbook(tmp_path / "again", play(moving), hosts)
    assert again.status == 0, again.account()

    for style, variables in hosts.items():
        told, done, last = (run_of_play.last(style) for run_of_play in (check, run, again))
        assert comparable(told) == comparable(done)
        assert (done["version"], done["mount"]) == (STYLES[style].version, STYLES[style].mount)
        assert done["changed"]
        assert not last["changed"]
        assert last["writes"] == []
        moved = variables["moved"]
        assert done["diff"]["before"] == lines(moved, "0-3", "0")
        assert done["diff"]["after"] == lines(moved, "4-7", "1")
        # On v1 all but the last of a tree go through both.
        innermost = len([write for write in moved if write["path"].endswith(("ab", ".scope"))])
        twice = len(moved) - innermost if STYLES[style].version == 1 else 0
        assert len(done["writes"]) == 2 * (len(moved) + twice)
        for write in moved:
            place = Path(variables["node"], STYLES[style].mount[1:], write["path"], "cpuset.cpus")
            assert place.read_text(encoding="utf-8") == "4-7\n"


def lines(moved: list[dict[str, str]], cpus: str, mems: str) -> str:
    return "".join(
        "%s %s: %s\n" % (write["path"], file, text)
        for file, text in (("cpuset.cpus", cpus), ("cpuset.mems", mems))
        for write in moved
    )


CONTAINER = "kubepods/burstable/pod%s/%s" % (POD, "ab" * 32)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "offline": ({"path": "kubepods", "cpus": "0-8"}, "cpuset.cpus cannot be 0-8: CPUs 8 are not online"),
    "empty": ({"path": CONTAINER, "cpus": ""}, "processes are in it (ENOSPC)"),
    "busy": ({"path": "kubepods", "cpus": "0"}, "its child kubepods/burstable has 0-3 (EBUSY)"),
    "outside": ({"path": CONTAINER, "cpus": "4"}, "its parent kubepods/burstable/pod%s has, 0-3 (EACCES)" % POD),
    "nowhere": ({"path": "kubepod", "cpus": "4"}, "/sys/fs/cgroup/cpuset/kubepod: no such cgroup"),
    "dots": ({"path": "../cpu", "cpus": "4"}, "leads out of the hierarchy"),
    "absolute": ({"path": "/kubepods", "cpus": "4"}, "is not below /sys/fs/cgroup/cpuset"),
    "nothing": ({"path": "kubepods"}, "kubepods: nothing is wanted; give cpus or mems"),
    "text": ({"path": "kubepods", "cpus": "4-"}, "kubepods: cpus: CPU list '4-', position 3"),
    "both": ({"path": "kubepods", "cgroups": []}, "path and cgroups exclude each other; remove one"),
    "neither": ({}, "nothing of path or cgroups is given; set one"),
    "no path": ({"cpus": "4", "cgroups": []}, "cpus takes path; set it"),
}


def test_refusals(tmp_path: Path) -> None:
    root = tmp_path / "node"
    saved_node(root, "v1")
    hosts = {name: {"parameters": {"root": str(root), **given}} for name, (given, _message) in REFUSED.items()}
    before = fingerprint(root)
    run = ansible_playbook(tmp_path / "run", play({**task("cpuset"), "args": "{{ parameters }}"}), hosts)
    assert run.status == 2
    assert fingerprint(root) == before
    for name, (_given, message) in REFUSED.items():
        assert message in run.last(name)["msg"]


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_real_cgroups(tmp_path: Path) -> None:
    with Cgroups() as cgroups:
        old = {"a": "0", "a/b": "0", "a/c": "0"}
        cgroups.make_all(old)
        process = cgroups.start("a/b")
        moved = [{"path": cgroups.path(path), "cpus": str(cgroups.real("1"))} for path in old]
        hosts: dict[str, dict[str, Any]] = {"here": {}}
        tasks = play(task("cpuset", root="/", cgroups=moved))
        check = ansible_playbook(tmp_path / "check", tasks, hosts, "--check", "--diff")
        assert check.status == 0, check.account()
        assert cgroups.sets() == old
        run = ansible_playbook(tmp_path / "run", tasks, hosts, "--diff")
        assert run.status == 0, run.account()
        assert comparable(check.last("here")) == comparable(run.last("here"))
        assert run.last("here")["changed"]
        assert cgroups.sets() == dict.fromkeys(old, "1")
        assert cgroups.allowed(process) == "1"
        again = ansible_playbook(tmp_path / "again", tasks, hosts)
        assert again.status == 0, again.account()
        assert not again.last("here")["changed"]

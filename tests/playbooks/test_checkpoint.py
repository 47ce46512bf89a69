# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module checkpoint, state by state, on saved nodes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from .conftest import CopyOf, Run, ansible_playbook, play, task

FILE = "var/lib/kubelet/cpu_manager_state"
POSTGRES = "0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4"

# Each is done to a copy of a node of the demo.
STATIC: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "reserved_system_cpus": "0,12,24,36",
}


def pod(name: str, cpu: str, created: str) -> dict[str, Any]:
    """Return a pod as the API server gives it."""
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": "uid-" + name, "creationTimestamp": created},
        "spec": {
            "nodeName": "worker",
            "containers": [{"name": "app", "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}],
        },
        "status": {"phase": "Running"},
    }


PODS = [
    pod("young", "4", "2026-11-21T12:00:00Z"),
    pod("old", "2", "2026-11-21T10:00:00Z"),
    pod("shared", "500m", "2026-11-21T09:00:00Z"),
    pod("odd", "3", "2026-11-21T11:00:00Z"),
]


def container(name: str, cpus: int, created: str) -> dict[str, Any]:
    """Return a container as crictl inspect prints it."""
    labels = {
        "io.kubernetes.container.name": "app",
        "io.kubernetes.pod.name": name,
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.uid": "uid-" + name,
    }
    linux = {
        "cgroupsPath": "kubepods-poduid_%s.slice:cri-containerd:%s" % (name, name),
        "resources": {"cpu": {"shares": 1024 * cpus}},
    }
    status = {"id": name, "labels": labels, "state": "CONTAINER_RUNNING", "createdAt": created}
    return {"status": status, "info": {"runtimeSpec": {"linux": linux}}}


CONTAINERS = [container("young", 4, "2026-11-21T12:00:00Z"), container("old", 2, "2026-11-21T10:00:00Z")]

# What the kubelet writes when it starts "old", then "young", and refuses "odd", which wants half a core. The machine's
# even CPUs are one NUMA node, the odd ones the other.
SEED = {
    "default_cpu_set": "0-1,3,5,7-25,27,29,31-47",
    "assignments": {"uid-old": {"app": "2,26"}, "uid-young": {"app": "4,6,28,30"}},
}


def rewrite(root: Path, **members: Any) -> None:
    """Write the checkpoint of a saved node with other members, and no checksum."""
    file = root / FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), **members, "checksum": 0}))


def with_text(data: dict[str, Any], **members: Any) -> bytes:
    """Return a checkpoint of format v4 with more members in its text."""
    text = json.dumps({**json.loads(data["data"]), **members})
    total = 2166136261
    for byte in b"(string)" + text.encode():
        total = (total ^ byte) * 16777619 % 2**32
    return json.dumps({**data, "data": text, "dataChecksum": total}).encode()


def test_each_state(copy_of: CopyOf, tmp_path: Path) -> None:
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "repaired": ("epyc", {}),
        "gone": ("epyc", {"pods": [pod("other", "1", "2026-11-21T12:00:00Z")]}),
        "offline": ("epyc", {"discard_assignments": True}),
        "seeded": ("xeon", {**STATIC, "state": "present", "pods": PODS, "discard_assignments": True}),
        "contained": ("xeon", {**STATIC, "state": "present", "containers": CONTAINERS, "discard_assignments": True}),
        "given": ("xeon", {**STATIC, "state": "present", "checkpoint": SEED, "discard_assignments": True}),
        "newer": ("epyc", {"state": "format", "kubelet_version": "1.37"}),
        "removed": ("epyc", {"state": "absent", "discard_assignments": True}),
    }
    roots = {name: copy_of(node, name) for name, (node, _parameters) in asked.items()}
    # A CPU of postgres went away, and two of nobody.
    rewrite(roots["repaired"], defaultCpuSet="0-9,16-75,80-127")
    (roots["offline"] / "sys/devices/system/cpu/online").write_text("0-75,77-127\n")
    hosts = {name: {"root": str(root)} for name, root in roots.items()}
    plays = [
        entry
        for name, (_node, parameters) in asked.items()
        for entry in play(task("checkpoint", root="{{ root }}", **parameters), hosts=name)
    ]
    check = ansible_playbook(tmp_path / "check", plays, hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    run = ansible_playbook(tmp_path / "run", plays, hosts, "--diff")
    assert run.status == 0, run.account()
    again = ansible_playbook(tmp_path / "again", plays, hosts)
    assert again.status == 0, again.account()
    for name, root in roots.items():
        told, done = check.last(name), run.last(name)
        assert done["changed"], name
        assert told == {key: value for key, value in done.items() if key != "backup_file"}, name
        assert not again.last(name)["changed"], name
        assert Path(done["backup_file"]).is_file()
        # Where nothing is left to be kept, the kubelet writes a new one.
        assert (root / FILE).exists() == (name not in ("removed", "offline"))
    after = {name: run.last(name)["after"] for name in asked}
    assert after["repaired"]["assignments"] == {POSTGRES: {"postgres": "12-15,76-79"}}
    assert after["repaired"]["default_cpu_set"] == "0-11,16-75,80-127"
    assert after["gone"]["assignments"] == {}
    assert run.last("gone")["stale"] == [{"pod": POSTGRES, "container": "postgres", "cpus": "12-15,76-79"}]
    assert run.last("offline")["lost"] == [
        {"pod": POSTGRES, "container": "postgres", "cpus": "12-15,76-79", "why": "CPUs 76 are not online"}
    ]
    for name in ("seeded", "contained", "given"):
        assert {key: after[name][key] for key in SEED} == SEED, name
        assert (roots[name] / FILE).read_bytes() == (roots["seeded"] / FILE).read_bytes()
        assert (roots[name] / FILE).stat().st_mode & 0o777 == 0o600
    assert [row["reason"] for row in run.last("seeded")["refused"]] == ["SMTAlignmentError"]
    assert after["newer"]["format"] == "v4"
    # The change in CPU sets, not in JSON.
    assert "+pod uid-old, container app: 2,26" in run.output

    # A backup brings the old file back, byte for byte.
    back = play(
        task("checkpoint", root="{{ root }}", state="present", source="{{ source }}", discard_assignments=True),
        hosts="newer,removed",
    )
    for name in ("newer", "removed"):
        backup = Path(run.last(name)["backup_file"])
        hosts[name]["source"] = "/" + str(backup.relative_to(roots[name]))
    undone = ansible_playbook(tmp_path / "undo", back, hosts)
    assert undone.status == 0, undone.account()
    for name in ("newer", "removed"):
        assert (roots[name] / FILE).read_bytes() == Path(run.last(name)["backup_file"]).read_bytes()


def test_what_is_refused(copy_of: CopyOf, tmp_path: Path) -> None:
    asked: dict[str, tuple[str, dict[str, Any], str]] = {
        "lost": ("epyc", {}, "pod %s, container postgres: CPUs 12-15,76-79: CPUs 76 are not online" % POSTGRES),
        "running": ("epyc", {"state": "absent", "discard_assignments": True}, "the kubelet runs (process 4711)"),
        "nothing": ("epyc", {"state": "present"}, "takes one of checkpoint, source, pods, containers"),
        "wrong": (
            "epyc",
            {"state": "present", "checkpoint": {"default_cpu_set": "0-3"}, "discard_assignments": True},
            "a kubelet with this configuration would refuse what is to be written: current set of available CPUs",
        ),
        "unclear": ("epyc", {"state": "present", "pods": [{"metadata": {"name": "a"}}]}, "spec.containers is empty"),
        "damaged": ("edge", {"state": "format", "kubelet_version": "1.37"}, "use state: valid to repair it"),
    }
    roots = {name: copy_of(row[0], name) for name, row in asked.items()}
    (roots["lost"] / "sys/devices/system/cpu/online").write_text("0-75,77-127\n")
    process = roots["running"] / "proc" / "4711"
    process.mkdir(parents=True)
    (process / "cmdline").write_text("/usr/bin/kubelet\0--config=/etc/x\0")
    before = {name: (root / FILE).read_bytes() for name, root in roots.items()}
    hosts = {name: {"root": str(root)} for name, root in roots.items()}
    kinds = {"lost": "assignments", "running": "kubelet_runs", "nothing": "input", "unclear": "input"}
    run = Run(0, "", {})
    for name, (_node, parameters, message) in asked.items():
        plays = play(task("checkpoint", root="{{ root }}", **parameters), hosts=name)
        # Check mode says so, too.
        for mode in ("--check", "--diff"):
            run = ansible_playbook(tmp_path / "run", plays, {name: hosts[name]}, mode)
            assert run.status == 2, name
            assert message in run.last(name)["msg"], name
        assert (roots[name] / FILE).read_bytes() == before[name]
        assert not list((roots[name] / FILE).parent.glob("*~"))
        assert run.last(name)["failure"]["kind"] == kinds.get(name, "refused"), name
    allowed = play(task("checkpoint", root="{{ root }}", **asked["running"][1], allow_running_kubelet=True))
    run = ansible_playbook(tmp_path / "run", allowed, {"running": hosts["running"]})
    assert run.last("running")["changed"], run.output


def test_another_file_reads_back(copy_of: CopyOf, tmp_path: Path) -> None:
    """What checkpoint_info returns is what checkpoint takes."""
    good, damaged = copy_of("epyc", "good"), copy_of("epyc", "other")
    shutil.copy(good / FILE, tmp_path / "expected")
    (damaged / FILE).unlink()
    hosts = {"good": {"root": str(good)}, "other": {"root": str(damaged)}}
    plays = [
        *play({**task("checkpoint_info", root="{{ root }}"), "register": "answer"}, hosts="good"),
        *play(
            task(
                "checkpoint", root="{{ root }}", state="present", checkpoint="{{ hostvars['good'].answer.checkpoint }}"
            ),
            hosts="other",
        ),
    ]
    run = ansible_playbook(tmp_path / "run", plays, hosts)
    assert run.status == 0, run.account()
    assert run.last("good")["kubelet_says"] == ""
    assert (damaged / FILE).read_bytes() == (tmp_path / "expected").read_bytes()


def test_to_1_37_and_back_from_the_threads_not_replayed_against_1_37(copy_of: CopyOf, tmp_path: Path) -> None:
    """Both ways say what they lose before it happens; containers keep their CPUs, whole pods only with 1.36's gate."""
    asked: dict[str, dict[str, Any]] = {
        "up": {"kubelet_version": "1.37"},
        "down": {"kubelet_version": "1.36"},
        "down-lossy": {"kubelet_version": "1.36"},
        "forgotten": {},
        "newer": {"kubelet_version": "1.37"},
    }
    roots = {name: copy_of("epyc", name) for name in asked}
    up = play(task("checkpoint", root="{{ root }}", state="format", kubelet_version="1.37"))
    hosts = {name: {"root": str(root)} for name, root in roots.items()}
    plain = (roots["up"] / FILE).read_bytes()
    before = {name: {"root": str(root)} for name, root in roots.items() if name != "up"}
    written = ansible_playbook(tmp_path / "write", up, before)
    assert written.status == 0, written.account()
    text = (roots["down"] / FILE).read_text()
    data = json.loads(text)
    assert list(data) == ["policyName", "defaultCpuSet", "entries", "checksum", "data", "dataChecksum"]
    assert {name: data[name] for name in list(data)[:4]} == json.loads(plain)
    # All that a 1.37 kubelet has beside it: the CPUs of postgres as those of a whole pod, and what 1.38 may add.
    (roots["down-lossy"] / FILE).write_bytes(with_text(data, podEntries={POSTGRES: {"cpuSet": "12-15,76-79"}}))
    (roots["forgotten"] / FILE).write_bytes(with_text(data, podEntries={POSTGRES: {"cpuSet": "12-15,76-79"}}))
    (roots["newer"] / FILE).write_bytes(with_text(data, originals={POSTGRES: {"postgres": "12-15,76-79"}}))
    (roots["newer"] / "sys/devices/system/cpu/online").write_text("0-126\n")
    plays = [
        entry
        for name, parameters in asked.items()
        for entry in play(task("checkpoint", root="{{ root }}", **parameters), hosts=name)
    ]
    run = ansible_playbook(tmp_path / "run", plays, hosts)
    assert run.status == 0, run.account()
    notes = {name: " / ".join(run.last(name)["notes"]) for name in asked}
    changed = {name: run.last(name)["changed"] for name in asked}
    assert changed == {**dict.fromkeys(asked, False), "newer": True}
    assert (roots["up"] / FILE).read_bytes() == plain
    assert (
        "of format v2, and writes format v4 in its place; of that, kubelets before 1.37 read the CPUs of" in notes["up"]
    )
    assert "only the format v2 beside its member data" in notes["down"]
    assert "whole pods" not in notes["down"]
    assert "does not take over the CPUs of whole pods: pod %s: CPUs 12-15,76-79" % POSTGRES in notes["down-lossy"]
    # The version is not known, but the file tells that it is 1.37 or newer.
    assert "the version of the kubelet is not known: 1.37 is assumed, the oldest that writes" in notes["forgotten"]
    assert run.last("forgotten")["checkpoint"]["format"] == "v4"
    repaired = json.loads(json.loads((roots["newer"] / FILE).read_text())["data"])
    assert repaired["originals"] == {POSTGRES: {"postgres": "12-15,76-79"}}
    assert repaired["entries"] == data["entries"]
    # What 1.36 cannot hold is refused, and what it can is converted back to the byte.
    back = [
        entry
        for name in ("down", "down-lossy")
        for entry in play(
            task("checkpoint", root="{{ root }}", state="format", kubelet_version="1.36", discard_assignments=True),
            hosts=name,
        )
    ]
    undone = ansible_playbook(tmp_path / "back", back, hosts)
    assert undone.status == 2
    assert "cannot hold the CPUs of whole pods" in undone.last("down-lossy")["msg"]
    assert (roots["down"] / FILE).read_bytes() == plain

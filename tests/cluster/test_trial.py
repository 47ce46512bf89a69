# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trial starts of the real kubelet, and of others: what they answer, and that nothing of a node changes."""

from __future__ import annotations

import json
import lzma
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.conformance.start_case import (
    DANGLING,
    DIRECTORY,
    MISSING,
    NO_CONFIG,
)
from ansible_collections.kubenode.cpu_manager.tests.kernel.cgroups import Cgroups
from ansible_collections.kubenode.cpu_manager.tests.kernel.intruders import Scene, why_no_scenes, wrong_with
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook, fingerprint
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .control_plane import ControlPlane
from .fixtures import MakeNode
from .fleet import LAST, ROLLOUT
from .kubelet.configuration import API_VERSION, KIND
from .kubelet_node import QUIET, saved
from .rollouts import ROLLBACK
from .trial_node import CHECKPOINT, STATIC, LiveNode

ODD = {MISSING, DIRECTORY, DANGLING, NO_CONFIG}


@pytest.fixture
def node(real_kubelet: Path, tmp_path: Path) -> Iterator[LiveNode]:
    """Yield one at a time on this machine, as its cgroups are looked at."""
    need("unshare", "mount")
    with alone():
        yield LiveNode(real_kubelet, tmp_path / "node")


def test_a_start(node: LiveNode) -> None:
    done = node.answer("try")
    answer = done["answer"]
    assert done["after"] == done["before"]
    assert (answer["starts"], answer["version"], answer["message"], answer["reason"]) == (
        True,
        kubernetes.version(),
        "",
        "",
    )
    assert answer["runtime"] == "/opt/bin/containerd"
    assert not answer["prediction_differs"]
    assert answer["checkpoint_format"] == {"before": None, "after": 2}
    assert any("API server" in what for what in answer["not_tried"])
    assert not any("systemd" in what or "healthz" in what for what in answer["not_tried"])
    # The time is much shorter where the machine does nothing else.
    assert answer["seconds"] < 30
    assert done["computed"] < 6


REFUSALS: dict[str, tuple[dict[str, Any], dict[str, str], list[str], str]] = {
    "checkpoint-of-none": (
        STATIC,
        {CHECKPOINT: saved("none", "").decode("ascii")},
        [],
        'start cpu manager error: could not restore state from checkpoint: configured policy "static" differs from',
    ),
    "absent-cpu": (
        {**STATIC, "reservedSystemCPUs": "999"},
        {},
        [],
        'Invalid cpuset "999" specified by --reserved-cpus',
    ),
    "nothing-reserved": (
        {"cpuManagerPolicy": "static"},
        {},
        [],
        "unable to determine reserved CPU resources for static policy",
    ),
    "unknown-flag": (STATIC, {}, ["--no-such-flag=1"], "unknown flag: --no-such-flag"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_in_the_kubelets_own_words(node: LiveNode, name: str) -> None:
    configuration, files, flags, words = REFUSALS[name]
    node.configure(configuration)
    for path, text in files.items():
        node.write(path, text)
    node.flags += flags
    answer = node.tried()
    assert answer["starts"] is False
    assert words in answer["message"]
    # Whether a flag that no table has is one of this kubelet cannot be predicted.
    assert answer["prediction"]["starts"] is (None if name == "unknown-flag" else False)
    assert not answer["prediction_differs"]


def test_a_state_that_the_unit_removes_is_not_there_in_a_trial(node: LiveNode) -> None:
    node.write(CHECKPOINT, saved("none", "").decode("ascii"))
    drop_in = "[Service]\nExecStartPre=/bin/rm -f %s\n" % CHECKPOINT
    node.write("/etc/systemd/system/kubelet.service.d/clean.conf", drop_in)
    answer = node.tried()
    assert (answer["starts"], answer["prediction"]["starts"], answer["prediction_differs"]) == (True, True, False)


def test_what_is_planned_is_tried(node: LiveNode) -> None:
    """A node of the policy none gets the policy static; with its checkpoint no kubelet would start."""
    node.configure({"cpuManagerPolicy": "none"})
    node.write(CHECKPOINT, saved("none", "").decode("ascii"))
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0"}
    assert node.tried()["starts"] is True
    refused = node.tried(wanted=wanted)
    assert (refused["starts"], refused["checkpoint_format"]["before"]) == (False, 2)
    assert node.tried(wanted=wanted, files={CHECKPOINT: None})["starts"] is True
    # In a directory that is not the kubelet's own, too, and where there is none yet.
    node.flags[0] = "--config=/etc/kubelet.d/deep/config.yaml"
    text = yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, **STATIC, "reservedSystemCPUs": "999"})
    answer = node.tried(files={"/etc/kubelet.d/deep/config.yaml": text})
    assert 'Invalid cpuset "999"' in answer["message"]


def test_a_reservation_of_the_whole_disk_is_judged_by_the_real_disk(node: LiveNode) -> None:
    """The directory in memory looks as large as the real one: this reservation is within it, as on a real start."""
    node.configure({**STATIC, "systemReserved": {"ephemeral-storage": "2Gi"}})
    assert node.tried()["starts"] is True
    node.configure({**STATIC, "systemReserved": {"ephemeral-storage": "900Pi"}})
    refused = node.tried()
    assert refused["starts"] is False
    assert "ephemeral-storage" in refused["message"]


def test_the_node_is_left_alone_beside_a_kubelet_that_runs(node: LiveNode) -> None:
    node.configure({**QUIET, **STATIC, "healthzPort": 0})
    node.flags.remove("--kubeconfig=/etc/kubernetes/kubelet.conf")
    runtime = [
        *kubernetes.flags("kubelet", kubernetes.version()),
        "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
    ]
    done = node.answer(
        "beside",
        containerd=CONTAINERD,
        kubelet=["/opt/bin/kubelet", *node.flags, *runtime],
        files={CHECKPOINT: saved("none", "").decode("ascii")},
    )
    assert done["after"] == done["before"]
    assert done["runs"]
    assert done["answer"]["starts"] is False
    assert "differs from state checkpoint policy" in done["answer"]["message"]
    assert done["answer"]["runtime"] == "/opt/bin/containerd"


CONTAINERD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
disable_apparmor = true
disable_cgroup = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "/run/containerd/cni"
"""


def test_trials_at_once_wait_for_each_other(node: LiveNode) -> None:
    """As where two people plan a change of one node: neither takes the other's cgroups for what a killed one left."""
    done = node.answer("together", number=3)
    assert [answer["starts"] for answer in done["answers"]] == [True] * 3
    assert done["after"] == done["before"]


# What of the machine itself may run on a CPU that is not quiet: nothing else may, beside a trial.
OF_THE_MACHINE = {"kernel thread", "interrupts", "steal"}


def names_that_run() -> set[str]:
    """Return the names of all threads of the machine, but those that a trial has, too."""
    names = set()
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*/comm"):
        with suppress(OSError):
            names.add(path.read_text("utf-8", "replace").rstrip("\n"))
    return {name for name in names if not re.search("py|kubelet|containerd|runc", name)}


def test_trials_disturb_nobody_on_exclusive_cpus(real_kubelet: Path, tmp_path: Path) -> None:
    """A container computes on its CPU, and isolation_info accuses nobody there while trials go on beside it."""
    reason = why_no_scenes()
    if reason:
        pytest.skip(reason)
    need("unshare", "mount")
    number, others = how_many("TRIALS_BESIDE", 2, 50), names_that_run()
    with Cgroups() as cgroups, Scene(tmp_path, cgroups) as scene:
        node = LiveNode(real_kubelet, tmp_path / "node")
        node.configure({**STATIC, "reservedSystemCPUs": str(scene.neighbour)})
        node.write(CHECKPOINT, saved("static", str(scene.neighbour), db=str(scene.cpu)).decode("ascii"))
        with ThreadPoolExecutor() as pool:
            trials = pool.submit(node.answer, "many", cases=[{"files": {}, "flags": []}] * number)
            seen = []
            while not trials.done():
                seen.append(scene.play(1.0, None, seconds=2))
            answers = trials.result()["answers"]
    assert [answer["starts"] for answer in answers] == [True] * number
    accused = {who for moment in seen for who in moment.accused() if who[1] not in others}
    assert not {kind for kind, _name in accused} - OF_THE_MACHINE, accused
    # A moment in which a thread of the machine itself ran on that CPU was not quiet.
    quiet = [moment for moment in seen if others.isdisjoint(name for _kind, name in moment.accused())]
    wrong = [wrong_with(moment, None) for moment in quiet]
    assert not any(wrong), wrong
    if all(outcome is None for outcome in wrong):
        pytest.skip("the machine is not quiet enough")


def test_nothing_is_left_of_a_trial_that_is_killed(node: LiveNode) -> None:
    """At any of the module's system calls, and while the kubelet of the trial works and the module only waits."""
    seconds = node.tried()["seconds"]
    number = how_many("TRIAL_KILLS", 6, 300)
    moments = [(kill + 0.5) / number * seconds for kill in range(0, number, 6)]
    done = node.answer("kill", moments=moments, calls=number)
    assert done["left"] == [[]] * (len(moments) + number)
    # Two of each system call.
    assert done["stops"] >= 1000
    assert done["last"]["answer"]["starts"] is True
    assert done["last"]["after"] == done["first"]


def test_nothing_is_left_where_the_processes_inside_are_killed(node: LiveNode) -> None:
    """The first process inside at each of its mounts, and its parent while it waits for it."""
    need("strace")
    strace = ["strace", "--follow-forks", "--seccomp-bpf", "--output=/dev/null"]
    mounts = range(1, 31, 30 // how_many("TRIAL_KILLS_INSIDE", 2, 30))
    for call in (*("mount:signal=KILL:when=%d" % number for number in mounts), "wait4:signal=KILL:when=3"):
        done = node.answer("try", *strace, "--inject=" + call)
        assert done["after"] == done["before"]
        assert done["answer"]["starts"] is None
        assert "the process of the trial was killed" in done["answer"]["reason"]


def test_a_kubelet_that_hangs_ends_with_the_module(node: LiveNode) -> None:
    node.write(
        "/etc/kubernetes/hangs",
        "#!/bin/sh\n[ $1 != --version ] || exec echo Kubernetes v%s\nsleep 1000\n" % kubernetes.version(),
    )
    (node.root / "etc/kubernetes/hangs").chmod(0o755)
    done = node.answer("kill", moments=[2], program="/etc/kubernetes/hangs")
    assert done["left"] == [[]]
    assert done["last"]["after"] == done["first"]


HOSTILE = """\
#!%s -S
import os, signal, sys, time
if "--version" in sys.argv:
    print("Kubernetes vVERSION")
    sys.exit()
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
for command in ("mount -o remount,rw", "mount -o remount,rw,bind", "umount -l"):
    for path in ("/", "/etc", "/opt", "/proc/sys/vm/panic_on_oom"):
        os.system("%%s %%s 2> /dev/null" %% (command, path))
for path in %r:
    for flags in (os.O_WRONLY, os.O_WRONLY | os.O_CREAT):
        try:
            os.write(os.open(path, flags, 0o644), b"77\\n")
        except OSError:
            pass
for child in range(2000):
    try:
        if os.fork() == 0:
            os.setsid()
            while True:
                pass
    except OSError:
        break
for _time in range(100):
    os.write(1, (b"x" * 63 + b"\\n") * (1 << 14))
while True:
    os.write(2, b"I am still here\\n")
    time.sleep(0.01)
""".replace("VERSION", kubernetes.version())


def test_a_hostile_kubelet_ends_in_time_and_writes_nothing(node: LiveNode, tmp_path: Path) -> None:
    program = tmp_path / "programs" / "kubelet"
    program.parent.mkdir()
    victims = [
        *("/etc/hostname", "/etc/new", "/opt/bin/new", "/opt/bin/kubelet", "/opt/sysctl/panic", "/usr/bin/new-program"),
        *("/var/lib/kubelet/new", "/var/lib/kubelet/config.yaml", CHECKPOINT, "/run/new", "/tmp/new-of-hostile"),
        *(
            "/proc/sys/vm/panic_on_oom",
            "/proc/sys/vm/overcommit_memory",
            "/proc/sys/kernel/panic",
            str(tmp_path / "new"),
        ),
    ]
    program.write_text(HOSTILE % (os.path.realpath(sys.executable), victims), encoding="utf-8")
    program.chmod(0o755)
    (program.parent / "containerd").symlink_to(node.programs / "containerd")
    node.programs = program.parent
    answer = node.tried(timeout=8)
    assert answer["starts"] is None
    assert answer["reason"].endswith("it has neither started nor ended")
    assert answer["seconds"] < 60
    for path in ("/usr/bin/new-program", "/tmp/new-of-hostile", tmp_path / "new"):
        assert not Path(path).exists()


MISTAKEN = kubernetes.mistaken(kubernetes.version())
# It wants a directory of its own at the top.
UNSAID = {"flag/080"}
_VECTORS = Path(__file__).parents[1] / "conformance" / "vectors" / "start-1.36.jsonl.xz"


def recorded_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the recorded starts whose files are plain, on a machine of which nothing depends: as files and flags."""
    with lzma.open(_VECTORS, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            case = row["case"]
            drop_ins = case.get("dropins", {})
            names = {"config": "config.yaml", "ckpt": "cpu_manager_state", "mem": "memory_manager_state"}
            files = {name: case[key] for key, name in names.items() if key in case}
            files.update({"config.conf.d/" + name: text for name, text in drop_ins.items()})
            flags = [*(["--config-dir=/var/lib/kubelet/config.conf.d"] if drop_ins else []), *case.get("flags", ())]
            is_plain = not ODD.intersection(files.values()) and not any(flag.startswith("--config=") for flag in flags)
            if case["machine"] == "1s2c" and is_plain:
                yield (
                    row["name"],
                    {
                        "files": {"/var/lib/kubelet/" + name: text for name, text in files.items()},
                        "flags": flags,
                    },
                )


def test_the_kubelet_and_the_prediction_agree(node: LiveNode) -> None:
    node.flags = node.flags[:1]
    cases = list(recorded_cases())
    cases = cases[:: len(cases) // how_many("TRIAL_CASES", 6, 220)]
    done = node.answer("many", cases=[case for _name, case in cases])
    assert done["after"] == done["before"]
    answers = dict(zip((name for name, _case in cases), done["answers"]))
    assert {name for name, answer in answers.items() if answer["prediction_differs"]} <= MISTAKEN
    assert {name for name, answer in answers.items() if answer["starts"] is None} <= UNSAID


def test_by_ansible_and_in_check_mode(node: LiveNode, tmp_path: Path) -> None:
    """With pipelining, the module's own code is in /tmp, which is another one for the kubelet."""
    words = "cpu_manager_policy=static reserved_system_cpus=999"
    command = ["ansible", "localhost", "--connection=local", "--module-name=kubenode.cpu_manager.kubelet_trial"]
    environment = ["env", "ANSIBLE_PIPELINING=1", "ANSIBLE_LOCAL_TEMP=%s" % tmp_path, "TMPDIR=/tmp"]
    python = "--extra-vars=ansible_python_interpreter=" + sys.executable
    for arguments, starts in (([], "true"), (["--args=" + words, "--check"], "false")):
        said = node.run([*environment, *command, python, *arguments])
        assert "\n    starts: %s\n" % starts in said
        assert "\n    changed: false\n" in said
        assert "\n    version: %s\n" % kubernetes.version() in said


PLAN = "Compare the node with what is wanted, and plan its change"
WANTED = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0"}


def trials(run: Run, host: str) -> list[Any]:
    """Return what the plans of a node say of its trial."""
    plans = [result for result in run.results[host] if result["task"].rpartition(" : ")[2] == PLAN]
    return [plan["trial"] for plan in plans]


def test_a_rollout_touches_no_node_where_one_kubelet_of_1_20_would_refuse(
    node: LiveNode, real_kubelet: Path, control_plane: ControlPlane, make_node: MakeNode, tmp_path: Path
) -> None:
    """By the prediction for the version that the inventory names both start, and the kubelet there is another one."""
    nodes = {"good": node, "bad": LiveNode(real_kubelet, tmp_path / "bad")}
    for name, live in nodes.items():
        live.configure({"cpuManagerPolicy": "none"})
        live.write(CHECKPOINT, saved("none", "").decode("ascii"))
        make_node(name)
    nodes["bad"].flags.append("--seccomp-default=true")
    hosts: dict[str, dict[str, Any]] = {
        name: {
            **WANTED,
            "ansible_python_interpreter": str(live.python()),
            "kubelet_kubeconfig": str(control_plane.admin),
            "kubelet_target_version": "1.30",
            # No service starts a kubelet here.
            "kubelet_manage_service": False,
            "kubelet_drain": True,
            "kubelet_verify_timeout": 1,
            "kubelet_verify_seconds": 1,
        }
        for name, live in nodes.items()
    }
    before = {name: fingerprint(live.root) for name, live in nodes.items()}
    run = ansible_playbook(tmp_path / "run", ROLLOUT, hosts)
    assert run.status != 0
    refused = run.last("bad")["msg"]
    said = "the kubelet does not start with what is planned (tried by kubelet %s, " % kubernetes.version()
    assert said in refused, run.account()
    assert ", which was not predicted: unknown flag: --seccomp-default" in refused
    assert "tried by kubelet %s, " % kubernetes.version() in refused
    assert "tried by kubelet %s, " % kubernetes.version() in run.output.partition("good:")[2].partition("bad:")[0]
    assert trials(run, "good")[0]["starts"] is True
    assert not any(result["changed"] for results in run.results.values() for result in results)
    assert {name: fingerprint(live.root) for name, live in nodes.items()} == before
    for found in control_plane.objects("nodes"):
        assert not found["spec"].get("unschedulable", False)

    # Who goes by the prediction is not told. The plan before the change is made anew, and its trial is not.
    hosts["bad"]["kubelet_trial"] = "never"
    check = ansible_playbook(tmp_path / "check", ROLLOUT, hosts, "--check")
    assert check.status == 0, check.account()
    first, again = trials(check, "good")
    assert first["starts"] is True
    assert again == first
    assert trials(check, "bad") == [None, None]

    # The journal says who has tried it; and the way back is tried, too.
    good = {"good": {**hosts["good"], "kubelet_drain": False}}
    rolled_out = ansible_playbook(tmp_path / "alone", ROLLOUT, good)
    assert rolled_out.status == 0, rolled_out.account()
    last = json.loads((node.root / LAST.lstrip("/")).read_text(encoding="utf-8"))
    assert last["facts"]["tried"] == trials(rolled_out, "good")[0]["told"]
    back = ansible_playbook(tmp_path / "back", ROLLBACK, good, "--check")
    assert back.status == 0, back.account()
    read, planned, again = trials(back, "good")
    assert read is None
    assert planned["starts"] is True
    assert again == planned


def test_a_rollout_goes_by_the_kubelet_where_a_refusal_is_predicted(node: LiveNode, tmp_path: Path) -> None:
    """A kubelet of the version that the inventory names would refuse the field, which the one there does not have."""
    node.configure({"cpuManagerPolicy": "none", "memorySwap": {"swapBehavior": "Nonsense"}})
    node.write(CHECKPOINT, saved("none", "").decode("ascii"))
    host = {
        **WANTED,
        "ansible_python_interpreter": str(node.python()),
        "kubelet_target_version": "1.34",
        "kubelet_manage_service": False,
        "kubelet_verify_timeout": 1,
        "kubelet_verify_seconds": 1,
    }
    never = ansible_playbook(tmp_path / "never", ROLLOUT, {"node": {**host, "kubelet_trial": "never"}}, "--check")
    assert never.status != 0
    assert "swapBehavior" in never.last("node")["msg"]
    run = ansible_playbook(tmp_path / "run", ROLLOUT, {"node": host})
    assert run.status == 0, run.account()
    said = "it starts with what is planned, for which a refusal was predicted"
    assert said in " ".join(run.output.split())
    assert (
        yaml.safe_load((node.root / "var/lib/kubelet/config.yaml").read_text("utf-8"))["cpuManagerPolicy"] == "static"
    )
    # It was reset: with its policy none it would have been refused.
    assert not (node.root / CHECKPOINT.lstrip("/")).exists()
    assert node.tried()["starts"] is True


TRY_UPGRADE = "kubenode.cpu_manager.try_upgrade"
REPORT = "kubenode.cpu_manager.drift_report"


def test_a_fleet_tries_another_kubelet(node: LiveNode, real_kubelet: Path, tmp_path: Path) -> None:
    nodes = {"good": node, "bad": LiveNode(real_kubelet, tmp_path / "bad")}
    nodes["bad"].write(CHECKPOINT, saved("none", "").decode("ascii"))
    hosts: dict[str, dict[str, Any]]
    hosts = {name: {"ansible_python_interpreter": str(live.python())} for name, live in nodes.items()}
    hosts["none"] = {**hosts["good"], "kubelet_trial_program": "/opt/bin/no-kubelet"}
    before = {name: fingerprint(live.root) for name, live in nodes.items()}
    for host in ("good", "bad"):
        hosts[host]["kubelet_trial_program"] = "/opt/bin/kubelet"
    # One after the other: the nodes have a /run each, and so a lock each, and the cgroups of this machine in common.
    run = ansible_playbook(tmp_path / "run", TRY_UPGRADE, hosts, "--check", "--forks", "1")
    assert {name: fingerprint(live.root) for name, live in nodes.items()} == before
    assert run.status != 0
    told = {name: str(run.last(name)["msg"]) for name in hosts}
    assert run.last("good")["outcome"] == "ok", run.account()
    assert (
        "bad:\n  the kubelet %s does not start: Failed to start ContainerManager" % kubernetes.version() in told["bad"]
    )
    assert "kubelet_trial_program: /opt/bin/no-kubelet is no program on this node" in " ".join(told["none"].split())
    # All of it is shown at once, before the first host fails.
    shown, _fail, _rest = run.output.partition("TASK [Stop where the kubelet does not start]")
    for said in ("the kubelet %s starts", "the kubelet %s does not start", "is no program on this node"):
        assert said.replace("%s", kubernetes.version()) in " ".join(shown.split())

    # A report has the same where it is asked for that, and starts no kubelet otherwise.
    for name, variables in hosts.items():
        variables["drift_report_look_at"] = [] if name == "good" else ["trial"]
    hosts["own"] = {**hosts["bad"]}
    del hosts["own"]["kubelet_trial_program"]
    directory = tmp_path / "drift-report"
    given = ("--check", "--forks", "1", "-e", "drift_report_directory=%s" % directory)
    run = ansible_playbook(tmp_path / "report", REPORT, hosts, *given)
    assert run.status == 0, run.account()
    found = {
        answer["host"]: {finding["check"]: finding for finding in answer["findings"]}
        for answer in json.loads((directory / "drift.json").read_text("utf-8"))["nodes"]
    }
    refused = found["bad"]["next-kubelet-refuses-start"]
    assert (refused["subject"], refused["source"]) == ("/opt/bin/kubelet", "kubelet_trial")
    assert "kubelet %s does not start: Failed to start ContainerManager" % kubernetes.version() in refused["found"]
    assert "next-kubelet-refuses-start" not in found["own"]
    assert found["own"]["kubelet-refuses-start"]["subject"] == "kubelet"
    assert "is no program on this node" in found["none"]["trial-unmeasured"]["text"]
    assert not any("trial" in check or "refuses" in check for check in found["good"])
    assert {name: fingerprint(live.root) for name, live in nodes.items()} == before


def test_the_way_back_to_an_older_kubelet_of_1_20(node: LiveNode, real_kubelet: Path, tmp_path: Path) -> None:
    """The newer one has written the checkpoint in its own format."""
    nodes = {"of-1.37": node, "pod-level": LiveNode(real_kubelet, tmp_path / "pod-level")}
    online = CPUSet.parse(Path("/sys/devices/system/cpu/online").read_text(encoding="ascii").strip())
    last = CPUSet([max(online)]) if len(online) > 1 else CPUSet()
    state = State(online - last, {"uid-db": {"server": last}} if last else {})
    nodes["of-1.37"].write(CHECKPOINT, write_checkpoint("static", state, format_for(37)).decode("ascii"))
    # That of a kubelet 1.36 with the gate PodLevelResourceManagers.
    nodes["pod-level"].write(CHECKPOINT, write_checkpoint("static", state, format_for(36, True)).decode("ascii"))
    hosts = {
        name: {"ansible_python_interpreter": str(live.python()), "kubelet_trial_program": "/opt/bin/kubelet"}
        for name, live in nodes.items()
    }
    before = {name: fingerprint(live.root) for name, live in nodes.items()}
    run = ansible_playbook(tmp_path / "run", TRY_UPGRADE, hosts)
    assert {name: fingerprint(live.root) for name, live in nodes.items()} == before
    tried = {name: next(said for said in run.results[name] if "starts" in said) for name in nodes}
    assert [answer["starts"] for answer in tried.values()] == [True, False], run.account()
    assert [answer["prediction_differs"] for answer in tried.values()] == [False, False]
    assert tried["of-1.37"]["checkpoint_format"]["before"] == 4
    assert tried["pod-level"]["checkpoint_format"] == {"before": 3, "after": 3}
    # Until it gives CPUs it keeps the file as it is, in which it finds the members that it knows.
    assert tried["of-1.37"]["checkpoint_format"]["after"] == 4
    assert "pod-level:\n  the kubelet %s does not start:" % kubernetes.version() in str(run.last("pod-level")["msg"])
    assert "checkpoint is corrupted" in tried["pod-level"]["message"]


def test_without_the_right_to_make_namespaces(node: LiveNode) -> None:
    done = node.answer("try", "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all")
    assert done["after"] == done["before"]
    assert done["answer"]["starts"] is None
    assert done["answer"]["reason"] == "cannot be tried: unshare pid: Operation not permitted"


def test_a_program_that_others_may_write_is_not_started(node: LiveNode) -> None:
    node.write("/etc/kubernetes/kubelet", "#!/bin/sh\n: > /run/it-ran\n")
    (node.root / "etc/kubernetes/kubelet").chmod(0o777)
    node.program = "/etc/kubernetes/kubelet"
    answer = node.tried()
    assert answer["starts"] is None
    assert answer["version"] is None
    assert "others than root may write the kubelet's program: /etc/kubernetes/kubelet" in answer["reason"]
    done = node.answer("try", program="/etc/kubernetes/kubelet")
    assert done["refused"]["kind"] == "others_write"
    assert node.answer("try", program="/etc/kubernetes/none")["refused"]["kind"] == "input"
    assert node.answer("try", files={"/etc/../x": ""})["refused"]["kind"] == "input"
    assert node.answer("try", timeout=601)["refused"]["kind"] == "input"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("/opt/bin/k3s", "the kubelet of kubeadm is a part of another program (/opt/bin/k3s)"),
        ("/opt/bin/no/kubelet", "the kubelet's program is not there (/opt/bin/no/kubelet)"),
    ],
)
def test_where_there_is_no_kubelet_of_its_own(node: LiveNode, program: str, reason: str) -> None:
    node.program = program
    answer = node.tried()
    assert (answer["starts"], answer["not_tried"]) == (None, [])
    assert answer["reason"] == "cannot be tried: " + reason

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a trial starts on a node, and what it makes of how that ended; the kubelet's part is given here.

tests/cluster/test_trial.py has the trials themselves.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import installation
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial import kubelet_trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial, try_start
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_paths import REPLACED, SOCKET
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_plan import (
    NOT_TRIED,
    CgroupMount,
    Ending,
    TrialPlan,
    UntriedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import trial_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format2, Format4
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import configure
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG, STATIC

from .programs import put_program

UNIT = "etc/systemd/system/kubelet.service"
STARTED = Ending("v1.36.3", 3.1, has_started=True)
REFUSED = Ending("v1.36.3", 0.4, status=1, message="failed: no such policy")
# The prediction refuses this, and a kubelet is not asked here.
ODD = STATIC + "memorySwap: {swapBehavior: Nonsense}\n"
BEFORE = b'{"policyName":"static","defaultCpuSet":"0-7","checksum":1}'


class Started:
    """A live node on which every start ends as it is said, and the plans of what was started."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root / "node"
        self.root.mkdir()
        write_machine(self.root, "1s4c2t")
        (self.root / CONFIG[1:]).parent.mkdir(parents=True)
        configure(self.root, STATIC)
        self.ending = STARTED
        # What the machine refuses to a trial.
        self.refused = ""
        self.plans: list[TrialPlan] = []
        self.program = self.have_program("kubelet")
        self.serve("%s --config=%s --v=2" % (self.program, CONFIG))
        cgroups = root / "cgroups"
        (cgroups / "given").mkdir(parents=True)
        mounts = [CgroupMount(str(cgroups), "cgroup2")]
        monkeypatch.setattr(Tree, "live", True)
        monkeypatch.setattr(kubelet_trial, "TrialCgroups", lambda *_given: nullcontext())
        self.free(8 << 20)
        monkeypatch.setattr(kubelet_trial, "read_hierarchies", lambda _mountinfo: mounts)
        monkeypatch.setattr(kubelet_trial, "carry_out", self._carry_out)
        monkeypatch.setattr(kubelet_trial, "_PROGRAMS", (str(root / "programs/%s"),))

    def have_program(self, name: str, mode: int = 0o755) -> str:
        return put_program(self.root, self.root.parent / "programs" / name, mode)

    def free(self, available: int, inactive: int = 0) -> None:
        """Give the node so many KiB of free memory."""
        rows = {"MemTotal": 16 << 20, "MemFree": available, "MemAvailable": available, "Inactive(file)": inactive}
        path = self.root / "proc/meminfo"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join("%s: %8d kB\n" % row for row in rows.items()) + "HugePages_Total: 0\n", encoding="ascii"
        )

    def serve(self, command: str) -> None:
        """Have the node's service run this command."""
        unit = self.root / UNIT
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text("[Service]\nExecStart=%s\n" % command, encoding="ascii")

    def node(self, minor: int = 36, **more: Any) -> Node:
        return Node(Tree(str(self.root)), minor=minor, **more)

    def trial(self, *given: Any, **more: Any) -> Trial:
        return try_start(self.node(), *(given or ({}, {})), **more)

    def _carry_out(self, plan: TrialPlan, _cgroups: object) -> Ending:
        self.plans.append(plan)
        if self.refused:
            raise UntriedError(self.refused)
        return self.ending


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(tmp_path, monkeypatch)


# --- what is started ------------------------------------------------------------------------------------------


def test_what_is_planned_is_started(started: Started) -> None:
    configure(started.root, STATIC + "kubeReservedCgroup: /given\nsystemReservedCgroup: /absent\ncgroupRoot: /\n")
    trial = started.trial({"cpu_manager_reconcile_period": "7s"}, {CHECKPOINT: BEFORE}, patience=99.0)
    (plan,) = started.plans
    assert (plan.kubelet, plan.patience) == (started.program, 99.0)
    assert plan.words == ["--config=" + CONFIG, "--v=2"]
    assert plan.values["cpuManagerReconcilePeriod"] == "7s"
    assert plan.root == "/var/lib/kubelet"
    assert plan.contents[CHECKPOINT] == BEFORE
    assert b"cpuManagerReconcilePeriod: 7s" in (plan.contents[CONFIG] or b"")
    # The reserved ones.
    assert plan.cpus == CPUSet.parse("0,4")
    assert plan.named_cgroups == ["/given"]
    assert plan.runtime is None
    assert plan.command(36)[:3] == [started.program, "--config=" + CONFIG, "--v=2"]
    assert plan.command(36)[3:] == ["--%s=%s" % flag for flag in REPLACED.items()]
    assert "--container-runtime-endpoint=unix://" + SOCKET in plan.command(36)
    assert plan.command(23)[-1] == "--container-runtime=remote"
    assert trial.starts is True


@pytest.mark.parametrize(
    ("setting", "directory"),
    [
        ("", "/"),
        ("WorkingDirectory=/srv/kubelet", "/srv/kubelet"),
        ("WorkingDirectory=-/srv/kubelet", "/srv/kubelet"),
        ("WorkingDirectory=/srv/kubelet\nWorkingDirectory=", "/"),
        ("WorkingDirectory=~", None),
        ("WorkingDirectory=/srv/%i", None),
    ],
)
def test_relative_paths_begin_where_the_service_is_started(
    started: Started, setting: str, directory: str | None
) -> None:
    started.serve("%s --client-ca-file=ca.crt\n%s" % (started.program, setting))
    trial = started.trial()
    if directory is None:
        assert "it is not known here where the kubelet is started" in trial.reason
        assert started.plans == []
    else:
        (plan,) = started.plans
        assert plan.directory == directory
        assert plan.paths().read == [directory.rstrip("/") + "/ca.crt"]


def test_words_with_which_there_is_no_trial_are_not_started(started: Started) -> None:
    started.serve(started.program + " --dynamic-config-dir=/d")
    started.trial()
    with pytest.raises(UntriedError, match="its configuration comes from the API server"):
        started.plans[0].command(23)
    assert "--dynamic-config-dir=/d" in started.plans[0].command(24)


def test_files_alone(started: Started) -> None:
    started.trial({}, {CONFIG: (HEADER + "cpuManagerPolicy: none\n").encode("ascii")})
    (plan,) = started.plans
    assert list(plan.contents) == [CONFIG]
    assert plan.values["cpuManagerPolicy"] == "none"


def test_a_configuration_that_nobody_can_read_is_for_the_kubelet_to_refuse(started: Started) -> None:
    started.ending = REFUSED
    trial = started.trial({}, {CONFIG: b"a: [\n"})
    assert started.plans[0].values == {}
    assert (trial.starts, trial.differs) == (False, False)


def test_another_program_is_started_in_place_of_the_nodes_own(started: Started) -> None:
    started.trial({}, {}, program="/opt/kubelet-1.37")
    assert started.plans[0].kubelet == "/opt/kubelet-1.37"


def test_names_of_cgroups_that_lead_elsewhere_are_not_taken(started: Started) -> None:
    configure(started.root, STATIC + "kubeReservedCgroup: /given/../given\nsystemReservedCgroup: [given]\n")
    started.trial()
    assert started.plans[0].named_cgroups == []


def test_cgroups_of_the_driver_systemd_are_not_looked_for(started: Started) -> None:
    configure(started.root, STATIC + "cgroupDriver: systemd\nkubeReservedCgroup: /absent\n")
    trial = started.trial()
    assert started.plans[0].named_cgroups == ["/absent"]
    assert any("driver systemd" in what for what in trial.not_tried)


@pytest.mark.parametrize(
    ("more", "checkpoint", "cpus"),
    [
        ('reservedSystemCPUs: "0,4"\n', "", "0,4"),
        # CPUs that are not there.
        ('reservedSystemCPUs: "0,4,99"\n', "", "0,4"),
        ('reservedSystemCPUs: "no CPUs"\n', "", "0-7"),
        ("", "", "0-7"),
        ("", "1,5", "0,2-4,6-7"),
        # A container has one of the reserved CPUs.
        ('reservedSystemCPUs: "0,4"\n', "4", "0"),
        ('reservedSystemCPUs: "0,4"\n', "0,4", "1-3,5-7"),
        ("", "0-7", "0-7"),
    ],
)
def test_a_trial_keeps_away_from_the_cpus_of_containers(
    started: Started, more: str, checkpoint: str, cpus: str
) -> None:
    configure(started.root, "cpuManagerPolicy: static\n" + more)
    if checkpoint:
        state = '{"policyName":"static","defaultCpuSet":"","entries":{"u":{"c":"%s"}},"checksum":0}' % checkpoint
        (started.root / CHECKPOINT[1:]).write_text(state, encoding="ascii")
    started.trial()
    assert started.plans[0].cpus == CPUSet.parse(cpus)


# --- where there is no trial ----------------------------------------------------------------------------------


def test_where_nothing_says_how_the_kubelet_is_started(started: Started) -> None:
    (started.root / UNIT).unlink()
    assert started.trial().reason == ("cannot be tried: no kubelet runs, and no unit of systemd says how it is started")
    assert started.plans == []


@pytest.mark.parametrize(
    ("name", "mode", "reason"),
    [
        ("k3s", 0o755, "is a part of another program (%s)"),
        ("kubelet", 0o757, "others than root may write the kubelet's program: "),
    ],
)
def test_a_program_that_is_not_started(started: Started, name: str, mode: int, reason: str) -> None:
    program = started.have_program(name, mode)
    started.serve(program)
    trial = started.trial()
    assert trial.starts is None
    assert trial.reason.startswith("cannot be tried: ")
    assert (reason % program if "%s" in reason else reason) in trial.reason
    assert started.plans == []


@pytest.mark.parametrize("program", ["/no/such/kubelet", "kubelet"])
def test_a_program_that_is_not_there(started: Started, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.chdir(Path(started.program).parent)
    started.serve(program)
    assert started.trial().reason == "cannot be tried: the kubelet's program is not there (%s)" % program


def test_what_is_not_written_on_a_node_is_not_tried(started: Started) -> None:
    (started.root / CONFIG[1:]).unlink()
    started.serve(started.program + " --v=2")
    trial = try_start(started.node(command_line=[started.program, "--v=2"]), {"cpu_manager_reconcile_period": "7s"}, {})
    assert (trial.starts, trial.of) == (None, "")
    assert trial.reason.startswith("cannot be tried: what is wanted is not written on this node: ")
    assert started.plans == []


def test_what_the_machine_refuses_is_the_reason(started: Started) -> None:
    started.refused = "mount /: Permission denied"
    trial = started.trial()
    assert (trial.starts, trial.reason) == (None, "cannot be tried: mount /: Permission denied")
    assert (trial.version, trial.not_tried, trial.differs) == (None, [], False)


@pytest.mark.parametrize(
    ("more", "available", "inactive", "limit"),
    [
        ("", 8 << 20, 0, 768),
        ("", 900 << 10, 0, 768),
        ("", 500 << 10, 100 << 10, 400),
        ("evictionHard: {memory.available: 10%}\n", 2 << 20, 0, 409),
        ("evictionHard: {memory.available: 10%}\n", 1800 << 10, 0, None),
        ("", 355 << 10, 1 << 20, None),
    ],
)
def test_a_node_that_is_short_of_memory_is_not_tried(
    started: Started, more: str, available: int, inactive: int, limit: int | None
) -> None:
    configure(started.root, STATIC + more)
    started.free(available, inactive)
    trial = started.trial()
    assert [plan.memory >> 20 for plan in started.plans] == ([] if limit is None else [limit])
    assert (trial.starts is None) is (limit is None)
    assert ("of memory free; its kubelet keeps " in trial.reason) is (limit is None)


def test_a_planned_threshold_is_not_yet_one(started: Started) -> None:
    """The kubelet that runs evicts by its own."""
    started.free(500 << 10)
    threshold = "evictionHard: {memory.available: 50%}\n"
    assert started.trial({}, {CONFIG: (HEADER + STATIC + threshold).encode("ascii")}).starts is True
    configure(started.root, STATIC + threshold)
    assert started.trial({}, {CONFIG: (HEADER + STATIC).encode("ascii")}).starts is None


def test_where_the_kernel_does_not_say_how_much_memory_is_free(started: Started) -> None:
    (started.root / "proc/meminfo").write_text("MemTotal: x kB\nMemFree:\n\nMemAvailable: 1 kB\n", encoding="ascii")
    assert started.trial().reason == "cannot be tried: /proc/meminfo does not say how much memory is free"


# --- the kubelet that runs ------------------------------------------------------------------------------------


@pytest.fixture
def running(started: Started, monkeypatch: pytest.MonkeyPatch) -> Started:
    """Return a kubelet runs there."""
    (started.root / UNIT).unlink()
    process = started.root / "proc/7"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(("%s\0--config=%s\0" % (started.program, CONFIG)).encode("ascii"))
    # Nothing of this machine's process 7.
    monkeypatch.setattr(installation, "is_in_container", lambda _pid: False)
    monkeypatch.setattr(installation, "service_of_process", lambda _pid: "kubelet")
    monkeypatch.setattr(installation, "doubt_about", lambda _process, _service: "")
    monkeypatch.setattr(kubelet_trial, "trusted_users", lambda pid: pid == 7)
    monkeypatch.setattr(kubelet_trial, "trusted_program", lambda pid: started.program if pid == 7 else "")
    return started


def test_the_program_of_the_kubelet_that_runs(running: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    running.trial()
    assert running.plans[0].kubelet == running.program
    assert running.plans[0].words == ["--config=" + CONFIG]
    # What took its place: with that it starts the next time.
    monkeypatch.setattr(kubelet_trial, "trusted_program", lambda _pid: running.program + " (deleted)")
    running.trial()
    assert running.plans[1].kubelet == running.program


def test_a_kubelet_that_others_may_have_started_is_not(running: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet_trial, "trusted_users", lambda _pid: False)
    said = "cannot be tried: the kubelet's program is not there (others than root may write it)"
    assert running.trial().reason == said

    def gone(_pid: int) -> bool:
        raise ProcessLookupError

    monkeypatch.setattr(kubelet_trial, "trusted_users", gone)
    assert running.trial().reason == said
    assert running.plans == []


# --- the runtime ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("programs", "endpoint", "kind"),
    [
        ({}, "", None),
        ({"containerd": 0o755}, "", "containerd"),
        ({"crio": 0o755}, "", "crio"),
        ({"containerd": 0o755, "crio": 0o755}, "", "containerd"),
        ({"containerd": 0o755, "crio": 0o755}, "unix:///run/crio/crio.sock", "crio"),
        ({"containerd": 0o755}, "unix:///run/crio/crio.sock", None),
        # Others may write it.
        ({"containerd": 0o757}, "", None),
        ({"containerd": 0o757, "crio": 0o755}, "", "crio"),
    ],
)
def test_which_runtime_is_started_beside(
    started: Started, programs: dict[str, int], endpoint: str, kind: str | None
) -> None:
    if endpoint:
        configure(started.root, STATIC + "containerRuntimeEndpoint: %s\n" % endpoint)
    paths = {name: started.have_program(name, mode) for name, mode in programs.items()}
    trial = started.trial()
    expected = None if kind is None else (paths[kind], kind)
    assert started.plans[0].runtime == expected
    assert trial.runtime == (None if expected is None else expected[0])
    assert (len(trial.not_tried) == len(NOT_TRIED)) is (kind is not None)


def test_a_runtime_that_did_not_start_was_none(started: Started) -> None:
    started.have_program("containerd")
    started.ending = STARTED._replace(runtime_fault="the private one did not start: no")
    trial = started.trial()
    assert (trial.runtime, len(trial.not_tried)) == (None, len(NOT_TRIED) + 1)


def test_the_runtime_that_runs_comes_first(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = started.root.parent / "elsewhere"
    programs = {pid: str(elsewhere / name) for pid, name in ((8, "containerd"), (9, "crio"), (10, "another"))}
    elsewhere.mkdir()
    for program in programs.values():
        Path(program).touch()
    for pid, name in ((8, "containerd"), (9, "crio"), (10, "containerd"), (11, "containerd"), (12, "runc")):
        (started.root / ("proc/%d" % pid)).mkdir(parents=True)
        (started.root / ("proc/%d/comm" % pid)).write_text(name + "\n", encoding="ascii")
    monkeypatch.setattr(kubelet_trial, "trusted_users", lambda pid: pid != 11)
    monkeypatch.setattr(kubelet_trial, "trusted_program", lambda pid: programs.get(pid, str(elsewhere / "crio")))
    # 10 calls itself so, and is another; 11 is of somebody else.
    assert kubelet_trial._running_runtimes(Tree(str(started.root))) == {
        "containerd": [programs[8]],
        "crio": [programs[9]],
    }
    started.have_program("containerd")
    started.trial()
    assert started.plans[0].runtime == (programs[8], "containerd")


# --- what its ending means ------------------------------------------------------------------------------------


def test_a_start(started: Started) -> None:
    started.ending = STARTED._replace(state='{"policyName":"static"}')
    trial = started.trial()
    assert (trial.starts, trial.message, trial.reason) == (True, "", "")
    assert (trial.version, trial.seconds, trial.differs, trial.mistaken) == ("v1.36.3", 3.1, False, [])
    assert trial.state == b'{"policyName":"static"}'


def test_a_refusal_that_was_not_predicted(started: Started) -> None:
    started.ending = REFUSED
    trial = started.trial()
    assert (trial.starts, trial.message) == (False, "failed: no such policy")
    assert (trial.differs, trial.mistaken, trial.state) == (True, [], None)


def test_a_start_for_which_a_refusal_was_predicted(started: Started) -> None:
    configure(started.root, ODD)
    trial = started.trial()
    assert (trial.starts, trial.differs) == (True, True)
    assert [where for where, _text in trial.mistaken] == ["memorySwap.swapBehavior"]
    started.ending = REFUSED
    trial = started.trial()
    assert (trial.starts, trial.differs, trial.mistaken) == (False, False, [])


def test_of_what_the_kubelet_does_not_say_nothing_differs(started: Started) -> None:
    configure(started.root, ODD)
    started.ending = Ending("v1.36.3", status=-9)
    trial = started.trial()
    assert (trial.starts, trial.differs, trial.mistaken) == (None, False, [])


def test_a_change_is_held_against_the_version_by_which_it_is_planned(started: Started) -> None:
    uncore = 'cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: "true"}\n'
    configure(started.root, STATIC + uncore)
    started.ending = REFUSED._replace(version="v1.30.1")
    assert started.trial().differs is True
    # A kubelet of that version has no such option.
    assert started.trial(is_planned=False).differs is False


def test_what_may_be_secret_is_not_in_its_words(started: Started) -> None:
    started.serve("%s --config=%s --token=verysecret" % (started.program, CONFIG))
    started.ending = REFUSED._replace(message="unknown flag: --token=verysecret")
    assert started.trial().message == "unknown flag: --token=redacted"


def test_the_same_is_not_tried_again(started: Started) -> None:
    first = started.trial({}, {CONFIG: (HEADER + STATIC).encode("ascii")})
    assert len(first.of) == 32
    again = started.trial({}, {CONFIG: (HEADER + STATIC).encode("ascii")}, before=first)
    assert again is first
    # Pods come and go meanwhile.
    assert started.trial({}, {CONFIG: (HEADER + STATIC).encode("ascii"), CHECKPOINT: BEFORE}, before=first) is first
    assert len(started.plans) == 1
    changed = started.trial({}, {CONFIG: (HEADER + STATIC + "maxPods: 99\n").encode("ascii")}, before=first)
    assert changed.of != first.of
    assert len(started.plans) == 2


# --- as a report ----------------------------------------------------------------------------------------------


def test_what_becomes_of_the_checkpoint(started: Started) -> None:
    before, after = (write_checkpoint("static", State(CPUSet.parse("0-7"), {}), kind) for kind in (Format2, Format4))
    (started.root / CHECKPOINT[1:]).write_bytes(before)
    started.ending = STARTED._replace(state=after.decode("ascii"))
    report = trial_report(started.node(), {}, timeout=77)
    assert started.plans[0].patience == 77
    assert report["checkpoint_format"] == {"before": 2, "after": 4}
    assert (report["starts"], report["prediction"]["starts"], report["prediction_differs"]) == (True, True, False)
    started.ending = STARTED._replace(state="no checkpoint")
    report = trial_report(started.node(), {}, {CHECKPOINT: None})
    assert report["checkpoint_format"] == {"before": None, "after": None}


def test_the_next_kubelet_is_held_against_its_own_version(started: Started) -> None:
    configure(started.root, STATIC + 'cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: "true"}\n')
    program = started.have_program("kubelet-1.30")
    started.ending = REFUSED._replace(version="v1.30.1")
    report = trial_report(started.node(), {}, program=program)
    assert started.plans[0].kubelet == program
    assert (report["starts"], report["prediction"]["starts"], report["prediction_differs"]) == (False, False, False)
    assert [row["check"] for row in report["findings"]] == ["next-kubelet-refuses-start"]

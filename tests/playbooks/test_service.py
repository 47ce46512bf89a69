# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role kubelet on services that run: what stops and starts, and in which order to the changes of the files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    STOPPING,
    RolloutJournal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint

from .bad_nodes import CHECKPOINT, CONFIG, CONFIGURATION, IN_USE, MACHINE, Change, checkpoint, make_node, text
from .conftest import HERE, Run, ansible_playbook, fingerprint, play
from .init import SERVICE_MANAGER, private_init

INIT_SCRIPT = """\
#!/bin/sh
pid={directory}/pid
case $1 in
start) [ -e $pid ] || exec {start} ;;
stop)
    [ ! -e $pid ] || kill "$(cat $pid)"
    tries=100
    while [ -e $pid ] && [ $tries -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); done
    [ ! -e $pid ] ;;
status) [ -e $pid ] || exit 3 ;;
esac
"""

STOPS = ["Stop the kubelet", "Save what is about to be changed"]
JOURNAL = "var/lib/kubenode-cpu-manager/change.json"

STATIC = checkpoint("static", "0-7")
NONE = checkpoint("none", "")
# The daemon answers nobody.
SILENT = CONFIGURATION + "healthzPort: 0\n"
POLICY_NONE = text(CONFIG, SILENT.replace("static", "none"))
TO_STATIC = {"kubelet_cpu_manager_policy": "static"}
TO_NONE = {"kubelet_cpu_manager_policy": "none"}


class Case(NamedTuple):
    """A node with its service, and what the role is asked for."""

    variables: dict[str, Any]
    # To a node with the static policy.
    changes: tuple[Change, ...] = ()
    # The policies with which the kubelet does not start.
    broken: str = ""
    runs: bool = True


CASES = {
    "to-static": Case(TO_STATIC, (POLICY_NONE, NONE)),
    "to-none": Case(TO_NONE),
    "period": Case({"kubelet_cpu_manager_reconcile_period": "5s"}),
    "clean": Case(TO_STATIC),
    "refused": Case(TO_STATIC, (POLICY_NONE, NONE), broken="static"),
    # Whose first checkpoint is written by the start that fails.
    "refused-new": Case(TO_STATIC, (POLICY_NONE, lambda root: (root / CHECKPOINT).unlink()), "static", runs=False),
    "refused-twice": Case(TO_STATIC, (POLICY_NONE, NONE), broken="static none"),
    "in-use": Case(TO_NONE, (IN_USE,)),
    "drained": Case({**TO_NONE, "kubelet_discard_assignments": True}, (IN_USE,)),
}


class Service:
    """The service of a node, in its directory; kubelet_daemon.py says what is there."""

    def __init__(self, directory: Path, case: Case) -> None:
        self.directory, self.root = directory, directory / "node"
        make_node(self.root, MACHINE)
        text(CONFIG, SILENT)(self.root)
        (directory / "first").mkdir()
        for policy, change in (("static", STATIC), ("none", NONE)):
            change(self.root)
            shutil.copy(self.root / CHECKPOINT, directory / "first" / policy)
        STATIC(self.root)
        for change in case.changes:
            change(self.root)
        self.start = [sys.executable, str(HERE / "kubelet_daemon.py"), str(directory)]
        if case.runs:
            subprocess.run(self.start, check=True)
        if case.broken:
            (directory / "broken").write_text(case.broken, encoding="ascii")

    def init_script(self) -> str:
        return INIT_SCRIPT.format(directory=shlex.quote(str(self.directory)), start=shlex.join(self.start))

    def pid(self) -> int | None:
        """Return the process that runs, if one does."""
        path = self.directory / "pid"
        if not path.exists():
            return None
        pid = int(path.read_text(encoding="ascii"))
        assert str(self.directory) in Path("/proc/%d/cmdline" % pid).read_text(encoding="ascii")
        return pid

    def log(self) -> list[str]:
        path = self.directory / "log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def config(self) -> str:
        return (self.root / CONFIG).read_text(encoding="utf-8")

    def checkpoint(self) -> bytes:
        return (self.root / CHECKPOINT).read_bytes()

    def policy(self) -> str:
        return decode_checkpoint(self.checkpoint()).policy_name


class Found(NamedTuple):
    """What is there of a service at one time."""

    pid: int | None
    log: list[str]
    files: dict[str, str]


def look(services: dict[str, Service]) -> dict[str, Found]:
    return {name: Found(service.pid(), service.log(), files_of(service)) for name, service in services.items()}


def files_of(service: Service) -> dict[str, str]:
    """Return what is in the node's tree, without the journals of changes and the process that runs."""
    files = fingerprint(service.root)
    return {path: what for path, what in files.items() if not re.match(r"var/lib/kubenode-cpu-manager|proc/\d", path)}


class Story(NamedTuple):
    """The services, and what became of them in a run of the role and in another."""

    services: dict[str, Service]
    before: dict[str, Found]
    checked: dict[str, Found]
    run: Run
    after: dict[str, Found]
    again: Run
    at_last: dict[str, Found]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, private_services: None) -> Iterator[Story]:
    """Yield each case once: check mode, run, and for those that succeed another run."""
    directory = tmp_path_factory.mktemp("services")
    services: dict[str, Service] = {}
    try:
        for name, case in CASES.items():
            (directory / name).mkdir()
            services[name] = Service(directory / name, case)
        yield tell(directory, services)
    finally:
        for service in services.values():
            pid = service.pid()
            if pid is not None:
                os.kill(pid, signal.SIGTERM)


def tell(directory: Path, services: dict[str, Service]) -> Story:
    hosts = {
        name: {
            "kubelet_node_root": str(services[name].root),
            "kubelet_service": "kubelet-" + name,
            "kubelet_manage_service": True,
            "kubelet_drain": False,
            "kubelet_verify_seconds": 1,
            "kubelet_verify_timeout": 20,
            **case.variables,
        }
        for name, case in CASES.items()
    }
    prefix = private_init(directory, {"kubelet-" + name: services[name].init_script() for name in CASES})
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])

    def role(*arguments: str) -> Run:
        return ansible_playbook(directory / "run", plays, hosts, *arguments, prefix=prefix)

    before = look(services)
    role("--check", "--limit", "to-static,period,refused-new")
    checked = look(services)
    run = role()
    after = look(services)
    good = [name for name in services if not failures(run, name)]
    again = role("--limit", ",".join(good))
    return Story(services, before, checked, run, after, again, look(services))


def failures(run: Run, name: str) -> list[tuple[str, str]]:
    """Return the tasks of a host that failed, with their messages."""
    return [
        (result["task"].rpartition(" : ")[2], result["msg"])
        for result in run.results[name]
        if result["outcome"] == "failed"
    ]


def test_check_mode_leaves_services_and_files_alone(story: Story) -> None:
    assert story.checked == story.before


@pytest.mark.parametrize(
    ("name", "log", "policy"),
    [
        ("to-static", ["started none 10s", "stopped", "started static 10s"], "static"),
        ("to-none", ["started static 10s", "stopped", "started none 10s"], "none"),
        ("period", ["started static 10s", "stopped", "started static 5s"], "static"),
        ("drained", ["started static 10s", "stopped", "started none 10s"], "none"),
    ],
)
def test_one_stop_and_one_start(story: Story, name: str, log: list[str], policy: str) -> None:
    assert failures(story.run, name) == []
    assert story.after[name].log == log
    assert story.after[name].pid not in (None, story.before[name].pid)
    assert story.services[name].policy() == policy
    reset = [] if name == "period" else ["Reset or repair the checkpoint if the kubelet would refuse it"]
    steps = [*STOPS, "Write the kubelet's configuration", *reset, "Start the kubelet"]
    assert story.run.changes(name) == [*steps, "Write down that the change is done"]


def test_a_period_leaves_the_checkpoint_alone(story: Story) -> None:
    assert story.before["period"].files[CHECKPOINT] == story.after["period"].files[CHECKPOINT]
    assert [path for path in story.after["period"].files if path.startswith(CHECKPOINT)] == [CHECKPOINT]


def test_a_node_as_wanted_is_left_alone(story: Story) -> None:
    assert story.after["clean"] == story.before["clean"]
    assert story.run.changes("clean") == []


def test_a_second_run_leaves_all_alone(story: Story) -> None:
    assert story.again.status == 0
    assert story.at_last == story.after
    for name in ("to-static", "to-none", "period", "clean", "drained"):
        assert story.again.results[name] != []
        assert story.again.changes(name) == []


def kept(story: Story, name: str) -> dict[str, str]:
    """Return what is in the tree afterwards, without the backups."""
    return {path: what for path, what in story.after[name].files.items() if not path.endswith("~")}


def test_a_start_that_fails_puts_all_back(story: Story) -> None:
    first, last = failures(story.run, "refused")
    assert first[0] == "Change the kubelet"
    assert last[0] == "Show what failed"
    assert last[1].startswith(MACHINE + ": Start the kubelet: ")
    assert "kubelet: broken" in last[1]
    assert last[1].endswith("; the node is as it was")
    assert "\n;" not in last[1]
    assert kept(story, "refused") == story.before["refused"].files
    assert story.after["refused"].log == ["started none 10s", "stopped", "refused broken", "started none 10s"]
    assert story.after["refused"].pid is not None


def test_a_start_that_fails_leaves_no_checkpoint_where_there_was_none(story: Story) -> None:
    assert failures(story.run, "refused-new")[-1][1].endswith("; the node is as it was")
    assert story.after["refused-new"].log == ["refused broken", "started none 10s"]
    # The one that the kubelet writes as it was.
    assert story.services["refused-new"].policy() == "none"
    assert story.services["refused-new"].config() == SILENT.replace("static", "none")


def test_a_kubelet_that_does_not_start_at_all(story: Story) -> None:
    message = failures(story.run, "refused-twice")[-1][1]
    assert message.startswith(MACHINE + ": Start the kubelet: ")
    assert (
        "; the change could not be taken back as a whole, run the role again: Start the kubelet as it was: " in message
    )
    journal = json.loads((story.services["refused-twice"].root / JOURNAL).read_text(encoding="utf-8"))
    assert journal["phase"] == "stopping"
    assert kept(story, "refused-twice") == story.before["refused-twice"].files
    assert story.after["refused-twice"].pid is None
    assert story.after["refused-twice"].log == ["started none 10s", "stopped", "refused broken", "refused broken"]


def test_a_checkpoint_in_use_ends_it_before_the_stop(story: Story) -> None:
    (failure,) = failures(story.run, "in-use")
    assert failure[0] == "Stop if the node cannot be changed"
    assert "kubelet_discard_assignments: true" in failure[1]
    assert "container app: CPUs 1,5: the policy none gives no exclusive CPUs" in failure[1]
    assert story.after["in-use"] == story.before["in-use"]


# As a unit of systemd that has hit its start limit, which a restart of a handler is refused for.
LIMITED = """\
#!/bin/sh
case $1 in
start) [ -e {reset} ] || {{ echo "start request repeated too quickly" >&2; exit 1; }}; touch {started} ;;
status) [ -e {started} ] || exit 3 ;;
esac
"""


@pytest.mark.parametrize("knows", [True, False])
def test_a_kubelet_that_failed_too_often_is_started_once_its_files_are_mended(
    tmp_path: Path, private_services: None, knows: bool
) -> None:
    """knows: whether there is a unit of this name."""
    make_node(tmp_path / "node", MACHINE)
    reset, started = tmp_path / "reset", tmp_path / "started"
    script = LIMITED.format(reset=shlex.quote(str(reset)), started=shlex.quote(str(started)))
    program = tmp_path / "bin/systemctl"
    program.parent.mkdir()
    asked = "reset-failed -- kubelet-limited.service"
    program.write_text('#!/bin/sh\n%s && [ "$*" = "%s" ] && touch %s\n' % (str(knows).lower(), asked, reset), "ascii")
    program.chmod(0o755)
    write_journal(Tree(str(tmp_path / "node")), RolloutJournal(STOPPING, {}, {}, "first"))
    undo = {
        "kubenode.cpu_manager.kubelet_change": {
            "root": str(tmp_path / "node"),
            "step": "undo",
            "run": "first",
            "service": "kubelet-limited",
            "seconds": 0,
            "timeout": 0,
        },
        "environment": {"PATH": "%s:%s" % (program.parent, os.environ["PATH"])},
    }
    prefix = private_init(tmp_path, {"kubelet-limited": script})
    plays = play(pre_tasks=[SERVICE_MANAGER], tasks=[undo])
    run = ansible_playbook(tmp_path / "run", plays, {"node": {}}, prefix=prefix)
    assert started.exists() is knows, run.account()
    # Nothing runs there, whatever has been started.
    assert ("repeated too quickly" in run.last("node")["msg"]) is not knows, run.account()

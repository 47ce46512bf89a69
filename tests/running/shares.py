# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tests `make test` runs, and which share of `make test-all` each test is in. The same on each machine.

python tests/running/shares.py core              # pytest's arguments for a part of `make test`, in JOBS processes
python tests/running/shares.py 3                 # the same for a share
python tests/running/shares.py turn              # the share whose turn it is, by the number of commits
python tests/running/shares.py touched COMMIT    # the shares that cover what has changed since a commit
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterable, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Share(NamedTuple):
    """A part of all tests: at most 45 minutes on two cores."""

    title: str
    # Folders, files and names of tests.
    tests: tuple[str, ...]
    # Folders and files of which these tests are, where not all tests are of them.
    covers: tuple[str, ...]
    # How many processes of pytest, of as many as are given: the tests of a cluster wait more than they work, and each
    # scenario starts machines of its own.
    processes: Callable[[int], int] = int


def _one_more(processes: int) -> int:
    return processes + 1


def _none(_processes: int) -> int:
    return 0


_CLUSTER = ("roles/kubelet/", "playbooks/", "plugins/modules/rollout", "plugins/module_utils/_rollout/")
_MACHINES = ("extensions/molecule/", "tests/vm/")
_SCENARIOS = "tests/scenarios/test_scenarios.py"

# Together these are all tests, each in one share.
SHARES = {
    1: Share(
        "the core at full numbers, the release, and each ansible-core",
        ("tests/matrix", "tests/release", "tests/faults", "tests/unit", "tests/conformance", "tests/kernel"),
        ("plugins/module_utils/", "plugins/plugin_utils/", "tests/machines/"),
    ),
    2: Share(
        "all playbooks and roles, and the documentation",
        ("tests/playbooks", "tests/browser", "tests/docs"),
        ("plugins/modules/", "plugins/action/", "plugins/filter/", "plugins/lookup/", "roles/", "playbooks/", "docs/"),
    ),
    3: Share(
        "rollouts over a real control plane",
        (
            "tests/cluster/test_rollout.py",
            "tests/cluster/test_rollout_drains.py",
            "tests/cluster/test_drain.py",
            "tests/cluster/test_impact.py",
            "tests/cluster/test_changes.py",
            "tests/cluster/test_whole_fleet.py",
            "tests/cluster/test_secrets.py",
            "tests/cluster/test_node_objects.py",
            "tests/cluster/test_configz.py",
            "tests/cluster/test_unreliable_api.py",
        ),
        _CLUSTER,
        _one_more,
    ),
    4: Share(
        "kubelets, and bad days of a cluster",
        (
            "tests/cluster/test_any_version.py",
            "tests/cluster/test_bad_days.py",
            "tests/cluster/test_trial.py",
            "tests/cluster/test_binaries.py",
            "tests/cluster/test_control_plane.py",
            "tests/cluster/test_dra.py",
            "tests/cluster/test_faults.py",
            "tests/cluster/test_kubelet.py",
            "tests/cluster/test_pains.py",
            "tests/cluster/test_ports.py",
            "tests/cluster/test_real_kubelet.py",
            "tests/cluster/test_trial_harm.py",
            "tests/cluster/test_trial_files.py",
            "tests/cluster/test_trial_refused.py",
            "tests/cluster/test_trial_runtimes.py",
            "tests/cluster/test_without_ssh.py",
        ),
        (*_CLUSTER, "plugins/module_utils/_kubelet/start/"),
        _one_more,
    ),
    5: Share(
        "virtual machines: the kubelet, its runtime, topologies, lost logins, SELinux",
        (
            *("%s::test_scenario[%s]" % (_SCENARIOS, name) for name in ("kubelet", "runtime", "topology")),
            _SCENARIOS + "::test_all_scenarios_are_here",
            _SCENARIOS + "::test_a_topology_that_is_ended_while_machines_start_leaves_nothing",
            "tests/scenarios/test_lost_logins.py",
            "tests/scenarios/test_trial_selinux.py",
        ),
        _MACHINES,
        _none,
    ),
    6: Share(
        "virtual machines: a rollout, housekeeping, cpusets, starts of the kubelet",
        (
            *("%s::test_scenario[%s]" % (_SCENARIOS, name) for name in ("rollout", "housekeeping", "cpusets")),
            "tests/scenarios/test_plain_starts.py",
            "tests/scenarios/test_pod_without_ssh.py",
        ),
        _MACHINES,
        _none,
    ),
}

# What `make test` runs: the parts by their names, each as pytest's arguments.
# The core with few examples. What is killed, and disks that are full, are in the first share.
CORE = ("tests/unit", "tests/conformance", "tests/kernel")
# What takes minutes, or asks how long something takes.
LATER = (
    "tests/conformance/test_hostile_checkpoints.py::test_the_largest_file",
    "tests/conformance/test_hostile_checkpoints.py::test_big_file",
    "tests/unit/plugins/module_utils/_saved/test_files_of_machine.py::test_what_is_saved_is_what_is_read",
    "tests/kernel/test_throttling_model.py",
    "tests/browser/test_page.py::test_a_page_of_10000_nodes_is_small_and_soon_there",
    "tests/browser/test_page.py::test_a_search_over_10000_nodes_is_quick",
    "tests/browser/test_page.py::test_the_page_takes_little_memory",
    "tests/playbooks/test_hostile_facts.py::test_no_answer_of_the_api_host_does",
)
# A story of each role and playbook: check mode, a run, a second run. What an operator and a node may get wrong. What
# takes longest is first, as the last one runs alone.
_PLAYBOOKS = "tests/playbooks/"
STORIES = (
    _PLAYBOOKS + "test_hostile_facts.py",
    _PLAYBOOKS + "test_dra.py::test_to_dra_writes_what_is_needed_and_no_more",
    _PLAYBOOKS + "test_dra.py::test_a_second_run_changes_nothing",
    _PLAYBOOKS + "test_dra.py::test_from_dra_puts_the_runtime_back_to_the_byte",
    _PLAYBOOKS + "test_rollout.py",
    _PLAYBOOKS + "test_report.py::test_all_forms_have_one_outcome",
    _PLAYBOOKS + "test_report.py::test_waivers_baseline_and_gates",
    _PLAYBOOKS + "test_report.py::test_a_gate_is_a_task_of_its_own_and_says_whose_failure_it_is",
    _PLAYBOOKS + "test_report.py::test_parts_of_a_fleet_become_one_report",
    _PLAYBOOKS + "test_quiet.py::test_a_rollout_is_quiet",
    _PLAYBOOKS + "test_housekeeping.py::test_the_playbook",
    _PLAYBOOKS + "test_reconcile_role.py::test_the_role",
    "tests/docs/test_errors.py",
    _PLAYBOOKS + "test_save.py::test_a_fleet_is_saved_and_read",
    _PLAYBOOKS + "test_start_check.py::test_saved_nodes_try_no_upgrade",
    _PLAYBOOKS + "test_propose.py::test_a_fleet_gets_settings_by_shape",
    _PLAYBOOKS + "test_cache.py::test_the_role",
    "tests/docs/test_samples.py::test_the_sample_of_where_is_what_is_printed",
    _PLAYBOOKS + "test_allocation.py::test_the_playbook_plan",
    _PLAYBOOKS + "test_mistakes.py::test_what_is_wrong_with_a_host",
    "tests/browser",
    _PLAYBOOKS + "test_simulate.py::test_the_documented_traces_on_a_saved_node",
    _PLAYBOOKS + "test_isolation_benchmark.py::test_check_mode_says_what_it_would_run_and_runs_nothing",
    _PLAYBOOKS + "test_own_steps.py::test_each_file_is_named_so_that_no_other_can_be_found",
    _PLAYBOOKS + "test_packing.py",
    "tests/docs/test_blocks.py",
    "tests/docs/test_lists.py",
    "tests/docs/test_monitoring.py",
)
# One rollout over a real control plane.
ROLLOUT = ("tests/cluster/test_rollout.py::test_a_fleet_is_rolled_out_and_back",)
# The oldest and the newest ansible-core on nodes with the oldest and the newest Python.
_MAIN_JOB = "tests/matrix/test_cores.py::test_the_main_job_passes_without_a_warning[%s]"
CORES = (_MAIN_JOB % "2.18", _MAIN_JOB % "2.21")
# The archive, as it is built and installed.
RELEASE = (
    "tests/release/test_archive.py::test_a_user_gets_nothing_that_is_only_for_work_on_it",
    "tests/release/test_first_report.py",
)


def without(later: Iterable[str], tests: Iterable[str]) -> tuple[str, ...]:
    """Return pytest's arguments for these tests, without the later ones."""
    return (*tests, *("--deselect=%s" % name for name in later))


PARTS = {
    "core": Share("the core", without(LATER, CORE), ()),
    # The rollout waits more than it works.
    "stories": Share("stories", without(LATER, (*ROLLOUT, *CORES, *STORIES, *RELEASE)), (), _one_more),
}


def share_of(what: str) -> Share:
    """Return a part of `make test`, or a share."""
    return PARTS[what] if what in PARTS else SHARES[int(what)]


def arguments_of(share: Share, processes: int) -> list[str]:
    """Return pytest's arguments for a share."""
    return ["--numprocesses=%d" % share.processes(processes), "--dist=loadfile", "--no-loadscope-reorder", *share.tests]


def turn(commits: int) -> int:
    """Return the share whose turn it is. So a landing has another one than the commit before it, and six commits
    have all."""
    return sorted(SHARES)[commits % len(SHARES)]


def touching(paths: list[str]) -> list[int]:
    """Return the shares that cover one of these files, or have it among their tests, in order."""
    return [
        number
        for number, share in SHARES.items()
        if any(path.startswith((*share.covers, *share.tests)) for path in paths)
    ]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def main(what: str, *more: str) -> None:
    if what == "turn":
        print(turn(int(_git("rev-list", "--count", "HEAD"))))
    elif what == "touched":
        print(*touching(_git("diff", "--name-only", *more).split()))
    else:
        print(*arguments_of(share_of(what), int(os.environ.get("JOBS") or 2)))


if __name__ == "__main__":
    main(*sys.argv[1:])

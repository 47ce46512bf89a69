# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each place where a host's task reads what other hosts have, or which hosts there are, and why no host decides there
for another one. A new place fails until it has its reason here.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
FILES = [
    path
    for pattern in (
        *("playbooks/**/*.yml", "roles/*/tasks/**/*.yml", "roles/*/vars/*.yml", "roles/*/defaults/*.yml"),
        *("roles/*/handlers/*.yml", "plugins/action/*.py", "plugins/lookup/*.py", "plugins/filter/*.py"),
        *("plugins/test/*.py", "plugins/plugin_utils/**/*.py", "roles/*/templates/*"),
    )
    for path in sorted(CHECKOUT.glob(pattern))
]
# What reads other hosts, or makes what others read: variables of Ansible, and our own ways.
READS = re.compile(
    r"hostvars\b|ansible_play_(?:hosts_all|hosts|batch)\b|\bplay_hosts\b|\bgroups\[|variables\[.groups.\]"
    r"|inventory_hostnames|\bHostsOfRun\(|\b_Hosts\(|\b(?:kept|keep)_order\(|kubenode\.cpu_manager\.answers'|\bchanging='"
    r"|\badd_(?:host|group)\b(?!\()|\bgroup_by\b|\bdelegate_facts\b|\bset_stats\b|\bansible_stats\b|\bcacheable\b"
)
COMMENT = re.compile(r"^\s*#")

# Why it holds.
OWN = "the host's own variables, which its own tasks have checked"
NAMES = "names of hosts alone, which Ansible has from the inventory"
GUARD = "HostsOfRun leaves out hosts that are not in the run, or were refused"
FILE = "a file of this process, which the verdict on the plans of this run writes anew"
STRIPPED = "what is taken out of each answer"
TABLE: list[tuple[str, str, int, str]] = [
    ("playbooks/cache.yml", "changing='", 1, GUARD),
    ("playbooks/housekeeping.yml", "changing='", 1, GUARD),
    ("playbooks/reconcile.yml", "changing='", 1, GUARD),
    ("playbooks/plan.yml", "ansible_play_hosts_all", 1, NAMES),
    ("playbooks/propose.yml", "kubenode.cpu_manager.answers'", 4, GUARD),
    ("playbooks/propose.yml", "ansible_play_hosts_all", 1, NAMES),
    ("playbooks/propose.yml", "hostvars", 1, OWN),
    ("playbooks/to_dra.yml", "kubenode.cpu_manager.answers'", 1, GUARD),
    ("playbooks/to_dra.yml", "ansible_play_hosts", 1, NAMES),
    ("playbooks/try_upgrade.yml", "kubenode.cpu_manager.answers'", 1, GUARD),
    ("playbooks/vars/become.yml", "hostvars", 1, OWN),
    ("roles/drift_report/tasks/main.yml", "ansible_play_batch", 1, NAMES),
    ("roles/drift_report/tasks/main.yml", "ansible_play_hosts", 1, NAMES),
    ("roles/drift_report/tasks/main.yml", "ansible_play_hosts_all", 2, NAMES),
    ("roles/drift_report/tasks/merge.yml", "inventory_hostnames", 2, NAMES),
    ("roles/isolation_benchmark/tasks/main.yml", "kubenode.cpu_manager.answers'", 1, GUARD),
    ("roles/isolation_benchmark/tasks/main.yml", "ansible_play_hosts", 1, NAMES),
    ("roles/kubelet/vars/main.yml", "groups[", 1, NAMES),
    ("roles/kubelet/vars/main.yml", "hostvars", 1, OWN),
    ("plugins/action/allocation_report.py", "HostsOfRun(", 1, GUARD),
    ("plugins/action/allocation_report.py", "ansible_play_hosts_all", 1, NAMES),
    ("plugins/action/node_report.py", "ansible_play_hosts_all", 1, NAMES),
    ("plugins/action/rollout_verdict.py", "HostsOfRun(", 1, GUARD),
    ("plugins/action/rollout_verdict.py", "_Hosts(", 9, GUARD),
    ("plugins/action/rollout_verdict.py", "ansible_play_batch", 1, NAMES),
    ("plugins/action/rollout_verdict.py", "ansible_play_hosts", 4, NAMES),
    ("plugins/action/rollout_verdict.py", "ansible_play_hosts_all", 5, NAMES),
    ("plugins/action/rollout_verdict.py", "keep_order(", 2, FILE),
    ("plugins/action/rollout_verdict.py", "kept_order(", 1, FILE),
    (
        "plugins/plugin_utils/guarded_action.py",
        "hostvars",
        1,
        "the host of the task alone, and whether a name is there",
    ),
    ("plugins/lookup/answers.py", "HostsOfRun(", 1, GUARD),
    ("plugins/lookup/answers.py", "hostvars", 2, "words of its documentation"),
    ("plugins/lookup/answers.py", "kubenode.cpu_manager.answers'", 1, "an example"),
    ("plugins/lookup/answers.py", "ansible_play_hosts_all", 1, NAMES),
    ("plugins/lookup/hosts.py", 'variables["groups"]', 1, NAMES),
    ("plugins/lookup/hosts.py", "HostsOfRun(", 1, GUARD),
    ("plugins/lookup/hosts.py", "kept_order(", 1, FILE),
    ("plugins/plugin_utils/guarded_action.py", "add_group", 1, STRIPPED),
    ("plugins/plugin_utils/guarded_action.py", "add_host", 1, STRIPPED),
    ("plugins/plugin_utils/guarded_action.py", "ansible_stats", 1, STRIPPED),
    ("plugins/plugin_utils/guarded_action.py", "cacheable", 2, "a word of a message"),
    (
        "plugins/plugin_utils/hosts_of_run.py",
        "hostvars",
        3,
        "the guard itself, which checks the facts of each host first",
    ),
    ("plugins/plugin_utils/hosts_of_run.py", "keep_order(", 1, FILE),
    ("plugins/plugin_utils/hosts_of_run.py", "kept_order(", 1, FILE),
]


def test_no_host_decides_for_others_where_its_variables_are_read() -> None:
    found: Counter[tuple[str, str]] = Counter()
    for path in FILES:
        lines = [line for line in path.read_text("utf-8").splitlines() if not COMMENT.search(line)]
        found.update((str(path.relative_to(CHECKOUT)), read) for line in lines for read in READS.findall(line))
    assert len(FILES) > 140
    assert dict(found) == {(file, read): times for file, read, times, _reason in TABLE}


@pytest.mark.parametrize("file", sorted({file for file, _read, _times, reason in TABLE if reason == OWN}))
def test_whoever_reads_variables_of_hosts_in_yaml_reads_his_own(file: str) -> None:
    for line in (CHECKOUT / file).read_text("utf-8").splitlines():
        if "hostvars" in line and not line.lstrip().startswith("#"):
            assert "hostvars[inventory_hostname]" in line

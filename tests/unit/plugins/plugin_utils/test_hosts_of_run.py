# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/hosts_of_run.py: whose variables count, and what is kept of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible import constants

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.hosts_of_run import (
    HostsOfRun,
    keep_order,
    kept_order,
)

HOSTVARS: dict[str, dict[str, Any]] = {
    "a": {"answer": {"cpus": 8}, "fixed": {"run": "task-7"}},
    "never asked": {"fixed": {"run": "task-7"}},
    "of an earlier run": {"answer": {"cpus": 4}, "fixed": {"run": "task-3"}},
    "of no run": {"answer": {"cpus": 4}},
    "refused": {"answer": {"cpus": 4}, "fixed": {"failed": True, "msg": "refused: no such variable"}},
    "hostile": {"answer": {"cpus": 64}, "ansible_facts": {"kubelet_look": {}}, "inventory_hostname": "hostile"},
    "with facts": {"answer": {"cpus": 2}, "ansible_facts": {"distribution": "x"}},
    "failed": {"answer": {"failed": True, "msg": "no CPUs"}, "fixed": {"run": "task-7"}},
}
VARIABLES: dict[str, Any] = {
    "hostvars": HOSTVARS,
    "fixed": {"run": "task-7"},
}


def shown(answer: Any) -> Any:
    """Return what a host's answer is, in a few words."""
    return str(answer["msg"]).partition(" (")[0] if "msg" in answer else answer


def test_a_play_without_fixed_values_reads_no_host_with_facts_of_ours() -> None:
    answers = HostsOfRun(VARIABLES).answers(HOSTVARS, "answer")
    assert {host: shown(answer) for host, answer in answers.items()} == {
        "a": {"cpus": 8},
        "never asked": {},
        "of an earlier run": {"cpus": 4},
        "of no run": {"cpus": 4},
        "refused": {"cpus": 4},
        "hostile": "hostile: facts of this host have names of variables by which the controller acts",
        "with facts": {"cpus": 2},
        "failed": "no CPUs",
    }
    assert answers["hostile"]["failed"]


def test_a_run_reads_its_own_hosts_alone() -> None:
    answers = HostsOfRun(VARIABLES, "fixed").answers(HOSTVARS, "answer")
    assert {host: shown(answer) for host, answer in answers.items() if answer} == {
        "a": {"cpus": 8},
        "refused": "refused: no such variable",
        "hostile": "hostile: facts of this host have names of variables by which the controller acts",
        "failed": "no CPUs",
    }


@pytest.mark.parametrize("fixed", [None, {}, {"failed": True, "msg": "x"}, "text"])
def test_who_is_in_no_run_reads_nobody(fixed: Any) -> None:
    """Two hosts without a name of a run are not of one run."""
    answers = HostsOfRun({**VARIABLES, "fixed": fixed}, "fixed").answers(["a", "of no run"], "answer")
    assert answers == {"a": {}, "of no run": {}}


def test_what_a_host_has_in_place_of_an_answer() -> None:
    answers = HostsOfRun(VARIABLES, "fixed").answers(HOSTVARS, "answer", default="")
    assert {host for host, answer in answers.items() if answer == ""} == {*HOSTVARS} - {"a", "failed"}


def test_what_a_run_has_found_is_kept_until_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    assert kept_order() == {}
    keep_order({"changing": ["ä"], "batches": [["ä"]]})
    assert kept_order() == {"changing": ["ä"], "batches": [["ä"]]}
    keep_order({"changing": []})
    assert kept_order() == {"changing": []}
    assert len(list(tmp_path.iterdir())) == 1

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A question of a survey that is left empty says nothing, whatever variable of a role or playbook it asks for."""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import KNOWN

from .conftest import CHECKOUT, CopyOf, ansible_playbook

# What a playbook must be told: an empty answer is no answer to these, either.
NEEDED: dict[str, dict[str, Any]] = {
    "propose": {"cpu_manager_workload": "batch"},
    "report": {},
    "rollout": {},
    "drift_report": {},
    "verify": {},
    "reconcile": {},
    "cache": {},
    "housekeeping": {},
    "save": {},
    "repair": {},
    "where": {},
}
# What each run has of its own.
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]?[\d:.]+Z?(-[0-9a-f]+)?|\d+ bytes")
ITS_OWN = frozenset(
    (
        "call",
        "of",
        "sha256",
        "run",
        "kubenode_run",
        "began",
        "looked_at",
        "kubenode_run_of",
        "file",
        "files",
        "size",
        "seconds",
        "delta",
        "start",
        "end",
    )
)


def of_roles() -> set[str]:
    """Return the variables of all roles, by their argument_specs."""
    found: set[str] = set()
    for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            found.update(entry.get("options", {}))
    return found


def test_all_variables_are_asked() -> None:
    assert of_roles() <= KNOWN


@pytest.mark.parametrize("playbook", NEEDED)
def test_all_left_empty_is_as_nothing_said(copy_of: CopyOf, tmp_path: Path, playbook: str) -> None:
    """Drain and checks of the capacity are on where nobody said anything: an empty answer switches nothing off."""
    host = {
        "kubelet_node_root": str(copy_of("epyc", "epyc")),
        "kubelet_cpu_manager_reconcile_period": "7s",
        "housekeeping_reserved_system_cpus": "0-3",
        **NEEDED[playbook],
    }
    if playbook == "report":
        written = ansible_playbook(tmp_path / "here", "kubenode.cpu_manager.drift_report", {"node": host})
        assert written.status == 0, written.account()
    # What the change is, the playbook says itself.
    empty = json.dumps(dict.fromkeys(KNOWN - {"kubelet_change"}, ""))
    runs = [
        ansible_playbook(tmp_path / "here", "kubenode.cpu_manager." + playbook, {"node": host}, "--check", *arguments)
        for arguments in ((), ("-e", empty))
    ]
    nothing, left = (
        {name: [told(result) for result in results] for name, results in run.results.items()} for run in runs
    )
    assert list(differences(left, nothing)) == [], runs[1].account()
    assert runs[0].status == runs[1].status


def told(value: Any) -> Any:
    """Return a result without what each run has of its own: ids, times and files."""
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items() if key not in ITS_OWN and key[:1] != "_"}
    if isinstance(value, list):
        return [told(item) for item in value]
    return TIME.sub("", value) if isinstance(value, str) else value


def differences(left: Any, nothing: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (where, what is there with empty answers, what is there with none)"""
    if isinstance(left, dict) and isinstance(nothing, dict):
        for key in sorted({*left, *nothing}):
            yield from differences(left.get(key), nothing.get(key), "%s.%s" % (where, key))
    elif isinstance(left, list) and isinstance(nothing, list):
        for number, pair in enumerate(zip_longest(left, nothing)):
            yield from differences(*pair, "%s[%d]" % (where, number))
    elif left != nothing:
        yield where, left, nothing


def test_the_inventory_says_what_an_empty_answer_does_not(copy_of: CopyOf, tmp_path: Path) -> None:
    host = {"kubelet_node_root": str(copy_of("epyc", "epyc")), "kubelet_cpu_manager_reconcile_period": "7s"}
    empty = json.dumps({"kubelet_cpu_manager_reconcile_period": "", "kubelet_node_root": "", "cpu_manager_hosts": ""})
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.verify", {"node": host}, "-e", empty)
    assert run.status != 0
    assert "7s" in run.output

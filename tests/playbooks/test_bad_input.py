# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong ends in one message, which names node, file or parameter, and a remedy; the node stays as it is.

What an ordinary user has no right to is in test_bad_rights.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Mapping

import pytest

from .bad_input import BAD
from .bad_nodes import BYSTANDER, MACHINE, ROLE, as_it_is, ask_all, host, make_node, one_message, says, text
from .conftest import ansible_playbook, fingerprint, play


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a good node of each machine in BAD, once; not to be changed."""
    directory = tmp_path_factory.mktemp("machines")
    for name in {bad.machine for bad in BAD.values()}:
        make_node(directory / name, name)
    return directory


# What is found wrong: who only reads reports it.
FOUND = (
    *(
        "config-directory",
        "config-fifo",
        "config-long",
        "truncated-yaml",
        "truncated-json",
        "tab",
        "empty",
        "list",
        "kind",
    ),
    *("no-kind", "latin", "found-policy", "found-cpus", "found-option", "found-quantity", "found-period"),
    *("flag-unreadable", "cgroup"),
)


def test_what_is_found_wrong_is_reported(machines: Path, tmp_path: Path) -> None:
    hosts = {}
    for name in FOUND:
        root = tmp_path / "nodes" / name
        shutil.copytree(machines / MACHINE, root, symlinks=True, copy_function=os.link)
        BAD[name].change(root)
        hosts[name] = {"root": str(root)}
    before = fingerprint(tmp_path / "nodes")
    tasks = [
        {"name": "Ask", "kubenode.cpu_manager." + module: {"root": "{{ root }}", "cpu_cfs_quota": True}}
        for module in ("drift_info", "rollout_info")
    ]
    run = ansible_playbook(tmp_path / "run", play(*tasks), hosts)
    assert run.status == 0, run.account()
    for name, results in run.results.items():
        for result in results:
            (row,) = (row for row in result["drift"] if row["subject"] in ("configuration", "start"))
            assert BAD[name].subject.rpartition("/")[2].partition(":")[0] in row["found"] + str(row["source"]), name
            assert row["remedy"], name
            assert (result["status"], bool(result["found_refusal"])) == ("drift", True), name
        assert results[1]["refusals"], name
    assert fingerprint(tmp_path / "nodes") == before


def test_one_message_and_nothing_changed(machines: Path, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    hosts: dict[str, dict[str, Any]] = {BYSTANDER: {}}
    node_names = {}
    for name, bad in BAD.items():
        root = machines / bad.machine
        node_names[name] = bad.machine
        if bad.change is not as_it_is:
            root, node_names[name] = nodes / name, "worker-" + name
            shutil.copytree(machines / bad.machine, root, symlinks=True, copy_function=os.link)
            text("etc/hostname", "worker-%s\n" % name)(root)
            bad.change(root)
        hosts[name] = host(bad.root or str(root), bad.asked, bad.parameters)
    before = fingerprint(nodes), fingerprint(machines)

    # For what only reads, check mode is the same.
    changing = {name: bad for name, bad in BAD.items() if bad.asked in (ROLE, "kubelet_config", "checkpoint")}
    for rows, mode in ((changing, "--check"), (BAD, "--diff")):
        run = ansible_playbook(tmp_path / "run", ask_all(rows), hosts, mode)
        assert run.status != 0
        assert "Traceback" not in run.output
        messages = {name: one_message(run, name) for name in rows}
        assert {
            name: message for name, message in messages.items() if not says(message, rows[name], node_names[name])
        } == {}
        lasts = {name: run.last(name) for name in rows}
        assert {name: last.get("failure") for name, last in lasts.items() if not is_told(last, name)} == {}
        assert (fingerprint(nodes), fingerprint(machines)) == before


# What programs decide by, when a module fails.
KINDS = (
    *("input", "kubelet", "node", "refused", "permission", "assignments", "another_run", "kubelet_runs"),
    *("no_kubelet", "no_configuration", "would_not_start", "too_long"),
)
# The text itself says what would be right: these have no remedy beside it.
NO_REMEDY = ("cpu-list", "found-cpus", "flag-unreadable")
# The remedy of these is still within the text of what is wrong.
REMEDY_WITHIN = (
    *("truncated-yaml", "truncated-json", "tab", "list", "kind", "no-kind", "no-mapping", "no-kubelet"),
    *("found-policy", "found-option", "found-quantity", "found-period", "no-kubelet-there", "option", "option-value"),
    *("option-none", "option-alpha", "socket-in-one-node", "half-a-node", "many-nodes", "duration", "duration-word"),
    *("quantity", "cpu-missing", "cpu-offline", "reserved-all", "reserved-none", "cgroup"),
    *("quantity-negative", "kubelet-quantity", "duration-negative", "option-excluded", "option-newer", "cpu-stride"),
    *("all-by-quantity", "more-by-quantity", "empty", "version"),
)


def is_told(result: Mapping[str, Any], name: str) -> bool:
    """Return whether programs get a known kind and the remedy. Ansible's own refusals of parameters have no such
    thing."""
    bad, failure = BAD[name], result.get("failure")
    if bad.asked == ROLE or (failure is None and not bad.knows_node):
        return True
    may_lack = name in NO_REMEDY or name in REMEDY_WITHIN
    return failure is not None and failure["kind"] in KINDS and (bool(failure["remedy"]) or may_lack)

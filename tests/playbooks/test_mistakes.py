# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each mistake of an operator has one message in the operator's words, and no node is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable

import pytest

from .bad_nodes import MACHINE, make_node
from .conftest import Run, ansible_playbook, fingerprint
from .mistakes import ABSENT, MISSPELT, MISTAKES, PLAN, PROPOSE, REPORT, ROLES, ROLLOUT, SIMULATE, Mistake

CHECKOUT = Path(__file__).parents[2]
# Where playbooks write, beside the place from which they are run.
WRITTEN = {"saved-nodes", "drift-report", "isolation-benchmark", "proposal", "simulation"}
# What no operator has written, or that is said of no variable.
NOT_THEIRS = ("Traceback", "serializable", "<class", "AnsibleTagged", "mutually exclusive", "Unsupported parameters")


def of_place(place: str) -> dict[str, Mistake]:
    rows = [mistake for mistake in MISTAKES if mistake.place == place]
    return {"%s-%d" % (row.variable.replace("_", "-"), number): row for number, row in enumerate(rows)}


def variables(root: Path, mistake: Mistake) -> dict[str, Any]:
    given = {} if mistake.value is ABSENT else {mistake.variable: mistake.value}
    return {"kubelet_node_root": str(root), **mistake.beside, **given}


def nodes_of(directory: Path, rows: dict[str, Mistake]) -> dict[str, dict[str, Any]]:
    hosts = {}
    for name, mistake in rows.items():
        root = directory / "nodes" / name
        make_node(root, MACHINE)
        mistake.change(root)
        hosts[name] = variables(root, mistake)
    return hosts


def wrong(said: Iterable[tuple[Mistake, str]]) -> list[tuple[str, Any, str]]:
    """Return the mistakes of which something else is said, or twice, or in words that are none of the operator's."""
    return [
        (mistake.variable, mistake.value, message)
        for mistake, message in said
        if message.count(mistake.message) != 1
        or any(word in message for word in NOT_THEIRS if not mistake.message.startswith(("value of", "'")))
    ]


def messages(run: Run, rows: dict[str, Mistake]) -> list[tuple[Mistake, str]]:
    """Return what failed last, of each: the first host of a run writes its report, too."""
    failed = {name: [result for result in run.results[name] if result["outcome"] == "failed"] for name in rows}
    return [(mistake, str(failed[name][-1]["msg"]) if failed[name] else "") for name, mistake in rows.items()]


def test_there_are_sixty() -> None:
    assert len(MISTAKES) >= 60
    assert len({(row.variable, str(row.value), row.place, str(row.beside)) for row in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("place", [REPORT, ROLLOUT])
def test_what_is_wrong_with_a_host(tmp_path: Path, place: str) -> None:
    rows = of_place(place)
    hosts = nodes_of(tmp_path, rows)
    before = fingerprint(tmp_path / "nodes")
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager." + place, hosts)
    assert run.status != 0
    assert wrong(messages(run, rows)) == []
    assert fingerprint(tmp_path / "nodes") == before


def test_what_is_wrong_with_a_proposal_is_known_before_a_node_is_read(tmp_path: Path) -> None:
    rows = of_place(PROPOSE)
    hosts = {
        name: {"cpu_manager_workload": "batch", **variables(Path("/no/such/root"), row)} for name, row in rows.items()
    }
    for name, row in rows.items():
        if row.value is ABSENT:
            del hosts[name]["cpu_manager_workload"]
    run = ansible_playbook(tmp_path, "kubenode.cpu_manager." + PROPOSE, hosts)
    assert run.status != 0
    (message,) = (
        result["msg"] for results in run.results.values() for result in results if result["outcome"] == "failed"
    )
    lines = dict(line.split(": ", 1) for line in message.splitlines())
    assert wrong((row, lines.get(name, "")) for name, row in rows.items()) == []


@pytest.mark.parametrize("place", [PLAN, SIMULATE])
def test_what_is_wrong_with_a_playbook(tmp_path: Path, place: str) -> None:
    rows = of_place(place)
    root = tmp_path / "node"
    make_node(root, MACHINE)
    for name, row in rows.items():
        run = ansible_playbook(
            tmp_path / name, "kubenode.cpu_manager." + place, {"node": {}}, "-e", json.dumps(variables(root, row))
        )
        assert run.status != 0
        assert wrong([(row, run.last("node")["msg"])]) == []


@pytest.mark.parametrize("playbook", sorted(path.stem for path in (CHECKOUT / "playbooks").glob("*.yml")))
def test_a_misspelt_name_is_refused_by_each_playbook(tmp_path: Path, playbook: str) -> None:
    make_node(tmp_path / "node", MACHINE)
    (tmp_path / "pods.yml").write_text("{}\n", encoding="utf-8")
    before = fingerprint(tmp_path / "node")
    host = {
        "kubelet_node_root": str(tmp_path / "node"),
        "cpu_manager_workload": "batch",
        "cpu_manager_manifests": str(tmp_path / "pods.yml"),
        "drift_report_sources": [str(tmp_path)],
        "kubelet_trial_program": "/usr/bin/kubelet-1.37",
        **dict.fromkeys(MISSPELT, "absent"),
    }
    # What that playbook sets itself may be made of this.
    misspelt = {name: meant for name, meant in MISSPELT.items() if (playbook, name) != ("to_dra", "cpu_manager_policy")}
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager." + playbook, {"node": {}}, "-e", json.dumps(host))
    assert run.status != 0, run.output
    # YAML folds long lines.
    told = " ".join(run.output.split())
    for name, meant in misspelt.items():
        assert "%s is no variable of this collection, and %s is" % (name, meant) in told
    assert fingerprint(tmp_path / "node") == before
    # A report has the node with what is wrong with it.
    assert playbook in ("drift_report", "verify") or not WRITTEN.intersection(
        path.name for path in (tmp_path / "run").iterdir()
    )


def test_a_play_of_others_may_have_any_name(tmp_path: Path) -> None:
    """Only the collection's own roles and playbooks read these names."""
    make_node(tmp_path / "node", MACHINE)
    task = {"name": "Look", "kubenode.cpu_manager.cpu_topology_info": {"root": str(tmp_path / "node")}}
    plays = [{"name": "Mine", "hosts": "node", "gather_facts": False, "become": False, "tasks": [task]}]
    run = ansible_playbook(tmp_path / "run", plays, {"node": dict.fromkeys(MISSPELT, "absent")})
    assert run.status == 0, run.account()


def test_what_is_wrong_with_a_role(tmp_path: Path) -> None:
    """Each in a block of one play: what fails there is no end of the run."""
    make_node(tmp_path / "node", MACHINE)
    rows = {place: of_place(place) for place in ROLES}
    blocks = [
        {
            "name": "%s %s" % (place, name),
            "vars": variables(tmp_path / "node", row),
            "block": [{"ansible.builtin.include_role": role_of(place)}],
            "rescue": [{"name": "Say it", "ansible.builtin.debug": {"msg": "{{ ansible_failed_result.msg }}"}}],
        }
        for place, of_role in rows.items()
        for name, row in of_role.items()
    ]
    plays = [{"name": "Fail", "hosts": "node", "gather_facts": False, "become": False, "tasks": blocks}]
    run = ansible_playbook(tmp_path / "run", plays, {"node": {}})
    assert run.status == 0, run.account()
    said = [result["msg"] for result in run.results["node"] if result["task"] == "Say it"]
    assert wrong(zip((row for of_role in rows.values() for row in of_role.values()), said, strict=True)) == []


def role_of(place: str) -> dict[str, Any]:
    role = place.split(",", maxsplit=1)[0].partition(" ")[2]
    # As the playbooks of the same name do it.
    is_checked = role != REPORT
    return {"name": "kubenode.cpu_manager." + role, "tasks_from": ROLES[place], "rolespec_validate": is_checked}

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables_of_files import (
    wrong_in_file,
    wrong_variables,
)

CHECKOUT = Path(__file__).parents[4]
PROGRAM = "extensions/lint/check_variables.py"
GOOD: dict[str, Any] = {
    "kubelet_cpu_manager_policy": "static",
    "kubelet_cpu_manager_policy_options": {"full-pcpus-only": True},
    "kubelet_reservation": {"count": 4, "strategy": "spread"},
    "kubelet_cpu_manager_reconcile_period": "5s",
    "drift_report_forms": ["json"],
    # Those of others, and what only a run knows.
    "kubelet_max_pods": 110,
    "kubelet_drain": "{{ inventory_hostname != 'a' }}",
    "kubelet_topology_manager_policy": "{{ policies[inventory_hostname] }}",
}
WAIVER = {"check": "policy-differs", "reason": "ticket 4711", "until": "2999-12-31"}


def test_what_is_right_is_not_named() -> None:
    assert wrong_variables(GOOD) == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"kubelet_cpu_manager_polcy": "static"}, "did you mean kubelet_cpu_manager_policy?"),
        ({"cpu_manager_policy": "static"}, "did you mean kubelet_cpu_manager_policy?"),
        ({"reconcile_xyzzy": 1}, "reconcile_xyzzy is no variable of this collection; remove it"),
        ({"kubelet_cpu_manager_policy": "Static"}, "kubelet_cpu_manager_policy: "),
        ({"kubelet_cpu_manager_policy_options": "full-pcpus-only"}, "kubelet_cpu_manager_policy_options: "),
        ({"kubelet_reserved_system_cpus": "0-"}, "kubelet_reserved_system_cpus"),
        ({"kubelet_cpu_manager_reconcile_period": "5 seconds"}, "kubelet_cpu_manager_reconcile_period"),
        (
            {"kubelet_reservation": {"counts": 4}},
            "kubelet_reservation.counts: there is no such option; did you mean count",
        ),
        ({"kubelet_reservation": {"count": "many"}}, "kubelet_reservation.count: "),
        ({"kubelet_reserved_system_cpus": "0", "kubelet_reservation": {"count": 1}}, "exclude each other; remove one"),
        ({"housekeeping_layers": ["interupts"]}, "housekeeping_layers: "),
        ({"drift_report_fail_on": "always"}, "drift_report_fail_on: "),
        ({"kubelet_verify_seconds": "long"}, "kubelet_verify_seconds: 'long' is not a number"),
        (
            {"drift_report_waivers": [WAIVER, {**WAIVER, "until": "soon"}]},
            "drift_report_waivers[1].until: 'soon' is not a date",
        ),
        ({"drift_report_waivers": [{**WAIVER, "check": "policy-difers"}]}, "[0]: there is no check policy-difers; did"),
        ({"drift_report_waivers": [{"check": "policy-differs"}]}, "drift_report_waivers[0]: has no reason"),
        ({"cpu_manager_impact_waivers": [{"workload": "shop/db"}]}, "cpu_manager_impact_waivers[0]: has no reason"),
    ],
)
def test_what_is_wrong_is_named_with_its_variable(variables: dict[str, Any], said: str) -> None:
    (wrong,) = wrong_variables(variables)
    assert said in wrong


def test_the_variables_of_a_playbook_are_looked_at(tmp_path: Path) -> None:
    """Of its plays, roles and tasks, each once."""
    wrong = {"kubelet_cpu_manager_policy": "statc"}
    task = {"name": "Do it", "ansible.builtin.debug": {}, "vars": wrong}
    play = {
        "hosts": "all",
        "vars": {"kubelet_cpu_manager_polcy": "static", "kubelet_drain": True},
        "roles": [{"role": "kubenode.cpu_manager.kubelet", "vars": wrong}],
        "tasks": [{"block": [task]}],
    }
    path = tmp_path / "site.yml"
    path.write_text(yaml.safe_dump([play]), encoding="utf-8")
    assert [said.partition(" ")[0] for said in wrong_in_file(path)] == [
        "kubelet_cpu_manager_polcy",
        "kubelet_cpu_manager_policy:",
    ]


def test_all_that_is_wrong_is_named_at_once() -> None:
    assert (
        len(wrong_variables({"kubelet_drain": "perhaps", "kubelet_cpu_manager_policy": "x", "kubelet_drian": True}))
        == 3
    )


BOMB = "a0: &a0 [x, x, x, x]\n" + "".join("a%d: &a%d [%s]\n" % (n, n, "*a%d, " % (n - 1) * 9) for n in range(1, 9))


def test_of_a_file_that_is_none_it_says_so(tmp_path: Path) -> None:
    files = {
        "tab.yml": ("a:\n\t- b\n", "it cannot be read: "),
        "list.yml": ("- a\n", "it is not a mapping of variables"),
        "empty.yml": ("", None),
        "vault.yml": ("$ANSIBLE_VAULT;1.1;AES256\n6162\n", None),
        "tags.yml": ("kubelet_drain: !vault |\n  $ANSIBLE_VAULT;1.1\nkubelet_service: !unsafe 'x{{'\n", None),
        "bytes.yml": ("a: \x00\n", "it cannot be read: "),
        # Of a pull request, for instance.
        "aliases.yml": (BOMB, "it cannot be read: its aliases stand for more than 100000 values"),
        "number.yml": ("a: %s\n" % ("1:" * 5000 + "1"), "it cannot be read: has a number of 10001 characters"),
    }
    for name, (text, said) in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        found = wrong_in_file(tmp_path / name)
        assert [wrong.startswith(said or "?") for wrong in found] == ([True] if said else []), name
    assert wrong_in_file(tmp_path / "none.yml")[0].startswith("it cannot be read: ")


def test_the_program_of_a_copy_without_an_installation(tmp_path: Path) -> None:
    """As pre-commit has it: another directory, nothing on the path of Python but ansible-core."""
    copy = tmp_path / "copy of it"
    for part in ("plugins", "roles", "extensions/lint"):
        shutil.copytree(CHECKOUT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    place = tmp_path / "inventory/group_vars/workers"
    place.mkdir(parents=True)
    (place / "cpus.yml").write_text("kubelet_cpu_manager_polcy: static\n", encoding="utf-8")
    (place / "other").write_text("kubelet_drain: 3\n", encoding="utf-8")
    (place / ".cpus.yml.swp").write_text("kubelet_drain: 3\n", encoding="utf-8")
    (place / "notes.md").write_text("- kubelet_drain\n", encoding="utf-8")

    def run(*paths: str) -> tuple[int, str]:
        command = [sys.executable, str(copy / PROGRAM), *paths]
        environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    status, said = run("../../group_vars")
    assert status == 1, said
    cpus, without_ending = said.splitlines()
    assert cpus.startswith("../../group_vars/workers/cpus.yml: kubelet_cpu_manager_polcy is no variable")
    assert without_ending.startswith("../../group_vars/workers/other: kubelet_drain: ")
    (place / "cpus.yml").write_text(yaml.safe_dump(GOOD), encoding="utf-8")
    assert run("cpus.yml") == (0, "")
    # As the pipelines call it, which do not know which of the two are there.
    assert run("../workers", "host_vars") == (
        1,
        "%s\nhost_vars: is not there, and is left out\n" % without_ending.replace("../../group_vars", ".."),
    )
    status, said = run("host_vars")
    assert (status, said.startswith("host_vars: no file of variables is there; ")) == (1, True)
    assert run("none.yml")[0] == 1


def test_the_hook_is_for_the_files_that_ansible_reads() -> None:
    (hook,) = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["entry"] == PROGRAM
    assert (CHECKOUT / PROGRAM).stat().st_mode & 0o111
    taken = re.compile(hook["files"])
    assert all(taken.search(path) for path in ("group_vars/all.yml", "eu/host_vars/worker-1/cpus.yml"))
    assert not any(taken.search(path) for path in ("roles/x/vars/main.yml", "my_group_vars.yml"))


@pytest.mark.needs("ansible-lint")
def test_the_rule_of_ansible_lint(tmp_path: Path) -> None:
    place = tmp_path / "group_vars"
    (tmp_path / "vars").mkdir()
    place.mkdir()
    text = "---\nmine: 1\nkubelet_cpu_manager_polcy: static\nkubelet_drain: perhaps\n"
    (place / "workers.yml").write_text(text, encoding="utf-8")
    # Of a role, or of a playbook of theirs.
    (tmp_path / "vars/main.yml").write_text(text, encoding="utf-8")
    (place / "all.yml").write_text("---\n" + yaml.safe_dump(GOOD), encoding="utf-8")
    rules = str((CHECKOUT / PROGRAM).parent)
    command = ["ansible-lint", "--offline", "--nocolor", "--format=pep8", "-r", rules, "-t", "kubenode"]
    done = subprocess.run([*command, "group_vars", "vars"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert [line.split(" ", 1)[0] for line in done.stdout.splitlines()] == [
        "group_vars/workers.yml:3:",
        "group_vars/workers.yml:4:",
    ]
    assert (
        "kubenode-variables: kubelet_cpu_manager_polcy is no variable of this collection; did you mean" in done.stdout
    )

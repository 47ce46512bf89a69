# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists of the documentation that have to be complete: those of playbooks, of their variables, and of their values."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.action.fleet_report import ActionModule
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import SETTINGS_ARGUMENTS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import GATES
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.metrics import HELP
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import KNOWN

from .pages import CHECKOUT, GUIDES
from .promise import PROMISED, metrics_of_nodes, names, removed
from .values import modules

PLAYBOOKS = sorted(path.stem for path in (CHECKOUT / "playbooks").glob("*.yml"))
FIRST_CELL = re.compile(r"^   \* - ``(\w+)``$", re.MULTILINE)


def first_cells(heading: str = "") -> list[str]:
    """Return the first cells of the table below a heading of the page of playbooks, or of the first table."""
    text = (GUIDES / "playbooks.rst").read_text("utf-8").partition("\n" + heading)[2]
    return FIRST_CELL.findall(text.partition(".. list-table::")[2].partition("\n\n.. _")[0].partition("\n---")[0])


def test_the_page_has_all_playbooks() -> None:
    assert sorted(first_cells()) == PLAYBOOKS


def test_the_page_has_all_variables_of_playbooks() -> None:
    assert first_cells("Variables of the playbooks") == sorted(
        name for name in KNOWN if name.startswith("cpu_manager_")
    )


def test_the_guide_has_all_metrics_of_the_report() -> None:
    text = (GUIDES / "drift_report.rst").read_text("utf-8")
    table = text.partition("\nAlerts\n")[2].partition(".. code-block::")[0]
    assert sorted(FIRST_CELL.findall(table)) == sorted(HELP)
    assert set(re.findall(r"kubenode_cpu_\w+", text)) == set(HELP)


def test_the_guide_has_all_figures_of_the_role_reconcile() -> None:
    table = (GUIDES / "monitor.rst").read_text("utf-8").partition("   * - figure\n")[2].partition("\n2. ")[0]
    assert FIRST_CELL.findall(table) == list(metrics_of_nodes())


if "KEEP" in os.environ:

    def test_this_version_is_kept() -> None:
        PROMISED.write_text("\n".join([*names(), ""]), encoding="utf-8")


def test_no_name_that_was_promised_is_removed() -> None:
    """What may go is on the page about compatibility. After that: `make keep`, which writes the list again."""
    assert removed(PROMISED.read_text("utf-8")) == []


def test_a_name_that_is_removed_is_found_and_one_more_is_none() -> None:
    assert removed("\n".join([*names(), "option drift_info no_such_option"])) == ["option drift_info no_such_option"]
    assert removed("\n".join(names()[1:])) == []
    assert {name.split()[0] for name in names()} == {
        "check", "metric", "option", "playbook", "return", "role", "variable",
    }  # fmt: skip


def test_the_readme_fits_two_screens() -> None:
    lines = (CHECKOUT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 130


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_the_readme_names_the_playbook(playbook: str) -> None:
    assert "`%s`" % playbook in (CHECKOUT / "README.md").read_text("utf-8")


def test_the_glossary_is_short_and_the_code_has_its_words() -> None:
    words = re.findall(r"\*\*([^*]+)\*\*", (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8"))
    files = [path for kind in ("*.py", "*.yml") for path in (CHECKOUT / "plugins").rglob(kind)]
    code = " ".join(" ".join(path.read_text("utf-8").lower().split()) for path in files)
    assert 0 < len(words) == len(set(words)) <= 60
    assert [word for word in words if word.lower() not in code] == []


@pytest.mark.parametrize("entry_point", ["main", "merge"])
def test_the_role_takes_the_values_that_the_report_takes(entry_point: str) -> None:
    """Of each variable that is an option of fleet_report: the code, the page of the module, and that of the role."""
    role = CHECKOUT / "roles" / "drift_report"
    names = yaml.safe_load((role / "vars/main.yml").read_text("utf-8"))["drift_report_option_names"]
    specification = yaml.safe_load((role / "meta/argument_specs.yml").read_text("utf-8"))["argument_specs"]
    of_role = specification[entry_point]["options"]
    compared = {}
    for option, taken in ActionModule.ARGUMENTS.items():
        if "choices" in taken and names[option] in of_role:
            compared[option] = taken["choices"]
            assert modules()["fleet_report"][option]["choices"] == taken["choices"], option
            assert of_role[names[option]]["choices"] == taken["choices"], option
    assert compared["fail_on"] == list(GATES)
    assert set(compared) == ({"forms", "fail_on", "look_at"} if entry_point == "main" else {"forms", "fail_on"})


@pytest.mark.parametrize("module", ["kubelet_config", "rollout_info"])
def test_the_settings_are_documented_as_they_are_taken(module: str) -> None:
    documented = {name: option for name, option in modules()[module].items() if name in SETTINGS_ARGUMENTS.options}
    shown = {name: as_taken(option) for name, option in documented.items()}
    assert shown == {name: as_taken(option) for name, option in SETTINGS_ARGUMENTS.options.items()}


def test_the_role_takes_every_setting_as_modules_take_it() -> None:
    """The variable of a setting is kubelet_ and its name. The module checks what is within a list or mapping."""
    role = CHECKOUT / "roles" / "kubelet"
    variables = yaml.safe_load((role / "vars/main.yml").read_text("utf-8"))
    names = [(name, "kubelet_" + name) for name in SETTINGS_ARGUMENTS.options]
    assert list(variables["kubelet_setting_names"].items()) == names
    assert set(names) <= set(variables["kubelet_option_names"].items())
    specification = yaml.safe_load((role / "meta/argument_specs.yml").read_text("utf-8"))["argument_specs"]
    of_role = specification["main"]["options"]
    for name, option in SETTINGS_ARGUMENTS.options.items():
        assert as_taken(of_role["kubelet_" + name]) == {**as_taken(option), "options": {}}, name


def as_taken(option: Any) -> dict[str, Any]:
    """Return what code and documentation say of an option, in one form."""
    within = option.get("options") or option.get("suboptions") or {}
    plain = {key: option[key] for key in ("type", "elements", "choices", "required", "default") if option.get(key)}
    return {**plain, "options": {name: as_taken(inner) for name, inner in within.items()}}


def test_the_readme_of_the_role_and_the_guide_name_each_gate() -> None:
    for path in (CHECKOUT / "roles/drift_report/README.md", GUIDES / "drift_report.rst"):
        text = path.read_text("utf-8")
        assert [gate for gate in GATES if not re.search("`%s`" % gate, text)] == [], path

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/variables.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import INTERNAL, KNOWN, misspelled
from ansible_collections.kubenode.cpu_manager.tests.support.own_variables import (
    FILES,
    read_in,
    registered_in,
    scoped_in,
)

CHECKOUT = Path(__file__).parents[4]
PREFIXES = (
    "cache_",
    "cpu_manager_",
    "drift_report_",
    "housekeeping_",
    "isolation_benchmark_",
    "kubelet_",
    "reconcile_",
)


def options_of_roles() -> Iterator[str]:
    for path in CHECKOUT.glob("roles/*/meta/argument_specs.yml"):
        for entry_point in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            yield from entry_point.get("options", {})


def variables_of_playbooks() -> Iterator[str]:
    for path in CHECKOUT.glob("playbooks/**/*.yml"):
        yield from re.findall(r"\bcpu_manager_[a-z_]+", path.read_text(encoding="utf-8"))


def test_all_that_an_operator_can_set_is_known() -> None:
    assert {*options_of_roles(), *variables_of_playbooks()} == KNOWN


@pytest.mark.parametrize("entry_point", ["main", "merge"])
def test_the_role_drift_report_takes_what_it_uses(entry_point: str) -> None:
    role = CHECKOUT / "roles" / "drift_report"
    specification = yaml.safe_load((role / "meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    tasks = (role / "tasks" / (entry_point + ".yml")).read_text(encoding="utf-8")
    used = set(re.findall(r"\bdrift_report_\w+", tasks)) - {
        "drift_report_check",
        "drift_report_hosts",
        "drift_report_option_names",
        "drift_report_pattern",
        "drift_report_written",
    }
    assert set(specification[entry_point]["options"]) == used


def test_no_name_of_the_collection_s_own_is_misspelled() -> None:
    names = {
        name
        for path in [*CHECKOUT.glob("roles/**/*.yml"), *CHECKOUT.glob("playbooks/*.yml")]
        for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", path.read_text(encoding="utf-8"))
        if name.startswith(PREFIXES) and "kubelet_" + name not in KNOWN
    } - {path.stem for path in CHECKOUT.glob("plugins/modules/*.py")}
    assert len(names) > 50
    assert misspelled(names) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        # A letter that is wrong, missing, too many, swapped; two words with one.
        ("kubelet_cpu_manager_polcy", "kubelet_cpu_manager_policy"),
        ("kubelet_cpu_manager_pollicy", "kubelet_cpu_manager_policy"),
        ("kubelet_cpu_manager_poilcy", "kubelet_cpu_manager_policy"),
        ("kubelet_cpu_manager_policu", "kubelet_cpu_manager_policy"),
        ("kubelet_cpu_manger_polcy", "kubelet_cpu_manager_policy"),
        ("kublet_cpu_manager_policy", "kubelet_cpu_manager_policy"),
        ("kubelet_cup_manager_policy", "kubelet_cpu_manager_policy"),
        ("kubelet_cpu_manager_policy_option", "kubelet_cpu_manager_policy_options"),
        ("kubelet_reserved_system_cpu", "kubelet_reserved_system_cpus"),
        ("kubelet_kube_reserved_cpus", "kubelet_kube_reserved_cpu"),
        ("kubelet_topology_manager_policie", "kubelet_topology_manager_policy"),
        ("cpu_manager_serail", "cpu_manager_serial"),
        ("cpu_manager_host", "cpu_manager_hosts"),
        ("reconcile_stat", "reconcile_state"),
        ("drift_report_titel", "drift_report_title"),
        # Underscores, capitals and hyphens.
        ("kubelet-cpu-manager-policy", "kubelet_cpu_manager_policy"),
        ("kubelet_cpumanager_policy", "kubelet_cpu_manager_policy"),
        ("kubelet_cpu__manager_policy", "kubelet_cpu_manager_policy"),
        ("kubelet_kube_config", "kubelet_kubeconfig"),
        ("kubelet_CPU_manager_policy", "kubelet_cpu_manager_policy"),
        # The option of a module.
        ("cpu_manager_policy", "kubelet_cpu_manager_policy"),
        ("cpu_manager_reconcile_period", "kubelet_cpu_manager_reconcile_period"),
        # A word is missing.
        ("kubelet_cpu_policy", "kubelet_cpu_manager_policy"),
        ("kubelet_reserved_cpus", "kubelet_reserved_system_cpus"),
        ("kubelet_manager_policy_options", "kubelet_cpu_manager_policy_options"),
        # What begins so is nothing but ours.
        ("cpu_manager_canary", "cpu_manager_canaries"),
        ("cpu_manager_save_redcat", "cpu_manager_save_redact"),
        ("housekeeping_stat", "housekeeping_state"),
        ("isolation_benchmark_runns", "isolation_benchmark_runs"),
        ("drift_report_fail", "drift_report_fail_on"),
        ("cpu_manager_xyzzy", ""),
        ("reconcile_frobnicate", ""),
    ],
)
def test_a_name_that_is_nearly_one_of_ours(name: str, meant: str) -> None:
    assert misspelled(["inventory_hostname", name]) == [{"name": name, "meant": meant}]
    if not name.startswith("cpu_manager_"):
        # Another place may set the right one, and this host the wrong one.
        assert misspelled([meant, name]) == [{"name": name, "meant": meant}]


@pytest.mark.parametrize(
    "name",
    [
        # Of kubespray's inventories.
        "kubelet_max_pods",
        "kubelet_systemd_hardening",
        "kubelet_secure_addresses",
        "kubelet_rotate_certificates",
        "kubelet_config_extra_args",
        "kubelet_node_config_extra_args",
        "kubelet_kubelet_cgroups",
        "kubelet_shutdown_grace_period",
        "kubelet_custom_flags",
        "kube_cpu_reserved",
        "system_memory_reserved",
        # They share a prefix, or are other words.
        "kubelet_reserved",
        "kubelet_cpu",
        "kubelet_kube_reserved_gpu",
        "kubelet_node_labels",
        "kubelet_node_role",
        "kubelet_api_port",
        "kubelet_cpu_manager",
        "kubelet_cpu_manager_state",
        "kubelet_drain_pods",
        # Two words, which may be anybody's.
        "kubelet_config",
        "kubelet_version",
        "kubelet_root",
        "cache_dir",
        "cache_valid_time",
        "reconcile",
        "reserved_memory",
        "topology_manager_policy",
        "k",
        "x" * 1000,
        "kubelet_" * 100,
    ],
)
def test_a_name_that_only_shares_a_prefix_is_left_alone(name: str) -> None:
    assert misspelled([name]) == []


def test_what_our_variable_is_made_of_is_left_alone() -> None:
    assert misspelled(["kubelet_cpu_manager_policy", "cpu_manager_policy"]) == []
    made: dict[str, object] = {"kubelet_cpu_manager_policy": "{{ policy }}", "policy": "{{ cpu_manager_policy }}"}
    assert misspelled({**made, "cpu_manager_policy": "static"}) == []


def test_the_option_of_a_module_beside_the_variable_has_no_effect() -> None:
    variables = {"kubelet_cpu_manager_policy": "none", "cpu_manager_policy": "static"}
    assert misspelled(variables) == [{"name": "cpu_manager_policy", "meant": "kubelet_cpu_manager_policy"}]


def test_a_variable_that_has_the_settings_as_keys_is_several_ones() -> None:
    variables = {"kubelet": {"cpu_manager_policy": "static", "max_pods": 110}}
    assert misspelled(variables) == [{"name": "kubelet.cpu_manager_policy", "meant": "kubelet_cpu_manager_policy"}]
    assert misspelled({"kubelet": {"max_pods": 110}}) == misspelled({"kubelet": "1.36"}) == []


def test_a_word_that_is_missing_late_is_meant_rather() -> None:
    assert "kubelet_dra_reserved_cpus" in KNOWN
    assert misspelled(["kubelet_reserved_cpus"])[0]["meant"] == "kubelet_reserved_system_cpus"


def test_the_names_of_the_roles_own_are_these() -> None:
    own = {name for path in FILES for name in read_in(path) | registered_in(path) | scoped_in(path)}
    ours = tuple(prefix for prefix in PREFIXES if prefix != "kubelet_")
    assert {name for name in own - KNOWN if name.startswith(ours)} == set(INTERNAL)


@given(st.sampled_from(sorted(KNOWN)), st.data())
def test_two_letters_swapped_in_a_word_are_found(variable: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(variable) - 2))
    name = variable[:at] + variable[at + 1] + variable[at] + variable[at + 2 :]
    if name != variable and "_" not in (variable[at], variable[at + 1]):
        assert [suggestion["name"] for suggestion in misspelled([name])] == [name]

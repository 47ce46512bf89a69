# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/facts.py, and that it knows every name that the YAML of roles and playbooks reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.facts import check_facts, is_ours
from ansible_collections.kubenode.cpu_manager.tests.support.own_variables import (
    FILES,
    options,
    read_in,
    registered_in,
    scoped_in,
)

# Ansible has these itself, with priority over facts (ansible_* are not made of facts, or are of no use there).
_OF_ANSIBLE = frozenset(("groups", "hostvars", "role_path", "item"))
# Of a playbook, read after they are registered alone, and too common for names of ours.
_AFTERWARDS = frozenset(("cpu",))


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-4:]))
def test_every_name_that_is_read_is_known(path: Path) -> None:
    names = read_in(path) | registered_in(path)
    others = {name for name in names - scoped_in(path) if not name.startswith("ansible_") and not is_ours(name)}
    assert others - _OF_ANSIBLE - _AFTERWARDS == set()


def test_names_are_found() -> None:
    assert len(set().union(*map(read_in, FILES))) > 200
    assert len(set().union(*map(registered_in, FILES))) > 50


def test_every_option_of_a_role_is_known() -> None:
    assert len(options()) > 100
    assert [name for name in options() if not is_ours(name)] == []


def test_honest_facts_are_left_alone() -> None:
    names = (
        "discovered_interpreter_python distribution module_setup gather_subset packages services processor_vcpus"
        " facter_kernel ohai_platform hostname nodename service_mgr date_time cache_size kube_version reconcile system"
        " local env lsb python cpu proposals saved"
    )
    check_facts({"inventory_hostname": "worker-1", "ansible_facts": dict.fromkeys(names.split(), "x")})
    check_facts({"inventory_hostname": "worker-1"})


@pytest.mark.parametrize(
    "name",
    [
        *("kubelet_kubeconfig", "kubelet_of_tomorrow", "cpu_manager_save_directory", "cache_state", "saved_here"),
        *("kube_override_hostname", "system_reserved", "omit", "group_names", "reconcile_release", "proposal"),
    ],
)
def test_a_name_of_ours_is_refused(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_facts({"inventory_hostname": "worker-1", "ansible_facts": {"distribution": "Debian", name: "x"}})
    assert refused.value.kind == "foreign_fact"
    assert str(refused.value).startswith("worker-1: facts of this host have names of variables")
    assert "(%s)" % name in str(refused.value)
    assert "set_fact and cacheable: true" in refused.value.remedy


def test_a_message_is_short_and_names_no_host_that_a_fact_names() -> None:
    facts = {"kubelet_%s%d" % ("x" * 500, number): 1 for number in range(3000)}
    with pytest.raises(RefusedError) as refused:
        check_facts({"inventory_hostname": "evil", "ansible_facts": {**facts, "inventory_hostname": "evil"}})
    assert str(refused.value).startswith("this host: ")
    assert " and 2996 more" in str(refused.value)
    assert len(str(refused.value)) < 1200

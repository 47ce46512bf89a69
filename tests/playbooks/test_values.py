# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values as they reach the modules through inventories, templates and the kubelet's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task

PLAN = {
    "name": "Plan",
    "ansible.builtin.include_role": {"name": "kubenode.cpu_manager.kubelet", "tasks_from": "plan"},
}
MEANT = 'the number 3 can mean CPU 3 or 3 CPUs; write "3" in quotes for the CPU, or '

# xeon's file, as other writers lay it out.
OTHER_LAYOUT = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 110.0
podPidsLimit: 1.1e3\t# a tab
kubeReserved: &little {cpu: 500m}
systemReserved:
  <<: *little
  memory: 1Gi
cpuManagerPolicy:\tnone
"""


def test_a_number_in_place_of_cpus_is_met_with_the_question_what_it_means(copy_of: CopyOf, tmp_path: Path) -> None:
    wanted: dict[str, dict[str, Any]] = {
        "number": {"kubelet_reserved_system_cpus": 3},
        "text": {"kubelet_reserved_system_cpus": "3"},
        "template": {"kubelet_reserved_system_cpus": "{{ the_cpu }}", "the_cpu": "3"},
        "count": {"kubelet_reservation": {"count": 3, "allow_split_core": True}},
        "nothing": {},
    }
    static = {"kubelet_cpu_manager_policy": "static", "kubelet_kube_reserved_cpu": "1"}
    hosts = {
        name: {"kubelet_node_root": str(copy_of("xeon", name)), **static, **variables}
        for name, variables in wanted.items()
    }
    before = fingerprint(tmp_path / "nodes")
    run = ansible_playbook(tmp_path / "run", play(PLAN), hosts)
    assert fingerprint(tmp_path / "nodes") == before
    refused = run.last("number")
    assert refused["outcome"] != "ok"
    assert MEANT in refused["msg"], run.account()
    plans = {name: run.last(name) for name in wanted if name != "number"}
    assert all(plan["outcome"] == "ok" for plan in plans.values()), run.account()
    assert plans["text"]["wanted"]["reserved_system_cpus"] == "3"
    assert plans["template"]["wanted"]["reserved_system_cpus"] == "3"
    assert plans["count"]["wanted"]["reserved_system_cpus"].count(",") + 1 == 3
    assert "reserved_system_cpus" not in plans["nothing"]["wanted"]


@pytest.mark.parametrize("given", [3, 1.5, True, [0, 4]])
def test_a_module_s_failure_has_a_kind_and_a_remedy(given: Any, copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {"node": {"root": str(copy_of("xeon", "node"))}}
    tasks = play(task("drift_info", root="{{ root }}", reserved_system_cpus=given))
    result = ansible_playbook(tmp_path / "run", tasks, hosts).last("node")
    assert result["failure"]["kind"] == "input"
    assert result["failure"]["where"] == "reserved_system_cpus"
    assert ('write "3" in quotes' if given == 3 else "write the CPUs as one text") in result["failure"]["remedy"]


def test_the_kubelet_s_yaml_is_read_as_it_is_and_changed_where_nothing_else_shares_the_place(
    copy_of: CopyOf, tmp_path: Path
) -> None:
    wanted = {
        "free": {"cpu_manager_reconcile_period": "5s"},
        "shared": {"kube_reserved_cpu": "1"},
        "unknown": {"cpu_manager_reconcile_period": "9999999h"},
    }
    hosts, files = {}, {}
    for name, parameters in wanted.items():
        root = copy_of("xeon", name)
        files[name] = root / "var/lib/kubelet/config.yaml"
        files[name].write_text(OTHER_LAYOUT, encoding="utf-8")
        hosts[name] = {"root": str(root), "wanted": parameters}
    tasks = play(
        task("kubelet_config", root="{{ root }}"),
        module_defaults={"kubenode.cpu_manager.kubelet_config": "{{ wanted }}"},
    )
    run = ansible_playbook(tmp_path / "run", tasks, hosts)
    assert run.last("free")["changed"], run.account()
    assert files["free"].read_text(encoding="utf-8") == OTHER_LAYOUT + "cpuManagerReconcilePeriod: 5s\n"
    for name, message in {
        "shared": "line 5: kubeReserved.cpu cannot be changed in the value of an anchor, which line 7 repeats;"
        " write the value out at both places",
        "unknown": "cpu_manager_reconcile_period: duration '9999999h': it is longer than Go can count",
    }.items():
        assert message in run.last(name)["msg"], run.account()
        assert files[name].read_text(encoding="utf-8") == OTHER_LAYOUT


def test_a_variable_that_is_nearly_one_of_ours_is_found_in_an_inventory(tmp_path: Path) -> None:
    hosts = {
        "right": {"kubelet_cpu_manager_policy": "static", "kubelet_max_pods": 110},
        "wrong": {"kubelet_cpu_manager_polcy": "static", "kubelet_systemd_hardening": True},
    }
    names = "{{ query('ansible.builtin.varnames', '.+') | kubenode.cpu_manager.misspelled_variables }}"
    show = {"name": "Find them", "ansible.builtin.debug": {"msg": names}}
    roles = {"name": "As the role does", "ansible.builtin.import_role": {"name": "kubenode.cpu_manager.kubelet"}}
    run = ansible_playbook(tmp_path / "run", play(show, {**roles, "when": False}), hosts)
    assert run.results["right"][0]["msg"] == [], run.account()
    meant = {"name": "kubelet_cpu_manager_polcy", "meant": "kubelet_cpu_manager_policy"}
    assert run.results["wrong"][0]["msg"] == [meant], run.account()

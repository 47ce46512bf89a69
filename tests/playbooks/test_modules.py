# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules as ansible-playbook runs them: check mode tells what the run does, a second run does nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import NEWEST_MINOR, version_notes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.tests.machines import texts
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

from .conftest import CopyOf, ansible_playbook, check_and_run, play, task

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "cpu_manager_reconcile_period": "5s",
    "topology_manager_policy": "restricted",
    "topology_manager_scope": "pod",
    "reservation": {"count": 4, "strategy": "spread"},
}

# Every module of the collection with parameters that give it something to do on each node of the demo.
MODULES: dict[str, dict[str, Any]] = {
    "cpu_topology_info": {},
    "reserved_cpus": {"count": 4},
    "kubelet_config": WANTED,
    "checkpoint": {**WANTED, "discard_assignments": True},
    "checkpoint_info": WANTED,
    "drift_info": WANTED,
    # Of the demo's nodes, epyc has cgroups. On the others there is an answer, no failure.
    "reconcile": {},
    "rollout_info": {**WANTED, "beside_cpus": {"devices": [{"resource": "x.com/gpu", "count": 1}]}},
    "admission_info": {"devices": [{"resource": "x.com/gpu", "count": 1}]},
    "throttling_info": {},
    # On a saved node it samples nothing.
    "isolation_info": {"seconds": 1},
    "housekeeping_info": {},
    # None of them has resctrl.
    "cache_info": {},
    "rollout_journal": {},
    "start_check": WANTED,
    # On a saved node there is no trial.
    "kubelet_trial": WANTED,
    "allocation_plan": {**WANTED, "pods": [{"metadata": {"name": "app"}, "spec": {"containers": [{"name": "app"}]}}]},
}

# Most of the demo's nodes have no cgroups; test_cpuset.py asks it the same. The program is tested with its role. No
# kubelet runs on them, to change or wait for; test_service.py and tests/cluster have some. Saving is for test_save.py,
# and reports are for test_report.py, benchmarks for test_isolation_benchmark.py, the module housekeeping for
# test_housekeeping.py, cache_partition for test_cache.py, the DRA driver and the runtime for test_dra.py,
# kubernetes.core for test_kubernetes_core.py, proposals for test_propose.py, simulations for test_simulate.py,
# verdicts on a fleet are for tests/cluster, the table of a plan is for test_allocation.py, fixed values and Ansible's
# own modules for test_hostile_facts.py and test_reconcile_role.py.
ELSEWHERE = {
    "allocation_report",
    "cache_partition",
    "cpuset",
    "dra_info",
    "fix_values",
    "fleet_report",
    "housekeeping",
    "isolation_benchmark",
    "isolation_benchmark_report",
    "kubelet_change",
    "kubernetes_core_check",
    "node_report",
    "node_save",
    "node_textfile",
    "on_api_host",
    "on_node",
    "policy_simulation",
    "reconcile_program",
    "rollout_verdict",
    "runtime_config",
    "settings_proposal",
    "wait_for_kubelet",
}

NODES = ("xeon", "epyc", "edge")


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what only a run can know."""
    return {key: value for key, value in result.items() if key not in ("backup_file", "backup_files", "task")}


def test_all_modules_are_here() -> None:
    modules = Path(__file__).parent.parent.parent / "plugins" / "modules"
    assert {path.stem for path in modules.glob("*.py")} == set(MODULES) | ELSEWHERE


def test_check_mode_tells_what_the_run_does_and_a_second_run_does_nothing(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {}
    for module in MODULES:
        for node in NODES:
            name = "%s_%s" % (module, node)
            hosts[name] = {"root": str(copy_of(node, name))}
    plays = [
        entry
        for module, parameters in MODULES.items()
        for entry in play(
            task(module, **parameters, root="{{ root }}"), hosts=",".join("%s_%s" % (module, node) for node in NODES)
        )
    ]
    check, run = check_and_run(tmp_path, plays, hosts)
    again = ansible_playbook(tmp_path / "again", plays, hosts)
    assert again.status == 0, again.account()

    changed = set()
    for host in hosts:
        told, done, last = (results.last(host) for results in (check, run, again))
        assert comparable(told) == comparable(done)
        assert not last["changed"]
        if host.startswith("rollout_info_"):
            beside = run.last(host.replace("rollout_info", "admission_info"))
            names = ("memory", "numa_memory", "numa_distances", "devices", "configuration")
            assert {name: done["beside_cpus"][name] for name in names} == {name: beside[name] for name in names}
        if done["changed"]:
            changed.add(host)
            assert done["diff"]["before"] != done["diff"]["after"]
            # Of a cgroup's file there is none.
            assert host == "reconcile_epyc" or Path(done["backup_file"]).is_file()
    # Modules that read never change; of the checkpoints only epyc's can stay.
    assert changed == (
        {"kubelet_config_" + node for node in NODES} | {"checkpoint_xeon", "checkpoint_edge", "reconcile_epyc"}
    )


def test_every_module_notes_a_version_that_is_not_tested_or_not_known(copy_of: CopyOf, tmp_path: Path) -> None:
    modules = ("kubelet_config", "checkpoint", "checkpoint_info", "drift_info", "start_check", "allocation_plan")
    hosts = {name: {"root": str(copy_of("epyc", name))} for name in modules}
    plays = [
        entry
        for name in modules
        for version in ({"kubelet_version": "1.30"}, {})
        for entry in play(task(name, **MODULES[name], **version, root="{{ root }}"), hosts=name)
    ]
    run = ansible_playbook(tmp_path / "run", plays, hosts, "--check")
    assert run.status == 0, run.account()
    for name in modules:
        old, unknown = (result["notes"] for result in run.results[name])
        assert set(version_notes(30)) <= set(old), name
        assert set(version_notes(NEWEST_MINOR, True)) <= set(unknown), name


def test_what_is_found_is_what_is_accepted(copy_of: CopyOf, tmp_path: Path) -> None:
    """The round-trip law: a good node's answer changes nothing on that node, and makes another node the same."""
    good, edge = copy_of("epyc", "good"), copy_of("edge", "other")
    hosts = {"good": {"root": str(good)}}
    # One of its containers does not have its CPUs.
    tasks = (task(module, root="{{ root }}") for module in ("reconcile", "drift_info"))
    found = ansible_playbook(tmp_path / "read", play(*tasks), hosts).last("good")
    assert found["status"] == "nothing wanted"
    assert set(found["found"]) == set(SETTINGS)
    assert [note for note in found["notes"] if "run on the reserved CPUs 0-3, too, which is by design" in note]

    same = play(
        task("kubelet_config", root="{{ root }}", **found["found"]),
        task("drift_info", root="{{ root }}", **found["found"]),
    )
    run = ansible_playbook(tmp_path / "same", same, hosts, "--check")
    config, drift = run.results["good"]
    assert run.status == 0, run.account()
    assert not config["changed"]
    assert config["settings"] == found["found"]
    assert drift["drift"] == []

    # Its reserved CPUs 0-3 exist on the smaller machine, too.
    hosts = {"other": {"root": str(edge)}}
    run = ansible_playbook(tmp_path / "apply", play(task("kubelet_config", root="{{ root }}", **found["found"])), hosts)
    assert run.status == 0, run.account()
    assert run.last("other")["changed"]
    run = ansible_playbook(tmp_path / "compare", play(task("drift_info", root="{{ root }}")), hosts)
    assert run.last("other")["found"] == found["found"]


def test_readers_agree_on_one_machine(copy_of: CopyOf, tmp_path: Path) -> None:
    """cpu_topology_info reads a text as it reads the tree that the text was taken from."""
    shape = parse_name("2s1n12c2t+interleaved")
    topology = shape.topology()
    sources = {
        "sysfs": "",
        "cpuinfo": "",
        "lscpu": texts.lscpu(topology),
        "hwloc": texts.hwloc(topology),
        "cadvisor": texts.machine_info(topology),
    }
    root = copy_of("xeon", "xeon")
    hosts = {source: {"text": text, "root": str(root)} for source, text in sources.items()}
    tasks = task("cpu_topology_info", root="{{ root }}", source="{{ inventory_hostname }}", text="{{ text }}")
    run = ansible_playbook(tmp_path / "run", play(tasks), hosts)
    assert run.status == 0, run.account()
    expected = topology.to_dict()
    for source in sources:
        found = run.last(source)["topology"]
        for key in ("online", "cores", "sockets"):
            assert found[key] == expected[key], (source, key)
        if source != "cpuinfo":
            for key in ("numa_nodes", "l3_caches"):
                assert list(found[key].values()) == list(expected[key].values()), (source, key)
        assert run.last(source)["kubelet_view"]["cpus_per_core"] == 2


def test_the_algebra_in_a_playbook(tmp_path: Path) -> None:
    prefix = "kubenode.cpu_manager."
    expressions = {
        "'3,1,0-1,8-15:2/4' | %scpuset": "0-1,3,8-9,12-13",
        "[3, 1, 2] | %scpuset": "1-3",
        "'0-3' | %scpuset_union('8-11', [16])": "0-3,8-11,16",
        "'0-7' | %scpuset_intersection('2-11', '0-4')": "2-4",
        "'0-7' | %scpuset_difference('0-1', '7')": "2-6",
        "'0-3' | %scpuset_symmetric_difference('2-5')": "0-1,4-5",
        "'0-2,24' | %scpuset_list": [0, 1, 2, 24],
        "'0-3,32' | %scpuset_mask": "1,0000000f",
        "'ff,ffffffff' | %scpuset_from_mask": "0-39",
        "'0,1' is %scpuset_equal('0-1')": True,
        "'0,1' is %scpuset_subset('1-4')": False,
        "'0-9' is %scpuset_superset('1-4')": True,
        "'0-1' is %scpuset_disjoint('2-4')": True,
        "'3-1' is %scpuset": False,
    }
    results = {str(number): "{{ %s }}" % (text % prefix) for number, text in enumerate(expressions)}
    tasks = {"name": "Ask", "ansible.builtin.debug": {"msg": results}}
    wrong = {"name": "Fail", "ansible.builtin.debug": {"msg": "{{ '0,,2' | %scpuset }}" % prefix}}
    run = ansible_playbook(tmp_path, play(tasks, wrong), {"node": {}})
    told = run.results["node"][0]["msg"]
    assert [told[str(number)] for number in range(len(expressions))] == list(expressions.values())
    assert run.status != 0
    assert "CPU list '0,,2', position 3: expected a CPU id, found ','" in json.dumps(run.last("node"))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules say of the next start of a node's kubelet, on nodes whose pods would not all be admitted again."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import MemoryConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import Listed, write_containers
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import GPU, device_state
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY, write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

GIB = 1 << 30
STATIC = "cgroupDriver: systemd\ncpuManagerPolicy: static\nreservedSystemCPUs: 0,8\n"
MEMORY = (
    "memoryManagerPolicy: Static\nevictionHard: {memory.available: 100Mi}\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)
CHECKPOINT, MEMORY_STATE = ("/var/lib/kubelet/%s_manager_state" % name for name in ("cpu", "memory"))
# Changes no rule of admission.
PERIOD = {"cpu_manager_policy": "static", "cpu_manager_reconcile_period": "5s"}
LOST = "pods-lost-at-restart"


class Asked:
    """Modules on a node on which a and b run, each with the CPUs and the memory of a NUMA node."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        write_machine(root, "2s1n4c2t")
        write(root, "/proc/meminfo", "MemTotal: %d kB\n" % (2 * NODE_MEMORY))
        self.run({"a": "1-2,9-10", "b": "4-5,12-13"})

    def run(self, own: dict[str, str], configuration: str = "", policy: str = "static", **init: str) -> None:
        """Write the files of the node. init: the CPUs of init containers that have ended."""
        write(self.root, "/var/lib/kubelet/config.yaml", HEADER + STATIC + configuration)
        entries = {"uid-" + name: {"app": cpus(assigned)} for name, assigned in own.items() if assigned}
        for name, assigned in init.items():
            entries["uid-" + name]["init"] = cpus(assigned)
        taken = [cpu for assigned in own.values() if assigned for cpu in cpus(assigned)]
        free = cpus("0-15") - cpus(",".join(map(str, taken)))
        state = State(free, entries) if policy == "static" else State(cpus(""), {})
        write(self.root, CHECKPOINT, write_checkpoint(policy, state))
        listed = [
            Listed("uid-" + name, "Guaranteed", "shop/" + name, "app", assigned) for name, assigned in own.items()
        ]
        write_containers(self.root, listed, "0-15", "0")

    def with_memory(self) -> None:
        memory = NODE_MEMORY * 1024
        manager = StaticMemory(
            MemoryConfig("Static", {0: {"memory": GIB}}, 34, machine={node: {"memory": memory} for node in (0, 1)})
        )
        for uid, node in (("uid-a", 0), ("uid-b", 1)):
            size = memory - 2 * GIB
            manager.entries[uid] = {"app": [{"numaAffinity": [node], "type": "memory", "size": size}]}
            manager._reserve([node], "memory", size)
        write(self.root, MEMORY_STATE, manager.state())

    def ask(self, module: str, **parameters: object) -> Any:
        arguments = {"root": str(self.root), "kubelet_version": "1.34.1", **parameters}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            import_module("ansible_collections.kubenode.cpu_manager.plugins.modules." + module).main()
        answer = json.loads(self.capsys.readouterr().out)
        assert "failed" not in answer, answer
        return answer

    def next_start(self) -> Any:
        """Return what is said of the next start; empty for nothing."""
        drift = self.ask("drift_info")
        return next((note for check, note in zip(drift["note_checks"], drift["notes"]) if check == LOST), "")


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(tmp_path, capsys)


def fates(answer: Any) -> dict[str, str]:
    return {row["pod"]: row["fate"] for row in answer["restart"]}


def kinds(answer: Any) -> list[str]:
    return [refusal["kind"] for refusal in answer["refusals"]]


def forgetting(asked: Asked) -> None:
    """Write the files of a node on which the init containers have ended and their memory is forgotten."""
    asked.run(
        {"a": "1-2,9-10", "b": "4-5,12-13"}, MEMORY + "topologyManagerPolicy: single-numa-node\n", a="1,9", b="4,12"
    )
    asked.with_memory()


def test_a_harmless_change_drains_a_node_whose_pods_would_not_be_admitted_again(asked: Asked) -> None:
    """Their init containers' memory would be looked for once more. Who runs with nothing to lose is not drained."""
    plan = asked.ask("rollout_info", **PERIOD)
    assert (plan["drain"], plan["refusals"], fates(plan)) == (False, [], {"shop/a": "keeps", "shop/b": "keeps"})
    assert asked.next_start() == ""
    forgetting(asked)
    note = asked.next_start()
    assert note.startswith(
        "the next start of the kubelet, whoever starts it, admits all pods that run anew, and 2 pods"
    )
    assert "shop/a: UnexpectedAdmissionError, " in note
    plan = asked.ask("rollout_info", **PERIOD)
    assert fates(plan) == {"shop/a": "refused", "shop/b": "refused"}
    assert (plan["drain"], plan["drains"], plan["refusals"]) == (True, True, [])


def test_without_a_drain_a_change_that_would_lose_pods_is_refused_unless_it_is_allowed_to(asked: Asked) -> None:
    forgetting(asked)
    plan = asked.ask("rollout_info", **PERIOD, drain=False)
    assert (plan["drain"], plan["drains"], kinds(plan)) == (True, False, ["assignments"])
    text = plan["refusals"][0]["text"]
    assert "these would lose what they have: shop/a: UnexpectedAdmissionError, " in text
    assert kinds(asked.ask("rollout_info", **PERIOD, drain=False, discard_assignments=True)) == []
    # Where nothing is changed, nobody starts the kubelet.
    plan = asked.ask("rollout_info", cpu_manager_policy="static", drain=False)
    assert (plan["restart"], plan["refusals"]) == ([], [])


def test_a_plan_says_what_the_next_start_does_with_pods_that_are_listed(asked: Asked) -> None:
    forgetting(asked)
    limits = {"limits": {"cpu": "4", "memory": "62Gi"}}
    init = {"name": "init", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
    listed = {
        "metadata": {"name": "a", "namespace": "shop", "uid": "uid-a"},
        "spec": {"initContainers": [init], "containers": [{"name": "app", "resources": limits}]},
    }
    plan = asked.ask("allocation_plan", pods=[listed])
    assert {row["container"]: row["cpus"] for row in plan["containers"]} == {"init": "1,9", "app": "1-2,9-10"}
    # That of a is small enough, and of b it is not known.
    assert (fates(plan), plan["refused"]) == ({"shop/a": "keeps", "shop/b": "refused"}, [])
    assert any("1 pod would lose what they have: shop/b" in note for note in plan["notes"])
    assert asked.ask("allocation_plan", pods=[listed], from_checkpoint=False)["restart"] == []


def test_whole_cores_only_is_asked_before_it_is_seen_what_a_pod_has(asked: Asked) -> None:
    configuration = "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
    asked.run({"a": "1-3,9-11", "b": "4-6,12-14"}, configuration)
    assert "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2" in asked.next_start()
    asked.run({"a": "1,9", "b": "4,12"}, configuration)
    assert asked.next_start() == ""


def test_a_device_of_a_container_that_does_not_run_is_not_there_before_its_plugin(asked: Asked) -> None:
    state = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
    write(asked.root, state, device_state({GPU: ["x"]}, ("uid-a", {"0": ["x"]}), container="app"))
    assert asked.next_start() == ""
    write(asked.root, state, device_state({GPU: ["x"]}, ("uid-a", {"0": ["x"]}), container="crashed"))
    assert "cannot allocate unhealthy devices nvidia.com/gpu" in asked.next_start()
    plan = asked.ask("rollout_info", **PERIOD)
    assert (plan["drains"], fates(plan)) == (True, {"shop/a": "refused", "shop/b": "keeps"})


def test_the_first_static_policy_without_a_drain_may_not_refuse_a_pod_that_runs(asked: Asked) -> None:
    """A pod of ten CPUs fits no NUMA node; what it asks for is its quota's."""
    write(asked.root, "/var/lib/kubelet/config.yaml", HEADER + "cgroupDriver: systemd\n")
    wanted = {
        "cpu_manager_policy": "static",
        "reserved_system_cpus": "0,8",
        "topology_manager_policy": "single-numa-node",
        "drain": False,
    }
    write(asked.root, CHECKPOINT, write_checkpoint("none", State(cpus(""), {})))
    write(asked.root, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n")
    for place in asked.root.glob("sys/fs/cgroup/**/*uid_[ab]*/*"):
        if place.is_dir():
            count = 10 if "uid_a" in str(place) else 2
            (place / "cpu.max").write_text("%d 100000\n" % (count * 100000), encoding="ascii")
    plan = asked.ask("rollout_info", **wanted)
    assert fates(plan) == {"shop/a": "refused", "shop/b": "moves"}
    assert kinds(plan) == ["assignments"]
    assert "wants 10 CPUs of 1 NUMA node" in plan["refusals"][0]["text"]
    assert "shop/b" not in plan["refusals"][0]["text"]


def test_the_memory_manager_is_turned_on_without_a_drain_where_it_is_not_seen_what_memory_pods_have(
    asked: Asked,
) -> None:
    """No file says it, and nobody can be asked: that is no reason to say that the kubelet refuses them."""
    wanted = {"memory_manager_policy": "Static", "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}]}
    asked.run(
        {"a": "1-2,9-10", "b": "4-5,12-13"},
        "evictionHard: {memory.available: 100Mi}\nsystemReserved: {memory: 924Mi}\n",
    )
    plan = asked.ask("rollout_info", cpu_manager_policy="static", **wanted, drain=False)
    assert (fates(plan), plan["refusals"]) == ({"shop/a": "keeps", "shop/b": "keeps"}, [])
    assert {row["assumed"] for row in plan["restart"]} == {
        "what container app asks for is not known, and its memory is not counted"
    }


def test_a_unit_that_removes_the_state_moves_pods_at_each_start(asked: Asked) -> None:
    """What they get then is not what they have, whatever the state says now."""
    asked.run({"a": "4-5,12-13", "b": "1-2,9-10"})
    assert fates(asked.ask("rollout_info", **PERIOD)) == {"shop/a": "keeps", "shop/b": "keeps"}
    unit = "[Service]\nExecStartPre=-/bin/rm -f %s\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n"
    write(asked.root, "/etc/systemd/system/kubelet.service", unit % CHECKPOINT)
    plan = asked.ask("rollout_info", **PERIOD)
    assert (fates(plan), plan["drains"]) == ({"shop/a": "moves", "shop/b": "moves"}, True)
    (row, _b) = plan["restart"]
    assert row["why"] == "container app: from CPUs 4-5,12-13 to CPUs 1-2,9-10"

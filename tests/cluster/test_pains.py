# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong for users today, as a real kubelet does it, and what this collection does about it: a test for each.

Each begins with what users do without it, and the failure that they meet. Where an option is younger than the kubelet
that can be built here, the stand-in takes its place.

The sixth, the ninth, the eleventh and the twelfth need cgroups: tests/kernel/test_pains.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import (
    Result,
    Run,
    ansible_playbook,
    play,
    task,
)
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import SERVICE_MANAGER, private_init
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .control_plane import ControlPlane
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode, joining, saved, wait_until
from .pods import Pods

MACHINE = "1s4c2t"  # 8 CPUs; a core is n, n+4
RESERVED = {"reservedSystemCPUs": "0,4"}
STATIC = {"cpuManagerPolicy": "static", **RESERVED}
TO_STATIC = {"kubelet_cpu_manager_policy": "static"}

REFUSED = "Failed to start ContainerManager"
END = "service: end "


class Node(KubeletNode):
    """A node, what users do with it, and what the collection does."""

    version = kubernetes.version()

    # --- by hand ----------------------------------------------------------------------------------------

    def runs(self, times: int = 1) -> None:
        """Wait until its kubelet has started so many times."""
        self.wait_for(STARTED, times)

    def edit(self, **settings: Any) -> None:
        """Change the configuration, as an editor or a template does it."""
        self.configure({**self.configuration(), **settings})

    def crashes(self, said: str) -> None:
        """Check that its kubelet says this and ends, whenever it is started again."""
        before = self.log().count("service: start")
        self.wait_for("service: start", before + 2)
        assert sum(said in line for line in self.log()) >= 1, self.log()
        assert self.is_active()

    def save(self, content: bytes) -> None:
        """Put a checkpoint there."""
        self.write(CHECKPOINT, content.decode("ascii"))

    def pool(self) -> str:
        """Return the CPUs that the checkpoint leaves to all other pods."""
        checkpoint = self.checkpoint()
        assert checkpoint is not None
        return checkpoint.default_cpu_set

    # --- with the collection ----------------------------------------------------------------------------

    def roll_out(self, **variables: Any) -> Run:
        """Run the role kubelet."""
        hosts = {
            self.name: {
                "kubelet_node_root": str(self.root),
                "kubelet_service": "kubelet-" + self.name,
                "kubelet_manage_service": True,
                "kubelet_target_version": self.version,
                "kubelet_drain": False,
                "kubelet_verify_seconds": 2,
                "kubelet_verify_timeout": 40,
                **variables,
            }
        }
        plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
        prefix = private_init(self.directory, {"kubelet-" + self.name: self.init_script()})
        return ansible_playbook(self.directory / "run", plays, hosts, prefix=prefix)

    def ask(self, module: str, **parameters: Any) -> Result:
        """Run a module that knows of the kubelet."""
        return self._ask(module, kubelet_version=self.version, **parameters)

    def plan_reservation(self, **parameters: Any) -> Result:
        """Run the module reserved_cpus."""
        return self._ask("reserved_cpus", **parameters)

    def _ask(self, module: str, **parameters: Any) -> Result:
        tasks = play(task(module, root=str(self.root), **parameters))
        return ansible_playbook(self.directory / "run", tasks, {self.name: {}}).last(self.name)


MakeNode = Callable[..., Node]


@pytest.fixture
def make(tmp_path: Path, private_services: None) -> Iterator[MakeNode]:
    """Yield a function that makes nodes, by configuration and kind of kubelet, and end their kubelets."""
    made: list[Node] = []

    def make_one(configuration: Mapping[str, Any], name: str = "worker", **keywords: Any) -> Node:
        machine = keywords.pop("machine", MACHINE)
        node = Node(tmp_path / name, machine, configuration, **keywords)
        node.version = kubernetes.version() if "real" in keywords else "1.36"
        made.append(node)
        node.start()
        return node

    yield make_one
    for node in made:
        node.stop()


@pytest.fixture
def join(make: MakeNode, control_plane: ControlPlane) -> Iterator[MakeNode]:
    """Yield a function that makes nodes of the cluster."""
    with joining(control_plane) as joined:

        def join_one(configuration: Mapping[str, Any], name: str, **keywords: Any) -> Node:
            node = make(configuration, name, control_plane=control_plane, **keywords)
            joined(node)
            return node

        yield join_one


def succeeded(run: Run) -> bool:
    assert run.status == 0, run.account()
    return True


def refusal(run: Run, name: str) -> str:
    """Return why the role refused."""
    assert run.status != 0
    result = run.last(name)
    assert result["outcome"] == "failed"
    message: str = result["msg"]
    return message


def starts(node: Node) -> int:
    return node.log().count("service: start")


def untouched(node: Node) -> tuple[object, ...]:
    """Return what a refusal leaves as it is: a kubelet that runs, its configuration and its checkpoint."""
    return starts(node), node.is_active(), node.read(CONFIG), node.read(CHECKPOINT)


def test_1_a_change_of_the_policy_leaves_the_old_checkpoint_behind(make: MakeNode, real_kubelet: Path) -> None:
    node = make(RESERVED, real=real_kubelet)
    node.runs()
    node.edit(cpuManagerPolicy="static")
    node.restart()
    node.crashes('configured policy "static" differs from state checkpoint policy "none"')
    # The role repairs it,
    assert succeeded(node.roll_out(**TO_STATIC))
    node.runs(times=2)
    # and where it makes the change itself, there is nothing to repair.
    before = starts(node)
    assert succeeded(node.roll_out(kubelet_cpu_manager_policy="none"))
    node.runs(times=3)
    assert starts(node) == before + 1
    assert node.configuration()["cpuManagerPolicy"] == "none"


def test_2_the_number_of_cpus_changed(make: MakeNode, real_kubelet: Path) -> None:
    node = make(STATIC, real=real_kubelet)
    node.runs()
    node.stop()
    node.save(saved("static", "0,3-4,7", one="1,5", two="2,6"))
    node.become(MACHINE + "+offline7")
    said = 'current set of available CPUs "0-6" doesn\'t match with CPUs in state "0-7"'
    # What the kubelet will say is known before,
    told = node.ask("drift_info", cpu_manager_policy="static")
    assert "as the node is, its kubelet would not start again: " + said in told["notes"]
    repaired = node.ask("checkpoint", cpu_manager_policy="static")
    assert repaired["changed"]
    node.save(saved("static", "0,3-4,7", one="1,5", two="2,6"))
    node.start()
    node.crashes(said)
    # and a repair leaves the pods where they are.
    assert repaired["after"]["assignments"] == {"pod-one": {"one": "1,5"}, "pod-two": {"two": "2,6"}}
    assert succeeded(node.roll_out(**TO_STATIC))
    node.runs(times=2)


def test_3_a_reserved_cpu_is_given_to_a_pod(join: MakeNode, pods: Pods) -> None:
    node = join({**STATIC, "reservedSystemCPUs": "0"}, "uneven", machine=MACHINE + "+offline5")
    pod = pods.run("one", "2")
    assert node.entries() == {pod["metadata"]["uid"]: {"main": "0,4"}}
    node.restart()
    node.crashes('not all reserved cpus: "0" are present in defaultCpuSet: "1-3,6-7"')
    # Whoever asked before any pod came was told.
    told = node.ask("start_check", cpu_manager_policy="static")
    assert any("the cores have unequal numbers of online threads" in finding["cause"] for finding in told["findings"])


def test_4_shared_pods_run_on_reserved_cpus(make: MakeNode) -> None:
    node = make(STATIC)
    node.runs()
    # The reserved CPUs are in the pool that all other pods run on.
    assert node.pool() == "0-7"
    strict = {"strict-cpu-reservation": "true"}
    node.edit(cpuManagerPolicyOptions=strict)
    node.restart()
    node.crashes('some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"')
    assert succeeded(node.roll_out(**TO_STATIC, kubelet_cpu_manager_policy_options=strict))
    node.runs(times=2)
    assert node.pool() == "1-3,5-7"


def test_5_a_strict_reservation_can_empty_the_shared_pool(join: MakeNode, pods: Pods) -> None:
    strict = {**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}}
    node = join(strict, "full")
    pods.run("six", "6")
    assert node.pool() == ""
    # The kubelet that runs does not mind. What it will say at its next start is known,
    told = node.ask("start_check")
    assert [finding["text"] for finding in told["findings"] if finding["fatal"]] == ["default cpuset cannot be empty"]
    node.restart()
    # and it does.
    node.crashes("default cpuset cannot be empty")


def test_7_isolated_cpus_and_the_reservation_disagree(make: MakeNode, real_kubelet: Path) -> None:
    node = make(STATIC, machine=MACHINE + "+isolated0-3", real=real_kubelet)
    node.runs()
    # The kubelet does not look: other pods share CPUs over which the kernel balances no load.
    assert node.pool() == "0-7"
    told = node.ask("drift_info", cpu_manager_policy="static")
    (drift,) = told["drift"]
    assert (drift["subject"], drift["wanted"], drift["found"]) == ("isolated", "1-3", "0-3")
    assert drift["remedy"].startswith("take the reserved CPUs 0 out of isolcpus= on the kernel's command line")
    assert any(note.startswith("the shared pool has the isolated CPUs 1-3, ") for note in told["notes"])
    # One plan has both values, and a node that was booted so agrees.
    values = node.plan_reservation(count=2)["settings"]
    assert (values["reserved_system_cpus"], values["isolcpus"]) == ("0,4", "1-3,5-7")
    node.stop()
    node.become(MACHINE + "+isolated" + values["isolcpus"])
    assert node.ask("drift_info", cpu_manager_policy="static")["drift"] == []


def test_8_a_downgrade_cannot_read_the_checkpoint(make: MakeNode, real_kubelet: Path) -> None:
    node = make(STATIC, real=real_kubelet)
    node.runs()
    node.stop()
    # As 1.36 writes it with PodLevelResourceManagers.
    assignments = {"pod-one": {"one": CPUSet.parse("1,5")}}
    state = State(CPUSet.parse("0,2-4,6-7"), assignments)
    node.save(write_checkpoint("static", state, format_for(36, pod_level=True)))
    node.start()
    node.crashes("could not restore state from checkpoint: checkpoint is corrupted")
    node.stop()
    converted = node.ask("checkpoint", state="format")
    assert converted["after"]["assignments"] == {"pod-one": {"one": "1,5"}}
    node.start()
    node.runs(times=2)


def test_10_pods_are_refused_after_a_mere_restart(join: MakeNode, pods: Pods) -> None:
    node = join(STATIC, "aligned")
    pods.run("odd", "3")
    # What would become of the pods is known before,
    whole = {"full-pcpus-only": "true"}
    planned = node.ask("start_check", cpu_manager_policy="static", cpu_manager_policy_options=whole)
    (harm,) = (finding for finding in planned["findings"] if finding["text"].startswith("SMT Alignment Error"))
    assert harm["remedy"] == "drain the node first, or drop full-pcpus-only"
    node.edit(cpuManagerPolicyOptions=whole)
    node.restart()
    # and it does.
    wait_until(lambda: pods.phase("odd") == "Failed")
    assert pods.get("odd")["status"]["reason"] == "SMTAlignmentError"
    # The role has no pods there when the rules change.
    drained = join(STATIC, "drained")
    pods.run("evicted", "3", node="drained")
    cluster = {"kubelet_drain": True, "kubelet_drain_force": True, "kubelet_kubeconfig": str(pods.control_plane.admin)}
    assert succeeded(drained.roll_out(**TO_STATIC, kubelet_cpu_manager_policy_options=whole, **cluster))
    assert not pods.exists("evicted")
    assert drained.entries() == {}


def test_13_a_cpu_list_that_is_not_of_this_node(make: MakeNode, real_kubelet: Path) -> None:
    # Right for the one, and copied to the other.
    small = make(STATIC, "small", machine="1s2c2t", real=real_kubelet)
    small.edit(reservedSystemCPUs="0,4")
    small.restart()
    small.crashes('Invalid cpuset "0,4" specified by --reserved-cpus')
    # The role refuses it while the kubelet runs,
    small.edit(reservedSystemCPUs="0,2")
    small.restart()
    small.runs()
    before = untouched(small)
    message = refusal(small.roll_out(**TO_STATIC, kubelet_reserved_system_cpus="0,4"), "small")
    assert 'Invalid cpuset "0,4" specified by --reserved-cpus' in message
    assert untouched(small) == before
    # and plans for each node from its own CPUs.
    large = make(STATIC, "large", real=real_kubelet)
    large.runs()
    for node, reserved in ((small, "0,2"), (large, "0,4")):
        assert succeeded(node.roll_out(**TO_STATIC, kubelet_reservation={"count": 2}))
        assert node.configuration()["reservedSystemCPUs"] == reserved
        assert node.is_active()


def test_14_nothing_is_reserved(make: MakeNode, real_kubelet: Path) -> None:
    node = make({}, real=real_kubelet)
    node.runs()
    node.edit(cpuManagerPolicy="static")
    node.restart()
    node.crashes("[cpumanager] unable to determine reserved CPU resources for static policy")
    # The role refuses it before anything is written.
    node.edit(cpuManagerPolicy="none")
    node.restart()
    node.runs(times=2)
    before = untouched(node)
    message = refusal(node.roll_out(**TO_STATIC), node.name)
    assert "unable to determine reserved CPU resources for static policy" in message
    assert untouched(node) == before


def test_15_a_checkpoint_that_is_deleted_moves_running_pods(join: MakeNode, pods: Pods) -> None:
    node = join(STATIC, "moved")
    pods.run("first", "2")
    uid = pods.run("second", "2")["metadata"]["uid"]
    pods.delete("first")
    wait_until(lambda: node.entries() == {uid: {"main": "2,6"}})
    node.stop()
    (node.root / CHECKPOINT[1:]).unlink()
    node.start()
    # Its container runs on 2,6, and others may be given them.
    wait_until(lambda: node.entries() == {uid: {"main": "1,5"}})
    # The role does not do so to a pod that is there.
    before = untouched(node)
    message = refusal(node.roll_out(kubelet_cpu_manager_policy="none"), node.name)
    assert "CPUs 1,5" in message
    assert untouched(node) == before

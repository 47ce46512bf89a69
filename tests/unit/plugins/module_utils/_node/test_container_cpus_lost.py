# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs of init containers that have ended: by the modules, on a node whose pods have them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Mapping

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import (
    Running,
    lost_cpus,
    lost_notes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import Listed, write_containers
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

NOTE = (
    "no container that runs has CPUs 4, which are assigned: shop/a-0/init (4); an init container that has ended keeps"
    " them until its pod ends, and the scheduler counts them as free: to get them back, delete the pod"
)


def running(uid: str, *names: str | None, pod: str = "") -> list[Running]:
    return [Running(uid, pod, name, "id", "c", "c", "", cpus("0")) for name in names]


def told(found: list[Running], assignments: Mapping[str, Mapping[str, str]], whole: str = "") -> list[str]:
    sets = {uid: {name: cpus(text) for name, text in own.items()} for uid, own in assignments.items()}
    state = State(cpus("0"), sets, {"a": cpus(whole)} if whole else {})
    return ["%s/%s %s" % lost for lost in lost_cpus(found, state)]


@pytest.mark.parametrize(
    ("names", "assigned", "expected"),
    [
        # As others reuse them, or none does, or some do.
        (["main"], {"init": "2", "main": "2,6"}, []),
        (["main"], {"init": "4", "main": "1,5"}, ["a/init 4"]),
        (["main"], {"init": "1-4", "main": "1,5"}, ["a/init 2-4"]),
        # Two of them, of which the second had what the first left; a sidecar runs on.
        (["main"], {"first": "2,6", "second": "2-3", "main": "1,3"}, ["a/first 2,6", "a/second 2"]),
        (["main", "proxy"], {"init": "4,7", "proxy": "7", "main": "1,5"}, ["a/init 4"]),
        (["main", None], {"main": "1,5"}, []),
        # Nothing of it runs that has CPUs of its own.
        ([None], {"init": "4", "main": "1,5"}, []),
        (["shared"], {"init": "4"}, []),
        ([], {"init": "4", "main": "1,5"}, []),
    ],
)
def test_what_is_lost(names: list[str | None], assigned: dict[str, str], expected: list[str]) -> None:
    assert told(running("a", *names), {"a": assigned}) == expected


def test_a_pod_divides_itself_what_it_has_as_a_whole() -> None:
    assigned = {"a": {"init": "4", "main": "1,5"}}
    assert told(running("a", "main"), assigned, whole="1,4-5") == []


def test_all_pods_are_in_one_note() -> None:
    state = State(cpus("0"), {uid: {"init": cpus(own), "main": cpus("1")} for uid, own in (("a", "4"), ("b", "6"))})
    (note,) = lost_notes(lost_cpus([*running("a", "main", pod="shop/x"), *running("b", "main")], state))
    assert "CPUs 4,6, which are assigned: shop/x/init (4), b/init (6);" in note
    assert lost_notes([]) == []


def pod(uid: str, name: str, count: int, init: int = 0) -> dict[str, Any]:
    def container(name: str, count: int) -> dict[str, Any]:
        return {"name": name, "resources": {"limits": {"cpu": str(count), "memory": "1Gi"}}}

    inits = [container("init", init)] if init else []
    metadata = {"name": name, "namespace": "shop", "uid": uid}
    return {"metadata": metadata, "spec": {"initContainers": inits, "containers": [container("main", count)]}}


SHARED = {
    "metadata": {"name": "next", "namespace": "shop"},
    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
}


class Asked:
    """Modules on a node of which a pod has a CPU for an init container that has ended."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        write_machine(root, "1s4c2t")
        configuration = "cgroupDriver: systemd\ncpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"
        write(root, "/var/lib/kubelet/config.yaml", HEADER + configuration)
        entries = {
            "uid-%d" % number: {"init": cpus(init), "main": cpus(main)}
            for number, (init, main) in enumerate((("4", "1,5"), ("2", "2,6"), ("3", "3,7")))
        }
        write(root, "/var/lib/kubelet/cpu_manager_state", write_checkpoint("static", State(cpus("0"), entries)))
        run = [Listed(uid, "Guaranteed", "shop/a-" + uid[-1], "main", str(own["main"])) for uid, own in entries.items()]
        write_containers(root, run, "0-7", "0")

    def ask(self, module: str, **parameters: object) -> Any:
        arguments = {"root": str(self.root), "kubelet_version": "1.34.1", **parameters}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            import_module("ansible_collections.kubenode.cpu_manager.plugins.modules." + module).main()
        answer = json.loads(self.capsys.readouterr().out)
        assert "failed" not in answer, answer
        return answer


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(tmp_path, capsys)


def test_modules_name_what_is_lost(asked: Asked) -> None:
    lost = [{"pod": "shop/a-0", "container": "init", "cpus": "4"}]
    answer = asked.ask("checkpoint_info")
    assert (answer["checkpoint"]["lost"], answer["notes"]) == (lost, [NOTE])
    drift = asked.ask("drift_info")
    assert (drift["checkpoint"]["lost"], drift["drift"]) == (lost, [])
    assert dict(zip(drift["note_checks"], drift["notes"]))["init-cpus-lost"] == NOTE


def test_the_scheduler_counts_what_is_lost_as_free(asked: Asked) -> None:
    """A pod that comes for it is refused by the kubelet; one of the shared pool has its request."""
    plan = asked.ask("allocation_plan", pods=[pod("uid-9", "next", 1)])
    (refused,) = plan["refused"]
    assert refused["message"].startswith("Allocate failed due to not enough cpus available to satisfy request:")
    assert NOTE in plan["notes"]
    plan = asked.ask("allocation_plan", pods=[SHARED])
    assert (plan["refused"], [row["cpus"] for row in plan["containers"]]) == ([], ["0"])
    plan = asked.ask("allocation_plan", pods=[SHARED, {**SHARED, "metadata": {"name": "more", "namespace": "shop"}}])
    assert [row["reason"] for row in plan["refused"]] == ["OutOfcpu"]


def test_manifests_tell_what_will_be_lost(asked: Asked) -> None:
    listed = [pod("uid-%d" % number, "a-%d" % number, 2, init=1) for number in range(3)]
    assert NOTE in asked.ask("allocation_plan", pods=listed)["notes"]
    new = asked.ask("allocation_plan", pods=[pod("b", "b", 1, init=3)], from_checkpoint=False)
    (kept,) = [note for note in new["notes"] if note.startswith("no container that runs has CPUs")]
    (row,) = [row for row in new["containers"] if row["container"] == "init"]
    (main,) = [row for row in new["containers"] if row["container"] == "main"]
    assert "shop/b/init (%s)" % (cpus(row["cpus"]) - cpus(main["cpus"])) in kept

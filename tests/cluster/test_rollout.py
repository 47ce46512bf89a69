# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rollout on nodes of a real cluster: drained, changed, proved and let in again, or taken back as a whole.

Pods that a drain does not move, and clusters that do not answer, are in test_rollout_drains.py.
"""

from __future__ import annotations

import json
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count

from .control_plane import ControlPlane
from .fleet import JOURNAL, LAST, ROLLOUT, Fleet
from .kubelet.faults import DIES, REFUSES, Fault
from .kubelet_node import CHECKPOINT, CONFIG, saved
from .pods import Pods
from .rollouts import REPAIR, ROLLBACK, STATIC, STOP, deploy, failure, names_of, wait_for_drain


def test_a_fleet_is_rolled_out_and_back(fleet: Fleet, control_plane: ControlPlane, pods: Pods) -> None:
    for name in ("one", "two"):
        fleet.add(name)
    before = {name: node.read(CONFIG) for name, node in fleet.nodes.items()}
    control_plane.kubectl("cordon", "two")
    control_plane.kubectl("uncordon", "two")
    deploy(pods, replicas=2, available=1)
    # One was cordoned by somebody else, and stays so.
    control_plane.kubectl("cordon", "one")

    looked = fleet.run("kubenode.cpu_manager.impact", cpu_manager_impact_file=str(fleet.directory / "impact.json"))
    assert looked.status == 0, looked.account()
    assert "stays as it is: " in looked.output
    checked = fleet.run(ROLLOUT, "--check", "--diff")
    assert checked.status == 0, checked.account()
    assert "+cpuManagerPolicy: static" in checked.output
    assert {name: node.read(CONFIG) for name, node in fleet.nodes.items()} == before
    assert fleet.is_open("two")

    control_plane.kubectl("uncordon", "one")
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.account()
    for name, node in fleet.nodes.items():
        steps = names_of(run, name)
        assert steps.index("Cordon and drain the node") < steps.index(STOP)
        assert steps[-2:] == ["Let pods come back to the node", "Write down that the change is done"]
        assert (fleet.policy(name), fleet.is_open(name), node.read(JOURNAL)) == ("static", True, None)
    control_plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s", pods.option)

    # Nobody is drained a second time.
    settled = [pods.on(name) for name in fleet.nodes]
    again = fleet.run(ROLLOUT)
    assert again.status == 0, again.account()
    assert [names_of(again, name) for name in fleet.nodes] == [[], []]
    assert [pods.on(name) for name in fleet.nodes] == settled

    back = fleet.run(ROLLBACK)
    assert back.status == 0, back.account()
    assert {name: node.read(CONFIG) for name, node in fleet.nodes.items()} == before
    assert [fleet.policy(name) for name in fleet.nodes] == ["none", "none"]
    assert [fleet.is_open(name) for name in fleet.nodes] == [True, True]

    # There is nothing more to go back to, least of all the settings that were just taken back.
    again = fleet.run(ROLLBACK)
    assert again.status == 0, again.account()
    assert [names_of(again, name) for name in fleet.nodes] == [[], []]
    assert [fleet.policy(name) for name in fleet.nodes] == ["none", "none"]


def taints_of(control_plane: ControlPlane, name: str) -> set[str]:
    (node,) = control_plane.objects("nodes", "--field-selector=metadata.name=" + name)
    return {taint["key"] for taint in node["spec"].get("taints", [])}


def test_taints_of_others(fleet: Fleet, control_plane: ControlPlane, pods: Pods) -> None:
    """A node may have some before, and get one while it is drained."""
    fleet.add("worker")
    deploy(pods, replicas=1, available=0, stopping=15)
    control_plane.kubectl("taint", "nodes", "worker", "gpu=yes:PreferNoSchedule", "database=yes:PreferNoSchedule")

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(fleet.run, ROLLOUT)
        wait_for_drain(run, pods, "worker")
        control_plane.kubectl("taint", "nodes", "worker", "candidate=yes:PreferNoSchedule")
    assert run.result().status == 0, run.result().account()
    assert "candidate" in run.result().output
    assert taints_of(control_plane, "worker") == {"gpu", "database", "candidate"}
    assert (fleet.policy("worker"), fleet.is_open("worker")) == ("static", True)


def test_a_rollback_goes_back_one_rollout(alone: Fleet) -> None:
    for name in ("a", "b", "c"):
        alone.add(name)
    before, after = ("none", "500ms"), ("static", "500ms")

    def settings() -> list[tuple[str, str]]:
        found = [node.configuration() for node in alone.nodes.values()]
        return [(values["cpuManagerPolicy"], values["cpuManagerReconcilePeriod"]) for values in found]

    # One that ended half-way: b and c never changed.
    assert alone.run(ROLLOUT, "--limit", "a").status == 0
    rollout = last_rollout(alone, "a")
    back = alone.run(ROLLBACK)
    assert back.status == 0, back.account()
    assert "Going back to what was before the rollout of %s (UTC): on a; " % rollout in back.output
    assert "stay as they are: none on b, c." in back.output
    assert settings() == [before, before, before]
    assert [names_of(back, name) for name in ("b", "c")] == [[], []]

    assert alone.run(ROLLOUT, "--limit", "a,b").status == 0
    assert settings() == [after, after, before]
    # A repair is no rollout, and one more rollout reached a alone.
    alone.nodes["b"].stop()
    alone.nodes["b"].write(CHECKPOINT, "{}")
    alone.nodes["b"].start()
    repair = alone.run(REPAIR)
    assert repair.status == 0, repair.account()
    assert "Reset or repair the checkpoint if the kubelet would refuse it" in names_of(repair, "b")
    assert alone.run(ROLLOUT, "--limit", "a", kubelet_cpu_manager_reconcile_period="1s").status == 0
    assert settings() == [("static", "1s"), after, before]
    # What a single node names does not decide for others: the operator names it.
    last, older = last_rollout(alone, "a"), last_rollout(alone, "b")
    message = failure(alone.run(ROLLBACK), "a")
    assert message.startswith("only a names the last rollout, and others name another")
    assert "%s (on a), %s (on b)" % (last, older) in message
    assert settings() == [("static", "1s"), after, before]
    assert alone.run(ROLLBACK, "-e", "kubelet_rollback_of=" + last).status == 0
    assert settings() == [after, after, before]
    # That it was taken back stays known: of the rollout before, only b still knows, and it does not go back by itself.
    assert "%s (taken back already on a), %s (on b)" % (last, older) in failure(alone.run(ROLLBACK), "a")
    assert settings() == [after, after, before]
    assert alone.run(ROLLBACK, "-e", "kubelet_rollback_of=" + older).status == 0
    assert settings() == [after, before, before]


def last_rollout(fleet: Fleet, name: str) -> str:
    """Return what a node names."""
    return str(json.loads(fleet.nodes[name].read(LAST) or "")["facts"]["rollout"])


def test_a_rollback_keeps_what_others_have_written_since(alone: Fleet) -> None:
    """A person has edited a, and b so that it cannot be read: then nothing is touched before that is allowed."""
    for name in ("a", "b"):
        alone.add(name)
    before = {name: node.read(CONFIG) or b"" for name, node in alone.nodes.items()}
    assert alone.run(ROLLOUT).status == 0
    a, b = alone.nodes["a"], alone.nodes["b"]
    edited = (a.read(CONFIG) or b"") + b"# mine\npodPidsLimit: 777\n"
    a.write(CONFIG, edited.decode())
    damaged = (b.read(CONFIG) or b"") + b"\t: [}\n"
    b.write(CONFIG, damaged.decode())
    back = alone.run(ROLLBACK)
    message = failure(back, "b")
    assert "others have changed it since the change wrote it" in message
    assert "set kubelet_overwrite_edited: true" in message
    assert "only what the change made of it is taken back" in " ".join(back.output.split())
    assert (a.read(CONFIG), b.read(CONFIG)) == (edited, damaged)

    back = alone.run(ROLLBACK, "-e", json.dumps({"kubelet_overwrite_edited": True}))
    assert back.status == 0, back.account()
    assert a.read(CONFIG) == before["a"] + b"# mine\npodPidsLimit: 777\n"
    assert b.read(CONFIG) == before["b"]
    for node, content in ((a, edited), (b, damaged)):
        assert content in [path.read_bytes() for path in (node.root / CONFIG[1:]).parent.glob("config.yaml.*~")]
    # A second rollback says that this was taken back, and changes nothing.
    again = alone.run(ROLLBACK)
    assert again.status == 0, again.account()
    assert "taken back already on a, b." in again.output
    assert [names_of(again, name) for name in alone.nodes] == [[], []]


def test_a_rollout_ends_where_a_node_is_lost(alone: Fleet) -> None:
    for name in ("a", "b", "c", "d"):
        alone.add(name)
    lost = {
        "ansible_remote_tmp": "{{ '/proc/none' if kubelet_plan is defined and inventory_hostname == 'b' else '/tmp' }}"
    }
    run = alone.run(ROLLOUT, "-e", json.dumps({"cpu_manager_serial": [2]}), **lost)
    assert run.status != 0
    assert run.last("b")["outcome"] == "unreachable"
    assert [alone.policy(name) for name in alone.nodes] == ["static", "none", "none", "none"]
    assert "b" in failure(run, "c")
    assert "was lost" in failure(run, "c")


@pytest.mark.parametrize("hosts", ["a,b", ["a", "b"], "a:b"])
def test_the_canary_comes_first(alone: Fleet, hosts: object) -> None:
    for name in ("a", "b"):
        alone.add(name)
    alone.nodes["b"].fail(Fault(REFUSES, STATIC))
    run = alone.run(ROLLOUT, "-e", json.dumps({"cpu_manager_hosts": hosts, "cpu_manager_canaries": "b"}))
    assert failure(run, "b").endswith("; the node is as it was")
    assert [alone.policy(name) for name in alone.nodes] == ["none", "none"]


@pytest.mark.parametrize(
    ("playbook", "given"),
    [
        (ROLLOUT, {"cpu_manager_canaries": "b"}),
        (ROLLOUT, {"cpu_manager_serial": 2}),
        (ROLLBACK, {"cpu_manager_hosts": "b"}),
        (REPAIR, {"cpu_manager_max_fail_percentage": 50}),
    ],
)
def test_what_ansible_does_not_take_from_the_inventory(alone: Fleet, playbook: str, given: dict[str, object]) -> None:
    for name in ("a", "b"):
        alone.add(name)
    message = failure(alone.run(playbook, **given), "a")
    assert "--extra-vars" in message
    assert str(*given.values()) in message
    assert [alone.policy(name) for name in alone.nodes] == ["none", "none"]


def test_a_node_that_fails_ends_the_rollout_after_its_batch(alone: Fleet) -> None:
    for name in ("a", "b", "c", "d"):
        alone.add(name)
    alone.nodes["b"].fail(Fault(REFUSES, STATIC))
    run = alone.run(ROLLOUT, "-e", json.dumps({"cpu_manager_serial": [3, 1]}))
    assert failure(run, "b").endswith("; the node is as it was")
    assert [alone.policy(name) for name in alone.nodes] == ["static", "none", "static", "none"], run.account()
    assert [node.read(JOURNAL) for node in alone.nodes.values()] == [None] * 4


def test_a_rollback_of_a_rollout_that_was_interrupted(alone: Fleet) -> None:
    """What it had begun is taken back, and the rollout before it stays."""
    for name in ("a", "b"):
        alone.add(name)
    assert alone.run(ROLLOUT).status == 0
    node = alone.nodes["a"]
    rollout = datetime.now(timezone.utc).replace(tzinfo=None).isoformat()
    older = last_rollout(alone, "b")
    node.write(JOURNAL, json.dumps({"format": 1, "phase": "stopping", "facts": {"rollout": rollout}, "files": {}}))
    assert "only a names the last rollout" in failure(alone.run(ROLLBACK), "a")
    assert node.read(JOURNAL) is not None
    back = alone.run(ROLLBACK, "-e", "kubelet_rollback_of=" + rollout)
    assert back.status == 0, back.account()
    assert [alone.policy(name) for name in alone.nodes] == ["static", "static"]
    assert node.read(JOURNAL) is None
    assert json.loads(node.read(LAST) or "")["facts"] == {"rollout": older, "undone": rollout}
    assert alone.run(ROLLBACK, "-e", "kubelet_rollback_of=" + older).status == 0
    assert [alone.policy(name) for name in alone.nodes] == ["none", "none"]


def test_a_rollback_with_a_node_that_may_have_had_the_last_rollout(alone: Fleet) -> None:
    for name in ("a", "b"):
        alone.add(name)
    assert alone.run(ROLLOUT).status == 0
    down = {"ansible_remote_tmp": "{{ '/proc/none' if inventory_hostname == 'b' else '/tmp' }}"}
    back = alone.run(ROLLBACK, **down)
    assert back.status != 0
    message = back.last("a")["msg"]
    assert "these nodes cannot be reached or planned: b;" in message
    assert "no node was changed" in message
    assert [alone.policy(name) for name in alone.nodes] == ["static", "static"]
    # The operator says that it was not there.
    limited = alone.run(ROLLBACK, "--limit", "a", **down)
    assert limited.status == 0, limited.account()
    assert [alone.policy(name) for name in alone.nodes] == ["none", "static"]


@pytest.mark.parametrize("rollout", ["9999-01-01T00:00:00", ["a"]])
def test_a_node_that_says_anything_of_its_last_rollout(rollout: object, alone: Fleet) -> None:
    """It is named, nobody goes back to an older one, and the others go back without it."""
    for name in ("a", "b"):
        alone.add(name)
    assert alone.run(ROLLOUT).status == 0
    last = json.loads(alone.nodes["b"].read(LAST) or "")
    last["facts"]["rollout"] = rollout
    alone.nodes["b"].write(LAST, json.dumps(last))
    message = failure(alone.run(ROLLBACK), "a")
    assert "is no time of a rollout: b;" in message or "9999-01-01T00:00:00 (on b)" in message
    assert "--limit" in message
    assert [alone.policy(name) for name in alone.nodes] == ["static", "static"]
    back = alone.run(ROLLBACK, "--limit", "a")
    assert alone.policy("a") == "none", back.account()


def test_a_node_that_is_down_from_the_start(alone: Fleet) -> None:
    for name in ("a", "b", "c"):
        alone.add(name)
    down = {"ansible_remote_tmp": "{{ '/proc/none' if inventory_hostname == 'b' else '/tmp' }}"}
    run = alone.run(ROLLOUT, **down)
    assert run.last("b")["outcome"] == "unreachable"
    assert [alone.policy(name) for name in alone.nodes] == ["static", "none", "static"], run.account()


def test_a_node_that_was_mended_is_not_taken_back(alone: Fleet) -> None:
    """Somebody has brought a node back into service whose change was interrupted, and pods have come since."""
    node = alone.add("worker")
    assert alone.run(ROLLOUT).status == 0
    node.stop()
    node.write(CHECKPOINT, saved("static", "0,2-4,6-7", web="1,5").decode())
    # A stand-in would not keep the CPUs of pods that it does not have.
    node.write("/proc/1/cmdline", "kubelet\0--config=" + CONFIG)
    config = node.read(CONFIG)
    journal = {
        "format": 1,
        "phase": "changing",
        "facts": {"node": "worker", "cordoned": False},
        "files": {CONFIG: {"content": b64encode(config or b"").decode(), "mode": 0o644, "uid": 0, "gid": 0}},
    }
    node.write(JOURNAL, json.dumps(journal))
    message = failure(alone.run(REPAIR), "worker")
    assert "1,5" in message
    assert "state: absent" in message
    assert node.read(CONFIG) == config
    assert node.entries() == {"pod-web": {"web": "1,5"}}


@pytest.mark.parametrize("fault", [Fault(DIES, STATIC, 2.0), Fault(REFUSES, STATIC)], ids=["dies late", "never starts"])
def test_a_kubelet_that_does_not_come_up_is_taken_back(fleet: Fleet, fault: Fault, count: Count) -> None:
    canary, second = fleet.add("canary"), fleet.add("other")
    canary.fail(fault)
    before = {path: canary.read(path) for path in (CONFIG, CHECKPOINT)}
    words = second.log()
    message = failure(fleet.run(ROLLOUT), "canary")
    assert "Start the kubelet: " in message
    assert message.endswith("; the node is as it was")
    assert {path: canary.read(path) for path in (CONFIG, CHECKPOINT)} == before
    assert (canary.read(JOURNAL), fleet.is_open("canary")) == (None, True)
    # The rollout ended there.
    assert second.log() == words
    assert fleet.policy("other") == "none"
    # When what was wrong is repaired, the next run does all.
    canary.fail()
    assert fleet.run(ROLLOUT).status == 0
    assert [fleet.policy(name) for name in fleet.nodes] == ["static", "static"]
    count("kubelets that do not come up", 1)

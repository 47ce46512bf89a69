# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/enforcement.py."""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence, cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    Hierarchy,
    lineage,
    parent_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.partitions import Partition
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import enforcement
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import Observed, Running
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.enforcement import Enforcement, compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

ONLINE = cpus("0-7")
STATE = State(cpus("0-1,4-7"), {"uid-db": {"server": cpus("2-3")}})

KUBEPODS, QOS = "kubepods", "kubepods/burstable"
OWN, SHARED = "kubepods/poduid-db/a", "kubepods/burstable/poduid-web/b"
NODE = {KUBEPODS: "", QOS: "", "kubepods/poduid-db": "", parent_of(SHARED): "", OWN: "2-3", SHARED: "0-1,4-7"}


def running(path: str, pod_uid: str, pod: str, name: str | None) -> Running:
    return Running(pod_uid, pod, name, path.rpartition("/")[2] * 64, path, path, KUBEPODS, None)


CONTAINERS = (running(OWN, "uid-db", "shop/db-0", "server"), running(SHARED, "uid-web", "shop/web-1", "app"))


def observed(
    sets: Mapping[str, str],
    version: int = 2,
    containers: Sequence[Running] = CONTAINERS,
    affinities: Mapping[str, str] | None = None,
) -> Observed:
    """Return a node with these cgroups, as its kernel makes them effective; those outside of kubepods are the
    host's."""
    effective = {"": ONLINE}
    for path in sorted(sets):
        own, above = cpus(sets[path]), effective[parent_of(path)]
        effective[path] = own if version == 1 else own & above or above
    return Observed(
        version,
        "/sys/fs/cgroup",
        ONLINE,
        [container._replace(effective=effective.get(container.process_cgroup)) for container in containers],
        True,
        [KUBEPODS, QOS],
        [path for path in sets if "/" not in path and path != KUBEPODS],
        {path: cpus(text) for path, text in sets.items()},
        effective,
        {container: cpus(text) for container, text in (affinities or {}).items()},
        cast(Hierarchy, None),
    )


def compared(found: Observed, state: State | None = STATE, policy: str = "static") -> Enforcement:
    # There are no files of cgroups from which it could tell what cannot be written.
    with patch.object(enforcement, "_refused", lambda _observed, _rows: {}):
        told = compare(found, policy, state)
    plain = {"drift": list(told.drift), "notes": list(told.notes), "summary": told.summary}
    assert json.loads(json.dumps(plain)) == plain
    return told


def rows(told: Enforcement) -> list[str]:
    return ["%(subject)s: %(found)s, not %(wanted)s" % row for row in told.drift]


# --- what differs -------------------------------------------------------------------------------------


def test_all_as_it_should_be() -> None:
    told = compared(observed(NODE))
    assert (told.drift, told.notes, told.to_reconcile) == ([], [], False)
    assert told.summary == {
        "version": 2,
        "mount": "/sys/fs/cgroup",
        "containers": {"kept": 2, "different": 0, "skipped": 0},
        "cgroups": [
            {"path": "kubepods", "cpus": "", "effective": "0-7"},
            {"path": "kubepods/burstable", "cpus": "", "effective": "0-7"},
        ],
    }


@pytest.mark.parametrize(
    ("version", "change", "expected"),
    [
        (2, {OWN: "0-7"}, ["container shop/db-0/server: 0-7, not 2-3"]),
        (2, {OWN: ""}, ["container shop/db-0/server: 0-7 (cpuset.cpus: empty), not 2-3"]),
        (2, {SHARED: "0-7"}, ["container shop/web-1/app: 0-7, not 0-1,4-7"]),
        # a slice cuts silently
        (
            2,
            {QOS: "0-3"},
            [
                "cgroup kubepods/burstable: 0-3, not 0-7",
                "container shop/web-1/app: 0-1 (cpuset.cpus: 0-1,4-7), not 0-1,4-7",
            ],
        ),
        (
            2,
            {KUBEPODS: "4-7", "kubepods/poduid-db": "4"},
            [
                "cgroup kubepods: 4-7, not 0-7",
                "cgroup kubepods/poduid-db: 4, not 2-4",
                "container shop/db-0/server: 4 (cpuset.cpus: 2-3), not 2-3",
                "container shop/web-1/app: 4-7 (cpuset.cpus: 0-1,4-7), not 0-1,4-7",
            ],
        ),
        # on v1, nothing above has fewer than what is below
        (
            1,
            {**dict.fromkeys(NODE, "0-7"), "kubepods/poduid-db": "0-1", OWN: "0", SHARED: "0-1,4-7"},
            ["cgroup kubepods/poduid-db: 0-1, not 0-3", "container shop/db-0/server: 0, not 2-3"],
        ),
    ],
)
def test_what_a_pass_would_write(version: int, change: Mapping[str, str], expected: list[str]) -> None:
    told = compared(observed({**NODE, **change}, version))
    assert rows(told) == expected
    assert told.to_reconcile
    assert not any("remedy" in row for row in told.drift)


def test_a_container_whose_own_cpus_nobody_tells() -> None:
    """In a pod with CPUs as a whole, it has those of another. Its sandbox may: that only sleeps."""
    whole = State(cpus("0-1"), {"uid-db": {"server": cpus("2-3")}}, {"uid-web": cpus("4-7")})
    sandbox = running(parent_of(SHARED) + "/d", "uid-web", "", None)
    found = observed({**NODE, SHARED: "3-7", sandbox.cgroup: ""}, containers=(*CONTAINERS, sandbox))
    told = compared(found, whole)
    assert rows(told) == ["container shop/web-1/app: 3-7, not 4-7"]
    assert "restart the kubelet" in told.drift[0]["remedy"]
    assert not told.to_reconcile
    assert rows(compared(observed({**NODE, SHARED: "4-7"}), whole)) == []


def test_a_container_that_nobody_names_is_called_by_its_pod_and_id() -> None:
    unknown = running(parent_of(SHARED) + "/d", "uid-web", "", None)
    found = observed({**NODE, unknown.cgroup: "3"}, containers=(*CONTAINERS, unknown))._replace(all_named=False)
    assert rows(compared(found)) == ["container uid-web/dddddddddddd: 3, not 0-1,4-7"]


def test_a_shared_pool_without_cpus() -> None:
    told = compared(observed({**NODE, SHARED: "0-7"}), State(CPUSet(), {"uid-db": {"server": cpus("2-3")}}))
    assert rows(told) == ["container shop/web-1/app: 0-7, not 0-1,4-7"]
    assert told.drift[0]["remedy"] == "move a pod with exclusive CPUs to another node: its wanted set is empty"


def test_a_checkpoint_that_no_kubelet_would_take() -> None:
    told = compared(observed({**NODE, OWN: "0-7", "system.slice": ""}), None)
    assert (told.drift, told.notes, told.to_reconcile) == ((), (), False)
    assert told.summary["containers"] == {"kept": 0, "different": 0, "skipped": 2}


def test_a_container_that_has_ended() -> None:
    found = observed(NODE)
    ended = found._replace(running=[container._replace(effective=None) for container in found.running])
    assert compared(ended).summary["containers"] == {"kept": 0, "different": 0, "skipped": 2}


# --- the host -----------------------------------------------------------------------------------------


def test_a_fence_that_lets_the_host_onto_exclusive_cpus() -> None:
    fenced = {"a.slice": "0-1", "b.slice": "0-2", "c.slice": "2-3"}
    told = compared(observed({**NODE, **fenced}))
    assert rows(told) == ["cgroup b.slice: 0-2, not 0-1", "cgroup c.slice: 2-3, not 0-1,4-7"]
    assert told.drift[0]["remedy"] == "give b.slice only the CPUs 0-1, and its unit too if it is one of systemd's"
    assert (told.notes, told.to_reconcile) == ([], False)


@pytest.mark.parametrize(("problem", "is_fence"), [("", False), ("Parent is not a partition root", True)])
def test_the_cpus_of_a_partition_are_not_taken_from_it(problem: str, is_fence: bool) -> None:
    """OVS-DPDK's slice has 2-3 for itself: what is wrong is that a container is given them."""
    part = Partition("ovs.slice", "isolated", problem, cpus("2-3"), cpus("2-3"), cpus("2-3"))
    found = observed({**NODE, "ovs.slice": "2-3"})._replace(partitions=(part,))
    assert [row["subject"] for row in compared(found).drift] == ["cgroup ovs.slice"] * is_fence


@pytest.mark.parametrize(
    ("version", "hosts", "expected"),
    [
        (
            2,
            {"init.scope": "", "system.slice": "", "user.slice": "0-1"},
            "what runs in init.scope, system.slice may run",
        ),
        (1, {}, "what runs in the topmost cgroup may run on the exclusive CPUs 2-3, too"),
        (1, {"runtime": "0-1"}, ""),
        (2, {}, ""),
    ],
)
def test_no_fence_at_all(version: int, hosts: Mapping[str, str], expected: str) -> None:
    sets = {path: text or "0-7" for path, text in NODE.items()} if version == 1 else NODE
    told = compared(observed({**sets, **hosts}, version))
    assert [note.startswith(expected) for note in told.notes] == [True] * bool(expected)
    # Without exclusive CPUs, nobody is disturbed.
    assert compared(observed({**sets, **hosts}, version), State(ONLINE, {})).notes == []


# --- notes --------------------------------------------------------------------------------------------


def test_a_cgroup_that_will_cut_what_comes() -> None:
    told = compared(
        observed({**NODE, KUBEPODS: "0-5", SHARED: "0-1,4-5"}), STATE._replace(default_cpu_set=cpus("0-1,4-6"))
    )
    assert "kubepods has no CPUs 6: what the kubelet gives to containers in it is cut by them" in told.notes


def test_cpus_of_a_pod_that_does_not_run() -> None:
    told = compared(observed(NODE, containers=CONTAINERS[1:]))
    assert told.notes == ["CPUs 2-3 are exclusive to pod uid-db, of which nothing runs here"]


def test_processes_that_are_bound() -> None:
    affinities = {CONTAINERS[0].id: "0-3", CONTAINERS[1].id: "0"}
    told = compared(observed(NODE, affinities=affinities))
    assert len(told.notes) == 1
    assert "has: 1 (shop/web-1/app: 0 of 0-1,4-7);" in told.notes[0]
    assert (
        "has: 2 (shop/db-0/server: 3 of 2-3, ...);"
        in (compared(observed(NODE, affinities={**affinities, CONTAINERS[0].id: "3"})).notes[0])
    )


def test_what_another_policy_has_left() -> None:
    told = compared(observed(NODE), State(CPUSet(), {}), "none")
    assert (told.drift, told.to_reconcile) == ([], False)
    assert len(told.notes) == 1
    assert "although the policy gives none out: 2 (shop/db-0/server: 2-3, ...)" in told.notes[0]
    assert compared(observed(dict.fromkeys(NODE, "")), State(CPUSet(), {}), "none").notes == []
    # Neither a sandbox nor a container that has ended, and one is one.
    sandbox = running(parent_of(SHARED) + "/d", "uid-web", "", None)
    ended = running(parent_of(SHARED) + "/e", "uid-web", "", "ended")
    sets = {**NODE, SHARED: "", sandbox.cgroup: "0"}
    (note,) = compared(observed(sets, containers=(*CONTAINERS, sandbox, ended)), State(CPUSet(), {}), "none").notes
    assert "gives none out: 1 (shop/db-0/server: 2-3);" in note


# --- laws ---------------------------------------------------------------------------------------------

subsets = st.frozensets(st.integers(0, 7)).map(CPUSet)


@given(st.data(), st.sampled_from([1, 2]))
def test_what_differs_is_what_is_wanted_and_not_found(data: st.DataObject, version: int) -> None:
    sets: dict[str, Any] = {}
    for path in sorted((*NODE, "system.slice")):
        above = cpus(sets[parent_of(path)]) if parent_of(path) in sets else ONLINE
        own = data.draw(subsets)
        sets[path] = str(own & above if version == 1 else own)
    own = data.draw(subsets)
    state = State(ONLINE - own, {"uid-db": {"server": own}} if own else {})
    told = compared(observed(sets, version), state)
    for row in told.drift:
        assert row["wanted"] != row["found"]
        assert cpus(row["wanted"]) <= ONLINE
        if row["subject"].startswith("cgroup kubepods"):
            assert cpus(row["found"]) < cpus(row["wanted"])
    # Where the shared pool is empty, nobody tells what a container of it is to have.
    containers = [row for row in told.drift if row["subject"].startswith("container") and "remedy" not in row]
    assert told.summary["containers"]["different"] == len(containers)
    assert told.to_reconcile == bool(containers)
    # A cgroup is told only for the sake of a container that it cuts.
    cut = {row["subject"].partition(" ")[2] for row in told.drift if row["subject"].startswith("cgroup kubepods")}
    assert cut <= {path for container in (OWN, SHARED) for path in lineage(container)} - {OWN, SHARED}
    assert not cut or containers

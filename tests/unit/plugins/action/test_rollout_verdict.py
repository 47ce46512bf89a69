# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/action/rollout_verdict.py: what it reads of hosts and of a cluster; tests/cluster has the rest."""

from __future__ import annotations

import signal
import time
from typing import Any, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.action.rollout_verdict import _Hosts, read_cluster
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.verdict import (
    Run,
    refuse_lost,
    rough_warning,
)


class Variables(Mapping[str, Any]):
    """The variables of all hosts, and whose were read."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        self.hosts = hosts
        self.reads: list[str] = []

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        self.reads.append(name)
        return self.hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.hosts)

    def __len__(self) -> int:
        return len(self.hosts)


def test_a_batch_that_needs_no_room_reads_no_other_hosts() -> None:
    names = ["host-%d" % number for number in range(100)]
    found = Variables({name: {"kubelet_plan": {"node": name}, "kubelet_verdict": {}} for name in names})
    hosts = _Hosts({"hostvars": found, "ansible_play_hosts_all": names})
    run = Run(hosts, names, names[40:42], set(names))
    refuse_lost(run, 0)
    assert run.asks("rollout") is None
    assert rough_warning(run, "rollout", map(hosts.__getitem__, names)) == ""
    assert found.reads == names[40:42]
    assert list(hosts.plans()) == names
    assert sorted(found.reads) == sorted(names)


FIXED = {"api_timeout": 1, "kubeconfig": "/root/config"}


class Cluster:
    """Answers as kubernetes.core does, after some time."""

    def __init__(self, answer: Mapping[str, Any], seconds: float = 0) -> None:
        self.answer, self.seconds = answer, seconds
        self.asked: Mapping[str, Any] = {}

    def run_module(
        self, _module: str, _plugin: str, arguments: Mapping[str, Any], _task_vars: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        self.asked = arguments
        time.sleep(self.seconds)
        return self.answer


def read(cluster: Any) -> list[Any]:
    return read_cluster(cluster, "the pods of the cluster", FIXED, {}, kind="Pod")


def test_objects_are_read_with_what_the_run_acts_with() -> None:
    cluster = Cluster({"resources": [{"kind": "Pod"}]})
    assert read(cluster) == [{"kind": "Pod"}]
    assert cluster.asked == {"kubeconfig": "/root/config", "kind": "Pod"}


@pytest.mark.parametrize(
    ("answer", "seconds", "said"),
    [
        ({"failed": True, "msg": " no route \n"}, 0, "no route"),
        ({"failed": True}, 0, "it failed without a message"),
        ({"unreachable": True, "msg": "down"}, 0, "down"),
        ({"resources": None, "msg": "half an answer"}, 0, "half an answer"),
        ({"resources": []}, 30, "Timed out after 1 seconds"),
    ],
    ids=["failed", "without a message", "unreachable", "half", "silent"],
)
def test_a_cluster_without_an_answer(answer: dict[str, Any], seconds: float, said: str) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(NodeError) as caught:
        read(Cluster(answer, seconds))
    assert str(caught.value) == "Read the pods of the cluster: " + said
    assert signal.getsignal(signal.SIGALRM) == before

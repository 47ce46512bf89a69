# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/simulation/trace.py."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import (
    SECONDS,
    STARTING,
    TRACES,
    Trace,
    TracePod,
    make_trace,
    read_trace,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

DATA: dict[str, Any] = {
    "version": 1,
    "name": "mine",
    "description": "two pods",
    "duration": 600,
    "pods": [
        {"name": "web", "qosClass": "Burstable", "cpu": "500m", "arrives": 10, "load": [[0, 0.5]]},
        {
            "name": "db",
            "qosClass": "Guaranteed",
            "cpu": "2",
            "elastic": "2-8",
            "arrives": 0,
            "leaves": 300,
            "load": [[0, 0], [20, 4.5]],
        },
    ],
}
TRACE = Trace(
    "mine",
    "two pods",
    600.0,
    [
        TracePod("db", "Guaranteed", 2000, 8, 0.0, 300.0, ((0.0, 0.0), (20.0, 4.5))),
        TracePod("web", "Burstable", 500, 0, 10.0, 600.0, ((0.0, 0.5),)),
    ],
)


def with_resources(resources: Any, qos_class: str = "Guaranteed") -> dict[str, Any]:
    cpu = {} if qos_class == "BestEffort" else {"cpu": "2"}
    pod = {"name": "db", "qosClass": qos_class, "arrives": 0, "load": [[0, 1]], "resources": resources, **cpu}
    return {**DATA, "pods": [pod]}


@pytest.mark.parametrize(
    ("resources", "qos_class", "said"),
    [
        ([], "Guaranteed", "resources: is not a mapping of resources beside cpu, of at most 20"),
        ({"cpu": "1"}, "Guaranteed", "resources: is not a mapping of resources beside cpu, of at most 20"),
        ({str(number): 1 for number in range(21)}, "Guaranteed", "resources: is not a mapping of resources"),
        ({"memory": "much"}, "Guaranteed", "resources.memory: "),
        ({"memory": "-1"}, "Guaranteed", "resources.memory: -1 is not possible in the class Guaranteed"),
        ({"memory": "1Gi"}, "BestEffort", "resources.memory: 1Gi is not possible in the class BestEffort"),
    ],
)
def test_what_is_wrong_with_resources(resources: Any, qos_class: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_trace(with_resources(resources, qos_class))
    assert str(error.value).startswith("trace: pods[0]: " + said)


def test_a_trace_is_read_and_read_back_from_json() -> None:
    assert read_trace(DATA) == TRACE
    resources = {"memory": "1Gi", "nvidia.com/gpu": 2, "example.com/half": "500m"}
    found = read_trace(with_resources(resources))
    amounts = {"memory": 1000 << 30, "nvidia.com/gpu": 2000, "example.com/half": 500}
    assert found.pods[0].resources == amounts
    assert json.loads(json.dumps(found.to_dict()))["pods"][0]["resources"] == {
        "memory": str(1 << 30),
        "nvidia.com/gpu": "2",
        "example.com/half": "500m",
    }
    assert read_trace(found.to_dict()) == found
    assert read_trace(json.loads(json.dumps(TRACE.to_dict()))) == TRACE


@pytest.mark.parametrize(
    ("qos_class", "cpu", "exclusive"),
    [("Guaranteed", 2000, 2), ("Guaranteed", 2500, 0), ("Burstable", 2000, 0), ("BestEffort", 0, 0)],
)
def test_who_has_exclusive_cpus(qos_class: str, cpu: int, exclusive: int) -> None:
    assert TRACE.pods[0]._replace(qos_class=qos_class, cpu=cpu).exclusive == exclusive


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "version": (lambda data: data.pop("version"), "version None"),
    "duration": (lambda data: data.update(duration=0), "duration"),
    "no number": (lambda data: data.update(duration=True), "duration"),
    "no end": (lambda data: data.update(duration=float("nan")), "duration"),
    "pods": (lambda data: data.update(pods={}), "pods"),
    "no pod": (lambda data: data["pods"].append("db"), r"pods\[2\]: is not a mapping"),
    "twice": (lambda data: data["pods"][0].update(name="db"), "two pods are named db"),
    "name": (lambda data: data["pods"][0].update(name="a\nb"), r"pods\[0\]: name"),
    "class": (lambda data: data["pods"][0].update(qosClass="Best"), r"pods\[0\]: qosClass"),
    "cpu": (lambda data: data["pods"][0].update(cpu="much"), r"pods\[0\]"),
    "no cpu": (lambda data: data["pods"][0].pop("cpu"), r"pods\[0\]: cpu"),
    "best effort with cpu": (lambda data: data["pods"][0].update(qosClass="BestEffort"), r"pods\[0\]: cpu"),
    "range": (lambda data: data["pods"][1].update(elastic="8-2"), r"pods\[1\].*no range to grow"),
    "range of others": (lambda data: data["pods"][1].update(elastic="3-8"), r"pods\[1\]: elastic: 3-8 does not begin"),
    "range of shared": (lambda data: data["pods"][0].update(elastic="1-8"), r"pods\[0\]: elastic"),
    "leaves before": (lambda data: data["pods"][0].update(leaves=5), r"pods\[0\]: leaves"),
    "arrives after": (lambda data: data["pods"][0].update(arrives=700), r"pods\[0\]: arrives"),
    "load": (lambda data: data["pods"][1].update(load=[[0, 1, 2]]), "load"),
    "load backwards": (lambda data: data["pods"][1].update(load=[[20, 1], [0, 1]]), "load"),
    "load below nothing": (lambda data: data["pods"][1].update(load=[[0, -1]]), "load"),
}


@pytest.mark.parametrize("damage", WRONG)
def test_what_is_wrong_is_refused_by_its_place(damage: str) -> None:
    data = copy.deepcopy(DATA)
    change, message = WRONG[damage]
    change(data)
    with pytest.raises(InputError, match="^trace: .*" + message):
        read_trace(data)


def test_no_mapping() -> None:
    with pytest.raises(InputError, match="is not a mapping"):
        read_trace([DATA])


def test_a_trace_that_takes_a_day_is_refused() -> None:
    data = {**DATA, "pods": [{**DATA["pods"][0], "name": "web-%d" % number} for number in range(10001)]}
    with pytest.raises(InputError, match="at most 10000"):
        read_trace(data)


MOST_REQUESTED = {"services": 0.5, "batch": 0.7, "crowded": 0.84}


def requested(trace: Trace) -> int:
    """Return the most exclusive CPUs that are requested at a time."""
    return max(
        sum(neighbour.exclusive for neighbour in trace.pods if neighbour.arrives <= pod.arrives < neighbour.leaves)
        for pod in trace.pods
    )


@pytest.mark.parametrize("name", TRACES)
@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((8, 12, 48, 96, 256)))
def test_traces(name: str, seed: int, cpus: int) -> None:
    trace = make_trace(name, seed, cpus)
    assert trace == make_trace(name, seed, cpus)
    assert read_trace(json.loads(json.dumps(trace.to_dict()))) == trace
    assert 0 < requested(trace) <= MOST_REQUESTED[name] * cpus
    kinds = {pod.name.partition("-")[0] for pod in trace.pods}
    assert "shared" in kinds
    for pod in trace.pods:
        assert 0 <= pod.arrives < pod.leaves <= SECONDS == trace.duration
        # It starts, and then does what its kind does.
        assert pod.load[0][1] <= 0.1
        assert pod.load[1][0] == STARTING
        assert bool(pod.most) == (pod.name.startswith(("service", "job")))
        if pod.name.startswith("rigid"):
            assert max(threads for _at, threads in pod.load) <= pod.exclusive


def test_another_seed_is_another_trace() -> None:
    assert make_trace("batch", 1, 48).pods != make_trace("batch", 2, 48).pods


def test_a_trace_is_the_same_for_everybody() -> None:
    """Also with other versions of Python: figures of different people can be compared."""
    text = json.dumps([make_trace(name, 1, 48).to_dict() for name in TRACES], sort_keys=True)
    assert (
        hashlib.sha256(text.encode("utf-8")).hexdigest()
        == "969d54ebccee8d4729a9a9b53c69f562a3bd43de670bc2c1a9235848fb80a2be"
    )


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="there are services, batch, crowded"):
        make_trace("other", 1, 48)
    with pytest.raises(InputError, match="takes 8 CPUs"):
        make_trace("batch", 1, 7)


def whole(containers: Any, **more: Any) -> dict[str, Any]:
    pod = {"name": "trading", "qosClass": "Guaranteed", "cpu": "4", "arrives": 0, "load": [[0, 1]], **more}
    return {**DATA, "pods": [{**pod, "containers": containers}]}


def test_a_pod_that_requests_cpus_as_a_whole() -> None:
    trace = read_trace(whole({"engine": 2, "proxy": 0}))
    assert trace.pods[0].containers == {"engine": 2, "proxy": 0}
    assert read_trace(trace.to_dict()) == trace


@pytest.mark.parametrize(
    ("containers", "more", "said"),
    [
        ([], {}, "is no mapping of at most 20 containers to CPUs"),
        ({}, {}, "is no mapping of at most 20 containers to CPUs"),
        ({str(number): 0 for number in range(21)}, {}, "is no mapping of at most 20"),
        ({"a": 0}, {"qosClass": "Burstable"}, "are of pods of the class Guaranteed that request whole CPUs"),
        ({"a": 0}, {"cpu": "2500m"}, "are of pods of the class Guaranteed that request whole CPUs"),
        ({"a": 0}, {"elastic": "4-8"}, "are of pods of the class Guaranteed that request whole CPUs"),
        ({"a": 0.5}, {}, "have no whole CPUs, or more than the 4 of the pod"),
        ({"a": 3, "b": 2}, {}, "have no whole CPUs, or more than the 4 of the pod"),
        ({"a": "2"}, {}, "'2' is not a number from 0 to 4"),
        ({"a": -1}, {}, "-1 is not a number from 0 to 4"),
        ({"": 1}, {}, "'' is no text"),
    ],
)
def test_containers_that_cannot_be(containers: Any, more: Any, said: str) -> None:
    with pytest.raises(InputError, match=r"pods\[0\]: containers: .*" + said):
        read_trace(whole(containers, **more))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests, objects of an API server and answers of nodes of any size: what is eight times as large takes about eight
times as long, not sixty-four times, and what is made of a text is no larger than the text, or than a limit.

Times are compared within one run. `make hostile` draws more of each, by the number SEED.
"""

from __future__ import annotations

import gc
import os
import random
import time
from typing import Any, Callable, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    MOST_CONTAINERS,
    MOST_CONTAINERS_IN_ALL,
    pod_from_manifest,
    pods_from_manifests,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import Cluster, impact_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.pods import judge_drain
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.schedule import FleetToChange, schedule_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.scheduling import shortage
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import read_trace
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.yaml_of_others import (
    MOST_VALUES,
    check_size,
    read_documents,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import ANSWER, LOOKED_AT, MADE
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of

SEED = int(os.environ.get("SEED", "1"))
DRAWN = 300 if os.environ.get("HOSTILE") else 20

# How many times as large, and how many times as long it may take then: quadratic time would take LARGER squared.
LARGER, MOST = 8, 24
TRIES = 3
Work = Callable[[], object]


def taken(work: Work) -> float:
    """Return the processor time of it."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    try:
        work()
    except InputError:
        pass  # to refuse is an answer
    finally:
        gc.enable()
    return time.process_time() - start


def check_growth(make: Callable[[int], Work], size: int) -> None:
    """Compare the time of what is made of a size with that of LARGER times the size."""
    small, large = make(size), make(LARGER * size)
    # A clock tells no times apart that are shorter.
    short = max(min(taken(small) for _try in range(TRIES)), 0.001)
    # Another program may take the processor's caches.
    assert any(taken(large) <= MOST * short for _try in range(TRIES)), short


# --- YAML ---------------------------------------------------------------------------------------------

PIECES = [
    *("- a\n", "- &a x\n- *a\n", "- &b [x, x]\n- [*b, *b]\n", "- {a: [1, {b: c}]}\n", "--- {a: 1}\n", "- - - a\n"),
    *(
        "# a\n",
        "- |\n  a\n",
        "- >-\n  a\n\n",
        '- "\\u0041"\n',
        "- ''\n",
        "- !!str 1\n",
        "- 0x1\n",
        "- 1:1\n",
        "- ? a\n",
    ),
    *("a", "1", "1:", "'", '"', " ", "\t", "[", "{", "]", "- ", "? ", ": ", "&a ", "*a ", "!a ", "%a ", "\n", "a: b\n"),
    *("- {<<: &c {a: 1}}\n- {<<: *c}\n", "- 2026-01-01\n", "\\", ",", "- 1.0e+9\n", "é", "\u2028", "- ~\n", "0b1", "_"),
]


def drawn_texts(count: int) -> Iterator[str]:
    """Yield each piece alone, and then pieces that were drawn."""
    yield from PIECES
    chance = random.Random(SEED)
    for _number in range(count):
        yield "".join(chance.choices(PIECES, k=chance.randint(2, 5)))


@pytest.mark.parametrize("piece", [*drawn_texts(DRAWN)], ids=ascii)
def test_a_text_of_yaml_takes_time_in_proportion(piece: str) -> None:
    def make(number: int) -> Work:
        text = piece * (number // len(piece) + 1)
        return lambda: read_documents(text)

    check_growth(make, 4000)


def values_in(value: Any) -> int:
    """Return all values, as Ansible goes through them: what several members are is gone through for each."""
    if isinstance(value, dict):
        return 1 + sum(1 + values_in(item) for item in value.values())
    return 1 + sum(map(values_in, value)) if isinstance(value, list) else 1


def bomb(levels: int, width: int = 10, how: str = "[%s]") -> str:
    lines = ["a0: &a0 [%s]" % ",".join(["x"] * width)]
    lines += ["a%d: &a%d %s" % (at, at, how % ",".join(["*a%d" % (at - 1)] * width)) for at in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("levels", [2, 4, 5, 9, 100])
@pytest.mark.parametrize("width", [1, 2, 10])
def test_aliases_of_aliases_stand_for_no_more_than_the_limit(levels: int, width: int) -> None:
    text = bomb(levels, width)
    try:
        found = read_documents(text)
    except InputError as error:
        refused = str(error)
    else:
        refused = ""
        assert values_in(found) <= max(MOST_VALUES, len(text))
    assert bool(refused) is (width > 1 and width**levels > MOST_VALUES // 2)
    assert "its aliases stand for more than 100000 values" in refused or not refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a [*a]", "the alias *a stands for nothing, or for what it is in"),
        ("a: &a {b: *a}", "the alias *a stands for nothing, or for what it is in"),
        ("a: *b", "the alias *b stands for nothing, or for what it is in"),
        # Of one document to the next, an anchor does not count.
        ("a: &a 1\n---\nb: *a", "the alias *a stands for nothing, or for what it is in"),
        ("[" * 101 + "]" * 101, "has more than 100 lists and mappings in one another"),
        ("[" * 100_000, "in one another|nesting depth"),
        ("a: " + "9" * 101, "has a number of 101 characters"),
        ("a: " + "1:" * 60 + "1", "has a number of 121 characters"),
        ('a: !!int "%s"' % ("1" * 101), "has a number of 101 characters"),
        ("a: 2026-02-31", "is no YAML: day is out of range for month"),
        ("? [a]\n: b", "is no YAML: .*unhashable key"),
        ("a: 'x", "is no YAML"),
        ("a: !unknown x", "is no YAML"),
        ("\0", "is no YAML"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_no_manifest_has_is_one_clear_error(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"^pods\.yml: .*(%s)" % said.replace("*a ", r"\*a ").replace("*b ", r"\*b ")):
        read_documents(text, "pods.yml")


def test_manifests_as_people_write_them_are_read() -> None:
    """With anchors, too, and as JSON."""
    text = "a: &r {limits: {cpu: 2}}\nb: [*r, *r]\nc: {<<: *r, d: 1}\nsha: %s\n---\n---\n{'e': '%s'}\n" % (
        "0" * 64 + "a" * 64,
        "9" * 200,
    )
    limits = {"limits": {"cpu": 2}}
    assert read_documents(text) == [
        {"a": limits, "b": [limits, limits], "c": {**limits, "d": 1}, "sha": "0" * 64 + "a" * 64},
        {"e": "9" * 200},
    ]
    assert read_documents('{"a": [1, 2.5, null, true]}') == [{"a": [1, 2.5, None, True]}]
    check_size("")


# --- objects of an API server ------------------------------------------------------------------------


def pods_with(number: int) -> dict[str, list[dict[str, Any]]]:
    """Return pods on the node a, by what there are many of."""
    base = pod_of("p", "a", "2")

    def pod(**parts: Any) -> list[dict[str, Any]]:
        return [{**base, **{key: {**base.get(key, {}), **value} for key, value in parts.items()}}]

    labels = {"l%d" % at: "x" for at in range(number)}
    containers = [{"name": "c%06d" % at} for at in range(number)]
    statuses = [{"name": "c%06d" % at, "state": {}} for at in range(number)]
    terms = [{"matchExpressions": [{"key": "l%d" % at, "operator": "Exists"}]} for at in range(number)]
    values = {"key": "x", "operator": "In", "values": ["v%d" % at for at in range(number)]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    wide = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [values]}]}}
    owners = [{"kind": "ReplicaSet", "name": "o%d" % at} for at in range(number)]
    return {
        "containers": pod(spec={"containers": containers}),
        "init containers": pod(spec={"initContainers": containers}),
        "equal names": pod(spec={"containers": [{"name": "c"}] * number}),
        "statuses": pod(status={"containerStatuses": statuses}),
        "labels": pod(metadata={"labels": labels}),
        "annotations": pod(metadata={"annotations": labels}),
        "owners": pod(metadata={"ownerReferences": owners}),
        "finalizers": pod(metadata={"finalizers": list(labels), "deletionTimestamp": "x"}),
        "selectors": pod(spec={"nodeSelector": labels}),
        "tolerations": pod(spec={"tolerations": [{"key": name} for name in labels]}),
        "terms": pod(spec={"affinity": {"nodeAffinity": required}}),
        "values": pod(spec={"affinity": {"nodeAffinity": wide}}),
        "volumes": pod(spec={"volumes": [{"name": name} for name in labels]}),
        "claims": pod(spec={"resourceClaims": [{"name": name} for name in labels]}),
        "resources": pod(spec={"containers": [{"name": "c", "resources": {"limits": dict.fromkeys(labels, "1")}}]}),
        "overhead": pod(spec={"overhead": dict.fromkeys(labels, "1")}),
        "long name": pod(metadata={"name": "p" * number}),
        "pods": [pod_of("p%d" % at, "a", "1", created="2026-01-01T00:00:%02dZ" % (at % 60)) for at in range(number)],
        "unlike pods": [pod_of("p%d" % at, "a", "%dm" % (at + 1)) for at in range(number)],
    }


def all_answers(pods: list[dict[str, Any]], has_impact: bool) -> None:
    """Do all by which the controller finds something out about pods."""
    for pod in pods:
        try:
            pod_from_manifest(pod)
        except InputError:
            break
    judge_drain(pods)
    nodes = [node_of("a"), node_of("b")]
    fleet = FleetToChange({"a": ("a", "s", True)}, nodes, pods)
    schedule_of(fleet)
    if has_impact:
        impact_of([Cluster({"a": ("a", plan_of())}, nodes, pods)])
    shortage(nodes, pods, ["a"], ["a"])


KINDS = sorted(pods_with(1))


@pytest.mark.parametrize("kind", KINDS)
def test_pods_take_time_in_proportion(kind: str) -> None:
    def make(number: int) -> Work:
        pods = pods_with(number)[kind]
        # Each kind of pod is tried on each kind of kubelet, and then there are cures, up to a limit: make bench-all.
        return lambda: all_answers(pods, has_impact=kind != "unlike pods")

    check_growth(make, 400 if "pods" in kind else 1000)


def budget(name: str, selector: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": 1},
    }


@pytest.mark.parametrize("kind", ["nodes", "taints", "budgets", "selectors"])
def test_nodes_and_budgets_take_time_in_proportion(kind: str) -> None:
    def make(number: int) -> Work:
        names = ["n%d" % at for at in range(number)]
        nodes, budgets = [node_of("a"), node_of("b")], [budget("b", {"matchLabels": {"app": "x"}})]
        if kind == "nodes":
            nodes += map(node_of, names)
        elif kind == "taints":
            taints = [{"key": name, "effect": "NoSchedule"} for name in names]
            nodes.append({**node_of("c"), "spec": {"taints": taints}})
        elif kind == "budgets":
            budgets += [budget(name, {}) for name in names]
        else:
            budgets.append(budget("many", {"matchLabels": dict.fromkeys(names, "x")}))
        pods = [pod_of("p%d" % at, "a", "1") for at in range(5)]
        fleet = FleetToChange({"a": ("a", "s", True)}, nodes, pods, budgets)

        def work() -> None:
            schedule_of(fleet)
            shortage(nodes, pods, ["a"], ["a"])

        return work

    check_growth(make, 1000)


def test_a_pod_has_a_most_of_containers() -> None:
    containers = [{"name": "c%d" % number} for number in range(MOST_CONTAINERS)]
    assert len(pod_from_manifest({"metadata": {"name": "p"}, "spec": {"containers": containers}}).containers) == 10000
    more = {"containers": containers, "initContainers": [{"name": "i"}]}
    with pytest.raises(InputError, match="pod p: has more than 10000 containers"):
        pod_from_manifest({"metadata": {"name": "p"}, "spec": more})


def test_a_short_manifest_stands_for_no_more_pods_than_the_limit() -> None:
    """Each replica of each workload is a pod with all its containers."""
    template = {"spec": {"containers": [{"name": "c%d" % number} for number in range(20)]}}
    deployments = [
        {"kind": "Deployment", "metadata": {"name": "d%d" % number}, "spec": {"replicas": 2500, "template": template}}
        for number in range(3)
    ]
    assert sum(len(pod.containers) for pod in pods_from_manifests(deployments[:2])) == MOST_CONTAINERS_IN_ALL
    with pytest.raises(InputError, match="the manifests have more than 100000 containers"):
        pods_from_manifests(deployments)


@pytest.mark.parametrize("depth", [1, 5000])
def test_lists_of_lists_are_read_however_deep_they_are(depth: int) -> None:
    inner: dict[str, Any] = {"kind": "List", "items": [pod_of("p%d" % number, "a", "1") for number in range(10)]}
    for _level in range(depth):
        inner = {"kind": "List", "items": [inner]}
    assert len(pods_from_manifests([inner])) == 10
    twice = {"kind": "List", "items": [inner, pod_of("p3", "a", "1")]}
    with pytest.raises(InputError, match="two pods have the UID"):
        pods_from_manifests([twice])


# --- traces and answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pods", "equal names", "loads"])
def test_a_trace_takes_time_in_proportion(kind: str) -> None:
    def make(number: int) -> Work:
        pod = {"qosClass": "Burstable", "cpu": "500m", "arrives": 0}
        names = ["p%d" % (at if kind == "pods" else at // 2) for at in range(number)]
        pods = [{**pod, "name": name, "load": [[0, 1]]} for name in names]
        if kind == "loads":
            pods = [{**pod, "name": "p", "load": [[at / number, 1] for at in range(number)]}]
        trace = {"version": 1, "name": "t", "description": "t", "duration": 60, "pods": pods}
        return lambda: read_trace(trace)

    check_growth(make, 1000)


def lists_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where a node's answer has lists and mappings."""
    if isinstance(value, (dict, list)) and value:
        yield path
        items = value.items() if isinstance(value, dict) else enumerate(value[:1])
        for key, item in items:
            yield from lists_in(item, (*path, key))


def grown(value: Any, path: tuple[Any, ...], number: int) -> Any:
    """Return the answer with many members in one place, no two alike where they are texts."""
    if path:
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[path[0]] = grown(value[path[0]], path[1:], number)
        return copy
    if isinstance(value, dict):
        return {**value, **{"%s%d" % (name, at): item for at in range(number) for name, item in [*value.items()][:1]}}
    return [*value, *(named(value[0], at) for at in range(number))]


def named(value: Any, number: int) -> Any:
    if isinstance(value, dict):
        return {key: named(item, number) for key, item in value.items()}
    return "%s%d" % (value, number) if isinstance(value, str) else value


@pytest.mark.parametrize("path", [*lists_in(ANSWER)], ids=str)
def test_an_answer_of_a_node_takes_time_in_proportion(path: tuple[Any, ...]) -> None:
    def make(number: int) -> Work:
        answer = grown(ANSWER, path, number)
        return lambda: assemble([Result("node", LOOKED_AT, answer, {}, [], {})], ReportTerms("T", MADE))

    check_growth(make, 500)

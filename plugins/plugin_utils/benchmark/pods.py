# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A benchmark as pods: their manifests, the order of the runs, and what their logs say. Pure.

Which CPUs a pod has is what the node's kubelet gives it. A Guaranteed pod of whole CPUs has its own where the policy of
the CPU manager is static; that is the placement "exclusive" here. Each pod says which CPUs it may use: where a
Guaranteed one may use others than as many as it requests, it is "shared", as a Burstable one is.
"""

from __future__ import annotations

import json
from typing import Any, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._benchmark.benchmark_plan import (
    AGGRESSOR,
    BESIDE_AGGRESSOR,
    CO_LOCATED,
    EXCLUSIVE,
    ROLES,
    SHARED,
    STAND_ALONE,
    VICTIM,
    order_of,
)
from ...module_utils._benchmark.result import quantile
from ...module_utils._benchmark.worker import COMPUTE, MEMORY
from ...module_utils._cgroup.kubepods import BURSTABLE, GUARANTEED
from ...module_utils.cpuset import CPUSet

LABEL = "kubenode-isolation-benchmark"
_MEBIBYTE = 1 << 20
# No kernel has CPUs with higher numbers.
_MOST_CPUS = 8192
# Python itself.
_SPARE = 128


class WantedPods(NamedTuple):
    """What is to be run. node: the node's name; cpu_count: its CPUs; text: the program of the pods."""

    node: str
    cpu_count: int
    namespace: str
    image: str
    text: str
    experiments: Sequence[str]
    cpus: int = 1
    runs: int = 10
    seed: int = 0
    unit_milliseconds: float = 2.0
    units: int = 500
    memory: int = 64 * _MEBIBYTE
    # By which the pods of this benchmark are told from those of another one in the namespace.
    run_id: str = ""
    # How long a pod may run, in seconds: it ends by itself where nobody deletes it.
    longest: int = 300


def calibrations(wanted: WantedPods) -> list[dict[str, Any]]:
    """The pods that come first, [{workload, pod}]: they find out the size of a unit of each kind of work."""
    return [
        {"workload": kind, "pod": _pod(wanted, kind, GUARANTEED, {"calibrate": wanted.unit_milliseconds / 1000})}
        for kind in (COMPUTE, MEMORY)
    ]


def pod_runs(wanted: WantedPods, sizes: Mapping[str, int]) -> dict[str, Any]:
    """{cases, runs: [{case, run, place, workload, qos_class, pod, beside}]} in random order.

    sizes: of a unit, by kind of work. beside: the pod that has to run meanwhile, None for none.
    """
    pairs = list(_pairs(wanted.experiments))
    cases = [_case(wanted, *pair) for pair in pairs]
    runs = []
    for place, (number, run) in enumerate(order_of(len(pairs), wanted.runs, wanted.seed)):
        _experiment, (role, qos), beside = pairs[number]
        work = {"size": sizes[ROLES[role]], "units": wanted.units}
        runs.append(
            {
                "case": number,
                "run": run,
                "place": place,
                "workload": role,
                "qos_class": qos,
                "pod": _pod(wanted, role, qos, work),
                "beside": None
                if beside is None
                else _pod(wanted, *beside, {"size": sizes[ROLES[beside[0]]], "units": 0}),
            }
        )
    return {"cases": cases, "runs": runs}


def rows_of(runs: Sequence[Mapping[str, object]], logs: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a result. logs: of the pod of each run, in the same order. Raises InputError for another log."""
    rows = []
    for run, log in zip(runs, logs):
        answers = answer_of(log).get("answers")
        if not isinstance(answers, list) or not answers:
            raise _no_answer(log)
        latencies = [latency for answer in answers for latency in answer["latencies"]]
        rows.append(
            {
                **{name: run[name] for name in ("case", "run", "place", "workload", "qos_class")},
                "seconds": max(answer["seconds"] for answer in answers),
                "p50": quantile(latencies, 0.5),
                "p99": quantile(latencies, 0.99),
                "longest": max(latencies),
            }
        )
    return rows


def placed(wanted: WantedPods, plan: Mapping[str, Any], logs: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The cases as they really were placed, by the CPUs that the pods could use, and what is to be said of that."""
    cpus: dict[int, list[CPUSet]] = {}
    for run, log in zip(plan["runs"], logs):
        told = answer_of(log).get("cpus")
        if not isinstance(told, list) or not all(isinstance(cpu, int) and 0 <= cpu < _MOST_CPUS for cpu in told):
            raise _no_answer(log)
        cpus.setdefault(run["case"], []).append(CPUSet(told))
    guaranteed = [number for number in cpus if plan["cases"][number]["placement"] == EXCLUSIVE]
    without = sorted({str(own) for number in guaranteed for own in cpus[number] if not _is_exclusive(wanted, own)})
    cases = []
    for number, case in enumerate(plan["cases"]):
        own, *others = case["containers"]
        is_exclusive = own["exclusive"] and all(_is_exclusive(wanted, found) for found in cpus.get(number, ()))
        told_cpus = " or ".join(sorted({str(found) for found in cpus.get(number, ())})) or own["cpus"]
        own = {**own, "cpus": told_cpus, "exclusive": is_exclusive}
        # Nobody reads what those beside it could use; the same kubelet placed them.
        others = [{**container, "exclusive": container["exclusive"] and not without} for container in others]
        placement = EXCLUSIVE if is_exclusive else SHARED
        cases.append({**case, "placement": placement, "containers": [own, *others]})
    notes = []
    if without:
        text = (
            "Guaranteed pods could use CPUs %s, and had requested %d for themselves: these runs count as shared, and"
            " show nothing of exclusive CPUs; is the policy of the node's CPU manager static?"
        )
        notes.append(text % (" or ".join(without), wanted.cpus))
    return cases, notes


def _is_exclusive(wanted: WantedPods, cpus: CPUSet) -> bool:
    return len(cpus) == wanted.cpus < wanted.cpu_count


def answer_of(log: str) -> dict[str, Any]:
    """What a pod printed last. Raises InputError where that is no answer."""
    try:
        answer = json.loads(log.strip().rpartition("\n")[2])
    except (RecursionError, ValueError) as error:
        raise _no_answer(log) from error
    if not isinstance(answer, dict):
        raise _no_answer(log)
    return answer


def _no_answer(log: str) -> InputError:
    return InputError(
        "a pod of the benchmark printed no answer, but %r" % log.strip()[-200:],
        remedy="is python3 in the image, 3.8 or later?",
    )


def _pairs(experiments: Sequence[str]) -> list[tuple[str, tuple[str, str], tuple[str, str] | None]]:
    """(experiment, what is measured, what runs beside it), each as (role, QoS class)."""
    classes = (GUARANTEED, BURSTABLE)
    pairs: list[tuple[str, tuple[str, str], tuple[str, str] | None]] = []
    for qos in classes:
        pairs.append((STAND_ALONE, (VICTIM, qos), None))
        pairs.append((BESIDE_AGGRESSOR, (VICTIM, qos), (AGGRESSOR, BURSTABLE)))
        for beside_qos in classes:
            pairs.append((CO_LOCATED, (COMPUTE, qos), (MEMORY, beside_qos)))
            pairs.append((CO_LOCATED, (MEMORY, qos), (COMPUTE, beside_qos)))
    return [pair for pair in pairs if pair[0] in experiments]


def _case(wanted: WantedPods, experiment: str, own: tuple[str, str], beside: tuple[str, str] | None) -> dict[str, Any]:
    containers = [
        {
            "workload": role,
            "qos_class": qos,
            "cpus": "%d requested" % (wanted.cpus if role != AGGRESSOR else 1),
            "exclusive": qos == GUARANTEED,
        }
        for role, qos in (own, *([] if beside is None else [beside]))
    ]
    placement = EXCLUSIVE if own[1] == GUARANTEED else SHARED
    return {"experiment": experiment, "placement": placement, "containers": containers}


def _pod(wanted: WantedPods, role: str, qos: str, work: Mapping[str, object]) -> dict[str, object]:
    processes = wanted.cpu_count if role == AGGRESSOR else wanted.cpus
    memory = "%dMi" % ((wanted.memory // _MEBIBYTE if role == MEMORY else 0) * processes + _SPARE)
    argument = json.dumps({"kind": ROLES[role], "memory": wanted.memory, "processes": processes, **work})
    resources: dict[str, Any] = {"requests": {"cpu": str(1 if role == AGGRESSOR else wanted.cpus), "memory": memory}}
    if qos == GUARANTEED:
        resources["limits"] = dict(resources["requests"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": LABEL + "-",
            "namespace": wanted.namespace,
            "labels": {"app.kubernetes.io/name": LABEL, "app.kubernetes.io/instance": wanted.run_id},
        },
        "spec": {
            # Not through the scheduler: the node is cordoned.
            "nodeName": wanted.node,
            "tolerations": [{"operator": "Exists"}],
            "restartPolicy": "Never",
            "activeDeadlineSeconds": wanted.longest,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [
                {
                    "name": role,
                    "image": wanted.image,
                    "command": ["python3", "-c", wanted.text, argument],
                    "resources": resources,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                        "runAsNonRoot": True,
                        "runAsUser": 65534,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                }
            ],
        },
    }

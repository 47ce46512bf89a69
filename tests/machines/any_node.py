# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random nodes as files, right and wrong, and what is wanted of them."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, NamedTuple

from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
ROOT = "/var/lib/kubelet/"
CONFIG, CHECKPOINT, MEMORY = ROOT + "config.yaml", ROOT + "cpu_manager_state", ROOT + "memory_manager_state"
DROP_IN = "/etc/kubelet.d/10.conf"
MACHINES = ("1s2c", "1s4c2t", "2s1n2c2t", "2s1n2c+memory1", "1s4c2t+offline5", "9n1s1c")


class Case(NamedTuple):
    """A node, and what is wanted of it."""

    machine: str
    minor: int
    values: Mapping[str, Any]
    is_json: bool
    drop_in: Mapping[str, Any] | None
    flags: tuple[str, ...]
    checkpoint: bytes | None
    memory_state: bytes | None
    wanted: Mapping[str, Any]


# What is right comes first, and what is wrong then shows how.
OPTIONS = st.dictionaries(
    st.sampled_from(["full-pcpus-only", "strict-cpu-reservation", "align-by-socket", "no-such-option"]),
    st.sampled_from(["true", "true", "false", "maybe"]),
    max_size=2,
)
TOPOLOGY_OPTIONS = st.sampled_from(
    [{}, {"prefer-closest-numa-nodes": "true"}, *({"max-allowable-numa-nodes": text} for text in ("9", "4", "x"))]
)
RESERVATIONS = st.sampled_from(
    [{}, {"cpu": "1"}, {"cpu": "500m", "memory": "924Mi"}, {"cpu": 1}, {"cpu": "x"}, {"cpu": "-1"}, {"gpu": "1"}, "x"]
)
RESERVED_MEMORY = st.sampled_from(
    [
        [],
        [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
        [{"numaNode": 7, "limits": {"memory": "1Gi"}}],
        [{"numaNode": 0, "limits": {"memory": "x"}}],
        {},
    ]
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "cpuManagerPolicy": st.sampled_from(["static", "static", "static", "none", "", "dynamic", 5]),
    "cpuManagerPolicyOptions": st.one_of(OPTIONS, st.just({"full-pcpus-only": True})),
    "cpuManagerReconcilePeriod": st.sampled_from(["10s", "0s", "-1s", "5", "soon", 5]),
    "reservedSystemCPUs": st.sampled_from(["0", "0", "0-1", "", "0,99", "0,,1", "0-7", "0-3:1/2", 3]),
    "kubeReserved": RESERVATIONS,
    "systemReserved": RESERVATIONS,
    "kubeReservedCgroup": st.sampled_from(["", "/kube"]),
    "enforceNodeAllocatable": st.sampled_from([["pods"], ["none"], ["pods", "kube-reserved"], ["nothing"], "pods"]),
    "topologyManagerPolicy": st.sampled_from(["none", "best-effort", "restricted", "single-numa-node", "strict", None]),
    "topologyManagerScope": st.sampled_from(["container", "pod", "node", ""]),
    "topologyManagerPolicyOptions": TOPOLOGY_OPTIONS,
    "memoryManagerPolicy": st.sampled_from(["None", "Static", "Static", "static", "BestEffort"]),
    "reservedMemory": RESERVED_MEMORY,
    "featureGates": st.sampled_from(
        [
            {"CPUManagerPolicyAlphaOptions": True},
            {"CPUManagerPolicyBetaOptions": False},
            {"PodLevelResources": True, "PodLevelResourceManagers": True},
            {"PodLevelResourceManagers": True},
            {"CPUManager": True},
            {"Nothing": True},
            {"MemoryManager": "true"},
        ]
    ),
    "evictionHard": st.sampled_from([{}, {"memory.available": "100Mi"}, {"memory.available": "x"}, {"nothing": "1"}]),
    "evictionSoft": st.sampled_from([{}, {"memory.available": "200Mi"}]),
    "maxPods": st.sampled_from([110, 0, -1, "x", 1.5, True]),
    "cpuCFSQuotaPeriod": st.sampled_from(["100ms", "5ms", "2s", "0s", "50"]),
    "cpuCFSQuota": st.sampled_from([True, False, "no"]),
    "protectKernelDefaults": st.just(True),
    "cgroupRoot": st.sampled_from(["/pods", "/pods", "/", ""]),
    "cpuManagerPolcy": st.just("static"),
}
WANTED = st.fixed_dictionaries(
    {},
    optional={
        "cpu_manager_policy": st.sampled_from(["static", "none"]),
        "cpu_manager_policy_options": OPTIONS,
        "cpu_manager_reconcile_period": st.sampled_from(["10s", "5s"]),
        "reserved_system_cpus": st.sampled_from(["0", "0-1", "", "0,99", "0-7"]),
        "kube_reserved_cpu": st.sampled_from(["0", "1", "99"]),
        "topology_manager_policy": st.sampled_from(["none", "best-effort", "single-numa-node"]),
        "topology_manager_policy_options": TOPOLOGY_OPTIONS,
        "memory_manager_policy": st.sampled_from(["None", "Static"]),
    },
)
FLAGS = st.sampled_from(
    [
        *[(), (), ("--v=2",), ("--cpu-manager-policy=static",), ("--reserved-cpus=0",), ("--nothing",)],
        *[("--cpu-manager-policy=dynamic",), ("--kube-reserved=cpu",), ("--max-pods=x",), ("--fail-swap-on=false",)],
    ]
)
CHECKPOINTS = st.sampled_from(
    [
        *(None, None, b"{"),
        *(write_checkpoint("static", State(CPUSet.parse(text), {})) for text in ("0-1", "0-7", "1-7")),
        write_checkpoint("none", State(CPUSet(), {})),
        write_checkpoint("static", State(CPUSet.parse("0-6"), {"pod": {"app": CPUSet([7])}})),
    ]
)
MEMORY_STATES = st.sampled_from([None, None, None, b'{"policyName":"None"}', b'{"policyName":"Static"}', b"{"])


def some_fields(most: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return a few fields: with many, nearly always one is wrong."""
    names = st.lists(st.sampled_from(sorted(FIELDS)), max_size=most, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: FIELDS[name] for name in chosen}))


# Most nodes begin with what is right.
VALUES = st.one_of(
    some_fields(6),
    some_fields(4).map(lambda values: {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0", **values}),
    some_fields(3).map(
        lambda values: {
            "memoryManagerPolicy": "Static",
            "systemReserved": {"memory": "924Mi"},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            **values,
        }
    ),
)
CASES = st.builds(
    Case,
    st.sampled_from(MACHINES),
    st.sampled_from([36, 36, 35, 34, 33, 32, 30]),
    VALUES,
    st.booleans(),
    st.one_of(st.none(), st.none(), some_fields(2)),
    FLAGS,
    CHECKPOINTS,
    MEMORY_STATES,
    WANTED,
)


def text_of(values: Mapping[str, Any], is_json: bool) -> bytes:
    whole = {**HEADER, **values}
    if is_json:
        return json.dumps(whole).encode("utf-8")
    return "".join("%s: %s\n" % (name, json.dumps(value)) for name, value in whole.items()).encode("utf-8")


def node_of(tree: Tree, case: Case) -> Node:
    contents: dict[str, bytes | None] = {
        CONFIG: text_of(case.values, case.is_json),
        CHECKPOINT: case.checkpoint,
        MEMORY: case.memory_state,
    }
    command_line = ["/usr/bin/kubelet", "--config=" + CONFIG, *case.flags]
    if case.drop_in is not None:
        contents[DROP_IN] = text_of(case.drop_in, case.is_json)
        command_line.append("--config-dir=" + os.path.dirname(DROP_IN))
    return Node(OverlaidTree(tree, contents), minor=case.minor, command_line=command_line)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a kubelet starts has one answer, whoever gives it: the prediction, the reports, the plans and the refusals.

ANSWERS=10000 with --hypothesis-profile=search looks at so many nodes.
"""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import (
    ConfigurationError,
    CPUManagerError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.settings import (
    SETTINGS,
    found_settings,
    needed_config,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.engine import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.prediction import Prediction, Starts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet_module import planned_config
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.plan import Terms, rollout_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.drift import report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.prediction import (
    config_after,
    config_if_certain,
    predict_configuration,
    predicted_starts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.start_report import (
    predict_start,
    start_report,
    states_after,
    with_states,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.config import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.verdict import REFUSED, judge, readable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
ROOT = "/var/lib/kubelet/"
CONFIG, CHECKPOINT, MEMORY = ROOT + "config.yaml", ROOT + "cpu_manager_state", ROOT + "memory_manager_state"
DROP_IN = "/etc/kubelet.d/10.conf"
MACHINES = ("1s2c", "1s4c2t", "2s1n2c2t", "2s1n2c+memory1", "1s4c2t+offline5", "9n1s1c")
# What depends on cgroups cannot be determined of them.
WITHOUT_CGROUPS = ("1s4c2t", "2s1n2c+memory1")
MEMINFO = "MemTotal:       16777216 kB\n"
ANSWERS = int(os.environ.get("ANSWERS", "150"))


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


# --- nodes --------------------------------------------------------------------------------------------------------

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
    """A few fields: with many, nearly always one is wrong."""
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


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tree]:
    """The files of each machine."""
    trees = {}
    for name in MACHINES:
        root = tmp_path_factory.mktemp("machine")
        write_machine(root, name)
        (root / "proc/meminfo").write_text(MEMINFO, encoding="ascii")
        if name not in WITHOUT_CGROUPS:
            (root / "sys/fs/cgroup").mkdir(parents=True)
            (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpuset cpu memory\n", encoding="ascii")
        trees[name] = Tree(str(root))
    return trees


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


# --- answers ------------------------------------------------------------------------------------------------------


def config_of(prediction: Prediction) -> CPUManagerConfig | None:
    """What the CPU manager starts with; None where that is not certain, or nothing that anybody can want."""
    try:
        return needed_config(prediction)
    except RefusedError:
        return None


def drift_of(node: Node, starts: Starts | None, wanted: Mapping[str, Any]) -> dict[str, Any]:
    configuration, problem = node.found()
    machine = node.machine()
    return report(node.topology, machine, configuration, node.checkpoint(), wanted, None, problem, starts)


def subjects(answer: Mapping[str, Any]) -> list[str]:
    return [row["subject"] for row in answer["drift"]]


def is_readable(node: Node) -> bool:
    """Whether the settings can be read and compared."""
    try:
        found_settings(node.needed_configuration())
    except ConfigurationError:
        return False
    return True


def check_found(node: Node, case: Case) -> None:
    """What is said of the node as it is."""
    prediction = predict_configuration(node)
    whole = predict_start(node)
    told = start_report(node, {})
    assert told["starts"] == whole.starts
    assert told["findings"] == [finding.to_dict() for finding in whole.findings]
    assert {finding.where for finding in whole.findings if finding not in prediction.findings} <= {CHECKPOINT, MEMORY}
    if whole.starts:
        assert set(states_after(node)) == {CHECKPOINT, MEMORY}
    parameters = {**dict.fromkeys(SETTINGS), "reservation": None}
    plan = rollout_report(node, {}, Terms())
    kinds = {refusal["kind"] for refusal in plan["refusals"]}
    if not is_readable(node):
        # A value that no kubelet takes, or a flag; or one that does not count.
        where = {finding.where for finding in prediction.findings}
        assert (
            prediction.starts is False or is_doubtful(prediction) or where & {"kubeReserved.cpu", "systemReserved.cpu"}
        )
        assert (plan["found"], plan["starts"], kinds) == (None, False, {"configuration"})
        with pytest.raises(ConfigurationError):
            planned_config(node, parameters)
        return
    starts = predicted_starts(node, {})
    assert starts == Starts(prediction, prediction)
    configuration = node.needed_configuration()
    assert predicted_starts(node, {}, configuration) == starts
    check_refusals(predicted_starts(node, {}, configuration, only_refusals=True).found, prediction)
    config, checkpoint = config_of(prediction), node.checkpoint()
    answer = drift_of(node, starts, {})
    with_checkpoint = with_states(node, prediction, checkpoint, None)
    assert (answer["found_refusal"] != "") == (with_checkpoint.starts is False)
    assert ("start" in subjects(answer)) == (config is None)
    certain = config_if_certain(prediction)
    assert config in (None, certain)
    judgement = readable(checkpoint) if certain is None else judge(checkpoint, certain)
    assert answer["checkpoint"] == judgement.to_dict()
    assert ("checkpoint" in subjects(answer)) == (judgement.verdict == REFUSED)
    assert plan["found_refusal"] == answer["found_refusal"]
    # A state that is refused is reset, unless nobody can tell by what it is to be judged.
    assert plan["starts"] == ((with_checkpoint if config is None else prediction).starts is not False)
    assert ("would_not_start" in kinds) == (plan["starts"] is False)
    assert plan["unknown"] == [doubt.to_dict() for doubt in prediction.unknown]
    if config is None:
        with pytest.raises(RefusedError):
            planned_config(node, parameters)
    else:
        assert planned_config(node, parameters) == config_after(starts) == config
    check_values(node, case, prediction)


def is_doubtful(prediction: Prediction) -> bool:
    """Whether a flag is given of which it is not known whether the kubelet has it."""
    return any(doubt.where.startswith("--") for doubt in prediction.unknown)


def check_values(node: Node, case: Case, prediction: Prediction) -> None:
    """What is said of the values that the files and flags have together."""
    configuration = node.needed_configuration()
    found = predict_values(configuration.values, node.machine(), CONFIG)
    if case.flags or case.drop_in is not None:
        # What is wrong can be covered by what counts before it; what is right together is right.
        assert found.starts == prediction.starts or prediction.starts is False or is_doubtful(prediction)
        return
    assert (found.starts, found.unknown, found.checked) == (prediction.starts, prediction.unknown, prediction.checked)
    # Of several members that cannot be decoded the kubelet names the first, in JSON in the order of the file.
    assert case.is_json or found.findings == prediction.findings
    try:
        assert manager_config(configuration, node.machine()) == config_of(prediction)
    except RefusedError:
        assert config_of(prediction) is None


def check_refusals(found: Prediction, whole: Prediction) -> None:
    """What is said where only refusals count."""
    assert [finding for finding in found.findings if finding.fatal] == [
        finding for finding in whole.findings if finding.fatal
    ]
    assert (found.unknown, found.starts, config_of(found)) == (whole.unknown, whole.starts, config_of(whole))
    if whole.checked is not None:
        assert found.checked is not None
        harmless: list[Any] = []
        assert found.checked._replace(before=harmless, after=harmless) == whole.checked._replace(
            before=harmless, after=harmless
        )


def outcome(call: Any, *arguments: Any) -> Any:
    """What a call answers, or with what it is refused."""
    try:
        return call(*arguments)
    except CPUManagerError as error:
        return str(error)


def check_wanted(node: Node, wanted: Mapping[str, Any]) -> None:
    """What is said of the node with what is wanted."""
    planned = predict_configuration(node, wanted)
    assert start_report(node, wanted)["starts"] == predict_start(node, wanted).starts
    if node.found()[0] is None:
        return
    starts = predicted_starts(node, wanted)
    assert starts.found == predict_configuration(node)
    assert (starts.planned.starts, starts.planned.unknown) == (planned.starts, planned.unknown)
    assert starts.planned.findings == planned.findings
    assert predicted_starts(node, wanted, node.found()[0]) == starts
    check_refusals(predicted_starts(node, wanted, only_refusals=True).planned, planned)
    found, config = config_of(starts.found), config_of(starts.planned)
    answer = outcome(drift_of, node, starts, wanted)
    plan = outcome(rollout_report, node, wanted, Terms())
    if isinstance(answer, str):
        # Only what is wanted wrong is refused, by all in the same words.
        assert wanted
        assert found is not None
        assert config is None
        assert plan == answer == outcome(needed_config, starts.planned)
        return
    if answer["found"] is None:
        assert plan["starts"] is False
        return
    assert ("start" in subjects(answer)) == (config is None)
    # Where the change brings nothing with it, the states stay, and those of the kubelet as it is decide.
    kinds = {refusal["kind"] for refusal in plan["refusals"]}
    assert ("would_not_start" in kinds) == (plan["starts"] is False)
    if config is not None:
        assert plan["starts"] is True
        assert config_after(starts) == config
    elif starts.planned.refusal is not None:
        assert plan["starts"] is False


@settings(max_examples=ANSWERS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
def test_there_is_one_answer(machines: Mapping[str, Tree], case: Case) -> None:
    node = node_of(machines[case.machine], case)
    check_found(node, case)
    check_wanted(node, case.wanted)

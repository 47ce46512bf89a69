# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a kubelet starts has one answer, whoever gives it: the prediction, the reports, the plans and the refusals.

ANSWERS=10000 with --hypothesis-profile=search looks at so many nodes.
"""

from __future__ import annotations

from os.path import dirname
from typing import Any, Mapping

import pytest
from hypothesis import HealthCheck, example, given, settings

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    ConfigurationError,
    CPUManagerError,
    RefusedError,
    noted,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import (
    SETTINGS,
    found_settings,
    needed_config,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    Prediction,
    Starts,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import (
    report,
    with_memory_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    config_after,
    config_if_certain,
    memory_plan,
    planned_config,
    predict_configuration,
    predict_start,
    predicted_starts,
    start_report,
    with_states,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import wanted_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ROLLBACK,
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    REFUSED,
    CPUManagerConfig,
    judge,
    readable,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.any_node import (
    CASES,
    CHECKPOINT,
    CONFIG,
    DROP_IN,
    MACHINES,
    MEMORY,
    Case,
    node_of,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import states_after

# What depends on cgroups cannot be determined of them.
WITHOUT_CGROUPS = ("1s4c2t", "2s1n2c+memory1")
MEMINFO = "MemTotal:       16777216 kB\n"
ANSWERS = how_many("ANSWERS", 50, 1000)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Tree]:
    """Return the files of each machine."""
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


def config_of(prediction: Prediction) -> CPUManagerConfig | None:
    """Return what the CPU manager starts with; None where that is not certain, or nothing that anybody can want."""
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
    """Return whether the settings can be read and compared."""
    try:
        found_settings(node.needed_configuration())
    except ConfigurationError:
        return False
    return True


def check_found(node: Node, case: Case) -> None:
    """Check that all answers say the same of the node as it is."""
    prediction = predict_configuration(node)
    whole = predict_start(node)
    told = start_report(node, {})
    assert told["starts"] == whole.starts
    assert told["findings"] == [finding.to_dict() for finding in whole.findings]
    assert {finding.where for finding in whole.findings if finding not in prediction.findings} <= {CHECKPOINT, MEMORY}
    if whole.starts:
        assert set(states_after(node)) == {CHECKPOINT, MEMORY}
    parameters = {**dict.fromkeys(SETTINGS), "reservation": None}
    plan = rollout_report(node, {}, ChangeTerms())
    kinds = {refusal["kind"] for refusal in plan["refusals"]}
    if not is_readable(node):
        # A value that no kubelet takes, or a flag; or one that does not count.
        where = {finding.where for finding in prediction.findings}
        assert (
            prediction.starts is False or is_doubtful(prediction) or where & {"kubeReserved.cpu", "systemReserved.cpu"}
        )
        assert (plan["found"], plan["starts"], kinds) == (None, False, {"configuration"})
        with pytest.raises(ConfigurationError):
            planned_config(node, wanted_settings(node, parameters))
        return
    starts = predicted_starts(node, {})
    assert starts == Starts(prediction, prediction)
    configuration = node.needed_configuration()
    assert predicted_starts(node, {}, configuration) == starts
    config, checkpoint = config_of(prediction), node.checkpoint()
    answer = drift_of(node, starts, {})
    with_checkpoint = with_states(node, prediction, checkpoint, None)
    assert (answer["found_refusal"] != "") == (with_checkpoint.starts is False)
    assert ("start" in subjects(answer)) == (config is None)
    certain = config_if_certain(prediction)
    assert config in (None, certain)
    judgement = readable(checkpoint) if certain is None else judge(checkpoint, certain)
    assert answer["checkpoint"] == {**judgement.to_dict(), "lost": []}
    assert ("checkpoint" in subjects(answer)) == (judgement.verdict == REFUSED)
    assert plan["found_refusal"] == answer["found_refusal"]
    # A state that is refused is reset, unless nobody can tell by what it is to be judged.
    memory = memory_plan(node, prediction)
    left = with_states(node, prediction, checkpoint if config is None else None, memory.kept)
    assert (plan["starts"], plan["unknown"]) == (left.starts, [doubt.to_dict() for doubt in left.unknown])
    assert ("would_not_start" in kinds) == (plan["starts"] is False)
    # What cannot be determined is the same for all, and each of it is a note.
    assert told["unknown"] == plan["unknown"]
    report_of_drift = noted(with_memory_state(answer, memory, memory.reason)["notes"])
    for said in (plan, report_of_drift, rollout_report(node, {}, ChangeTerms(ROLLBACK))):
        assert said["note_checks"].count("start-uncertain") == len(left.unknown)
    if config is None:
        with pytest.raises(RefusedError):
            planned_config(node, wanted_settings(node, parameters))
    else:
        assert planned_config(node, wanted_settings(node, parameters)) == config_after(starts) == config
    check_values(node, case, prediction)


def is_doubtful(prediction: Prediction) -> bool:
    """Return whether it is not known that the kubelet has a flag that is given, or how it merges the drop-ins."""
    return any(doubt.where.startswith("--") or doubt.where == dirname(DROP_IN) for doubt in prediction.unknown)


def check_values(node: Node, case: Case, prediction: Prediction) -> None:
    """Check that the same is said of the values that the files and flags have together."""
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


def outcome(call: Any, *arguments: Any) -> Any:
    """Return what a call answers, or with what it is refused."""
    try:
        return call(*arguments)
    except CPUManagerError as error:
        return str(error)


def check_wanted(node: Node, wanted: Mapping[str, Any]) -> None:
    """Check that all answers say the same of the node with what is wanted."""
    planned = predict_configuration(node, wanted)
    assert start_report(node, wanted)["starts"] == predict_start(node, wanted).starts
    if node.found()[0] is None:
        return
    starts = predicted_starts(node, wanted)
    assert starts.found == predict_configuration(node)
    assert (starts.planned.starts, starts.planned.unknown) == (planned.starts, planned.unknown)
    assert starts.planned.findings == planned.findings
    assert predicted_starts(node, wanted, node.found()[0]) == starts
    found, config = config_of(starts.found), config_of(starts.planned)
    answer = outcome(drift_of, node, starts, wanted)
    plan = outcome(rollout_report, node, wanted, ChangeTerms())
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
    assert (plan["starts"] is None) == (plan["starts"] is not False and plan["unknown"] != [])
    if config is not None:
        assert plan["starts"] is not False
        assert config_after(starts) == config
    elif starts.planned.refusal is not None:
        assert plan["starts"] is False


@settings(max_examples=ANSWERS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
@example(case=Case("1s2c", 30, {}, False, {}, (), None, None, {}))
def test_there_is_one_answer(machines: Mapping[str, Tree], case: Case) -> None:
    node = node_of(machines[case.machine], case)
    check_found(node, case)
    check_wanted(node, case.wanted)

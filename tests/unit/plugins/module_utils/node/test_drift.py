# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import InputError, NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.file.configuration import (
    KubeletConfiguration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.settings import (
    changes,
    check_settings,
    found_settings,
    plan_settings,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.engine import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.finding import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.prediction import Prediction, Starts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.drift import describe_drift, report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.observation import Observed, observe
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import first_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.config import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.pod_formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.verdict import Judgement, judge
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    SYSTEMD,
    V1,
    Files,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.values import defaults_of_settings

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"

SETTINGS: dict[str, Any] = {
    **defaults_of_settings(),
    "cpu_manager_policy": "static",
    "reserved_system_cpus": "0,4",
}


def cpus(text: str) -> CPUSet:
    return CPUSet.parse(text)


def file(text: str = "") -> KubeletConfiguration:
    return KubeletConfiguration.parse(HEADER + text, "config.yaml")


def state(default: str, **containers: str) -> bytes:
    assignments = {"uid-" + name: {name: cpus(text)} for name, text in containers.items()}
    return write_checkpoint("static", State(cpus(default), assignments))


def told(
    wanted: Mapping[str, Any], text: str | None = STATIC, checkpoint: bytes | None = None, name: str = "1s4c2t"
) -> dict[str, Any]:
    """The report of a node; `text` is None for one without a kubelet."""
    topology = parse_name(name).topology()
    configuration = None if text is None else file(text)
    return report(topology, Host(kubelet_view(topology)), configuration, checkpoint, wanted)


CONFIG = CPUManagerConfig("static", cpus("0-7"), cpus("0,4"))


# All of it but the distances.
TOPOLOGY = {name: part for name, part in parse_name("1s4c2t").topology().to_dict().items() if name != "numa_distances"}


# --- a node -----------------------------------------------------------------------------------------


def test_no_kubelet_is_an_answer() -> None:
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,99"}
    found = told(wanted, None, b"{}")
    assert found == {
        "status": "no kubelet",
        "topology": TOPOLOGY,
        "wanted": wanted,
        "found": None,
        "drift": [],
        "found_refusal": "",
        "actions": [],
        "checkpoint": Judgement("absent").to_dict(),
        "cpus": {"online": "0-7", "offline": "", "reserved": "", "exclusive": "", "shared": "0-7", "isolated": ""},
        "owners": [{"use": "shared", "owner": "", "cpus": "0-7"}],
        "enforcement": None,
        "notes": [],
    }


def test_clean() -> None:
    found = told(SETTINGS, STATIC, state("0,2-4,6-7", a="1,5"))
    assert found == {
        "status": "clean",
        "topology": TOPOLOGY,
        "wanted": SETTINGS,
        "found": SETTINGS,
        "drift": [],
        "found_refusal": "",
        "actions": [],
        "checkpoint": judge(state("0,2-4,6-7", a="1,5"), CONFIG).to_dict(),
        "cpus": {
            "online": "0-7",
            "offline": "",
            "reserved": "0,4",
            "exclusive": "1,5",
            "shared": "2-3,6-7",
            "isolated": "",
            "reserved_wanted": "0,4",
        },
        "owners": [
            {"use": "exclusive", "owner": "uid-a/a", "cpus": "1,5"},
            {"use": "reserved", "owner": "", "cpus": "0,4"},
            {"use": "shared", "owner": "", "cpus": "2-3,6-7"},
        ],
        "enforcement": None,
        "notes": [],
    }
    # What means the same.
    wanted = {"reserved_system_cpus": "4,0", "cpu_manager_reconcile_period": "10000ms"}
    assert told(wanted, STATIC, state("0-7"))["status"] == "clean"
    assert told(SETTINGS, STATIC, None)["status"] == "clean"  # the kubelet makes a new one


def test_where_nothing_is_wanted_the_status_says_so() -> None:
    assert told({}, STATIC, state("0-7"))["status"] == "nothing wanted"
    assert told({}, STATIC, state("0-6"))["status"] == "drift"


def test_a_configuration_that_cannot_be_read_is_reported() -> None:
    problem = NodeError("line 1: is never closed", "/var/lib/kubelet/config.yaml", "repair it")
    topology = parse_name("1s4c2t").topology()
    machine = Host(kubelet_view(topology))
    found = report(topology, machine, None, state("0,2-4,6-7", a="1,5"), SETTINGS, None, problem)
    assert (found["status"], found["found"], found["actions"]) == ("drift", None, [])
    assert found["drift"] == [
        {
            "subject": "configuration",
            "wanted": "readable",
            "found": "/var/lib/kubelet/config.yaml: line 1: is never closed",
            "source": "/var/lib/kubelet/config.yaml",
            "remedy": "repair it",
        }
    ]
    assert found["found_refusal"] == "/var/lib/kubelet/config.yaml: line 1: is never closed"
    # The checkpoint is read all the same.
    assert found["cpus"]["exclusive"] == "1,5"


def test_what_is_wrong_without_a_place_or_a_remedy_is_cured_by_what_was_there_before() -> None:
    topology = parse_name("1s4c2t").topology()
    found = report(topology, Host(kubelet_view(topology)), None, None, {}, None, NodeError("is strange"))
    (row,) = found["drift"]
    assert (row["found"], row["source"]) == ("is strange", None)
    assert row["remedy"].endswith("with the playbook rollback")


def test_a_value_that_cannot_be_read_is_reported() -> None:
    found = told({"cpu_manager_policy": "static"}, STATIC + "cpuManagerReconcilePeriod: soon\n", state("0-7"))
    assert [row["subject"] for row in found["drift"]] == ["configuration"]
    assert "cpuManagerReconcilePeriod" in found["drift"][0]["found"]
    # It is none of the wanted settings' business where it is replaced.
    cured = told({"cpu_manager_reconcile_period": "5s"}, STATIC + "cpuManagerReconcilePeriod: soon\n", state("0-7"))
    assert [row["subject"] for row in cured["drift"]] == ["cpu_manager_reconcile_period"]


def test_a_kubelet_that_would_not_start_as_found_is_reported() -> None:
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n"
    for wanted in ({}, {"cpu_manager_reconcile_period": "10s"}):
        found = told(wanted, text, state("0-7"))
        assert [row["subject"] for row in found["drift"]] == ["start"]
        assert "0,99 is not a subset" in found["drift"][0]["found"]
        assert found["drift"][0]["remedy"]
        assert "0,99 is not a subset" in found["found_refusal"]
    # What is wanted cures it.
    for broken in (text, text.replace("0,99", "0,,4")):
        cured = told({"reserved_system_cpus": "0,4"}, broken, state("0-7"))
        assert [row["subject"] for row in cured["drift"]] == ["reserved_system_cpus"]
        assert cured["cpus"]["reserved"] in ("0,99", "")


def test_drift_of_settings() -> None:
    found = told({"cpu_manager_reconcile_period": "5s", "reserved_system_cpus": "1,5"}, STATIC, state("0-7"))
    assert found["status"] == "drift"
    assert found["drift"] == [
        {"subject": "cpu_manager_reconcile_period", "wanted": "5s", "found": "10s", "source": None},
        {"subject": "reserved_system_cpus", "wanted": "1,5", "found": "0,4", "source": "config.yaml"},
    ]
    # The checkpoint still fits, since the new reservation is in the shared pool.
    assert found["checkpoint"]["verdict"] == "accepted"
    assert found["actions"] == ["stop_kubelet", "write_configuration", "start_kubelet"]
    assert found["cpus"]["reserved"] == "0,4"
    assert found["cpus"]["reserved_wanted"] == "1,5"


def test_drift_of_checkpoint() -> None:
    found = told({}, STATIC, state("0-6"))
    assert found["status"] == "drift"
    assert found["drift"] == [
        {
            "subject": "checkpoint",
            "wanted": "accepted",
            "found": 'refused: current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"',
            "source": None,
            "refused_now": True,
        }
    ]
    assert found["actions"] == ["stop_kubelet", "reset_checkpoint", "start_kubelet"]


def test_a_checkpoint_that_only_the_wanted_settings_refuse() -> None:
    found = told(SETTINGS, "", write_checkpoint("none", State(cpus(""), {})))
    assert [(row["subject"], row.get("refused_now")) for row in found["drift"]][-1] == ("checkpoint", False)
    assert found["found_refusal"] == ""


def test_a_checkpoint_that_only_the_found_settings_refuse() -> None:
    found = told({"cpu_manager_policy": "none"}, STATIC, write_checkpoint("none", State(cpus(""), {})))
    assert [row["subject"] for row in found["drift"]] == ["cpu_manager_policy"]
    assert [getattr(note, "check", "") for note in found["notes"]] == ["checkpoint-refused"]
    assert found["found_refusal"]


def test_drift_of_both() -> None:
    found = told(SETTINGS, "", write_checkpoint("none", State(cpus(""), {})))
    assert [drift["subject"] for drift in found["drift"]] == [
        "cpu_manager_policy",
        "reserved_system_cpus",
        "checkpoint",
    ]
    assert found["actions"] == ["stop_kubelet", "reset_checkpoint", "write_configuration", "start_kubelet"]


def test_going_to_the_policy_none_drops_the_options() -> None:
    text = STATIC + 'cpuManagerPolicyOptions:\n  full-pcpus-only: "true"\n'
    found = told({"cpu_manager_policy": "none"}, text)
    assert found["drift"] == [
        {"subject": "cpu_manager_policy", "wanted": "none", "found": "static", "source": "config.yaml"},
        {
            "subject": "cpu_manager_policy_options",
            "wanted": {},
            "found": {"full-pcpus-only": "true"},
            "source": "config.yaml",
        },
    ]


def test_what_the_kubelet_would_not_start_with_is_refused() -> None:
    subset = (
        "^reserved_system_cpus: the kubelet would not start: reserved-cpus: 0,99 is not a subset of online-cpus: 0-7"
    )
    with pytest.raises(RefusedError, match=subset):
        told({"reserved_system_cpus": "0,99"})
    with pytest.raises(RefusedError, match="unable to determine reserved CPU resources for static policy"):
        told({"cpu_manager_policy": "static"}, "")
    with pytest.raises(RefusedError, match="leaves none for any pod"):
        told({"reserved_system_cpus": "0-7"})


# --- what is predicted of the node's files ----------------------------------------------------------


def predicted(wanted: Mapping[str, Any], found: Prediction, planned: Prediction) -> dict[str, Any]:
    topology = parse_name("1s4c2t").topology()
    machine = Host(kubelet_view(topology))
    return report(topology, machine, file(STATIC), state("0-7"), wanted, starts=Starts(found, planned))


GOOD = predict_values(file(STATIC).values, Host(kubelet_view(parse_name("1s4c2t").topology())))
FLAG = Finding("unknown flag: --x", "there is no such flag", "remove it", True, "--x", "failed to parse kubelet flag: ")
BAD = Prediction([FLAG])
UNKNOWN = Prediction([], [Unknown("it is written in a strange way", "config.yaml")])
PERIOD = {"cpu_manager_reconcile_period": "5s"}


def test_a_prediction_of_the_nodes_files_counts_before_one_of_the_configuration() -> None:
    refusal = "failed to parse kubelet flag: unknown flag: --x (there is no such flag)"
    for wanted, found_refusal in ((PERIOD, "--x: " + refusal), ({}, "--x: " + refusal)):
        found = predicted(wanted, BAD, BAD)
        assert found["found_refusal"] == found_refusal
        assert found["drift"][-1] == {
            "subject": "start",
            "wanted": "starts",
            "found": "refused: --x: the kubelet would not start: " + refusal,
            "source": "--x",
            "remedy": "remove it",
        }
        assert found["cpus"]["reserved"] == found["cpus"]["reserved_wanted"] == "0,4"
        assert (found["checkpoint"]["verdict"], found["notes"]) == ("not judged", [])
    cured = predicted(PERIOD, BAD, GOOD)
    assert [row["subject"] for row in cured["drift"]] == ["cpu_manager_reconcile_period"]
    assert cured["notes"] == ["as the node is, its kubelet would not start again: --x: " + refusal]
    with pytest.raises(RefusedError, match=r"^--x: the kubelet would not start: failed to parse kubelet flag: unknown"):
        predicted(PERIOD, GOOD, BAD)


def test_what_cannot_be_predicted_is_found_and_no_refusal() -> None:
    for wanted in ({}, PERIOD):
        found = predicted(wanted, UNKNOWN, UNKNOWN)
        assert found["found_refusal"] == ""
        assert found["drift"][-1]["found"] == (
            "refused: it cannot be determined with what the CPU manager would start: it is written in a strange way"
        )
        assert found["notes"] == ["whether the kubelet starts cannot be determined: it is written in a strange way"]
    # Where it is certain what the CPU manager does, all else can be compared.
    unseen = GOOD._replace(unknown=UNKNOWN.unknown)
    found = predicted({}, unseen, unseen)
    assert (found["drift"], found["found_refusal"], found["checkpoint"]["verdict"]) == ([], "", "accepted")
    assert found["notes"] == ["whether the kubelet starts cannot be determined: it is written in a strange way"]
    with pytest.raises(RefusedError, match="it cannot be determined with what the CPU manager would start"):
        predicted(PERIOD, GOOD, UNKNOWN)


def test_what_nobody_can_want_is_reported_where_it_is_found() -> None:
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-7\n"
    for wanted in ({}, PERIOD):
        found = told(wanted, text, state("0-7"))
        assert found["drift"][-1]["found"].startswith("refused: reserving all of the CPUs 0-7 leaves none")
        # The kubelet itself would take it.
        assert found["found_refusal"] == ""


def test_describe_drift() -> None:
    def drift(wanted: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
        return describe_drift(plan_settings(wanted, file(text), 36), file(text))

    assert drift({}, STATIC) == []
    assert drift({"topology_manager_scope": "pod"}, STATIC) == [
        {"subject": "topology_manager_scope", "wanted": "pod", "found": "container", "source": None}
    ]
    # With what goes with it.
    gate = "CPUManagerPolicyAlphaOptions"
    for text, found, source in (("", None, None), ("featureGates: {%s: false}\n" % gate, False, "config.yaml")):
        (_option, told_gate) = drift({"cpu_manager_policy_options": {"align-by-socket": "true"}}, STATIC + text)
        assert told_gate == {"subject": "featureGates." + gate, "wanted": True, "found": found, "source": source}


# --- who uses which CPUs ----------------------------------------------------------------------------


def test_offline_cpus() -> None:
    found = told({}, STATIC, state("0,2-4,6-7", a="1,5"), "1s4c2t+offline5")
    assert found["cpus"] == {
        "online": "0-4,6-7",
        "offline": "5",
        "reserved": "0,4",
        "exclusive": "1",  # of those that are there
        "shared": "2-3,6-7",
        "isolated": "",
        "reserved_wanted": "0,4",
    }
    assert found["owners"] == [
        {"use": "exclusive", "owner": "uid-a/a", "cpus": "1"},
        {"use": "reserved", "owner": "", "cpus": "0,4"},
        {"use": "shared", "owner": "", "cpus": "2-3,6-7"},
        {"use": "offline", "owner": "", "cpus": "5"},
    ]


def test_the_cpus_of_a_whole_pod() -> None:
    gates = "featureGates:\n  PodLevelResourceManagers: true\n"
    whole = State(cpus("0,4"), {"uid-a": {"app": cpus("1,5")}}, {"uid-a": cpus("1-2,5-6"), "uid-b": cpus("3,7")})
    found = told({}, STATIC + gates, write_checkpoint("static", whole, Format3))
    assert found["owners"] == [
        {"use": "exclusive", "owner": "uid-a/app", "cpus": "1,5"},
        {"use": "exclusive", "owner": "uid-a", "cpus": "2,6"},
        {"use": "exclusive", "owner": "uid-b", "cpus": "3,7"},
        {"use": "reserved", "owner": "", "cpus": "0,4"},
    ]


def test_cpus_that_the_kubelet_reserves_by_number() -> None:
    text = "cpuManagerPolicy: static\nkubeReserved:\n  cpu: 1500m\n"
    assert told({}, text)["cpus"]["reserved"] == "0,4"


def test_reserved_cpus_of_a_kubelet_that_would_not_start() -> None:
    text = STATIC + "kubeReservedCgroup: /kube\n"
    found = told({"reserved_system_cpus": "", "kube_reserved_cpu": "1"}, text)
    assert found["cpus"]["reserved"] == "0,4"
    assert found["cpus"]["reserved_wanted"] == "0"


# --- what runs there --------------------------------------------------------------------------------

OWN = "a" * 64


def observed(root: Path, cpus: str) -> Observed:
    """A node whose one container has these CPUs."""
    pod = pod_path(SYSTEMD, "uid-a", "Guaranteed")
    files = container_files(SYSTEMD, "containerd", pod, OWN, cpus)
    whole = Files("0-7", "0")
    write_cgroups(root, V1, {"kubepods.slice": whole, pod: whole, "system.slice": Files("0", "0"), **files}, nodes="0")
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / ("db-0_shop_a-%s.log" % OWN)).touch()
    found, _notes = observe(Tree(str(root)), "")
    assert found is not None
    return found


@pytest.mark.parametrize(("held", "pool", "actions"), [("1,5", "0,2-4,6-7", []), ("1", "0,2-4,6-7", ["reconcile"])])
def test_the_cpus_of_containers(tmp_path: Path, held: str, pool: str, actions: list[str]) -> None:
    topology = parse_name("1s4c2t").topology()
    seen = observed(tmp_path, held)
    found = report(topology, Host(kubelet_view(topology)), file(STATIC), state(pool, a="1,5"), SETTINGS, seen)
    assert (found["status"], found["actions"]) == ("drift" if actions else "clean", actions)
    assert [row["subject"] for row in found["drift"]] == ["container shop/db-0/a"] * len(actions)
    assert found["owners"][0] == {"use": "exclusive", "owner": "shop/db-0/a", "cpus": "1,5"}
    assert found["enforcement"]["containers"] == {"kept": 1 - len(actions), "different": len(actions), "skipped": 0}
    assert found["notes"] == []


def test_the_cpus_of_containers_come_after_a_reset(tmp_path: Path) -> None:
    """It gives them out anew."""
    topology = parse_name("1s4c2t").topology()
    machine = Host(kubelet_view(topology))
    seen = observed(tmp_path, "1")
    found = report(topology, machine, file(STATIC), state("0,2-4,6", a="1,5"), SETTINGS, seen)
    assert found["actions"] == ["stop_kubelet", "reset_checkpoint", "start_kubelet"]
    assert found["enforcement"]["containers"]["skipped"] == 1
    # Where nothing can be compared, the pods have their names all the same.
    found = report(topology, machine, None, state("0,2-4,6-7", a="1,5"), SETTINGS, seen, NodeError("is damaged"))
    assert found["owners"][0]["owner"] == "shop/db-0/a"


@pytest.mark.parametrize("shape", ["+isolated1-7", "+nohz1-7"])
def test_reserved_cpus_that_are_isolated(shape: str) -> None:
    found = told(SETTINGS, STATIC, state("0-7"), "1s4c2t" + shape)
    assert found["status"] == "drift"
    assert [row["wanted"] for row in found["drift"]] == ["1-3,5-7"]
    assert any("over which the kernel balances no load" in note for note in found["notes"]) == ("isolated" in shape)


# --- notes ------------------------------------------------------------------------------------------


def test_note_that_the_kubelet_would_not_start_again() -> None:
    prefix = "as the node is, its kubelet would not start again: "
    assert told(SETTINGS, STATIC, state("0-6"))["notes"] == [
        prefix + 'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"'
    ]
    # It starts with what is wanted, though not with what is there.
    notes = told(SETTINGS, "cpuManagerPolicy: static\n", state("0-7"))["notes"]
    assert len(notes) == 1
    assert notes[0] == prefix + (
        "reservedSystemCPUs: [cpumanager] unable to determine reserved CPU resources for static policy"
        " (the static policy is to reserve 0 CPUs)"
    )
    # ... and the other way round.
    found = told(SETTINGS, "", write_checkpoint("none", State(cpus(""), {})))
    assert found["checkpoint"]["verdict"] == "refused"
    assert found["notes"] == []


def test_note_on_a_reservation_that_splits_cores() -> None:
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1,5\n"
    assert told({}, text)["notes"] == ["the reservation 0-1,5 splits cores: pods get their other threads, CPUs 4"]


def test_notes_on_the_machine() -> None:
    notes = told({}, STATIC, None, "1s4c2t+offline7")["notes"]
    assert notes == [
        (
            "the cores have unequal numbers of online threads, and the kubelet counts with their average, 1:"
            " under the static policy it can hand out a CPU that is in use, so switch siblings on or off together"
        )
    ]
    topology = Topology(
        cpus("0-3"), [cpus("0-1"), cpus("2-3")], numa_nodes=[Group(0, cpus("0-1"))], problems=["a core is strange"]
    )
    found = report(topology, Host(kubelet_view(topology)), None, None, {})
    assert found["notes"] == ["a core is strange", "CPUs 2-3 belong to no NUMA node: the kubelet does not see them"]


# --- laws -------------------------------------------------------------------------------------------


class Node:
    """A node whose files are values, and what is wanted of it."""

    def __init__(
        self, shape: Shape, configuration: KubeletConfiguration, checkpoint: bytes | None, wanted: Mapping[str, Any]
    ) -> None:
        self.shape = shape
        self.topology = shape.topology()
        self.machine = Host(kubelet_view(self.topology))
        self.configuration = configuration
        self.checkpoint = checkpoint
        self.wanted = wanted

    def __repr__(self) -> str:
        return "Node(%s, %r, %r, %r)" % (self.shape.name(), self.configuration.text, self.checkpoint, self.wanted)

    def report(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        found = report(self.topology, self.machine, self.configuration, self.checkpoint, wanted)
        assert json.loads(json.dumps(found)) == found
        return found

    def act(self, action: str) -> None:
        """What the role does for one of the report's actions."""
        if action == "reset_checkpoint":
            self.checkpoint = None
        elif action == "write_configuration":
            plan = plan_settings(self.wanted, self.configuration)
            self.configuration = self.configuration.with_changes(plan.changes)
        elif action == "start_kubelet" and self.checkpoint is None:
            config = manager_config(self.configuration, self.machine)
            self.checkpoint = write_checkpoint(config.policy_name, first_state(config))


@st.composite
def settings(draw: st.DrawFn, online: CPUSet) -> dict[str, Any]:
    options = st.dictionaries(
        st.sampled_from(["full-pcpus-only", "strict-cpu-reservation", "distribute-cpus-across-numa"]),
        st.sampled_from(["true", "false"]),
    )
    some_cpus = st.frozensets(st.sampled_from(list(online))).map(CPUSet).map(str)
    drawn: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "cpu_manager_policy": st.sampled_from(["static", "static", "none"]),
                "cpu_manager_policy_options": options,
                "cpu_manager_reconcile_period": st.sampled_from(["10s", "5s", "0s"]),
                "topology_manager_policy": st.sampled_from(["none", "best-effort", "single-numa-node"]),
                "topology_manager_scope": st.sampled_from(["container", "pod"]),
                "reserved_system_cpus": some_cpus,
                "kube_reserved_cpu": st.sampled_from(["0", "500m", "1", "2"]),
                "system_reserved_cpu": st.sampled_from(["0", "0.5"]),
            },
        )
    )
    return drawn


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    shape = draw(shapes(most_cpus=12))
    online = shape.topology().online
    configuration = file().with_changes(changes(draw(settings(online)), found_settings(file())))
    some_cpus = st.frozensets(st.sampled_from(list(online))).map(CPUSet)
    pool, exclusive = draw(st.one_of(st.just(online), some_cpus)), draw(some_cpus)
    states = [State(online, {}), State(CPUSet(), {}), State(pool - exclusive, {"pod": {"container": exclusive}})]
    checkpoint = write_checkpoint(draw(st.sampled_from(["static", "none"])), draw(st.sampled_from(states)))
    found = draw(st.sampled_from([None, checkpoint, checkpoint, checkpoint[:-20], b""]))
    return Node(shape, configuration, found, draw(settings(online)))


def starts(node: Node, wanted: Mapping[str, Any]) -> bool:
    try:
        answer = node.report(wanted)
    except (InputError, RefusedError):
        return False
    return not any(row["subject"] == "start" for row in answer["drift"])


@given(nodes())
def test_what_is_found_can_be_wanted(node: Node) -> None:
    """The round trip: a node's own settings are no drift, on itself."""
    assume(starts(node, {}))
    asked_nothing = node.report({})
    found = asked_nothing["found"]
    check_settings(found)
    asked_all = node.report(found)
    status = "nothing wanted" if asked_all["status"] == "clean" else asked_all["status"]
    assert {**asked_all, "wanted": {}, "status": status} == asked_nothing
    assert [drift["subject"] for drift in asked_all["drift"] if "remedy" not in drift] in ([], ["checkpoint"])
    assert "write_configuration" not in asked_all["actions"]


@given(nodes())
def test_after_the_actions_the_node_is_clean(node: Node) -> None:
    assume(starts(node, node.wanted))
    before = node.report(node.wanted)
    order = ["stop_kubelet", "reset_checkpoint", "write_configuration", "start_kubelet"]
    assert before["actions"] == [action for action in order if action in before["actions"]]
    assert (before["status"] == "drift") == bool(before["drift"])
    assert bool(before["actions"]) == any("remedy" not in drift for drift in before["drift"])
    for action in before["actions"]:
        node.act(action)
    after = node.report(node.wanted)
    assert after["actions"] == []
    # What the kernel was booted with, no action changes.
    assert all(drift["subject"] in ("isolated", "nohz_full") and drift["remedy"] for drift in after["drift"])
    assert (
        after["cpus"]["reserved"] == before["cpus"]["reserved_wanted"] or after["found"]["cpu_manager_policy"] == "none"
    )
    # Its kubelet starts again, whatever was there before.
    assert not any("would not start again" in note for note in after["notes"])
    # The round trip, to the next node of the kind.
    assert node.report(after["found"])["drift"] == after["drift"]


@given(nodes())
def test_a_report_changes_nothing(node: Node) -> None:
    assume(starts(node, node.wanted))
    text, wanted = node.configuration.text, json.dumps(node.wanted)
    assert node.report(node.wanted) == node.report(node.wanted)
    assert (node.configuration.text, json.dumps(node.wanted)) == (text, wanted)


@given(nodes())
def test_each_online_cpu_is_reserved_exclusive_or_shared(node: Node) -> None:
    assume(starts(node, node.wanted))
    pools = node.report(node.wanted)["cpus"]
    reserved, exclusive, shared = (cpus(pools[name]) for name in ("reserved", "exclusive", "shared"))
    assert shared == node.topology.online - reserved - exclusive
    assert exclusive <= node.topology.online
    assert cpus(pools["online"]) == node.topology.online


@given(nodes())
def test_each_cpu_has_one_owner(node: Node) -> None:
    assume(starts(node, node.wanted))
    found = node.report(node.wanted)
    sets = [cpus(owner["cpus"]) for owner in found["owners"]]
    assert all(sets)
    assert sum(map(len, sets)) == len(node.topology.online | node.topology.offline)
    for use in ("exclusive", "shared", "offline"):
        owned = [cpus(owner["cpus"]) for owner in found["owners"] if owner["use"] == use]
        assert CPUSet(cpu for part in owned for cpu in part) == cpus(found["cpus"][use])

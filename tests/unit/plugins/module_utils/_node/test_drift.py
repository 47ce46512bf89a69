# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drift report of a node: what it says of its settings, its checkpoint and its machine."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import describe_drift, report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    CPUManagerConfig,
    Judgement,
    judge,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.drifted import SETTINGS, file, state, told
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import STATIC
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

CONFIG = CPUManagerConfig("static", cpus("0-7"), cpus("0,4"))


# All of it but the distances.
TOPOLOGY = {name: part for name, part in parse_name("1s4c2t").topology().to_dict().items() if name != "numa_distances"}


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
        "checkpoint": {**Judgement("absent").to_dict(), "lost": []},
        "cpus": {
            "online": "0-7",
            "offline": "",
            "reserved": "",
            "exclusive": "",
            "shared": "0-7",
            "stranded": "",
            "isolated": "",
        },
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
        "checkpoint": {**judge(state("0,2-4,6-7", a="1,5"), CONFIG).to_dict(), "lost": []},
        "cpus": {
            "online": "0-7",
            "offline": "",
            "reserved": "0,4",
            "exclusive": "1,5",
            "shared": "2-3,6-7",
            "stranded": "",
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


def test_a_checkpoint_that_is_refused_for_two_reasons_has_that_of_the_next_start() -> None:
    checkpoint = write_checkpoint("static", State(cpus("0-6"), {}))
    found = told(SETTINGS, "", checkpoint)
    (row,) = [row for row in found["drift"] if row["subject"] == "checkpoint"]
    assert row["found"] == "refused: " + found["found_refusal"]
    assert 'configured policy "none" differs' in row["found"]


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
        " (the static policy needs a reserved CPU, and none is configured)"
    )
    # ... and the other way round.
    found = told(SETTINGS, "", write_checkpoint("none", State(cpus(""), {})))
    assert found["checkpoint"]["verdict"] == "refused"
    assert found["notes"] == []


def test_note_on_a_reservation_that_splits_cores() -> None:
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1,5\n"
    assert told({}, text)["notes"] == ["the reservation 0-1,5 splits cores: pods get their other threads, CPUs 4"]


WHOLE_CORES = 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n'


def test_note_on_threads_that_no_pod_can_have() -> None:
    """A report of 16 CPUs on 8 cores, of which 0-4 are reserved: the scheduler counted 11, and six could be had."""
    text = "cpuManagerPolicy: static\n" + WHOLE_CORES
    assert told({}, text + "reservedSystemCPUs: 0-4\n", machine="1s8c2t")["notes"] == [
        (
            "the reservation 0-4 splits cores: no pod can have their other threads, CPUs 8-12, for itself with"
            " full-pcpus-only: 5 CPUs that the scheduler counts"
        )
    ]
    # The same of a reservation by its amount, and of one thread.
    (note,) = told({}, text + "kubeReserved: {cpu: 500m}\n")["notes"]
    assert note.endswith("CPUs 4, for itself with full-pcpus-only: 1 CPU that the scheduler counts")
    assert told({}, text + "reservedSystemCPUs: 0-1\n", machine="1s8c")["notes"] == []


def test_note_on_an_option_that_takes_threads_from_pods() -> None:
    """The reservation stays, and what comes of its other threads does not."""
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"
    found, wanted = told({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, text)["notes"]
    assert found == "the reservation 0-1 splits cores: pods get their other threads, CPUs 4-5"
    assert wanted == (
        "the wanted reservation 0-1 would split cores: no pod could have their other threads, CPUs 4-5, for itself with"
        " full-pcpus-only: 2 CPUs that the scheduler counts; reserve whole cores, as in 0-1,4-5"
    )
    assert len(told({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, text + WHOLE_CORES)["notes"]) == 1


def test_notes_on_options_that_do_not_do_what_they_are_for() -> None:
    """Two sockets of two NUMA nodes; the kubelet does not see its four L3 caches."""
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,16\n"
    align = {"cpu_manager_policy_options": {"align-by-socket": "true"}}
    gate = "featureGates: {CPUManagerPolicyAlphaOptions: true}\n"
    effect = (
        "cpuManagerPolicyOptions.align-by-socket: align-by-socket acts on hints of the topology manager only, and with"
        " its policy none there are none: it has no effect, and a container can get CPUs of several sockets; set"
        " topologyManagerPolicy: best-effort or restricted, or drop align-by-socket"
    )
    found = text + gate + 'cpuManagerPolicyOptions: {align-by-socket: "true"}\n'
    assert told({}, found, machine="2s2n4c2t")["notes"] == [effect]
    assert told(align, found, machine="2s2n4c2t")["notes"] == [effect]
    assert told(align, text, machine="2s2n4c2t")["notes"] == ["with the wanted settings: " + effect]
    assert told({**align, "topology_manager_policy": "restricted"}, text, machine="2s2n4c2t")["notes"] == []
    # What containers have.
    notes = told({}, found, state("0-6,9-31", a="7-8"), "2s2n4c2t")["notes"]
    assert notes[1:] == [
        "in spite of align-by-socket pod uid-a, container a has CPUs 7-8 of 2 sockets, and 1 would hold them"
    ]
    assert {getattr(note, "check", "") for note in notes} == {"option-ineffective"}


def test_note_on_more_numa_nodes_than_sets_of_them_can_be_gone_through() -> None:
    text = STATIC.replace("0,4", "0") + "topologyManagerPolicy: restricted\n"
    text += 'topologyManagerPolicyOptions: {max-allowable-numa-nodes: "64"}\n'
    (note,) = told({}, text, machine="1s17n1c")["notes"]
    assert note.check == "numa-nodes-many"
    assert note.startswith("topologyManagerPolicy: to admit a pod that asks for exclusive CPUs, devices or memory ")
    assert note.endswith("; set topologyManagerPolicy: none")
    assert told({}, text, machine="1s16n1c")["notes"] == []
    assert told({"topology_manager_policy": "none"}, text, machine="1s17n1c")["notes"][0].check == "numa-nodes-many"


def test_notes_on_the_machine() -> None:
    notes = told({}, STATIC, None, "1s4c2t+offline7")["notes"]
    assert notes == [
        (
            "the cores have unequal numbers of online threads, and the kubelet counts with their average, 1:"
            " under the static policy it can hand out a CPU that is in use, so switch siblings on or off together;"
            " where the machine has cores of two kinds, switch SMT off"
        )
    ]
    topology = Topology(
        cpus("0-3"), [cpus("0-1"), cpus("2-3")], numa_nodes=[Group(0, cpus("0-1"))], problems=["a core is strange"]
    )
    found = report(topology, Host(kubelet_view(topology)), None, None, {})
    assert found["notes"] == ["a core is strange", "CPUs 2-3 belong to no NUMA node: the kubelet does not see them"]

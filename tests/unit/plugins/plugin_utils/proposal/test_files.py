# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/proposal/files.py."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal import files
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.files import (
    FORMS,
    LABELS,
    api_objects,
    node_resource_topology,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.groups import group_nodes, read_nodes
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.settings import LATENCY, SettingsWish
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name


def plan(machine: str, reserved: str) -> dict[str, Any]:
    topology = parse_name(machine).topology().to_dict()
    return {"status": "drift", "topology": topology, "kubelet": {}, "wanted": {"reserved_system_cpus": reserved}}


def written(plans: dict[str, Any], **objects: Any) -> dict[str, str]:
    wishes = dict.fromkeys(plans, SettingsWish(LATENCY, {}, housekeeping=True))
    return files.proposal_files(group_nodes(read_nodes(plans, wishes, False)), plans, objects)


PLANS = {"yes": plan("1s4c2t", "0,4"), "1.5": plan("2s1n4c2t", "0,8"), "b": plan("2s1n4c2t+adjacent", "0-1")}


def test_each_line_has_its_reason_and_yaml_reads_it() -> None:
    made = written(PLANS)
    assert all(
        line == "" or len(line) <= 150 for text in made.values() for line in text.splitlines() if "|" not in line
    )
    inventory = yaml.safe_load(made["inventory.yml"])["all"]["children"]
    # Names that YAML would take for something else.
    assert sorted(host for group in inventory.values() for host in group["hosts"]) == ["1.5", "b", "yes"]
    for group in inventory:
        text = made["group_vars/%s.yml" % group]
        for line, before in zip(text.splitlines()[1:], text.splitlines()):
            if line.startswith(("kubelet_", "housekeeping_")):
                assert before.startswith("# ")
        assert yaml.safe_load(text)["housekeeping_layers"][0] == "interrupts"
    assert list(made)[-2:] == ["inventory.yml", "shapes.md"]


def test_which_cpus_these_are_is_said_where_all_nodes_have_the_same() -> None:
    made = written(PLANS)
    assert "# Reserved: CPUs 0,4.\n" in made["group_vars/latency_cpus8_sockets1_numa1_caches1_threads2.yml"]
    two = made["group_vars/latency_cpus16_sockets2_numa2_caches2_threads2.yml"]
    assert "numbered in 2 ways" in two


def test_a_machine_of_one_core_reserves_nothing() -> None:
    made = written({"small": plan("1s1c2t", "")})
    text = made["group_vars/latency_cpus2_sockets1_numa1_caches1_threads2.yml"]
    assert "# No CPU is reserved.\n" in text
    assert yaml.safe_load(text)["kubelet_reserved_system_cpus"] == ""
    assert "| none, 0 reserved | small |" in made["shapes.md"]


def test_an_edited_file_is_known() -> None:
    for text in written(PLANS, labels=[{"kind": "Node"}]).values():
        assert not files.is_edited(text)
        assert files.is_edited(text + "\n")
        assert files.is_edited(text.replace("\n", "\n# mine\n", 1))
        assert files.is_edited(text.partition("\n")[2])
    assert files.is_edited("")


SCALARS = st.text(max_size=8) | st.integers() | st.booleans() | st.none()
OBJECTS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(st.dictionaries(st.text(min_size=1, max_size=5), inner, min_size=1, max_size=3), max_size=3)
            | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(OBJECTS, min_size=1, max_size=3))
def test_what_is_written_is_what_yaml_reads(objects: list[Any]) -> None:
    text = written({"a": plan("1s2c", "0")}, labels=objects)["node-labels.yml"]
    assert list(yaml.safe_load_all(text)) == objects


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


# The fields that the API topology.node.k8s.io/v1alpha2 has.
TEXT = {"type": "string"}
QUANTITY = {"type": "string", "pattern": "^[0-9]+$"}
PAIRS = _list(_object({"name": TEXT, "value": TEXT}))
RESOURCE = _object({"name": TEXT, "capacity": QUANTITY, "allocatable": QUANTITY, "available": QUANTITY})
ZONE = _object(
    {"name": TEXT, "type": TEXT},
    parent=TEXT,
    costs=_list(_object({"name": TEXT, "value": {"type": "integer"}})),
    attributes=PAIRS,
    resources=_list(RESOURCE),
)
SCHEMA = _object(
    {
        "apiVersion": {"const": "topology.node.k8s.io/v1alpha2"},
        "kind": {"const": "NodeResourceTopology"},
        "metadata": _object({"name": TEXT}),
        "zones": _list(ZONE),
    },
    topologyPolicies=_list(TEXT),
    attributes=PAIRS,
)

FOUND = {"topology_manager_policy": "none", "topology_manager_scope": "container", "reserved_system_cpus": ""}


def whole_plan(
    machine: str, reserved: str = "", exclusive: str = "", chosen: str = "", **wanted: Any
) -> dict[str, Any]:
    """Return the answer of a node. chosen: what the kubelet reserves by itself."""
    return {
        "status": "drift",
        "topology": parse_name(machine).topology().to_dict(),
        "kubelet": {"version": "1.36.0"},
        "found": FOUND,
        "wanted": {**wanted, **({"reserved_system_cpus": reserved} if reserved else {})},
        "cpus": {"reserved_wanted": chosen or reserved, "exclusive": exclusive},
    }


@pytest.mark.parametrize(
    "machine",
    ["1s2c", "2s1n12c2t+interleaved", "2s4n2l4c2t", "2s1n4c2t+memory2", "1s8c2t+offline5", "4s1n4c+nodes0,8,16,24"],
)
def test_the_object_has_the_fields_of_the_api(machine: str) -> None:
    made = node_resource_topology("worker", whole_plan(machine, "0"))
    jsonschema.validate(made, SCHEMA)
    topology = parse_name(machine).topology()
    assert [zone["name"] for zone in made["zones"]] == ["node-%d" % node.id for node in topology.numa_nodes]
    capacities = [int(zone["resources"][0]["capacity"]) for zone in made["zones"]]
    assert sum(capacities) == len(topology.online)


def test_what_is_left_in_each_zone() -> None:
    def amounts(**more: str) -> list[tuple[str, ...]]:
        zones = node_resource_topology("worker", whole_plan("2s1n4c2t+adjacent", **more))["zones"]
        return [tuple(zone["resources"][0][key] for key in ("capacity", "allocatable", "available")) for zone in zones]

    assert amounts() == [("8", "8", "8")] * 2
    assert amounts(reserved="0-1") == [("8", "6", "6"), ("8", "8", "8")]
    assert amounts(reserved="0-1", exclusive="2-3,8") == [("8", "6", "4"), ("8", "8", "7")]
    # An amount was given, and the kubelet has chosen the CPUs.
    assert amounts(chosen="0,8") == [("8", "7", "7")] * 2


def test_the_attributes_are_those_that_will_be() -> None:
    made = node_resource_topology("worker", whole_plan("1s2c", topology_manager_policy="restricted"))
    assert made["attributes"] == [
        {"name": "topologyManagerPolicy", "value": "restricted"},
        {"name": "topologyManagerScope", "value": "container"},
    ]
    distances = node_resource_topology("worker", whole_plan("2s1n4c"))["zones"][0]["costs"]
    assert distances == [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}]


def test_the_labels() -> None:
    plans = {"b": whole_plan("1s2c"), "a": whole_plan("2s1n4c2t")}
    groups = group_nodes(read_nodes(plans, dict.fromkeys(plans, SettingsWish(LATENCY, {})), False))
    made = api_objects(LABELS, groups, plans, {"a": "a.example.org", "b": "b"})
    assert [node["metadata"]["name"] for node in made] == ["a.example.org", "b"]
    assert made[0]["metadata"]["labels"] == {
        "cpu-manager.kubenode/policy": "static",
        "cpu-manager.kubenode/topology-policy": "single-numa-node",
        "cpu-manager.kubenode/workload": "latency",
        "cpu-manager.kubenode/shape": "cpus16_sockets2_numa2_caches2_threads2",
    }


@pytest.mark.parametrize("name", ["", "a/b", "..", "A", "a_b", "a b", "a" * 254, "a\n", "-a"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_name_of_a_node(form: str, name: str) -> None:
    plans = {"a": whole_plan("1s2c")}
    groups = group_nodes(read_nodes(plans, {"a": SettingsWish(LATENCY, {})}, False))
    with pytest.raises(InputError, match="is no name of a node"):
        api_objects(form, groups, plans, {"a": name})


def test_a_plan_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match="the plan of worker cannot be read"):
        node_resource_topology("worker", {**whole_plan("1s2c"), "cpus": None})

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/proposal/files.py."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal import files
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

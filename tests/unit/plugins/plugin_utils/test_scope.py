# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts a run is about: what Ansible would take without a word is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.scope import (
    batches,
    changes,
    check_batches,
    in_order,
    one_pattern,
    pattern_of,
    scope_of,
)

WORKERS = ["w-1", "w-2", "w-3"]
GROUPS = {"all": ["cp-1", *WORKERS], "ungrouped": [], "control_plane": ["cp-1"], "workers": WORKERS, "empty": []}


@pytest.mark.parametrize(
    ("hosts", "canaries", "limit", "expected"),
    [
        ("all", [], "", ["cp-1", *WORKERS]),
        ("workers", "w-2", "", ["w-2", "w-1", "w-3"]),
        (["workers", "cp-1"], ["w-3", "w-1"], "", ["w-3", "w-1", "w-2", "cp-1"]),
        ("all:!control_plane", [], "", WORKERS),
        ("all,!empty", [], "", ["cp-1", *WORKERS]),
        ("all:&workers", [], "", WORKERS),
        ("w-*", [], "", WORKERS),
        ("~w-[12]", [], "", ["w-1", "w-2"]),
        ("workers[0]", [], "", ["w-1"]),
        ("!control_plane", [], "", WORKERS),
        ("workers", "w-3", "w-1,w-3", ["w-3", "w-1"]),
        ("localhost", [], "", ["localhost"]),
    ],
)
def test_hosts_come_in_order(hosts: Any, canaries: Any, limit: str, expected: list[str]) -> None:
    assert scope_of(GROUPS, hosts, canaries, limit).names == expected


@pytest.mark.parametrize(
    ("hosts", "canaries", "limit", "message"),
    [
        ("wrokers", [], "", "cpu_manager_hosts: the inventory has no host or group wrokers"),
        ("workers:wrokers", [], "", "cpu_manager_hosts: the inventory has no host or group wrokers"),
        ("all:!contrl_plane", [], "", "cpu_manager_hosts: the inventory has no host or group contrl_plane"),
        ("all:&wrokers", [], "", "cpu_manager_hosts: the inventory has no host or group wrokers"),
        ("w-9*", [], "", "cpu_manager_hosts: the inventory has no host or group w-9*"),
        ("workers:!workers", [], "", "cpu_manager_hosts: workers, !workers matches no host of the inventory"),
        ("empty", [], "", "cpu_manager_hosts: empty has no host"),
        ("all", "canary", "", "cpu_manager_canaries: the inventory has no host or group canary"),
        ("all", ["w-1", "empty"], "", "cpu_manager_canaries: empty has no host"),
        ("workers", [], "cp-1", "--limit cp-1: it leaves none of the hosts of cpu_manager_hosts"),
        ("workers", "w-1", "w-2,w-3", "--limit w-2,w-3: it leaves none of the hosts of cpu_manager_canaries"),
        (7, [], "", "cpu_manager_hosts: has to be a pattern of hosts, or a list of such, not 7"),
        ("all", [["w-1"]], "", "cpu_manager_canaries: has to be a pattern of hosts"),
    ],
)
def test_what_matches_nothing_is_refused(hosts: Any, canaries: Any, limit: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        scope_of(GROUPS, hosts, canaries, limit)
    assert str(error.value).startswith(message)


def test_an_inventory_without_hosts_is_refused() -> None:
    with pytest.raises(InputError, match="the inventory has no host; name an inventory with -i"):
        scope_of({"all": [], "ungrouped": []}, "all")


@pytest.mark.parametrize("serial", [1, "1", "5", "10%", "100%", [1, "10%", "25%"], ["1", 3]])
@pytest.mark.parametrize("percentage", [0, "0", 33, "100"])
def test_sizes_of_batches(serial: object, percentage: object) -> None:
    check_batches(serial, percentage)


@pytest.mark.parametrize("serial", [0, "0", "ten", "0%", "101%", "%", "", [], [1, 0], -1, "-1", 1.5, "1.5", True, None])
def test_what_is_no_size_is_refused(serial: object) -> None:
    with pytest.raises(InputError, match=r"^cpu_manager_serial: "):
        check_batches(serial, 0)


def test_auto_stands_alone_and_finds_the_canaries() -> None:
    check_batches("auto", 0)
    for serial, canaries in (("auto", "w-1"), (["auto"], []), ([1, "auto"], [])):
        with pytest.raises(InputError, match=r"^cpu_manager_serial: "):
            check_batches(serial, 0, canaries)


@pytest.mark.parametrize("percentage", [101, -1, "ten", "10%", 0.5, None, [0], True])
def test_what_is_no_percentage_is_refused(percentage: object) -> None:
    with pytest.raises(InputError, match=r"^cpu_manager_max_fail_percentage: "):
        check_batches(1, percentage)


@pytest.mark.parametrize(
    ("playbook", "serial", "expected"),
    [
        ("rollout", None, [1, "10%", "25%", "50%"]),
        ("rollback", None, [1, "10%", "25%", "50%"]),
        ("repair", None, [1]),
        ("rollout", 5, [5]),
        ("rollout", "50%", ["50%"]),
        ("repair", [1, "10%"], [1, "10%"]),
        # Before anything was found, or where nothing is to be.
        ("rollout", "auto", [1, "10%", "25%", "50%"]),
    ],
)
def test_batches_are_those_of_the_operator_or_of_the_playbook(playbook: str, serial: Any, expected: list[Any]) -> None:
    assert batches(playbook, serial) == expected
    check_batches(batches(playbook, serial), 0)


def test_only_hosts_that_change() -> None:
    plans: dict[str, Any] = {
        "same": {"actions": [], "journal": None, "changed": False},
        "changing": {"actions": ["drain"], "journal": None},
        "interrupted": {"actions": [], "journal": {"phase": "changing"}},
        "refused": {"failed": True, "msg": "no"},
        "odd": "text",
        "brought": {"changed": True},
        "odd name: [1]": {"changed": True},
    }
    found = [pattern_of(name) for name, plan in {**plans, "unread": None}.items() if changes(plan)]
    assert found == ["changing", "interrupted", "brought", "~^odd.name...1.$"]


@pytest.mark.parametrize("first", [["b", "a", "b"], ["b", "a"], ["all"]])
def test_a_batch_has_its_own_hosts_whatever_another_play_had(first: list[str]) -> None:
    inventory = InventoryManager(DataLoader(), parse=False)
    for name in ("a", "b"):
        inventory.add_host(name, group="all")
    assert {host.name for host in inventory.get_hosts(one_pattern(first))} == {"a", "b"}
    inventory.restrict_to_hosts([inventory.get_host("b")])
    assert [host.name for host in inventory.get_hosts(one_pattern(["b", "a"]))] == ["b"]


def test_no_pattern_is_no_host() -> None:
    assert one_pattern([]) == []


def test_batches_of_a_schedule() -> None:
    schedule = [["c"], ["a", "d"]]
    assert batches("rollout", "auto", schedule) == [1, 2]
    assert batches("rollout", 5, schedule) == [5]
    # Whom it does not have comes last.
    assert in_order(["a", "b", "c", "d"], schedule) == ["c", "a", "d", "b"]
    assert in_order(["b", "a"], []) == ["b", "a"]

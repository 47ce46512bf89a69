# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_owners/conflicts.py."""

from __future__ import annotations

import json
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.conflicts import (
    OTHER_OWNER,
    PAIRS,
    Pair,
    contradictions,
    refusals,
    refuse,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    BALLOONS,
    CACHE,
    CRIO_INTERRUPTS,
    CRIO_SHARED,
    DRA_CPU,
    GORESCTRL_OWNER,
    HOUSEKEEPING,
    IRQBALANCE_OWNER,
    KATALYST,
    KUBELET_STATIC,
    NAMES,
    RECONCILE,
    TOPOLOGY_AWARE,
    TUNED,
    Facts,
    Owner,
    find_owners,
    undisturbed,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import JOURNAL, SIGNS, TUNED_FILES, Sign, write_owned

OWNERS = {id_: Owner(id_, name, ("/evidence/of/" + id_,), True) for id_, name in NAMES.items()}

# What works together by design.
FRIENDS = [
    (KUBELET_STATIC, RECONCILE),
    (KUBELET_STATIC, HOUSEKEEPING),
    (KUBELET_STATIC, TUNED),
    (KUBELET_STATIC, CRIO_INTERRUPTS),
    (KUBELET_STATIC, CRIO_SHARED),
    (KUBELET_STATIC, IRQBALANCE_OWNER),
    (HOUSEKEEPING, IRQBALANCE_OWNER),
    (HOUSEKEEPING, RECONCILE),
    (HOUSEKEEPING, DRA_CPU),
    (KUBELET_STATIC, CACHE),
    (KUBELET_STATIC, GORESCTRL_OWNER),
    (HOUSEKEEPING, CACHE),
    (RECONCILE, CACHE),
    (CRIO_INTERRUPTS, IRQBALANCE_OWNER),
    (TUNED, IRQBALANCE_OWNER),
]


def ids_of(pair: Pair) -> str:
    return "%s-%s" % (pair.first, pair.second)


def test_each_pair_is_there_once() -> None:
    sets = [frozenset((pair.first, pair.second)) for pair in PAIRS]
    assert len(sets) == len(set(sets)) == 85
    assert all(len(pair) == 2 and pair <= set(NAMES) for pair in sets)
    assert not set(map(frozenset, FRIENDS)) & set(sets)


@pytest.mark.parametrize("pair", PAIRS, ids=ids_of)
def test_a_pair_is_found(pair: Pair) -> None:
    (found,) = contradictions([OWNERS[pair.first], OWNERS[pair.second]])
    assert (found.first.id, found.second.id) == (pair.first, pair.second)
    for part in (NAMES[pair.first], NAMES[pair.second], "/evidence/of/" + pair.first, "/evidence/of/" + pair.second):
        assert part in found.text()
    assert found.to_dict() == {
        "first": pair.first,
        "second": pair.second,
        "reason": pair.reason,
        "remedy": pair.remedy,
    }


@pytest.mark.parametrize("pair", PAIRS, ids=ids_of)
def test_a_pair_is_refused_by_name(pair: Pair) -> None:
    for wanted, found in permutations((pair.first, pair.second)):
        with pytest.raises(RefusedError) as refused:
            refuse([OWNERS[found]], wanted)
        message = str(refused.value)
        assert refused.value.kind == OTHER_OWNER
        for part in (NAMES[wanted], NAMES[found], "/evidence/of/" + found, pair.reason, pair.remedy, "allow_owners"):
            assert part in message


def signs_of(pair: Pair) -> Iterator[tuple[Sign, Sign]]:
    """Yield two signs that can be on one node, one of each owner: neither has a file that the other has, too."""
    for first, second in product(SIGNS, SIGNS):
        # A kubelet has one directory.
        is_elsewhere = first.facts.kubelet_root != second.facts.kubelet_root and second.owner == KATALYST
        if (first.owner, second.owner) == (pair.first, pair.second) and not first.files.keys() & second.files.keys():
            yield from () if is_elsewhere else [(first, second)]


def facts_of(first: Sign, second: Sign) -> Facts:
    """Return what is known of a node with both."""
    facts = [first.facts, second.facts]
    return Facts(
        "".join(found.policy for found in facts),
        tuple(place for found in facts for place in found.kubelet),
        max((found.kubelet_root for found in facts), key=lambda root: root != Facts().kubelet_root),
        {name: pids for found in facts for name, pids in found.processes.items()},
        [pid for found in facts for pid in found.claims],
    )


def test_each_pair_can_be_on_one_node() -> None:
    assert [ids_of(pair) for pair in PAIRS if not list(signs_of(pair))] == []


@pytest.mark.parametrize(
    ("pair", "first", "second"),
    [
        pytest.param(pair, first, second, id="%s - %s" % (first.name, second.name))
        for pair in PAIRS
        for first, second in signs_of(pair)
    ],
)
def test_a_pair_on_one_node_is_found_and_refused_by_name(pair: Pair, first: Sign, second: Sign, tmp_path: Path) -> None:
    tree = write_owned(tmp_path, {**first.files, **second.files})
    owners = {owner.id: owner for owner in find_owners(tree, facts_of(first, second))}
    assert set(owners) == {pair.first, pair.second}
    assert (owners[pair.first].evidence, owners[pair.second].evidence) == (first.evidence, second.evidence)
    (found,) = contradictions(list(owners.values()))
    assert {found.first.id, found.second.id} == {pair.first, pair.second}
    for wanted, beside in permutations((pair.first, pair.second)):
        with pytest.raises(RefusedError) as refused:
            refuse(list(owners.values()), wanted)
        message = str(refused.value)
        for part in (NAMES[wanted], owners[beside].name, owners[beside].evidence[0], pair.reason, pair.remedy):
            assert part in message
        refuse(list(owners.values()), wanted, [beside])


@pytest.mark.parametrize("layers", ['["interrupts", "tuned"]', '["irqbalance", "tuned"]'])
def test_tuned_that_has_the_cpus_of_the_role(layers: str, tmp_path: Path) -> None:
    files = {**TUNED_FILES, JOURNAL: '{"layers": %s}' % layers}
    owners = find_owners(write_owned(tmp_path, files), Facts(processes={"tuned": [3]}))
    assert [owner.id for owner in owners if owner.is_active] == [TUNED, HOUSEKEEPING]
    for both in (owners, owners[::-1]):
        assert contradictions(both) == []
    # The other pairs of tuned are as they were.
    assert len(contradictions([*owners, OWNERS[BALLOONS]])) == 2
    with pytest.raises(RefusedError, match="housekeeping_tuned: true"):
        refuse(owners, HOUSEKEEPING)


@pytest.mark.parametrize("journal", ["{}", "", "[]", '{"layers": "tuned"}', '{"layers": ["slices"]}'])
def test_tuned_that_was_not_given_the_cpus_of_the_role(journal: str, tmp_path: Path) -> None:
    owners = find_owners(write_owned(tmp_path, {**TUNED_FILES, JOURNAL: journal}), Facts(processes={"tuned": [3]}))
    assert len(contradictions(owners)) == 1


@pytest.mark.parametrize(
    ("layers", "pairs"),
    [
        (["slices", "workqueues"], 0),
        (["slices", "interrupts"], 3),
        (["irqbalance"], 3),
        ([], 0),
    ],
)
def test_who_writes_interrupts_and_a_role_that_does_not(layers: list[str], pairs: int, tmp_path: Path) -> None:
    tree = write_owned(tmp_path, {JOURNAL: json.dumps({"layers": layers})})
    others = [OWNERS[owner] for owner in (CRIO_INTERRUPTS, BALLOONS, TOPOLOGY_AWARE)]
    found = [pair for pair in contradictions([*find_owners(tree, Facts()), *others]) if pair.first.id == HOUSEKEEPING]
    assert len(found) == pairs
    errors = refusals(others, HOUSEKEEPING, undisturbed(layers))
    assert len(errors) == pairs
    assert all(
        "leave the layers interrupts and irqbalance out of housekeeping_layers" in str(error) for error in errors
    )


@pytest.mark.parametrize(("first", "second"), FRIENDS)
def test_friends(first: str, second: str) -> None:
    assert contradictions([OWNERS[first], OWNERS[second]]) == []
    refuse([OWNERS[first]], second)
    refuse([OWNERS[second]], first)


@given(st.lists(st.sampled_from(sorted(NAMES)), unique=True), st.sampled_from(sorted(NAMES)))
def test_refusals_and_contradictions_agree(found: list[str], wanted: str) -> None:
    owners = [OWNERS[id_] for id_ in found if id_ != wanted]
    with_wanted = [
        contradiction
        for contradiction in contradictions([*owners, OWNERS[wanted]])
        if wanted in (contradiction.first.id, contradiction.second.id)
    ]
    assert len(refusals(owners, wanted)) == len(with_wanted)
    assert refusals(owners, wanted, found) == []


@given(st.lists(st.sampled_from(sorted(NAMES)), unique=True))
def test_the_order_of_owners_says_nothing(found: list[str]) -> None:
    def pairs(owners: list[str]) -> set[frozenset[str]]:
        return {frozenset((row.first.id, row.second.id)) for row in contradictions([OWNERS[id_] for id_ in owners])}

    assert pairs(found) == pairs(found[::-1])
    table = {frozenset((pair.first, pair.second)) for pair in PAIRS}
    assert pairs(found) == {frozenset(pair) for pair in combinations(found, 2)} & table


def test_what_is_left_over_is_not_in_the_way() -> None:
    left = OWNERS[BALLOONS]._replace(is_active=False)
    assert contradictions([OWNERS[KUBELET_STATIC], left]) == []
    refuse([left], KUBELET_STATIC)


def test_all_that_is_in_the_way_is_said() -> None:
    owners = [OWNERS[DRA_CPU], OWNERS[BALLOONS], OWNERS[TUNED]]
    with pytest.raises(RefusedError) as refused:
        refuse(owners, KUBELET_STATIC)
    assert NAMES[DRA_CPU] in str(refused.value)
    assert NAMES[BALLOONS] in str(refused.value)
    assert NAMES[TUNED] not in str(refused.value)
    with pytest.raises(RefusedError, match=NAMES[BALLOONS]):
        refuse(owners, KUBELET_STATIC, [DRA_CPU])
    refuse(owners, KUBELET_STATIC, [DRA_CPU, BALLOONS])


@pytest.mark.parametrize("owners", [[], [OWNERS[TOPOLOGY_AWARE]]])
def test_an_id_that_there_is_not(owners: list[Owner]) -> None:
    with pytest.raises(InputError, match="there is no owner tunde; these are: kubelet-static, dra-driver-cpu"):
        refuse(owners, KUBELET_STATIC, ["tunde"])

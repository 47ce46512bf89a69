# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/hints.py."""

from __future__ import annotations

from itertools import product
from typing import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import count_bits, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    BEST_EFFORT,
    CONTAINER,
    NONE,
    POD,
    POLICIES,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    Hint,
    TopologyManager,
    numa_masks,
)

MERGING = (BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)
FOUR = (0, 1, 2, 3)


def hint(text: str) -> Hint:
    """Return `01!` is on the nodes 0 and 1, preferred; `01` is not preferred; `*` is on any."""
    nodes = text.rstrip("!")
    mask = None if nodes == "*" else sum(1 << int(node) for node in nodes)
    return Hint(mask, text.endswith("!"))


def text_of(found: Hint) -> str:
    nodes = "*" if found.mask is None else "".join(str(node) for node in iterate_bits(found.mask))
    return nodes + ("!" if found.preferred else "")


def hints(text: str) -> list[Hint] | None:
    """Return the hints of one resource; `nil` is none at all, the empty text those of one that cannot be served."""
    return None if text == "nil" else [hint(word) for word in text.split()]


def manager(policy: str, nodes: tuple[int, ...] = FOUR, **options: str) -> TopologyManager:
    distances = {node: {target: 10 + 10 * abs(node - target) for target in nodes} for node in nodes}
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return TopologyManager(policy, CONTAINER, list(nodes), named, distances)


# --- masks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "masks"),
    [
        ([], []),
        ([0], [0b1]),
        ([0, 1], [0b01, 0b10, 0b11]),
        ([2, 0, 1], [0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111]),
        ([3, 8], [1 << 3, 1 << 8, 1 << 3 | 1 << 8]),
    ],
)
def test_masks(nodes: list[int], masks: list[int]) -> None:
    """Small ones first, then by the lowest ids, which is not the order of the numbers."""
    assert numa_masks(nodes) == masks


def test_masks_of_many_nodes() -> None:
    masks = numa_masks(range(10))
    assert len(masks) == len(set(masks)) == 1023
    assert [count_bits(mask) for mask in masks] == sorted(count_bits(mask) for mask in masks)
    # 0 and 3 before 1 and 2, although 0b1001 is more than 0b0110.
    assert masks.index(0b1001) < masks.index(0b0110)


# --- merging ------------------------------------------------------------------------------------------

# on the nodes 0 to 3: the hints of each resource, the best of them
MERGED = [
    # nothing to merge
    ([], "0123!"),
    (["nil"], "0123!"),
    (["nil", "nil"], "0123!"),
    # one that cannot be served
    ([""], "0123"),
    (["", "nil"], "0123"),
    (["", "0! 1!"], "0"),
    # one resource
    (["0!"], "0!"),
    (["0"], "0"),
    (["*!"], "0123!"),
    (["*"], "0123"),
    (["1! 0!"], "0!"),  # equally narrow: the lower
    (["01! 2!"], "2!"),  # the narrower
    (["0 23!"], "23!"),  # the preferred, although it is wider
    (["23! 0"], "23!"),
    (["0123 123 23"], "23"),
    (["01! 02! 12!"], "01!"),
    (["03! 12!"], "12!"),  # by the number, and 0b0110 is less than 0b1001
    # one resource that has no preference
    (["1! 01", "nil"], "1!"),
    (["1! 01", "*!"], "1!"),
    (["1! 01", "*"], "1"),
    # several: the nodes that all can use
    (["0!", "0!"], "0!"),
    (["0!", "01!"], "0"),  # not preferred, because they differ
    (["0! 01", "01!"], "01"),  # both can use both, and one of them no less
    (["0! 1! 01", "1! 01"], "1!"),
    (["0! 01", "1! 01"], "0"),
    (["0!", "1!"], "0123"),  # nothing in common
    (["0!", "1!", "nil"], "0123"),
    (["0! 1!", "0! 1!", "1!"], "1!"),
    (["01!", "12!", "02!"], "0123"),
    (["01! 23!", "012!", "nil"], "01"),
    # none is preferred: the narrowest that serves each resource by itself is the measure
    (["0 01", "01"], "01"),  # one resource needs two: two are better than one
    (["01", "0 01"], "01"),
    (["0 01", "01 012"], "01"),
    (["0", "012"], "0"),  # nothing as wide as the measure
    (["012 0123", "01 012"], "012"),
    (["0123 01", "012"], "012"),  # as wide as the measure, although less would do
    (["01 23", "012"], "01"),  # less than the measure: the nearest to it
    (["0 12 0123", "012 0123"], "012"),
    (["01 23", "0123"], "01"),
    (["23 01", "0123"], "01"),
    (["0 123", "012 0123"], "123"),  # as wide as the measure
    (["0 013", "0123 12"], "0"),  # never wider than the measure, when it was less already
]


@pytest.mark.parametrize(("lists", "best"), MERGED)
def test_merged(lists: list[str], best: str) -> None:
    for policy in (BEST_EFFORT, RESTRICTED):
        found, admitted = manager(policy).merge([hints(text) for text in lists])
        assert text_of(found) == best
        assert admitted == (policy == BEST_EFFORT or best.endswith("!"))


# The same for single-numa-node, which looks at preferred hints of one node only.
SINGLE = [
    ([], "*!"),  # what could be anywhere has no affinity
    (["nil"], "*!"),
    (["*!"], "*!"),
    (["*!", "1!"], "1!"),
    ([""], "*"),
    (["*"], "*"),
    (["0!"], "0!"),
    (["1! 0!"], "0!"),
    (["0! 01"], "0!"),
    (["0"], "*"),
    (["01!"], "*"),  # two nodes, although preferred
    (["01! 2"], "*"),
    (["0!", "0! 1!"], "0!"),
    (["0!", "1!"], "*"),
    (["0! 1!", "1!", "nil"], "1!"),
    (["0!", "01!"], "*"),
    (["0!", ""], "*"),
]


@pytest.mark.parametrize(("lists", "best"), SINGLE)
def test_merged_on_a_single_node(lists: list[str], best: str) -> None:
    found, admitted = manager(SINGLE_NUMA_NODE).merge([hints(text) for text in lists])
    assert text_of(found) == best
    assert admitted == best.endswith("!")


def test_a_machine_of_one_node() -> None:
    """Node 0 is all there is: with single-numa-node the affinity is none."""
    assert manager(RESTRICTED, (0,)).merge([hints("0!")]) == (Hint(1, True), True)
    assert manager(SINGLE_NUMA_NODE, (0,)).merge([hints("0!")]) == (Hint(None, True), True)


def test_none_is_never_merged_but_has_an_affinity_of_all() -> None:
    assert manager(NONE).merge([hints("nil")]) == (Hint(0b1111, True), True)


def test_nodes_without_cpus_are_in_the_mask_of_all() -> None:
    wide = TopologyManager(BEST_EFFORT, CONTAINER, [0, 1, 4, 5])
    assert wide.merge([None]) == (Hint(0b110011, True), True)


@given(
    st.lists(st.lists(st.builds(Hint, st.integers(1, 15), st.booleans()), max_size=4), min_size=1, max_size=3),
    st.sampled_from(MERGING),
)
def test_laws_of_merging(lists: list[list[Hint]], policy: str) -> None:
    found, admitted = manager(policy).merge(lists)
    assert admitted == (policy == BEST_EFFORT or found.preferred)
    mask = 15 if found.mask is None else found.mask
    masks = [{entry.mask or 0 for entry in resource} for resource in lists]
    combined = [masks_taken for masks_taken in product(*masks) if all(masks)]
    # The affinity is what some choice has in common, or all nodes.
    assert (
        mask == 15
        or mask in {_common(masks_taken) for masks_taken in combined}
        or policy == SINGLE_NUMA_NODE
        or not all(masks)
    )
    if found.preferred:
        # Every resource has it among its preferred hints.
        assert all(Hint(mask, True) in resource for resource in lists)
        smaller = [
            candidate for candidate in numa_masks(FOUR) if (count_bits(candidate), candidate) < (count_bits(mask), mask)
        ]
        assert not any(all(Hint(candidate, True) in resource for resource in lists) for candidate in smaller)
    elif policy != SINGLE_NUMA_NODE:
        assert not any(all(Hint(candidate, True) in resource for resource in lists) for candidate in range(1, 16))
    # Always the same answer.
    assert manager(policy).merge(lists) == (found, admitted)


def _common(masks: tuple[int, ...]) -> int:
    common = 15
    for mask in masks:
        common &= mask
    return common


def best_of_all_choices(node: TopologyManager, lists: list[list[Hint]]) -> Hint:
    """Return the best hint as the kubelet finds it: it holds every choice of one hint of each resource against the
    best so far."""
    sizes = [[count_bits(entry.mask) for entry in hints_ if entry.mask is not None] for hints_ in lists]
    target = max(min(row, default=0) for row in sizes)
    best: Hint | None = None
    for choice in product(*lists):
        masks = {entry.mask for entry in choice if entry.mask is not None}
        mask = _common((node.default_mask, *masks))
        candidate = Hint(mask, len(masks) <= 1 and all(entry.preferred for entry in choice))
        if mask and (best is None or _replaces(candidate, best, target, node.distances)):
            best = candidate
    return best or Hint(node.default_mask, False)


def _replaces(candidate: Hint, best: Hint, target: int, distances: Mapping[int, Mapping[int, int]]) -> bool:
    new, old = candidate.mask or 0, best.mask or 0
    size, best_size = count_bits(new), count_bits(old)
    is_narrower = (size, _distance(new, distances), new) < (best_size, _distance(old, distances), old)
    if candidate.preferred != best.preferred:
        return candidate.preferred
    if candidate.preferred or best_size > target:
        return is_narrower
    if best_size == target:
        return size == target and is_narrower
    return best_size < size <= target if size != best_size else is_narrower


def _distance(mask: int, distances: Mapping[int, Mapping[int, int]]) -> float:
    nodes = list(iterate_bits(mask))
    return sum(distances[first][second] for first in nodes for second in nodes) / len(nodes) ** 2 if distances else 0


ANY_HINTS = st.lists(st.builds(Hint, st.one_of(st.none(), st.integers(1, 15)), st.booleans()), min_size=1, max_size=6)


@given(st.lists(ANY_HINTS, min_size=1, max_size=4), st.booleans())
def test_the_best_of_all_choices_is_found_without_going_through_them(lists: list[list[Hint]], closest: bool) -> None:
    """In any order of the resources: the kubelet's is that of its managers and of a map, which is random."""
    node = manager(BEST_EFFORT, prefer_closest_numa_nodes=str(closest).lower())
    if not closest:
        node.distances = {}
    expected = best_of_all_choices(node, lists)
    assert node.merge(lists)[0] == node.merge(lists[::-1])[0] == expected


def test_many_resources_on_many_nodes() -> None:
    """255 hints of each of six resources are 275 billion choices."""
    wide = manager(RESTRICTED, tuple(range(8)))
    everywhere = [Hint(mask, False) for mask in numa_masks(range(8))]
    found, admitted = wide.merge([everywhere] * 5 + [[Hint(0b11000000, True), Hint(0b11, True)]])
    assert (text_of(found), admitted) == ("01", False)


@pytest.mark.parametrize(
    ("named", "blamed"),
    [
        ({"cpu": "0! 1!", "gpu": "1"}, ["gpu"]),  # not preferred
        ({"cpu": "01", "gpu": "", "memory": "0!"}, ["cpu", "gpu"]),
        ({"cpu": "0!", "gpu": "1!", "memory": "nil"}, ["cpu", "gpu"]),  # each by itself, and not together
        ({"cpu": "0! 1!", "gpu": "1!", "memory": "0! 01"}, ["gpu", "memory"]),
        ({"cpu": "0! 1!", "gpu": "0! 2!", "memory": "1! 2!"}, ["cpu", "gpu", "memory"]),  # two of them could
    ],
)
def test_which_could_not_be_aligned(named: dict[str, str], blamed: list[str]) -> None:
    assert list(manager(RESTRICTED).not_aligned({name: hints(text) for name, text in named.items()})) == blamed


# --- options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "near", "far"),
    [
        (["03! 23!"], "23!", "03!"),  # distances 20 and 10 and not the lower number
        (["03! 12! 01!"], "01!", "01!"),  # equally near: the lower
        (["23! 12!"], "12!", "12!"),
        (["013! 123!"], "123!", "013!"),
        (["0! 3!"], "0!", "0!"),
        (["03! 2!"], "2!", "2!"),  # the narrower is better still
        (["03 23"], "23", "03"),  # also when none is preferred
        (["03! 23"], "03!", "03!"),
    ],
)
def test_closest_nodes(lists: list[str], near: str, far: str) -> None:
    for policy in (BEST_EFFORT, RESTRICTED):
        for value, best in (("true", near), ("1", near), ("false", far)):
            found, _admitted = manager(policy, prefer_closest_numa_nodes=value).merge([hints(text) for text in lists])
            assert text_of(found) == best


def test_closest_nodes_with_distances_that_differ_by_direction() -> None:
    distances: dict[int, dict[int, int]] = {
        0: {0: 10, 1: 21, 2: 12},
        1: {0: 10, 1: 10, 2: 10},
        2: {0: 30, 1: 11, 2: 10},
    }
    wide = TopologyManager(BEST_EFFORT, CONTAINER, [0, 1, 2], {"prefer-closest-numa-nodes": "true"}, distances)
    # Sums over all ordered pairs, each node with itself: 51, 62 and 41.
    assert text_of(wide.merge([hints("01! 02! 12!")])[0]) == "12!"
    assert text_of(wide.merge([hints("01! 02!")])[0]) == "01!"


def test_closest_nodes_do_not_matter_to_a_single_node() -> None:
    distances = {0: {0: 20, 1: 20}, 1: {0: 20, 1: 10}}
    for policy, best in ((BEST_EFFORT, "1!"), (SINGLE_NUMA_NODE, "0!")):
        found = TopologyManager(policy, CONTAINER, [0, 1], {"prefer-closest-numa-nodes": "true"}, distances)
        assert text_of(found.merge([hints("0! 1!")])[0]) == best


def refusal(policy: str, nodes: int, options: Mapping[str, str], distances: bool = True) -> str:
    """Return what a kubelet says; nothing when it starts."""
    table = {node: dict.fromkeys(range(nodes), 10) for node in range(nodes)} if distances else None
    try:
        TopologyManager(policy, CONTAINER, list(range(nodes)), options, table)
    except KubeletError as error:
        return error.text
    return ""


CLOSEST = "prefer-closest-numa-nodes"
MOST = "max-allowable-numa-nodes"

TOO_MANY = "unsupported on machines with more than %d NUMA Nodes"
NO_NUMBER = (
    'unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "%s": invalid syntax'
)
OPTIONS = [
    ({}, 8, ""),
    ({}, 9, TOO_MANY % 8),
    ({MOST: "8"}, 9, TOO_MANY % 8),
    ({MOST: "9"}, 9, ""),
    ({MOST: "16"}, 17, TOO_MANY % 16),
    ({MOST: "64"}, 10, ""),
    ({MOST: "7"}, 2, 'the minimum value of "max-allowable-numa-nodes" should not be less than 8'),
    ({MOST: "0"}, 2, 'the minimum value of "max-allowable-numa-nodes" should not be less than 8'),
    ({MOST: "many"}, 2, NO_NUMBER % "many"),
    ({MOST: ""}, 2, NO_NUMBER % ""),
    ({MOST: "8.5"}, 2, NO_NUMBER % "8.5"),
    ({MOST: "\u00b2"}, 2, NO_NUMBER % "\u00b2"),  # a digit only for Python
    ({MOST: "+9"}, 9, ""),
    ({MOST: "-9"}, 2, 'the minimum value of "max-allowable-numa-nodes" should not be less than 8'),
    ({CLOSEST: "true"}, 2, ""),
    ({CLOSEST: "T", MOST: "8"}, 8, ""),
    (
        {CLOSEST: "yes"},
        2,
        'bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "yes": invalid syntax',
    ),
    ({"closest": "true"}, 2, 'unknown Topology Manager Policy option: "closest"'),
]


@pytest.mark.parametrize(("options", "nodes", "message"), OPTIONS)
def test_options(options: dict[str, str], nodes: int, message: str) -> None:
    for policy in MERGING:
        assert refusal(policy, nodes, options) == message
    # The policy none does not even look at them.
    assert refusal(NONE, nodes, options) == ""


def test_distances_that_are_missing() -> None:
    missing = "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
    assert refusal(BEST_EFFORT, 2, {CLOSEST: "true"}, distances=False) == missing
    assert refusal(BEST_EFFORT, 2, {CLOSEST: "false"}, distances=False) == ""
    assert refusal(BEST_EFFORT, 2, {}, distances=False) == ""


def test_names() -> None:
    with pytest.raises(KubeletError) as caught:
        TopologyManager("single", CONTAINER, [0])
    assert caught.value.text == 'unknown policy: "single"'
    with pytest.raises(KubeletError) as caught:
        TopologyManager(NONE, "node", [0])
    assert caught.value.text == 'unknown scope: "node"'
    for policy, scope in product(POLICIES, (CONTAINER, POD)):
        assert TopologyManager(policy, scope, [0]).scope == scope


def test_more_than_eight_nodes() -> None:
    wide = manager(RESTRICTED, tuple(range(10)), max_allowable_numa_nodes="10")
    assert wide.merge([None]) == (Hint(0b1111111111, True), True)
    assert wide.merge([[Hint(1 << 9, True), Hint(0b1111, True)]]) == (Hint(1 << 9, True), True)
    single = manager(SINGLE_NUMA_NODE, tuple(range(10)), max_allowable_numa_nodes="10")
    assert single.merge([[Hint(1 << 9, True)], None]) == (Hint(1 << 9, True), True)

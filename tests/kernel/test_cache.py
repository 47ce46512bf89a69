# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches are divided on platforms of all kinds, by the writes that the kernel takes, and put back to the byte.

The kernel's part is played by a model of it, mounted as a file system: see tests/machines/resctrl/.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cache.read import read_resctrl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cache.resctrl import (
    EXCLUSIVE_GROUP,
    OUR_GROUPS,
    ROOT,
    SHARED_GROUP,
    Found,
    is_one_run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import count_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.follow import follow
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.chance import Case, case
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.kernel import CacheShape
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    divide,
    give,
    node_at,
    take_back,
    write_node,
)

CASES = int(os.environ.get("CACHE", "40"))
SEED = int(os.environ.get("SEED", "1"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    yield from mounted(tmp_path_factory.mktemp("node"))


def read(model: Mounted) -> Found:
    found = read_resctrl(Tree(str(model.root)))
    assert found is not None
    return found


def begin(model: Mounted, given: Case) -> None:
    model.load(given.shape)
    for path, text in given.others:
        place = model.place / path.lstrip("/")
        if text == "mkdir":
            place.mkdir()
        else:
            write(place, text)
    write_node(model.root, given.shape)
    model.writes()


def write(place: Path, text: str) -> None:
    descriptor = os.open(place, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# --- laws --------------------------------------------------------------------------------------------------


def check_laws(found: Found, shape: CacheShape, exclusive: set[int], wish: dict[str, object], before: Found) -> None:
    ours = {name: found.groups[name] for name in OUR_GROUPS if name in found.groups}
    assert set(ours) == {EXCLUSIVE_GROUP} | (
        {SHARED_GROUP} if wish.keys() & {"shared_share", "shared_bandwidth"} else set()
    )
    for number in shape.ids:
        own, rest = (found.groups[name].mask(shape.name, number) for name in (EXCLUSIVE_GROUP, ROOT))
        shared = ours[SHARED_GROUP].mask(shape.name, number) if SHARED_GROUP in ours else rest
        for mask in (own, rest, shared):
            assert count_bits(mask) >= shape.least
            assert mask <= shape.full
            assert shape.sparse or is_one_run(mask)
        assert not own & (rest | shared), "the exclusive ways are nobody else's of ours"
        assert "shared_share" not in wish or not shared & rest
        assert own | rest | shared <= before.root.mask(shape.name, number)
        for group in found.foreign:
            assert group.mode == "shareable" or not group.mask(shape.name, number) & own
    for group in before.foreign:
        assert found.groups[group.name]._replace(counted={}) == group._replace(counted={}), "others are left alone"
    theirs = {cpu for group in before.foreign for cpu in group.cpus}
    cpus = set(ours[EXCLUSIVE_GROUP].cpus)
    if not found.bandwidths:
        assert cpus == exclusive - theirs
    else:
        half = len(found_cpus(found)) // 2 if shape.name != "L2" and len(found_cpus(found)) % 2 == 0 else 0
        order = sorted(found_cpus(found))
        for place in range(half):
            pair = {order[place], order[place + half]}
            classes = {name for name, group in ours.items() if pair & set(group.cpus)}
            assert not classes or (pair <= set(ours[classes.pop()].cpus) and not classes), "siblings are of one class"


def found_cpus(found: Found) -> set[int]:
    return {cpu for group in found.groups.values() for cpu in group.cpus}


def test_random_platforms(model: Mounted) -> None:
    """Each wish is refused before the first write, or the kernel takes all writes; and all is undone to the byte."""
    taken = refused = 0
    for seed in range(SEED, SEED + CASES):
        given = case(seed)
        begin(model, given)
        before, untouched = model.state(), read(model)
        for (exclusive, shared), wish in zip(given.pools, given.wishes):
            give(model.root, exclusive, shared)
            state = model.state()
            try:
                planned = divide(model.root, act=False, **wish)
            except (InputError, RefusedError) as error:
                refused += 1
                with pytest.raises(type(error)):
                    divide(model.root, **wish)
                assert (model.state(), model.writes()) == (state, []), (seed, wish)
                continue
            answer = divide(model.root, **wish)
            assert (answer.steps, answer.before, answer.after) == (planned.steps, planned.before, planned.after)
            taken += 1
            check_laws(read(model), given.shape.caches[0], exclusive, wish, untouched)
            assert len(model.writes()) == len(answer.steps)
            assert not divide(model.root, **wish).changed, (seed, wish)
            assert not model.writes(), (seed, wish)
            assert follow(node_at(model.root)) == []
        take_back(model.root)
        assert model.state() == before, seed
        model.writes()
        assert not take_back(model.root).changed
        assert not model.writes()
    print("%d platforms: %d wishes taken, %d refused" % (CASES, taken, refused))
    assert taken > CASES // 4

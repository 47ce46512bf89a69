# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long cache_info takes beside ansible.builtin.ping: here, on nodes without resctrl, and on those of which the
caches are divided."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    CacheJournal,
    text_of,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.kernel import Kernel
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import JOURNAL, give, write, write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record

from .drift import HOSTS, ROUNDS, SHAPES, make_node
from .tasks import LOCAL, PING, compare_with_ping, time_tasks

LIMIT = 1.2
DIVIDED = ("xeon-l3-mba-mbm", "epyc-16-l3-smba")


def look(root: Path) -> dict[str, Any]:
    """Return the one task that reads how the caches are divided."""
    return {"name": "Read the caches", "kubenode.cpu_manager.cache_info": {"root": str(root)}}


def divided(root: Path, name: str) -> Path:
    """Return a node of this platform, whose exclusive CPUs have ways to themselves."""
    shape = PLATFORMS[name]
    write_node(root, shape)
    give(root, {1, len(shape.online) // 2 + 1}, set(shape.online) - {1, len(shape.online) // 2 + 1})
    kernel = Kernel(shape)
    kernel.mkdir("/kubenode.exclusive")
    cache, ids = shape.caches[0], shape.caches[0].ids
    masks = dict.fromkeys(ids, cache.full & ~15)
    for path, values in (("/schemata", masks), ("/kubenode.exclusive/schemata", dict.fromkeys(ids, 0xF))):
        kernel.write(path, ("L3:%s\n" % ";".join("%d=%x" % item for item in values.items())).encode())
    kernel.write("/kubenode.exclusive/cpus_list", b"1,%d\n" % (len(shape.online) // 2 + 1))
    record(root, shape, kernel)
    former = dict.fromkeys(ids, cache.full)
    boot = "11111111-2222-4333-8444-555555555555"
    ours = {number: (mask,) for number, mask in masks.items()}
    write(root / JOURNAL, text_of(CacheJournal(wish_of({"exclusive_share": 4}), boot, "L3", former, ours)))
    return root


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    with tempfile.TemporaryDirectory() as name:
        tasks = {"ping": PING, "this machine": look(Path("/"))}
        tasks.update((shape, look(make_node(Path(name), shape))) for shape in SHAPES)
        tasks.update((place, look(divided(Path(name) / place, place))) for place in DIVIDED)
        times = time_tasks(Path(name), tasks, HOSTS, ROUNDS)
    return compare_with_ping("cache_info", times, LOCAL % HOSTS, LIMIT)

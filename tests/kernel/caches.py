# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of caches do with the model of resctrl."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import Resctrl, read_resctrl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.chance import Case
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import divide, give, write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS


def read(model: Mounted) -> Resctrl:
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


def divided(model: Mounted, name: str, exclusive: str = "1,9", **wish: Any) -> None:
    """Make a platform whose exclusive CPUs have a part of the caches."""
    begin(model, Case(PLATFORMS[name], [], [], []))
    own = set(CPUSet.parse(exclusive))
    give(model.root, own, set(PLATFORMS[name].online) - own)
    if wish:
        divide(model.root, **wish)
        model.writes()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers whose processes are in a group of resctrl: the CPUs of our groups say nothing of them.

Source: "Resource allocation rules" in Documentation/filesystems/resctrl.rst in Linux: the group of a process comes
before that of its CPU.
"""

from __future__ import annotations

from typing import Any, Iterator

from ...cache.resctrl import Found, Group
from ...cgroup.kubepods import container_id
from ...errors import CPUManagerError
from ..node import Node
from ..observation import find_names


def containers_in(node: Node, found: Found, notes: list[str]) -> list[dict[str, Any]]:
    """Each container with a process in a group, by group and id; see the module cache_info for the shape."""
    ids = {name: dict.fromkeys(_ids(node, group)) for name, group in found.groups.items() if group.tasks}
    if not any(ids.values()):
        return []
    try:
        configuration = node.found()[0]
        names, _all_named = find_names(node.tree, node.runtime_endpoint(configuration), node.hides_names)
    except CPUManagerError as error:
        notes.append("the names of containers are not known: %s" % error)
        names = {}
    rows = []
    for group, of_group in ids.items():
        for identity in of_group:
            named = names.get(identity)
            rows.append(
                {
                    "group": group,
                    "id": identity,
                    "pod": "" if named is None else named.pod_name,
                    "container": "" if named is None else named.name,
                }
            )
    return rows


def _ids(node: Node, group: Group) -> Iterator[str]:
    for pid in group.tasks:
        try:
            text = (node.tree.content("/proc/%d/cgroup" % pid) or b"").decode("utf-8", "replace")
        except CPUManagerError:
            continue  # it ended meanwhile
        for line in text.splitlines():
            # A container may make cgroups of any name in its own, so the first one counts.
            identity = next(filter(None, map(container_id, line.split("/"))), "")
            if identity and "kubepods" in line:
                yield identity
                break

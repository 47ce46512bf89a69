#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cpuset
short_description: Set the CPUs and memory nodes of cgroups in an order that the kernel accepts
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Sets C(cpuset.cpus) and C(cpuset.mems) of one cgroup or of a whole tree of them, in the hierarchy that has the
    cpuset controller, of cgroup v1 or v2.
  - On v1 the kernel refuses a write that would leave a child with more than its parent. So a cgroup grows before those
    below it and shrinks after them, with as few writes as possible.
  - On v2 the kernel accepts any set, except an empty one for processes, but a cgroup can only use what its parent has.
    RV(notes) lists where that differs from the requested CPUs.
  - What the kernel would refuse is refused before the first write. If a write fails nevertheless, those before it are
    undone.
  - On v2 a slice, scope or service of systemd's is set as a property of the unit, because systemd would overwrite the
    file at its next reload.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.attributes.change
options:
  path:
    description:
      - The path of a cgroup, relative to RV(mount), such as V(system.slice).
    type: str
  cpus:
    description:
      - The CPUs that the cgroup O(path) is to have, such as V(0-3,24-27). Without it, they stay as they are.
      - An empty text gives a cgroup of v2 all CPUs of its parent, and a cgroup of v1 none. The kernel accepts it only
        if there are no processes in the cgroup and, on v2, none below it.
    type: str
  mems:
    description:
      - The NUMA nodes whose memory the cgroup O(path) is to have, such as V(0-1). Without it, they stay as they are.
    type: str
  cgroups:
    description:
      - Several cgroups, which are changed together. Their order is of no importance.
    type: list
    elements: dict
    suboptions:
      path:
        description:
          - The path of the cgroup, relative to RV(mount).
        type: str
        required: true
      cpus:
        description:
          - The CPUs that it is to have. Give this or O(cgroups[].mems), or both.
        type: str
      mems:
        description:
          - The NUMA nodes whose memory it is to have.
        type: str
  runtime:
    description:
      - Set the properties of systemd's units until the next boot only.
      - Values of cgroups that are no units of systemd are always lost together with the cgroup.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Keep the daemons of the system on the housekeeping CPUs
  kubenode.cpu_manager.cpuset:
    path: system.slice
    cpus: 0-3

- name: Move the pods, and those of the class Burstable, to other CPUs
  kubenode.cpu_manager.cpuset:
    cgroups:
      - path: kubepods.slice
        cpus: 4-47
      - path: kubepods.slice/kubepods-burstable.slice
        cpus: 8-47
        mems: "0"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
version:
  description: The version of cgroups that has the cpuset controller, 1 or 2.
  returned: success
  type: int
  sample: 2
mount:
  description: Where that hierarchy is mounted on the node.
  returned: success
  type: str
  sample: /sys/fs/cgroup
writes:
  description: The writes in their order.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The cgroup.
      type: str
      sample: kubepods.slice
    file:
      description: Its file, C(cpuset.cpus) or C(cpuset.mems).
      type: str
      sample: cpuset.cpus
    old:
      description: The content of the file before.
      type: str
      sample: 0-47
    new:
      description: What is written.
      type: str
      sample: 4-47
notes:
  description: Differences between what was written and what is effective, such as CPUs that the parent does not have.
  returned: success
  type: list
  elements: str
  sample: []
"""


from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError
from ..module_utils._base.tree import Tree
from ..module_utils._cgroup.hierarchy import Hierarchy
from ..module_utils._cgroup.writer import carry_out, systemd_of
from ..module_utils._cgroup.writes import WantedCpuset, plan_writes
from ..module_utils.cpuset import CPUSet


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    hierarchy = Hierarchy(tree)
    given = [parameters] if parameters["cgroups"] is None else parameters["cgroups"]
    wanted = [wanted_cgroup(hierarchy, entry) for entry in given]
    around = hierarchy.around(cgroup.path for cgroup in wanted)
    plan = plan_writes(hierarchy.version, around, wanted, hierarchy.online_cpus(), hierarchy.memory_nodes())
    if not check_mode:
        carry_out(hierarchy, plan.writes, systemd_of(hierarchy, parameters["runtime"]))
    result = {
        "version": hierarchy.version,
        "mount": hierarchy.mount,
        "writes": [write.to_dict() for write in plan.writes],
        "notes": list(plan.notes),
    }
    return Outcome(result, bool(plan.writes), [difference(hierarchy.place(""), plan.before(), plan.after())])


def wanted_cgroup(hierarchy: Hierarchy, given: Parameters) -> WantedCpuset:
    """Return what is to become of one cgroup. Raises InputError."""
    path = hierarchy.relative(given["path"])
    if given["cpus"] is None and given["mems"] is None:
        raise InputError("nothing is wanted", where=path, remedy="give cpus or mems")
    return WantedCpuset(path, parsed(path, "cpus", given["cpus"]), parsed(path, "mems", given["mems"]))


def parsed(path: str, option: str, text: str | None) -> CPUSet | None:
    """Return the set that an option gives. Raises InputError, which names the cgroup."""
    try:
        return None if text is None else CPUSet.parse(text)
    except InputError as error:
        raise error.within("%s: %s" % (path, option)) from error


def main() -> None:
    sets = {"cpus": {"type": "str"}, "mems": {"type": "str"}}
    run(
        work,
        Arguments(
            {
                "path": {"type": "str"},
                **sets,
                "cgroups": {
                    "type": "list",
                    "elements": "dict",
                    "options": {"path": {"type": "str", "required": True}, **sets},
                },
                "runtime": {"type": "bool", "default": False},
            },
            mutually_exclusive=[("path", "cgroups")],
            required_one_of=[("path", "cgroups")],
            required_by={"cpus": ["path"], "mems": ["path"]},
        ),
    )


if __name__ == "__main__":
    main()

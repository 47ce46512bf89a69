#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_partition
short_description: Set a part of the caches apart for the exclusive CPUs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Creates the resctrl group C(kubenode.exclusive), which gives the exclusive CPUs of a node ways of the cache that no
    other CPU fills. Its CPUs are the exclusive CPUs of the CPU manager's checkpoint. The root group keeps the rest.
    With O(shared_share) or O(shared_bandwidth), the group C(kubenode.shared) has the CPUs of all other containers.
  - Divides the L3 cache, or the L2 cache if no L3 cache can be divided. The ways that devices fill stay with the root
    group as long as there are enough other ways.
  - The groups consist of CPUs and not of processes, so they work with every container runtime. They do not apply to a
    container that a runtime has put into a class of its own, see RV(ignore:containers) of
    M(kubenode.cpu_manager.cache_info).
  - Lines that are in a cache already stay there and stay usable, so the effect is not immediate.
  - If the platform can limit bandwidth, both threads of a core are in the same group, because the lower of two limits
    may apply to both.
  - Everything is written under the lock that users of resctrl share. The groups of other programs keep their ways and
    CPUs. The values of the root group are saved in C(/var/lib/kubenode-cpu-manager/cache.json) before the first write,
    and O(state=absent) restores them. If a run was killed, the next run completes or undoes it.
  - resctrl loses all settings at each boot. The program of the role P(kubenode.cpu_manager.reconcile#role) creates the
    groups again, and keeps their CPUs in line with the checkpoint.
  - The module fails on a node where the DRA CPU driver, an NRI policy or classes of goresctrl are active, unless
    O(allow_owners) contains them.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.owners
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - Whether the caches are divided. V(absent) removes the two groups, restores the root group, and unmounts resctrl
        if this module has mounted it and no other program uses it.
    type: str
    choices: [present, absent]
    default: present
  exclusive_share:
    description:
      - The share of each cache for the exclusive group, of the ways that the root group had; required for
        O(state=present).
      - A percentage such as V(60%), which is rounded to ways, a number of ways, or V(proportional), the ratio of the
        exclusive CPUs to all CPUs of the cache. V(0) and V(100%) are refused.
      - Different shares for each cache are a mapping of cache ids to these values, with C(all) for the other ids.
    type: raw
  shared_share:
    description:
      - The share for the group of all other containers, in the same form. By default, if this group exists, it shares
        the ways of the root group.
      - The reserved CPUs stay in the root group.
    type: raw
  shared_bandwidth:
    description:
      - The limit of the memory bandwidth of the group of all other containers, in percent, on AMD in eighths of GB/s,
        or in MiB/s if resctrl is mounted with mba_MBps. It is rounded up to the platform's step. By default there is no
        limit.
    type: int
  mode:
    description:
      - With V(exclusive), the kernel gives ways of the exclusive group to no other group from then on. It is refused if
        a group of a different program or devices have some of these ways, or if a second level of caches is divided.
    type: str
    choices: [shareable, exclusive]
    default: shareable
  mount:
    description:
      - Whether resctrl is mounted if it is not.
    type: bool
    default: false
seealso:
  - module: kubenode.cpu_manager.cache_info
  - module: kubenode.cpu_manager.reconcile_program
"""

EXAMPLES = r"""
- name: Set 60 % of each L3 cache apart for exclusive CPUs
  kubenode.cpu_manager.cache_partition:
    exclusive_share: 60%
    mount: true

- name: Give cache 0 more than the others, and let pods without exclusive CPUs use half of the bandwidth
  kubenode.cpu_manager.cache_partition:
    exclusive_share:
      "0": 8
      all: 40%
    shared_bandwidth: 50

- name: Restore everything
  kubenode.cpu_manager.cache_partition:
    state: absent
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
level:
  description: The cache that is divided, C(L3) or C(L2). Empty with O(state=absent).
  returned: success
  type: str
  sample: L3
groups:
  description:
    - What each group is to have, the root with an empty name. C(ways) are masks by the ids of the caches. C(cpus) is
      not there where it is not known, and C(bandwidth) is there with O(shared_bandwidth). Empty with O(state=absent).
  returned: success
  type: dict
  sample: {"": {"ways": {"0": "7f0"}}, "kubenode.exclusive": {"ways": {"0": "f"}, "cpus": "4-7", "mode": "shareable"}}
writes:
  description: What was written, or in check mode would be, in this order.
  returned: success
  type: list
  elements: dict
  contains:
    action:
      description: C(write), or C(make) or C(remove) for a group.
      type: str
      sample: write
    group:
      description: The group; empty for the root.
      type: str
      sample: kubenode.exclusive
    file:
      description: The file that was written.
      type: str
      sample: cpus_list
    text:
      description: What was written.
      type: str
      sample: 4-7
mounted:
  description: Whether resctrl was mounted, or in check mode would be.
  returned: success
  type: bool
  sample: false
unmounted:
  description: Whether it was unmounted.
  returned: success
  type: bool
  sample: false
notes:
  description: What is odd, such as devices or groups of others that fill the ways of the exclusive group.
  returned: success
  type: list
  elements: str
  sample: ["devices may fill ways of the exclusive group, too: those of L3 cache 0 (600); give it fewer ways"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: [cache-ways-of-devices]
"""

from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import RESCTRL, Tree
from ..module_utils._caches.cache_partition import absent, present, terms_of, wish_of
from ..module_utils._caches.resctrl import EXCLUSIVE, SHAREABLE
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.owners_found import refuse_beside
from ..module_utils._owners.owners import CACHE


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    if parameters["state"] == "absent":
        answer = absent(node, not check_mode)
    else:
        wish = wish_of(parameters)
        refuse_beside(node, CACHE, parameters["allow_owners"])
        answer = present(node, wish, terms_of(parameters), not check_mode)
    before, after = ("".join(line + "\n" for line in lines) for lines in (answer.before, answer.after))
    return Outcome(answer.to_dict(), answer.changed, [difference(tree.path(RESCTRL), before, after)])


def main() -> None:
    run(
        work,
        KUBELET,
        Arguments(
            {
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                # Else Ansible makes the text "6" of the number 6.
                "exclusive_share": {"type": "raw"},
                "shared_share": {"type": "raw"},
                "shared_bandwidth": {"type": "int"},
                "mode": {"type": "str", "choices": [SHAREABLE, EXCLUSIVE], "default": SHAREABLE},
                "mount": {"type": "bool", "default": False},
                "allow_owners": {"type": "list", "elements": "str", "default": []},
            },
            required_if=[("state", "present", ["exclusive_share"])],
        ),
    )


if __name__ == "__main__":
    main()

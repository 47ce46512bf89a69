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
  - Gives the exclusive CPUs of a node ways of the cache that no other CPU fills, by a group C(kubenode.exclusive) of
    resctrl. Its CPUs are those that the CPU manager's checkpoint has as exclusive. The root group keeps the rest, and
    with O(shared_share) or O(shared_bandwidth) a group C(kubenode.shared) has the CPUs of all other containers.
  - The L3 cache is divided, or the L2 cache where no L3 cache can be. The ways that devices fill stay with the root
    group as long as there are enough others.
  - The groups have CPUs and no processes, so they hold under every container runtime. A container that a runtime has
    put into a class of its own is not governed by them, see RV(ignore:containers) of
    M(kubenode.cpu_manager.cache_info).
  - Lines that are in a cache already stay there and stay usable, so an effect is not immediate.
  - Where bandwidth can be limited, whole cores are in one group, as both threads of a core may get the lower of their
    limits.
  - All is written under the lock that users of resctrl agree on. Groups of others are left alone, with their CPUs.
    What the root group had is saved in C(/var/lib/kubenode-cpu-manager/cache.json) before the first write, and
    O(state=absent) puts it back. A run that was killed is finished or taken back by the next.
  - resctrl begins anew at each boot. The program of the role P(kubenode.cpu_manager.reconcile#role) brings the groups
    back, and lets their CPUs follow the checkpoint.
  - A node where the DRA CPU driver, an NRI policy or classes of goresctrl are active is refused, unless
    O(allow_owners) has them.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.attributes
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - Whether the caches are divided. V(absent) removes our groups, gives the root group back what it had, and
        unmounts resctrl where this module has mounted it and nobody else has a group.
    type: str
    choices: [present, absent]
    default: present
  exclusive_share:
    description:
      - How much of each cache the exclusive group gets, of the ways that the root group had; required for
        O(state=present).
      - A part such as V(60%), which is rounded to ways, a number of ways, or V(proportional) for as large a part as the
        exclusive CPUs are of the CPUs of the cache. V(0) and V(100%) are refused.
      - For each cache apart, a mapping of ids to these, with C(all) for the ids that it does not name.
    type: raw
  shared_share:
    description:
      - How much the group of all other containers gets for itself, in the same form. By default it shares the ways of
        the root group, where there is such a group.
      - The reserved CPUs stay in the root group.
    type: raw
  shared_bandwidth:
    description:
      - The limit of the memory bandwidth of the group of all other containers, in percent, on AMD in eighths of GB/s,
        or in MiB/s where resctrl is mounted with mba_MBps. It is rounded up to the platform's step. By default there is
        none.
    type: int
  mode:
    description:
      - With V(exclusive), the kernel lets nobody else have ways of the exclusive group from then on. It is refused
        where a group of others or devices have some of them already, or another level of caches is divided, too.
    type: str
    choices: [shareable, exclusive]
    default: shareable
  mount:
    description:
      - Whether resctrl is mounted where it is not.
    type: bool
    default: false
  allow_owners:
    description:
      - Those who may manage CPUs on the node beside this module, by their ids, such as V(goresctrl), which
        R(One owner for every CPU, ansible_collections.kubenode.cpu_manager.docsite.owners) lists.
    type: list
    elements: str
    default: []
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

- name: Put everything back
  kubenode.cpu_manager.cache_partition:
    state: absent
"""

RETURN = r"""
node:
  description: The name of the node, from C(/etc/hostname).
  returned: always
  type: str
  sample: worker-3
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
  sample: []
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: []
"""

from typing import Any, Mapping

from ..module_utils.ansible_module import Arguments, Outcome, difference, run
from ..module_utils.cache.resctrl import EXCLUSIVE, MOUNT, SHAREABLE
from ..module_utils.host.owner.conflicts import refuse
from ..module_utils.host.owner.owners import CACHE
from ..module_utils.node.cache.journal import terms_of, wish_of
from ..module_utils.node.cache.partition import absent, present
from ..module_utils.node.owners import owners_of
from ..module_utils.node_arguments import KUBELET, node_of
from ..module_utils.tree import Tree


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    if parameters["state"] == "absent":
        answer = absent(node, not check_mode)
    else:
        wish = wish_of(parameters)
        refuse(owners_of(node), CACHE, parameters["allow_owners"])
        answer = present(node, wish, terms_of(parameters), not check_mode)
    before, after = ("".join(line + "\n" for line in lines) for lines in (answer.before, answer.after))
    return Outcome(answer.to_dict(), answer.changed, [difference(tree.path(MOUNT), before, after)])


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

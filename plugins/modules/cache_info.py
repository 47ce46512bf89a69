#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cache_info
short_description: Read how the caches and the memory bandwidth of a node are divided
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Exclusive CPUs share their last cache and their memory with all others. With resctrl, Linux divides both on CPUs
    that can do so. This module reads what the platform has, which groups there are and whose they are, which CPUs they
    have, and what was counted of them. It writes nothing.
  - Compares the groups of M(kubenode.cpu_manager.cache_partition) with its settings and with the CPU manager's
    checkpoint.
  - Containers that a container runtime has put into a group of its own are listed. The CPUs of our groups say nothing
    of them.
  - A node without resctrl, or on which it is not mounted, is an answer, not a failure. What cannot be read is a note
    with the check C(cache-unmeasured).
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.hide_names
  - kubenode.cpu_manager.attributes.info
options:
  seconds:
    description:
      - Over how long the bandwidth of each group is measured, up to 3600 seconds. With V(0) it is not.
      - On a saved node nothing is measured.
    type: int
    default: 0
seealso:
  - module: kubenode.cpu_manager.cache_partition
  - module: kubenode.cpu_manager.isolation_info
"""

EXAMPLES = r"""
- name: Read how the caches are divided
  kubenode.cpu_manager.cache_info:
  register: cache

- name: Stop where the exclusive CPUs have no ways of their own any more
  ansible.builtin.assert:
    that: cache.findings | length == 0
    fail_msg: "{{ cache.findings | map(attribute='found') | join('; ') }}"

- name: Measure the memory bandwidth of each group
  kubenode.cpu_manager.cache_info:
    seconds: 10
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
supported:
  description: Whether the kernel and the CPUs have resctrl.
  returned: success
  type: bool
  sample: true
mounted:
  description: Whether it is mounted. Without that, nothing more can be read of it.
  returned: success
  type: bool
  sample: true
mount:
  description: Where it is expected.
  returned: success
  type: str
  sample: /sys/fs/resctrl
options:
  description: The options of the mount.
  returned: success
  type: list
  elements: str
  sample: [rw, relatime]
closids:
  description: How many groups there can be, the root among them, and how many there are.
  returned: success
  type: dict
  sample: {"total": 8, "used": 2}
caches:
  description: The caches that can be divided. With CDP, code and data are two of them.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: C(L3), C(L2), or one of these with C(CODE) or C(DATA).
      type: str
      sample: L3
    closids:
      description: How many groups it can be divided into.
      type: int
      sample: 16
    ways:
      description: How many ways it has.
      type: int
      sample: 11
    mask:
      description: The mask of all of them, hexadecimal.
      type: str
      sample: 7ff
    least_ways:
      description: How many a group has at least.
      type: int
      sample: 1
    io_ways:
      description: Those that devices may fill, too.
      type: str
      sample: "600"
    sparse:
      description: Whether a mask may have gaps.
      type: bool
      sample: false
    cdp:
      description: Whether code and data are divided apart.
      type: bool
      sample: false
    ids:
      description:
        - The caches of this kind by their ids. Each has its C(cpus), and those of them that are C(exclusive) by the
          checkpoint. C(usage) has a letter for each way as the kernel gives it, the highest first.
      type: dict
      sample: {"0": {"cpus": "0-23", "exclusive": "4-7", "usage": "XXSSSSSEEEE"}}
bandwidths:
  description: The bandwidths of memory that can be limited.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: C(MB), or C(SMBA) for that of CXL.
      type: str
      sample: MB
    closids:
      description: How many groups can have limits.
      type: int
      sample: 8
    least:
      description: The smallest limit.
      type: int
      sample: 10
    step:
      description: The step between two limits.
      type: int
      sample: 10
    linear:
      description: Whether limits are linear. None where the kernel does not say.
      type: bool
      sample: true
    throttling:
      description:
        - C(max), where both threads of a core get the lower of their limits, C(per-thread), or empty where the kernel
          does not say.
      type: str
      sample: per-thread
    in_mib_per_second:
      description: Whether limits are MiB/s, by the mount option mba_MBps, and not percent, or on AMD eighths of GB/s.
      type: bool
      sample: false
monitoring:
  description: What can be counted. None where nothing can.
  returned: success
  type: dict
  contains:
    rmids:
      description: How many groups can be counted.
      type: int
      sample: 192
    features:
      description: What is counted.
      type: list
      elements: str
      sample: [llc_occupancy, mbm_total_bytes, mbm_local_bytes]
    numa_nodes_per_cache:
      description: How many NUMA nodes share an L3 cache (Sub-NUMA clustering). With n, a way is worth 1/n of its size.
      type: int
      sample: 1
groups:
  description: The groups.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name, C(/) for the root.
      type: str
      sample: kubenode.exclusive
    owner:
      description:
        - C(root), C(ours), C(goresctrl) for one of that library's, C(runtime) for one with the id of a container, or
          C(other).
      type: str
      sample: ours
    mode:
      description: C(shareable), C(exclusive), or a mode of pseudo-locking.
      type: str
      sample: shareable
    cpus:
      description: Its CPUs.
      type: str
      sample: 4-7
    schemata:
      description: Its masks of caches, hexadecimal, and its limits of bandwidths, by the ids of the caches.
      type: dict
      sample: {"L3": {"0": "f"}, "MB": {"0": "100"}}
    processes:
      description: How many processes were put into it. None are counted for the root.
      type: int
      sample: 0
    has_more_processes:
      description: Whether there are more.
      type: bool
      sample: false
    monitoring_groups:
      description: How many groups in it only count.
      type: int
      sample: 0
    counted:
      description:
        - What was counted at each L3 cache, by its id, in bytes. C(occupancy) is what its lines take there now,
          C(total) and C(local) are all traffic since the group was made. With O(seconds), C(total_per_second) and
          C(local_per_second) are that of this time. None for what is not counted.
      type: dict
      sample: {"0": {"occupancy": 8126464, "total": 91873280, "local": 91021312, "total_per_second": null,
        "local_per_second": null}}
containers:
  description: The containers with a process in a group, by the first 64 processes of each group.
  returned: success
  type: list
  elements: dict
  contains:
    group:
      description: The group.
      type: str
      sample: gold
    id:
      description: The id of the container.
      type: str
      sample: 4f0c9d1e2b3a5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd
    pod:
      description: The namespace and name of the pod, where they are known.
      type: str
      sample: shop/database-0
    container:
      description: The container; empty where its name is not known.
      type: str
      sample: server
exclusive:
  description: The exclusive CPUs, by the checkpoint of the program that gives them out. None where they are not
    known, or resctrl is not mounted.
  returned: success
  type: str
  sample: 4-7
seconds:
  description: Over how long bandwidth was measured. None where it was not.
  returned: success
  type: int
  sample: 10
partition:
  description: The settings of this node, as options of M(kubenode.cpu_manager.cache_partition). None without any.
  returned: success
  type: dict
  sample: {"exclusive_share": "60%", "mode": "shareable", "mount": false}
findings:
  description: The differences from these settings.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description:
        - C(cache-partition-lost) where the exclusive CPUs have no group any more, or C(cache-partition-differs) where
          masks, mode or CPUs are others than they are to be.
      type: str
      sample: cache-partition-lost
    subject:
      description: What it is about.
      type: str
      sample: kubenode.exclusive
    wanted:
      description: What should be.
      type: str
      sample: ways for the exclusive CPUs
    found:
      description: What is.
      type: str
      sample: there is no such group, as after a boot
    remedy:
      description: What to do about it.
      type: str
notes:
  description: What could not be read, and who else is in the ways of the exclusive CPUs.
  returned: success
  type: list
  elements: str
  sample: ["the bandwidth is not measured: nothing counts it here"]
note_checks:
  description: The id of the check to which each of RV(notes) belongs, in the same order.
  returned: success
  type: list
  elements: str
  sample: [cache-unmeasured]
"""

from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._caches.cache_info import cache_answer
from ..module_utils._node.hidden_names import HIDE_NAMES, shown_node_of
from ..module_utils._node.module import KUBELET


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    return Outcome(cache_answer(tree, lambda: shown_node_of(tree, parameters), parameters["seconds"]))


def main() -> None:
    run(work, KUBELET, HIDE_NAMES, Arguments({"seconds": {"type": "int", "default": 0}}))


if __name__ == "__main__":
    main()

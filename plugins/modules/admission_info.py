#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: admission_info
short_description: Read what of a node decides on its pods beside CPUs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads what decides whether a kubelet admits pods, beside its CPUs and its settings. These are its memory by NUMA
    node, devices of plugins, and some fields of its configuration. The playbook C(impact) needs it of each node.
  - With O(pods), it also reads the pods that run there, as far as the node itself shows them.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.devices
  - kubenode.cpu_manager.attributes.info
options:
  pods:
    description:
      - Whether to read the pods, without an API server. Their names are those of the log files or of the container
        runtime. What they ask for is what the kubelet and the runtime have made of it, in checkpoints and cgroups.
      - On a live node with cgroups v2, C(crictl) is called once for each container of which these do not tell.
    type: bool
    default: false
seealso:
  - module: kubenode.cpu_manager.allocation_plan
"""

EXAMPLES = r"""
- name: Read what decides beside CPUs
  kubenode.cpu_manager.admission_info:
    devices: [{resource: nvidia.com/gpu, pci_vendor: 10de, pci_class: "0302"}]
  register: beside
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
memory:
  description: Its memory in bytes; null where it is not known.
  returned: success
  type: int
  sample: 270367404032
huge_pages:
  description: How many bytes of it are set aside as huge pages.
  returned: success
  type: int
  sample: 0
numa_memory:
  description:
    - The memory and huge pages of each NUMA node in bytes, in the form of
      O(kubenode.cpu_manager.allocation_plan#module:numa_memory); null where it is not known.
  returned: success
  type: list
  elements: dict
  sample: [{"numa_node": 0, "amounts": {"memory": 270367404032, "hugepages-2Mi": 0}}]
numa_distances:
  description: As in RV(kubenode.cpu_manager.cpu_topology_info#module:topology).
  returned: success
  type: dict
  sample: {"0": {"0": 10}}
devices:
  description: The devices that are known, in the form of O(kubenode.cpu_manager.allocation_plan#module:devices).
  returned: success
  type: list
  elements: dict
  sample: [{"resource": "nvidia.com/gpu", "count": 2, "numa_nodes": [0]}]
configuration:
  description:
    - What the kubelet's configuration says in C(evictionHard), C(mergeDefaultEvictionSettings) and C(featureGates),
      as far as these are set.
  returned: success
  type: dict
  sample: {"evictionHard": {"memory.available": "500Mi"}}
pods:
  description:
    - The pods as manifests, with what their containers ask for and the QoS class, such as
      O(kubenode.cpu_manager.allocation_plan#module:pods) takes. An init container is known only if it had exclusive
      CPUs. A request that is not known is not there; a container that has CPUs of those of its pod asks for a byte of
      memory then.
  returned: with O(pods)
  type: list
  elements: dict
  sample: [{"metadata": {"namespace": "shop", "name": "db-0", "uid": "0f3f7f0a"}, "status": {"qosClass": "Guaranteed"}}]
left_out:
  description: The pods of which too little is known, each with its name as C(pod), and C(why).
  returned: with O(pods)
  type: list
  elements: dict
  sample: [{"pod": "shop/web-1", "why": "what its container app asks for is not known"}]
unknown:
  description:
    - What is not known of pods that are not left out. C(others), which pods share CPUs; C(requests), what Burstable
      pods ask for; C(memory), how much Guaranteed pods ask for; C(devices), how many.
  returned: with O(pods)
  type: list
  elements: str
  sample: [requests, memory]
"""

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import option
from ..module_utils._base.tree import Tree
from ..module_utils._node.beside_cpus import beside_cpus
from ..module_utils._node.module import DEVICES, KUBELET, node_of
from ..module_utils._node.pods_seen import pods_seen


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    seen = pods_seen(node) if parameters["pods"] else {}
    return Outcome({**beside_cpus(node, parameters["devices"], option("devices")), **seen})


def main() -> None:
    run(work, KUBELET, DEVICES, Arguments({"pods": {"type": "bool", "default": False}}))


if __name__ == "__main__":
    main()

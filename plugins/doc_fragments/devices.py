# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Which devices of plugins a node has."""

    DOCUMENTATION = r"""
options:
  devices:
    description:
      - The devices of plugins that the machine has, those in use among them, by which it is known which pods get them,
        and on which NUMA nodes. Of a resource that is named, these are all.
      - Without it, devices of a resource are known where containers have all of them, as the kubelet's checkpoint of
        devices says where these are.
    type: list
    elements: dict
    default: []
    suboptions:
      resource:
        description: The resource, such as V(nvidia.com/gpu).
        type: str
        required: true
      count:
        description: How many devices. Exactly one of this and O(devices[].pci_vendor) is required.
        type: int
      numa_nodes:
        description: The NUMA nodes that each of them is on. Empty where the plugin does not say any.
        type: list
        elements: int
        default: []
      pci_vendor:
        description:
          - Count the PCI devices of this vendor on the node, such as V(10de), with the NUMA nodes that the kernel gives
            them. The plugin has to hand out all of them, and to say the same NUMA nodes.
        type: str
      pci_class:
        description: Count only those of this class, such as V(0302), with or without subclass.
        type: str
"""

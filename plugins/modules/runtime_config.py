#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime_config
short_description: Turn NRI and CDI on in the container runtime's configuration
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - A DRA driver for CPUs marks the containers with a claim through CDI, and gives containers their CPUs through NRI.
    Both are on in containerd from 2.0 and in CRI-O from 1.30, unless the configuration turns them off.
  - If one of them is off, a small separate file turns it on, C(99-kubenode-cpu-manager), in C(/etc/crio/crio.conf.d) or
    in a directory that containerd's file imports. For k3s and RKE2 it is a template. If that would have no effect,
    because containerd 1.x replaces a table by that of an imported file, a marked block is written into the file that
    has the table. It is determined before anything is written whether this has the wanted effect. If it cannot, the
    module fails and returns the lines to add by hand.
  - Nothing is restarted.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.attributes.change
options:
  state:
    description:
      - V(present) turns on what is wanted.
      - V(absent) removes what this module has written, and restores each file byte for byte.
    type: str
    choices: [present, absent]
    default: present
  nri:
    description:
      - Whether NRI is wanted, also for plugins that connect from outside, as the driver does.
    type: bool
    default: true
  cdi:
    description:
      - Whether CDI is wanted.
    type: bool
    default: true
  runtime_version:
    description:
      - The version of the container runtime, such as V(1.7.22), by which it is judged what is on by default.
      - By default what its program says on a live node. Where it is not known, only what the configuration says counts.
    type: str
seealso:
  - module: kubenode.cpu_manager.dra_info
"""

EXAMPLES = r"""
- name: Turn on NRI and CDI
  kubenode.cpu_manager.runtime_config:
  register: runtime

- name: Restart the container runtime
  ansible.builtin.service:
    name: "{{ runtime.service }}"
    state: restarted
  when: runtime.restart and runtime.service != ''
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
kind:
  description: C(containerd) or C(CRI-O).
  returned: success
  type: str
  sample: containerd
version:
  description: Its version. Empty where it is not known.
  returned: success
  type: str
  sample: "1.7"
service:
  description: The service that runs it. Empty where that is the one that runs the kubelet.
  returned: success
  type: str
  sample: containerd
files:
  description: The files that were changed, made or removed, as paths on the node.
  returned: success
  type: list
  elements: str
  sample: [/etc/containerd/conf.d/99-kubenode-cpu-manager.toml]
restart:
  description: Whether the runtime has to be restarted for it.
  returned: success
  type: bool
  sample: true
found:
  description: The configuration before the change.
  returned: success
  type: dict
  contains:
    nri:
      description: Whether NRI is on.
      type: bool
      sample: false
    nri_source:
      description: The file that says so. Empty where it is the default.
      type: str
      sample: /etc/containerd/config.toml
    cdi:
      description: Whether CDI is on.
      type: bool
      sample: false
    cdi_source:
      description: The file that says so. Empty where it is the default.
      type: str
      sample: ""
    nri_socket:
      description: Where NRI plugins connect.
      type: str
      sample: /var/run/nri/nri.sock
    cdi_spec_dirs:
      description: Where CDI looks for files.
      type: list
      elements: str
      sample: [/etc/cdi, /var/run/cdi]
"""


from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.files import check_changes, make_changes
from ..module_utils._base.tree import Tree
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.runtime import ABSENT, PRESENT, WantedRuntime, plan_runtime
from ..module_utils._saved.files_of_kubelet import shown_difference


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    wanted = WantedRuntime(parameters["state"], parameters["nri"], parameters["cdi"], parameters["runtime_version"])
    node = node_of(tree, parameters)
    plan = plan_runtime(node, wanted)
    changes = plan.file_changes(tree)
    check_changes(changes, backup=False, keep=0)
    if not check_mode:
        make_changes(changes, backup=False, keep=0)
    diff = [
        difference(*shown_difference(node, path, change.before, change.after))
        for path, change in zip(plan.contents, changes)
    ]
    return Outcome({**plan.to_dict(), "restart": bool(changes)}, bool(changes), diff)


def main() -> None:
    run(
        work,
        KUBELET,
        Arguments(
            {
                "state": {"type": "str", "choices": [PRESENT, ABSENT], "default": PRESENT},
                "nri": {"type": "bool", "default": True},
                "cdi": {"type": "bool", "default": True},
                "runtime_version": {"type": "str"},
            }
        ),
    )


if __name__ == "__main__":
    main()

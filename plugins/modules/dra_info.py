#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dra_info
short_description: Compare a node with what the DRA CPU driver needs
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Reads whether a node has what the documentation of kubernetes-sigs/dra-driver-cpu 0.2.0 requires, and which values
    the driver's installation needs for this node. The cluster is not read.
  - If settings are given, the reservation and the feature gates are checked as they will be with these settings.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes.info
options:
  driver_reserved_cpus:
    description:
      - The driver's C(reservedCPUs), such as V(0-1). By default the kubelet's C(reservedSystemCPUs).
    type: str
  runtime_version:
    description:
      - The version of the container runtime, such as V(1.7.22). By default what its program says on a live node.
    type: str
  allow_owners:
    description:
      - Those who may manage CPUs on the node beside the driver, by their ids, which
        R(One owner for every CPU, ansible_collections.kubenode.cpu_manager.docsite.owners) lists.
    type: list
    elements: str
    default: []
seealso:
  - module: kubenode.cpu_manager.runtime_config
"""

EXAMPLES = r"""
- name: Compare the node with what the driver needs
  kubenode.cpu_manager.dra_info:
  register: dra

- name: Stop where the driver would not work
  ansible.builtin.assert:
    that: dra.ready
    fail_msg: "{{ dra.findings | map(attribute='text') | join('; ') }}"
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
ready:
  description: Whether the node has everything that the driver needs.
  returned: success
  type: bool
  sample: false
findings:
  description: What the node lacks.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description:
        - C(kubernetes-version), C(feature-gate), C(cpu-manager-policy), C(checkpoint), C(reserved-cpus), C(runtime),
          C(nri), C(cdi), C(nri-socket), C(cdi-directories) or C(other-owner).
      type: str
      sample: cpu-manager-policy
    where:
      description: The file or the setting that it is about.
      type: str
      sample: /var/lib/kubelet/config.yaml
    text:
      description: What is wrong.
      type: str
      sample: the kubelet's CPU manager has the policy static, and only one of both can give out CPUs
    remedy:
      description: What to do about it.
      type: str
      sample: set it to none
    changed_by_to_dra:
      description: Whether the playbook to_dra changes it.
      type: bool
      sample: true
reserved_cpus:
  description: The CPUs that the driver has to reserve on this node, as the kubelet does.
  returned: success
  type: str
  sample: 0-1
chart_values:
  description: What the values of the driver's chart need to have for this node.
  returned: success
  type: dict
  sample: {"driverConfig": {"reservedCPUs": "0-1"}}
runtime:
  description:
    - The container runtime, with C(kind), C(version) and RV(kubenode.cpu_manager.runtime_config#module:found). Empty
      where its configuration cannot be read.
  returned: success
  type: dict
  sample: {"kind": "containerd", "version": "2.0", "nri": true, "cdi": true}
driver:
  description: The driver, as far as it shows on the node.
  returned: success
  type: dict
  contains:
    found:
      description: Whether there is any sign of it.
      type: bool
      sample: false
    in_use:
      description: Whether it runs, or containers have CPUs of its claims.
      type: bool
      sample: false
    evidence:
      description: The signs.
      type: list
      elements: str
      sample: []
settings:
  description: The kubelet's settings as they are, without those that have no value. They are what leads back.
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "static", "cpu_manager_policy_options": {"full-pcpus-only": "true"}}
notes:
  description: What to take care of elsewhere, such as feature gates of the control plane.
  returned: success
  type: list
  elements: str
  sample:
    - the driver's default mode, grouped, needs the feature gate DRAConsumableCapacity in the API server, the scheduler
      and the kubelets of Kubernetes 1.35
"""

from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, option
from ..module_utils._base.tree import Tree
from ..module_utils._dra.dra_info import DriverWish, driver_report
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils.cpuset import CPUSet


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    wanted = wanted_settings(node, parameters, needs_kubelet=True)
    given = parameters["driver_reserved_cpus"]
    try:
        reserved = None if given is None else CPUSet.parse_plain(given)
    except InputError as error:
        raise error.within(option("driver_reserved_cpus")) from error
    wish = DriverWish(reserved, tuple(parameters["allow_owners"]), parameters["runtime_version"])
    return Outcome(driver_report(node, wanted, wish))


def main() -> None:
    run(
        work,
        KUBELET,
        SETTINGS_ARGUMENTS,
        Arguments(
            {
                "driver_reserved_cpus": {"type": "str"},
                "runtime_version": {"type": "str"},
                "allow_owners": {"type": "list", "elements": "str", "default": []},
            }
        ),
    )


if __name__ == "__main__":
    main()

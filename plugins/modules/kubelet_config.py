#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_config
short_description: Set a kubelet's CPU settings in the place from which it reads them
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Sets the kubelet's CPU settings in the place that the node's distribution uses, and leaves every other line
    unchanged. With kubeadm, kubespray and EKS that is the C(KubeletConfiguration) file, YAML or JSON. Where there is a
    directory of drop-in files, as with k3s and RKE2 from 1.32 on, it is the file C(50-kubenode-cpu-manager.conf) in it.
    With older k3s and RKE2 it is C(kubelet-arg) in C(config.yaml.d/90-kubenode-cpu-manager.yaml), and with MicroK8s
    C(args/kubelet).
  - Before anything is written, checks that the kubelet would start on this machine with the result, as
    M(kubenode.cpu_manager.start_check) predicts it, and that it would have the settings. Also checks that the files can
    be written. If the kubelet would refuse a setting, the module refuses it with the kubelet's message, under the name
    of the setting. Errors that exist without the change, too, do not prevent it, as long as it is certain with which
    settings the CPU manager would start.
  - It refuses if a flag or another drop-in file would override what it writes, and names it.
  - It refuses if the nodes are managed by other means, and names them, as with OpenShift, Talos, Bottlerocket, GKE, AKS
    and k0s.
  - If there are several files, either all are written or none. If one fails, those before it are restored.
  - Other fields that a setting needs are set, too. These are a feature gate that an option needs in this version, and
    an empty C(systemReservedCgroup) and C(kubeReservedCgroup) with O(reserved_system_cpus) if nothing is enforced
    through them, as on EKS.
  - A setting that is not given stays as it is. A value with the same meaning as the present one, such as C(10s) and
    C(10000ms), is no change.
  - The kubelet reads its settings only when it starts, so restart it after a change. With a change of policy, or of the
    reservation, remove the checkpoint first; the role P(kubenode.cpu_manager.kubelet#role) does all of this in order.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.backup
  - kubenode.cpu_manager.attributes.change
options:
  kubeadm_patches:
    description:
      - The directory of kubeadm's patches, C(/etc/kubernetes/patches) by default. Where it exists, the wanted settings
        are also written there, as C(kubeletconfiguration90-kubenode-cpu-manager+merge.yaml), so that
        C(kubeadm upgrade) keeps them if it is given the directory. An empty text writes none.
    type: str
  tried:
    description:
      - What M(kubenode.cpu_manager.rollout_info) has returned as RV(kubenode.cpu_manager.rollout_info#module:trial) of
        this node. What was predicted to be refused, and was not, is no reason to refuse the change.
    type: dict
seealso:
  - module: kubenode.cpu_manager.checkpoint
  - module: kubenode.cpu_manager.drift_info
  - module: kubenode.cpu_manager.start_check
"""

EXAMPLES = r"""
- name: Give Guaranteed pods whole cores, and reserve four CPUs on two NUMA nodes
  kubenode.cpu_manager.kubelet_config:
    cpu_manager_policy: static
    cpu_manager_policy_options:
      full-pcpus-only: "true"
    cpu_manager_reconcile_period: 5s
    reservation:
      count: 4
      strategy: spread
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
file:
  description: The file that contains the settings, or would contain them. None if no file of the node can.
  returned: success
  type: str
  sample: /var/lib/kubelet/config.yaml
files:
  description: All files that were written, or that a run would write.
  returned: success
  type: list
  elements: str
  sample: [/etc/kubernetes/patches/kubeletconfiguration90-kubenode-cpu-manager+merge.yaml, /var/lib/kubelet/config.yaml]
settings:
  description: All CPU settings after the change, in the form that this module takes.
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "static"}
drift:
  description: The differences.
  returned: success
  type: list
  elements: dict
  contains:
    subject:
      description: The setting, or a field of the configuration that it needs.
      type: str
      sample: cpu_manager_policy
    wanted:
      description: Its new value.
      type: raw
      sample: static
    found:
      description: Its old value, the kubelet's default where none was given.
      type: raw
      sample: none
    source:
      description: The file, or the flag and its file, that gave the old value. None for the kubelet's default.
      type: str
      sample: /var/lib/kubelet/config.yaml
checkpoint:
  description: Whether the kubelet would start with the checkpoint that is there and these settings; see
    M(kubenode.cpu_manager.checkpoint).
  returned: success
  type: dict
  sample: {"verdict": "accepted"}
memory_state:
  description: Whether the kubelet would start with the memory manager's state that is there and these settings, with
    C(verdict), C(reason) and C(lost). See M(kubenode.cpu_manager.checkpoint), which removes a refused one.
  returned: success
  type: dict
  sample: {"verdict": "accepted", "reason": "", "lost": []}
notes:
  description:
    - Other programs of this distribution that would undo the change; and whether the version, whose rules have to be
      applied, is uncertain.
  returned: success
  type: list
  elements: str
  sample: ["nodeadm writes the file anew at each boot: give the NodeConfig the same in spec.kubelet.config"]
backup_file:
  description: Where the old RV(file) was kept.
  returned: when it was there and was changed, and O(backup) is true
  type: str
  sample: /var/lib/kubelet/config.yaml.20261121T101500Z~
backup_files:
  description: Where the old files were kept, by their paths.
  returned: when something was changed
  type: dict
  sample: {"/var/lib/kubelet/config.yaml": "/var/lib/kubelet/config.yaml.20261121T101500Z~"}
"""

from typing import Any

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.files import check_changes, make_changes
from ..module_utils._base.tree import Tree
from ..module_utils._kubelet.placement import file_changes, main_file, plan_files
from ..module_utils._kubelet.settings import plan_settings
from ..module_utils._node.drift import describe_drift
from ..module_utils._node.module import KUBELET, TRIED, node_of
from ..module_utils._node.start_check import config_after, memory_plan, predicted_starts, read_sources
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils._saved.files_of_kubelet import shown_difference
from ..module_utils.state.acceptance import judge


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    configuration = node.needed_configuration()
    wanted = wanted_settings(node, parameters)
    plan = plan_settings(wanted, configuration, node.minor)
    starts = predicted_starts(node, wanted)
    config = config_after(starts)
    sources = read_sources(node, parameters["kubeadm_patches"])
    files = plan_files(sources, plan, wanted, node.minor)
    main = main_file(sources, node.minor)
    result: dict[str, Any] = {
        "file": main,
        "files": [file.path for file in files],
        "settings": plan.settings,
        "drift": describe_drift(plan, configuration),
        "checkpoint": judge(node.checkpoint(), config).to_dict(),
        "memory_state": memory_plan(node, starts.planned).to_dict(),
        "notes": [*filter(None, [sources.installation.distribution.pointer]), *node.version_notes()],
    }
    changes = file_changes(files)
    backup, keep = parameters["backup"], parameters["backup_keep"]
    check_changes(changes, backup, keep)
    if files and not check_mode:
        result["backup_files"] = make_changes(changes, backup, keep)
        if main in result["backup_files"]:
            result["backup_file"] = result["backup_files"][main]
    diff = [
        difference(*shown_difference(node, tree.node_path(change.path), change.before, change.after))
        for change in changes
    ]
    return Outcome(result, bool(files), diff)


OPTIONS: dict[str, dict[str, Any]] = {
    "backup": {"type": "bool", "default": True},
    "backup_keep": {"type": "int", "default": 3},
    "kubeadm_patches": {"type": "str"},
}


def main() -> None:
    run(work, KUBELET, TRIED, SETTINGS_ARGUMENTS, Arguments(OPTIONS))


if __name__ == "__main__":
    main()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What a change of a node is, and what it may do."""

    DOCUMENTATION = r"""
options:
  change:
    description:
      - V(rollout) changes the node to the wanted settings, and repairs what the kubelet would refuse.
      - V(rollback) restores the configuration from before the last change; the wanted settings are ignored.
    type: str
    choices: [rollout, rollback]
    default: rollout
  rollback_of:
    description:
      - With V(rollback) in O(change), the name of the rollout that is undone. A node whose last change was made by a
        different rollout stays unchanged. By default the last change is undone, whichever rollout made it.
    type: str
    default: ''
  drain:
    description:
      - Whether the node may be drained. If not, a change by which running containers would lose exclusive CPUs, or the
        kubelet would refuse pods that run, is refused.
    type: bool
    default: true
  discard_assignments:
    description:
      - Whether running containers may lose their exclusive CPUs, and pods that run be refused, without a drain.
    type: bool
    default: false
  manage_service:
    description:
      - Whether the kubelet is stopped before its files are changed. If not, a change of the checkpoint of a running
        kubelet is refused, because the kubelet would overwrite it.
    type: bool
    default: true
  check_services:
    description:
      - Whether the services that a change stops and starts are looked for, if O(manage_service) is true. One that
        systemd does not have on the node is a refusal. So is one that is not named, where O(root) is not V(/), as it
        would be a service of the machine that has the files.
    type: bool
    default: false
  check_writable:
    description:
      - Whether it is a refusal that the node would be changed and O(root) is an archive, which is read-only. In check
        mode it is none.
    type: bool
    default: false
  service:
    description:
      - The service that runs the kubelet. By default that of the node's distribution.
    type: str
  runtime_service:
    description:
      - The service that runs the container runtime, which is restarted if its configuration changes. By default that of
        the node's distribution.
    type: str
  allow_owners:
    description:
      - The programs that may manage CPUs on the node beside the kubelet's static policy, by their ids, such as
        V(nri-balloons). R(One owner for every CPU, ansible_collections.kubenode.cpu_manager.docsite.owners) lists them.
        If a program that also writes the cpusets of containers is found and is not in this list, a change to the static
        policy is refused.
    type: list
    elements: str
    default: []
  overwrite_edited:
    description:
      - What happens to a file that others have changed since the change that is taken back. In a configuration file of
        the kubelet, only what the change made of it is undone, and everything else is kept. Where that cannot be done,
        it is a refusal, and with V(true) the file is replaced as a whole. A backup stays in each case.
    type: bool
    default: false
  runtime_config:
    description:
      - The wanted configuration of the container runtime, with the values of the option
        O(kubenode.cpu_manager.runtime_config#module:state) of M(kubenode.cpu_manager.runtime_config). By default it is
        not read.
      - With V(rollout) in O(change).
    type: str
    choices: [present, absent]
  runtime_version:
    description:
      - As O(kubenode.cpu_manager.runtime_config#module:runtime_version).
    type: str
"""

#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_kubelet
short_description: Wait until a kubelet has started and stays up
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - A kubelet that does not agree with its checkpoint answers at first, and exits some seconds later. So this module
    waits until the kubelet has been healthy for O(seconds) without interruption. It fails, with the last messages of
    the kubelet, if the kubelet exits or does not become healthy.
  - A kubelet counts as healthy if its process stays the same, and if it answers at C(/healthz). Its checkpoint must
    also have the configured policy, and its containers the CPUs that the checkpoint gives them.
  - It only reads. In check mode it does not wait, and returns at once what it would wait for.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.attributes.info
options:
  seconds:
    description: For how many seconds without interruption the kubelet has to be healthy.
    type: float
    default: 20
  timeout:
    description: After how many seconds to stop waiting.
    type: float
    default: 180
  service:
    description: The systemd unit whose journal has what the kubelet logs.
    type: str
    default: kubelet
  log_file:
    description: The file to which the kubelet logs, if it does not log to the journal.
    type: path
seealso:
  - module: kubenode.cpu_manager.start_check
"""

EXAMPLES = r"""
- name: Wait for the kubelet
  kubenode.cpu_manager.wait_for_kubelet:

- name: Wait for the kubelet of RKE2
  kubenode.cpu_manager.wait_for_kubelet:
    timeout: 300
    log_file: /var/lib/rancher/rke2/agent/logs/kubelet.log
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
pid:
  description: The kubelet's process; none where none runs, in check mode.
  returned: success
  type: int
  sample: 712
seconds:
  description: For how many seconds it was healthy; 0 in check mode.
  returned: success
  type: float
  sample: 20.3
waits_for:
  description: What it waits for.
  returned: success
  type: dict
  contains:
    seconds:
      description: As O(seconds).
      type: float
      sample: 20
    timeout:
      description: As O(timeout).
      type: float
      sample: 180
    healthz:
      description: The addresses, at one of which the kubelet has to answer; empty if that is switched off.
      type: list
      elements: str
      sample: ["http://127.0.0.1:10248/healthz", "http://[::1]:10248/healthz"]
    checkpoint:
      description: The checkpoint that has to be there.
      type: str
      sample: /var/lib/kubelet/cpu_manager_state
    cpu_manager_policy:
      description: The policy that it has to have.
      type: str
      sample: static
"""


from ..module_utils._base.ansible_module import Outcome, Parameters, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, option
from ..module_utils._base.tree import Tree
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._rollout.health import Health, HealthWatch, find_life, watched


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    seconds, timeout = parameters["seconds"], parameters["timeout"]
    if not 0 <= seconds <= timeout:
        raise InputError("%g is not between 0 and the timeout, %g" % (seconds, timeout), where=option("seconds"))
    watch = HealthWatch(node_of(tree, parameters), seconds, timeout)
    conditions = watch.conditions()
    if check_mode:
        life = find_life(watch.node)
        return Outcome({**Health("", life, 0.0).to_dict(), "waits_for": conditions})
    log_file = parameters["log_file"]
    answer = watched(watch, parameters["service"], tree.path(log_file) if log_file else "")
    return Outcome({**answer.to_dict(), "waits_for": conditions})


def main() -> None:
    run(
        work,
        KUBELET,
        Arguments(
            {
                "seconds": {"type": "float", "default": 20},
                "timeout": {"type": "float", "default": 180},
                "service": {"type": "str", "default": "kubelet"},
                "log_file": {"type": "path"},
            },
        ),
    )


if __name__ == "__main__":
    main()

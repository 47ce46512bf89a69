#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubelet_trial
short_description: Let the node's own kubelet try a start, out of reach of everything
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Starts the kubelet that is installed on the node, unchanged or with the given settings, and answers whether it
    started, in the kubelet's own words. M(kubenode.cpu_manager.start_check) predicts the same by rules, which are known
    for some versions; this asks the kubelet itself, whatever its version or vendor.
  - The kubelet of the trial is a process of its own in namespaces of its own, beside a private instance of the node's
    container runtime. It reaches neither the running kubelet nor the node's container runtime, the API server, static
    pods and the network. All that is mounted is read-only there, values below C(/proc/sys) stay as they are, and its
    cgroups are below one of their own, C(kubenode-kubelet-trial), with limits of memory and processes.
  - In the kubelet's root directory, C(/run), C(/tmp) and C(/var/log), it finds only what a kubelet reads at its start.
    These are the configuration and its drop-in files, the states, the certificates of the kubelet's server, and other
    files that its flags and fields name to be read. Nothing else is opened, also no lock file. Where not all of these
    can be had, there is no answer, and RV(reason) names the file.
  - What is mounted on the node meanwhile does not come in. Mounts of pods, containers and disks are let go at its
    beginning, so a disk that is unmounted on the node is free at once.
  - It needs 256 MiB of memory beyond what the running kubelet keeps free by C(evictionHard), and gets at most 768 MiB.
    What it starts is among the first that the kernel ends if memory becomes short.
  - It has no network. If the kubelet ends because it does not reach somebody, such as the services of a built-in cloud
    provider, the module does not call that a refusal.
  - It runs on the reserved CPUs, or where none are reserved by their names on those that no container has for itself,
    with a low priority, and for a limited time. See O(timeout). Mostly it takes two to six seconds.
  - Nothing is left on the node, however the module ends. Only the empty cgroups of a module that was killed stay, and
    the next trial removes them.
  - This keeps apart what a kubelet does by mistake. It does not protect a node from a kubelet that is meant to break
    out, as a kubelet is root. Therefore only programs are started that nobody but root can write.
  - The module does not fail if the kubelet would not start, or if there can be no trial; see RV(starts). It fails if
    there is no kubelet.
  - Where the kubelet and the prediction differ, the kubelet is right.
options:
  program:
    description:
      - The path of another kubelet on the node, to try an upgrade or a way back.
      - By default the program of the running kubelet, or of the service C(kubelet).
    type: path
  files:
    description:
      - Files that are planned on the node, by path. The value is the whole content, or none for no such file.
      - The kubelet of the trial finds them at their places. On the node nothing is written.
      - With settings, the file that holds these is made from what is given here.
    type: dict
    default: {}
  timeout:
    description:
      - How many seconds the trial may take in all, from 5 to 600. What has not started then has no answer.
      - More than the default is of use on a machine that is very slow, such as an emulated one.
    type: int
    default: 45
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.attributes.info
seealso:
  - module: kubenode.cpu_manager.start_check
  - module: kubenode.cpu_manager.kubelet_config
  - module: kubenode.cpu_manager.rollout_info
"""

EXAMPLES = r"""
- name: Let the kubelet try the static policy
  kubenode.cpu_manager.kubelet_trial:
    cpu_manager_policy: static
    reserved_system_cpus: "0-1"
  register: trial

- name: Stop where it refuses
  ansible.builtin.assert:
    that: trial.starts is not false
    fail_msg: "{{ trial.message }}"

- name: Let the next kubelet try the node's configuration and states
  kubenode.cpu_manager.kubelet_trial:
    program: /usr/local/bin/kubelet-1.37

- name: Try a start without the checkpoint
  kubenode.cpu_manager.kubelet_trial:
    cpu_manager_policy: static
    reserved_system_cpus: "0-1"
    files:
      /var/lib/kubelet/cpu_manager_state:
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
starts:
  description:
    - Whether the kubelet started. None where the trial does not say; see RV(reason).
  returned: success
  type: bool
  sample: false
message:
  description: Why the kubelet ended, in its own words. Empty where it started, and where it said nothing.
  returned: success
  type: str
  sample: >-
    Failed to start ContainerManager start cpu manager error: could not restore state from checkpoint: configured policy
    "static" differs from state checkpoint policy "none", please drain this node and delete the CPU manager checkpoint
    file "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet
reason:
  description: Why the trial does not say whether the kubelet starts. Empty where it does.
  returned: success
  type: str
  sample: "cannot be tried: a saved node"
version:
  description: The version of the kubelet that was started, as its program says it. None where none was.
  returned: success
  type: str
  sample: 1.36.3
seconds:
  description: How long the trial took.
  returned: success
  type: float
  sample: 3.1
runtime:
  description: The program of the container runtime that was started for the trial. None where there was none.
  returned: success
  type: str
  sample: /usr/bin/containerd
not_tried:
  description: What of a real start the trial does not have. Empty where there was no trial.
  returned: success
  type: list
  elements: str
  sample: ["the API server: the kubelet was started without its kubeconfig"]
program:
  description: The other kubelet that was to be tried, as O(program). None for the node's own.
  returned: success
  type: str
  sample: /usr/local/bin/kubelet-1.37
prediction:
  description: What is predicted of the same start, by the rules of the version that was started.
  returned: success
  type: dict
  contains:
    starts:
      description: Whether the kubelet would start. None where that cannot be determined.
      type: bool
      sample: false
    findings:
      description: All errors that were found, as M(kubenode.cpu_manager.start_check) returns them.
      type: list
      elements: dict
      sample: []
    unknown:
      description: What the start also depends on, as M(kubenode.cpu_manager.start_check) returns it.
      type: list
      elements: dict
      sample: []
prediction_differs:
  description: Whether the kubelet started and a refusal was predicted, or the reverse.
  returned: success
  type: bool
  sample: false
checkpoint_format:
  description: The format of the CPU manager's checkpoint, as a kubelet of another version writes another one.
  returned: success
  type: dict
  contains:
    before:
      description: That of the checkpoint with which the kubelet was started. None for no checkpoint, and a damaged one.
      type: int
      sample: 2
    after:
      description: That of the checkpoint after the trial. None where there is none.
      type: int
      sample: 4
findings:
  description:
    - What a drift report has of it; see the role P(kubenode.cpu_manager.drift_report#role) with V(trial) in
      C(drift_report_look_at).
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: The id of the check.
      type: str
      sample: next-kubelet-refuses-start
    subject:
      description: The path of the program, or C(kubelet) for the node's own.
      type: str
      sample: /usr/local/bin/kubelet-1.37
    wanted:
      description: What was expected.
      type: str
      sample: starts
    found:
      description: What the kubelet did.
      type: str
      sample: "kubelet 1.37.0 does not start: unknown flag: --pod-infra-container-image"
    remedy:
      description: Empty; the check has it.
      type: str
      sample: ""
notes:
  description: Why there is no answer, where there is none.
  returned: success
  type: list
  elements: str
  sample: ["cannot be tried: a saved node"]
note_checks:
  description: For each of RV(notes) the id of the check that it belongs to.
  returned: success
  type: list
  elements: str
  sample: [trial-unmeasured]
"""

from typing import Any, Mapping

from ..module_utils._base.ansible_module import Outcome, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.tree import Tree
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils._trial.trial_report import trial_report

TRIAL = Arguments(
    {
        "program": {"type": "path"},
        "files": {"type": "dict", "default": {}},
        "timeout": {"type": "int", "default": 45},
    }
)


def work(tree: Tree, parameters: Mapping[str, Any], check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    wanted = wanted_settings(node, parameters)
    return Outcome(trial_report(node, wanted, parameters["files"], parameters["program"], parameters["timeout"]))


def main() -> None:
    run(work, KUBELET, SETTINGS_ARGUMENTS, TRIAL)


if __name__ == "__main__":
    main()

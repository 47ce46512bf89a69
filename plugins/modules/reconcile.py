#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reconcile
short_description: Restore the cpusets of running containers from the checkpoint
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Compares the CPUs that are effective for each running container with those that the CPU manager's checkpoint gives
    it, its exclusive CPUs or the shared pool. Writes what differs. One call is one pass.
  - The kubelet's own loop writes a cpuset only when the wanted one changes, and never reads it back. If another program
    changes it, the change stays until the kubelet restarts.
  - A cpuset is written through the container runtime if C(crictl) is installed, and to the cgroup otherwise. It is read
    again afterwards.
  - If the cgroup of a pod, of a QoS class or of all pods has fewer CPUs than a container should have, it is widened
    first. Cgroups above the kubelet's are never changed.
  - What the kernel would refuse is not tried, and in check mode not promised, such as CPUs that an exclusive cgroup of
    v1 or a partition of v2 has to itself. RV(containers) names the cgroup that has them.
  - If one container fails, the others are still written, and the module does not fail; see RV(counts). The next pass
    tries again.
  - It refuses a node on which another program writes the cpusets of containers, such as the DRA CPU driver or an NRI
    policy, unless O(allow_owners) names it.
  - With O(containers), the module is the CPU manager of a node that has no kubelet, and assigns the CPUs itself by the
    static policy. If there are not enough for all of them, it fails and writes nothing.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.owners
  - kubenode.cpu_manager.attributes.change
options:
  use_runtime:
    description:
      - Write through the container runtime, which then stores the value, if C(crictl) is installed.
      - A saved node has no runtime.
    type: bool
    default: true
  runtime_endpoint:
    description:
      - The runtime's socket, such as V(unix:///run/containerd/containerd.sock).
      - By default that of the kubelet, as its configuration or its distribution names it, else what C(crictl) is
        configured with.
    type: str
  containers:
    description:
      - All containers of a node without a kubelet. They keep the CPUs that the checkpoint gives them; other containers
        in the checkpoint lose theirs. The checkpoint is written first, and then the cpusets.
      - With an empty list, all exclusive CPUs return to the shared pool.
    type: list
    elements: dict
    suboptions:
      pod:
        description:
          - What identifies the pod, or another group of containers.
        type: str
        required: true
      name:
        description:
          - The container's name in its pod.
        type: str
        required: true
      cgroup:
        description:
          - The path of its cgroup in the hierarchy that has the cpuset controller, such as V(machine.slice/db.scope).
        type: str
        required: true
      cpus:
        description:
          - How many exclusive CPUs it should have. With V(0) it uses the shared pool.
        type: int
        default: 0
  reserved_system_cpus:
    description:
      - With O(containers), the CPUs that never become exclusive, such as V(0-1).
    type: str
    default: ""
  cpu_manager_policy_options:
    description:
      - With O(containers), the options of the static policy, such as C(full-pcpus-only), as the kubelet names them.
    type: dict
    default: {}
seealso:
  - module: kubenode.cpu_manager.checkpoint
  - module: kubenode.cpu_manager.cpuset
"""

EXAMPLES = r"""
- name: Undo what others did to the cpusets of containers
  kubenode.cpu_manager.reconcile:
  register: pass
  failed_when: pass is failed or pass.counts.failed > 0

- name: Give out the CPUs of a node without a kubelet
  kubenode.cpu_manager.reconcile:
    reserved_system_cpus: 0-1
    cpu_manager_policy_options:
      full-pcpus-only: true
    containers:
      - pod: database
        name: server
        cgroup: machine.slice/database.scope
        cpus: 4
      - pod: backup
        name: job
        cgroup: machine.slice/backup.scope
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
containers:
  description: The result for each container; in check mode, the planned one.
  returned: success
  type: list
  elements: dict
  contains:
    pod_uid:
      description: The UID of the pod.
      type: str
      sample: 8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a
    pod:
      description: The namespace and name of the pod, where they are known.
      type: str
      sample: shop/database-0
    container:
      description: The container; empty where its name is not known.
      type: str
      sample: server
    id:
      description: Its id; empty with O(containers).
      type: str
      sample: 4f0c9d1e2b3a5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd
    cgroup:
      description: Its cgroup in the hierarchy that has the cpuset controller.
      type: str
      sample: kubepods.slice/kubepods-pod1.slice/cri-containerd-4f0c.scope
    wanted:
      description: The CPUs that it is to have, as far as they are online; empty where that cannot be determined.
      type: str
      sample: 4-7
    effective:
      description: The CPUs that it had before.
      type: str
      sample: 0-47
    result:
      description: C(kept), C(written), C(failed) or C(skipped).
      type: str
      sample: written
    why:
      description: Why it failed or was skipped.
      type: str
      sample: ""
counts:
  description: How many containers had each result.
  returned: success
  type: dict
  sample: {"kept": 40, "written": 1, "failed": 0, "skipped": 12}
widened:
  description: The writes to cgroups above the containers, with C(path), C(file), C(old), C(new).
  returned: success
  type: list
  elements: dict
  sample: []
shared_pool:
  description: The CPUs of all containers without exclusive ones, as the checkpoint has them.
  returned: success
  type: str
  sample: 0-3,8-47
notes:
  description: Other information, such as that there is no checkpoint.
  returned: success
  type: list
  elements: str
  sample: ["/var/lib/kubelet/cpu_manager_state: no checkpoint there, so it is not known which CPUs are whose"]
"""

from typing import Mapping

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import InputError, option
from ..module_utils._base.tree import Tree
from ..module_utils._containers.crictl import find_crictl
from ..module_utils._node.container_writes import Listed
from ..module_utils._node.module import KUBELET, node_of
from ..module_utils._node.node import Node
from ..module_utils._reconcile.reconcile import ReconcileResult, reconcile_listed, reconcile_pods
from ..module_utils.cpuset import CPUSet
from ..module_utils.policy.options import StaticOptions, check_machine, parse_static_options, texts_of_options


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    node = node_of(tree, parameters)
    if parameters["containers"] is None:
        node.check_seen()
        endpoint = parameters["runtime_endpoint"] or node.runtime_endpoint(node.configuration())
        runtime = find_crictl(tree, endpoint) if parameters["use_runtime"] else None
        answer = reconcile_pods(node, runtime, not check_mode, parameters["allow_owners"])
    else:
        answer = reconcile_given(node, parameters, not check_mode)
    # A kubelet's own checkpoint stays as it is.
    place = "cpusets of containers" if parameters["containers"] is None else tree.path(node.checkpoint_path)
    return Outcome(answer.to_dict(), answer.changed, [difference(place, answer.before(), answer.after())])


def reconcile_given(node: Node, parameters: Parameters, act: bool) -> ReconcileResult:
    """Return a pass over the containers that the option lists. Raises InputError."""
    listed = [
        Listed(container["pod"], container["name"], container["cgroup"], container["cpus"])
        for container in parameters["containers"]
    ]
    try:
        reserved = CPUSet.parse(parameters["reserved_system_cpus"])
    except InputError as error:
        raise error.within(option("reserved_system_cpus")) from error
    options = options_of(node, parameters["cpu_manager_policy_options"])
    return reconcile_listed(node, listed, options, reserved, act, parameters["allow_owners"])


def options_of(node: Node, given: Mapping[str, object]) -> StaticOptions:
    """Return the policy's options; there is no kubelet whose feature gates would count. Raises InputError."""
    try:
        options = parse_static_options(texts_of_options(given), node.minor, alpha_enabled=True)
        check_machine(options, node.machine().topology, "none")
    except InputError as error:
        raise error.within(option("cpu_manager_policy_options")) from error
    return options


def main() -> None:
    listed = {
        "pod": {"type": "str", "required": True},
        "name": {"type": "str", "required": True},
        "cgroup": {"type": "str", "required": True},
        "cpus": {"type": "int", "default": 0},
    }
    run(
        work,
        KUBELET,
        Arguments(
            {
                "use_runtime": {"type": "bool", "default": True},
                "runtime_endpoint": {"type": "str"},
                "containers": {"type": "list", "elements": "dict", "options": listed},
                "reserved_system_cpus": {"type": "str", "default": ""},
                "cpu_manager_policy_options": {"type": "dict", "default": {}},
                "allow_owners": {"type": "list", "elements": "str", "default": []},
            },
        ),
    )


if __name__ == "__main__":
    main()

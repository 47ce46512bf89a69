#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: allocation_plan
short_description: Predict which CPUs the kubelet gives to pods, and which pods it refuses
version_added: 0.1.0
author:
  - the kubenode.cpu_manager developers (@kubenode)
description:
  - Predicts on which CPUs the kubelet of a node would put pods, one after the other, and which pods it would refuse,
    with the kubelet's message. For Kubernetes 1.33 to 1.36, what comes of CPUs and memory is exact, harmful decisions
    included, for which there is a note.
  - Other managers of the kubelet have a say, too. The memory manager's policy Static is followed where the memory of
    each NUMA node is known, from the node or O(numa_memory). Devices are followed where O(devices) or the kubelet's
    checkpoint of devices says where they all are. The topology manager aligns CPUs, memory and devices with each other.
  - What is not known of them, what DRA drivers give to C(resourceClaims), and local storage are not looked at. From the
    first pod on that asks for such things the plan is not exact, and a note says so; see RV(exact). How many pods a
    node takes, their ports, and what selects or keeps off nodes do not count.
  - What pods ask for is summed up as the kubelet does it, against what it leaves to pods, with the policies none and
    static alike. Memory counts where that of the machine is known, which is not so of a description.
  - Predicts for the node, a saved node, or a machine that exists only as a description. Changes nothing. A node without
    a kubelet is refused.
extends_documentation_fragment:
  - kubenode.cpu_manager.node
  - kubenode.cpu_manager.kubelet
  - kubenode.cpu_manager.settings
  - kubenode.cpu_manager.devices
  - kubenode.cpu_manager.attributes.info
attributes:
  diff_mode:
    support: full
    details:
      - Shows who has which CPUs before and after.
options:
  pods:
    description:
      - Kubernetes manifests in the order in which they arrive, C(Pod), C(List), or a workload with a template, such as
        a C(Deployment), of which each replica is a pod.
      - A pod that runs on the node, by the UIDs in the kubelet's checkpoints and in the cgroups, keeps its CPUs, memory
        and devices, wherever it is in the list. The others come after it. A pod that has ended is left out. So the list
        may be that of C(kubectl get pods -o yaml) for the node, with new manifests before or after it.
    type: list
    elements: dict
    required: true
  policy:
    description:
      - Whose policy gives out the CPUs. V(kubelet) is what the settings say.
      - V(dynamic) and V(isolated) are those of the role P(kubenode.cpu_manager.reconcile#role), for a node whose
        kubelet has the policy none, and begin with an empty node. V(isolated) gives out the CPUs that the machine
        isolates. The plan has the first sets, and no growth, which M(kubenode.cpu_manager.policy_simulation) shows.
    type: str
    choices: [kubelet, dynamic, isolated]
    default: kubelet
  shared_minimum:
    description:
      - How many CPUs the shared pool keeps beside the reserved ones, with O(policy=dynamic). At least 1 if no CPU is
        reserved. A pod whose first set the shared pool cannot spare is in RV(refused); on a node, it would run in the
        shared pool until it can.
    type: int
    default: 0
  machine:
    description:
      - Predict for this machine instead of the node, such as V(2 sockets x 12 cores x 2 threads), the largest parts
        first. C(NUMA nodes) and C(L3 caches) can be given between sockets and cores.
    type: str
  topology:
    description:
      - Predict for this machine instead of the node, the RV(kubenode.cpu_manager.cpu_topology_info#module:topology) of
        another.
    type: dict
  numa_memory:
    description:
      - The memory and huge pages of each NUMA node, for a machine that is only described. By default those of the node.
    type: list
    elements: dict
    suboptions:
      numa_node:
        description: The NUMA node.
        type: int
        required: true
      amounts:
        description: How much it has in all, such as V({"memory":"64Gi","hugepages-1Gi":"8Gi"}). Huge pages are part of
          the memory.
        type: dict
        required: true
  from_checkpoint:
    description:
      - Begin with what the node's checkpoints give to pods that are running, those of memory and devices among them.
        Otherwise begin with an empty node.
      - By default when the prediction is for the node.
    type: bool
  feature_gates:
    description:
      - Feature gates beside those in the kubelet's configuration, such as C(CPUManagerPolicyAlphaOptions).
    type: dict
    default: {}
  bursts:
    description:
      - What containers run, to predict in RV(throttling) the effect of their CPU limits. The first entry that matches a
        container counts.
      - A manifest does not contain this. Without it, a container is assumed to be busy all the time, with a thread for
        each CPU that it may use.
    type: list
    elements: dict
    default: []
    suboptions:
      pod:
        description: Namespace and name of the pod as in RV(containers), or a shell pattern such as V(shop/db-*).
        type: str
        default: "*"
      container:
        description: The container, or a shell pattern.
        type: str
        default: "*"
      threads:
        description:
          - How many threads share a burst.
          - By default as many as there are CPUs that the container may use.
        type: int
      work:
        description:
          - The CPU time of one burst, such as one request, of all threads together, such as V(70ms).
          - Without it, the threads are busy all the time.
        type: str
  compare_with:
    description:
      - Settings of this module for a second prediction, to see the effect of a change of the configuration.
    type: dict
"""

EXAMPLES = r"""
- name: Predict what the policy isolated would give, and what the static policy makes of isolated CPUs
  kubenode.cpu_manager.allocation_plan:
    pods: "{{ lookup('ansible.builtin.file', 'deployment.yml') | kubenode.cpu_manager.manifests }}"
    policy: isolated
    reserved_system_cpus: "0-3"

- name: Predict where three replicas would go on this node
  kubenode.cpu_manager.allocation_plan:
    pods: "{{ lookup('ansible.builtin.file', 'deployment.yml') | kubenode.cpu_manager.manifests }}"
  register: plan

- name: Predict the same for a machine that is still to be bought, with whole cores only
  kubenode.cpu_manager.allocation_plan:
    machine: 2 sockets x 4 NUMA nodes x 16 cores x 2 threads
    pods: "{{ lookup('ansible.builtin.file', 'deployment.yml') | kubenode.cpu_manager.manifests }}"
    cpu_manager_policy: static
    cpu_manager_policy_options:
      full-pcpus-only: "true"
    topology_manager_policy: single-numa-node
    reservation:
      count: 8
      strategy: spread
    compare_with:
      topology_manager_policy: best-effort

- name: Predict which pods a machine with four GPUs would refuse if CPUs, memory and GPUs are to be of one NUMA node
  kubenode.cpu_manager.allocation_plan:
    machine: 2 sockets x 16 cores x 2 threads
    pods: "{{ lookup('ansible.builtin.file', 'deployment.yml') | kubenode.cpu_manager.manifests }}"
    cpu_manager_policy: static
    reserved_system_cpus: 0,32
    topology_manager_policy: single-numa-node
    memory_manager_policy: Static
    system_reserved_memory: 1Gi
    reserved_memory: [{numaNode: 0, limits: {memory: 1124Mi}}]
    numa_memory:
      - {numa_node: 0, amounts: {memory: 128Gi, hugepages-1Gi: 16Gi}}
      - {numa_node: 1, amounts: {memory: 128Gi, hugepages-1Gi: 16Gi}}
    devices:
      - {resource: nvidia.com/gpu, count: 2, numa_nodes: [0]}
      - {resource: nvidia.com/gpu, count: 2, numa_nodes: [1]}

- name: Predict how long a request of 70 ms takes with the limit of its container
  kubenode.cpu_manager.allocation_plan:
    pods: "{{ lookup('ansible.builtin.file', 'deployment.yml') | kubenode.cpu_manager.manifests }}"
    bursts:
      - pod: shop/web-*
        container: nginx
        threads: 1
        work: 70ms
"""

RETURN = r"""
node: {description: "The name of the node, from C(/etc/hostname).", returned: always, type: str, sample: worker-3}
settings:
  description: All CPU settings for which the prediction is made.
  returned: success
  type: dict
  sample: {"cpu_manager_policy": "static"}
containers:
  description: The containers of all pods that are admitted.
  returned: success
  type: list
  elements: dict
  contains:
    pod:
      description: Namespace and name of the pod.
      type: str
      sample: shop/db-0
    uid:
      description: Its UID, or its name where the manifest has none.
      type: str
      sample: shop/db-0
    container:
      description: The container.
      type: str
      sample: postgres
    exclusive:
      description: Whether it has CPUs that are not in the node's shared pool, for itself or with others of its pod.
      type: bool
      sample: true
    isolation:
      description:
        - Whose CPUs it runs on, in the kubelet's words. V(container) is its own; V(pod) is what the containers of its
          pod share that have none of their own (feature gate C(PodLevelResourceManagers)); V(host) is the node's shared
          pool.
      type: str
      sample: container
    cpus:
      description: The CPUs that it runs on.
      type: str
      sample: 4-7,28-31
    numa_nodes:
      description: The NUMA nodes of the CPUs that it has for itself.
      type: list
      elements: int
      sample: [0]
pods:
  description: The admitted pods that have CPUs as a whole, of which their containers have parts.
  returned: success
  type: list
  elements: dict
  contains:
    pod:
      description: As RV(containers[].pod).
      type: str
      sample: shop/trading
    uid:
      description: As RV(containers[].uid).
      type: str
      sample: uid-trading
    cpus:
      description: All CPUs of the pod.
      type: str
      sample: 1-3,9-11
    shared:
      description: Those that containers share which have none of their own.
      type: str
      sample: 2,10
    unused:
      description:
        - Those that no container uses once the init containers have ended. The pod would do with fewer; and where a
          kubelet 1.37 wrote them, older ones refuse its checkpoint.
      type: str
      sample: 3,11
refused:
  description: The pods that the kubelet refuses.
  returned: success
  type: list
  elements: dict
  contains:
    pod:
      description: Namespace and name of the refused pod.
      type: str
      sample: shop/db-1
    reason:
      description:
        - The kubelet's reason, such as C(TopologyAffinityError), C(SMTAlignmentError), C(UnexpectedAdmissionError),
          C(EmptyPodSharedPoolError), C(OutOfcpu), C(OutOfmemory), or C(EndlessDistribution) if it would calculate
          without end.
      type: str
      sample: TopologyAffinityError
    message:
      description: The kubelet's message.
      type: str
      sample: Resources cannot be allocated with Topology locality
    why:
      description:
        - What did not fit, of a C(TopologyAffinityError), whose message does not say it.
        - Where it is more than CPUs, it begins with the resources that cannot be aligned, or not with each other.
      type: str
      sample: container postgres wants 12 CPUs of 1 NUMA node, and free are 10 of node 0, 10 of node 1
reserved:
  description: The reserved CPUs.
  returned: success
  type: str
  sample: 0,24
exclusive:
  description: The exclusive CPUs of all containers.
  returned: success
  type: str
  sample: 4-7,28-31
shared_pool:
  description: The CPUs of all other containers. With the policy none, all.
  returned: success
  type: str
  sample: 0-3,8-27,32-47
allocatable:
  description: How many CPUs can still become exclusive. Empty without the static policy.
  returned: success
  type: dict
  contains:
    cpus:
      description: In all; with C(full-pcpus-only), in whole cores.
      type: int
      sample: 38
    whole_cores:
      description: In cores that are free as a whole.
      type: int
      sample: 38
    one_socket:
      description: In the socket that has most of them.
      type: int
      sample: 24
    one_numa_node:
      description: In the NUMA node that has most of them.
      type: int
      sample: 24
    one_l3_cache:
      description: In the L3 cache that has most of them.
      type: int
      sample: 24
isolated:
  description:
    - What the kubelet's static policy makes of the CPUs that the machine was booted to isolate, whichever O(policy)
      gives out CPUs. Empty where it isolates none.
    - C(shared) are isolated CPUs that containers share until one has them to itself, C(reserved) those that none ever
      has, C(not_isolated) CPUs that a container may get though they are not isolated. C(reserve) is the reservation
      with which the last two are empty. C(strict) is whether strict-cpu-reservation leaves isolated CPUs alone to be
      shared. C(harmless) is whether the last two are empty and it does not.
  returned: success
  type: dict
  sample: {"shared": "4-15", "reserved": "", "not_isolated": "", "reserve": "0-3", "strict": false, "harmless": true}
stranded:
  description:
    - The free CPUs that no container can get for itself, though the scheduler counts them. With C(full-pcpus-only)
      these are the other threads of reserved CPUs, and single threads that are fewer than those of a core. Otherwise
      there are none.
  returned: success
  type: str
  sample: ""
memory:
  description:
    - What the memory manager gives, where its policy is Static and the memory of the NUMA nodes is known. Otherwise
      empty.
  returned: success
  type: dict
  contains:
    numa_nodes:
      description:
        - What each NUMA node has for pods in all, C(allocatable), and still has, C(free), in bytes by kind of memory;
          and with which nodes it serves containers together, C(group).
      type: list
      elements: dict
      sample: [{"node": 0, "group": [0], "allocatable": {"memory": 67645734912}, "free": {"memory": 66571993088}}]
    containers:
      description:
        - The blocks of memory of all containers that have some, in bytes. What an init container had and another one
          has taken over is in the block of that.
      type: list
      elements: dict
      sample:
        - {"pod": "shop/db-0", "uid": "shop/db-0", "container": "postgres", "type": "memory", "size": 1073741824,
           "numa_nodes": [0]}
devices:
  description: The devices of the resources of which all are known. Empty where there is none such.
  returned: success
  type: dict
  contains:
    free:
      description: Those that no container has, in the form of O(devices).
      type: list
      elements: dict
      sample: [{"resource": "nvidia.com/gpu", "count": 3, "numa_nodes": [1]}]
    containers:
      description: How many each container has of which NUMA nodes.
      type: list
      elements: dict
      sample:
        - {"pod": "shop/ai-0", "uid": "shop/ai-0", "container": "train", "resource": "nvidia.com/gpu", "count": 1,
           "numa_nodes": [1]}
restart:
  description:
    - What a start of the kubelet with these settings does to each pod that runs, which it admits again. Pods that are
      not in O(pods) are read from the kubelet's checkpoints, which do not say in which order they came. Empty without
      O(from_checkpoint).
  returned: success
  type: list
  elements: dict
  contains:
    uid:
      description: The UID of the pod.
      type: str
      sample: 0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4
    pod:
      description: Its namespace and name, or its UID where these are not known.
      type: str
      sample: shop/db-0
    fate:
      description: Whether it V(keeps) what it has, V(moves) to other CPUs, or is V(refused), and so ended.
      type: str
      sample: refused
    reason:
      description: The kubelet's reason, as RV(refused[].reason).
      type: str
      sample: SMTAlignmentError
    message:
      description: The kubelet's message.
      type: str
      sample: "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4,
        CPUs per core = 2"
    why:
      description: What did not fit, and why a pod that was admitted once is not admitted again; or what is moved.
      type: str
      sample: free cores are counted before it is seen that container server has its CPUs
    assumed:
      description: What is not known of the pod, and what it was taken for.
      type: str
      sample: ""
throttling:
  description:
    - What the CPU limits of containers do to them on this machine, one row for each container with a quota.
    - A container has none with O(cpu_cfs_quota=false), and with exclusive CPUs where the gate
      C(DisableCPUQuotaWithExclusiveCPUs) is on, as it is from Kubernetes 1.33. The quota of a pod as a whole is not
      considered.
  returned: success
  type: list
  elements: dict
  contains:
    pod:
      description: As RV(containers[].pod).
      type: str
      sample: shop/web-0
    uid:
      description: As RV(containers[].uid).
      type: str
      sample: shop/web-0
    container:
      description: As RV(containers[].container).
      type: str
      sample: nginx
    limit:
      description: Its limit.
      type: str
      sample: 200m
    is_assumed:
      description: Whether O(bursts) has no entry for it, so that it is assumed to be busy all the time.
      type: bool
      sample: false
    quota_us:
      description: The quota that the kubelet sets, in microseconds.
      type: int
      sample: 20000
    period_us:
      description: The period, in microseconds.
      type: int
      sample: 100000
    usable_cpus:
      description: How many CPUs it may use.
      type: int
      sample: 40
    threads:
      description: How many threads it runs.
      type: int
      sample: 1
    work_ms:
      description: The CPU time of a burst in milliseconds; null for a container that is always busy.
      type: float
      sample: 70.0
    throttled_share:
      description:
        - The part of the periods in which the kernel counts the container as throttled, C(nr_throttled) by
          C(nr_periods).
        - With bursts, each comes after two idle periods or more.
      type: float
      sample: 0.563
    lost_share:
      description: The part of the time in which its threads are stopped. Only for a container that is always busy.
      type: float
      sample: 0.8
    longest_wait_ms:
      description: How long one of them waits at most. Only for a container that is always busy.
      type: float
      sample: 80.0
    lost_periods:
      description: The mean number of periods in which a burst is stopped. Only with bursts.
      type: float
      sample: 2.8
    latency_ms:
      description:
        - How long a burst takes in milliseconds, without the limit (C(unthrottled)) and with it (C(minimum), C(median),
          C(maximum)). It depends on where in a period it begins. Only with bursts.
      type: dict
      sample: {"unthrottled": 70.0, "minimum": 223.2, "median": 261.8, "maximum": 309.0}
    remedies:
      description:
        - Changes that would reduce throttling, each with the same figures as the row. None of them makes a figure
          worse.
        - A container that is not throttled needs none.
      type: list
      elements: dict
      contains:
        remedy:
          description: One of V(whole-cpus), V(limit), V(burst), V(period), V(threads).
          type: str
          sample: limit
        change:
          description: What to set.
          type: str
          sample: a limit of 700m CPU
        throttled_share:
          description: The same as that of the row, with the remedy. So are all other figures.
          type: float
          sample: 0.0
exact:
  description:
    - Whether all is known that decides on the pods. Otherwise a note says from which pod on the plan is not exact, and
      why.
    - Devices of different NUMA nodes between which a plugin can choose are not known.
    - The kubelet's gates C(PodLevelResources) and C(PodLevelResourceManagers) decide about pods with C(spec.resources).
      What managers give to such a pod as a whole is not known.
    - The rules are tested against kubelets of 1.33 to 1.36. The plan of another version is not exact, and a note says
      what is known of it. If the version is not known, 1.36 is assumed, and a note says so.
  returned: success
  type: bool
  sample: true
notes:
  description:
    - Decisions of the kubelet that do harm, such as a CPU that is assigned twice.
    - Options of the kubelet that do not do what they are for, and containers with CPUs of more sockets or L3 caches
      than such an option is to give them.
    - Containers with memory or devices of other NUMA nodes than their CPUs.
    - From which pod on the plan is not exact.
    - Whether the version of the kubelet is unknown, or the rules are not tested against it.
  returned: success
  type: list
  elements: str
  sample: []
differences:
  description: The differences with O(compare_with), container by container; an empty container stands for the pod.
  returned: when O(compare_with) is given
  type: list
  elements: dict
  contains:
    pod:
      description: Namespace and name of the pod, as in RV(containers).
      type: str
      sample: shop/db-1
    container:
      description: The container.
      type: str
      sample: postgres
    this:
      description: Its CPUs by the settings of this task, C(shared), or the refusal.
      type: str
      sample: 4-7,28-31
    other:
      description: The same with O(compare_with).
      type: str
      sample: 4-11
"""

from typing import Any, Collection, Mapping, Sequence

from ..module_utils._base.ansible_module import Outcome, Parameters, difference, run
from ..module_utils._base.arguments import Arguments
from ..module_utils._base.errors import MALFORMED, InputError, option
from ..module_utils._base.tree import Tree
from ..module_utils._containers.pods import Pod, pods_from_manifests
from ..module_utils._kubelet.configuration import Configuration
from ..module_utils._node.allocation import (
    Question,
    compare_plans,
    default_configuration,
    plan_allocations,
)
from ..module_utils._node.module import DEVICES, KUBELET, node_of
from ..module_utils._node.node import Node
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS, wanted_settings
from ..module_utils.policy.hints import OtherManagers
from ..module_utils.topology.description import describe_machine
from ..module_utils.topology.model import Topology


def asked_node(tree: Tree, parameters: Parameters) -> Node:
    """Return the node, with the machine that is asked about in its place."""
    node = node_of(tree, parameters)
    if parameters["machine"] is None and parameters["topology"] is None and node.installation is None:
        raise node.missing()
    if parameters["machine"] is not None:
        node.topology = describe_machine(parameters["machine"])
    elif parameters["topology"] is not None:
        try:
            node.topology = Topology.from_dict(parameters["topology"])
        except MALFORMED as error:
            raise InputError(
                "is not what cpu_topology_info returns (%s: %s)" % (type(error).__name__, error),
                where=option("topology"),
            ) from error
    return node


def configuration_of(node: Node, parameters: Parameters) -> Configuration:
    """Return what the kubelet runs with, or the defaults where there is none, with the gates that were given beside
    it."""
    configuration = node.configuration() or default_configuration()
    values = dict(configuration.values)
    values["featureGates"] = {**(values.get("featureGates") or {}), **parameters["feature_gates"]}
    return Configuration(values, configuration.source)


def bursts_of(rows: Sequence[Mapping[str, object]]) -> Sequence[Any]:
    """Return what the containers run."""
    if not rows:
        return ()
    # Imported here: most plans are about CPUs only.
    from ..module_utils._cgroup.limits import read_bursts

    return read_bursts(rows)


def running_on(node: Node) -> tuple[Sequence[Any], Collection[str]]:
    """Return what runs on the node, where all names are known; and the UIDs of its pods."""
    observed, _notes = node.observed(node.configuration())
    if observed is None:
        return (), ()
    return observed.running if observed.all_named else (), {container.pod_uid for container in observed.running}


def devices_of(rows: Sequence[Mapping[str, Any]], node: Node, is_this_node: bool) -> Sequence[Mapping[str, Any]]:
    """Return all devices, counted on the node where that is asked for."""
    if not rows:
        return ()
    # Imported here: most plans are about no devices.
    from ..module_utils._node.beside_cpus import with_pci_devices

    return with_pci_devices(rows, node.tree if is_this_node else None, option("devices"))


def others_of(
    node: Node, parameters: Parameters, pods: Sequence[Pod], is_this_node: bool, from_checkpoint: bool
) -> OtherManagers:
    """Return what decides beside CPUs, as it was given, or as the node has it."""
    memory: Mapping[int, Mapping[str, int]] | None = None
    if is_this_node or parameters["numa_memory"] is not None:
        # Imported here: of a machine that is described it is rarely asked.
        from ..module_utils._node.beside_cpus import given_memory, memory_for_plan

        if parameters["numa_memory"] is not None:
            memory = given_memory(parameters["numa_memory"], option("numa_memory"))
        else:
            memory = memory_for_plan(node.tree, node.topology)
    others = OtherManagers(memory=memory, devices=devices_of(parameters["devices"], node, is_this_node))
    if not from_checkpoint:
        return others
    others = others._replace(memory_state=node.memory_state())
    if not any(pod.further_resources() for pod in pods):
        return others
    # Imported here: most pods ask for no devices.
    from ..module_utils._node.beside_cpus import device_checkpoint

    return others._replace(device_state=device_checkpoint(node.tree))


def with_device_state(question: Question, node: Node) -> Question:
    """Return the question with what all pods have of devices, whether those that are listed ask for some or not."""
    # Imported here, as above.
    from ..module_utils._node.beside_cpus import device_checkpoint

    return question._replace(others=question.others._replace(device_state=device_checkpoint(node.tree)))


def work(tree: Tree, parameters: Parameters, check_mode: bool) -> Outcome:
    node = asked_node(tree, parameters)
    is_this_node = parameters["machine"] is None and parameters["topology"] is None
    from_checkpoint = is_this_node if parameters["from_checkpoint"] is None else parameters["from_checkpoint"]
    pods = pods_from_manifests(parameters["pods"])
    running, active = running_on(node) if from_checkpoint else ((), ())
    question = Question(
        node.topology,
        node.machine(),
        configuration_of(node, parameters),
        wanted_settings(node, parameters),
        node.checkpoint() if from_checkpoint else None,
        pods,
        bursts_of(parameters["bursts"]),
        parameters["policy"],
        parameters["shared_minimum"],
        running,
        others_of(node, parameters, pods, is_this_node, from_checkpoint),
        active,
    )
    plan = plan_allocations(question)
    # The notes have it in words.
    del plan["limits"]
    diff = difference("allocations", plan.pop("before"), plan.pop("after"))
    if parameters["compare_with"] is not None:
        unknown = sorted(set(parameters["compare_with"]) - set(SETTINGS_ARGUMENTS.options))
        if unknown:
            raise InputError("%s is no setting of this module" % unknown[0], where=option("compare_with"))
        changed = wanted_settings(node, {**parameters, **parameters["compare_with"]})
        plan["differences"] = compare_plans(plan, plan_allocations(question._replace(wanted=changed)))
    fates: list[Any] = []
    if from_checkpoint:
        # Imported here: a machine that is described has no pods that run.
        from ..module_utils._node.readmission import Written, fates_of, loss_notes

        fates = fates_of(with_device_state(question, node), Written(question.checkpoint, question.others.memory_state))
        plan["notes"] += loss_notes(fates, "a start of the kubelet with these settings")
    plan["restart"] = [fate.to_dict() for fate in fates]
    plan["notes"] += node.version_notes()
    return Outcome(plan, False, [diff])


def main() -> None:
    run(
        work,
        KUBELET,
        SETTINGS_ARGUMENTS,
        DEVICES,
        Arguments(
            {
                "pods": {"type": "list", "elements": "dict", "required": True},
                "policy": {"type": "str", "choices": ["kubelet", "dynamic", "isolated"], "default": "kubelet"},
                "shared_minimum": {"type": "int", "default": 0},
                "machine": {"type": "str"},
                "topology": {"type": "dict"},
                "numa_memory": {
                    "type": "list",
                    "elements": "dict",
                    "options": {
                        "numa_node": {"type": "int", "required": True},
                        "amounts": {"type": "dict", "required": True},
                    },
                },
                "from_checkpoint": {"type": "bool"},
                "feature_gates": {"type": "dict", "default": {}},
                "bursts": {
                    "type": "list",
                    "elements": "dict",
                    "default": [],
                    "options": {
                        "pod": {"type": "str", "default": "*"},
                        "container": {"type": "str", "default": "*"},
                        "threads": {"type": "int"},
                        "work": {"type": "str"},
                    },
                },
                "compare_with": {"type": "dict"},
            },
            mutually_exclusive=[("machine", "topology")],
        ),
    )


if __name__ == "__main__":
    main()

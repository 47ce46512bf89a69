# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a report: their ids, and for people what each means. Pure.

The list is in this file and, for the checks of further looks, in look_checks.py: reports, waivers, the pages below
docs/docsite/rst/checks and the tests are made from both. An id stays what it is once it was released.
"""

from __future__ import annotations

from .check import DANGER, NOTE, SEVERITIES, VARIABLE, WARNING, Check
from .look_checks import NOTES, WARNINGS

__all__ = ["CHECKS", "DANGER", "NOTE", "SEVERITIES", "WARNING", "Check", "check_of_subject"]

_ROLLOUT = (
    "Run the playbook kubenode.cpu_manager.rollout on the node, or, if the node is right and its kubelet starts with"
    " what was found, set %s to that." % VARIABLE
)
_RESTART = (
    "Restart the kubelet. Drain the node first if the CPU manager's policy, its options, or the reserved CPUs changed."
)
_REPAIR = "Run the playbook kubenode.cpu_manager.repair on the node."

_ALL = (
    # --- danger ---------------------------------------------------------------------------------------
    Check(
        "configuration-unreadable",
        DANGER,
        "The kubelet's configuration cannot be read",
        "A kubelet that reads this file does not start. A running kubelet keeps the settings that it has read before,"
        " and does not start again after its next restart.",
        "Correct the file that is named as the source, restore it from a backup beside it, or if a rollout was"
        " the last change of the node, run the playbook kubenode.cpu_manager.rollback.",
        ("configuration",),
    ),
    Check(
        "kubelet-would-not-start",
        DANGER,
        "The kubelet would not start again",
        "The kubelet's own checks at its start refuse these files on this machine. A running kubelet does not start"
        " again after its next restart, such as a reboot.",
        "Correct what the message names, or if a rollout was the last change of the node, run the playbook"
        " kubenode.cpu_manager.rollback.",
        ("start",),
    ),
    Check(
        "checkpoint-refused",
        DANGER,
        "The kubelet would refuse the CPU manager's checkpoint",
        "A kubelet with the wanted settings exits at each start with the message that is shown, until the file is"
        " repaired or removed.",
        _REPAIR + " It keeps the exclusive CPUs of containers if that is possible.",
        ("checkpoint",),
    ),
    Check(
        "memory-state-refused",
        DANGER,
        "The kubelet would refuse the memory manager's state",
        "A kubelet with the wanted settings exits at its start with the message that is shown.",
        _REPAIR,
        ("memory_state",),
    ),
    # --- not as wanted --------------------------------------------------------------------------------
    Check(
        "checkpoint-outdated",
        WARNING,
        "The CPU manager's checkpoint does not fit the wanted settings",
        "With its present settings, the kubelet accepts the file. With the wanted settings it would refuse the file, so"
        " a rollout repairs or resets it while the kubelet is stopped.",
        "Run the playbook kubenode.cpu_manager.rollout on the node. Do not change the settings by hand.",
    ),
    Check(
        "memory-state-outdated",
        WARNING,
        "The memory manager's state does not fit the wanted settings",
        "With its present settings, the kubelet accepts the file. With the wanted settings it would refuse the file, so"
        " a rollout removes it while the kubelet is stopped.",
        "Run the playbook kubenode.cpu_manager.rollout on the node. Do not change the settings by hand.",
    ),
    Check(
        "policy-differs",
        WARNING,
        "The CPU manager's policy is not the wanted one",
        "Only the static policy gives containers exclusive CPUs.",
        _ROLLOUT,
        ("cpu_manager_policy",),
    ),
    Check(
        "policy-options-differ",
        WARNING,
        "The options of the CPU manager's policy are not the wanted ones",
        "The options decide which CPUs a container gets, such as whole cores only.",
        _ROLLOUT,
        ("cpu_manager_policy_options",),
    ),
    Check(
        "reconcile-period-differs",
        WARNING,
        "The CPU manager's reconcile period is not the wanted one",
        "The kubelet corrects the CPUs of containers once in this period.",
        _ROLLOUT,
        ("cpu_manager_reconcile_period",),
    ),
    Check(
        "topology-manager-differs",
        WARNING,
        "A setting of the topology manager is not the wanted one",
        "The topology manager decides whether CPUs, memory and devices of a pod have to be on the same NUMA nodes, and"
        " refuses pods for which that is not possible.",
        _ROLLOUT,
        ("topology_manager_policy", "topology_manager_scope", "topology_manager_policy_options"),
    ),
    Check(
        "memory-manager-differs",
        WARNING,
        "A setting of the memory manager, or reserved memory, is not the wanted one",
        "The reserved memory of all NUMA nodes has to add up to the other reservations of memory. Otherwise the kubelet"
        " does not start.",
        _ROLLOUT,
        ("memory_manager_policy", "reserved_memory", "kube_reserved_memory", "system_reserved_memory"),
    ),
    Check(
        "reservation-differs",
        WARNING,
        "The reserved CPUs are not the wanted ones",
        "Reserved CPUs are never given to one container alone: the system and the kubelet run there.",
        _ROLLOUT,
        ("reserved_system_cpus", "kube_reserved_cpu", "system_reserved_cpu"),
    ),
    Check(
        "cfs-quota-differs",
        WARNING,
        "A setting of CPU quotas is not the wanted one",
        "With quotas the kernel throttles containers at their CPU limits.",
        _ROLLOUT,
        ("cpu_cfs_quota", "cpu_cfs_quota_period"),
    ),
    Check(
        "field-differs",
        WARNING,
        "A field of the configuration that a wanted setting needs has another value",
        "Some settings need a feature gate or another field, without which the kubelet ignores or refuses them.",
        "Run the playbook kubenode.cpu_manager.rollout on the node.",
    ),
    Check(
        "cpuset-differs",
        WARNING,
        "A container has other CPUs than the checkpoint gives it",
        "The kernel enforces what the cgroup has. The container shares CPUs that should be its own, or runs on those of"
        " others.",
        "Run the playbook kubenode.cpu_manager.repair on the node, or install the role kubenode.cpu_manager.reconcile.",
        ("container ",),
    ),
    Check(
        "cgroup-differs",
        WARNING,
        "A cgroup above containers, or one of the host, has other CPUs than it should have",
        "A cgroup can only use CPUs that all cgroups above it have. The system may use all CPUs that the host's cgroups"
        " have.",
        "Give the cgroup the wanted CPUs, and its systemd unit, too. If no pass of the module reconcile could write it,"
        " the report says why, such as another cgroup that has the CPUs to itself.",
        ("cgroup ",),
    ),
    Check(
        "isolated-cpus-differ",
        WARNING,
        "The kernel isolates CPUs that are reserved for the system",
        "The kernel does not balance load over isolated CPUs, and the system has to run on the reserved ones.",
        "Take the reserved CPUs out of isolcpus= and nohz_full= on the kernel's command line, or reserve others.",
        ("isolated", "nohz_full"),
    ),
    Check(
        "kubelet-not-restarted",
        WARNING,
        "The kubelet has not been restarted since its files changed",
        "A kubelet reads its files only when it starts, so it still runs with the settings from before.",
        _RESTART,
    ),
    Check(
        "running-kubelet-differs",
        WARNING,
        "The running kubelet has another setting than its files",
        "The settings of the running kubelet were read through the API server. They are those of its files when it"
        " started.",
        _RESTART,
    ),
    Check(
        "change-interrupted",
        WARNING,
        "A change of this node is in progress or was interrupted",
        "The node may have a part of the old and a part of the new settings, and may be cordoned.",
        "If no playbook is running, run the last one again: it undoes the change first, then goes on.",
    ),
    Check(
        "change-refused",
        WARNING,
        "A rollout would refuse to change the node",
        "For the reason in the message, the change would do harm or have no effect.",
        "Do what the message says.",
    ),
    Check(
        "two-owners",
        WARNING,
        "Two managers of CPUs on the node contradict each other",
        "Each undoes what the other does, or assigns CPUs that the other has assigned. The finding has the details.",
        "Keep only one of them; the finding says how. See docs/docsite/rst/owners.rst.",
    ),
    Check(
        "program-not-roots",
        WARNING,
        "Others than root may write what root executes",
        "A service of this collection runs it as root on the node, so whoever can write the program, its Python or a"
        " directory above them has all of root's rights.",
        "Find out who has written there and why. Give it to root alone (chown root:root, chmod go-w), and run the role"
        " that has written it again.",
    ),
    Check(
        "numa-nodes-many",
        WARNING,
        "The topology manager has too many sets of NUMA nodes to go through",
        "For each pod with devices, memory or CPUs of its own it looks at all sets of NUMA nodes, twice as many with"
        " each further node. The option max-allowable-numa-nodes lets the kubelet start, but this is no faster.",
        "Set kubelet_topology_manager_policy: none, or boot the machine with fewer NUMA nodes.",
    ),
    *WARNINGS,
    # --- notes ----------------------------------------------------------------------------------------
    Check(
        "reservation-splits-cores",
        NOTE,
        "The reservation splits cores",
        "Containers get the other threads of the cores on which the system runs, and are disturbed by it. With"
        " full-pcpus-only none can have them for itself, though the scheduler counts them and sends pods to the node,"
        " which the kubelet then refuses (SMTAlignmentError).",
        "Reserve whole cores with kubelet_reserved_system_cpus or kubelet_reservation.",
    ),
    Check(
        "wanted-reservation-splits-cores",
        NOTE,
        "The wanted reservation would split cores",
        "After the rollout containers would get the other threads of the cores on which the system runs, or with"
        " full-pcpus-only, none could have them for itself.",
        "Reserve whole cores with kubelet_reserved_system_cpus or kubelet_reservation.",
    ),
    Check(
        "cores-uneven",
        NOTE,
        "The cores have unequal numbers of online threads",
        "The kubelet calculates with their average: under the static policy it can assign a CPU that is in use.",
        "Switch the threads of a core on or off together.",
    ),
    Check(
        "cpus-unseen",
        NOTE,
        "Some CPUs belong to no NUMA node",
        "The kubelet does not use them.",
        "Correct the firmware's tables, or boot with numa=off.",
    ),
    Check(
        "topology-odd",
        NOTE,
        "The kernel's description of the CPUs contradicts itself",
        "The kubelet may work with a wrong topology.",
        "Update the firmware and the kernel, and compare with the hardware's documentation.",
    ),
    Check(
        "field-ignored",
        NOTE,
        "The kubelet ignores a field of its configuration",
        "The name is misspelled or in the wrong place, or a flag or a later file takes the place of the field, so the"
        " setting has no effect.",
        "Rename or remove the field, or what takes its place.",
    ),
    Check(
        "option-ineffective",
        NOTE,
        "An option does not do what it is for",
        "The kubelet starts with it, and other settings or the machine leave it without effect; or containers have CPUs"
        " of more sockets or L3 caches than it is to give them.",
        "Do what the finding says. The CPUs of running containers stay as they are until their pods end.",
    ),
    Check(
        "start-uncertain",
        NOTE,
        "Whether the kubelet would start cannot be determined",
        "It depends on something that the files of the node do not show.",
        "Try one node first: cpu_manager_canaries.",
    ),
    Check(
        "version-assumed",
        NOTE,
        "The version of the kubelet is unknown",
        "The rules of the newest supported version are used.",
        "Set kubelet_target_version.",
    ),
    Check(
        "version-untested",
        NOTE,
        "The rules are not tested against this version of the kubelet",
        "A prediction of its start or of its choice of CPUs may be wrong.",
        "Try one node first: cpu_manager_canaries.",
    ),
    Check(
        "shared-pool-isolated",
        NOTE,
        "The shared pool has isolated CPUs",
        "The kernel does not balance load over them: the threads of a container stay on one CPU.",
        "Boot without isolcpus=, or reserve these CPUs.",
    ),
    Check(
        "exclusive-not-isolated",
        NOTE,
        "Only some of the exclusive CPUs are isolated",
        "The kernel's work disturbs some containers with exclusive CPUs more than others.",
        "Isolate all CPUs that are not reserved, or none.",
    ),
    Check(
        "host-not-fenced",
        NOTE,
        "The processes of the host may run on exclusive CPUs",
        "The kubelet keeps other pods off exclusive CPUs, but not the system's services.",
        "Give the host's slices the reserved CPUs only (AllowedCPUs= of systemd).",
    ),
    Check(
        "kubepods-narrow",
        NOTE,
        "The cgroup of all pods lacks CPUs that are assigned to containers",
        "With cgroup v1, a container that is given these CPUs does not start, as the kernel refuses what the runtime"
        " writes (EACCES). With cgroup v2, it cannot use them, and there is no error message.",
        "Give the cgroup all CPUs, and its systemd unit, too. If it is to be narrow, such as a cgroupRoot, reserve the"
        " CPUs that it lacks with the option strict-cpu-reservation.",
    ),
    Check(
        "exclusive-cpus-idle",
        NOTE,
        "A pod without running processes has exclusive CPUs",
        "No other container can get these CPUs until the kubelet removes the pod.",
        "A running kubelet removes a pod that is gone within minutes. If it does not, restart it.",
    ),
    Check(
        "init-cpus-lost",
        NOTE,
        "Containers that do not run have exclusive CPUs that no container of their pods has",
        "An init container that has ended keeps its CPUs until its pod ends. Nobody can get those that no later"
        " container of the pod has reused, while the scheduler counts them as free: a pod that comes for them is"
        " refused. A container that has only stopped, or is still to start, uses its CPUs then.",
        "Delete the pod, which is then made again, or give its init containers no more CPUs than its other containers.",
    ),
    Check(
        "process-bound",
        NOTE,
        "The first process of a container is bound to fewer CPUs than its cgroup has",
        "It uses only these CPUs, even if the kubelet assigns others.",
        "Look for CPUAffinity= in the unit of the container runtime, or for taskset in the container.",
    ),
    Check(
        "cpusets-left-over",
        NOTE,
        "Containers have fewer CPUs than the node, although the policy does not assign CPUs",
        "These cpusets are left over from a static policy that was switched off, or from another tool.",
        "Restart the containers.",
    ),
    Check(
        "cgroups-unreadable",
        NOTE,
        "The cgroups of containers cannot be read",
        "It is unknown whether containers have their CPUs.",
        "Do what the message says.",
    ),
    Check(
        "running-kubelet-unread",
        NOTE,
        "The running kubelet could not be read",
        "It is unknown whether it has the settings of its files.",
        "Do what the message says, or do not set drift_report_ask_kubelets.",
    ),
    Check(
        "kubelet-ambiguous",
        NOTE,
        "Several processes look like a kubelet",
        "The report is about the process that the message names.",
        "End the other process, or name the files with kubelet_config_path and kubelet_root_dir.",
    ),
    Check(
        "kubelet-missing",
        NOTE,
        "No kubelet was found",
        "There is nothing to compare.",
        "Take the host out of cpu_manager_hosts, or set cpu_manager_skip_hosts_without_kubelet: true.",
    ),
    Check(
        "settings-elsewhere",
        NOTE,
        "Another system writes the kubelet's files",
        "Its next run overwrites the files: without the same settings there, the change is lost.",
        "Put the same settings into that system; the report has them in its format.",
    ),
    *NOTES,
    Check(
        "waiver-ended",
        NOTE,
        "The last day of a waiver is over",
        "What it was about counts again where it is still found.",
        "Mend it, or decide again: give the waiver in drift_report_waivers a later day, or remove it there.",
    ),
    Check(
        "noted",
        NOTE,
        "Other information",
        "There is no separate check for it.",
        "Read the message.",
    ),
)

CHECKS = {check.id: check for check in _ALL}
_BY_SUBJECT = {subject: check for check in _ALL for subject in check.subjects}


def check_of_subject(subject: str) -> Check:
    """The check of a subject of drift, as drift_info names it."""
    kind, space, _rest = subject.partition(" ")
    return _BY_SUBJECT.get(kind + space) or CHECKS["field-differs"]

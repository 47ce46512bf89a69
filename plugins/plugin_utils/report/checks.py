# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of a report: their ids, and for people what each means. Pure.

Reports, waivers, the page docs/docsite/rst/checks.rst and tests are made from this list. An id stays what it is once it
was released.
"""

from __future__ import annotations

from typing import NamedTuple

from ...module_utils._kubelet.settings import SETTINGS

# What a check of a report is. Pure.


# The kubelet does not start, or will not start again.
DANGER = "danger"
# The node is not as wanted.
WARNING = "warning"
# What is worth knowing, and no difference from what is wanted.
NOTE = "note"
SEVERITIES = (DANGER, WARNING, NOTE)

# What a node is looked at for only where that is wanted: the modules of these names with `_info` look, and what they
# could not measure has the checks of these names with `-unmeasured`.
ISOLATION, THROTTLING, HOUSEKEEPING, CACHE = "isolation", "throttling", "housekeeping", "cache"
# For this one, admission_info looks, and the API server or the node itself tells of the pods.
IMPACT = "impact"
# Who tells of the pods for it, and for that of a change.
API, NODES = "api", "nodes"
# Last, as it computes. Its module is no `_info`.
TRIAL = "trial"
LOOKS = (ISOLATION, THROTTLING, HOUSEKEEPING, CACHE, IMPACT, TRIAL)

# The place of the variable of the role kubelet that the finding is about.
VARIABLE = "{variable}"


class Check(NamedTuple):
    """One check. title: what a finding of it says, in one sentence. why: what it means for the node."""

    id: str
    severity: str
    title: str
    why: str
    remedy: str
    # The subjects of drift that are findings of it; one that ends in a space is a beginning. Those that are settings
    # are in the settings' own rows.
    subjects: tuple[str, ...] = ()
    # Which of LOOKS finds it; empty for what every report compares.
    look: str = ""

    def remedy_for(self, subject: str = "") -> str:
        """Return what to do about a finding, with the name of the variable where the subject is a setting."""
        is_setting = subject in self.subjects and VARIABLE in self.remedy
        variable = "kubelet_" + subject if is_setting else "the variable of the role kubelet"
        return self.remedy.replace(VARIABLE, variable)


# The checks of what a node is looked at for only where that is wanted. Pure.


DANGERS = (
    Check(
        "kubelet-refuses-start",
        DANGER,
        "The node's own kubelet does not start with the node's files",
        "It was started with copies of its files, out of reach of everything, and ended itself. A kubelet that runs"
        " keeps what it has read, and does not come back after its next restart.",
        "Correct what the kubelet names, or if a rollout was the last change of the node, run the playbook"
        " kubenode.cpu_manager.rollback. See the guide start_errors of this collection.",
        look=TRIAL,
    ),
)

WARNINGS = (
    Check(
        "next-kubelet-refuses-start",
        WARNING,
        "The other kubelet that was tried does not start with the node's files",
        "The program of kubelet_trial_program was started with copies of the node's configuration and states, and ended"
        " itself. After an upgrade, or a way back, to its version the node would have no kubelet.",
        "Change what the kubelet names before its version is installed. A checkpoint that it cannot read is removed"
        " while the node is drained and the kubelet stopped. See the guide start_errors of this collection.",
        look=TRIAL,
    ),
    Check(
        "exclusive-cpus-disturbed",
        WARNING,
        "A container did not have its exclusive CPUs to itself",
        "During the measurement, something else ran on these CPUs: another container, a service, a kernel thread, or"
        " interrupts. A cpuset keeps a container on its CPUs. It does not keep other processes off them.",
        "Do what the finding says; it depends on what ran there. See the guide isolation of this collection.",
        look=ISOLATION,
    ),
    Check(
        "pods-would-be-refused",
        WARNING,
        "With the wanted settings, the kubelet would refuse pods that run now",
        "After the change the kubelet admits all pods anew. A controller makes a refused pod again at once, and where"
        " no other node takes it, each is refused like the one before.",
        "Before the rollout, change the workload as the finding says, or what is wanted. See"
        " the guide impact of this collection.",
        look=IMPACT,
    ),
    Check(
        "exclusive-cpus-with-quota",
        WARNING,
        "Exclusive CPUs have a quota",
        "The kernel can throttle the container although nothing else uses its CPUs, because quotas are filled up and"
        " used up in slices. From Kubernetes 1.33 on, the kubelet sets no quota where it gives exclusive CPUs.",
        "Do what the finding says; it depends on the version of the kubelet."
        " See the guide throttling of this collection.",
        look=THROTTLING,
    ),
    Check(
        "limit-below-request",
        WARNING,
        "A quota is less than the exclusive CPUs below it",
        "The container cannot fully use its exclusive CPUs: the kernel stops it for a part of each period.",
        "Remove the quota, or raise it to the number of these CPUs. See the guide throttling of this collection.",
        look=THROTTLING,
    ),
    Check(
        "host-on-exclusive-cpus",
        WARNING,
        "The host's own work may run on CPUs that are not reserved for it",
        "The kubelet keeps other pods off exclusive CPUs. Services, interrupts and the kernel's own work run wherever"
        " their settings allow it, on exclusive CPUs, too.",
        "Do what the finding says; it depends on the layer. See the guide housekeeping of this collection.",
        look=HOUSEKEEPING,
    ),
    Check(
        "kernel-line-not-booted",
        WARNING,
        "The configured command line of the kernel differs from the booted one",
        "The kernel reads its command line when it starts, so the configured one has no effect yet.",
        "Drain the node and reboot it. See the guide housekeeping of this collection.",
        look=HOUSEKEEPING,
    ),
    Check(
        "housekeeping-unfinished",
        WARNING,
        "A run of the role housekeeping is in progress or was interrupted",
        "A part of the host's own work may be on the reserved CPUs, and another part not. The journal on the node has"
        " what was there before.",
        "If no run is in progress, run the playbook kubenode.cpu_manager.housekeeping again: it finishes the run, or"
        " with housekeeping_state=absent undoes it.",
        look=HOUSEKEEPING,
    ),
    Check(
        "cache-partition-lost",
        WARNING,
        "The exclusive CPUs have no ways of the caches to themselves any more",
        "resctrl begins anew at each boot and each mount. Until the groups are there again, all CPUs fill the same ways"
        " of a cache, and a noisy neighbour can evict the lines of a container with exclusive CPUs.",
        "Run the role cache, and the role reconcile, which brings them back after each boot. See"
        " the guide cache of this collection.",
        look=CACHE,
    ),
    Check(
        "cache-partition-differs",
        WARNING,
        "The caches are divided otherwise than they are to be",
        "Masks, mode or CPUs of our groups differ from the settings and the checkpoint. So some exclusive"
        " CPUs share their ways, or others have too few.",
        "Run the role cache, or wait for the next pass of the role reconcile. See the guide cache of this collection.",
        look=CACHE,
    ),
    Check(
        "cache-foreign-group",
        WARNING,
        "A resctrl group of a different program has exclusive CPUs, or ways of theirs",
        "What runs in that group fills the ways that were set apart. We leave groups of others alone.",
        "Give that group other ways or CPUs, or remove it. See the guide cache of this collection.",
        look=CACHE,
    ),
)

NOTES = (
    Check(
        "container-throttled",
        NOTE,
        "A container was throttled often",
        "It used up its quota in many periods, and the kernel stopped it until the next period began.",
        "Raise the limit, or let the container run fewer threads at once. See the guide throttling of this collection.",
        look=THROTTLING,
    ),
    Check(
        "interrupts-not-movable",
        NOTE,
        "The kernel handles interrupts on CPUs that are not reserved, and they cannot be moved",
        "If a driver has a queue for each CPU, such as that of NVMe, the kernel manages the interrupts of these queues."
        " The interrupts of a queue occur when a process on its CPUs uses the device. Older kernels show that only by"
        " an error, which the role housekeeping remembers until the next boot.",
        "Boot with isolcpus=managed_irq, or give the device fewer queues."
        " See the guide housekeeping of this collection.",
        look=HOUSEKEEPING,
    ),
    Check(
        "housekeeping-not-lasting",
        NOTE,
        "The host's own work is on the reserved CPUs now, but a file is missing that keeps it there",
        "When systemd starts a slice again, at the latest after a reboot, the slice may use all CPUs; so may systemd"
        " itself without its affinity, and the kernel without the service at boot. When tuned starts again, it isolates"
        " the CPUs that are in its file of variables.",
        "Do what the finding says, such as to set AllowedCPUs= of slices in a drop-in file. See"
        " the guide housekeeping of this collection.",
        look=HOUSEKEEPING,
    ),
    Check(
        "partition-invalid",
        NOTE,
        "A cgroup is to be a partition, and the kernel does not take it for one",
        "Its CPUs are not its own: others run there, and the kernel balances load over them. The kernel gives the"
        " reason in cpuset.cpus.partition, as that another cgroup has the same CPUs. A partition that the role"
        " housekeeping has made, and that is none any more, has no reason there.",
        "Do what the reason says, then write the kind of the partition again, or run the role housekeeping again. See"
        " the guide housekeeping of this collection.",
        look=HOUSEKEEPING,
    ),
    Check(
        "kernel-line-odd",
        NOTE,
        "The kernel's command line does not fit the reserved CPUs",
        "An argument names wrong CPUs, or is invalid, and then the kernel ignores it.",
        "Correct the argument, then drain the node and reboot it. See the guide housekeeping of this collection.",
        look=HOUSEKEEPING,
    ),
    Check(
        "weights-by-two-formulas",
        NOTE,
        "The kubelet and the container runtime calculate weights with different formulas",
        "The weights of containers do not fit those of their pods, so under load their shares of CPU time differ from"
        " their requests.",
        "Update the older one of the two to a version with the new formula, then delete the pods.",
        look=THROTTLING,
    ),
    Check(
        "isolation-unmeasured",
        NOTE,
        "What ran on the exclusive CPUs could not be measured, or only in part",
        "It is unknown whether containers have their CPUs to themselves.",
        "Do what the message says, or take isolation out of drift_report_look_at.",
        look=ISOLATION,
    ),
    Check(
        "throttling-unmeasured",
        NOTE,
        "Quotas and throttling could not be measured, or only in part",
        "It is unknown whether containers are throttled.",
        "Do what the message says, or take throttling out of drift_report_look_at.",
        look=THROTTLING,
    ),
    Check(
        "housekeeping-unmeasured",
        NOTE,
        "Where the host's own work may run could not be read, or only in part",
        "It is unknown whether the host's own work stays on the reserved CPUs.",
        "Do what the message says, or take housekeeping out of drift_report_look_at.",
        look=HOUSEKEEPING,
    ),
    Check(
        "cache-ways-of-devices",
        NOTE,
        "Devices may fill ways of the exclusive CPUs",
        "Network and storage devices write into some ways of the L3 cache themselves, and so evict what is there.",
        "Give the exclusive CPUs fewer ways. See the guide cache of this collection.",
        look=CACHE,
    ),
    Check(
        "cache-cores-split",
        NOTE,
        "A core has CPUs of two kinds, so its class of the cache is that of one of them",
        "Where bandwidth can be limited, both threads of a core may get the lower of their limits. So a core is in one"
        " group as a whole, and a shared CPU beside an exclusive one has its ways, too.",
        "Set the policy option full-pcpus-only. See the guide cache of this collection.",
        look=CACHE,
    ),
    Check(
        "cache-class-by-runtime",
        NOTE,
        "Processes are in a resctrl group of a different program",
        "The group of a process comes before that of its CPU. So a container that its runtime has put into a class has"
        " the ways of that class, also on exclusive CPUs.",
        "Take the class away from the pod (its annotation rdt.resources.beta.kubernetes.io), if its CPUs are to count."
        " See the guide cache of this collection.",
        look=CACHE,
    ),
    Check(
        "impact-unmeasured",
        NOTE,
        "What becomes of the pods with the wanted settings is not known, or not of all",
        "It is unknown whether the kubelet would refuse pods that run now.",
        "Do what the message says, or take impact out of drift_report_look_at.",
        look=IMPACT,
    ),
    Check(
        "cache-unmeasured",
        NOTE,
        "How the caches are divided could not be read, or not all of it",
        "Whether exclusive CPUs have ways of the caches to themselves is not known.",
        "Do what the message says, or take cache out of drift_report_look_at.",
        look=CACHE,
    ),
    Check(
        "prediction-differs",
        NOTE,
        "The kubelet did something else than was predicted of it",
        "A kubelet was started with the node's files, and it is right. The rules that this collection has of its"
        " version are wrong here, and so may be what start_check, the report and allocation_plan say of this node.",
        "Go by the kubelet, as a rollout does with kubelet_trial: auto. Please report it, with the finding.",
        look=TRIAL,
    ),
    Check(
        "trial-unmeasured",
        NOTE,
        "No kubelet could try a start",
        "Whether a kubelet starts with the node's files is only predicted.",
        "Do what the message says: make room where a file system is full, and let the module do what the system refuses"
        " it. Or take trial out of drift_report_look_at.",
        look=TRIAL,
    ),
)


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
    Check(
        "cpus-out-of-reach",
        DANGER,
        "The node is a container that lacks CPUs which its kubelet assigns",
        "The kubelet counts the CPUs in /sys, which shows all of the machine also in a container. Where the container"
        " that is the node (LXD, Proxmox, kind, k3d, systemd-nspawn) has fewer, pods are assigned CPUs on which they"
        " cannot run, and share the others. No reservation is planned there. Where it has a quota of their time"
        " instead, also containers with exclusive CPUs wait for it.",
        "Give the container all CPUs, and no quota, in its own configuration, or run the kubelet in a virtual machine.",
    ),
    *DANGERS,
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
    ),
    Check(
        "policy-options-differ",
        WARNING,
        "The options of the CPU manager's policy are not the wanted ones",
        "The options decide which CPUs a container gets, such as whole cores only.",
        _ROLLOUT,
    ),
    Check(
        "reconcile-period-differs",
        WARNING,
        "The CPU manager's reconcile period is not the wanted one",
        "The kubelet corrects the CPUs of containers once in this period.",
        _ROLLOUT,
    ),
    Check(
        "topology-manager-differs",
        WARNING,
        "A setting of the topology manager is not the wanted one",
        "The topology manager decides whether CPUs, memory and devices of a pod have to be on the same NUMA nodes, and"
        " refuses pods for which that is not possible.",
        _ROLLOUT,
    ),
    Check(
        "memory-manager-differs",
        WARNING,
        "A setting of the memory manager, or reserved memory, is not the wanted one",
        "The reserved memory of all NUMA nodes has to add up to the other reservations of memory. Otherwise the kubelet"
        " does not start.",
        _ROLLOUT,
    ),
    Check(
        "reservation-differs",
        WARNING,
        "The reserved CPUs are not the wanted ones",
        "Reserved CPUs are never given to one container alone: the system and the kubelet run there.",
        _ROLLOUT,
    ),
    Check(
        "cfs-quota-differs",
        WARNING,
        "A setting of CPU quotas is not the wanted one",
        "With quotas the kernel throttles containers at their CPU limits.",
        _ROLLOUT,
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
        "states-removed",
        WARNING,
        "The kubelet's unit removes its states",
        "Without the CPU manager's state, a kubelet that starts knows of no container's CPUs: it assigns those of all"
        " running pods anew, so that they move to other CPUs, and refuses no old state. What a repair writes there is"
        " removed, too, so none is planned.",
        "Drain the node before each restart of its kubelet, or remove the command from the unit.",
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
        "node-cordoned",
        WARNING,
        "Cordoned by a rollout that did not end",
        "The journal of a change on the node says that this change has cordoned the node for a drain, and it has not"
        " come to its end. No new pod comes to the node. A change that is in progress looks the same.",
        "If no playbook is running, run rollout, rollback or repair for the node. Each of them ends the change and"
        " makes the node schedulable again, also if nothing else is to be changed there. A node that somebody had"
        " cordoned before that change stays cordoned.",
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
        "Keep only one of them; the finding says how. See the guide owners of this collection.",
    ),
    Check(
        "program-not-roots",
        WARNING,
        "Others than root may write what root executes or obeys",
        "A service of this collection runs it as root on the node, or a role does what is in it, as in a journal. So"
        " whoever can write the program, its Python, its unit, its settings, a journal or a directory above them, also"
        " by an access control list, has all of root's rights. A journal is not obeyed then.",
        "Find out who has written there and why. Give it to root alone (chown root:root, chmod go-w, setfacl -b), and"
        " run the role that has written it again. Move away a journal that is not as a role wrote it.",
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
        "Switch the threads of a core on or off together. A machine with cores of two kinds (performance and efficiency"
        " cores) has unequal ones as long as SMT is on: switch it off, or do without the static policy there.",
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
        "A prediction of its start or of its choice of CPUs may be wrong. Of some versions much is known from the"
        " kubelet's sources; the message says what.",
        "Let the node's own kubelet try the start: kubelet_trial does it, and a rollout does so by default. Where it"
        " cannot, try one node first: cpu_manager_canaries.",
    ),
    Check(
        "shared-pool-isolated",
        NOTE,
        "The shared pool has isolated CPUs",
        "The kernel does not balance load over them: the threads of a container stay on one CPU.",
        "Boot without isolcpus=, or with isolcpus=managed_irq alone, or reserve these CPUs.",
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
        "container-partition-invalid",
        NOTE,
        "A container is to be a partition, and the kernel does not take it for one",
        "Its CPUs are not its own: others may run there, and the kernel balances load over them.",
        "Do what the reason says, then start the container again.",
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
        "pod-cpus-lost",
        NOTE,
        "CPUs of pods as a whole are in no container's hands",
        "A pod that was refused when its CPUs were divided, or that is gone, has left them behind: the kubelet takes"
        " the CPUs of a pod as a whole back with its last container, and there is none. Nobody can get them.",
        "Stop the kubelet and repair the checkpoint: the module checkpoint with state: valid and the pods of the node.",
    ),
    Check(
        "pods-lost-at-restart",
        NOTE,
        "The next start of the kubelet would lose pods that run",
        "A kubelet that starts admits all pods of its node anew, whoever restarts it and whatever for. It looks for"
        " the memory of init containers that have ended once more; with full-pcpus-only it counts free cores before it"
        " sees that a container has its own; and devices of containers that do not run are not there until their plugin"
        " has registered. It ends and makes anew what runs in a pod whose cgroup is not where it makes cgroups now, as"
        " after a change of cgroupDriver or cgroupRoot. Kubernetes 1.36 and 1.37 do not look whether a pod has CPUs as"
        " a whole (gate PodLevelResourceManagers): it is refused, or given others, and those that it had are lost. A"
        " pod that is refused is ended, and is not started again.",
        "Drain the node before its kubelet is restarted, as a change with the role kubelet does then. Until then, do"
        " not restart it, or give up what the pods could be refused for.",
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


def _with_settings(check: Check) -> Check:
    """Return a check with the settings whose differences are findings of it."""
    settings = tuple(name for name, setting in SETTINGS.items() if setting.check == check.id)
    return check._replace(subjects=check.subjects + settings)


CHECKS = {check.id: _with_settings(check) for check in _ALL}
_BY_SUBJECT = {subject: check for check in CHECKS.values() for subject in check.subjects}


def check_of_subject(subject: str) -> Check:
    """Return the check of a subject of drift, as drift_info names it."""
    kind, space, _rest = subject.partition(" ")
    return _BY_SUBJECT.get(kind + space) or CHECKS["field-differs"]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the page of errors, and the causes and remedies that the code does not have."""

from __future__ import annotations

from typing import NamedTuple

# The check of the drift report that finds what keeps a kubelet from starting.
_START = "kubelet-would-not-start"


class Section(NamedTuple):
    """A part of the page, and which refusals belong to it: by what words them, or by what they are."""

    title: str
    about: str
    # As Refusal.place has them.
    places: str
    made: str = ""
    # The id of the check that finds them; empty where a kubelet starts.
    check: str = _START
    # In a line with one of these words, they are the reason of what the line begins with.
    within: tuple[str, ...] = ()


# What Go says of a value.
VALUES = "Single values"

SECTIONS = (
    Section(
        "Pods that are not admitted",
        "The kubelet runs, and refuses a pod. The reason stands in the pod's status, the text in its message.",
        "policy/(manager|static|assignment).py",
        "Admission|SMTAlignmentError|AllocationError|EmptyPodPoolError|TakeError",
        check="",
    ),
    Section(
        "CPU manager: policy and options",
        "What the CPU manager refuses of its policy, its options and the reservation that it needs.",
        "_kubelet/start/checks.py:(check_decoded|_Check)|policy/(options|reservation|static|assignment).py",
    ),
    Section(
        "CPU manager: checkpoint",
        "The file cpu_manager_state does not go with the configuration or the node's CPUs, or is damaged. What removes"
        " it without need takes the exclusive CPUs from running pods: "
        ":ansplugin:`kubenode.cpu_manager.checkpoint#module` repairs it instead.",
        "state/(acceptance|decoding|formats|checkpoint).py|_node/start_check.py:(?!with_unit|_finding_of).*",
        check="checkpoint-refused",
        within=("start cpu manager error", "CPU manager checkpoint file"),
    ),
    Section(
        "Topology manager",
        "What the topology manager refuses of its policy, its options and the machine.",
        "_kubelet/start/managers.py:(?!MemoryCheck|_is_memory).*|policy/hints.py",
    ),
    Section(
        "Memory manager",
        "What the memory manager refuses of its policy and of reservedMemory.",
        "_kubelet/start/managers.py:(MemoryCheck|_is_memory)",
    ),
    Section(
        "Memory manager: state",
        "The file memory_manager_state does not go with the configuration or the node's memory, or is damaged. Drain"
        " the node, stop the kubelet and take the file out of the way before it starts again.",
        "state/memory_.*.py",
        check="memory-state-refused",
        within=("start memory manager error", "memory manager checkpoint file"),
    ),
    Section(
        "Other checkpoints",
        "A file that the kubelet restores for in-place resizing of pods or for dynamic resource allocation is damaged.",
        "_node/start_check.py:_finding_of|state/restored.py",
    ),
    Section(
        "Reserved CPUs and memory, eviction",
        "What is reserved for the system, and whether the node has so much.",
        "_kubelet/start/reservations.py|_kubelet/start/surroundings.py:(creation_|_soft_|_log_|_sysctl_|_with_dots|_refused).*",
    ),
    Section(
        "Cgroups, kernel and swap",
        "What the node has to have beside its configuration.",
        "_kubelet/start/surroundings.py:(?!serving_|address_|_is_).*",
    ),
    Section(
        "Feature gates",
        "Gates that a version of Kubernetes does not have, or does not let be switched.",
        "_kubelet/start/checks.py",
    ),
    Section(
        "Fields of the configuration",
        'Behind "failed to validate kubelet configuration, error:". Several refusals stand in one line.',
        "_kubelet/start/(validation|other_fields|fields|surroundings).py",
    ),
    Section(
        "Files of the configuration",
        "The --config file, or a drop-in of --config-dir, cannot be read or decoded.",
        "_kubelet/start/(loading|decode).py",
    ),
    Section("Flags", "The command line.", "_kubelet/(flags|start/command_line).py"),
    Section("The unit", "What systemd says, which does not start the kubelet then.", "_node/start_check.py:with_unit"),
    Section(
        VALUES,
        "What Go says of a value that it cannot read. It stands behind one of the texts above, which names the field,"
        " the flag or the file. Correct the value.",
        "(?!_kubelet/start/reservations.py:(threshold|soft_faults|_faults|_check_|_parsed|_share)).*",
        "GoError|FaultError|PartError",
    ),
)

# The code predicts the refusals of pods, and has no remedies for them: nothing is wrong with the node.
ADMISSIONS = {
    "SMTAlignmentError": (
        "the policy has full-pcpus-only, and the pod does not fit into whole cores that are free",
        "request CPUs in multiples of the threads of a core, free cores, or drop full-pcpus-only",
    ),
    "TopologyAffinityError": (
        "no NUMA nodes serve all of the pod's resources as the topology manager's policy wants it",
        "request less than one NUMA node has, or take the policy best-effort, or another node",
    ),
    "UnexpectedAdmissionError": (
        "the node has not so many CPUs left that no other container has for itself",
        "free CPUs, reserve fewer, or take another node: allocation_plan predicts how many are left",
    ),
}
# What the code words without a cause, as nobody has met it or as other refusals come first, by the first words.
EXPLAINED = {
    "Allocate failed due to": ADMISSIONS["UnexpectedAdmissionError"],
    "Pod Scope pod with pod-level resources": (
        (
            "as a whole the pod does not fit as the topology manager's policy wants it; or, which the text does not"
            " say, its containers with CPUs of their own leave none to those that share the rest; or a kubelet 1.36 or"
            " 1.37 has started anew, and does not see that the pod has CPUs"
        ),
        (
            "allocation_plan says which of these it is, in why; give the pod more CPUs than its containers have for"
            " themselves, and drain the node before its kubelet is restarted"
        ),
    ),
    "pod rejected, ": (
        (
            "containers with limits of cpu and memory that equal their requests have these for themselves, and together"
            " all that the pod has, so that nothing is left for those that share the rest"
        ),
        "give the pod more in spec.resources, or its containers less for themselves",
    ),
    "accounting error": (
        "the kubelet miscounts when it distributes CPUs over NUMA nodes",
        "request another number of CPUs, or drop distribute-cpus-across-numa",
    ),
    "failed to allocate cpus": (
        "the kubelet finds no way to take so many CPUs from those that are free",
        "request another number of CPUs, or free some",
    ),
    "the kubelet would never return": (
        "with these options the kubelet distributes the rest of the CPUs in an endless loop, and says nothing",
        "request another number of CPUs, or drop distribute-cpus-across-numa",
    ),
    "[cpumanager] unable to build the reserved physical CPUs": (
        "a reserved CPU is not among those of the node",
        "take others",
    ),
    "unknown scope": ("there is no such scope of the topology manager", "write container or pod"),
    "cannot discover NUMA topology": (
        "the node's files do not give the distances of its NUMA nodes",
        "drop prefer-closest-numa-nodes",
    ),
}

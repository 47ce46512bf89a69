# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of what a node is looked at for only where that is wanted, as LOOKS in check.py has it. Pure."""

from __future__ import annotations

from .check import CACHE, HOUSEKEEPING, ISOLATION, NOTE, THROTTLING, WARNING, Check

WARNINGS = (
    Check(
        "exclusive-cpus-disturbed",
        WARNING,
        "A container did not have its exclusive CPUs to itself",
        "During the measurement, something else ran on these CPUs: another container, a service, a kernel thread, or"
        " interrupts. A cpuset keeps a container on its CPUs. It does not keep other processes off them.",
        "Do what the finding says; it depends on what ran there. See docs/docsite/rst/isolation.rst.",
        look=ISOLATION,
    ),
    Check(
        "exclusive-cpus-with-quota",
        WARNING,
        "Exclusive CPUs have a quota",
        "The kernel can throttle the container although nothing else uses its CPUs, because quotas are filled up and"
        " used up in slices. From Kubernetes 1.33 on, the kubelet sets no quota where it gives exclusive CPUs.",
        "Do what the finding says; it depends on the version of the kubelet. See docs/docsite/rst/throttling.rst.",
        look=THROTTLING,
    ),
    Check(
        "limit-below-request",
        WARNING,
        "A quota is less than the exclusive CPUs below it",
        "The container cannot fully use its exclusive CPUs: the kernel stops it for a part of each period.",
        "Remove the quota, or raise it to the number of these CPUs. See docs/docsite/rst/throttling.rst.",
        look=THROTTLING,
    ),
    Check(
        "host-on-exclusive-cpus",
        WARNING,
        "The host's own work may run on CPUs that are not reserved for it",
        "The kubelet keeps other pods off exclusive CPUs. Services, interrupts and the kernel's own work run wherever"
        " their settings allow it, on exclusive CPUs, too.",
        "Do what the finding says; it depends on the layer. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "kernel-line-not-booted",
        WARNING,
        "The configured command line of the kernel differs from the booted one",
        "The kernel reads its command line when it starts, so the configured one has no effect yet.",
        "Drain the node and reboot it. See docs/docsite/rst/housekeeping.rst.",
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
        " docs/docsite/rst/cache.rst.",
        look=CACHE,
    ),
    Check(
        "cache-partition-differs",
        WARNING,
        "The caches are divided otherwise than they are to be",
        "Masks, mode or CPUs of our groups differ from the settings and the checkpoint. So some exclusive"
        " CPUs share their ways, or others have too few.",
        "Run the role cache, or wait for the next pass of the role reconcile. See docs/docsite/rst/cache.rst.",
        look=CACHE,
    ),
    Check(
        "cache-foreign-group",
        WARNING,
        "A resctrl group of a different program has exclusive CPUs, or ways of theirs",
        "What runs in that group fills the ways that were set apart. We leave groups of others alone.",
        "Give that group other ways or CPUs, or remove it. See docs/docsite/rst/cache.rst.",
        look=CACHE,
    ),
)

NOTES = (
    Check(
        "container-throttled",
        NOTE,
        "A container was throttled often",
        "It used up its quota in many periods, and the kernel stopped it until the next period began.",
        "Raise the limit, or let the container run fewer threads at once. See docs/docsite/rst/throttling.rst.",
        look=THROTTLING,
    ),
    Check(
        "interrupts-not-movable",
        NOTE,
        "The kernel handles interrupts on CPUs that are not reserved, and they cannot be moved",
        "If a driver has a queue for each CPU, such as that of NVMe, the kernel manages the interrupts of these queues."
        " The interrupts of a queue occur when a process on its CPUs uses the device. Older kernels show that only by"
        " an error, which the role housekeeping remembers until the next boot.",
        "Boot with isolcpus=managed_irq, or give the device fewer queues. See docs/docsite/rst/housekeeping.rst.",
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
        " docs/docsite/rst/housekeeping.rst.",
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
        " docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "kernel-line-odd",
        NOTE,
        "The kernel's command line does not fit the reserved CPUs",
        "An argument names wrong CPUs, or is invalid, and then the kernel ignores it.",
        "Correct the argument, then drain the node and reboot it. See docs/docsite/rst/housekeeping.rst.",
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
        "Give the exclusive CPUs fewer ways. See docs/docsite/rst/cache.rst.",
        look=CACHE,
    ),
    Check(
        "cache-cores-split",
        NOTE,
        "A core has CPUs of two kinds, so its class of the cache is that of one of them",
        "Where bandwidth can be limited, both threads of a core may get the lower of their limits. So a core is in one"
        " group as a whole, and a shared CPU beside an exclusive one has its ways, too.",
        "Set the policy option full-pcpus-only. See docs/docsite/rst/cache.rst.",
        look=CACHE,
    ),
    Check(
        "cache-class-by-runtime",
        NOTE,
        "Processes are in a resctrl group of a different program",
        "The group of a process comes before that of its CPU. So a container that its runtime has put into a class has"
        " the ways of that class, also on exclusive CPUs.",
        "Take the class away from the pod (its annotation rdt.resources.beta.kubernetes.io), if its CPUs are to count."
        " See docs/docsite/rst/cache.rst.",
        look=CACHE,
    ),
    Check(
        "cache-unmeasured",
        NOTE,
        "How the caches are divided could not be read, or not all of it",
        "Whether exclusive CPUs have ways of the caches to themselves is not known.",
        "Do what the message says, or take cache out of drift_report_look_at.",
        look=CACHE,
    ),
)

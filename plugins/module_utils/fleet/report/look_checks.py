# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of what a node is looked at for only where that is wanted, as LOOKS in check.py has it. Pure."""

from __future__ import annotations

from .check import HOUSEKEEPING, ISOLATION, NOTE, THROTTLING, WARNING, Check

WARNINGS = (
    Check(
        "exclusive-cpus-disturbed",
        WARNING,
        "A container did not have its exclusive CPUs to itself",
        "While the node was looked at, others ran on these CPUs: another container, a service, a kernel thread, or"
        " interrupts. A cpuset keeps a container on its CPUs. It does not keep others off them.",
        "Do what the finding says; it depends on who ran there. See docs/docsite/rst/isolation.rst.",
        look=ISOLATION,
    ),
    Check(
        "exclusive-cpus-with-quota",
        WARNING,
        "Exclusive CPUs have a quota",
        "The kernel can throttle the container on CPUs that nobody else uses, as quotas are filled up and used up in"
        " slices. From Kubernetes 1.33 on, the kubelet sets no quota there.",
        "Do what the finding says; it depends on the version of the kubelet. See docs/docsite/rst/throttling.rst.",
        look=THROTTLING,
    ),
    Check(
        "limit-below-request",
        WARNING,
        "A quota is less than the exclusive CPUs below it",
        "The container cannot use all of the CPUs that it has for itself: it stands still for a part of each period.",
        "Take the quota away, or raise it to the number of these CPUs. See docs/docsite/rst/throttling.rst.",
        look=THROTTLING,
    ),
    Check(
        "host-on-exclusive-cpus",
        WARNING,
        "The host's own work may run on CPUs that are not reserved for it",
        "The kubelet keeps pods off the CPUs of others. Services, interrupts and the kernel's own work run wherever"
        " their settings let them, on exclusive CPUs too.",
        "Do what the finding says; it depends on the layer. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "kernel-line-not-booted",
        WARNING,
        "The kernel's command line is configured otherwise than it was booted",
        "The kernel reads its command line when it starts, so what is configured does not count yet.",
        "Drain the node and boot it. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
)

NOTES = (
    Check(
        "container-throttled",
        NOTE,
        "A container was throttled often",
        "It used up its quota in many periods, and stood still until the next one began.",
        "Raise the limit, or let the container run fewer threads at once. See docs/docsite/rst/throttling.rst.",
        look=THROTTLING,
    ),
    Check(
        "interrupts-not-movable",
        NOTE,
        "The kernel handles interrupts on CPUs that are not reserved, and lets nobody move them",
        "A driver that has a queue for each CPU, as of NVMe, leaves the interrupts of these queues to the kernel. Those"
        " of a queue come when somebody on its CPUs uses the device.",
        "Boot with isolcpus=managed_irq, or give the device fewer queues. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "housekeeping-not-lasting",
        NOTE,
        "Slices are on the reserved CPUs, and no file of systemd keeps them there",
        "When systemd starts a slice anew, at the latest when the node is booted, it may run everywhere.",
        "Set AllowedCPUs= of these slices in a drop-in file. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "partition-invalid",
        NOTE,
        "A cgroup is made a partition, and the kernel does not take it for one",
        "Its CPUs are not its own: others run there, and the kernel balances load over them. The kernel gives the"
        " reason in cpuset.cpus.partition, as that another cgroup has the same CPUs.",
        "Do what the reason says, then write the kind of the partition again. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "kernel-line-odd",
        NOTE,
        "The kernel's command line does not go with the reserved CPUs",
        "An argument for some CPUs names others, or cannot be read, and then the kernel takes none of it.",
        "Correct the argument, then drain the node and boot it. See docs/docsite/rst/housekeeping.rst.",
        look=HOUSEKEEPING,
    ),
    Check(
        "weights-by-two-formulas",
        NOTE,
        "The kubelet and the container runtime make weights by different formulas",
        "Containers have other weights than the pods that they are in, so what they get under load differs from what"
        " they request.",
        "Bring the older one of the two to a version with the new formula, then delete the pods.",
        look=THROTTLING,
    ),
    Check(
        "isolation-unmeasured",
        NOTE,
        "Who ran on the exclusive CPUs could not be measured, or not all of it",
        "Whether containers have their CPUs to themselves is not known.",
        "Do what the message says, or take isolation out of drift_report_look_at.",
        look=ISOLATION,
    ),
    Check(
        "throttling-unmeasured",
        NOTE,
        "Quotas and throttling could not be measured, or not all of it",
        "Whether containers are throttled is not known.",
        "Do what the message says, or take throttling out of drift_report_look_at.",
        look=THROTTLING,
    ),
    Check(
        "housekeeping-unmeasured",
        NOTE,
        "Where the host's own work may run could not be read, or not all of it",
        "Whether the host keeps to its reserved CPUs is not known.",
        "Do what the message says, or take housekeeping out of drift_report_look_at.",
        look=HOUSEKEEPING,
    ),
)

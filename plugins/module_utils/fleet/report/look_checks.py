# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of what a node is looked at for only where that is wanted: isolation and throttling. Pure."""

from __future__ import annotations

from .check import ISOLATION, NOTE, THROTTLING, WARNING, Check

WARNINGS = (
    Check(
        "exclusive-cpus-disturbed",
        WARNING,
        "A container did not have its exclusive CPUs to itself",
        "While the node was looked at, others ran on these CPUs: another container, a service, a kernel thread, or"
        " interrupts. A cpuset keeps a container on its CPUs. It does not keep others off them.",
        "Do what the finding says; it depends on who ran there. See docs/isolation.md.",
        look=ISOLATION,
    ),
    Check(
        "exclusive-cpus-with-quota",
        WARNING,
        "Exclusive CPUs have a quota",
        "The kernel can throttle the container on CPUs that nobody else uses, as quotas are filled up and used up in"
        " slices. From Kubernetes 1.33 on, the kubelet sets no quota there.",
        "Do what the finding says; it depends on the version of the kubelet. See docs/throttling.md.",
        look=THROTTLING,
    ),
    Check(
        "limit-below-request",
        WARNING,
        "A quota is less than the exclusive CPUs below it",
        "The container cannot use all of the CPUs that it has for itself: it stands still for a part of each period.",
        "Take the quota away, or raise it to the number of these CPUs. See docs/throttling.md.",
        look=THROTTLING,
    ),
)

NOTES = (
    Check(
        "container-throttled",
        NOTE,
        "A container was throttled often",
        "It used up its quota in many periods, and stood still until the next one began.",
        "Raise the limit, or let the container run fewer threads at once. See docs/throttling.md.",
        look=THROTTLING,
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
)

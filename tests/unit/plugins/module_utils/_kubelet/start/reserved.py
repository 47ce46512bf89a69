# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reservations of a machine of 8 CPUs and 16 GiB, and what the kubelet says of them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.reservations import Reservations
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import host

MACHINE = host()  # of 8 CPUs and 16 GiB
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
KUBE, SYSTEM, QOS = (
    "--%s value failed to parse: " % flag for flag in ("kube-reserved", "system-reserved", "qos-reserved")
)
NODE_ALLOCATABLE = "invalid Node Allocatable configuration. "


def read(values: dict[str, Any], machine: Host = MACHINE) -> Reservations:
    reservations = Reservations(values, machine)
    for finding in reservations.findings:
        assert finding.cause
        assert finding.remedy
    return reservations


def told(values: dict[str, Any], machine: Host = MACHINE) -> list[tuple[str, str, str]]:
    return [(finding.where, finding.context, finding.text) for finding in read(values, machine).findings]


def allocatable(
    values: dict[str, Any], machine: Host = MACHINE, with_cpus: bool = True
) -> list[tuple[str, str] | Unknown]:
    found: list[tuple[str, str] | Unknown] = []
    for answer in read(values, machine).node_allocatable(with_cpus):
        if isinstance(answer, Finding):
            assert answer.fatal
            assert answer.context == NODE_ALLOCATABLE
            found.append((answer.where, answer.text))
        else:
            found.append(answer)
    return found

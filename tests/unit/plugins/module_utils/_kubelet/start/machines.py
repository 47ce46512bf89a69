# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines with cgroups of either version, and what the checks of a kubelet's surroundings say of them."""

from __future__ import annotations

from typing import Any, Iterable

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import host

V2 = host()
V1 = host(cgroup_v1=True)
SYSTEMD = {"cgroupDriver": "systemd"}


def cgroups(*there: str, machine: Host = V2) -> Host:
    """Return the machine, with these cgroups."""
    return machine._replace(lacks_cgroup=lambda path: [] if path in there else ["/sys/fs/cgroup"])


def told(found: Iterable[Finding | Unknown]) -> list[tuple[str, str]]:
    """Return [(where, text or reason)]"""
    listed = list(found)
    for answer in listed:
        assert isinstance(answer, Unknown) or (answer.fatal and answer.cause and answer.remedy)
    return [(answer.where, answer.reason if isinstance(answer, Unknown) else answer.text) for answer in listed]


def enforced(*what: str, **values: Any) -> dict[str, Any]:
    return {"enforceNodeAllocatable": list(what), **values}


CPU = {"cpu": "500m"}
FOO, BAR = "kubeReservedCgroup", "systemReservedCgroup"

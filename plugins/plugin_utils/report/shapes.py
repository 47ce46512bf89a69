# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shapes of a report and its parts, as docs/schema/report-1.json describes them. Types only."""

from __future__ import annotations

from typing import Any, Literal, Mapping, TypedDict

# What is counted of a check.
Count = Literal["nodes", "waived", "new"]


class Waived(TypedDict):
    """Why a finding does not count, and the last day on which it does not."""

    reason: str
    until: str


class ReportedFinding(TypedDict):
    """What is wrong with one subject of a node."""

    check: str
    severity: str
    subject: str
    wanted: str
    found: str
    source: str
    text: str
    remedy: str
    waived: Waived | None
    # "new" or "known"; empty without a baseline.
    since: str
    # When the first of the reports was made that had it, each compared with the one before; empty without a baseline.
    first_seen: str


class ReportedDifference(TypedDict):
    """A difference that a node has returned."""

    subject: str
    found: str
    wanted: str
    remedy: str
    source: str
    # Whether the kubelet refuses it with its present settings, too.
    refused_now: bool


class ReportedView(TypedDict):
    """What is shown of the answer of a node."""

    host: str
    status: str
    message: str
    rows: list[ReportedDifference]
    actions: str
    containers: dict[str, str]
    refusals: list[str]
    refusal_kinds: list[str]
    elsewhere: dict[str, str]
    notes: list[str]


class ReportedNode(TypedDict):
    """A node in a report."""

    host: str
    state: str
    looked_at: str
    group: int | None
    message: str
    findings: list[ReportedFinding]
    ways: list[dict[str, object]]
    actions: str
    refusals: list[str]
    elsewhere: dict[str, str]
    containers: dict[str, str]
    pools: dict[str, str]
    # Each is its use, its owner and its CPUs.
    owners: list[list[str]]


class ContainerPlace(TypedDict):
    """Where a container is. since: when it started; both this and throttled_percent only with the look throttling."""

    pod: str
    container: str
    # "exclusive", "pod" for CPUs that its pod has as a whole, or "shared".
    use: str
    cpus: str
    # "whole" or "split"; empty for shared CPUs, and where it is not known.
    cores: str
    numa_nodes: str
    caches: str
    throttled_percent: float | None
    since: str


class HostUse(TypedDict):
    """What the host's part of a node has used, as throttling_info counts it; its CPUs, and what it reserves."""

    boot: str
    uptime: float
    total_us: int
    pods_us: int
    pressure_us: int | None
    memory_bytes: int | None
    cpus: int
    reserved: int
    reserved_memory_bytes: int | None


class MeasuredNode(ReportedNode, total=False):
    """A node that may have been measured, too. looks: by the name of the look. answer: what collected() returns."""

    looks: dict[str, dict[str, Any]]
    places: list[ContainerPlace]
    host_use: HostUse
    answer: Mapping[str, Any]


class CheckCount(TypedDict):
    """How many nodes have a finding of a check: one that counts, a waived one, a new one."""

    check: str
    severity: str
    nodes: int
    waived: int
    new: int


class ReportedSummary(TypedDict):
    """A report in figures."""

    nodes: int
    states: dict[str, int]
    checks: list[CheckCount]
    gone: int | None
    outcome: str
    exit_status: int


class ReportedGroup(TypedDict):
    """Nodes of one shape. map: how their CPUs are drawn; None where the topology was not read."""

    id: int | None
    machine: str
    map: dict[str, object] | None
    kernel: str
    # The distribution and the version.
    kubelet: str
    distribution: str
    runtime: str
    settings: dict[str, str]
    nodes: int
    states: dict[str, int]


class CheckText(TypedDict):
    """What a check means."""

    severity: str
    title: str
    why: str
    remedy: str
    page: str


class UnusedFile(TypedDict):
    """A result file that was not used, and why."""

    file: str
    text: str
    remedy: str


class GoneFinding(TypedDict):
    """A finding of the baseline that its node no longer has."""

    host: str
    check: str
    subject: str


class Report(TypedDict):
    """The report of a fleet."""

    schema_version: str
    kind: str
    fleet: str
    title: str
    made: str
    summary: ReportedSummary
    groups: list[ReportedGroup]
    problems: list[UnusedFile]
    # Empty without a baseline.
    gone: list[GoneFinding]
    checks: dict[str, CheckText]
    nodes: list[MeasuredNode]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes of a fleet by what is proposed for them, and whether their kubelets would start with it. Pure."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._base.versions import NEWEST_MINOR, minor_version
from ...module_utils.topology.model import Topology
from ..report.answers import FAILED, NO_KUBELET, UNREACHABLE, WRONG, collected, items, line, mapping
from .settings import PREFIX, Line, SettingsWish, Shape, propose, shape_of, short_hash

# What a host is called in an inventory as it is: other names would be ranges, ports or templates there.
_NAME = re.compile(r"\w[\w.-]*")

_LEAVE_OUT = "correct that, or leave these hosts out with cpu_manager_hosts"

# The kinds of refusals that are about what is proposed; all others are about the node as it is today.
_OF_PROPOSAL = frozenset(("would_not_start", "configuration", "no_kubelet"))


class ProposedNode(NamedTuple):
    """One node: its name in the inventory, its machine, the minor version of its kubelet, and what is wanted of it."""

    host: str
    topology: Topology
    minor: int
    # Whether the version is not known, and the newest that is known here was taken.
    is_assumed: bool
    wish: SettingsWish


class NodeGroup(NamedTuple):
    """Nodes that get the same variables: the name of the group, what they have in common, and the variables."""

    name: str
    shape: Shape
    workload: str
    # In order, each once.
    minors: tuple[int, ...]
    is_assumed: bool
    hosts: tuple[str, ...]
    lines: tuple[Line, ...]


def read_nodes(
    plans: Mapping[str, object], wishes: Mapping[str, SettingsWish], skip_no_kubelet: bool
) -> list[ProposedNode]:
    """Return the nodes by their names, from their answers to rollout_info.

    Raises InputError for a host that was not read, with the reasons of all such hosts.
    """
    nodes, reasons = [], []
    for host in sorted(plans):
        answer = collected(host, plans[host])
        if answer["status"] == NO_KUBELET and skip_no_kubelet:
            continue
        try:
            nodes.append(_node(host, answer, wishes))
        except WRONG as error:
            reasons.append("%s: %s" % (line(host), line(str(error))))
    if reasons:
        raise InputError("\n".join(reasons), remedy=_LEAVE_OUT)
    if not nodes:
        raise InputError("there is no node to propose anything for")
    return nodes


def _node(host: str, answer: Mapping[str, Any], wishes: Mapping[str, SettingsWish]) -> ProposedNode:
    if not _NAME.fullmatch(host):
        raise InputError("an inventory file cannot have this name of a host", remedy="rename it")
    if answer["status"] in (FAILED, UNREACHABLE):
        raise InputError(answer["message"])
    if answer["status"] == NO_KUBELET:
        raise InputError(
            "there is no kubelet", remedy="set cpu_manager_skip_hosts_without_kubelet to leave out such hosts"
        )
    topology = Topology.from_dict(answer["topology"])
    version = mapping(answer.get("kubelet")).get("version")
    minor = minor_version(version) if version else NEWEST_MINOR
    return ProposedNode(host, topology, minor, not version, wishes[host])


def group_nodes(nodes: Iterable[ProposedNode]) -> list[NodeGroup]:
    """Return the groups, by name. Raises InputError where a reservation cannot be had of a machine, with all such
    groups."""
    members: dict[tuple[Shape, str], list[ProposedNode]] = {}
    wishes: dict[str, dict[str, SettingsWish]] = {}
    for node in nodes:
        shape, wish = shape_of(node.topology), plain(node.wish)
        members.setdefault((shape, short_hash(wish)), []).append(node)
        wishes.setdefault(_name(shape, node.wish), {})[short_hash(wish)] = node.wish
    groups, reasons = [], []
    for (shape, wish_hash), alike in members.items():
        name = _name(shape, alike[0].wish)
        # Nodes of one shape and workload of which other things are wanted.
        if len(wishes[name]) > 1:
            name = "%s_wish_%s" % (name, wish_hash)
        try:
            groups.append(_group(name, shape, sorted(alike)))
        except InputError as error:
            reasons.append(str(error))
    if reasons:
        raise InputError("\n".join(sorted(reasons)), remedy=_LEAVE_OUT)
    return sorted(groups)


def plain(wish: SettingsWish) -> dict[str, Any]:
    """Return a wish as plain data."""
    return {**wish._asdict(), "reservation": dict(wish.reservation)}


def _name(shape: Shape, wish: SettingsWish) -> str:
    return "%s_%s" % (wish.workload, shape.name)


def _group(name: str, shape: Shape, nodes: Sequence[ProposedNode]) -> NodeGroup:
    first = nodes[0]
    minors = tuple(sorted({node.minor for node in nodes}))
    try:
        lines = propose(shape, first.topology, minors[0], first.wish)
    except InputError as error:
        raise error.within("%s (%s)" % (name, ", ".join(node.host for node in nodes))) from error
    return NodeGroup(
        name,
        shape,
        first.wish.workload,
        minors,
        any(node.is_assumed for node in nodes),
        tuple(node.host for node in nodes),
        tuple(lines),
    )


class ProposalVerdict(NamedTuple):
    """What the nodes' plans with the proposal say: why it must not be written, and what is better known before."""

    refusals: tuple[str, ...]
    notes: tuple[str, ...]


def judge(groups: Iterable[NodeGroup], plans: Mapping[str, object]) -> ProposalVerdict:
    """Return whether every kubelet would start with what is proposed. plans: the answers of rollout_info with it."""
    hosts = sorted(host for group in groups for host in group.hosts)
    verdicts = {host: _verdict(collected(host, plans.get(host))) for host in hosts}
    return ProposalVerdict(
        tuple("%s: %s" % (host, refusal) for host, verdict in verdicts.items() for refusal in verdict.refusals),
        tuple("%s: %s" % (host, note) for host, verdict in verdicts.items() for note in verdict.notes),
    )


def _verdict(answer: Mapping[str, object]) -> ProposalVerdict:
    """Return what the plan of one node says."""
    if answer["status"] in (FAILED, UNREACHABLE, NO_KUBELET):
        return ProposalVerdict((line(answer.get("message", "there is no kubelet")),), ())
    refusals, notes = [], []
    for refusal in map(mapping, items(answer.get("refusals"))):
        parts = (line(refusal.get("where", "")), line(refusal.get("text", "")))
        said = "; ".join(filter(None, (": ".join(filter(None, parts)), line(refusal.get("remedy", "")))))
        if refusal.get("kind") in _OF_PROPOSAL:
            refusals.append(said)
        else:
            notes.append("today a rollout would refuse: %s" % said)
    # None where it depends on what cannot be seen.
    if answer.get("starts", False) is False and not refusals:
        refusals.append("its kubelet would not start")
    notes += [
        "whether its kubelet starts depends on: %s" % line(mapping(doubt).get("reason", ""))
        for doubt in items(answer.get("unknown"))
    ]
    return ProposalVerdict(tuple(refusals), tuple(notes))


def conflicts(groups: Iterable[NodeGroup], given: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return where the inventory has another value than the proposal. given: {host: {variable: value}}."""
    found: dict[str, list[str]] = {}
    for group in groups:
        # Of these two only one is taken.
        proposed = dict.fromkeys((PREFIX + "reserved_system_cpus", PREFIX + "reservation"))
        proposed.update({row.variable: row.value for row in group.lines})
        for host in group.hosts:
            for variable, value in mapping(given.get(host)).items():
                if value is not None and variable in proposed and value != proposed[variable]:
                    found.setdefault(variable, []).append(host)
    return [
        "%s has another value in the inventory of %s, and one of a deeper group or of a host wins: remove it there"
        % (variable, ", ".join(sorted(hosts)))
        for variable, hosts in sorted(found.items())
    ]

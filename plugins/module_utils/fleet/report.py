# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the nodes of a fleet answered, as a report. It runs on the controller. Pure.

A node may be hostile: every part of its answer may be missing, of another type, or meant to become markup or an escape
sequence. So nothing but view() reads an answer, and what view() gives has one shape: texts without control characters,
of limited length, in lists of limited length. The forms of the report are made of views alone.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Iterable, Mapping

from ..cpuset import CPUSet
from ..errors import CPUManagerError
from ..topology.layout import layout
from ..topology.model import Topology

FAILED, UNREACHABLE, NO_KUBELET = "failed", "unreachable", "no kubelet"

# What Ansible adds to an answer, and what a node has no say in.
_NOT_ANSWERED = frozenset(("changed", "failed", "ansible_facts", "host"))

# More than any real node has.
_LONGEST_TEXT = 20000
_MOST_ROWS = 1000
_MOST_CPUS = 8192
_MOST_GROUPS = 1024

_USES = ("exclusive", "reserved", "shared", "offline")
_POOLS = ("online", "reserved", "exclusive", "shared", "offline", "isolated")
_KINDS = {"socket": "socket", "numa_node": "NUMA node", "l3_cache": "L3"}

# What reading a wrong answer raises; CPUManagerError is what the types of the core raise.
_WRONG = (CPUManagerError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


# --- the report as data -------------------------------------------------------------------------------


def collect(answers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One dict for each host, as drift.json has it: the answer, with C(host), whatever the host answered.

    answers: {host: the result of rollout_info}; None or nothing for a host that was not reached.
    """
    return [_collected(str(host), answer) for host, answer in answers.items()]


def _collected(host: str, answer: Any) -> dict[str, Any]:
    try:
        # Plain data: what cannot be written as JSON must not keep the others from being written.
        answer = json.loads(json.dumps(answer, allow_nan=False))
    except _WRONG as error:
        return {"host": host, "status": FAILED, "message": "the answer of the node cannot be read: %s" % error}
    if not isinstance(answer, dict):
        answer = {}
    if answer.get("failed"):
        return {"host": host, "status": FAILED, "message": answer.get("msg", "failed without a message")}
    if "status" in answer:
        return {"host": host, **{key: value for key, value in answer.items() if key not in _NOT_ANSWERED}}
    return {"host": host, "status": UNREACHABLE, "message": answer.get("msg", "the node could not be reached")}


# --- what is shown of a node --------------------------------------------------------------------------


def view(node: Mapping[str, Any]) -> dict[str, Any]:
    """What a page or a table shows of one dict of collect(). It raises nothing."""
    problems: list[str] = []
    return {
        "host": line(node.get("host", "")),
        "status": line(node.get("status", "")),
        "message": text(node["message"]) if "message" in node else "",
        "machine": _machine(_mapping(node.get("topology"))),
        "rows": _rows(node),
        "actions": ", ".join(line(action) for action in _list(node.get("actions"))).replace("_", " "),
        "checkpoint": _checkpoint(_mapping(node.get("checkpoint"))),
        "containers": _containers(_mapping(node.get("enforcement"))),
        "refusals": [_refusal(_mapping(refusal)) for refusal in _list(node.get("refusals"))],
        "elsewhere": _elsewhere(_mapping(node.get("elsewhere"))),
        "map": _map(node, problems),
        "pools": _pools(node),
        "notes": [text(note) for note in _list(node.get("notes"))] + problems,
    }


def _rows(node: Mapping[str, Any]) -> list[dict[str, str]]:
    rows = []
    for difference in map(_mapping, _list(node.get("drift"))):
        row = {name: text(difference.get(name)) for name in ("subject", "found", "wanted")}
        rows.append({**row, "remedy": text(difference["remedy"]) if "remedy" in difference else ""})
    return rows


def _machine(topology: Mapping[str, Any]) -> str:
    if not topology:
        return ""
    try:
        online = len(CPUSet.parse(topology["online"]))
    except _WRONG:
        return ""
    counts = (("sockets", "socket"), ("numa_nodes", "NUMA node"), ("l3_caches", "L3 cache"), ("cores", "core"))
    return ", ".join(["%d CPUs online" % online, *(counted(topology.get(key), name) for key, name in counts)])


def _checkpoint(checkpoint: Mapping[str, Any]) -> str:
    return text(checkpoint.get("remedy", "")) if checkpoint.get("verdict") == "refused" else ""


def _containers(enforcement: Mapping[str, Any]) -> dict[str, str]:
    if not enforcement:
        return {}
    counts = _mapping(enforcement.get("containers"))
    return {
        "version": line(enforcement.get("version")),
        **{name: line(counts.get(name)) for name in ("kept", "different", "skipped")},
    }


def _refusal(refusal: Mapping[str, Any]) -> str:
    where, what, remedy = (text(refusal.get(name, "")) for name in ("where", "text", "remedy"))
    message = "%s: %s" % (where, what) if where else what
    return "%s; %s" % (message, remedy) if remedy else message


def _elsewhere(elsewhere: Mapping[str, Any]) -> dict[str, str]:
    return {name: text(elsewhere.get(name, "")) for name in ("name", "why", "snippet")} if elsewhere else {}


def _pools(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The CPUs of each use, with the owners of exclusive ones below."""
    cpus = _mapping(node.get("cpus"))
    owners = [own for own in map(_mapping, _list(node.get("owners"))) if own.get("use") == "exclusive"]
    pools = []
    for use in _POOLS:
        if cpus.get(use):
            pools.append({"name": use, "cpus": line(cpus[use]), "owner": False})
        if use == "exclusive":
            pools += [
                {"name": line(own.get("owner", "")), "cpus": line(own.get("cpus", "")), "owner": True} for own in owners
            ]
    return pools


# --- the map of the CPUs ------------------------------------------------------------------------------


def _map(node: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The boxes of a node's CPUs, and its offline CPUs; empty where they cannot be drawn, with why in `problems`."""
    described = _mapping(node.get("topology"))
    if not described:
        return {}
    try:
        if any(len(_mapping(described.get(kind))) > _MOST_GROUPS for kind in ("sockets", "numa_nodes", "l3_caches")):
            raise ValueError("it has more than %d groups of a kind" % _MOST_GROUPS)
        topology = Topology.from_dict(described)
        if len(topology.online | topology.offline) > _MOST_CPUS:
            raise ValueError("it has more than %d CPUs" % _MOST_CPUS)
        cells = _cells(node, topology)
        return {"boxes": _boxes(layout(topology), cells), "offline": [cells[cpu] for cpu in topology.offline]}
    except _WRONG as error:
        problems.append(text("the CPUs are not drawn, as the topology cannot be read: %s" % error))
        return {}


def _cells(node: Mapping[str, Any], topology: Topology) -> dict[int, dict[str, Any]]:
    """Each CPU with its classes and its title."""
    pools = _mapping(node.get("cpus"))
    isolated, wanted = (CPUSet.parse(pools.get(name) or "") for name in ("isolated", "reserved_wanted"))
    owned: dict[int, tuple[str, str, bool]] = {}
    for number, own in enumerate(map(_mapping, _list(node.get("owners")))):
        use = own.get("use")
        if use in _USES:
            owner = line(own.get("owner") or "")
            # Neighbours with exclusive CPUs are told apart.
            owned.update(dict.fromkeys(CPUSet.parse(own["cpus"]), (use, owner, bool(owner) and number % 2 == 1)))
    cells = {}
    for cpu in topology.online | topology.offline:
        use, owner, odd = owned.get(cpu, ("unknown", "", False))
        title = "CPU %d: %s" % (cpu, use) + (" to " + owner if owner else "")
        classes = [use, *(["odd"] if odd else [])]
        if cpu in wanted:
            classes.append("wanted")
        if cpu in isolated:
            classes.append("isolated")
            title += ", isolated"
        if cpu in wanted:
            title += ", reserved in the wanted state"
        cells[cpu] = {"cpu": cpu, "classes": " ".join(classes), "title": title}
    return cells


def _boxes(members: Iterable[Any], cells: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
    boxes: list[dict[str, Any]] = []
    for member in members:
        if isinstance(member, list):
            boxes.append({"core": [cells[cpu] for cpu in member]})
        else:
            name = "%s %s" % (_KINDS[member["kind"]], "?" if member["id"] is None else member["id"])
            boxes.append({"kind": member["kind"], "name": name, "members": _boxes(member["members"], cells)})
    return boxes


# --- values of an answer ------------------------------------------------------------------------------


def text(value: Any) -> str:
    """Any value as text that can be shown: without control characters, apart from line ends, and not too long."""
    shown = value if isinstance(value, str) else _as_json(value)
    if len(shown) > _LONGEST_TEXT:
        shown = shown[:_LONGEST_TEXT] + " …"
    if shown.isprintable():
        return shown
    # ssh ends its lines as a terminal does.
    return "".join(map(_shown, re.sub(r"\r+(\n|\Z)", r"\1", shown).replace("\t", " ")))


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False).replace('"', "")
    except _WRONG as error:
        return "cannot be shown: %s" % error


def line(value: Any) -> str:
    """The same in one line."""
    return " ".join(text(value).split())


def _shown(character: str) -> str:
    """A character; what a terminal or a browser would obey, or could not show, as an escape."""
    if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return character
    code = ord(character)
    return "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code


def counted(things: Any, name: str) -> str:
    """`2 nodes`; `1 node`."""
    number = len(things) if isinstance(things, (Mapping, list)) else 0
    return "%d %s%s" % (number, name, "" if number == 1 else "s")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value[:_MOST_ROWS] if isinstance(value, list) else []

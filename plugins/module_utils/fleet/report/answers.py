# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the nodes of a fleet answered to rollout_info, as texts that can be shown. Pure."""

from __future__ import annotations

from typing import Any, Mapping

from ...cpuset import CPUSet
from ...quantity import counted
from .shapes import Row, View
from .texts import WRONG, items, line, mapping, plain, size, text

FAILED, UNREACHABLE, NO_KUBELET = "failed", "unreachable", "no kubelet"
CLEAN, NOTHING_WANTED, DRIFT = "clean", "nothing wanted", "drift"
# What rollout_info returns of a node that it could read.
STATUSES = (CLEAN, NOTHING_WANTED, DRIFT, NO_KUBELET)

# What Ansible adds to an answer. The arguments are in the inventory, and may be secret; an exception may be an object
# of Ansible's own.
_OF_ANSIBLE = frozenset(("invocation", "exception", "warnings", "deprecations", "ansible_facts", "changed"))
# What a node has no say in.
_NOT_ANSWERED = frozenset(("failed", "host"))


def answered(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a module answered, of the result of its task; with `failed`, `unreachable` and `msg` where it did not."""
    answer = {name: value for name, value in result.items() if name not in _OF_ANSIBLE and str(name)[:1] != "_"}
    # From ansible-core 2.19 on, a module that crashed has its message there alone.
    event = getattr(result.get("exception"), "event", None)
    if event is not None:
        answer.setdefault("msg", str(getattr(event, "msg", "")))
    return answer


def collect(answers: Mapping[str, object]) -> list[dict[str, Any]]:
    """One dict for each host: its answer with `host` and `status`, whatever the host answered.

    answers: {host: the result of rollout_info}; None or nothing for a host that was not reached.
    """
    return [collected(str(host), answer) for host, answer in answers.items()]


def collected(host: str, answer: object) -> dict[str, Any]:
    """The answer of one host, with `host` and `status`; with `message` where it could not be read."""
    try:
        # What cannot be written as JSON must not keep the others from being written.
        answer = plain(answered(answer) if isinstance(answer, Mapping) else answer)
    except WRONG as error:
        return {"host": host, "status": FAILED, "message": "the answer of the node cannot be read: %s" % error}
    if not isinstance(answer, dict):
        answer = {}
    if answer.get("failed"):
        return {"host": host, "status": FAILED, "message": answer.get("msg", "failed without a message")}
    if answer.get("status") in STATUSES:
        return {"host": host, **{key: value for key, value in answer.items() if key not in _NOT_ANSWERED}}
    if "status" in answer:
        message = "the answer of the node has the status %s, which is none" % text(answer["status"])
        return {"host": host, "status": FAILED, "message": message}
    return {"host": host, "status": UNREACHABLE, "message": answer.get("msg", "the node could not be reached")}


def view(node: Mapping[str, object]) -> View:
    """What is shown of one dict of collect(), as texts and lists of texts. It raises nothing."""
    return {
        "host": line(node.get("host", "")),
        "status": line(node.get("status", "")),
        "message": text(node["message"]) if "message" in node else "",
        "rows": _rows(node),
        "actions": ", ".join(line(action) for action in items(node.get("actions"))).replace("_", " "),
        "containers": _containers(mapping(node.get("enforcement"))),
        "refusals": [_refusal(mapping(refusal)) for refusal in items(node.get("refusals"))],
        "refusal_kinds": [line(mapping(refusal).get("kind", "")) for refusal in items(node.get("refusals"))],
        "elsewhere": _elsewhere(mapping(node.get("elsewhere"))),
        "notes": [text(note) for note in items(node.get("notes"))],
    }


def machine_of(topology: Mapping[str, Any]) -> str:
    """A topology in a few words; empty where it cannot be read."""
    if not topology:
        return ""
    try:
        online = len(CPUSet.parse(topology["online"]))
    except WRONG:
        return ""
    counts = (("sockets", "socket"), ("numa_nodes", "NUMA node"), ("l3_caches", "L3 cache"), ("cores", "core"))
    parts = [counted(size(topology.get(key)), name) for key, name in counts]
    return ", ".join(["%s online" % counted(online, "CPU"), *parts])


def _rows(node: Mapping[str, object]) -> list[Row]:
    return [
        {
            "subject": text(difference.get("subject")),
            "found": text(difference.get("found")),
            "wanted": text(difference.get("wanted")),
            "remedy": text(difference.get("remedy") or ""),
            "source": text(difference.get("source") or ""),
            "refused_now": difference.get("refused_now") is not False,
        }
        for difference in map(mapping, items(node.get("drift")))
    ]


def _containers(enforcement: Mapping[str, object]) -> dict[str, str]:
    if not enforcement:
        return {}
    counts = mapping(enforcement.get("containers"))
    return {
        "version": line(enforcement.get("version")),
        **{name: line(counts.get(name)) for name in ("kept", "different", "skipped")},
    }


def _refusal(refusal: Mapping[str, object]) -> str:
    where, what, remedy = (text(refusal.get(name, "")) for name in ("where", "text", "remedy"))
    message = "%s: %s" % (where, what) if where else what
    return "%s; %s" % (message, remedy) if remedy else message


def _elsewhere(elsewhere: Mapping[str, object]) -> dict[str, str]:
    return {name: text(elsewhere.get(name, "")) for name in ("name", "why", "snippet")} if elsewhere else {}

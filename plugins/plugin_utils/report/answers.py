# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the nodes of a fleet answered, as texts that can be shown. Pure."""

from __future__ import annotations

import calendar
import json
import re
import time
import unicodedata
from typing import Any, Callable, Dict, Mapping, Sequence

from ...module_utils._base.errors import MALFORMED, CPUManagerError, InputError
from ...module_utils._base.quantity import counted
from ...module_utils._kubelet.settings import SETTINGS
from ...module_utils.cpuset import CPUSet
from .shapes import ReportedDifference, ReportedView

# Values of a node's answer as texts that can be shown. Pure.
#
# A node may be hostile: every part of its answer may be missing, of another type, or meant to become markup or an
# escape sequence. A text of here has no control characters and a limited length; a list has a limited length.


# More than any real node has.
_LONGEST_TEXT = 20000
_MOST_ITEMS = 1000
# Of names in a line, those that are named.
_MOST_NAMED = 10
# Of the answer of a node as JSON, in characters; those of real nodes have a hundredth.
LARGEST_ANSWER = 4 << 20
# Of characters, those of which it is kept how they are shown. No language needs as many in one fleet.
_MOST_KEPT = 10000

# What reading a wrong answer raises; CPUManagerError is what the types of the core raise.
WRONG = (CPUManagerError, *MALFORMED)


def plain(answer: object, default: Callable[[object], object] | None = None) -> Any:
    """Return an answer as plain data that can be written. Raises WRONG, also for more than any real node answers.

    default: what is written in place of what JSON does not know.
    """
    written = json.dumps(answer, default=default, allow_nan=False)
    if len(written) > LARGEST_ANSWER:
        raise ValueError("it has %d characters, more than that of any real node" % len(written))
    return json.loads(written)


def text(value: Any) -> str:
    """Return any value as text that can be shown: without control characters, apart from line ends, and not too
    long."""
    shown = value if isinstance(value, str) else _as_json(value)
    if len(shown) > _LONGEST_TEXT:
        shown = shown[:_LONGEST_TEXT] + " …"
    if shown.isprintable():
        return shown
    # ssh ends its lines as a terminal does.
    return "\n".join(part.rstrip("\r") for part in shown.split("\n")).translate(_SHOWN)


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False).replace('"', "")
    except WRONG as error:
        return "cannot be shown: %s" % error


def line(value: object) -> str:
    """Return a value of a node's answer as text that can be shown, in one line."""
    return " ".join(text(value).split())


def few(names: Sequence[str]) -> str:
    """Return the first of these names, in one line, and how many more there are."""
    more = len(names) - _MOST_NAMED
    named = ", ".join(map(line, names[:_MOST_NAMED]))
    return "%s and %d more" % (named, more) if more > 0 else named


class _Shown(Dict[int, str]):
    """What each character is shown as: what a terminal or a browser would obey, or could not show, as an escape."""

    def __missing__(self, code: int) -> str:
        shown = chr(code)
        if unicodedata.category(shown) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            shown = "\\x%02x" % code if code < 0x100 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code
        if len(self) < _MOST_KEPT:
            self[code] = shown
        return shown


_SHOWN = _Shown({ord("\n"): "\n", ord("\t"): " "})


def size(things: object) -> int:
    """Return how many items there are; none in what is not a list."""
    return len(things) if isinstance(things, (Mapping, list)) else 0


def mapping(value: object) -> Mapping[str, Any]:
    """Return the value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> list[Any]:
    """Return the first items of a list; none of what is not a list."""
    return value[:_MOST_ITEMS] if isinstance(value, list) else []


# The same subject of a node seen five ways, one beside the other. Pure.


# What is wanted; what the files say, and the running kubelet; what the checkpoint says, and the kernel enforces.
WAYS = ("wanted", "files", "kubelet", "checkpoint", "kernel")
# Of a difference that is no setting: in which ways its wanted and its found value are seen. A subject that ends in a
# space is a beginning; what is not here is in the files.
_WAYS_OF = {
    "container ": ("checkpoint", "kernel"),
    "cgroup ": ("wanted", "kernel"),
    "isolated": ("wanted", "kernel"),
    "nohz_full": ("wanted", "kernel"),
    "checkpoint": ("wanted", "checkpoint"),
    "memory_state": ("wanted", "checkpoint"),
}


def ways_of(answer: Mapping[str, object], running: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return rows {"subject", "wanted", "files", "kubelet", "checkpoint", "kernel", "odd"}: texts, or None for "not
    read".

    running: {setting: value} as the running kubelet has them. "odd" lists the ways that stand out.
    """
    wanted, files = mapping(answer.get("wanted")), mapping(answer.get("found"))
    checkpoint = mapping(answer.get("checkpoint"))
    rows = []
    for name in SETTINGS:
        if name in wanted or name in files:
            policy = checkpoint.get("policy") if name == "cpu_manager_policy" else None
            values = (wanted.get(name), files.get(name), running.get(name), policy or None, None)
            rows.append(_row(name, values, [meaning_of(name, value) for value in values]))
    for difference in map(mapping, items(answer.get("drift"))):
        subject = difference.get("subject")
        if isinstance(subject, str) and subject not in SETTINGS:
            start, space, _name = subject.partition(" ")
            ways = _WAYS_OF.get(start + space, ("wanted", "files"))
            seen = dict(zip(ways, map(difference.get, ("wanted", "found"))))
            rows.append(_row(text(subject), [seen.get(way) for way in WAYS], [text(seen.get(way)) for way in WAYS]))
    return rows


def meaning_of(name: str, value: object) -> object:
    """Return what the kubelet makes of the value of a setting, as it writes "60s" as "1m0s"; a text where it takes
    none."""
    try:
        return SETTINGS[name].meaning(value)
    except WRONG:
        return text(value)


def _row(subject: str, values: Sequence[object], meanings: Sequence[object]) -> dict[str, object]:
    shown = {way: None if value is None else text(value) for way, value in zip(WAYS, values)}
    given = {way: meaning for way, value, meaning in zip(WAYS, values, meanings) if value is not None}
    return {"subject": subject, **shown, "odd": _odd(given)}


def _odd(given: Mapping[str, object]) -> list[str]:
    """Return the ways that differ from the wanted value; where none is, from what most have, or the first of equally
    many."""
    values = list(given.values())
    right = given["wanted"] if "wanted" in given else max(values, key=values.count, default=None)
    return [way for way, value in given.items() if value != right]


# Times and dates of a report, always in UTC. Pure.


_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_DATE = "%Y-%m-%d"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def time_of(seconds: float) -> str:
    """Return "2026-11-23T15:04:05Z" of seconds since the epoch."""
    return time.strftime(_FORMAT, time.gmtime(seconds))


def seconds_of(moment: object) -> int:
    """Return seconds since the epoch of "2026-11-23T15:04:05Z". Raises InputError."""
    return _parsed(moment, _FORMAT, "a time such as 2026-11-23T15:04:05Z")


def check_date(date: object) -> str:
    """Return the date, if it is one such as "2026-12-31". Raises InputError."""
    # YAML makes a date of one without quotes.
    text = date.isoformat() if hasattr(date, "isoformat") else date
    _parsed(text, _DATE, "a date such as 2026-12-31")
    return str(text)


def _parsed(text: Any, form: str, expected: str) -> int:
    try:
        parsed = time.strptime(text, form)
        if time.strftime(form, parsed) != text:
            raise ValueError(text)
    except (TypeError, ValueError) as error:
        raise InputError("%r is not %s" % (text, expected)) from error
    return calendar.timegm(parsed)


def duration_of(text: str) -> int:
    """Return seconds of "24h", "90m", "7d" or "1d12h". Raises InputError."""
    parts = re.findall("([0-9]{1,9})([smhdw])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InputError("%r is not a duration" % text, remedy="write one such as 24h, 90m or 7d")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


FAILED, UNREACHABLE, NO_KUBELET = "failed", "unreachable", "no kubelet"
CLEAN, NOTHING_WANTED, DRIFT = "clean", "nothing wanted", "drift"
# What rollout_info returns of a node that it could read.
STATUSES = (CLEAN, NOTHING_WANTED, DRIFT, NO_KUBELET)

# What Ansible adds to an answer. The arguments are in the inventory, and may be secret; an exception may be an object
# of Ansible's own.
_OF_ANSIBLE = frozenset(("invocation", "exception", "warnings", "deprecations", "ansible_facts", "changed"))
# What a node does not decide.
_NOT_ANSWERED = frozenset(("failed", "host"))


def answered(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a module answered, of the result of its task; with `failed`, `unreachable` and `msg` where it did
    not."""
    answer = {name: value for name, value in result.items() if name not in _OF_ANSIBLE and str(name)[:1] != "_"}
    # From ansible-core 2.19 on, a module that crashed has its message there alone.
    event = getattr(result.get("exception"), "event", None)
    if event is not None:
        answer.setdefault("msg", str(getattr(event, "msg", "")))
    return answer


def collect(answers: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return one dict for each host: its answer with `host` and `status`, whatever the host answered.

    answers: {host: the result of rollout_info}; None or nothing for a host that was not reached.
    """
    return [collected(str(host), answer) for host, answer in answers.items()]


def collected(host: str, answer: object) -> dict[str, Any]:
    """Return the answer of one host, with `host` and `status`; with `message` where it could not be read."""
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


def was_read(node: Mapping[str, object], may_lack_kubelet: bool) -> bool:
    """Return whether a report has something to say of one dict of collect().

    may_lack_kubelet: whether a host without a kubelet is left out on purpose, as a bastion is. Any other one may have
    a kubelet that was not found, as below another root.
    """
    return node["status"] not in (FAILED, UNREACHABLE) and (may_lack_kubelet or node["status"] != NO_KUBELET)


def why_unread(node: Mapping[str, object]) -> str:
    """Return why nothing was read of one dict of collect()."""
    notes = [node.get("message"), *items(node.get("notes"))] if node["status"] == NO_KUBELET else [node.get("message")]
    return text(next(filter(None, notes), "the node gave no reason"))


def view(node: Mapping[str, object]) -> ReportedView:
    """Return what is shown of one dict of collect(), as texts and lists of texts. It raises nothing."""
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
    """Return a topology in a few words; empty where it cannot be read."""
    if not topology:
        return ""
    try:
        online = len(CPUSet.parse(topology["online"]))
    except WRONG:
        return ""
    counts = (("sockets", "socket"), ("numa_nodes", "NUMA node"), ("l3_caches", "L3 cache"), ("cores", "core"))
    parts = [counted(size(topology.get(key)), name) for key, name in counts]
    return ", ".join(["%s online" % counted(online, "CPU"), *parts])


def _rows(node: Mapping[str, object]) -> list[ReportedDifference]:
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

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet's change as text: what differs on each node, what is going to be done, what hinders it, what became of it."""

from __future__ import annotations

import re
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Any, Collection, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import RefusedError
from ...module_utils._base.quantity import counted
from ..report.answers import FAILED, NO_KUBELET, NOTHING_WANTED, UNREACHABLE, items, line, mapping, view

# What became of a fleet in a run that changes nodes, as one line. Pure.


_REPORT = "ansible-playbook kubenode.cpu_manager.drift_report"
# Hosts that are named, of those that failed.
_NAMED = 5


def change_summary(
    nodes: Sequence[Mapping[str, Any]],
    left: Collection[str],
    check_mode: bool = False,
    skip_no_kubelet: bool = False,
    asks_settings: bool = True,
) -> str:
    """Return how many nodes were changed, and what comes next.

    nodes: what answers.collect() made of the last result of rollout_info of each host. left: the hosts that have
    neither failed nor been lost. check_mode: nothing was changed. asks_settings: whether the change brings nodes to
    wanted settings. Raises RefusedError for nodes that are left and were not read.
    """
    changed, unchanged, without, failed = 0, 0, 0, []
    unread: list[str] = []
    unset: list[str] = []
    for node in nodes:
        unset += [line(node["host"])] if asks_settings and node["status"] == NOTHING_WANTED else []
        if node["host"] not in left:
            failed.append(line(node["host"]))
        elif node["status"] in (FAILED, UNREACHABLE):
            unread.append(line(node["host"]))
        elif skip_no_kubelet and node["status"] == NO_KUBELET:
            without += 1
        elif node.get("actions") or node.get("journal"):
            changed += 1
        else:
            unchanged += 1
    if unread:
        what = "%s not read in this run, so nothing was changed%s" % (counted(len(unread), "node"), _named(unread))
        raise RefusedError(what, remedy="run the playbook without --skip-tags plan")
    if failed:
        following = "see why above, and run again"
    elif check_mode and changed:
        following = "run it without --check"
    else:
        following = _REPORT
    return "%s %d, unchanged %d, left out %d, failed %d%s%s; next: %s" % (
        "would change" if check_mode else "changed",
        changed,
        unchanged,
        without,
        len(failed),
        _named(failed),
        "; no setting is wanted of %s%s" % (counted(len(unset), "node"), _named(unset)) if unset else "",
        following,
    )


def _named(hosts: Sequence[str]) -> str:
    if not hosts:
        return ""
    more = len(hosts) - _NAMED
    return " (%s%s)" % (", ".join(hosts[:_NAMED]), " and %d more" % more if more > 0 else "")


_UNSET = "No setting is wanted of: %s (no variable such as kubelet_cpu_manager_policy is set for them)"
# Of a trial; none takes a tenth.
_MOST_SECONDS = 3600
# What stays of a terminal's 80 where Ansible indents a text.
_COLUMNS = 72


def plan_text(nodes: Sequence[Mapping[str, object]], skip_no_kubelet: bool = False, asks_settings: bool = True) -> str:
    """Return nodes of which the same is to be done stand together; what else is said of several such groups is said
    once after them. Nodes of which nothing is said come last.

    nodes: what answers.collect() made of the results of rollout_info. asks_settings: as in change_summary().
    """
    groups: dict[_Story, list[tuple[str, float]]] = {}
    notes: dict[tuple[str, str], list[str]] = {}
    without: list[str] = []
    unset: list[str] = []
    for node in nodes:
        shown = view(node)
        host, status = shown["host"], shown["status"]
        unset += [host] if asks_settings and status == NOTHING_WANTED else []
        if status == NO_KUBELET and skip_no_kubelet:
            without.append(host)
        elif status != UNREACHABLE:
            by, seconds = _trial(node)
            groups.setdefault(_story(node, shown, by), []).append((host, seconds))
            for note in _notes(node, shown):
                notes.setdefault(note, []).append(host)
    of_hosts: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for note, named in notes.items():
        of_hosts.setdefault(tuple(named), []).append(note)
    parts = []
    quiet: list[str] = []
    for story, timed in groups.items():
        hosts = [host for host, _seconds in timed]
        own = of_hosts.pop(tuple(hosts), [])
        told = [*story.body, *_told(own), *story.snippet, *_tried(story.by, timed)]
        quiet += [] if told else hosts
        parts += [*_wrapped(folded(hosts) + ":"), *told] if told else []
    parts += _wrapped("Nothing to do: %s" % folded(quiet)) if quiet else []
    parts += _told([note for each in of_hosts.values() for note in each], notes)
    parts += _wrapped(_UNSET % folded(unset)) if unset else []
    parts += _wrapped("Without a kubelet, left out: %s" % folded(without)) if without else []
    return "\n".join(parts)


class _Story(NamedTuple):
    """What is said of a node before its notes and after them, as lines, and which kubelet has tried the start."""

    body: tuple[str, ...]
    snippet: tuple[str, ...]
    by: str


# Notes of one kind that are told, where their texts differ; and names or ranges of names that are.
_OF_A_KIND, _RANGES = 3, 20


def _notes(node: Mapping[str, Any], shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (kind, text) of each note that is no refusal, too. The kind is the check; empty where the node names
    none."""
    if shown["status"] == FAILED:
        return []
    refused = set(map(line, shown["refusals"]))
    kinds = [line(kind or "") for kind in items(node.get("note_checks"))]
    found = zip_longest(kinds[: len(shown["notes"])], map(line, shown["notes"]), fillvalue="")
    return list(dict.fromkeys((kind, note) for kind, note in found if note not in refused))


def _told(told: Sequence[tuple[str, str]], hosts: Mapping[tuple[str, str], Sequence[str]] | None = None) -> list[str]:
    """Return lines of these notes, each after its hosts, where they are given."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for kind, note in told:
        kinds.setdefault(kind or note, []).append((kind, note))
    lines = []
    for kind, each in kinds.items():
        # No single node says so much that others are not heard.
        each.sort(key=lambda found: -len(hosts[found]) if hosts else 0)
        for found in each[:_OF_A_KIND]:
            lines += _indented("note: %s%s" % (_of(hosts[found]) if hosts else "", found[1]))
        left = each[_OF_A_KIND:]
        if left:
            named = list(dict.fromkeys(host for found in left for host in hosts[found])) if hosts else []
            lines += _indented("note: %s%d more of %s" % (_of(named) if named else "", len(left), kind))
    return lines


def _of(hosts: Sequence[str]) -> str:
    return "of %s: " % folded(hosts)


def folded(names: Sequence[str]) -> str:
    """Return these names as a list; many that differ in a number only as ranges, node-[01-40,44], and not more than
    a few."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    found = {name: _NUMBERED.fullmatch(name) for name in names}
    padded = {len(part[2]) for part in found.values() if part and part[2][0] == "0"}
    numbers: dict[tuple[str, str, int], list[int]] = {}
    for name, part in found.items():
        if part is None:
            numbers[name, "", 0] = [0]
        else:
            width = len(part[2]) if len(part[2]) in padded else 1
            numbers.setdefault((part[1], part[3], width), []).append(int(part[2]))
    ranges = [
        (before, after, width, first, last)
        for (before, after, width), each in numbers.items()
        for first, last in _ranges(sorted(set(each)))
    ]
    shown = []
    for (before, after, width), group in groupby(ranges[:_RANGES], lambda each: each[:3]):
        parts = ["-".join("%0*d" % (width, end) for end in dict.fromkeys(each[3:])) for each in group]
        several = len(parts) > 1 or "-" in parts[0]
        shown.append(before if not width else ("%s[%s]%s" if several else "%s%s%s") % (before, ",".join(parts), after))
    left = sum(last - first + 1 for *_names, first, last in ranges[_RANGES:])
    return ", ".join(shown) + (" and %d more" % left if left else "")


# The last number of a name, and what stands before and after it.
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.ASCII)


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each run of numbers that follow each other."""
    for _place, group in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        found = [number for _position, number in group]
        yield found[0], found[-1]


def _trial(node: Mapping[str, Any]) -> tuple[str, float]:
    """Return which kubelet has tried the start, and for how long; an empty text where none has."""
    trial = mapping(node.get("trial"))
    version, seconds = line(trial.get("version") or ""), trial.get("seconds")
    if version and isinstance(seconds, (int, float)) and 0 <= seconds <= _MOST_SECONDS:
        return version, float(seconds)
    return "", 0.0


def _tried(by: str, hosts: Sequence[tuple[str, float]]) -> list[str]:
    """Return how long it took is different on each node."""
    if not by:
        return []
    times = sorted({"%.1f" % seconds for _host, seconds in hosts}, key=float)
    return _indented("tried by kubelet %s, %s s" % (by, " to ".join(dict.fromkeys((times[0], times[-1])))))


def _story(node: Mapping[str, Any], shown: Mapping[str, Any], by: str) -> _Story:
    if shown["status"] == FAILED:
        return _Story(tuple(_indented("cannot be planned: " + shown["message"])), (), by)
    # What cannot be read is a difference and a refusal, and what is missing a note and a refusal: once is enough.
    refused = set(map(line, shown["refusals"]))
    lines = [
        "%s: %s -> %s" % (row["subject"], row["found"] or "-", row["wanted"] or "-")
        + ("; " + row["remedy"] if row["remedy"] else "")
        for row in shown["rows"]
        if line("%s; %s" % (row["found"], row["remedy"])) not in refused
    ]
    actions = [
        *(["take back a change that was interrupted"] if node.get("journal") else []),
        *(["drain"] if node.get("drains") is True else []),
        *([shown["actions"]] if shown["actions"] else []),
    ]
    lines += ["to do: " + ", ".join(actions)] if actions else []
    lines += ["cannot be changed: " + refusal for refusal in shown["refusals"]]
    snippet = []
    elsewhere = shown["elsewhere"]
    if elsewhere:
        snippet += _indented("%s: %s" % (line(elsewhere["name"]), line(elsewhere["why"])))
        # To be copied as it is.
        snippet += ["    " + part for part in elsewhere["snippet"].splitlines()]
    return _Story(tuple(part for text in lines for part in _indented(text)), tuple(snippet), by)


def _indented(text: str) -> list[str]:
    return ["  " + part for each in text.splitlines() for part in _wrapped(each, _COLUMNS - 2)]


def _wrapped(text: str, columns: int = _COLUMNS) -> list[str]:
    """Return a text in lines of whole words, each after the first one further in."""
    return wrap(text, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


# What the kubelets of a fleet said of trial starts, as text. Pure.


def trial_text(answers: Mapping[str, object]) -> str:
    """Return nodes of which the same is to be said stand together. answers: {host: the result of kubelet_trial}."""
    stories: dict[str, list[str]] = {}
    for host, answer in answers.items():
        stories.setdefault("\n".join(_indented("\n".join(_said(mapping(answer))))), []).append(line(host))
    return "\n".join("\n".join([*_wrapped(", ".join(hosts) + ":"), story]) for story, hosts in stories.items())


def _said(answer: Mapping[str, Any]) -> list[str]:
    starts, version = answer.get("starts"), line(answer.get("version") or "")
    if starts is None or not version:
        return [line(answer.get("reason") or answer.get("msg") or "no answer")]
    told = "the kubelet %s starts" % version
    if starts is not True:
        told = "the kubelet %s does not start: %s" % (version, line(answer.get("message") or "it said nothing"))
    formats = [mapping(answer.get("checkpoint_format")).get(when) for when in ("before", "after")]
    has_changed = starts is True and None not in formats and formats[0] != formats[1]
    return [
        told,
        *(["checkpoint: format %s -> %s" % (line(formats[0]), line(formats[1]))] if has_changed else []),
        *(["the prediction differs, and the kubelet is right"] if answer.get("prediction_differs") is True else []),
    ]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet's change as text: what differs on each node, what is going to be done, what hinders it, what became of it."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Collection, Mapping, Sequence

from ...module_utils._base.errors import RefusedError
from ...module_utils._base.quantity import counted
from ..report.answers import FAILED, NO_KUBELET, NOTHING_WANTED, UNREACHABLE, line, mapping, view

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
    """How many nodes were changed, and what comes next.

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
    """Nodes of which the same is to be said stand together; those of which nothing is come last.

    nodes: what answers.collect() made of the results of rollout_info. asks_settings: as in change_summary().
    """
    stories: dict[tuple[str, str], list[tuple[str, float]]] = {}
    quiet: list[str] = []
    without: list[str] = []
    unset: list[str] = []
    for node in nodes:
        shown = view(node)
        host, status = shown["host"], shown["status"]
        unset += [host] if asks_settings and status == NOTHING_WANTED else []
        if status == NO_KUBELET and skip_no_kubelet:
            without.append(host)
        elif status != UNREACHABLE:
            story = "\n".join(_story(node, shown))
            if story:
                by, seconds = _trial(node)
                stories.setdefault((story, by), []).append((host, seconds))
            else:
                quiet.append(host)
    parts = [
        "\n".join([*_wrapped(", ".join(host for host, _seconds in hosts) + ":"), story, *_tried(by, hosts)])
        for (story, by), hosts in stories.items()
    ]
    parts += _wrapped("Nothing to do: %s" % ", ".join(quiet)) if quiet else []
    parts += _wrapped(_UNSET % ", ".join(unset)) if unset else []
    parts += _wrapped("Without a kubelet, left out: %s" % ", ".join(without)) if without else []
    return "\n".join(parts)


def _trial(node: Mapping[str, Any]) -> tuple[str, float]:
    """Which kubelet has tried the start, and for how long; an empty text where none has."""
    trial = mapping(node.get("trial"))
    version, seconds = line(trial.get("version") or ""), trial.get("seconds")
    if version and isinstance(seconds, (int, float)) and 0 <= seconds <= _MOST_SECONDS:
        return version, float(seconds)
    return "", 0.0


def _tried(by: str, hosts: Sequence[tuple[str, float]]) -> list[str]:
    """How long it took is different on each node."""
    if not by:
        return []
    times = sorted({"%.1f" % seconds for _host, seconds in hosts}, key=float)
    return _indented("tried by kubelet %s, %s s" % (by, " to ".join(dict.fromkeys((times[0], times[-1])))))


def _story(node: Mapping[str, Any], shown: Mapping[str, Any]) -> list[str]:
    if shown["status"] == FAILED:
        return _indented("cannot be planned: " + shown["message"])
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
    lines += ["note: " + note for note in map(line, shown["notes"]) if note not in refused]
    told = [part for text in lines for part in _indented(text)]
    elsewhere = shown["elsewhere"]
    if elsewhere:
        told += _indented("%s: %s" % (line(elsewhere["name"]), line(elsewhere["why"])))
        # To be copied as it is.
        told += ["    " + part for part in elsewhere["snippet"].splitlines()]
    return told


def _indented(text: str) -> list[str]:
    return ["  " + part for each in text.splitlines() for part in _wrapped(each, _COLUMNS - 2)]


def _wrapped(text: str, columns: int = _COLUMNS) -> list[str]:
    """A text in lines of whole words, each after the first one further in."""
    return wrap(text, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


# What the kubelets of a fleet said of trial starts, as text. Pure.


def trial_text(answers: Mapping[str, object]) -> str:
    """Nodes of which the same is to be said stand together. answers: {host: the result of kubelet_trial}."""
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

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The impact of a change as text for a terminal, and whether it stops the change. Pure.

A waiver lets a workload's refusal pass until the end of its last day, with a reason: {"workload", "reason", "until"},
the workload as it is shown, such as "Deployment shop/db". It counts in one cluster, "cluster", which may be left out
where there is one.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ...module_utils._base.arguments import instead
from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import counted
from ..report.answers import check_date, line
from .fleet import FATES, GAINS, HOMELESS, LOSES, REFUSED, STAYS

NEVER = "never"
# What stops a change, by what is said.
FAIL_ON: Mapping[str, Sequence[str]] = {NEVER: (), REFUSED: (HOMELESS, REFUSED), HOMELESS: (HOMELESS,)}

_KEYS = ("workload", "reason", "until")
_CLUSTER = "cluster"
_COLUMNS = 72
# Of the workloads that are not refused, those that are named, and of the others those that are told; the file has all.
_NAMED, _TOLD = 10, 100
_TITLES = {
    HOMELESS: "would never come back, as no node that it may come to takes it",
    REFUSED: "refused on nodes",
    LOSES: "loses its exclusive CPUs",
    GAINS: "moves to exclusive CPUs",
    STAYS: "stays as it is",
}


def checked_waivers(waivers: Iterable[object], option: str) -> list[dict[str, str]]:
    """Return the waivers, each with `cluster`, which may be empty. Raises InputError for one that is wrong.

    option: the name in messages.
    """
    return [_checked(waiver, "%s[%d]" % (option, number)) for number, waiver in enumerate(waivers)]


def _checked(waiver: object, where: str) -> dict[str, str]:
    remedy = "give workload, reason and until"
    if not isinstance(waiver, Mapping):
        raise InputError("%r is not a mapping" % (waiver,), where, remedy)
    keys = [*_KEYS, _CLUSTER]
    unknown = sorted(str(key) for key in waiver if key not in keys)
    if unknown:
        raise InputError("has the unknown key %s" % unknown[0], where, instead(unknown[0], keys))
    missing = [key for key in _KEYS if not waiver.get(key)]
    if missing:
        raise InputError("has no %s" % missing[0], where, remedy)
    try:
        until = check_date(waiver["until"])
    except InputError as error:
        raise InputError(error.what, where + ".until", error.remedy) from error
    texts = {key: line(waiver.get(key) or "") for key in ("workload", "reason", _CLUSTER)}
    return {**texts, "until": until}


def check_clusters(waivers: Iterable[Mapping[str, str]], clusters: Sequence[str], option: str) -> None:
    """Refuse waivers that do not say of which of several clusters they are. Raises InputError."""
    for number, waiver in enumerate(waivers):
        if len(clusters) > 1 and not waiver[_CLUSTER]:
            raise InputError(
                "does not say of which cluster %s is, and there are %d" % (waiver["workload"], len(clusters)),
                "%s[%d]" % (option, number),
                "give cluster, one of %s" % ", ".join(clusters),
            )


def with_waivers(
    impact: Mapping[str, Any], waivers: Sequence[Mapping[str, str]], today: str, cluster: str = ""
) -> dict[str, Any]:
    """Return the impact, each workload with `waived`: {"reason", "until"} or None. today: such as "2026-12-31".

    cluster: the name of the only one, which the impact leaves out.
    """

    def key(row: Mapping[str, Any]) -> tuple[str, str]:
        return row["workload"], row["cluster"] or cluster

    # Without a cluster, it is of the only one.
    by_name = {(waiver["workload"], waiver[_CLUSTER] or cluster): waiver for waiver in waivers}
    notes = list(impact["notes"])
    refused = {key(row) for row in impact["workloads"] if row["fate"] in FAIL_ON[REFUSED]}
    for waived, waiver in by_name.items():
        name = _name(waiver)
        if waiver["until"] < today:
            notes.append("the waiver of %s has ended: its last day was %s" % (name, waiver["until"]))
        elif waived not in refused:
            notes.append("the waiver of %s is of no use: no workload of this name is refused" % name)
    rows = []
    for row in impact["workloads"]:
        waiver = by_name.get(key(row), {})
        counts = bool(waiver) and waiver["until"] >= today and key(row) in refused
        rows.append({**row, "waived": {"reason": waiver["reason"], "until": waiver["until"]} if counts else None})
    return {**impact, "workloads": rows, "notes": notes}


def stopping(impact: Mapping[str, Any], fail_on: str) -> str:
    """Return all reasons at once why the change is not begun; empty where there is none. impact: as of
    with_waivers()."""
    hit = [row for row in impact["workloads"] if row["fate"] in FAIL_ON[fail_on] and row["waived"] is None]
    if not hit:
        return ""
    begun = "nothing was changed, as the change would hit %s" % counted(len(hit), "workload")
    remedy = (
        "change these workloads or what is wanted, accept them one by one in cpu_manager_impact_waivers, or set"
        " cpu_manager_impact_fail_on to never"
    )
    return "\n".join([begun + ":", *("; ".join(_said(row)) for row in hit[:_TOLD]), *_more(hit), remedy])


def impact_text(impact: Mapping[str, Any]) -> str:
    """Return a text for people."""
    return "\n".join(_lines(impact))


def _lines(impact: Mapping[str, Any]) -> Iterator[str]:
    nodes = counted(len(impact["nodes"]), "node")
    yield "Impact on the pods of %s; nodes that change: %d" % (nodes, impact["changing"])
    for fate in FATES:
        rows = [row for row in impact["workloads"] if row["fate"] == fate]
        if not rows:
            continue
        yield "  %s: %s" % (_TITLES[fate], counted(len(rows), "workload"))
        if fate in FAIL_ON[REFUSED]:
            for row in rows[:_TOLD]:
                for part in _said(row):
                    yield from _wrapped(part)
            yield from map("    %s".__mod__, _more(rows))
        elif fate != STAYS:
            yield from _wrapped(_names(rows))
    rows = [row for row in impact["workloads"] if row["could_gain"]]
    if rows:
        yield "  would move to exclusive CPUs with limits equal to requests: %s" % counted(len(rows), "workload")
        yield from _wrapped(_names(rows))
    fleet = impact["fleet"]
    yield "  afterwards: exclusive %d, still to be given %d, stranded %d, shared %d" % tuple(
        fleet[name] for name in ("exclusive", "allocatable", "stranded", "shared")
    )
    for note in impact["notes"]:
        yield from _wrapped("note: " + note)


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    more = len(rows) - _NAMED
    names = ", ".join(_name(row) for row in rows[:_NAMED])
    return "%s and %d more" % (names, more) if more > 0 else names


def _more(rows: Sequence[object]) -> list[str]:
    return ["and %s more" % counted(len(rows) - _TOLD, "workload")] if len(rows) > _TOLD else []


def _said(row: Mapping[str, Any]) -> list[str]:
    pods = row["pods"]
    more = " and %d more" % row["more_nodes"] if row["more_nodes"] else ""
    on = "on %s%s: %s, %s" % (", ".join(row["nodes"]), more, row["reason"], row["message"])
    texts = [
        "%s: %d of %s refused" % (_name(row), pods[HOMELESS] + pods[REFUSED], counted(sum(pods.values()), "pod")),
        on + (" (%s)" % row["why"] if row["why"] else ""),
        "cure: %s" % (row["cure"] or "none of those that were tried"),
    ]
    if row["elsewhere"]:
        texts.append("when empty, %s takes it" % row["elsewhere"])
    elif row["fate"] == REFUSED:
        texts.append("the same node refuses it when it is empty, too")
    if not row["exact"]:
        texts.append("not exact: " + row["inexact"])
    if row["waived"]:
        texts.append("waived until %s: %s" % (row["waived"]["until"], row["waived"]["reason"]))
    return texts


def _name(row: Mapping[str, Any]) -> str:
    return "%s (%s)" % (row["workload"], row["cluster"]) if row["cluster"] else str(row["workload"])


def _wrapped(text: str) -> list[str]:
    """Return a text in lines of whole words, below a title."""
    parts = wrap(text, _COLUMNS - 4, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return ["    " + part for part in parts]

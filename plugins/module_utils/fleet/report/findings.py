# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong on a node, as findings of the checks. Pure.

A finding is {"check", "severity", "subject", "wanted", "found", "source", "text", "remedy", "waived", "since",
"first_seen"}; all are texts but `waived`, which is None or {"reason", "until"}.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Iterator, Mapping

from ...errors import InputError
from ...kubelet.settings import SETTINGS
from .answers import NO_KUBELET
from .check import LOOKS, NOTE, SEVERITIES, Check
from .checks import CHECKS, check_of_subject
from .shapes import Finding, View
from .texts import items, line, mapping, text
from .times import check_date
from .ways import meaning_of

# The check of a state that does not go with the wanted settings, in place of that of one which is refused already.
_OUTDATED = {"checkpoint-refused": "checkpoint-outdated", "memory-state-refused": "memory-state-outdated"}
# Checks that have rows, and notes where there is nothing wanted to compare with.
_OF_NOTES_TOO = frozenset(("kubelet-would-not-start", *_OUTDATED))
# Subjects of rows, and the kinds of the refusals that say the same again.
_TOLD_BY_ROWS = frozenset(("configuration", "start"))
_KINDS_OF_ROWS = frozenset(("configuration", "would_not_start"))


def findings_of(
    view: View, answer: Mapping[str, object], running: Mapping[str, object], looks: Mapping[str, object]
) -> list[Finding]:
    """The findings of one node, the worst first.

    view: what answers.view() gives of the answer. running: {setting: value} as the running kubelet has them, empty
    where it was not read. looks: {one of LOOKS: what the node answered}, without those that were not wanted.
    """
    if view["status"] == NO_KUBELET:
        return list(_of_notes(answer))
    rows = list(_of_rows(view))
    # What a row says, a note need not say again.
    notes = [note for note in _of_notes(answer) if note["check"] not in {row["check"] for row in rows}]
    found = [*rows, *notes, *_of_refusals(view), *_of_running(answer, running)]
    if view["elsewhere"]:
        elsewhere = view["elsewhere"]
        found.append(_finding("settings-elsewhere", line(elsewhere["name"]), text=elsewhere["why"]))
    if looks:
        # A look reads the same files again, and may have the same notes.
        told = {(finding["check"], finding["text"]) for finding in found}
        found += [finding for finding in _of_looks(looks) if (finding["check"], finding["text"]) not in told]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding["severity"]))


def is_open(finding: Finding) -> bool:
    """Whether it counts: it is no note, and not waived."""
    return finding["severity"] != NOTE and not finding["waived"]


def _finding(
    check_id: str,
    subject: str = "",
    remedy: str = "",
    wanted: str = "",
    found: str = "",
    source: str = "",
    text: str = "",
) -> Finding:
    check: Check = CHECKS[check_id]
    return {
        "check": check.id,
        "severity": check.severity,
        "subject": subject,
        "wanted": wanted,
        "found": found,
        "source": source,
        "text": text,
        "remedy": remedy or check.remedy_for(subject),
        "waived": None,
        "since": "",
        "first_seen": "",
    }


def _of_rows(view: View) -> Iterator[Finding]:
    for row in view["rows"]:
        subject = line(row["subject"])
        check_id = check_of_subject(subject).id
        # With the settings that it has now, the kubelet takes the file.
        check_id = check_id if row["refused_now"] else _OUTDATED.get(check_id, check_id)
        yield _finding(check_id, subject, row["remedy"], row["wanted"], row["found"], row["source"])


def _of_looks(looks: Mapping[str, object]) -> Iterator[Finding]:
    """A node may be hostile: a look has findings of its own checks only."""
    for look in LOOKS:
        if look not in looks:
            continue
        answer = mapping(looks[look])
        if answer.get("failed") or not answer:
            yield _finding(look + "-unmeasured", text=text(answer.get("msg") or "the node gave no reason"))
            continue
        for found in map(mapping, items(answer.get("findings"))):
            check = CHECKS.get(str(found.get("check")))
            values = {name: text(found.get(name, "")) for name in ("wanted", "found")}
            check_id = "noted" if check is None or check.look != look else check.id
            subject, remedy = line(found.get("subject", "")), text(found.get("remedy", ""))
            yield _finding(check_id, subject, remedy, source=look + "_info", **values)
        yield from _of_notes(answer)


def _of_notes(answer: Mapping[str, object]) -> Iterator[Finding]:
    """A node may be hostile: an id that is none of a note's is not taken."""
    notes, ids = items(answer.get("notes")), items(answer.get("note_checks"))
    for note, check_id in zip_longest(notes, ids[: len(notes)], fillvalue=""):
        is_known = isinstance(check_id, str) and check_id in CHECKS
        is_known = is_known and (check_id in _OF_NOTES_TOO or not CHECKS[str(check_id)].subjects)
        yield _finding(str(check_id) if is_known else "noted", text=text(note))


def _of_refusals(view: View) -> Iterator[Finding]:
    is_told = {row["subject"] for row in view["rows"]} & _TOLD_BY_ROWS
    for kind, refusal in zip(view["refusal_kinds"], view["refusals"]):
        if not (is_told and kind in _KINDS_OF_ROWS):
            yield _finding("change-refused", text=refusal)


def _of_running(answer: Mapping[str, object], running: Mapping[str, object]) -> Iterator[Finding]:
    found = mapping(answer.get("found"))
    for name in SETTINGS:
        if name in running and name in found and meaning_of(name, running[name]) != meaning_of(name, found[name]):
            values = {"wanted": text(found[name]), "found": text(running[name])}
            yield _finding("running-kubelet-differs", name, source="configz of the running kubelet", **values)


def waive(findings: list[Finding], waivers: object, today: str) -> None:
    """Mark the findings that somebody has waived until a day that is not over; add a note for each day that is.

    waivers: [{"check", "reason", "until"}], `subject` too where only one is meant; others than these are left out.
    today: such as "2026-11-23".
    """
    for waiver in map(mapping, items(waivers)):
        try:
            until = check_date(waiver.get("until"))
        except InputError:
            continue
        if until < today:
            if str(waiver.get("check")) in CHECKS:
                findings.append(_ended(waiver, until))
            continue
        for finding in findings:
            if finding["check"] == waiver.get("check") and waiver.get("subject") in (None, finding["subject"]):
                finding["waived"] = {"reason": text(waiver.get("reason", "")), "until": until}


def _ended(waiver: Mapping[str, object], until: str) -> Finding:
    of = waiver.get("subject")
    subject = line(waiver.get("check")) + (" of %s" % line(of) if of else "")
    reason = "the last day was %s; the reason was: %s" % (until, text(waiver.get("reason", "")))
    return _finding("waiver-ended", subject, text=reason)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet as JUnit XML: a suite for each node, a case for each check. Pure.

Source: the schema junit-10.xsd of Jenkins' xUnit plugin; GitLab reads the same. Times, without a zone, are UTC.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence
from xml.sax.saxutils import escape, quoteattr

from .answers import NO_KUBELET, line, text
from .assemble import UNKNOWN_STATES, is_open
from .checks import NOTE
from .shapes import MeasuredNode, Report, ReportedFinding, UnusedFile
from .terminal import cell, said_in_words, until

PASSED, FAILURE, ERROR, SKIPPED = "passed", "failure", "error", "skipped"
# The case of a node that could not be read.
NODE_READ = "node-read"
# The suite of result files that are not used.
RESULT_FILES = "result files"

_LONGEST_TEXT = 4000
_MOST_FINDINGS = 50
# No XML has it.
_MARK = "\0"
_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")


class _Case(NamedTuple):
    name: str
    result: str = PASSED
    kind: str = ""
    message: str = ""
    text: str = ""


class _Suite(NamedTuple):
    name: str
    moment: str
    cases: Sequence[_Case]
    notes: Sequence[ReportedFinding] = ()


def junit(report: Report, checks: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the XML in pieces, each a text of at most one node; they are written as UTF-8.

    checks: {id: {"severity", "title", "look"}} of all checks that there are; each that is no note is a case of each
    node. A finding that counts is a failure, a waived one is skipped, and notes are the output of the suite. All is
    skipped where there is no kubelet, and a check of a look where the node was not looked at so. A node of which
    nothing can be said today has one case alone, with an error.
    """
    titles = {check: about["title"] for check, about in checks.items()}
    usual = _Usual(checks)
    suites = [
        _Suite(
            node["host"],
            node["looked_at"] or report["made"],
            _cases(node, usual.cases(node), titles),
            [finding for finding in node["findings"] if finding["severity"] == NOTE],
        )
        for node in report["nodes"]
    ]
    if report["problems"]:
        suites.append(_Suite(RESULT_FILES, report["made"], tuple(map(_problem, report["problems"]))))
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    # The schema has no attribute for the skipped ones of all suites.
    totals = _totals((case for suite in suites for case in suite.cases), ("tests", "failures", "errors"))
    yield "<testsuites name=%s %s>\n" % (_attribute(report["title"]), totals)
    # Of most nodes there is nothing to say: their cases are made only once, with a mark in place of the name.
    texts = {id(cases): (_totals(cases), _cases_text(cases, _MARK)) for cases in usual.kinds.values()}
    for suite in suites:
        name = _attribute(suite.name)
        if id(suite.cases) in texts:
            totals, body = texts[id(suite.cases)]
            body = body.replace(_MARK, name)
        else:
            totals, body = _totals(suite.cases), _cases_text(suite.cases, name)
        moment = _TIME.match(suite.moment)
        timestamp = ' timestamp="%s"' % moment.group() if moment else ""
        yield "<testsuite name=%s %s%s hostname=%s>\n%s%s</testsuite>\n" % (
            name, totals, timestamp, name, body, _output(suite.notes),
        )  # fmt: skip
    yield "</testsuites>\n"


# --- cases --------------------------------------------------------------------------------------------


class _Usual:
    """The cases of nodes on which nothing was found. kinds: they are the same for most nodes, and made only once."""

    def __init__(self, checks: Mapping[str, Mapping[str, str]]) -> None:
        self._checks = {check: about.get("look", "") for check, about in checks.items() if about["severity"] != NOTE}
        self.kinds: dict[object, Sequence[_Case]] = {}

    def cases(self, node: MeasuredNode) -> Sequence[_Case]:
        """Return those of this node."""
        looks = {name: bool(look["is_measured"]) for name, look in node.get("looks", {}).items()}
        kind = NO_KUBELET if node["state"] == NO_KUBELET else tuple(looks.items())
        if kind not in self.kinds:
            self.kinds[kind] = tuple(
                _Case(check, SKIPPED, "", why) if why else _Case(check)
                for check, why in ((check, self._why_not(kind, look, looks)) for check, look in self._checks.items())
            )
        return self.kinds[kind]

    @staticmethod
    def _why_not(kind: object, look: str, looks: Mapping[str, bool]) -> str:
        """Return why a check says nothing of a node; empty where it does."""
        if kind == NO_KUBELET:
            return NO_KUBELET
        if not look or looks.get(look):
            return ""
        return "%s could not be measured" % look if look in looks else "not applicable: not looked at %s" % look


def _cases(node: MeasuredNode, usual: Sequence[_Case], titles: Mapping[str, str]) -> Sequence[_Case]:
    found: dict[str, list[ReportedFinding]] = {}
    for finding in node["findings"]:
        if finding["severity"] != NOTE:
            found.setdefault(finding["check"], []).append(finding)
    if node["state"] in UNKNOWN_STATES:
        # A result that is too old has findings, too.
        texts = [node["message"], *(_described(finding) for findings in found.values() for finding in findings)]
        return [_Case(NODE_READ, ERROR, node["state"], cell(node["message"] or node["state"]), _joined(texts))]
    if not found:
        return usual
    cases = {case.name: case for case in usual}
    cases.update({check: _case(check, findings, titles.get(check, "")) for check, findings in found.items()})
    return list(cases.values())


def _problem(problem: UnusedFile) -> _Case:
    return _Case(cell(problem["file"]), ERROR, "result-file", cell(problem["text"]), problem["remedy"])


def _case(check: str, findings: Sequence[ReportedFinding], title: str) -> _Case:
    """Return the findings of one check, all in one case."""
    counting = [finding for finding in findings if is_open(finding)]
    if not counting:
        waived = findings[0]["waived"] or {"reason": "", "until": ""}
        return _Case(check, SKIPPED, "waived", "%s: %s" % (until(waived), cell(waived["reason"])))
    message = said_in_words(counting[0])
    if len(counting) > 1:
        message += "; and %d more" % (len(counting) - 1)
    texts = [title, *(_described(finding) for finding in findings[:_MOST_FINDINGS])]
    return _Case(check, FAILURE, counting[0]["severity"], message, _joined(texts))


def _described(finding: ReportedFinding) -> str:
    rows = [(name, finding[name]) for name in ("subject", "wanted", "found", "source", "text", "remedy")]
    if finding["waived"]:
        rows.append(("waived", "%s: %s" % (until(finding["waived"]), finding["waived"]["reason"])))
    return "\n".join("%s: %s" % (name, text[:_LONGEST_TEXT]) for name, text in rows if text)


def _joined(texts: Sequence[str]) -> str:
    return "\n\n".join(text for text in texts if text)


# --- XML ----------------------------------------------------------------------------------------------


def _totals(cases: Iterable[_Case], names: Sequence[str] = ("tests", "failures", "errors", "skipped")) -> str:
    """Return the attributes that count."""
    counts = Counter(case.result for case in cases)
    numbers = {
        "tests": sum(counts.values()),
        "failures": counts[FAILURE],
        "errors": counts[ERROR],
        "skipped": counts[SKIPPED],
    }
    return "".join('%s="%d" ' % (name, numbers[name]) for name in names) + 'time="0"'


def _cases_text(cases: Sequence[_Case], classname: str) -> str:
    return "".join(
        '<testcase classname=%s name=%s time="0"%s\n' % (classname, _attribute(case.name), _result(case))
        for case in cases
    )


def _result(case: _Case) -> str:
    if case.result == PASSED:
        return "/>"
    kind = " type=%s" % _attribute(case.kind) if case.kind or case.result != SKIPPED else ""
    start = "><%s%s message=%s" % (case.result, kind, _attribute(case.message))
    return "%s>%s</%s></testcase>" % (start, _text(case.text), case.result) if case.text else start + "/></testcase>"


def _output(notes: Sequence[ReportedFinding]) -> str:
    texts = [
        "%s: %s%s" % (finding["check"], said_in_words(finding), " (waived)" if finding["waived"] else "")
        for finding in notes
    ]
    return "<system-out>%s</system-out>\n" % _text("\n".join(texts)) if texts else ""


def _text(value: str) -> str:
    # Of what XML 1.0 forbids, text() leaves nothing. It is quick with a single line.
    return escape("\n".join(map(text, value.split("\n"))))


def _attribute(value: str) -> str:
    """Return a text with its quotation marks."""
    return quoteattr(line(value))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An earlier report of the same fleet, with which a new one is compared. Pure but for reading it."""

from __future__ import annotations

import json
import os
from typing import Collection, Iterable, Mapping

from ...errors import InputError
from .checks import CHECKS
from .shapes import GoneFinding, MeasuredNode
from .texts import line, mapping
from .times import seconds_of

# Of a report.
KIND = "kubenode.cpu_manager/report"
SCHEMA_VERSION = "1.0"
_MAJOR = SCHEMA_VERSION.partition(".")[0]
# Four times the report of 10,000 nodes, in bytes.
_LARGEST = 256 << 20


class Baseline:
    """The findings of an earlier report, {host: {(check, subject): {value: when it was first seen}}}."""

    def __init__(self, report: Mapping[str, object]) -> None:
        self._findings: dict[str, dict[tuple[str, str], dict[str, str]]] = {}
        made = _moment(report.get("made"))
        for node in map(mapping, items_of(report, "nodes")):
            before = self._findings.setdefault(str(node.get("host")), {})
            for finding in map(mapping, items_of(node, "findings")):
                # It may have been compared with an earlier one itself.
                first_seen = _moment(finding.get("first_seen")) or made
                values = before.setdefault((str(finding.get("check")), str(finding.get("subject"))), {})
                values.setdefault(_value(finding), first_seen)

    def compare(self, nodes: Iterable[MeasuredNode], unknown_states: Collection[str], made: str) -> list[GoneFinding]:
        """Mark each finding of these nodes as new or known, and say when it was first seen.

        made: when their report is made. A finding is known where its value is that of the earlier report, too. Returns
        the earlier ones that are gone, node by node: those of a check and subject that have no finding now. Of a node
        that could not be read nothing is gone. A node that is no longer in the report is left out.
        """
        gone: list[GoneFinding] = []
        for node in nodes:
            before = self._findings.get(node["host"], {})
            now = set()
            for finding in node["findings"]:
                key = (finding["check"], finding["subject"])
                first_seen = before.get(key, {}).get(_value(finding))
                finding["since"] = "new" if first_seen is None else "known"
                finding["first_seen"] = made if first_seen is None else first_seen
                now.add(key)
            if node["state"] not in unknown_states:
                gone += (_gone(node["host"], *key) for key in sorted(before.keys() - now))
        return gone


def _value(finding: Mapping[str, object]) -> str:
    """What was found. The figures of a measurement are others each time, and none of them is a value."""
    check = CHECKS.get(str(finding.get("check")))
    return "" if check is not None and check.look else str(finding.get("found"))


def _moment(value: object) -> str:
    """A time of ours; empty for what is none."""
    try:
        seconds_of(value)
    except InputError:
        return ""
    return str(value)


def _gone(host: str, check: str, subject: str) -> GoneFinding:
    return {"host": host, "check": line(check), "subject": line(subject)}


def hosts_by_gone(gone: Iterable[GoneFinding]) -> dict[tuple[str, str], list[str]]:
    """{(check, subject): the hosts of which it is gone}, that of most hosts first."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for finding in gone:
        hosts.setdefault((finding["check"], finding["subject"]), []).append(line(finding["host"]))
    return dict(sorted(hosts.items(), key=lambda item: -len(item[1])))


def items_of(part: Mapping[str, object], name: str) -> list[object]:
    """A list in a report of ours, whatever its length."""
    value = part.get(name)
    return value if isinstance(value, list) else []


def read_baseline(path: str) -> Baseline:
    """The report in a file. Raises InputError for what is no report of this schema."""
    remedy = "give the drift.json of an earlier report"
    try:
        with open(path, encoding="utf-8") as file:
            is_large = os.fstat(file.fileno()).st_size > _LARGEST
            report = None if is_large else json.load(file)
    except OSError as error:
        raise InputError("cannot be read: %s" % error.strerror, path, remedy) from error
    except (ValueError, RecursionError) as error:
        raise InputError("is no JSON, or cut off", path, remedy) from error
    if is_large:
        raise InputError("has more than %d bytes" % _LARGEST, path, remedy)
    if not isinstance(report, dict) or report.get("kind") != KIND:
        raise InputError("is no drift report", path, remedy)
    if str(report.get("schema_version")).partition(".")[0] != _MAJOR:
        raise InputError("has another schema than version %s" % _MAJOR, path, remedy)
    return Baseline(report)

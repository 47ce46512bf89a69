#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the page of the drift report's checks, checks.rst, from plugins/plugin_utils/report/checks.py.

`make docs`, `make build` and `make lint` do so; the page is not committed. What the report shows for a check is made of
a node in tests/conformance on which it is found.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import indent
from typing import Any, Mapping

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import collection_path

collection_path.register()

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.tests.conformance.node_reports import samples

PAGE = HERE / "docsite" / "rst" / "checks.rst"

# What antsibull-docs wants before the names of all anchors.
PREFIX = "ansible_collections.kubenode.cpu_manager.docsite."
HEAD = """\
..
  Copyright (c) 2026, the kubenode.cpu_manager developers
  GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
  SPDX-License-Identifier: GPL-3.0-or-later

.. docs/write_checks.py writes this page.

.. _ansible_collections.kubenode.cpu_manager.docsite.checks:
"""
ABOUT = (
    "Every finding of the :ansplugin:`drift report <kubenode.cpu_manager.drift_report#role>` belongs to a check.",
    "The ids are stable: waivers, dashboards and tickets can refer to them. To accept a check for now:",
    "",
    ".. code-block:: yaml",
    "",
    "   drift_report_waivers:",
    "     - check: policy-differs",
    '       reason: "why, and who decided it"',
    '       until: "2027-01-31"',
)
# How the texts of checks name a page of these guides.
NAMED = re.compile(r"the guide (\w+) of this collection")

HEADINGS = {
    "danger": "Danger: a kubelet does not start, or would not start again",
    "warning": "Warnings: a node differs from the wanted settings",
    "note": "Notes: information that is no difference from the wanted settings",
}


def titled(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def escaped(text: str) -> str:
    """Return a text of a check as RST; the pages that it names are links."""
    text = re.sub(r"([*`|\\]|_(?!\w))", r"\\\1", text)
    return NAMED.sub(lambda page: ":ref:`%s%s`" % (PREFIX, page[1]), text)


def section_of(check: Any, sample: str) -> list[str]:
    """Return the lines of the section about a check, as RST. sample: what the report shows for it, if anything."""
    subjects = ", ".join("``%s``" % subject.strip() for subject in check.subjects)
    return [
        "",
        ".. _%schecks.%s:" % (PREFIX, check.id),
        "",
        *titled(check.id, "~"),
        "%s." % escaped(check.title),
        "",
        *([":Subjects: %s" % subjects] if subjects else []),
        *([":Measured: with ``%s`` in ``drift_report_look_at``" % check.look] if check.look else []),
        ":What it means: %s" % escaped(check.why),
        ":What to do: %s" % escaped(check.remedy_for()),
        *(["", "In the report:", "", ".. code-block:: text", "", indent(sample, "   ")] if sample else []),
    ]


def page(shown: Mapping[str, str]) -> str:
    """Return the page of checks as RST: a list and a section for each. shown: {id: what the report shows for it}"""
    lines = [HEAD, *titled("Checks of the drift report", "="), *ABOUT]
    for severity, heading in HEADINGS.items():
        checks = [check for check in CHECKS.values() if check.severity == severity]
        lines += ["", *titled(heading, "-"), ".. list-table::", "   :header-rows: 1", ""]
        lines += ["   * - check", "     - finding"]
        for check in checks:
            link = ":ref:`%s <%schecks.%s>`" % (check.id, PREFIX, check.id)
            lines += ["   * - %s" % link, "     - %s" % escaped(check.title)]
        for check in checks:
            lines += section_of(check, shown.get(check.id, ""))
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(samples()), encoding="utf-8")


if __name__ == "__main__":
    main()

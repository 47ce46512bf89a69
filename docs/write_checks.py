#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the page of checks and one for each check of the drift report, from plugins/plugin_utils/report/checks.py
of the core.

What the report shows for a check is made of a node in tests/conformance on which it is found.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import collection_path

collection_path.register()

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.tests.conformance.node_reports import samples

PAGES = HERE / "docsite" / "rst"

HEAD = """\
..
  Copyright (c) 2026, the kubenode.cpu_manager developers
  GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
  SPDX-License-Identifier: GPL-3.0-or-later

.. docs/write_checks.py writes this page.
"""
# What antsibull-docs wants before the names of all anchors.
PREFIX = "ansible_collections.kubenode.cpu_manager.docsite."
# How the texts of checks name a page of these guides.
NAMED = re.compile(r"docs/docsite/rst/(\w+)\.rst")

HEADINGS = {
    "danger": "Danger: a kubelet does not start, or would not start again",
    "warning": "Warnings: a node differs from the wanted settings",
    "note": "Notes: information that is no difference from the wanted settings",
}


def titled(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def escaped(text: str) -> str:
    """A text of a check as RST; the pages that it names are links."""
    text = re.sub(r"([*`|\\]|_(?!\w))", r"\\\1", text)
    return NAMED.sub(lambda page: ":ref:`%s%s`" % (PREFIX, page[1]), text)


def page_of(check: Any, sample: str) -> str:
    """The page of one check, as RST. sample: what the report shows for it, if anything."""
    subjects = ", ".join("``%s``" % subject.strip() for subject in check.subjects)
    lines = [
        ".. _%schecks.%s:" % (PREFIX, check.id),
        "",
        *titled(check.id, "="),
        "%s." % escaped(check.title),
        "",
        ":Severity: %s" % check.severity,
        *([":Subjects: %s" % subjects] if subjects else []),
        *([":Measured: with ``%s`` in ``drift_report_look_at``" % check.look] if check.look else []),
        "",
        *(["In the report:", "", ".. code-block:: text", "", indent(sample, "   "), ""] if sample else []),
        *titled("What it means", "-"),
        escaped(check.why),
        "",
        *titled("What to do", "-"),
        escaped(check.remedy_for()),
        "",
        *titled("To accept it for now", "-"),
        ".. code-block:: yaml",
        "",
        "   drift_report_waivers:",
        "     - check: %s" % check.id,
        '       reason: "why, and who decided it"',
        '       until: "2027-01-31"',
        "",
        ":ref:`All checks <%schecks>`" % PREFIX,
        "",
    ]
    return "\n".join([HEAD, *lines])


def index_of(checks: dict[str, Any]) -> str:
    """The list of all checks, as RST."""
    lines = [
        ".. _%schecks:" % PREFIX,
        "",
        *titled("Checks of the drift report", "="),
        "Every finding of the :ansplugin:`drift report <kubenode.cpu_manager.drift_report#role>` belongs to a check.",
        "The ids are stable: waivers, dashboards and tickets can refer to them.",
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        *("   checks/%s" % name for name in checks),
    ]
    for severity, heading in HEADINGS.items():
        lines += ["", *titled(heading, "-"), ".. list-table::", "   :header-rows: 1", ""]
        lines += ["   * - check", "     - finding"]
        for check in checks.values():
            if check.severity == severity:
                link = ":ref:`%s <%schecks.%s>`" % (check.id, PREFIX, check.id)
                lines += ["   * - %s" % link, "     - %s" % escaped(check.title)]
    return "\n".join([HEAD, *lines, ""])


def pages() -> dict[str, str]:
    """{path below docs/docsite/rst: text}"""
    shown = samples()
    return {
        "checks.rst": index_of(CHECKS),
        **{"checks/%s.rst" % name: page_of(check, shown.get(name, "")) for name, check in CHECKS.items()},
    }


def main() -> None:
    """Write all pages, and remove those of checks that are gone."""
    texts = pages()
    (PAGES / "checks").mkdir(exist_ok=True)
    for old in (PAGES / "checks").iterdir():
        if "checks/%s" % old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

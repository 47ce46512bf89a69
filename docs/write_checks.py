#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes a page for each check of the drift report below docs/checks, from fleet/report/checks.py of the core."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# The checks import nothing from outside of this directory.
SOURCE = HERE.parent / "plugins/module_utils/fleet/report"
PAGES = HERE / "checks"

HEADINGS = {
    "danger": "Danger: a kubelet does not start, or will not start again",
    "warning": "Warnings: a node is not as wanted",
    "note": "Notes: worth knowing, and no difference from what is wanted",
}


def read_checks() -> dict[str, Any]:
    """{id: Check}, read without installing the collection."""
    sys.path.insert(0, str(SOURCE.parent))
    try:
        return dict(importlib.import_module(SOURCE.name + ".checks").CHECKS)
    finally:
        sys.path.pop(0)


def page_of(check: Any) -> str:
    """The page of one check, as Markdown."""
    subjects = ", ".join("`%s`" % subject.strip() for subject in check.subjects)
    lines = [
        "# %s" % check.id,
        "",
        "%s." % check.title,
        "",
        "| | |",
        "|---|---|",
        "| Severity | %s |" % check.severity,
        *(["| Subjects | %s |" % subjects] if subjects else []),
        *(["| Looked for | with `%s` in `drift_report_look_at` |" % check.look] if check.look else []),
        "",
        "## What it means",
        "",
        check.why,
        "",
        "## What to do",
        "",
        check.remedy_for(),
        "",
        "## To accept it for now",
        "",
        "```yaml",
        "drift_report_waivers:",
        "  - check: %s" % check.id,
        '    reason: "why, and who decided it"',
        '    until: "2027-01-31"',
        "```",
        "",
        "[All checks](README.md)",
        "",
    ]
    return "\n".join(lines)


def index_of(checks: dict[str, Any]) -> str:
    """The list of all checks, as Markdown."""
    lines = [
        "# Checks of the drift report",
        "",
        "The ids stay what they are: waivers, dashboards and tickets can name them.",
        "`docs/write_checks.py` writes these pages.",
    ]
    for severity, heading in HEADINGS.items():
        lines += ["", "## %s" % heading, "", "| check | finding |", "|---|---|"]
        lines += [
            "| [%s](%s.md) | %s |" % (check.id, check.id, check.title)
            for check in checks.values()
            if check.severity == severity
        ]
    return "\n".join([*lines, ""])


def pages() -> dict[str, str]:
    """{name of the file: its text}"""
    checks = read_checks()
    return {"README.md": index_of(checks), **{"%s.md" % name: page_of(check) for name, check in checks.items()}}


def main() -> None:
    """Write all pages, and remove those of checks that are gone."""
    texts = pages()
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.md"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

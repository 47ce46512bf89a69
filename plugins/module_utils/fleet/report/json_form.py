# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as JSON: one line for each node, so that a tool for lines finds a node, too. Pure."""

from __future__ import annotations

import json
from typing import Iterator

from .shapes import Report


def json_form(report: Report) -> Iterator[str]:
    """The parts of the text. Its schema is docs/schema/report-1.json."""
    head = json.dumps({name: value for name, value in report.items() if name != "nodes"}, indent=1)
    yield head.rstrip("}").rstrip() + ',\n "nodes": ['
    separator = "\n"
    for node in report["nodes"]:
        yield separator + "  " + json.dumps(node)
        separator = ",\n"
    yield "\n ]\n}\n"

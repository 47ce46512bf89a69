#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws the table of levels in architecture.rst as architecture.svg: python docs/draw_levels.py"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "docsite" / "rst"
PAGE = PAGES / "architecture.rst"
PICTURE = PAGES / "images" / "architecture.svg"

HEADING = "   * - level\n     - packages\n"
# The cells of a row of a list-table; they may have several lines.
ROW = re.compile(r"^   \* - (.+(?:\n {7}.+)*)\n     - (.+(?:\n {7}.+)*)$", re.MULTILINE)
WIDTH, LABEL, HEIGHT, GAP = 1160, 320, 34, 10
# Boxes in a line of a level.
MOST = 6
COLORS = ("#e8eef7", "#f3f6fb")


def levels(page: str) -> list[tuple[str, list[str]]]:
    """Return (what the level is, its packages) of each row of the first table, from the top."""
    table = page.partition(HEADING)[2].partition("\n\n")[0]
    return [(" ".join(title.split()), re.findall("``([^`]+)``", packages)) for title, packages in ROW.findall(table)]


def draw(page: str) -> str:
    """Return the picture, as the text of an SVG file."""
    parts: list[str] = []
    top = GAP
    for number, (title, packages) in enumerate(levels(page)):
        lines = [packages[start : start + MOST] for start in range(0, len(packages), MOST)]
        height = len(lines) * HEIGHT + GAP
        parts.append(
            '<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s"/>'
            % (GAP, top, WIDTH - 2 * GAP, height, COLORS[number % 2])
        )
        parts.append('<text x="%d" y="%d" font-size="13">%s</text>' % (2 * GAP, top + height // 2 + 5, escape(title)))
        width = (WIDTH - LABEL - 2 * GAP) // min(MOST, len(packages))
        for line, names in enumerate(lines):
            for place, name in enumerate(names):
                left, above = LABEL + GAP + place * width, top + 6 + line * HEIGHT
                parts.append(
                    '<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="white" stroke="#4a6fa5"/>'
                    % (left, above, width - GAP, HEIGHT - 4)
                )
                parts.append(
                    '<text x="%d" y="%d" text-anchor="middle">%s</text>'
                    % (left + (width - GAP) // 2, above + HEIGHT // 2 + 3, escape(name))
                )
        top += height + GAP
    begin = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">'
    return "\n".join([begin % (WIDTH, top), '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(draw(PAGE.read_text("utf-8")), "utf-8")

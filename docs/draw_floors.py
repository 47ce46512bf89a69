#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws the table of floors in architecture.rst as architecture.svg: python docs/draw_floors.py"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "docsite" / "rst"
PAGE = PAGES / "architecture.rst"
PICTURE = PAGES / "images" / "architecture.svg"

HEADING = "   * - floor\n     - rooms\n"
# The cells of a row of a list-table; they may have several lines.
ROW = re.compile(r"^   \* - (.+(?:\n {7}.+)*)\n     - (.+(?:\n {7}.+)*)$", re.MULTILINE)
WIDTH, LABEL, HEIGHT, GAP = 1160, 340, 46, 10
COLORS = ("#e8eef7", "#f3f6fb")


def floors(page: str) -> list[tuple[str, list[str]]]:
    """(what the floor is, its rooms) of each row of the first table, from the top."""
    table = page.partition(HEADING)[2].partition("\n\n")[0]
    return [(" ".join(title.split()), re.findall("``([^`]+)``", rooms)) for title, rooms in ROW.findall(table)]


def draw(page: str) -> str:
    """The picture, as the text of an SVG file."""
    rows = floors(page)
    height = len(rows) * (HEIGHT + GAP) + GAP
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="14">'
        % (WIDTH, height),
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, (title, rooms) in enumerate(rows):
        top = GAP + number * (HEIGHT + GAP)
        parts.append(
            '<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s"/>'
            % (GAP, top, WIDTH - 2 * GAP, HEIGHT, COLORS[number % 2])
        )
        parts.append('<text x="%d" y="%d" font-size="12">%s</text>' % (2 * GAP, top + HEIGHT // 2 + 5, escape(title)))
        width = (WIDTH - LABEL - 2 * GAP) // len(rooms)
        for place, room in enumerate(rooms):
            left = LABEL + GAP + place * width
            parts.append(
                '<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="white" stroke="#4a6fa5"/>'
                % (left, top + 6, width - GAP, HEIGHT - 12)
            )
            parts.append(
                '<text x="%d" y="%d" text-anchor="middle">%s</text>'
                % (left + (width - GAP) // 2, top + HEIGHT // 2 + 5, escape(room))
            )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(draw(PAGE.read_text("utf-8")), "utf-8")

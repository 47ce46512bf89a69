# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of supported versions, as README.md and the documentation have it."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.tests.support.pythons import VERSIONS

from .cores import ROOT

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "docsite" / "rst" / "supported_versions.rst"
# Between these lines the table stands; for a line of reStructuredText, a comment begins otherwise.
_FIRST, _LAST = "make matrix writes this table", "end of the table"
_HEADS = ("ansible-core", "Python of the controller", "Python of the nodes")


class Row(NamedTuple):
    """What was seen to work with a series of ansible-core: Pythons, in order."""

    controllers: tuple[str, ...]
    nodes: tuple[str, ...]


def write(rows: Mapping[str, Row]) -> list[Path]:
    """Put the table where it is shown: {series: what works with it}. The files that are changed by this."""
    changed = []
    for path, text in pages(rows).items():
        if path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def pages(rows: Mapping[str, Row]) -> dict[Path, str]:
    """Return {file: its text with this table}"""
    cells = [_HEADS, *((core, _range(row.controllers), _range(row.nodes)) for core, row in rows.items())]
    return {
        README: _replaced(README, "<!-- %s -->", _markdown(cells)),
        PAGE: _replaced(PAGE, ".. %s", _restructured(cells)),
    }


def cores_of(path: Path) -> dict[str, Row]:
    """Return the table of a file, read."""
    text = path.read_text("utf-8").partition(_FIRST)[2].partition(_LAST)[0]
    found = re.findall(
        r"^(?:\| |   \* - )(2\.\d+)\s*(?:\|\s*|\n\s+- )([^|\n]+?)\s*(?:\|\s*|\n\s+- )([^|\n]+)", text, re.MULTILINE
    )
    return {core: Row(_versions(controllers), _versions(nodes)) for core, controllers, nodes in found}


def _replaced(path: Path, comment: str, table: Sequence[str]) -> str:
    first, last = comment % _FIRST, comment % _LAST
    before, found, rest = path.read_text("utf-8").partition(first + "\n")
    _old, ended, after = rest.partition(last + "\n")
    if not found or not ended:
        raise ValueError("%s lacks the lines %r and %r" % (path, first, last))
    return "\n".join([before + first, "", *table, "", last, after])


def _markdown(cells: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| %s |" % " | ".join(row) for row in cells]
    return [lines[0], "|" + "---|" * len(cells[0]), *lines[1:]]


def _restructured(cells: Sequence[Sequence[str]]) -> list[str]:
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in cells:
        lines += ["   * - " + row[0], *("     - " + cell for cell in row[1:])]
    return lines


def _range(versions: Sequence[str]) -> str:
    """Return Pythons as a text: three and more that follow each other as a range."""
    places = sorted(VERSIONS.index(version) for version in versions)
    parts: list[str] = []
    for _distance, run in groupby(enumerate(places), lambda item: item[1] - item[0]):
        names = [VERSIONS[place] for _number, place in run]
        parts += ["%s to %s" % (names[0], names[-1])] if len(names) > 2 else names
    return ", ".join(parts)


def _versions(text: str) -> tuple[str, ...]:
    """Return what _range() makes a text of."""
    found: list[str] = []
    for part in text.strip().split(", "):
        first, _between, last = part.partition(" to ")
        found += VERSIONS[VERSIONS.index(first) : VERSIONS.index(last or first) + 1]
    return tuple(found)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the documentation tells a person to write and to run: the blocks of its pages, and commands within its text."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Iterator, NamedTuple

from antsibull_docutils.rst_code_finder import find_code_blocks
from markdown_it import MarkdownIt

from ansible_collections.kubenode.cpu_manager.tests.release.archive import PAGES

CHECKOUT = Path(__file__).resolve().parents[2]
GUIDES = CHECKOUT / "docs" / "docsite" / "rst"
# The text of a literal, by the kind of page.
LITERALS = {".rst": re.compile(r"``([^`]+)``"), ".md": re.compile(r"`([^`]+)`")}
# The name of a file in a comment on the first line of a block.
FILE_NAME = re.compile(r"# ([\w./*-]+\.(?:ya?ml|cfg|ini))\b")


class Block(NamedTuple):
    """A block of a page: where it begins, counted from 1, the language that it says it is in, and its text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return "%s:%d" % (self.page, self.line)

    @property
    def file(self) -> str:
        """The name of the file that it shows, if it names one; else nothing."""
        named = FILE_NAME.match(self.text)
        return named[1] if named else ""


def pages() -> list[Path]:
    """Return all pages that somebody wrote. Those of modules are made of their documentation, whose EXAMPLES are
    run."""
    return [
        *sorted(path for path in GUIDES.rglob("*.rst") if path.stem not in PAGES),
        *sorted((CHECKOUT / "docs" / "site").glob("*.rst")),
        *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *sorted((CHECKOUT / "roles").glob("*/README.md")),
    ]


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


@lru_cache(maxsize=None)
def blocks(page: Path) -> tuple[Block, ...]:
    """Return the blocks of a page."""
    return tuple(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    """Yield an indented block in Markdown says no language: it holds commands."""
    text = page.read_text("utf-8")
    if page.suffix == ".rst":
        with warnings.catch_warnings():
            # antsibull-docutils calls docutils in a way that docutils 2.0 will not know.
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            found = list(find_code_blocks(text))
        for code in found:
            yield Block(name_of(page), code.row_offset + 1, code.language or "", code.content)
    else:
        for token in MarkdownIt("commonmark").parse(text):
            if token.type in ("fence", "code_block"):
                language = token.info.strip() if token.type == "fence" else "shell"
                yield Block(name_of(page), (token.map or [0])[0] + 1, language, token.content)


def literals(page: Path) -> Iterator[Block]:
    """Yield the literals within the text of a page, each on one line."""
    text = page.read_text("utf-8")
    for found in LITERALS[page.suffix].finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(name_of(page), line, "literal", " ".join(found[1].split()))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sentences of the documentation are short. `pytest -s -n0 tests/docs/test_sentences.py` prints the figures.

Code, tables and headings are left out. A literal, such as a command or a path, counts as one word.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median
from typing import Any, Callable, Iterator, NamedTuple

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .pages import CHECKOUT, GUIDES, name_of

PAGES = [
    # The pages that make writes have short answers in place of sentences.
    *sorted(page for page in GUIDES.glob("*.rst") if page.name not in ("checks.rst", "errors.rst")),
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md")),
    *sorted((CHECKOUT / "roles").glob("*/README.md")),
    *sorted((CHECKOUT / "plugins" / "modules").glob("*.py")),
]
# Of reStructuredText: comments and directives with their content, and headings.
NO_TEXT = re.compile(r"^( *)\.\.(?:| .*)\n(?:\1 +.*\n|\s*\n)*|^.+\n([=~-])\2{2,}\n", re.MULTILINE)
ROLE = re.compile(r":\w+:`([^`<]+?)\s*(?:<[^`]*>)?`|`([^`<]+?)\s*<[^`]*>`__?")
LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) +")
DOCUMENTATION = re.compile(r'^(?:DOCUMENTATION|RETURN) = r?"""(.*?)^"""', re.MULTILINE | re.DOTALL)
# Markup of Ansible: O(name=value), L(text, address).
LINK = re.compile(r"\b[LR]\(([^,)]*),[^)]*\)")
MARKUP = re.compile(r"\b[A-Z]{1,2}\(((?:\\.|[^)\\])*)\)")
# A sentence ends at its mark, also if a name in lower case follows.
END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=\S)")
WORD = re.compile(r"\S*\w\S*")


class Sentence(NamedTuple):
    """A sentence, and the page that has it."""

    page: str
    text: str

    @property
    def words(self) -> int:
        return len(WORD.findall(self.text))


def of_restructured_text(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a page in reStructuredText."""
    text = NO_TEXT.sub("", text + "\n")
    for paragraph in re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", ROLE.sub(r"\1\2", text)):
        yield LITERAL.sub(lambda found: one_word(found[1]), ITEM.sub("", paragraph))


def of_markdown(text: str) -> Iterator[str]:
    """Yield the paragraphs of a page in Markdown."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for before, token in zip(tokens, tokens[1:]):
        if token.type == "inline" and before.type == "paragraph_open":
            yield "".join(in_text(part) for part in token.children or [])


def in_text(part: Token) -> str:
    return {"code_inline": one_word(part.content), "softbreak": " "}.get(part.type, part.content)


def one_word(literal: str) -> str:
    return "`%s`" % "·".join(literal.split())


def of_module(text: str) -> Iterator[str]:
    """Yield the paragraphs of the documentation of a module."""
    for found in DOCUMENTATION.findall(text):
        yield from descriptions(yaml.safe_load(found))


def descriptions(documented: Any) -> Iterator[str]:
    if isinstance(documented, dict):
        for name, value in documented.items():
            if name in ("description", "short_description"):
                for text in [value] if isinstance(value, str) else value:
                    yield MARKUP.sub(lambda found: one_word(found[1]), LINK.sub(r"\1", text))
            else:
                yield from descriptions(value)


READERS = {".rst": of_restructured_text, ".md": of_markdown, ".py": of_module}


def sentences(page: Path) -> list[Sentence]:
    """Return the sentences of a page."""
    return in_sentences(name_of(page), READERS[page.suffix](page.read_text("utf-8")))


def in_sentences(page: str, paragraphs: Iterator[str]) -> list[Sentence]:
    """Return the sentences of paragraphs. Literals alone, such as the names of tests, are no sentence."""
    found = (
        Sentence(page, " ".join(text.split())) for paragraph in paragraphs for text in END.split(paragraph.strip())
    )
    return [sentence for sentence in found if any(not word.startswith("`") for word in WORD.findall(sentence.text))]


def test_the_sentences_are_short() -> None:
    found = [sentence for page in PAGES for sentence in sentences(page)]
    words = [sentence.words for sentence in found]
    figures = (len(words), median(words), max(words), sum(n > 25 for n in words), sum(n > 35 for n in words))
    print("\n%d sentences: median %g words, longest %d, %d have more than 25, %d more than 35" % figures)
    assert len(words) > 3000
    assert median(words) <= 16
    assert [sentence for sentence in found if sentence.words > 35] == []


RESTRUCTURED = """
Title
=====

One two. Three:

- four ``five six``

.. code-block:: text

   x

See :ref:`the page <x.y>`. ``a::b``, ``c::d``

.. list-table::

   * - x y"""
MARKDOWN = """# Title

One `two three`
four. Five

    code

|a|b|
|---|---|
|c|d|

- six"""
MODULE = '''DOCUMENTATION = r"""
description: O(a b=c d) is one. And L(two words, https://x)
"""
'''


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (of_restructured_text, RESTRUCTURED, [2, 1, 2, 3]),
        (of_markdown, MARKDOWN, [3, 1, 1]),
        (of_module, MODULE, [3, 3]),
    ],
)
def test_what_counts(read: Callable[[str], Iterator[str]], text: str, words: list[int]) -> None:
    assert [sentence.words for sentence in in_sentences("page", read(text))] == words

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of errors: it is what the code words, and whoever searches it for what a kubelet said finds the entry."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.tests.conformance.start_case import StartCase
from ansible_collections.kubenode.cpu_manager.tests.conformance.test_vectors import rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "docsite" / "rst" / "errors.rst"

# What a reader copies of a line in the journal.
SEARCHED = 40
STARTS = ("start-1.33", "start-1.36")


@pytest.fixture(scope="module")
def writer() -> Iterator[Any]:
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("write_errors")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def entries(writer: Any) -> list[Any]:
    return list(writer.with_examples())


def readable(page: str) -> list[str]:
    """What the page shows for its texts: the lines of its boxes, and its literals."""
    boxes = re.findall(r"^ {6}(\S.*)$", page, re.MULTILINE)
    return [*boxes, *re.findall(r"^(?: {3}\| )?``(.+)``$", page, re.MULTILINE)]


def test_the_page_is_what_the_code_words(writer: Any, entries: list[Any]) -> None:
    assert PAGE.read_text("utf-8") == writer.page(entries), "docs/write_errors.py writes it anew"


def test_every_text_of_the_vectors_is_found(record_property: Callable[[str, object], None]) -> None:
    shown = "\n".join(readable(PAGE.read_text("utf-8")))
    texts = {" ".join(row["error"].split()) for name in STARTS for row in rows(name) if row["outcome"] != "ok"}
    missing = {text for text in texts if text[:SEARCHED] not in shown}
    print("found: %d of %d texts" % (len(texts) - len(missing), len(texts)))
    record_property("texts found", "%d of %d" % (len(texts) - len(missing), len(texts)))
    assert missing == set()
    assert len(texts) > 500


def test_what_is_predicted_is_found_without_what_stands_before_it(writer: Any) -> None:
    """Of a long line the first characters are those of many: the kubelet's words about the cause are found, too."""
    shown = "\n".join(readable(PAGE.read_text("utf-8")))
    texts = {writer.folded(said.text) for said in writer.said_by_starts()}
    assert [text for text in texts if text[:SEARCHED] not in shown] == []


def test_each_entry_has_a_cause_and_a_remedy(entries: list[Any]) -> None:
    """Single values have those of the text before them."""
    whole = [entry for entry in entries if entry.section.title != "Single values"]
    assert [entry.texts for entry in whole if not (entry.causes and entry.remedies)] == []


def test_all_that_is_predicted_of_a_start_has_an_entry(writer: Any) -> None:
    """Behind the first refusal of a configuration there may be others, which a kubelet says once that is repaired."""
    found = writer.entries()
    lost = set()
    number = 0
    for name in STARTS:
        for row in rows(name):
            prediction = predict_start(StartCase(row["case"], name.partition("-")[2]).node)
            for finding in prediction.findings:
                if finding.fatal:
                    number += 1
                    said = writer.Said(finding.context + finding.text, finding.text, finding.cause, finding.remedy)
                    if writer.best_entry(found, said) is None:
                        lost.add(said)
    assert lost == set()
    assert number > 1200

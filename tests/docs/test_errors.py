# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of errors: it is what the code words, and whoever searches it for what a kubelet said finds the entry.

So does whoever pastes a whole line of a log, there or into the module start_check.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.refusals import MOST_READ, TABLE, explain
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.tests.conformance.read_vectors import rows
from ansible_collections.kubenode.cpu_manager.tests.conformance.start_case import StartCase

DOCS = Path(__file__).resolve().parents[2] / "docs"

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


@pytest.fixture(scope="module")
def shown(writer: Any, entries: list[Any]) -> str:
    return "\n".join(readable(writer.page(entries)))


def readable(page: str) -> list[str]:
    """Return what the page shows for its texts: the lines of its boxes, and its literals."""
    boxes = re.findall(r"^ {6}(\S.*)$", page, re.MULTILINE)
    return [*boxes, *re.findall(r"^(?: {3}\| )?``(.+)``$", page, re.MULTILINE)]


def test_every_text_of_the_vectors_is_found(shown: str, record_property: Callable[[str, object], None]) -> None:
    texts = {" ".join(row["error"].split()) for name in STARTS for row in rows(name) if row["outcome"] != "ok"}
    missing = {text for text in texts if text[:SEARCHED] not in shown}
    print("found: %d of %d texts" % (len(texts) - len(missing), len(texts)))
    record_property("texts found", "%d of %d" % (len(texts) - len(missing), len(texts)))
    assert missing == set()
    assert len(texts) > 500


def test_what_is_predicted_is_found_without_what_stands_before_it(writer: Any, shown: str) -> None:
    """Of a long line the first characters are those of many: the kubelet's words about the cause are found, too."""
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
                    said = writer.said_of(finding.context + finding.text, finding)
                    if writer.best_entry(found, said) is None:
                        lost.add(said)
    assert lost == set()
    assert number > 1200


# --- a line that is pasted -------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """Return a text as strconv.Quote of Go has it, as far as these texts need it."""
    return json.dumps(text, ensure_ascii=False)


def as_journald(text: str) -> str:
    """Return the last words of a kubelet, as journalctl shows them."""
    head = "Nov 27 08:26:44 worker-1 kubelet[1234]: "
    klog = 'E1127 08:26:44.123456    1234 run.go:72] "command failed" err='
    if "\n" not in text:
        return head + klog + quoted(text)
    # So klog writes several lines; each becomes one of the journal.
    return "\n".join(head + line for line in [klog + "<", *("\t" + line for line in text.split("\n")), " >"])


def as_json(text: str) -> str:
    """Return the line of a log within JSON, which is how kubectl and collectors of logs show it."""
    return json.dumps({"message": 'E1127 08:26:44.1 1 run.go:72] "command failed" err=' + quoted(text)})


DRESSES: tuple[Callable[[str], str], ...] = (str, as_journald, as_json)


@pytest.fixture(scope="module")
def wanted(writer: Any, entries: list[Any]) -> dict[str, Any]:
    """Return {what a kubelet said that did not start: its entry}, None where only a bare value is known of it."""
    found = {}
    for said in writer.said_by_starts():
        entry = writer.best_entry(entries, said)
        found[said.error] = None if entry is None or entry.section.title == writer.VALUES else entry
    return found


def test_the_table_is_what_the_code_words(writer: Any, entries: list[Any]) -> None:
    assert TABLE.read_text("utf-8") == writer.table(entries), "docs/write_errors.py writes it anew"


def test_the_checks_of_the_table_are_there() -> None:
    assert {row["check"] for row in json.loads(TABLE.read_text("utf-8"))} - {""} <= set(CHECKS)


@pytest.mark.parametrize("dress", DRESSES)
def test_a_pasted_line_is_explained(writer: Any, wanted: dict[str, Any], dress: Callable[[str], str]) -> None:
    """With the entry that is known to be its own, as the prediction has said the cause."""
    lost = {}
    for text, entry in wanted.items():
        answers = explain(dress(text))
        if not any(answer["cause"] and answer["remedy"] for answer in answers):
            lost[text] = answers
        texts = {writer.folded(writer.shown(text)) for text in entry.texts} if entry else set()
        if entry and texts.isdisjoint(answer["text"] for answer in answers):
            lost[text] = answers
    assert lost == {}
    assert len(wanted) > 500


def test_a_dress_changes_no_answer(wanted: dict[str, Any]) -> None:
    for text in wanted:
        assert explain(as_journald(text)) == explain(as_json(text)) == explain(text)


def test_pods_that_are_refused_are_explained(writer: Any) -> None:
    count = 0
    for said in writer.said_by_managers():
        if said.cause:
            count += 1
            assert said.cause in [answer["cause"] for answer in explain(as_json(said.error))], said.error
    assert count


@pytest.mark.parametrize(
    "message", ["", "\\", "the weather is fine", 'E1127 08:26:44.1 1 run.go:72] "command failed" err=""', "\0" * 9]
)
def test_what_is_no_refusal_is_none(message: str) -> None:
    assert explain(message) == []


@pytest.mark.parametrize(
    "sign", ["\\", '"', "a", "failed to ", "\\u00", "Nov 27 08:26:44 a ", "\n\\n", " ", "invalid "]
)
def test_a_long_message_takes_time_in_proportion(sign: str) -> None:
    """A program that grows with the square of the length would take minutes."""
    refusal = 'unknown policy: "static "'
    begin = time.process_time()
    explain(sign * (MOST_READ // len(sign)) + refusal)
    assert time.process_time() - begin < 5
    assert explain(refusal + " " + sign * 2 * MOST_READ)[0]["remedy"] == "write none or static"


@pytest.mark.needs("node")
def test_the_page_answers_as_the_module(wanted: dict[str, Any], tmp_path: Path) -> None:
    messages = [dress(text) for text in wanted for dress in DRESSES]
    job = tmp_path / "messages.json"
    job.write_text(json.dumps(messages), encoding="utf-8")
    program = (
        "const { explain } = require(%s); const read = (path) => JSON.parse(require('node:fs').readFileSync(path));"
        " const table = read(%s); const texts = (said) => explain(said, table).map((row) => [row.text, row.cause]);"
        " process.stdout.write(JSON.stringify(read(%s).map(texts)));"
    ) % tuple(map(json.dumps, (str(DOCS / "site/static/refusals.js"), str(TABLE), str(job))))
    done = subprocess.run(["node", "-e", program], check=True, capture_output=True, text=True)
    mine = [[[answer["text"], answer["cause"]] for answer in explain(message)] for message in messages]
    assert json.loads(done.stdout) == mine

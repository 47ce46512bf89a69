# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers that are to keep the controller busy, of up to 1 MB each: each is reported in less than a second.

`make hostile` takes all 300, and in the standard list are the first of each kind.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from itertools import islice
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.action.fleet_report import FORMS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redacted_words import words_redacted
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redaction import (
    configuration_redacted,
    lines_redacted,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import collected, text
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import (
    Result,
    file_name,
    read_result,
    write_result,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.terminal import fleet_table
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import ANSWER, LOOKED_AT, LOOKS, MADE

SIZE = 1_000_000  # bytes of an answer
MOST_SECONDS = 1.0  # of processor time
# Another program may take the processor's caches: of as many times the shortest counts.
TRIES = 3
ALL = 300
STANDARD = 30
COUNT = ALL if os.environ.get("HOSTILE") else STANDARD

# 20 kB of each sign that an expression or a loop of ours goes over, and of what it begins with.
SIGNS = [
    *"\r\x1b\n\t \\`*|<&,:.-_=0a\"'~#$@/{[",
    *("\u200b", "\xa0", "\u4e00", "\U000e0001", "\ue000", "\ud800", "²"),
    *("a.", "a://", "a://:", "a.a://", "--a ", "--token ", "token: ", "\r\n", "\r\x01", "${", "a-", "1:"),
    *("0-65535:1/1,", "0-65535:1/2,", "65535,", "0-", "0,", "1-1,", "9" * 50 + ","),
]
MACHINE = {"online": "0-8191", "cores": [str(cpu) for cpu in range(8192)]}
MANY = {str(number): "0-65535:1/2" for number in range(50_000)}

# What is much, or deep, or large, in one place.
PLACES: list[dict[str, Any]] = [
    {"topology": {"online": "0-8191", "cores": ["0-8191"] * 100_000}},
    {"topology": {"online": "0-8191", "cores": ["0-8191"] * 8000}},
    *({"topology": {**MACHINE, kind: MANY}} for kind in ("sockets", "dies", "numa_nodes", "l3_caches")),
    {"topology": {**MACHINE, "nearest_cpus": MANY}},
    {"topology": {**MACHINE, "same_ids": list(MANY.values())}},
    {"topology": {**MACHINE, "sockets": {str(cpu): str(cpu) for cpu in range(1024)}}},
    {"topology": {"online": "0", "offline": "1-65535:1/2", "cores": ["0"]}},
    {"drift": [{"subject": "container a%d" % number, "found": "1"} for number in range(20_000)]},
    {"drift": [{"subject": {str(number): number for number in range(60_000)}}]},
    {"drift": [{"found": [1e300] * 100_000, "wanted": 10**300}]},
    {"drift": json.loads("[" * 900 + "]" * 900)},
    {"found": {"cpu_manager_policy_options": MANY, "reserved_system_cpus": "0-65535:1/1," * 16_000}},
    {"notes": ["x"] * 200_000, "note_checks": ["reservation-splits-cores"] * 200_000},
    {"owners": [{"use": "exclusive", "owner": "a/b/c", "cpus": "0-65535:1/1"}] * 16_000},
    {"refusals": [{"kind": "x", "text": "x"}] * 30_000},
    {"kubelet": {"cri_socket": "/" * SIZE, "version": "." * SIZE}},
    {"actions": ["stop_kubelet"] * 60_000},
    {"msg": "\r" * SIZE, "failed": True},
    {"msg": "\n" * SIZE},
]


def filled(part: Any, sign: str, repeated: int) -> Any:
    """Return a value with a text in place of each text in it, and more of each member of a list."""
    if isinstance(part, dict):
        return {key: filled(value, sign, repeated) for key, value in part.items()}
    if isinstance(part, list):
        return [filled(value, sign, repeated) for value in part] * repeated
    return sign if isinstance(part, str) else part


def hostile() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield what the node answers, and what it answers to the further looks: of each kind first one, and then the
    others."""
    for place in PLACES:
        yield {**ANSWER, **place}, {}
    for length, shown in ((20_000, {}), (200, {}), (200, LOOKS), (5000, LOOKS), (1, LOOKS), (60_000, {})):
        for sign in SIGNS:
            words = (sign * length)[:length] + ("" if length < 5000 else "\x01")
            # As many as go into an answer of that size.
            repeated = max(1, SIZE // max(1, 80 * len(words)))
            answer = {**filled(ANSWER, words, repeated), "status": "drift"}
            yield answer, {name: filled(shown[name], words, repeated) for name in shown}


def taken(work: Callable[[], object]) -> float:
    """Return the processor time of it, in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def reported(answer: dict[str, Any], looks: dict[str, Any]) -> None:
    """Do all that the controller does with one answer of a node."""
    report = assemble([Result("node", LOOKED_AT, answer, {}, [], looks)], ReportTerms("T", MADE))
    for _name, make in FORMS.values():
        "".join(make(report, []))
    fleet_table(report)


def test_each_answer_is_reported_in_time(record_property: Callable[[str, object], None]) -> None:
    slowest, count = 0.0, 0
    for answer, looks in islice(hostile(), COUNT):
        count += 1
        work = partial(reported, answer, looks)
        # Hardly one is taken more than once.
        seconds = next((seconds for _try in range(TRIES) if (seconds := taken(work)) < MOST_SECONDS), MOST_SECONDS)
        assert seconds < MOST_SECONDS, "number %d: %.300r" % (count, answer)
        slowest = max(slowest, seconds)
    record_property("hostile_answers", count)
    record_property("slowest", "%.2f s" % slowest)
    assert count == COUNT


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_texts_and_words_take_no_longer(sign: str) -> None:
    words = (sign * 100_000)[:100_000] + "\x01"
    for work in (text, lines_redacted, configuration_redacted, lambda given: words_redacted([given])):
        assert taken(lambda work=work: work(words)) < MOST_SECONDS, work  # type: ignore[misc]


def test_an_answer_that_is_too_large_is_not_looked_at(tmp_path: Any) -> None:
    large = {**ANSWER, "notes": ["x" * 1000] * 5000}
    node = collected("node", large)
    assert node["status"] == "failed"
    assert "characters, more than that of any real node" in node["message"]
    write_result(str(tmp_path), Result("node", LOOKED_AT, large, {}, []))
    written = read_result(str(tmp_path / "nodes" / file_name("node")))
    assert written.answer["failed"]
    assert "characters, more than that of any real node" in str(written.answer["msg"])


def test_a_result_file_that_grows_is_not_read_whole(tmp_path: Any) -> None:
    """Its size is nothing that can be relied on."""
    path = tmp_path / "nodes" / file_name("node")
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(NodeError, match="has 1099511627776 bytes, more than any node answers"):
        read_result(str(path))

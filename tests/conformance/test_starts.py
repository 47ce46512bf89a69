# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole kubelets that were started with many files, flags and machines: what is predicted, and what they did."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable, NamedTuple, Sequence

import pytest

from . import answer
from .read_vectors import rows
from .start_case import StartCase

VERSIONS = {"1.33": 1218, "1.36": 1202}

# What kubelets print in random order: of policy options that are refused, the one that is met first.
RANDOM = {("1.33", "rnd/069")}

# The sizes of disks, and the flags of the kernel, are not among the files of a case.
NOT_SEEN = {"res/5", "flag/106"}

MOST_UNKNOWN = 0.02
LEAST_EQUAL = 0.98
# Seconds.
MOST_TIME = 0.003


class Replay(NamedTuple):
    """Each row with what is predicted of it."""

    version: str
    rows: list[tuple[dict[str, Any], StartCase, dict[str, Any]]]
    # Of one prediction, in seconds.
    mean: float


def folded(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", params=VERSIONS)
def replay(request: pytest.FixtureRequest) -> Replay:
    version = request.param
    cases = [(row, StartCase(row["case"], version)) for row in rows("start-" + version)]
    answers = [case.answer() for _row, case in cases]
    mean = seconds_of_one([case for _row, case in cases])
    return Replay(version, [(row, case, said) for (row, case), said in zip(cases, answers)], mean)


def seconds_of_one(cases: Sequence[StartCase]) -> float:
    """Return the processor's time for one prediction; what else runs, and a tool that measures coverage, do not
    count."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        start = time.process_time()
        for case in cases:
            case.answer()
        return (time.process_time() - start) / len(cases)
    finally:
        sys.settrace(trace)


def test_every_start(replay: Replay, record_property: Callable[[str, object], None]) -> None:
    false: dict[bool, list[str]] = {True: [], False: []}
    unknown = []
    for row, _case, said in replay.rows:
        starts = row["outcome"] == "ok"
        if said["starts"] is None:
            unknown.append(row["name"])
        elif said["starts"] != starts:
            false[said["starts"]].append("%s: %s" % (row["name"], said["text"]))
    figures = {
        "rows": len(replay.rows),
        "false starts": len(false[True]),
        "false refusals": len(false[False]),
        "cannot tell": len(unknown),
        "milliseconds for one": round(replay.mean * 1000, 2),
    }
    for name, figure in figures.items():
        record_property(name, figure)
    print(figures)
    assert len(replay.rows) == VERSIONS[replay.version]
    assert false == {True: [], False: []}
    assert set(unknown) <= NOT_SEEN
    assert len(unknown) <= MOST_UNKNOWN * len(replay.rows)


def test_every_text(replay: Replay, record_property: Callable[[str, object], None]) -> None:
    different = []
    refused = 0
    for row, _case, said in replay.rows:
        if said["starts"] is False and row["outcome"] != "ok":
            refused += 1
            if folded(said["text"]) not in folded(row["error"]):
                different.append((row["version"][:4], row["name"], said["text"], row["error"][:300]))
    record_property("equal texts", "%d of %d" % (refused - len(different), refused))
    print("equal texts: %d of %d" % (refused - len(different), refused))
    assert [difference for difference in different if difference[:2] not in RANDOM] == []
    assert refused - len(different) >= LEAST_EQUAL * refused


def test_every_state_after_a_first_start(replay: Replay) -> None:
    different = []
    number = 0
    for row, case, said in replay.rows:
        is_first = not {"ckpt", "mem"} & row["case"].keys()
        if said["starts"] and is_first and "after" in row:
            number += 1
            after = case.states_after()
            if after != row["after"]:
                different.append((row["name"], after, row["after"]))
    assert different == []
    assert number > 400


def test_the_time_of_a_prediction(replay: Replay) -> None:
    assert replay.mean < MOST_TIME


def test_an_answer_on_a_line() -> None:
    row = next(rows("start-1.36"))
    said = answer.answer("start", json.loads(json.dumps({"case": row["case"], "version": row["version"]})))
    assert said == {"starts": row["outcome"] == "ok", "text": said["text"]}
    assert folded(said["text"]) in folded(row.get("error", said["text"]))

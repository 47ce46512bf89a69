# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Damaged files and flags, made of those that kubelets were started with: an answer or a documented error, soon.

HOSTILE says how many nodes are tried, SEED with which chance begins; `make hostile` tries 100,000.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, NamedTuple, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import start_report
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .read_vectors import rows
from .start_case import BASE_FLAGS, CONFIG, DROP_INS, STATES, machine_root

HOSTILE, SEED = how_many("HOSTILE", 1000, 20000), how_many("SEED", 1, 1)
# An answer takes as long as so many usual ones at most, and as one more for so many bytes that the node says: in the
# best of so many tries, as other programs fall into some. A thread's stack begins anew: where a call is just beyond a
# chunk of it, Python 3.11 takes and returns memory at each.
USUAL = 20
BYTES = 50
TRIES = 4

MACHINES = ("1s2c", "2n2c", "2s1n4c2t")
MINORS = (20, 27, 33, 34, 35, 36, 37, 40)

# What readers of YAML, JSON, numbers and CPU lists may stumble over.
PIECES = (
    *(b"&a ", b"*a", b"<<: ", b"!!int ", b"!!binary ", b"? ", b": ", b"- ", b"|\n", b">-\n", b"'", b'"', b"{", b"}"),
    *(b"[", b"]", b"\t", b"\r\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"%YAML 1.1\n", b"---\n"),
    *(b"...\n", b"#", b"null", b"~", b"1e999", b"0x", b"-.inf", b".nan", b"9" * 20, b"9" * 200, b"\\u0000", b"\\ud800"),
    *(b"2001-01-01", b"0-", b"-1", b"%", b"Ki", b" " * 50, b"[[" * 30, b"{a: " * 30, b"a: &x [*x]\n"),
)


class Damaged(NamedTuple):
    """A node, as often as it is wanted."""

    tree: OverlaidTree
    minor: int
    command_line: list[str]

    def node(self) -> Node:
        return Node(self.tree, minor=self.minor, command_line=self.command_line)

    def size(self) -> int:
        """Return how many bytes it says."""
        return sum(map(len, [*self.command_line, *(content or b"" for content in self.tree.contents.values())]))


class Damage:
    """Chance, and what it damages."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        given = [row for version in ("1.33", "1.36") for row in rows("start-" + version)]
        cases = [row["case"] for row in given]
        self.configs = [case["config"].encode("utf-8") for case in cases]
        self.drop_ins = [text.encode("utf-8") for case in cases for text in case.get("dropins", {}).values()]
        self.flags = [flag.encode("utf-8") for case in cases for flag in case.get("flags", ())]
        self.states = {
            key: [case[key].encode("utf-8") for case in cases if key in case]
            + [row["after"][os.path.basename(path)].encode("utf-8") for row in given if row.get("after")]
            for key, path in STATES.items()
        }

    def damaged(self, texts: Sequence[bytes]) -> bytes:
        text = bytearray(self.random.choice(texts))
        for _time in range(self.random.choice((0, 1, 1, 2, 3, 8))):
            at = self.random.randrange(len(text) + 1)
            kind = self.random.random()
            if kind < 0.4:
                text[at:at] = self.random.choice(PIECES)
            elif kind < 0.5:
                text[at:at] = self.random.choice(PIECES) * self.random.choice((10, 100, 1000))
            elif kind < 0.65:
                del text[at : at + self.random.randrange(1, 12)]
            elif kind < 0.8:
                text[at : at + 1] = bytes([self.random.randrange(256)])
            else:
                donor = self.random.choice(self.configs)
                begin = self.random.randrange(len(donor) + 1)
                text[at:at] = donor[begin : begin + self.random.randrange(1, 40)]
        return bytes(text)

    def node(self) -> Damaged:
        files: dict[str, bytes | None] = {CONFIG: self.damaged(self.configs)}
        flags = [*BASE_FLAGS]
        if self.random.random() < 0.3:
            files["%s/%d.conf" % (DROP_INS, self.random.randrange(3))] = self.damaged(self.drop_ins)
            flags.append("--config-dir=" + DROP_INS)
        files.update(
            {path: self.damaged(self.states[key]) for key, path in STATES.items() if self.random.random() < 0.3}
        )
        wrong = [self.damaged(self.flags) for _time in range(self.random.choice((0, 0, 1, 2)))]
        flags += [flag.replace(b"\0", b"").decode("utf-8", "surrogateescape") for flag in wrong]
        root = Tree(machine_root(self.random.choice(MACHINES)))
        command_line = ["/usr/bin/kubelet", "--config=" + CONFIG, *flags]
        return Damaged(OverlaidTree(root, files), self.random.choice(MINORS), command_line)


@pytest.fixture(scope="module")
def damage() -> Damage:
    return Damage(SEED)


def timed_answer(node: Node) -> tuple[float, Any]:
    """Return how long the processor takes for an answer, in seconds, and the answer or the kind of error."""
    gc.disable()
    start = time.process_time()
    try:
        report = start_report(node, {})
        json.dumps(report)
        answer = report["starts"]
    except CPUManagerError as error:
        answer = type(error).__name__
    finally:
        gc.enable()
    return time.process_time() - start, answer


def test_an_answer_or_a_documented_error(damage: Damage) -> None:
    spent: list[float] = []
    answers: dict[Any, int] = {}
    slow: dict[int, float] = {}
    with ThreadPoolExecutor(1) as executor:
        for number in range(HOSTILE):
            damaged = damage.node()
            try:
                seconds, answer = timed_answer(damaged.node())
            except Exception as error:
                raise AssertionError("node %d of SEED=%d" % (number, SEED)) from error
            spent.append(seconds)
            answers[answer] = answers.get(answer, 0) + 1
            if seconds > USUAL * median(spent[:1000]):
                least = min(executor.submit(timed_answer, damaged.node()).result()[0] for _try in range(TRIES))
                slow[number] = least / (USUAL + damaged.size() / BYTES)
    usual = median(spent)
    assert {number: seconds / usual for number, seconds in slow.items() if seconds > usual} == {}
    assert answers.get(False)
    assert answers.get(True)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files in the checkpoint's place that are none, or not quite: nothing worse than a refusal comes of them.

`make hostile` takes 100,000. A file is made from its chunk's number alone, so one that fails can be made again:
list(hostile_files(CHUNK))[NUMBER].
"""

from __future__ import annotations

import json
import random
import re
import time
import tracemalloc
from typing import Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import LARGEST_OF_KUBELET
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig, judge
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    read_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    FORMATS,
    CheckpointError,
    Format2,
    Format3,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.repair import pins_of, repair
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

FILES = how_many("HOSTILE", 4000, 50000)
CHUNKS = 20

# Of processor time, for all five ways to read one file; the slowest takes some hundredths of it.
MOST_SECONDS = 5.0
MOST_BYTES = 64 << 20

KUBELETS = [(33, False), (36, False), (36, True), (37, True)]
IDS = {"1a2b": ("pod-a", "one"), "3c4d": ("pod-b", "two")}


STATES = [
    State(cpus(""), {}),
    State(cpus("0-63"), {}),
    State(cpus("0,4-7"), {"pod-a": {"one": cpus("1-2")}}),
    State(cpus("0-1"), {"pod-a": {"one": cpus("2-3,8")}, "pod-b": {"two": cpus("")}}),
]
PODS = {"pod-c": cpus("9-10"), "pod-d": cpus("")}

VALID = [
    write_checkpoint(policy, state, kind, IDS) for policy in ("none", "static") for state in STATES for kind in FORMATS
]
VALID += [
    write_checkpoint("static", state._replace(pod_assignments=PODS), kind) for state in STATES for kind in FORMATS[2:]
]
# Without a sum, damage gets further.
VALID += [re.sub(rb'"checksum":\d+', b'"checksum":0', content) for content in VALID]

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.\w]+|.', re.DOTALL)

# What is put in the place of a token.
TOKENS = [
    b"null", b"true", b"false", b"0", b"-0", b"-1", b"1e9", b"0.5", b"1E+400", b"18446744073709551615",
    b"18446744073709551616", b"99999999999999999999999999", b'""', b"[]", b"{}", b"[[[]]]", b'{"":{"":{}}}',
    b'{"a":null}', b'{"pod-a":{"one":1}}', b'{"cpuSet":"0-3"}', b'{"cpuSet":[]}', b'"cpuSet"', b'"entries"',
    b'"podEntries"', b'"data"', b'"dataChecksum"', b'"CHECKSUM"', b'"entrie\xc5\xbf"', b'"policyName"', b'"static"',
    b'"0-18446744073709551615"', b'"0-9223372036854775807"', b'"0-99999999"', b'"0-65535"', b'"0-65536"', b'"65535"',
    b'"1--3"', b'"3-1"', b'"+1"', b'"0,,1"', b'"-"', b'"\xd9\xa1"', b'"99999999999999999999x"', b'"0-3\\n"',
    b'"\\u0000"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\xff"', b'"\xed\xa0\x80"',
    b'"\xf4\x90\x80\x80"', b'"\xc0"', b"'a'", b"NaN", b"-Infinity", b"01", b"1.", b"1e", b"-", b"+1", b"tru", b"nulll",
    b"\xef\xbb\xbf", b"\x00", b"/*", b",", b":", b"{", b"}", b"[", b"]", b'"', b"\\",
]  # fmt: skip

# Larger ones, which are rare.
LARGE: list[Callable[[random.Random], bytes]] = [
    lambda rng: b"[" * rng.choice([9999, 10_000, 10_001, 30_000]),
    lambda rng: (b"[%s]" if rng.randrange(2) else b'{"a":%s}') % (b"[" * 5000 + b"]" * 5000),
    lambda rng: b'{"a":' * rng.choice([9999, 10_001]),
    lambda rng: b'{"a":' * 4000 + rng.choice(TOKENS) + b"}" * 4000,
    lambda rng: b"9" * rng.randrange(1000, 20_000),
    lambda rng: b"-1." + b"0" * rng.randrange(1000, 20_000) + b"e",
    lambda rng: b'"' + b"x" * rng.randrange(1000, 50_000) + b'"',
    lambda rng: b'"' + b"\xff" * rng.randrange(1000, 20_000) + b'"',
    lambda rng: b'"' + b"\\ud800" * rng.randrange(1000, 5000) + b'"',
    lambda rng: b'"' + b"0-65535," * rng.randrange(100, 2000) + b'1"',
    lambda rng: b'"' + b"0" * rng.randrange(1000, 20_000) + b'1"',
    lambda rng: b'"0-' + b"9" * rng.randrange(1000, 20_000) + b'"',
    lambda rng: b"{%s}" % b",".join(b'"%d":{"c":"0-65535"}' % number for number in range(rng.randrange(100, 400))),
    lambda rng: b"{%s}" % b",".join(b'"%d":{"cpuSet":"0-65535"}' % number for number in range(rng.randrange(2, 400))),
    lambda rng: b"{}" + b"".join(b',"entries":{"%d":{}}' % number for number in range(rng.randrange(100, 500))),
]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return the file with one thing changed."""
    way = rng.randrange(10)
    if way >= 5:
        return b"".join(with_other_tokens(TOKEN.findall(content), way, rng))
    at = rng.randrange(len(content) + 1)
    until = min(len(content), at + rng.randrange(1, 30))
    if way == 0 and at < len(content):  # one bit
        middle = bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    elif way == 1:  # cut off, or a part cut out
        middle = content[until:] if rng.randrange(2) else b""
    elif way == 2:  # a part twice
        middle = content[at:until] + content[at:]
    elif way == 3:  # the tail of another
        donor = rng.choice(VALID)
        middle = donor[rng.randrange(len(donor)) :]
    else:  # one byte more
        middle = bytes([rng.randrange(256)]) + content[at:]
    return content[:at] + middle


def with_other_tokens(tokens: list[bytes], way: int, rng: random.Random) -> list[bytes]:
    """Return the tokens with two of them swapped, some of them twice, or one of another kind."""
    if not tokens:
        return tokens
    first, second = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    if way == 5:
        tokens[first], tokens[second] = tokens[second], tokens[first]
    elif way == 6:
        tokens[first:first] = tokens[second : second + rng.randrange(1, 8)]
    else:
        tokens[first] = rng.choice(TOKENS) if rng.randrange(800) else rng.choice(LARGE)(rng)
    return tokens


def fnv(content: bytes) -> int:
    total = 2166136261
    for byte in content:
        total = ((total ^ byte) * 16777619) & 0xFFFFFFFF
    return total


def sealed(content: bytes) -> bytes:
    """Return a format 4 with that text and its right sum."""
    text = content.decode("utf-8", "replace")
    data = {"data": text, "dataChecksum": fnv(b"(string)" + text.encode())}
    return json.dumps(data, ensure_ascii=False).encode()


def hostile_files(chunk: int, count: int = FILES // CHUNKS) -> Iterator[bytes]:
    rng = random.Random(chunk)
    for _number in range(count):
        content = rng.choice(VALID)
        for _time in range(rng.choice([1, 1, 1, 2, 3, 5])):
            content = mutated(content, rng)
        yield sealed(content) if len(content) < 400 and not rng.randrange(4) else content


def read_everyhow(content: bytes) -> int:
    """Read a file as each kubelet and as the repair does: how many made a state of it."""
    states = 0
    for minor, pod_level in KUBELETS:
        try:
            read_checkpoint(content, minor, pod_level, IDS).state()
            states += 1
        except CheckpointError as error:
            # A person is told of it.
            str(error).encode()
    try:
        decode_checkpoint(content).state()
        states += 1
    except CheckpointError as error:
        str(error).encode()
    return states


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_hostile_files(chunk: int, record_property: Callable[[str, object], None]) -> None:
    files, states, slowest, slowest_number = 0, 0, 0.0, 0
    for number, content in enumerate(hostile_files(chunk)):
        start = time.process_time()
        try:
            states += read_everyhow(content)
        except Exception as error:  # noqa: BLE001 - that there is none is what is tested
            pytest.fail("chunk %d, file %d: %r: %r" % (chunk, number, content[:400], error))
        seconds = time.process_time() - start
        assert seconds < MOST_SECONDS, "chunk %d, file %d: %r" % (chunk, number, content[:400])
        files += 1
        if seconds > slowest:
            slowest, slowest_number = seconds, number
    record_property("hostile_files", files)
    record_property("states_read", states)
    record_property("slowest_file", "number %d: %.3f s" % (slowest_number, slowest))
    assert files == FILES // CHUNKS
    # Not all of them stop at the first byte.
    assert files // 2 < states < 5 * files


def test_files_differ() -> None:
    contents = list(hostile_files(0, 2000))
    assert len(set(contents)) > 1500
    assert contents == list(hostile_files(0, 2000))
    assert sum(map(len, contents)) < 2000 * 1000


def peak(content: bytes) -> int:
    """Return how many bytes the reading takes at most."""
    tracemalloc.start()
    try:
        read_everyhow(content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory(record_property: Callable[[str, object], None]) -> None:
    """Of every hundredth file, the most that it takes while it is read."""
    files = [content for chunk in range(CHUNKS) for content in list(hostile_files(chunk, 1000))[::100]]
    most = max(peak(content) for content in files)
    record_property("files_measured", len(files))
    record_property("most_bytes", most)
    assert most < MOST_BYTES


SIZE = 60_000

# Files of 60 kB of one thing, each with what a careless reader would do too often, or keep too long.
BIG = {
    "arrays": b"[" * SIZE,
    "objects": b'{"a":' * (SIZE // 5),
    "beside": b"[" + b"[]," * (SIZE // 3) + b"1]",
    "spaces": b" " * SIZE,
    "zeros": b"\0" * SIZE,
    "number": b'{"checksum":%s}' % (b"1" * SIZE),
    "fraction": b'{"checksum":1.%se}' % (b"1" * SIZE),
    "text": b'{"policyName":"%s"}' % (b"x" * SIZE),
    "no text": b'{"policyName":"%s' % (b"\xff" * SIZE),
    "escapes": b'{"policyName":"%s"}' % (b"\\\\" * (SIZE // 2)),
    "halves": b'{"policyName":"%s"}' % (b"\\ud800" * (SIZE // 6)),
    "digits": b'{"defaultCpuSet":"%s"}' % (b"1" * SIZE),
    "leading zeros": b'{"defaultCpuSet":"%s"}' % (b"0" * SIZE),
    "cpus": b'{"defaultCpuSet":"%s1"}' % (b"65535," * (SIZE // 6)),
    "ranges": b'{"defaultCpuSet":"%s1"}' % (b"0-65535," * (SIZE // 8)),
    "commas": b'{"defaultCpuSet":"%s"}' % (b"," * SIZE),
    "dashes": b'{"defaultCpuSet":"%s"}' % (b"-" * SIZE),
    "keys": b"{%s}" % b",".join(b'"policyName":"x"' for _number in range(SIZE // 17)),
    "pods": b'{"entries":{%s}}' % b",".join(b'"%06d":{}' % number for number in range(SIZE // 12)),
    "same pod": b'{"entries":{%s}}' % (b'"p":{"c":"1"},' * (SIZE // 14) + b'"q":{}'),
    "many entries": b'{"entries":{%s},%s}'
    % (
        b",".join(b'"%06d":{}' % number for number in range(SIZE // 24)),
        b",".join(b'"entries":{}' for _number in range(SIZE // 26)),
    ),
    "many pod entries": b'{"podEntries":{%s},%s}'
    % (
        b",".join(b'"%06d":{}' % number for number in range(SIZE // 24)),
        b",".join(b'"podEntries":{}' for _number in range(SIZE // 32)),
    ),
    "large pods": b'{"podEntries":{%s}}' % b",".join(b'"%d":{"cpuSet":"0-65535"}' % pod for pod in range(SIZE // 30)),
    "largest pods": b'{"podEntries":{%s}}' % b",".join(b'"%d":{"cpuSet":"0-65535"}' % pod for pod in range(1)),
    "containers": b'{"entries":{"p":{%s}}}' % b",".join(b'"%d":"64-127"' % number for number in range(SIZE // 16)),
}


COMB = ",".join(map(str, range(1, 65536, 2)))
TEXTS = {
    "every second CPU": [COMB],
    "high CPUs": [str(cpu) for cpu in range(65000, 65500)],
    "all CPUs": ["0-65535"],
    "CPUs of a machine": [str(cpu) for cpu in range(64)],
    "the same CPU": ["1"],
    "nothing": [""],
}


def largest(texts: list[str], pods: bool) -> bytes:
    """Return a format 2 as long as one may be, with the right sum; of pods with a container each, or of one with
    many."""
    count = LARGEST_OF_KUBELET // (30 + len(texts[0]))
    names = [(str(number), "c") if pods else ("p", str(number)) for number in range(count)]
    checkpoint = Format2()
    checkpoint.policy_name, checkpoint.default_cpu_set = "static", "0"
    entries: dict[str, dict[str, str]] = {}
    for number, (pod, container) in enumerate(names):
        entries.setdefault(pod, {})[container] = texts[number % len(texts)]
    checkpoint.entries = entries
    return checkpoint.write()


CONFIG = CPUManagerConfig("static", cpus("0-63"), cpus("0"))


@pytest.mark.parametrize("pods", [True, False], ids=["pods", "containers"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_largest_file(name: str, pods: bool) -> None:
    """All that is done with what a checkpoint says takes a time that grows as the file does."""
    content = largest(TEXTS[name], pods)
    assert LARGEST_OF_KUBELET // 3 < len(content) < LARGEST_OF_KUBELET

    start = time.process_time()
    judgement = judge(content, CONFIG)
    judgement.to_dict()
    judgement.to_text()
    if judgement.state is not None:
        list(judgement.state.owners())
    assert time.process_time() - start < MOST_SECONDS
    start = time.process_time()
    repair(pins_of(content), CONFIG, [str(number) for number in range(100_000)])
    assert time.process_time() - start < MOST_SECONDS
    tracemalloc.start()
    try:
        judge(content, CONFIG)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BIG)
def test_big_file(name: str, record_property: Callable[[str, object], None]) -> None:
    for content in (BIG[name], sealed(BIG[name])):
        start = time.process_time()
        read_everyhow(content)
        seconds = time.process_time() - start
        record_property("seconds", seconds)
        assert seconds < MOST_SECONDS
    most = peak(BIG[name])
    record_property("most_bytes", most)
    assert most < MOST_BYTES


def test_sealed_text_is_read() -> None:
    """The files that are to get past the checksum do."""
    content = write_checkpoint("static", STATES[3]._replace(pod_assignments=PODS), Format3)
    assert read_checkpoint(sealed(content), 37, True).state() == STATES[3]._replace(pod_assignments=PODS)

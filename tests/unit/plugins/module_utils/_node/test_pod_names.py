# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""States with hashes in place of names are as right or wrong as before."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import json_text, read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import hashed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redaction import UnsafeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.pod_names import (
    checkpoint_without_names,
    memory_state_without_names,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state import memory_manager as memory_formats
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import read_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import FORMATS, CheckpointError, fnv
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

ASSIGNMENTS = {
    "uid-1": {"server": CPUSet.parse("2-3"), "side<car>": CPUSet.parse("4")},
    "uid-2": {"server": CPUSet([5])},
}
STATE = State(CPUSet.parse("0-1,6-7"), ASSIGNMENTS)
HASHED = {uid: {hashed(name): cpus for name, cpus in containers.items()} for uid, containers in ASSIGNMENTS.items()}


def test_a_hash_is_short_and_always_the_same() -> None:
    assert hashed("server") == "b3eacd33"
    assert hashed("\udcff") == hashed("\udcff") != hashed("server")


@pytest.mark.parametrize(("version", "minor"), [(2, 30), (2, 36), (3, 36), (4, 37)])
def test_a_checkpoint(version: int, minor: int) -> None:
    content = write_checkpoint("static", STATE, FORMATS[version - 1])
    found = checkpoint_without_names(content)
    assert b"server" not in found
    assert b"car" not in found
    state = read_checkpoint(found, minor, pod_level=version == 3).state()
    assert state == STATE._replace(assignments=HASHED)
    if version == 4:
        # Also what an older kubelet reads of it.
        assert read_checkpoint(found, 36).state() == STATE._replace(assignments=HASHED)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_wrong_checksum_stays_wrong(version: int) -> None:
    data = json.loads(write_checkpoint("static", STATE, FORMATS[version - 1]))
    for name in {"checksum", "dataChecksum"} & data.keys():
        data[name] += 1
    found = checkpoint_without_names(json.dumps(data).encode())
    assert b"server" not in found
    with pytest.raises(CheckpointError):
        read_checkpoint(found, 37 if version == 4 else 36, pod_level=version == 3).verify()


def test_a_checkpoint_without_containers_stays_the_same() -> None:
    content = write_checkpoint("static", State(CPUSet.parse("0-7"), {}), FORMATS[1])
    assert checkpoint_without_names(content) == content


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff", b'{"entries":{"u":{"server":"1"}},"x":1}', b'{"entries":5}', b"[" * 100000],
)
def test_a_damaged_state_is_not_told_apart(content: bytes) -> None:
    for without_names in (checkpoint_without_names, memory_state_without_names):
        with pytest.raises(UnsafeError):
            without_names(content)


@pytest.mark.parametrize(("minor", "pod_level"), [(33, False), (36, False), (36, True), (37, True)])
def test_a_memory_state(minor: int, pod_level: bool) -> None:
    config = memory_formats.MemoryConfig("Static", {}, minor, pod_level)
    block = {"numaAffinity": [0], "type": "memory", "size": 1024}
    plain = json.loads(memory_formats.write_memory(config, {}, {} if pod_level else None))
    entries = {"uid-1": {"server": [block]}}
    # The same with a container, and sums that are right.
    if "data" in plain:
        inner = {**json.loads(plain["data"]), "entries": entries}
        plain["data"] = json_text(inner)
        plain["dataChecksum"] = fnv("(string)" + plain["data"])
    plain["entries"] = entries
    fields = memory_formats.FORMAT2 if pod_level and minor == 36 else memory_formats.FORMAT1
    plain["checksum"] = memory_formats.sum_of(
        fields, memory_formats.decoded(fields, "x", read_json(json.dumps(plain).encode()))[0]
    )
    content = json.dumps(plain).encode()
    assert list((memory_formats.restore_memory(content, config).entries or {})["uid-1"]) == ["server"]
    found = memory_state_without_names(content)
    assert b"server" not in found
    restored = memory_formats.restore_memory(found, config).entries or {}
    assert list(restored["uid-1"]) == [hashed("server")]
    plain["checksum"] += 1
    plain["dataChecksum"] = 5
    with pytest.raises(memory_formats.MemoryStateError):
        memory_formats.restore_memory(memory_state_without_names(json.dumps(plain).encode()), config)

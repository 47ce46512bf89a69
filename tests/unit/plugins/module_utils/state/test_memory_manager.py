# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    memory_owners,
    memory_refusal,
)

GIB = 1 << 30
OTHER_MACHINE = "[memorymanager] the expected machine state is different from the real one"


def state(policy: str, reserved: dict[int, dict[str, int]], **entries: Any) -> bytes:
    machine = {
        str(node): {"memoryMap": {kind: {"systemReserved": amount} for kind, amount in kinds.items()}}
        for node, kinds in reserved.items()
    }
    data = {"policyName": policy, "machineState": machine, "entries": entries, "checksum": 1}
    return json.dumps(data).encode("ascii")


@pytest.mark.parametrize(
    ("content", "policy", "reserved", "reason"),
    [
        (state("None", {}), "None", {}, ""),
        # The policy None looks at nothing else.
        (state("None", {0: {"memory": 1}}), "None", {0: {"memory": GIB}}, ""),
        (state("Static", {0: {"memory": GIB}, 1: {"memory": 0}}), "Static", {0: {"memory": GIB}}, ""),
        (state("Static", {0: {"memory": GIB}}), "Static", {0: {"memory": 2 * GIB}}, OTHER_MACHINE),
        (state("Static", {0: {"memory": GIB}}), "Static", {1: {"memory": GIB}}, OTHER_MACHINE),
        (state("Static", {0: {"memory": GIB, "hugepages-1Gi": GIB}}), "Static", {0: {"memory": GIB}}, OTHER_MACHINE),
        (
            state("Static", {}),
            "None",
            {},
            '[memorymanager] configured policy "None" differs from state checkpoint policy "Static"',
        ),
        (b'{"POLICYNAME":"None"}', "None", {}, ""),
        (b'{"policyName":"Static","machineState":{"0":{"memoryMap":{"memory":{}}}}}', "Static", {}, ""),
        (b'{"policyName":"Static","machineState":{"0":null,"x":{"memoryMap":[]}}}', "Static", {}, ""),
        (b"null", "None", {}, ""),
        (b"", "None", {}, "unexpected end of JSON input"),
    ],
)
def test_refusal(content: bytes, policy: str, reserved: dict[int, dict[str, int]], reason: str) -> None:
    assert memory_refusal(content, policy, reserved) == reason


def test_owners() -> None:
    row = [{"numaAffinity": [0], "type": "memory", "size": GIB}]
    assert memory_owners(state("Static", {}, b={"one": row}, a={"two": row, "one": row})) == [
        ("a", "one"),
        ("a", "two"),
        ("b", "one"),
    ]
    for content in (b"", b"null", b"{}", b'{"entries":null}', state("None", {})):
        assert memory_owners(content) == []

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start_check import Checked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.memory_state import (
    MemoryPlan,
    memory_loss_error,
    plan_memory_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions

FILE = "/var/lib/kubelet/memory_manager_state"
OWNED = b'{"policyName":"Static","entries":{"uid-1":{"db":[{"type":"memory"}],"log":[{"type":"memory"}]}},"checksum":1}'
OTHER_POLICY = '[memorymanager] configured policy "None" differs from state checkpoint policy "Static"'
LOST = [{"pod": "uid-1", "container": "db"}, {"pod": "uid-1", "container": "log"}]


def checked(memory_manager_policy: str | None) -> Checked:
    return Checked([], "static", None, StaticOptions(), False, memory_manager_policy, {})


@pytest.mark.parametrize(
    ("old", "policy", "told"),
    [
        (None, "None", {"verdict": "absent", "reason": "", "lost": []}),
        (OWNED, "Static", {"verdict": "accepted", "reason": "", "lost": []}),
        (OWNED, None, {"verdict": "accepted", "reason": "", "lost": []}),  # nobody can say what it is compared with
        (OWNED, "None", {"verdict": "refused", "reason": OTHER_POLICY, "lost": LOST}),
        (b"", "None", {"verdict": "refused", "reason": "unexpected end of JSON input", "lost": []}),
    ],
)
def test_what_becomes_of_it(old: bytes | None, policy: str | None, told: dict[str, Any]) -> None:
    plan = plan_memory_state(old, checked(policy))
    assert plan.old == old
    assert plan.to_dict() == told
    assert plan.changed == (told["verdict"] == "refused")


def test_memory_that_containers_would_lose() -> None:
    error = memory_loss_error(FILE, plan_memory_state(OWNED, checked("None")))
    assert error is not None
    assert error.to_dict() == {
        "kind": "assignments",
        "where": FILE,
        "remedy": "drain the node and set discard_assignments: true",
    }
    assert str(error) == (
        "%s: the kubelet would refuse it (%s), and these containers would lose their memory: pod uid-1, container db,"
        " pod uid-1, container log; nothing was written; drain the node and set discard_assignments: true"
    ) % (FILE, OTHER_POLICY)


def test_nobody_loses_memory() -> None:
    assert memory_loss_error(FILE, plan_memory_state(OWNED, checked("Static"))) is None
    assert memory_loss_error(FILE, MemoryPlan(b"", "unexpected end of JSON input")) is None

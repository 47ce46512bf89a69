# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.finding import (
    Finding,
    harmful,
    refused,
    refused_by,
)


def test_findings() -> None:
    assert refused("text", "cause", "remedy", "where") == Finding("text", "cause", "remedy", True, "where")
    assert harmful("cause", "remedy", "where") == Finding("", "cause", "remedy", False, "where")
    assert harmful("cause", "remedy", "where", "text").text == "text"


def test_a_refusal_from_elsewhere_keeps_its_remedy_apart() -> None:
    assert refused_by(KubeletError("no; never", "do that"), "cause", "where", "the policy: ") == refused(
        "the policy: no; never", "cause", "do that", "where"
    )
    assert refused_by(KubeletError("no"), "cause", "where").remedy == ""


def test_plain_data() -> None:
    assert refused("t", "c", "r", "w").to_dict() == {
        "text": "t",
        "cause": "c",
        "remedy": "r",
        "fatal": True,
        "where": "w",
    }

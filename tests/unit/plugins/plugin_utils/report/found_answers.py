# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the findings of an answer are, as several tests ask for them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import collected, view
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import findings_of

TODAY = "2026-11-23"
KEYS = ["check", "severity", "subject", "wanted", "found", "source", "text", "remedy", "waived", "since", "first_seen"]


def found(answer: Any, running: Any = None, looks: Any = None) -> list[Any]:
    node = collected("a", answer)
    return findings_of(view(node), node, running or {}, looks or {})


def checks(answer: Any, running: Any = None) -> list[str]:
    return [finding["check"] for finding in found(answer, running)]


def noted(*notes: Any, ids: Any) -> list[tuple[str, str]]:
    answer = {"status": "clean", "notes": list(notes), "note_checks": ids}
    return [(finding["check"], finding["text"]) for finding in found(answer)]

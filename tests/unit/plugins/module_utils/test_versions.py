# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/versions.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.versions import version_notes

ASSUMED = "the version of the kubelet is not known: 1.36 is assumed, the newest whose answers were replayed;"


@pytest.mark.parametrize(
    ("minor", "note"),
    [
        (
            20,
            "the rules are not tested against a kubelet 1.20, only against 1.33 to 1.36: try one node first",
        ),
        (32, "the rules are not tested against a kubelet 1.32, "),
        (33, None),
        (36, None),
        (37, "the rules are not tested against a kubelet 1.37, "),
    ],
)
def test_a_version_whose_rules_are_not_known_for_sure_is_a_note(minor: int, note: str | None) -> None:
    notes = version_notes(minor)
    assert len(notes) == (note is not None)
    assert all(text.startswith(str(note)) for text in notes)


def test_an_assumed_version_is_a_note() -> None:
    assert version_notes(36, True) == [ASSUMED + " give kubelet_version"]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/versions.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version, version_notes

ASSUMED = "the version of the kubelet is not known: 1.36 is assumed, the newest whose answers were replayed;"


TRY = ": let its kubelet try the start (kubelet_trial), or try one node first"
UNTESTED = "the rules are not tested against a kubelet 1.%d, only against 1.33 to 1.36" + TRY
READ = "the rules for a kubelet 1.%d are not tested against one: its "
REST = "all else is taken to be as in 1.36"
OLDER = (
    READ
    + "feature gates, flags, fields, their checks and policy options are known from its sources;"
    + " the words of its errors, and which CPUs it takes, are not certain"
)
GATES = "feature gates, flags and checkpoints, as they were shortly before its release, are known from its sources; "
NEWER = READ + GATES + REST


@pytest.mark.parametrize(
    ("minor", "note"),
    [
        (20, UNTESTED),
        (28, UNTESTED),
        (29, OLDER + TRY),
        (32, OLDER + TRY),
        (37, NEWER + TRY),
        (38, UNTESTED),
    ],
)
def test_a_version_whose_rules_are_not_known_for_sure_is_a_note(minor: int, note: str) -> None:
    assert version_notes(minor) == [note % minor]


@pytest.mark.parametrize("minor", [33, 36])
def test_a_tested_version_has_no_note(minor: int) -> None:
    assert version_notes(minor) == []


def test_an_assumed_version_is_a_note() -> None:
    assert version_notes(36, True) == [ASSUMED + " give kubelet_version"]


OLD = "leave the node out, or bring its kubelet to 1.20 or later first"


@pytest.mark.parametrize(
    ("version", "remedy"),
    [
        ("1.3", 'write it in quotes, as in "1.30", if that is meant; else ' + OLD),
        ("1.19", OLD),
        ("v1.18.20", OLD),
        ("v1.9.3", OLD),
    ],
)
def test_the_remedy_for_a_version_that_is_too_old(version: str, remedy: str) -> None:
    """Only what YAML can have cut short is to be put in quotes."""
    with pytest.raises(InputError) as error:
        minor_version(version)
    assert error.value.remedy == remedy
    assert "is older than 1.20" in str(error.value)

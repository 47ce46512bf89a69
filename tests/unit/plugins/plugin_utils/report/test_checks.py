# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import (
    CHECKS,
    DANGER,
    NOTE,
    SEVERITIES,
    WARNING,
    Check,
    check_of_subject,
)

CORE = Path(__file__).parents[5] / "plugins" / "module_utils"


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.id)
def test_a_check_is_whole(check: Check) -> None:
    assert re.fullmatch("[a-z]+(-[a-z]+)*", check.id)
    assert CHECKS[check.id] is check
    assert check.severity in SEVERITIES
    assert not check.title.endswith(".")
    for sentence in (check.why, check.remedy):
        assert sentence.endswith(".")
    assert "{" not in check.remedy_for()


def test_the_worst_come_first() -> None:
    assert SEVERITIES == (DANGER, WARNING, NOTE)
    severities = [SEVERITIES.index(check.severity) for check in CHECKS.values()]
    assert severities == sorted(severities)


def test_a_subject_is_of_one_check() -> None:
    subjects = [subject for check in CHECKS.values() for subject in check.subjects]
    assert len(subjects) == len(set(subjects))
    # A note is no drift.
    assert not [check.id for check in CHECKS.values() if check.severity == NOTE and check.subjects]


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_setting_has_a_check(setting: str) -> None:
    check = check_of_subject(setting)
    assert setting in check.subjects
    assert check.severity == WARNING
    assert "set kubelet_%s to" % setting in check.remedy_for(setting)


@pytest.mark.parametrize(
    ("subject", "check"),
    [
        ("configuration", "configuration-unreadable"),
        ("start", "kubelet-would-not-start"),
        ("checkpoint", "checkpoint-refused"),
        ("memory_state", "memory-state-refused"),
        ("container shop/db-0/server", "cpuset-differs"),
        ("cgroup kubepods.slice", "cgroup-differs"),
        ("isolated", "isolated-cpus-differ"),
        ("nohz_full", "isolated-cpus-differ"),
        # What no check names.
        ("/var/lib/kubelet/config.yaml", "field-differs"),
        ("featureGates.CPUManager", "field-differs"),
        ("", "field-differs"),
        ("container", "field-differs"),
        ("containers a/b/c", "field-differs"),
        ("start now", "field-differs"),
        (" start", "field-differs"),
    ],
)
def test_check_of_a_subject(subject: str, check: str) -> None:
    assert check_of_subject(subject).id == check


def test_a_remedy_names_no_variable_of_what_is_no_setting() -> None:
    remedy = CHECKS["policy-differs"].remedy_for("topology_manager_scope")
    assert "set the variable of the role kubelet to" in remedy
    assert CHECKS["field-differs"].remedy_for("featureGates.CPUManager") == CHECKS["field-differs"].remedy
    assert CHECKS["cpuset-differs"].remedy_for("container ") == CHECKS["cpuset-differs"].remedy


def test_each_note_of_a_node_has_a_check() -> None:
    """The ids of notes stand in the code that makes them."""
    ids = set()
    for path in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note":
                first = node.args[0]
                ids |= {part.value for part in ast.walk(first) if isinstance(part, ast.Constant)}
    assert len(ids) > 10
    assert ids <= set(CHECKS)

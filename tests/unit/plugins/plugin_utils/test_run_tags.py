# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/run_tags.py; tests/playbooks/test_tags.py has runs with tags."""

from __future__ import annotations

from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.run_tags import is_chosen


@pytest.mark.parametrize(
    ("tags", "only", "skipped", "chosen"),
    [
        ((), ("all",), (), True),
        (("report",), ("report",), (), True),
        (("report", "more"), ("report",), ("more",), False),
        (("report",), ("verify",), (), False),
        (("clean", "never"), ("all",), (), False),
        (("clean", "never"), ("clean",), (), True),
        (("report",), ("tagged",), (), True),
        # It is run whatever is chosen, and reads no node.
        (("always",), ("report",), (), False),
        (("always", "report"), ("report",), (), True),
    ],
)
def test_what_ansible_runs(tags: Sequence[str], only: Sequence[str], skipped: Sequence[str], chosen: bool) -> None:
    assert is_chosen(tags, only, skipped) is chosen

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each action plugin fails with the reason. tests/matrix asks each ansible-core the same."""

from __future__ import annotations

from pathlib import Path

from .conftest import ansible_playbook
from .unhappy import unhappy_plays, unhappy_problems


def test_each_action_plugin_says_why_it_fails(tmp_path: Path) -> None:
    run = ansible_playbook(tmp_path, unhappy_plays(), {"node": {}})
    assert unhappy_problems(run.results["node"]) == [], run.account()

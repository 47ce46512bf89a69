# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The versions of Ansible are tried as far as there is time."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.tests.lacking import need_time


@pytest.fixture(scope="session", autouse=True)
def _enough_time() -> None:
    need_time(4, "to try each ansible-core")

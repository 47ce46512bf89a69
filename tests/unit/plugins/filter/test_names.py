# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/filter/names.py."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubenode.cpu_manager.plugins.filter.names import FilterModule

FILTERS = FilterModule().filters()


def test_host_file_name() -> None:
    found = [FILTERS["host_file_name"](host) for host in ("worker-3", "a/b", "a_b", "..")]
    assert found == ["worker-3", "a%2Fb", "a_b", "%2E%2E"]


@pytest.mark.parametrize("host", ["", None, 1, ["a"]])
def test_what_is_no_name_of_a_host(host: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="host_file_name takes the name of a host, not "):
        FILTERS["host_file_name"](host)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/filter/variables.py."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubenode.cpu_manager.plugins.filter.variables import FilterModule

FILTERS = FilterModule().filters()


def test_misspelled_variables() -> None:
    found = FILTERS["misspelled_variables"](["kubelet_max_pods", "kubelet_cpu_manager_polcy", "ansible_host"])
    assert found == [{"name": "kubelet_cpu_manager_polcy", "meant": "kubelet_cpu_manager_policy"}]
    assert FILTERS["misspelled_variables"]([]) == []


@pytest.mark.parametrize("names", ["kubelet_cpu_manager_polcy", {"a": 1}, [1], [""], None])
def test_what_is_no_list_of_names(names: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="misspelled_variables takes a list of names of variables"):
        FILTERS["misspelled_variables"](names)

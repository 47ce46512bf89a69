# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Questions about CPU sets for playbooks. Each test is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ..module_utils._base.errors import InputError
from ..module_utils.cpuset import CPUSet


def is_cpuset(value: Any) -> bool:
    """Return True for a text in the list format."""
    try:
        CPUSet.parse(value)
    except InputError:
        return False
    return True


def _comparing(compare: Callable[[CPUSet, CPUSet], bool]) -> Callable[[Any, Any], bool]:
    def test(first: Any, second: Any) -> bool:
        try:
            return compare(CPUSet.parse(first), CPUSet.parse(second))
        except InputError as error:
            raise AnsibleFilterError(str(error)) from None

    return test


class TestModule:
    """The tests of this collection."""

    def tests(self) -> dict[str, Callable[..., bool]]:
        """Return their names and functions."""
        return {
            "cpuset": is_cpuset,
            "cpuset_equal": _comparing(lambda first, second: first == second),
            "cpuset_subset": _comparing(lambda first, second: first <= second),
            "cpuset_superset": _comparing(lambda first, second: first >= second),
            "cpuset_disjoint": _comparing(lambda first, second: first.isdisjoint(second)),
        }

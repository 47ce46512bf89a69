# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The algebra of CPU sets for playbooks. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, sub, xor
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ..module_utils._base.errors import MALFORMED, NodeError
from ..module_utils.cpuset import CPUSet
from ..module_utils.topology.model import Topology
from ..plugin_utils.report.assemble import layout


def _cpus(value: Any) -> CPUSet:
    """Return a set in the list format, one CPU, or a list of CPUs."""
    if isinstance(value, int) and not isinstance(value, bool):
        return CPUSet([value])
    return CPUSet.parse(value) if isinstance(value, str) else CPUSet(value)


def _reporting(function: Callable[..., Any]) -> Callable[..., Any]:
    def filter_(*arguments: object) -> object:
        try:
            return function(*arguments)
        except (*MALFORMED, NodeError) as error:
            raise AnsibleFilterError(str(error)) from None

    return filter_


def _combining(operator: Callable[[CPUSet, CPUSet], CPUSet]) -> Callable[..., str]:
    return lambda first, *others: str(reduce(operator, (_cpus(text) for text in others), _cpus(first)))


class FilterModule:
    """The filters of this collection."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return their names and functions."""
        filters: dict[str, Callable[..., Any]] = {
            "cpuset": lambda value: str(_cpus(value)),
            "cpuset_union": _combining(or_),
            "cpuset_intersection": _combining(and_),
            "cpuset_difference": _combining(sub),
            "cpuset_symmetric_difference": _combining(xor),
            "cpuset_list": lambda value: list(_cpus(value)),
            "cpuset_mask": lambda value: _cpus(value).to_mask(),
            "cpuset_from_mask": lambda text: str(CPUSet.parse_mask(text)),
            "cpu_layout": lambda topology: layout(Topology.from_dict(topology)),
        }
        return {name: _reporting(function) for name, function in filters.items()}

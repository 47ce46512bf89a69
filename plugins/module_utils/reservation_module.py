# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arguments of modules that plan a reservation."""

from __future__ import annotations

from typing import Any

from .ansible_module import Arguments
from .policy.strategies import PACKED, SPREAD

PLANNER: dict[str, Any] = {
    "count": {"type": "int"},
    "fraction": {"type": "float"},
    "curve": {
        "type": "list",
        "elements": "dict",
        "options": {"cpus": {"type": "int"}, "fraction": {"type": "float", "required": True}},
    },
    "strategy": {"type": "str", "choices": [PACKED, SPREAD], "default": PACKED},
    "allow_split_core": {"type": "bool", "default": False},
    "near_device": {"type": "str"},
}

# One way to say how many CPUs.
_WAYS = ("count", "fraction", "curve")

RESERVATION = Arguments(
    {**PLANNER, "smt": {"type": "str", "choices": ["keep", "off"], "default": "keep"}}, mutually_exclusive=[_WAYS]
)

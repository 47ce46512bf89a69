# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much work something is, as a number that is the same on every machine."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable


def lines_run(call: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs. What is done in C within one of them counts as that line."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count

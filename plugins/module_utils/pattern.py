# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Regular expressions that are not all needed on every node."""

from __future__ import annotations

import re
from typing import Any


class Pattern:
    """A regular expression, compiled where it is first needed: compiling takes longer than most uses."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        # Called once for each method.
        method = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, method)
        return method

    def end(self, text: str, at: int) -> int:
        """Where a match that begins at `at` ends; `at` itself where there is none."""
        match = self.match(text, at)
        return int(match.end()) if match else at

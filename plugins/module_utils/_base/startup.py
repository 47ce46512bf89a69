# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Import this first: it halves the time that a node spends on importing the rest.

Ansible sends a module's code as a zip archive. Python's zipimport compiles each file of one twice, the
first time only to learn its name (get_filename() in Lib/zipimport.py, from Python 3.8 to 3.13 at least).
Compiling is most of what a short module does, so the first result is kept.

What Ansible itself has imported until now stays until the end. Compiling makes so many objects that the
garbage collector would look through all of that again and again.
"""

from __future__ import annotations

import gc
import re
import zipimport
from functools import lru_cache
from typing import Any

# Regular expressions that are not all needed on every node.


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
        """Return where a match that begins at `at` ends; `at` itself where there is none."""
        match = self.match(text, at)
        return int(match.end()) if match else at


# As many new objects as a module makes while it is imported, and more.
_OBJECTS = 100000


def keep_compiled(importer: Any = zipimport) -> None:
    """Let `importer` compile each file once; a Python that works in another way is left as it is."""
    compile_file = getattr(importer, "_get_module_code", None)
    if compile_file is not None:
        importer._get_module_code = lru_cache(maxsize=None)(compile_file)


def spare_collector(collector: object = gc) -> None:
    """Let `collector` pass over the objects that exist now; one that cannot is left as it is."""
    freeze = getattr(collector, "freeze", None)
    if freeze is not None:
        freeze()
    raise_threshold = getattr(collector, "set_threshold", None)
    if raise_threshold is not None:
        raise_threshold(_OBJECTS)


keep_compiled()
spare_collector()

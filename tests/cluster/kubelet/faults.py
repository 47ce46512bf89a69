# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to go wrong with a stand-in, other than what it would refuse itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

# It ends before it answers anybody, for a reason of its own.
REFUSES = "refuses"
# It lives, and answers nobody.
HANGS = "hangs"
# It answers, but its container runtime never does: there is no checkpoint, and the node is not ready.
NO_RUNTIME = "no runtime"
# It ends some seconds after everything was well.
DIES = "dies"


class Fault(NamedTuple):
    """A fault, and the configurations that have it: those with all of these values."""

    how: str
    when: Mapping[str, Any]
    after: float = 0.0


def read_faults(path: Path | None) -> list[Fault]:
    """Return the faults of a file, a JSON list of objects, as long as there is one."""
    if path is None or not path.exists():
        return []
    return [Fault(**fault) for fault in json.loads(path.read_text(encoding="utf-8"))]


def fault_of(configuration: Mapping[str, Any], faults: Sequence[Fault]) -> Fault | None:
    """Return the first fault that a configuration has."""
    for fault in faults:
        if all(configuration.get(name) == value for name, value in fault.when.items()):
            return fault
    return None

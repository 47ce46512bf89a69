# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the answers of real kubelets: see vectors/README.md."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any, Iterator

VECTORS = Path(__file__).parent / "vectors"


def rows(name: str) -> Iterator[dict[str, Any]]:
    """Read one row after the other of a file of vectors."""
    with lzma.open(VECTORS / (name + ".jsonl.xz"), "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)

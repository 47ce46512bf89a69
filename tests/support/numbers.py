# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many examples, kills and random nodes a test tries: few, with FULL=1 many, or as many as a variable says."""

from __future__ import annotations

import os

IS_FULL = os.environ.get("FULL") == "1"

# Of hypothesis: how many examples a test has that does not say it, and of those that do the part for `make test`.
EXAMPLES = 100 if IS_FULL else 20
_PART, _LEAST = 5, 10


def how_many(name: str, few: int, many: int) -> int:
    """Return what the variable `name` of the environment says, else few or many."""
    return int(os.environ.get(name) or (many if IS_FULL else few))


def examples(many: int) -> int:
    """Return how many examples of hypothesis a test has, of which it has `many` with FULL=1."""
    return many if IS_FULL else min(many, max(_LEAST, many // _PART))


# Of all moments at which a command is killed, or at which a stranger comes, each how-many-th is tried.
EACH = 1 if IS_FULL else 5

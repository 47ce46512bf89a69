# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one pass of the program came to."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ...policy.dynamic_state import DynamicState, Key
from ...policy.moves import Move


class Report(NamedTuple):
    """moves: those that were made. refused: what could not be done. notes: what is to be said.

    waiting: containers without their first set. state: what is promised now; None where there are no pods. seconds: how
    long it took. due: when the next announcement is to be carried out, by the clock of the passes.
    """

    moves: Sequence[Move] = ()
    refused: Sequence[str] = ()
    notes: Sequence[str] = ()
    waiting: Sequence[Key] = ()
    state: DynamicState | None = None
    seconds: float = 0.0
    due: float | None = None

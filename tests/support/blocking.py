# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must not block: a call that waits for somebody to write into a FIFO ends the test run."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import Iterator


@contextmanager
def not_blocking(seconds: int = 10) -> Iterator[None]:
    """End the whole run if what is done here takes so many seconds."""
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)

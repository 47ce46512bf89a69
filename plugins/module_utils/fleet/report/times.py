# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times and dates of a report, always in UTC. Pure."""

from __future__ import annotations

import calendar
import re
import time
from typing import Any

from ...errors import InputError

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_DATE = "%Y-%m-%d"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def time_of(seconds: float) -> str:
    """ "2026-11-23T15:04:05Z" of seconds since the epoch."""
    return time.strftime(_FORMAT, time.gmtime(seconds))


def seconds_of(moment: object) -> int:
    """Seconds since the epoch of "2026-11-23T15:04:05Z". Raises InputError."""
    return _parsed(moment, _FORMAT, "a time such as 2026-11-23T15:04:05Z")


def check_date(date: object) -> str:
    """The date, if it is one such as "2026-12-31". Raises InputError."""
    # YAML makes a date of one without quotes.
    text = date.isoformat() if hasattr(date, "isoformat") else date
    _parsed(text, _DATE, "a date such as 2026-12-31")
    return str(text)


def _parsed(text: Any, form: str, expected: str) -> int:
    try:
        parsed = time.strptime(text, form)
        if time.strftime(form, parsed) != text:
            raise ValueError(text)
    except (TypeError, ValueError) as error:
        raise InputError("%r is not %s" % (text, expected)) from error
    return calendar.timegm(parsed)


def duration_of(text: str) -> int:
    """Seconds of "24h", "90m", "7d" or "1d12h". Raises InputError."""
    parts = re.findall("([0-9]{1,9})([smhdw])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InputError("%r is not a duration" % text, remedy="write one such as 24h, 90m or 7d")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)

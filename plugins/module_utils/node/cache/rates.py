# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much memory traffic each group has caused over a time. Pure."""

from __future__ import annotations

from ...cache.resctrl import Counted, Found


def rates_between(before: Found, after: Found, seconds: float) -> dict[str, dict[int, Counted]]:
    """{group: {id of the cache: bytes a second}} of the groups that were there all the time.

    A counter that went back was begun anew, and says nothing.
    """
    found: dict[str, dict[int, Counted]] = {}
    for name, group in after.groups.items():
        first = before.groups.get(name)
        if first is not None:
            found[name] = {
                number: Counted(
                    None,
                    _rate(first.counted[number].total, now.total, seconds),
                    _rate(first.counted[number].local, now.local, seconds),
                )
                for number, now in group.counted.items()
                if number in first.counted
            }
    return found


def _rate(before: int | None, after: int | None, seconds: float) -> int | None:
    if before is None or after is None or after < before or seconds <= 0:
        return None
    return round((after - before) / seconds)

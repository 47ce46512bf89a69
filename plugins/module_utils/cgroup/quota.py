# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CFS quota of a cgroup, read and written. isolation/bandwidth.py reads all that the cpu controller has.

Source: Linux's Documentation/scheduler/sched-bwc.rst and admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .hierarchy import Hierarchy
from .writer import write_file

_V1_QUOTA, _V1_PERIOD, _V2 = "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"
_V1_NONE, _V2_NONE = "-1", "max"
_NUMBER = re.compile("[0-9]{1,19}", re.ASCII)


class Quota(NamedTuple):
    """Microseconds of each period; quota_us is None for no limit."""

    quota_us: int | None
    period_us: int

    def unlimited(self) -> Quota:
        """The same period without a limit."""
        return self._replace(quota_us=None)


def read_quota(hierarchy: Hierarchy, path: str) -> Quota | None:
    """That of a cgroup that was just listed; None where it, or its quota, is not there or cannot be read as one."""
    if hierarchy.version == 1:
        quota, period = (hierarchy.quick_value(path, name) for name in (_V1_QUOTA, _V1_PERIOD))
    else:
        quota, _blank, period = (hierarchy.quick_value(path, _V2) or "").partition(" ")
    if not quota or not period or not _NUMBER.fullmatch(period) or not int(period):
        return None
    if quota in (_V1_NONE, _V2_NONE):
        return Quota(None, int(period))
    return Quota(int(quota), int(period)) if _NUMBER.fullmatch(quota) else None


def write_quota(hierarchy: Hierarchy, path: str, quota: Quota) -> None:
    """Write it; of v1 only the quota, as the period is what it was. Raises NodeError, RefusedError."""
    if hierarchy.version == 1:
        write_file(hierarchy, path, _V1_QUOTA, _V1_NONE if quota.quota_us is None else "%d" % quota.quota_us)
    else:
        limit = _V2_NONE if quota.quota_us is None else "%d" % quota.quota_us
        write_file(hierarchy, path, _V2, "%s %d" % (limit, quota.period_us))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CFS quotas of containers that have grown, and of their pods: lifted as long as they have more than they request.

With its quota, the kernel would throttle a container to its limit, whatever its CPUs. On v1, no cgroup may have more
than the one above it; so the pod's is lifted first, and put back last.
"""

from __future__ import annotations

from typing import Iterable, Mapping

from ...cgroup.hierarchy import Hierarchy
from ...cgroup.quota import Quota, read_quota, write_quota
from ...errors import NodeError, RefusedError


class Quotas:
    """The quotas that were lifted. hierarchy: with the cpu controller; without one, nothing limits anybody.

    remembered: {cgroup: its quota}, for the promise that is written before anything is lifted.
    """

    def __init__(self, hierarchy: Hierarchy | None, remembered: Mapping[str, Quota]) -> None:
        self._hierarchy = hierarchy
        self.remembered = dict(remembered)
        self._grown: tuple[str, ...] = ()

    def remember(self, grown: Iterable[str]) -> None:
        """Read the quotas of these cgroups, those of containers that have grown and of their pods."""
        self._grown = tuple(sorted(set(grown)))
        for path in self._grown:
            quota = self._read(path)
            # One that is there again was written by somebody, such as the kubelet for a pod that was resized.
            if quota is not None and quota.quota_us is not None:
                self.remembered[path] = quota

    def lift(self) -> list[str]:
        """Lift them. Gives what the kernel refuses."""
        return [
            failure
            for path in self._grown
            if path in self.remembered
            for failure in self._write(path, self.remembered[path].unlimited())
        ]

    def put_back(self) -> list[str]:
        """Put back those of cgroups that have not grown any more, and forget them. Gives what the kernel refuses."""
        refused = []
        for path in sorted(self.remembered, reverse=True):
            if path not in self._grown:
                failures = self._write(path, self.remembered[path])
                refused += failures
                if not failures:
                    del self.remembered[path]
        return refused

    def _read(self, path: str) -> Quota | None:
        return None if self._hierarchy is None else read_quota(self._hierarchy, path)

    def _write(self, path: str, quota: Quota) -> list[str]:
        now = self._read(path)
        # A limit in the place of the one that was lifted is somebody else's.
        if now is None or self._hierarchy is None or (now.quota_us is None) == (quota.quota_us is None):
            return []
        try:
            write_quota(self._hierarchy, path, quota)
        except (NodeError, RefusedError) as error:
            return [str(error)]
        return []

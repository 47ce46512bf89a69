# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values that a kubelet's validation works with: those that it is given, and defaults for the others.

Source: pkg/kubelet/apis/config/v1beta1 (defaults.go).
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ..loading.field_table import DEFAULTS, FAIL_CGROUP_V1_SINCE, KUBELET_CONFIGURATION, LIST, STRUCTS

_SECOND = 10**9
# Durations are nanoseconds here.
_DURATIONS = {
    "containerLogMonitorInterval": 10 * _SECOND,
    "cpuCFSQuotaPeriod": _SECOND // 10,
    "imageMaximumGCAge": 0,
    "imageMinimumGCAge": 120 * _SECOND,
    "shutdownGracePeriod": 0,
    "shutdownGracePeriodCriticalPods": 0,
}


class FieldValues(NamedTuple):
    """Decoded values. Those of a wrong type count as absent: something else refuses them."""

    given: Mapping[str, Any]
    minor: int
    # The fields that a flag gives an empty value, in whose place no default comes.
    emptied: frozenset[str] = frozenset()

    def get(self, name: str) -> Any:
        """A field's value. An empty one takes the default, if the kubelet cannot distinguish it from an absent one."""
        value = self.given.get(name)
        if name in self.emptied or (value is not None and (value or _is_pointer(name))):
            return value
        default = self._default(name)
        return value if default is None else default

    def _default(self, name: str) -> object:
        if name == "failCgroupV1":
            return self.minor >= FAIL_CGROUP_V1_SINCE
        if name == "serializeImagePulls":
            # Several at a time cannot be pulled in series.
            return self.number("maxParallelImagePulls", 1) < 2
        return _DURATIONS[name] if name in _DURATIONS else DEFAULTS.get(name)

    def number(self, name: str, without: int = 0) -> int:
        """A number or a duration; `without` is for fields without a default."""
        for value in (self.get(name), self._default(name)):
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return without

    def text(self, name: str) -> str:
        """A text."""
        for value in (self.get(name), self._default(name)):
            if isinstance(value, str):
                return value
        return ""

    def is_true(self, name: str) -> bool:
        """Whether a boolean is true."""
        value = self.get(name)
        return (value if isinstance(value, bool) else self._default(name)) is True

    def items(self, name: str) -> list[Any]:
        """A list."""
        value = self.get(name)
        return value if isinstance(value, list) else []

    def struct(self, name: str) -> Mapping[str, object]:
        """A struct; empty where there is none."""
        return struct_in(self.get(name))


def struct_in(value: object) -> Mapping[str, object]:
    """A value as a struct; empty where it is none."""
    return value if isinstance(value, Mapping) else {}


def text_in(value: object) -> str:
    """A value as a text; empty where it is none."""
    return value if isinstance(value, str) else ""


def number_in(value: object) -> int:
    """A value as a number; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_pointer(name: str) -> bool:
    """Whether an absent value can be distinguished from an empty one; also that of a list."""
    field = STRUCTS[KUBELET_CONFIGURATION].get(name)
    return field is not None and (field.is_pointer or field.type.kind == LIST)

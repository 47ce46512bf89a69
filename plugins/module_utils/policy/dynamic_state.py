# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the dynamic policy has promised: who has which CPUs, and what is to leave whom when. A value, and its JSON."""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple, Tuple

from ..cpuset import CPUSet
from ..errors import InputError

VERSION = 1

# Pod UID and container.
Key = Tuple[str, str]


class Held(NamedTuple):
    """The exclusive CPUs of a container, as masks.

    admitted: the set that it was admitted with, and never goes below. cpus: all that it has. leaving: of these, what
    was announced to leave at the time `until`.
    """

    admitted: int
    cpus: int
    leaving: int = 0
    until: float = 0.0

    @property
    def grown(self) -> int:
        """What it has beyond its first set, and keeps for now."""
        return self.cpus & ~self.admitted & ~self.leaving


class DynamicState(NamedTuple):
    """All containers with exclusive CPUs in the order in which they came, and the CPUs that changed hands lately.

    shared: the mask of the shared pool. changed: {time: mask of the CPUs that changed hands then}. Times are seconds of
    any clock that all passes share.
    """

    shared: int
    containers: Mapping[Key, Held] = {}
    changed: Mapping[float, int] = {}

    def exclusive(self) -> int:
        """The mask of all CPUs that some container has to itself."""
        mask = 0
        for held in self.containers.values():
            mask |= held.cpus
        return mask

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a checkpoint; from_dict() reads it back."""
        return {
            "version": VERSION,
            "policy": "dynamic",
            "shared": _text(self.shared),
            "containers": [
                {
                    "pod": pod,
                    "container": name,
                    "admitted": _text(held.admitted),
                    "cpus": _text(held.cpus),
                    **({"leaving": _text(held.leaving), "until": held.until} if held.leaving else {}),
                }
                for (pod, name), held in self.containers.items()
            ],
            "changed": [{"at": at, "cpus": _text(mask)} for at, mask in sorted(self.changed.items())],
        }

    @classmethod
    def from_dict(cls, data: Any, where: str = "") -> DynamicState:
        """The state that to_dict() described. Raises InputError about `where` for all else, also for CPUs that two
        containers have, or a container and the shared pool."""
        try:
            if data["version"] != VERSION or data["policy"] != "dynamic":
                raise InputError("version %r of policy %r is not known" % (data["version"], data["policy"]))
            containers = {}
            for row in data["containers"]:
                key = (_name(row["pod"]), _name(row["container"]))
                if key in containers:
                    raise InputError("pod %s, container %s is there twice" % key)
                containers[key] = _held(row)
            changed = {_time(row["at"]): _mask(row["cpus"]) for row in data["changed"]}
            state = cls(_mask(data["shared"]), containers, changed)
        except InputError as error:
            raise error.within(where) if where else error from error
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(
                "is no state of the dynamic policy (%s: %s)" % (type(error).__name__, error), where
            ) from error
        seen = state.shared
        for key, held in containers.items():
            if held.cpus & seen:
                raise InputError(
                    "pod %s, container %s has CPUs %s, which a second container or the shared pool has, too"
                    % (*key, _text(held.cpus & seen)),
                    where,
                )
            seen |= held.cpus
        return state


def _held(row: Mapping[str, Any]) -> Held:
    admitted, cpus, leaving = _mask(row["admitted"]), _mask(row["cpus"]), _mask(row.get("leaving", ""))
    if not cpus or admitted & ~cpus or leaving & ~(cpus & ~admitted):
        raise InputError(
            "pod %s, container %s: CPUs %s, admitted with %s and leaving %s do not go together"
            % (row["pod"], row["container"], row["cpus"], row["admitted"], row.get("leaving", "none"))
        )
    return Held(admitted, cpus, leaving, _time(row["until"]) if leaving else 0.0)


def _mask(text: str) -> int:
    return CPUSet.parse(text).mask


def _name(text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise InputError("%r is no name" % (text,))
    return text


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError("%r is no time" % (value,))
    return float(value)


def _text(mask: int) -> str:
    return str(CPUSet.from_mask(mask))

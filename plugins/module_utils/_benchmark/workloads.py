# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is run and measured: the workloads that this collection brings, and users' commands. Pure."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple

from .._base.errors import InputError, option
from .worker import COMPUTE, MEMORY

VICTIM, AGGRESSOR = "victim", "aggressor"
# {what a workload is in the experiments: the kind of work that it does unless another was given}
ROLES = {VICTIM: COMPUTE, AGGRESSOR: COMPUTE, COMPUTE: COMPUTE, MEMORY: MEMORY}
COMMAND = "command"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
STRESS_NG = "stress-ng"


class Workload(NamedTuple):
    """kind: compute, memory or command. Of a command, how its time is read: patterns with one group, a number."""

    role: str
    kind: str
    command: tuple[str, ...] = ()
    # Its run time, None for wall clock; and each of its latencies, None for none.
    time_pattern: str | None = None
    latency_pattern: str | None = None
    unit: str = "s"

    @property
    def is_own(self) -> bool:
        """Whether it is a command."""
        return self.kind == COMMAND

    def read(self, output: str, wall: float) -> dict[str, Any]:
        """What a run took: {seconds, latencies}. Raises InputError where the output does not have it."""
        scale = UNITS[self.unit]
        seconds = wall
        if self.time_pattern is not None:
            found = [self._number(text) for text in re.findall(self.time_pattern, output)]
            if not found:
                raise self.wrong("prints no time: nothing matches time_pattern %s" % self.time_pattern)
            seconds = found[-1] * scale
        latencies: list[float] = []
        if self.latency_pattern is not None:
            latencies = [self._number(text) * scale for text in re.findall(self.latency_pattern, output)]
            if not latencies:
                raise self.wrong("prints no latency: nothing matches latency_pattern %s" % self.latency_pattern)
        return {"seconds": seconds, "latencies": latencies}

    def _number(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number < float("inf"):
            raise self.wrong("prints the time %r, which is no number above 0" % text[:40])
        return number

    def wrong(self, what: str) -> InputError:
        """What is wrong with this workload."""
        remedy = "run `%s` on the node, and compare what it does" % " ".join(self.command)[:200]
        return InputError(what, "%s.%s" % (option("workloads"), self.role), remedy)


def workloads_of(given: Mapping[str, Mapping[str, object]], stress_ng: bool) -> dict[str, Workload]:
    """The workload of each role. given: {role: {command, time_pattern, latency_pattern, unit}}. Raises InputError."""
    unknown = sorted(set(given) - set(ROLES))
    if unknown:
        raise InputError("%s is none of the workloads: %s" % (unknown[0], ", ".join(ROLES)), where=option("workloads"))
    if stress_ng and AGGRESSOR in given:
        raise InputError(
            "the aggressor is a command of yours already, in %s" % option("workloads"), where=option("stress_ng")
        )
    found = {role: _own(role, given[role]) if role in given else Workload(role, kind) for role, kind in ROLES.items()}
    if stress_ng:
        # One for each process of the aggressor.
        found[AGGRESSOR] = Workload(AGGRESSOR, COMMAND, (STRESS_NG, "--cpu", "1", "--quiet"))
    return found


def _own(role: str, given: object) -> Workload:
    where = "%s.%s" % (option("workloads"), role)
    allowed = ("command", "time_pattern", "latency_pattern", "unit")
    if not isinstance(given, Mapping):
        raise InputError("is no mapping", where, "give it a command, as a list of words")
    unknown = sorted(str(name) for name in set(given) - set(allowed))
    if unknown:
        raise InputError("%s is none of its keys: %s" % (unknown[0], ", ".join(allowed)), where)
    command = given.get("command")
    if not isinstance(command, (list, tuple)) or not command or not all(isinstance(word, str) for word in command):
        raise InputError("its command is no list of words", where, "write each argument as one text of a list")
    for name in ("time_pattern", "latency_pattern"):
        _check_pattern(given.get(name), where + "." + name)
    unit = given.get("unit") or "s"
    if unit not in UNITS:
        raise InputError("unit %s is none of %s" % (unit, ", ".join(UNITS)), where)
    patterns = (given.get("time_pattern") or None, given.get("latency_pattern") or None)
    return Workload(role, COMMAND, tuple(command), *patterns, unit)


def _check_pattern(pattern: Any, where: str) -> None:
    if not pattern:
        return
    try:
        groups = re.compile(pattern).groups
    except (re.error, TypeError, RecursionError) as error:
        raise InputError("is no regular expression: %s" % error, where) from error
    if groups != 1:
        raise InputError("has %d groups" % groups, where, "put one pair of parentheses around the number")

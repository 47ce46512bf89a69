# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the program was installed with: a JSON file that the role reconcile writes. Pure."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple

from .._base.errors import InputError, KubeletError
from .._base.versions import NEWEST_MINOR
from ..cpuset import CPUSet
from ..policy.dynamic import DYNAMIC
from ..policy.dynamic_state import MOST_DELAY
from ..policy.isolated import ISOLATED
from ..policy.options import StaticOptions, parse_static_options, texts_of_options

POLICIES = (DYNAMIC, ISOLATED)

# As systemd writes times; see systemd.time(7).
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(ms|sec|s|min|m|h|) *", re.ASCII)
_SHORTEST_PERIOD = 0.1


class Settings(NamedTuple):
    """By what the program works. period, settle, delay: seconds. reserved: None for what the kubelet reserves."""

    policy: str
    period: float = 5.0
    settle: float = 30.0
    delay: float = 5.0
    shared_minimum: int = 0
    reserved: CPUSet | None = None
    options: StaticOptions = StaticOptions()
    use_runtime: bool = True
    runtime_endpoint: str | None = None
    config_path: str | None = None
    kubelet_root: str | None = None
    allow_owners: tuple[str, ...] = ()
    textfile: str | None = None


def read_settings(data: Mapping[str, Any]) -> Settings:
    """Return the settings in the program's file. Raises InputError, which names the member."""
    policy = data.get("policy")
    if policy not in POLICIES:
        raise InputError("%r is none of %s" % (policy, ", ".join(POLICIES)), where="policy")
    period = seconds_of(data.get("period", "5s"), "period")
    if period < _SHORTEST_PERIOD:
        raise InputError("is shorter than %g s" % _SHORTEST_PERIOD, where="period")
    minimum = data.get("shared_minimum", 0)
    if isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < 0:
        raise InputError("%r is not a number of CPUs" % (minimum,), where="shared_minimum")
    return Settings(
        policy,
        period,
        seconds_of(data.get("settle", "30s"), "settle"),
        _delay(data.get("delay", "5s")),
        minimum,
        _reserved(data.get("reserved_cpus")),
        _options(data.get("policy_options") or {}),
        data.get("use_runtime", True) is True,
        data.get("runtime_endpoint"),
        data.get("config_path"),
        data.get("kubelet_root"),
        tuple(data.get("allow_owners") or ()),
        data.get("textfile"),
    )


def _delay(text: object) -> float:
    delay = seconds_of(text, "delay")
    if delay > MOST_DELAY:
        raise InputError("%s is longer than %d seconds" % (text, MOST_DELAY), where="delay")
    return delay


def seconds_of(text: object, where: str) -> float:
    """Return a time such as "10s", "1min 30s" or 10, in seconds. Raises InputError about `where`."""
    rest, total = str(text).strip(), 0.0
    if isinstance(text, bool) or not rest:
        raise InputError("%r is no time" % (text,), where=where, remedy='write it as "30s"')
    while rest:
        found = _TIME.match(rest)
        if found is None:
            raise InputError("%r is no time" % (text,), where=where, remedy='write it as "30s"')
        total += float(found.group(1)) * _UNITS[found.group(2)]
        rest = rest[found.end() :]
    return total


def _reserved(text: object) -> CPUSet | None:
    if text is None or text == "":
        return None
    try:
        return CPUSet.parse(str(text))
    except InputError as error:
        raise error.within("reserved_cpus") from error


def _options(options: Mapping[str, object]) -> StaticOptions:
    """Return all of the static policy's options are there, whatever the kubelet's gates: this is not the kubelet's
    policy."""
    try:
        return parse_static_options(texts_of_options(options), NEWEST_MINOR, True, True)
    except (KubeletError, AttributeError) as error:
        raise InputError(str(error), where="policy_options") from error

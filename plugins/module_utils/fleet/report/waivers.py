# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waivers: findings that somebody has accepted until a day, with a reason. Pure."""

from __future__ import annotations

from typing import Iterable

from ...arguments import instead, nearest
from ...errors import InputError
from .checks import CHECKS
from .times import check_date

_KEYS = frozenset(("check", "reason", "until", "subject"))


def checked_waivers(waivers: Iterable[object], option: str) -> list[dict[str, str]]:
    """The waivers, as result files hold them. Raises InputError for one that is wrong. option: the name in messages.

    waivers: [{"check", "reason", "until"}], with `subject` where only one is meant.
    """
    return [_checked(waiver, "%s[%d]" % (option, number)) for number, waiver in enumerate(waivers)]


def _checked(waiver: object, where: str) -> dict[str, str]:
    if not isinstance(waiver, dict):
        raise InputError("%r is no mapping" % (waiver,), where, "give check, reason and until")
    unknown = sorted(str(key) for key in waiver if key not in _KEYS)
    if unknown:
        raise InputError("has the unknown key %s" % unknown[0], where, instead(unknown[0], sorted(_KEYS)))
    missing = [key for key in ("check", "reason", "until") if not waiver.get(key)]
    if missing:
        raise InputError("has no %s" % missing[0], where, "give check, reason and until")
    if not isinstance(waiver["check"], str) or waiver["check"] not in CHECKS:
        meant = nearest(waiver["check"], CHECKS)
        remedy = "did you mean %s?" % meant if meant else "take an id from the page on the checks"
        raise InputError("there is no check %s" % (waiver["check"],), where, remedy)
    try:
        until = check_date(waiver["until"])
    except InputError as error:
        raise InputError(error.what, where + ".until", error.remedy) from error
    return {**{key: str(value) for key, value in waiver.items() if value is not None}, "until": until}

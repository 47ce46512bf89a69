# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much of a cache is wanted: a part in percent, a number of ways, or in proportion to the exclusive CPUs. Pure."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, NamedTuple

from ..errors import InputError, option
from ..tree import is_number

# "proportional": as large a part as the exclusive CPUs are of the CPUs of the cache.
PROPORTIONAL = "proportional"
# What holds for each id that is not named itself.
ALL = "all"

_PERCENT, _WAYS = re.compile(r"(\d{1,3})\s*%", re.ASCII), re.compile(r"\d{1,3}", re.ASCII)
_FORMS = "give 1%% to 99%%, a number of ways, or %s" % PROPORTIONAL


class Part(NamedTuple):
    """So many of so many."""

    some: int
    of_all: int


class Share(NamedTuple):
    """One of percent and ways, or neither for a part in proportion to the exclusive CPUs."""

    percent: int = 0
    ways: int = 0

    def of(self, ways: int, least: int, room: int, part: Part) -> int:
        """How many ways that is, of `ways`. part: of the CPUs for which it is in proportion.

        least: as few as the kernel takes. room: as many as there can be. A part is rounded, and brought between the
        two; a number is taken as it is, and is for the caller to check.
        """
        if self.ways:
            return self.ways
        some, of_all = (self.percent, 100) if self.percent else part
        # To the next whole number, a half upwards.
        return max(least, min(room, (2 * ways * some + of_all) // (2 * of_all)))

    def __str__(self) -> str:
        return "%d%%" % self.percent if self.percent else str(self.ways) if self.ways else PROPORTIONAL


# {id of a cache, or "all": its share}
Shares = Mapping[str, Share]


def parse_shares(given: Any, name: str) -> Shares:
    """Read what an operator wants of each cache: "60%", 6, "proportional", or {"all": "60%", "0": 6}.

    name: of the option. Raises InputError.
    """
    if not isinstance(given, Mapping):
        return {ALL: _share(given, option(name))}
    if not given:
        raise InputError("names no cache", where=option(name), remedy='give a share for "%s"' % ALL)
    shares: dict[str, Share] = {}
    for key, value in given.items():
        text = str(key).strip()
        where = "%s, %s" % (option(name), text)
        if text != ALL and not (is_number(text) and len(text) < 10):
            raise InputError('is no id of a cache and not "%s"' % ALL, where=where)
        text = text if text == ALL else str(int(text))
        if text in shares:
            raise InputError("is there twice", where=where)
        shares[text] = _share(value, where)
    return shares


def _share(given: Any, where: str) -> Share:
    text = "" if isinstance(given, bool) else str(given).strip()
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        share = Share(percent=int(percent.group(1)))
        if not 1 <= share.percent <= 99:
            what = "nothing would be left for others" if share.percent else "nothing would be set apart"
            raise InputError("with %s %s" % (text, what), where=where, remedy=_FORMS)
        return share
    if _WAYS.fullmatch(text):
        if not int(text):
            raise InputError("0 ways: nothing would be set apart", where=where, remedy=_FORMS)
        return Share(ways=int(text))
    if text == PROPORTIONAL:
        return Share()
    raise InputError("%r is no share of a cache" % (given,), where=where, remedy=_FORMS)


def shown_shares(shares: Shares) -> Any:
    """The shares in the form in which they are given."""
    texts = {key: str(share) for key, share in shares.items()}
    return texts[ALL] if list(texts) == [ALL] else texts


def check_ids(shares: Shares, ids: Iterable[int], name: str, level: str) -> None:
    """Raise InputError for an id that the machine does not have, and for one of it without a share."""
    here = sorted(ids)
    shown = ", ".join(map(str, here))
    for key in shares:
        if key != ALL and int(key) not in here:
            raise InputError("the machine has no %s cache %s" % (level, key), option(name), "it has %s" % shown)
    missing = [str(number) for number in here if str(number) not in shares and ALL not in shares]
    if missing:
        what = "says nothing of the %s caches %s" % (level, ", ".join(missing))
        raise InputError(what, option(name), 'add "%s"' % ALL)


def share_of(shares: Shares, number: int) -> Share:
    """That of the cache with this id."""
    return shares[str(number)] if str(number) in shares else shares[ALL]

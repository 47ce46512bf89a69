# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of the division of the caches, on the node itself: the wish, and the root group as it was before.

One file, replaced as a whole before the root is written. resctrl loses all settings at each boot and each mount. So the
values of the root are valid for one boot, and of these only the masks that the root still has from us.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .._base.errors import InputError
from .._base.journal_file import CACHE as PATH
from .._base.journal_file import JournalFile
from .._base.tree import Tree, is_number
from .resctrl import EXCLUSIVE, SHAREABLE
from .ways import CacheWish, parse_shares, shown_shares

_FILE = JournalFile(
    PATH,
    1,
    "is damaged: %s",
    "move it away; what the root group had before is then taken from the masks of our groups",
)

_MOST = 1 << 64
_PATHS = ("config_path", "kubelet_root")


class CacheTerms(NamedTuple):
    """The options beside the wish that also hold for the passes that follow.

    mount: whether resctrl may be mounted. allow_owners: the ids of programs that may manage CPUs beside this.
    config_path, kubelet_root: where the kubelet is, None where it is found.
    """

    mount: bool = False
    allow_owners: tuple[str, ...] = ()
    config_path: str | None = None
    kubelet_root: str | None = None


class CacheJournal(NamedTuple):
    """What is wished, and what was.

    level: the cache that is divided; empty while resctrl is being mounted for the first time. former: {id: mask of the
    root before}. ours: {id: the masks that we gave the root} in this boot, more than one while a change is under way.
    is_mounted: whether we have mounted resctrl in this boot, or were about to.
    """

    wish: CacheWish
    boot_id: str
    level: str
    former: Mapping[int, int]
    ours: Mapping[int, tuple[int, ...]]
    is_mounted: bool = False
    terms: CacheTerms = CacheTerms()


def former_masks(journal: CacheJournal | None, boot_id: str, level: str, root: Mapping[int, int]) -> dict[int, int]:
    """{id: mask} of the root before we divided it. root: its masks now.

    A mask that is not ours is what somebody has given it since, and counts as before.
    """
    if journal is None or journal.boot_id != boot_id or journal.level != level:
        return dict(root)
    return {
        number: journal.former.get(number, mask) if mask in journal.ours.get(number, ()) else mask
        for number, mask in root.items()
    }


def with_masks(journal: CacheJournal, masks: Mapping[int, int]) -> CacheJournal:
    """The journal before the root is given these masks."""
    ours = {
        number: tuple(dict.fromkeys((*journal.ours.get(number, ()), mask)))
        for number, mask in masks.items()
        if number in journal.former
    }
    return journal._replace(ours=ours)


def read_journal(tree: Tree) -> CacheJournal | None:
    """The journal of a node; None where there is none. Raises NodeError for a damaged one."""
    return _FILE.read(tree, _journal_of)


def _journal_of(data: Any) -> CacheJournal:
    return CacheJournal(
        wish_of(data["wish"]),
        str(data["boot_id"]),
        str(data["level"]),
        {_id(number): _mask(mask) for number, mask in data["former"].items()},
        {_id(number): tuple(map(_mask, masks)) for number, masks in data["ours"].items()},
        bool(data["is_mounted"]),
        terms_of(data["wish"]),
    )


def write_journal(tree: Tree, journal: CacheJournal) -> None:
    """Put the journal on the node, on its disk, unless it is there. Raises NodeError."""
    text, old = text_of(journal), tree.content(PATH)
    if text.encode("utf-8") != old:
        _FILE.replace(tree, text, old)


def remove_journal(tree: Tree) -> None:
    """Take it away, with what a killed run left beside it, and its directory, where nothing else is in that."""
    _FILE.remove(tree)


def text_of(journal: CacheJournal) -> str:
    """The journal as it is written."""
    data = {
        "wish": shown_wish(journal.wish, journal.terms),
        "boot_id": journal.boot_id,
        "level": journal.level,
        "former": {str(number): "%x" % mask for number, mask in journal.former.items()},
        "ours": {str(number): ["%x" % mask for mask in masks] for number, masks in journal.ours.items()},
        "is_mounted": journal.is_mounted,
    }
    return _FILE.text_of(data)


def shown_wish(wish: CacheWish, terms: CacheTerms) -> dict[str, Any]:
    """A wish as the options of cache_partition."""
    shown: dict[str, Any] = {"exclusive_share": shown_shares(wish.exclusive), "mode": wish.mode, "mount": terms.mount}
    if terms.allow_owners:
        shown["allow_owners"] = list(terms.allow_owners)
    shown.update((name, value) for name, value in terms._asdict().items() if name in _PATHS and value is not None)
    if wish.shared is not None:
        shown["shared_share"] = shown_shares(wish.shared)
    if wish.bandwidth is not None:
        shown["shared_bandwidth"] = wish.bandwidth
    return shown


def wish_of(given: Mapping[str, Any]) -> CacheWish:
    """The wish that these options are. Raises InputError."""
    shared, bandwidth, mode = given.get("shared_share"), given.get("shared_bandwidth"), given.get("mode", SHAREABLE)
    if mode not in (SHAREABLE, EXCLUSIVE):
        raise InputError("there is no mode %r" % (mode,))
    if bandwidth is not None and (isinstance(bandwidth, bool) or not isinstance(bandwidth, int)):
        raise InputError("%r is no bandwidth" % (bandwidth,))
    return CacheWish(
        parse_shares(given["exclusive_share"], "exclusive_share"),
        None if shared is None else parse_shares(shared, "shared_share"),
        bandwidth,
        mode,
    )


def terms_of(given: Mapping[str, Any]) -> CacheTerms:
    """The terms that these options are. Raises InputError."""
    owners = given.get("allow_owners") or ()
    paths = [given.get(name) for name in _PATHS]
    if not isinstance(owners, (list, tuple)) or not all(isinstance(text, str) for text in owners):
        raise InputError("%r are no ids of owners" % (owners,))
    if not all(path is None or isinstance(path, str) for path in paths):
        raise InputError("%r are no paths" % (paths,))
    return CacheTerms(bool(given.get("mount", False)), tuple(owners), *paths)


def _id(text: str) -> int:
    if not is_number(text) or len(text) > 9:
        raise InputError("%r is no id of a cache" % text)
    return int(text)


def _mask(text: Any) -> int:
    mask = int(text, 16)
    if not 0 < mask < _MOST:
        raise InputError("%r is no mask of ways" % (text,))
    return mask

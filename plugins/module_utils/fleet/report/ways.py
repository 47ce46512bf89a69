# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The same subject of a node seen five ways, one beside the other. Pure."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...kubelet.settings import SETTINGS
from .texts import WRONG, items, mapping, text

# What is wanted; what the files say, and the running kubelet; what the checkpoint says, and the kernel enforces.
WAYS = ("wanted", "files", "kubelet", "checkpoint", "kernel")
# Of a difference that is no setting: in which ways its wanted and its found value are seen. A subject that ends in a
# space is a beginning; what is not here is in the files.
_WAYS_OF = {
    "container ": ("checkpoint", "kernel"),
    "cgroup ": ("wanted", "kernel"),
    "isolated": ("wanted", "kernel"),
    "nohz_full": ("wanted", "kernel"),
    "checkpoint": ("wanted", "checkpoint"),
    "memory_state": ("wanted", "checkpoint"),
}


def ways_of(answer: Mapping[str, object], running: Mapping[str, object]) -> list[dict[str, Any]]:
    """Rows {"subject", "wanted", "files", "kubelet", "checkpoint", "kernel", "odd"}: texts, or None for "not read".

    running: {setting: value} as the running kubelet has them. "odd" lists the ways that stand out.
    """
    wanted, files = mapping(answer.get("wanted")), mapping(answer.get("found"))
    checkpoint = mapping(answer.get("checkpoint"))
    rows = []
    for name in SETTINGS:
        if name in wanted or name in files:
            policy = checkpoint.get("policy") if name == "cpu_manager_policy" else None
            values = (wanted.get(name), files.get(name), running.get(name), policy or None, None)
            rows.append(_row(name, values, [meaning_of(name, value) for value in values]))
    for difference in map(mapping, items(answer.get("drift"))):
        subject = difference.get("subject")
        if isinstance(subject, str) and subject not in SETTINGS:
            start, space, _name = subject.partition(" ")
            ways = _WAYS_OF.get(start + space, ("wanted", "files"))
            seen = dict(zip(ways, map(difference.get, ("wanted", "found"))))
            rows.append(_row(text(subject), [seen.get(way) for way in WAYS], [text(seen.get(way)) for way in WAYS]))
    return rows


def meaning_of(name: str, value: object) -> object:
    """What the kubelet makes of the value of a setting, as it writes "60s" as "1m0s"; a text where it takes none."""
    try:
        return SETTINGS[name].meaning(value)
    except WRONG:
        return text(value)


def _row(subject: str, values: Sequence[object], meanings: Sequence[object]) -> dict[str, object]:
    shown = {way: None if value is None else text(value) for way, value in zip(WAYS, values)}
    given = {way: meaning for way, value, meaning in zip(WAYS, values, meanings) if value is not None}
    return {"subject": subject, **shown, "odd": _odd(given)}


def _odd(given: Mapping[str, object]) -> list[str]:
    """The ways that differ from the wanted value; where none is, from what most have, or the first of equally many."""
    values = list(given.values())
    right = given["wanted"] if "wanted" in given else max(values, key=values.count, default=None)
    return [way for way, value in given.items() if value != right]

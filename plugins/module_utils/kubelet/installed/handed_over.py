# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line of a kubelet as modules return it and are given it again: nothing of it but what is read. Pure.

Ansible logs the arguments of a module on the node, and shows results.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from ..start.flags.table import FLAGS as STARTED_WITH
from ..start.flags.table import HEADERS, SWITCHES
from .flags import FLAGS as READ
from .flags import PATHS

LEFT_OUT = "left-out"
# k3s and RKE2 hand its value to their kubelet.
_HANDED_ON = "--kubelet-arg"
# All that MicroK8s' command line has.
_ARGS_FILE = "--kubelet-args-file"
# The flags of the kubelet that are one letter.
_LETTERS = ("-v", "-h")
# An address may have a user, a password and a token.
_ADDRESSES = ("manifest-url",)


def handed_over(words: Sequence[str]) -> list[str]:
    """The words without the values of flags that no table here has, and of those whose values may be secret.

    The names stay: whether a kubelet starts may depend on one that it does not have.
    """
    return list(_kept(words))


def _kept(words: Sequence[str]) -> Iterator[str]:
    # The flag that the next word may be the value of.
    before = ""
    for word in words:
        name, equals, value = word.partition("=")
        if _takes_value(before):
            yield _value(before, word)
            before = ""
        elif _is_read(name):
            yield "%s=%s" % (name, _value(name, value)) if equals else word
            before = "" if equals else name
        elif not word.startswith("-") or (_is_unknown(before) and not equals):
            yield LEFT_OUT if _is_unknown(before) else word
            before = ""
        elif equals:
            yield "%s=%s" % (_name(name), LEFT_OUT)
        else:
            yield _name(word)
            before = word if word == _name(word) else ""


def _value(name: str, value: str) -> str:
    """What is kept of the value of a flag that is read."""
    if name == _HANDED_ON:
        # A flag without the dashes.
        (kept,) = handed_over(["--" + value.lstrip("-")])
        return kept[len("--") :]
    if _bare(name) in _ADDRESSES:
        return LEFT_OUT
    flag = STARTED_WITH.get(_bare(name))
    if flag is None or flag.kind != HEADERS:
        return value
    # The name of a header is no secret, and a kubelet does not start with a header that has none.
    headers = (part.partition(":") for part in value.split(","))
    return ",".join("%s:%s" % (header, LEFT_OUT) if colon else LEFT_OUT for header, colon, _secret in headers)


def _bare(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _name(name: str) -> str:
    # A value may stand right behind one letter.
    return name if name.startswith("--") else name[:2]


def _is_read(name: str) -> bool:
    """Whether a table here has this flag, also one that is written with one dash by mistake."""
    if len(name) <= len("-v"):
        return name in _LETTERS
    flag = "--" + _bare(name)
    return _bare(name) in STARTED_WITH or flag in READ or flag in (*PATHS, _ARGS_FILE, _HANDED_ON)


def _takes_value(name: str) -> bool:
    """Whether the next word is the value of this flag, whatever it looks like."""
    flag = STARTED_WITH.get(_bare(name)) if name.startswith("--") else None
    return name == _HANDED_ON or (flag is not None and flag.kind not in SWITCHES)


def _is_unknown(name: str) -> bool:
    return name != "" and not _is_read(name)

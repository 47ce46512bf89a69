# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line of a kubelet as modules return it and are given it again: nothing of it but what is read. Pure.

Ansible logs the arguments of a module on the node, and shows results.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from ..start.flags.table import FLAGS as STARTED_WITH
from ..start.flags.table import HEADERS
from .flags import FLAGS as READ
from .flags import PATHS

LEFT_OUT = "left-out"
# k3s and RKE2 hand its value to their kubelet.
_HANDED_ON = "--kubelet-arg"
# All that MicroK8s' command line has.
_ARGS_FILE = "--kubelet-args-file"
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
        if before == _HANDED_ON:
            yield _without_dashes(word)
            before = ""
        elif _is_read(name):
            yield word
            before = ""
        elif not word.startswith("-") or (before and not equals):
            yield LEFT_OUT if before else word
            before = ""
        elif name == _HANDED_ON and equals:
            yield "%s=%s" % (name, _without_dashes(value))
        elif equals:
            yield "%s=%s" % (_name(name), LEFT_OUT)
        else:
            yield _name(word)
            before = word if word == _name(word) else ""


def _without_dashes(word: str) -> str:
    """The value of --kubelet-arg, which is a flag without the dashes."""
    (kept,) = handed_over(["--" + word.lstrip("-")])
    return kept[len("--") :]


def _name(name: str) -> str:
    # A value may stand right behind one letter.
    return name if name.startswith("--") else name[:2]


def _is_read(name: str) -> bool:
    """Whether a table here has this flag, and its value is none that may be secret."""
    if not name.startswith("--"):
        return name in ("-v", "-h")
    bare = name[len("--") :].replace("_", "-")
    flag = STARTED_WITH.get(bare)
    is_started_with = flag is not None and flag.kind != HEADERS and bare not in _ADDRESSES
    return is_started_with or "--" + bare in READ or "--" + bare in (*PATHS, _ARGS_FILE)

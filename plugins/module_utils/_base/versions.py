# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The minor versions of Kubernetes that are known here, and how well."""

from __future__ import annotations

from .errors import InputError, Note, option

# The newest Kubernetes whose answers were replayed: taken where it is not known which version the node has.
NEWEST_MINOR = 36
# From this one on the rules are tested against the kubelets themselves.
OLDEST_TESTED_MINOR = 33
# From this one on, to this one, what differs by version was read in the kubelets' sources.
OLDEST_READ_MINOR, NEWEST_READ_MINOR = 29, 37
# The oldest that is accepted as a node's version.
OLDEST_MINOR = 20


def minor_version(version: str, name: str = "kubelet_version") -> int:
    """Return 36 of "v1.36.3" or "1.36". Raises InputError. name: of the option that gives it."""
    parts = version.lstrip("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not (parts[1].isascii() and parts[1].isdigit() and len(parts[1]) < 10):
        raise InputError("%r is not a version" % version, option(name), "write one such as 1.36 or v1.35.6")
    if int(parts[1]) < OLDEST_MINOR:
        what = "%r is older than 1.%d, the oldest that is known here" % (version, OLDEST_MINOR)
        remedy = "leave the node out, or bring its kubelet to 1.%d or later first" % OLDEST_MINOR
        # YAML reads 1.30 without quotes as the number 1.3.
        if len(version) == len("1.3"):
            remedy = 'write it in quotes, as in "%s0", if that is meant; else %s' % (version, remedy)
        raise InputError(what, option(name), remedy)
    return int(parts[1])


def is_tested(minor: int) -> bool:
    """Return whether answers of a kubelet 1.`minor` were replayed, so that what is predicted of one is exact."""
    return OLDEST_TESTED_MINOR <= minor <= NEWEST_MINOR


def version_notes(
    minor: int, is_assumed: bool = False, why: str = "the newest whose answers were replayed"
) -> list[str]:
    """Return what is uncertain where a kubelet is judged by the rules of 1.`minor`: nothing for a known, tested
    version.

    is_assumed: the version of the kubelet is not known. why: why this one was assumed.
    """
    notes: list[str] = []
    if is_assumed:
        notes.append(
            Note(
                "version-assumed",
                "the version of the kubelet is not known: 1.%d is assumed, %s; give %s"
                % (minor, why, option("kubelet_version")),
            )
        )
    if not is_tested(minor):
        notes.append(Note("version-untested", "%s: %s" % (_how_known(minor), _TRY)))
    return notes


_TRY = "let its kubelet try the start (kubelet_trial), or try one node first"
# What is known of versions that were read and not tested, and what is not sure: of older ones, and of newer ones.
_OF_OLDER = (
    "feature gates, flags, fields, their checks and policy options",
    "the words of its errors, and which CPUs it takes, are not certain",
)
_OF_NEWER = (
    "feature gates, flags and checkpoints, as they were shortly before its release,",
    "all else is taken to be as in 1.%d",
)


def _how_known(minor: int) -> str:
    if OLDEST_READ_MINOR <= minor < OLDEST_TESTED_MINOR:
        sure, unsure = _OF_OLDER
    elif NEWEST_MINOR < minor <= NEWEST_READ_MINOR:
        sure, unsure = _OF_NEWER[0], _OF_NEWER[1] % NEWEST_MINOR
    else:
        tested = (minor, OLDEST_TESTED_MINOR, NEWEST_MINOR)
        return "the rules are not tested against a kubelet 1.%d, only against 1.%d to 1.%d" % tested
    text = "the rules for a kubelet 1.%d are not tested against one: its %s are known from its sources; %s"
    return text % (minor, sure, unsure)

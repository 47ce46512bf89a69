# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The minor versions of Kubernetes that are known here, and how well."""

from __future__ import annotations

from .errors import InputError, option

# The newest Kubernetes whose answers were replayed: taken where it is not known which version the node has.
NEWEST_MINOR = 36
# From this one on the rules are tested against the kubelets themselves.
OLDEST_TESTED_MINOR = 33
# The oldest that is accepted as a node's version.
OLDEST_MINOR = 20


def minor_version(version: str, name: str = "kubelet_version") -> int:
    """36 of "v1.36.3" or "1.36". Raises InputError. name: of the option that gives it."""
    parts = version.lstrip("v").split(".")
    if len(parts) < 2 or parts[0] != "1" or not parts[1].isdecimal():
        raise InputError("%r is not a version" % version, option(name), "write one such as 1.36 or v1.35.6")
    if int(parts[1]) < OLDEST_MINOR:
        raise InputError(
            "%r is older than 1.%d, the oldest that is known here" % (version, OLDEST_MINOR),
            option(name),
            'write a version in quotes, as in "1.30", which is 1.3 without',
        )
    return int(parts[1])


def version_notes(minor: int, is_assumed: bool = False) -> list[str]:
    """Whether it is not sure that the rules of the kubelet 1.`minor` are those by which it is judged.

    is_assumed: the version of the kubelet is not known.
    """
    notes = []
    if is_assumed:
        notes.append(
            "the version of the kubelet is not known: 1.%d is assumed, the newest whose answers were replayed; give %s"
            % (minor, option("kubelet_version"))
        )
    if not OLDEST_TESTED_MINOR <= minor <= NEWEST_MINOR:
        notes.append(
            "the kubelet 1.%d is none of those against which the rules are tested, 1.%d to 1.%d: try one node first"
            % (minor, OLDEST_TESTED_MINOR, NEWEST_MINOR)
        )
    return notes

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet passes over in its files, as findings: misspelt fields, fields of other versions, keys given twice."""

from __future__ import annotations

from difflib import get_close_matches

from ....golang import quote
from ..finding import Finding, harmful
from .field_table import STRUCTS
from .load import Ignored
from .members import DUPLICATE, SPELLING

# How alike two names are that may be one, of 1.
_SPELLING = 0.8


def finding_of(ignored: Ignored, minor: int) -> Finding:
    """What the kubelet 1.`minor` makes of a member of its files."""
    member = ignored.member
    if member.problem == DUPLICATE:
        where = member.path or ignored.file
        return harmful("a key is there twice; the kubelet takes the later one", "keep it once", where, ignored.text)
    if member.problem == SPELLING:
        cause = "the kubelet takes %s for %s, and of two spellings the last in alphabetical order"
        return harmful(cause % (quote(member.key), member.field), "write %s" % member.field, member.path)
    cause = "the kubelet 1.%d has no such field, and ignores it" % minor
    meant = _nearest(member.key, member.struct)
    if meant == member.key:
        since, until = STRUCTS[member.struct][meant].since, STRUCTS[member.struct][meant].until
        remedy = "remove it" if until <= minor else "remove it, or upgrade to Kubernetes 1.%d" % since
    elif meant:
        remedy = "write %s" % meant
        cause += "; upper and lower case count" if meant.lower() == member.key.lower() else ""
    else:
        remedy = "check how it is spelled, or remove it"
    return harmful(cause, remedy, member.path, ignored.text)


def _nearest(name: str, struct: str) -> str | None:
    """The field that was meant, of this version or another one."""
    by_lower_case = {field.lower(): field for field in STRUCTS.get(struct, {})}
    found = get_close_matches(name.lower(), by_lower_case, 1, cutoff=_SPELLING)
    return by_lower_case[found[0]] if found else None

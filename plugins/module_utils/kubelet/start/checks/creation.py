# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a kubelet from being made once its managers are: soft eviction, allowed sysctls, the size of logs.

Source: pkg/kubelet/kubelet.go (NewMainKubelet); pkg/kubelet/sysctl; pkg/kubelet/logs.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping

from ....errors import GoError
from ....golang import quote
from ..finding import Finding, Host, refused
from .amount import Amount
from .eviction import PERIOD, RECLAIM, SOFT, soft_faults

CONTEXT = "failed to create kubelet: "

_SYSCTL_WORDS = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
_SYSCTL = re.compile(_SYSCTL_WORDS)
_SYSCTL_LENGTH = 253
# The names as they are before a star, too.
_NAMESPACED = frozenset(
    "kernel." + name
    for name in ("sem", "shm", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "msg", "msgmax", "msgmnb", "msgmni")
)
_NAMESPACED_PREFIXES = ("fs.mqueue.", "net.")

_DEFAULT_LOG_SIZE = "10Mi"

_EVICTION_REMEDIES = {
    SOFT: "write one of memory.available, nodefs.available and so on, as 5% or 200Mi",
    PERIOD: "write a period for each signal of evictionSoft, as 1m30s",
    RECLAIM: "write one of memory.available, nodefs.available and so on, as 5% or 200Mi",
}


def creation_findings(values: Mapping[str, Any], host: Host) -> Iterator[Finding]:
    """All that it refuses, in the kubelet's order."""
    yield from _soft_eviction_findings(values, host.minor)
    yield from _log_findings(values)
    for pattern in values.get("allowedUnsafeSysctls") or ():
        yield from _sysctl_findings(pattern)


def _soft_eviction_findings(values: Mapping[str, Any], minor: int) -> Iterator[Finding]:
    soft, periods, reclaims = (values.get(field) or {} for field in (SOFT, PERIOD, RECLAIM))
    for fault in soft_faults(soft, periods, reclaims, minor):
        yield _refused(
            fault.text,
            "soft eviction cannot be set up with it",
            _EVICTION_REMEDIES[fault.field],
            "%s.%s" % (fault.field, fault.signal),
        )


def _log_findings(values: Mapping[str, Any]) -> Iterator[Finding]:
    where = "containerLogMaxSize"
    size = values.get(where) or _DEFAULT_LOG_SIZE
    try:
        amount = Amount.parse(size)
    except GoError as error:
        text = str(error)
    else:
        if amount.in_64_bits() is not None:
            return
        text = "invalid max log size"
    yield _refused(
        "failed to initialize container log manager: failed to parse container log max size %s: %s"
        % (quote(size), text),
        "it is no size in bytes",
        "write it as 10Mi",
        where,
    )


def _sysctl_findings(pattern: str) -> Iterator[Finding]:
    where = "allowedUnsafeSysctls"
    if len(pattern) > _SYSCTL_LENGTH or not _SYSCTL.fullmatch(pattern):
        yield _refused(
            "sysctl %s must have at most %d characters and match regex %s"
            % (quote(pattern), _SYSCTL_LENGTH, _SYSCTL_WORDS),
            "there is no such sysctl",
            "write it as kernel.msg* or net.core.somaxconn",
            where,
        )
        return
    name = _with_dots(pattern)
    name = name[:-1] if name.endswith("*") else name
    if name not in _NAMESPACED and not name.startswith(_NAMESPACED_PREFIXES):
        yield _refused(
            "the sysctls %s are not known to be namespaced" % quote(name),
            "it counts for the whole node, and no pod can have one of its own",
            "remove it",
            where,
        )


def _with_dots(name: str) -> str:
    """A sysctl with dots between its parts: the first separator decides which sign separates."""
    first = next((sign for sign in name if sign in "./"), ".")
    return name if first == "." else name.translate({ord("/"): ".", ord("."): "/"})


def _refused(text: str, cause: str, remedy: str, where: str) -> Finding:
    return refused(text, cause, remedy, where)._replace(context=CONTEXT)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What CRI-O is configured to do with CPUs: the annotations that a pod may have, and the CPUs that containers share.

Source: crio.conf(5); pkg/config/config.go and pkg/annotations of CRI-O.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import CPUManagerError
from ...tree import Tree
from ..look import text_at

_FILE, _DROP_INS = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"
_ANNOTATION = "irq-load-balancing.crio.io"
# Of what annotations are allowed: crio.runtime.runtimes.NAME, crio.runtime.workloads.NAME.
WITH_ANNOTATIONS = (("crio", "runtime", "runtimes"), ("crio", "runtime", "workloads"))
ALLOWED = "allowed_annotations"
SHARED = ("crio", "runtime", "shared_cpuset")


class CrioSettings(NamedTuple):
    """Which files allow the annotation for interrupts; the CPUs that containers share, and which file says so."""

    interrupts: tuple[str, ...] = ()
    shared_cpus: str = ""
    shared: str = ""


def read_crio(tree: Tree) -> CrioSettings:
    """What all of CRI-O's files say; of a value that several have, the last counts."""
    texts = {path: text for path in _paths(tree) if (text := text_at(tree, path))}
    if not texts:
        return CrioSettings()
    from ..runtime.toml_lines import parse

    allowed: dict[tuple[str, ...], str] = {}
    shared_cpus, shared = "", ""
    for path, text in texts.items():
        try:
            entries = parse(text).entries
        except ValueError:
            continue  # CRI-O does not start with it either
        for key, entry in entries.items():
            if key[:3] in WITH_ANNOTATIONS and key[-1] == ALLOWED:
                is_allowed = isinstance(entry.value, (list, tuple)) and _ANNOTATION in entry.value
                allowed[key] = path if is_allowed else ""
            elif key == SHARED:
                shared_cpus, shared = str(entry.value), path
    interrupts = tuple(dict.fromkeys(path for path in allowed.values() if path))
    return CrioSettings(interrupts, shared_cpus, shared if shared_cpus else "")


def _paths(tree: Tree) -> list[str]:
    try:
        return [_FILE, *tree.files_below(_DROP_INS)]
    except CPUManagerError:
        return [_FILE]

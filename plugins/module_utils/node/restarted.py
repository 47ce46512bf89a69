# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the running kubelet has read its files as they are: it reads them only when it starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Iterable

from ..errors import CPUManagerError, Note
from ..tree import Tree

if TYPE_CHECKING:
    from .node import Node

# k3s and RKE2 write drop-in files while they start the kubelet, which is a part of them.
_WRITES_ITS_OWN = 60.0
# The clock of file systems, and that of processes, are not read at the same time.
_TOLERANCE = 1.0


def not_restarted_notes(node: Node) -> list[str]:
    """A note with the files that were changed after the kubelet of the node had started; none where it does not run.

    A file whose time of change was set back, as a backup's, is not noticed.
    """
    installation = node.installation
    if installation is None or installation.pid is None:
        return []
    started = start_time(node.tree, installation.pid)
    if started is None:
        return []
    distribution = installation.distribution
    started += _WRITES_ITS_OWN if distribution.has_kubelet_args else _TOLERANCE
    flag_paths = [file.path for file in distribution.flag_files]
    paths = [*node.configuration_paths(), *flag_paths, *filter(None, [installation.config_dir])]
    changed = _changed_since(node.tree, paths, started)
    if not changed:
        return []
    text = "the kubelet (process %d) started before %s changed, and has not read the change: restart it" % (
        installation.pid,
        " and ".join(changed),
    )
    return [Note("kubelet-not-restarted", text)]


def start_time(tree: Tree, pid: int) -> float | None:
    """When a process started, in seconds since the epoch; None where it has ended or cannot be read.

    Source: proc_pid_stat(5), field 22, in clock ticks since the boot; proc_stat(5), btime.
    """
    try:
        fields = (tree.read_value("/proc/%d/stat" % pid) or "").rpartition(")")[2].split()
        lines = tree.read_text("/proc/stat").splitlines()
        boot = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        return boot + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (CPUManagerError, IndexError, StopIteration, ValueError):
        return None


def _changed_since(tree: Tree, paths: Iterable[str], moment: float) -> list[str]:
    changed = []
    for path in paths:
        try:
            if os.stat(tree.path(path)).st_mtime > moment:
                changed.append(path)
        except (CPUManagerError, OSError):
            continue  # it is gone, or is reported elsewhere
    return changed

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a container runtime or a plugin of NRI has classes of its own in resctrl, by the library goresctrl.

Sources: rdt_config_file in docs/config.md of containerd and in crio.conf(5); doc/rdt.md of goresctrl.
"""

from __future__ import annotations

from ...cache.mount import GORESCTRL, MOUNT
from ...errors import CPUManagerError
from ...tree import Tree
from ..look import names_in, text_at

KEY = "rdt_config_file"

_FILES = (
    "/etc/containerd/config.toml",
    "/etc/crio/crio.conf",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
)
_DROP_INS = ("/etc/containerd/conf.d", "/etc/crio/crio.conf.d")


def goresctrl_groups(tree: Tree) -> list[str]:
    """The groups that are named as those of goresctrl."""
    return ["%s/%s" % (MOUNT, name) for name in names_in(tree, MOUNT) if name.startswith(GORESCTRL)]


def files_with_classes(tree: Tree) -> list[str]:
    """The files of container runtimes that name a file of classes."""
    return [path for path in _paths(tree) if _has_key(text_at(tree, path))]


def _paths(tree: Tree) -> list[str]:
    paths = list(_FILES)
    for directory in _DROP_INS:
        try:
            paths += tree.files_below(directory)
        except CPUManagerError:
            continue
    return paths


def _has_key(text: str) -> bool:
    if KEY not in text:
        return False
    from ..runtime.toml_lines import parse

    try:
        entries = parse(text).entries
    except ValueError:
        return False  # the runtime does not start with it either
    return any(key[-1] == KEY and bool(entry.value) for key, entry in entries.items())

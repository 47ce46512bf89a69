# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of containers, which the kubelet writes in the names of their log files.

Source: legacyLogSymlink in pkg/kubelet/kuberuntime/legacy.go.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..tree import Tree

DIRECTORY = "/var/log/containers"

_LOG = re.compile(r"([^_]+)_([^_]+)_(.+)-([0-9a-f]{64})\.log")


class LoggedContainer(NamedTuple):
    """A container: the pod's name, with its namespace, and its own."""

    pod_name: str
    name: str


def logged_containers(tree: Tree) -> dict[str, LoggedContainer]:
    """{container id: its names}, also of containers that have ended and whose logs are still there."""
    found = {}
    for file_name in tree.names(DIRECTORY):
        match = _LOG.fullmatch(file_name)
        if match:
            pod, namespace, name, container_id = match.groups()
            found[container_id] = LoggedContainer("%s/%s" % (namespace, pod), name)
    return found

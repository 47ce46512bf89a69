# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answers of workloads that have left CPUs before they are taken.

A workload writes into an emptyDir volume of its pod. There it can fill no more than the pod may, and the kubelet
removes it with the pod. What is in the file may be anything.
"""

from __future__ import annotations

import os
import re

from ...errors import CPUManagerError
from ...tree import Tree
from ...untrusted import DIRECTORY, read_file
from ..published.content import is_name

# The name that the volume has in the pod, and how the file's begins with the container's.
VOLUME, _END = "cpu-manager", ".left"
_PLACE = "%s/pods/%s/volumes/kubernetes.io~empty-dir/%s"

_MOST = 64
_TIME = re.compile(rb"\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*")
# The file of a container has milliseconds.
_NEAR = 0.001


def has_left(tree: Tree, kubelet_root: str, pod_uid: str, container: str, until: float) -> bool:
    """Whether a container has answered what was announced for this time."""
    if not (is_name(pod_uid) and is_name(container)):
        return False
    try:
        directory = os.open(tree.path(_PLACE % (kubelet_root.rstrip("/"), pod_uid, VOLUME)), DIRECTORY)
    except (OSError, CPUManagerError):
        return False
    try:
        content = read_file(directory, container + _END, _MOST)
    except (OSError, CPUManagerError):
        return False
    finally:
        os.close(directory)
    found = _TIME.fullmatch(content)
    return found is not None and abs(float(found.group(1)) - until) <= _NEAR

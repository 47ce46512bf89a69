# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoints that a kubelet restores beside those of its CPU and memory managers.

    dra_manager_state                           1.27 and later: the claims that were prepared for pods
    allocated_pods_state, actuated_pods_state   1.33 and later: the resources that pods were resized to
    pod_status_manager_state                    1.27 to 1.32: the same
    device-plugins/kubelet_internal_checkpoint  the devices that containers have

A kubelet passes over the last one where it is damaged. All others keep it from starting, where their gate is on.
What a kubelet itself wrote is known here at once; restored_formats.py looks at everything else as closely as Go does.
Source: pkg/kubelet/checkpointmanager; pkg/kubelet/allocation/state and pkg/kubelet/status/state (checkpoint.go,
state_checkpoint.go); pkg/kubelet/cm/dra/state; pkg/kubelet/cm/devicemanager.
"""

from __future__ import annotations

import json
import zlib
from typing import NamedTuple

from .checkpoint import unique_members
from .formats import fnv

# Since when the sum goes over a text, and since when what was allocated and what was done have a file each.
DATA_SINCE, TWO_SINCE = 32, 33
_NEVER = 1000

CLAIMS, DEVICES = "dra_manager_state", "device-plugins/kubelet_internal_checkpoint"
_ALLOCATED, _ACTUATED, _STATUS = "allocated_pods_state", "actuated_pods_state", "pod_status_manager_state"
_PODS_GATE, _CLAIMS_GATE = "InPlacePodVerticalScaling", "DynamicResourceAllocation"


class DamageError(Exception):
    """The kubelet cannot restore its state from this file; the message is the cause that it gives.

    is_inside: the file itself is in order, and the text in it is not.
    """

    def __init__(self, cause: str, is_inside: bool = False) -> None:
        super().__init__(cause)
        self.is_inside = is_inside


class Restored(NamedTuple):
    """A file that kubelets 1.`since` to before 1.`until` restore, below their root directory."""

    name: str
    # Without this gate they do not; empty: they always do.
    gate: str
    since: int
    until: int = _NEVER


# In the order in which a kubelet restores them.
RESTORED = (
    Restored(CLAIMS, _CLAIMS_GATE, 27),
    Restored(_ALLOCATED, _PODS_GATE, TWO_SINCE),
    Restored(_ACTUATED, _PODS_GATE, TWO_SINCE),
    Restored(_STATUS, _PODS_GATE, 27, TWO_SINCE),
    Restored(DEVICES, "", 0),
)


def restored_by(minor: int) -> list[Restored]:
    """What a kubelet 1.`minor` restores, whatever its gates, in its order."""
    return [file for file in RESTORED if file.since <= minor < file.until]


def sum_of_pods(data: str) -> int:
    """The sum of the text in a file of pods."""
    return fnv("(string)" + data)


def sum_of_claims(data: str) -> int:
    """The sum of the text in a file of claims."""
    return zlib.crc32(data.encode("utf-8"))


def is_as_written(file: Restored, content: bytes, minor: int) -> bool:
    """Whether it is a text with its sum as a kubelet 1.`minor` writes it, which is certain at once."""
    if file.name == DEVICES or minor < DATA_SINCE:
        return False
    names, sum_of = (
        (("Data", "Checksum"), sum_of_claims) if file.name == CLAIMS else (("data", "checksum"), sum_of_pods)
    )
    try:
        value = json.loads(content.decode("ascii"), object_pairs_hook=unique_members)
        if not isinstance(value, dict) or tuple(value) != names or not isinstance(value[names[0]], str):
            return False
        return isinstance(json.loads(value[names[0]]), dict) and value[names[1]] == sum_of(value[names[0]])
    except (ValueError, RecursionError):
        return False

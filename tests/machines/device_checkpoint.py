# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the device manager's checkpoint, as the kubelet writes it."""

from __future__ import annotations

import json
from typing import Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state import restored

GPU = "nvidia.com/gpu"


def device_state(
    registered: Mapping[str, list[str]], *entries: tuple[str, Mapping[str, list[str]]], container: str = "c"
) -> bytes:
    """Return what a kubelet writes: (pod UID, {NUMA node: devices}) of each container, which was also given a
    password."""
    rows = [
        {"PodUID": uid, "ContainerName": container, "ResourceName": GPU, "DeviceIDs": ids, "AllocResp": "aHVudGVyMg=="}
        for uid, ids in entries
    ]
    data = {"Data": {"PodDeviceEntries": rows, "RegisteredDevices": registered}, "Checksum": 1}
    value = restored._read(restored._DEVICES.struct, json.dumps(data).encode())
    return json.dumps({**data, "Checksum": restored._DEVICES.sum_of(value)}).encode()

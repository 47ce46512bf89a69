# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet starts with, of its configuration alone."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import needed_config
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig


def manager_config(configuration: Configuration, host: Host) -> CPUManagerConfig:
    """Return what the CPU manager would start with. Raises RefusedError where the kubelet would not start, or should
    not."""
    return needed_config(predict_values(configuration.values, host, configuration.source))

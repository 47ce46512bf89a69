# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Which kubelet."""

    DOCUMENTATION = r"""
options:
  config_path:
    description:
      - The kubelet's configuration file, as its C(--config) names it.
      - By default what the running kubelet was started with, else the place where the node's distribution keeps it.
    type: path
  kubelet_root:
    description:
      - The kubelet's C(--root-dir), which holds the checkpoint.
      - By default what the running kubelet was started with, else the distribution's, mostly C(/var/lib/kubelet).
    type: path
  kubelet_version:
    description:
      - The version of the kubelet, such as V(1.35.6), which decides which options it has.
      - By default that of the running kubelet, otherwise the newest supported version, 1.36.
    type: str
  command_line:
    description:
      - The command line of the kubelet, word by word, for a kubelet that is stopped now, as
        M(kubenode.cpu_manager.drift_info) returned it while the kubelet was running.
      - The command line of a running kubelet has priority. Without either, the files of the node's distribution are
        read.
    type: list
    elements: str
"""

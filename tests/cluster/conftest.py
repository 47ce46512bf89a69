# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything below here has a control plane."""

from __future__ import annotations

from .fixtures import control_plane, make_node, namespace, pods, real_kubelet  # noqa: F401, fixtures

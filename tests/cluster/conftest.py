# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything below here has a control plane."""

from __future__ import annotations

# Fixtures are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import private_services  # noqa: F401

from .fixtures import control_plane, make_node, namespace, pods, real_kubelet  # noqa: F401
from .fleet import alone, fleet  # noqa: F401

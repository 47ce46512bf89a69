# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where this collection keeps its notes on a node, on the node."""

from __future__ import annotations

DIRECTORY = "/var/lib/kubenode-cpu-manager"
# The journals of the change that is under way or was interrupted, and of the last that came to its end.
OPEN = DIRECTORY + "/change.json"
LAST = DIRECTORY + "/last-change.json"
# What is wished of the caches, and what they were before.
CACHE = DIRECTORY + "/cache.json"
# What is wished of the host's own work, and what was there before.
HOUSEKEEPING = DIRECTORY + "/housekeeping.json"
# The services of ours that run as root.
UNIT_DIRECTORY = "/etc/systemd/system"
SERVICES = tuple(
    "%s/%s.service" % (UNIT_DIRECTORY, name)
    for name in ("kubenode-cpu-manager-reconcile", "kubenode-housekeeping", "kubenode-housekeeping-network")
)
# What the policies dynamic and isolated have promised. It ends with the machine, as all containers do.
PROMISE = "/run/kubenode/cpu-manager.json"

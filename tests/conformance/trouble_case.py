# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node as files with a trouble, and the same node without it."""

from __future__ import annotations

from typing import Any, Collection, Mapping, NamedTuple

from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import SOUND, Saved

POLICY = {"cpu_manager_policy": "static"}
RESERVED = {"reserved_system_cpus": "0,4"}


class Trouble(NamedTuple):
    """A node with a trouble and the node without it, with the ids of all checks that are found on each."""

    checks: Collection[str]
    node: Saved
    without: Saved = SOUND
    wanted: Mapping[str, Any] = POLICY
    checks_without: Collection[str] = ()
    # What configz of the running kubelet has, and a note that others add; both only on the node with the trouble.
    configz: Mapping[str, Any] = {}
    added: tuple[str, str] | None = None
    # What both nodes are looked at for, too: an answer, or None for what the module answers for the files.
    looks: Mapping[str, Any] = {}
    looks_without: Mapping[str, Any] = {}

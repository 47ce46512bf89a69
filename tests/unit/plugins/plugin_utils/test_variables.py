# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/variables.py."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import misspelled_failure

HOST = {"inventory_hostname": "worker-1", "kubelet_max_pods": 110, "kubelet_cpu_manager_policy": "static"}
MEANT = {"drift_report_form": "drift_report_forms", "kubelet_cpu_manager_polcy": "kubelet_cpu_manager_policy"}


def test_right_names_are_no_failure() -> None:
    assert misspelled_failure(HOST) == {}


def test_each_wrong_name_is_in_the_failure() -> None:
    failure = misspelled_failure({**HOST, **dict.fromkeys(MEANT, "static")})
    assert failure["failed"] is True
    assert failure["failure"]["kind"] == "input"
    said = ["%s is no variable of this collection, and %s is: rename it, or remove it" % pair for pair in MEANT.items()]
    assert failure["msg"] == "worker-1: %s; nothing was changed" % "; ".join(said)

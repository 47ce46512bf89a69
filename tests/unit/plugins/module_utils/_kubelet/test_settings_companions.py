# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is changed beside a setting that is wanted: feature gates, and cgroups of reservations."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.tests.machines.start import manager_config
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.settings_cases import (
    file,
    machine,
)

ALPHA_GATE, BETA_GATE, OPTIONS_GATE = (
    "CPUManagerPolicyAlphaOptions",
    "CPUManagerPolicyBetaOptions",
    "CPUManagerPolicyOptions",
)
WITH_ALPHA_OPTION = {"cpu_manager_policy": "static", "cpu_manager_policy_options": {"align-by-socket": "true"}}
WITH_BETA_OPTION = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"distribute-cpus-across-numa": "true"},
}
WITH_MANAGER_OPTION = {"topology_manager_policy_options": {"prefer-closest-numa-nodes": "true"}}
CGROUPS = "systemReservedCgroup: /system\nkubeReservedCgroup: /runtime\n"


@pytest.mark.parametrize(
    ("wanted", "text", "minor", "beside"),
    [
        ({}, CGROUPS, 36, {}),
        (WITH_ALPHA_OPTION, "", 36, {"featureGates.%s" % ALPHA_GATE: True}),
        (WITH_ALPHA_OPTION, "featureGates: {%s: false}\n" % ALPHA_GATE, 36, {"featureGates.%s" % ALPHA_GATE: True}),
        (WITH_ALPHA_OPTION, "featureGates: {%s: true}\n" % ALPHA_GATE, 36, {}),
        (WITH_ALPHA_OPTION, "featureGates: {AllAlpha: true}\n", 36, {}),
        (WITH_BETA_OPTION, "", 36, {}),  # beta, and on
        (WITH_BETA_OPTION, "featureGates: {%s: false}\n" % BETA_GATE, 36, {"featureGates.%s" % BETA_GATE: True}),
        (WITH_BETA_OPTION, "", 32, {"featureGates.%s" % ALPHA_GATE: True}),
        ({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, "", 22, {"featureGates.%s" % OPTIONS_GATE: True}),
        ({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, "", 33, {}),
        ({"cpu_manager_policy_options": {"no-such-option": "true"}}, "", 36, {}),
        (WITH_MANAGER_OPTION, "", 36, {}),
        (
            WITH_MANAGER_OPTION,
            "",
            27,
            {
                "featureGates.TopologyManagerPolicyOptions": True,
                "featureGates.TopologyManagerPolicyAlphaOptions": True,
            },
        ),
        ({"cpu_cfs_quota_period": "5ms"}, "", 35, {"featureGates.CustomCPUCFSQuotaPeriod": True}),
        ({"cpu_cfs_quota_period": "5ms"}, "", 36, {}),
        ({"cpu_cfs_quota_period": "0.1s"}, "", 35, {}),  # the default
        ({"memory_manager_policy": "Static"}, "", 21, {"featureGates.MemoryManager": True}),
        ({"memory_manager_policy": "Static"}, "", 36, {}),
        ({"memory_manager_policy": "None"}, "", 21, {}),
        ({"reserved_system_cpus": "0"}, CGROUPS, 36, {"systemReservedCgroup": "", "kubeReservedCgroup": ""}),
        ({"reserved_system_cpus": ""}, CGROUPS, 36, {}),
        (
            {"reserved_system_cpus": "0"},
            CGROUPS + "enforceNodeAllocatable: [pods, kube-reserved]\n",
            36,
            {"systemReservedCgroup": ""},
        ),
        (
            {"reserved_system_cpus": "0"},
            CGROUPS + "enforceNodeAllocatable: [system-reserved-compressible, kube-reserved]\n",
            36,
            {},
        ),
    ],
)
def test_companions(wanted: dict[str, Any], text: str, minor: int, beside: dict[str, Any]) -> None:
    before = file(text)
    plan = plan_settings(wanted, before, minor)
    assert {".".join(path): value for path, value in plan.companions.items()} == beside
    # Once it is done, there is nothing left to do.
    after = before.with_changes(plan.changes)
    assert after.values == plan.configuration.values
    again = plan_settings(wanted, after, minor)
    assert (again.changes, again.companions) == ({}, {})
    assert again.settings == plan.settings


def test_what_is_found_needs_no_companions() -> None:
    """Nobody asked for the option that is in the file, so its gate is not touched either."""
    text = "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {align-by-socket: 'true'}\n"
    assert plan_settings({"cpu_manager_reconcile_period": "5s"}, file(text)).companions == {}


def test_an_alpha_option_starts_with_its_gate() -> None:
    plan = plan_settings({**WITH_ALPHA_OPTION, "reserved_system_cpus": "0"}, file())
    assert manager_config(plan.configuration, machine()).reserved == cpus("0")

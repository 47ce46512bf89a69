# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings that a kubelet's file says, and the files of which they cannot be read."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS, found_settings
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.settings_cases import (
    DEFAULTS,
    OTHERS,
    OTHERS_TEXT,
    file,
)


def test_a_file_that_says_nothing() -> None:
    assert found_settings(file()) == DEFAULTS
    assert list(found_settings(file())) == list(SETTINGS)


def test_a_file_that_says_everything() -> None:
    assert found_settings(KubeletConfiguration.parse(OTHERS_TEXT)) == OTHERS


@pytest.mark.parametrize(
    "text",
    [
        'cpuManagerPolicy: ""\n',  # Go's unset value
        "cpuManagerPolicy: null\n",
        "cpuManagerPolicy:\n",
        "cpuManagerPolicyOptions: {}\n",
        'cpuManagerReconcilePeriod: ""\n',
        'topologyManagerPolicy: ""\ntopologyManagerScope: ""\n',
        'reservedSystemCPUs: ""\n',
        "kubeReserved:\n  ephemeral-storage: 1Gi\n",
        'memoryManagerPolicy: ""\nreservedMemory: []\n',
        "cpuCFSQuota: null\ncpuCFSQuotaPeriod: null\n",
        "kubeReserved: {}\nsystemReserved: null\n",
        'kubeReserved:\n  cpu: ""\n',
    ],
)
def test_what_means_nothing(text: str) -> None:
    assert found_settings(file(text)) == DEFAULTS


FOUND = [
    ("kubeReserved:\n  cpu: 2\n", "kube_reserved_cpu", "2"),  # numbers become texts
    ("systemReserved:\n  cpu: 0.5\n", "system_reserved_cpu", "0.5"),
    ("reservedSystemCPUs: 3\n", "reserved_system_cpus", "3"),
    ("cpuManagerReconcilePeriod: 0s\n", "cpu_manager_reconcile_period", "0s"),
    ("cpuManagerPolicyOptions:\n  a: '1'\n", "cpu_manager_policy_options", {"a": "1"}),
    ("kubeReserved:\n  memory: 1073741824\n", "kube_reserved_memory", "1073741824"),
    ("cpuCFSQuota: false\n", "cpu_cfs_quota", False),
    ("reservedMemory:\n- limits: {memory: 1Gi}\n", "reserved_memory", [{"limits": {"memory": "1Gi"}}]),
]


@pytest.mark.parametrize(("text", "name", "value"), FOUND)
def test_found(text: str, name: str, value: object) -> None:
    assert found_settings(file(text)) == {**DEFAULTS, name: value}


UNREADABLE = [
    ("cpuManagerPolicy: Static\n", "cpuManagerPolicy: 'Static' is not one of none, static"),
    ("cpuManagerPolicy: [static]\n", "cpuManagerPolicy: ['static'] is not one of none, static"),
    (
        "topologyManagerPolicy: strict\n",
        "topologyManagerPolicy: 'strict' is not one of none, best-effort, restricted, single-numa-node",
    ),
    ("topologyManagerScope: node\n", "topologyManagerScope: 'node' is not one of container, pod"),
    (
        "cpuManagerPolicyOptions:\n  full-pcpus-only: true\n",
        ('cpuManagerPolicyOptions: option full-pcpus-only is True, not a text; write it quoted, as in "true"'),
    ),
    (
        "cpuManagerPolicyOptions: [a]\n",
        "cpuManagerPolicyOptions: ['a'] is not a mapping of option names to texts",
    ),
    (
        "cpuManagerReconcilePeriod: 10\n",
        "cpuManagerReconcilePeriod: duration '10': a unit is missing; write it as 10s, 1m30s or 500ms",
    ),
    (
        "reservedSystemCPUs: 0-x\n",
        "reservedSystemCPUs: CPU list '0-x', position 3: expected the end of a range, found 'x'",
    ),
    (
        "reservedSystemCPUs: 0-7:1/4\n",
        "reservedSystemCPUs: CPU list '0-7:1/4': the kubelet reads neither strides nor line ends; write '0,4'",
    ),
    ("reservedSystemCPUs: [0]\n", "reservedSystemCPUs: [0] is not a text"),
    (
        "kubeReserved:\n  cpu: two\n",
        "kubeReserved.cpu: quantity 'two': a number is missing; write CPUs as 2, 0.5 or 500m",
    ),
    ("cpuCFSQuota: 'no'\n", "cpuCFSQuota: 'no' is neither true nor false"),
    ("memoryManagerPolicy: static\n", "memoryManagerPolicy: 'static' is not one of None, Static"),
    ("cpuCFSQuotaPeriod: 50\n", "cpuCFSQuotaPeriod: duration '50': a unit is missing"),
    ("reservedMemory: {}\n", "reservedMemory: {} is not a list of mappings with numaNode and limits"),
    ("reservedMemory: [1]\n", "reservedMemory: [1] is not a list of mappings with numaNode and limits"),
    (
        "reservedMemory:\n- numaNode: 0\n",
        "reservedMemory: [{'numaNode': 0}] is not a list of mappings with numaNode and limits",
    ),
    ("reservedMemory:\n- {numaNode: '0', limits: {}}\n", "reservedMemory: numaNode '0' is not a number"),
    ("reservedMemory:\n- {numaNode: true, limits: {}}\n", "reservedMemory: numaNode True is not a number"),
    ("reservedMemory:\n- {limits: {memory: x}}\n", "reservedMemory: quantity 'x': a number is missing"),
    (
        "systemReserved:\n  cpu: true\n",
        "systemReserved.cpu: True is not a quantity; write it as 2, 0.5 or 500m",
    ),
]


@pytest.mark.parametrize(("text", "message"), UNREADABLE)
def test_unreadable(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        found_settings(file(text))
    assert str(caught.value).startswith("config.yaml: " + message)

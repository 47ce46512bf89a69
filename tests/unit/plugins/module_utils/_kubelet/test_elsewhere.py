# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/elsewhere.py."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import (
    DISTRIBUTIONS,
    Distribution,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.elsewhere import elsewhere
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.yaml_nodes import REMOVE
from ansible_collections.kubenode.cpu_manager.tests.machines import kubespray

# (setting, field of the kubelet's own file, value)
ROWS: list[tuple[str, str, Any]] = [
    ("cpu_manager_policy", "cpuManagerPolicy", "static"),
    ("cpu_manager_policy_options", "cpuManagerPolicyOptions", {"full-pcpus-only": "true", "align-by-socket": "false"}),
    ("cpu_manager_reconcile_period", "cpuManagerReconcilePeriod", "5s"),
    ("topology_manager_policy", "topologyManagerPolicy", "restricted"),
    ("topology_manager_scope", "topologyManagerScope", "pod"),
    ("topology_manager_policy_options", "topologyManagerPolicyOptions", {"prefer-closest-numa-nodes": "true"}),
    ("memory_manager_policy", "memoryManagerPolicy", "Static"),
    ("cpu_cfs_quota", "cpuCFSQuota", False),
    ("cpu_cfs_quota_period", "cpuCFSQuotaPeriod", "50ms"),
    ("reserved_system_cpus", "reservedSystemCPUs", "0,12"),
]
RESERVED_MEMORY = [{"numaNode": 1, "limits": {"memory": "1Gi", "hugepages-1Gi": "2Gi"}}]
SETTINGS: dict[str, Any] = {
    **{setting: value for setting, _field, value in ROWS},
    "kube_reserved_cpu": "200m",
    "kube_reserved_memory": "1Gi",
    "system_reserved_cpu": "100m",
    "reserved_memory": RESERVED_MEMORY,
}
COMPANIONS: dict[tuple[str, ...], Any] = {("featureGates", "CustomCPUCFSQuotaPeriod"): True}

# All of it as the kubelet's own file has it.
FIELDS: dict[str, Any] = {
    **{field: value for _setting, field, value in ROWS},
    "kubeReserved": {"cpu": "200m", "memory": "1Gi"},
    "systemReserved": {"cpu": "100m"},
    "reservedMemory": RESERVED_MEMORY,
    "featureGates": {"CustomCPUCFSQuotaPeriod": True},
}


def by_name(name: str) -> Distribution:
    return next(distribution for distribution in DISTRIBUTIONS if distribution.name == name)


def snippet(
    name: str,
    settings: dict[str, Any],
    companions: dict[tuple[str, ...], Any] | None = None,
    found: dict[str, Any] | None = None,
) -> str:
    answer = elsewhere(by_name(name), settings, companions, found)
    assert answer is not None
    assert (answer["name"], answer["why"]) == (name, by_name(name).pointer)
    return answer["snippet"]


def only(*names: str) -> dict[str, Any]:
    return {name: FIELDS[name] for name in names}


YAML_FORMS: dict[str, Any] = {
    "kubespray": {
        "kubelet_cpu_manager_policy": "static",
        "kubelet_cpu_manager_policy_options": FIELDS["cpuManagerPolicyOptions"],
        "kubelet_topology_manager_policy": "restricted",
        "kubelet_topology_manager_scope": "pod",
        "kube_cpu_reserved": "200m",
        "kube_memory_reserved": "1Gi",
        "kube_reserved": False,
        "system_reserved": False,
        "kubelet_feature_gates": ["CustomCPUCFSQuotaPeriod=true"],
        "kubelet_config_extra_args": only(
            "cpuManagerReconcilePeriod",
            "topologyManagerPolicyOptions",
            "memoryManagerPolicy",
            "cpuCFSQuota",
            "cpuCFSQuotaPeriod",
            "reservedSystemCPUs",
            "reservedMemory",
            "systemReserved",
        ),
    },
    "EKS AL2023": {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"kubelet": {"config": FIELDS}},
    },
    "Talos": {"machine": {"kubelet": {"extraConfig": FIELDS}}},
    "OpenShift": {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": {"name": "cpu-manager"},
        "spec": {
            "machineConfigPoolSelector": {
                "matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}
            },
            "kubeletConfig": FIELDS,
        },
    },
    "MicroShift": {"kubelet": FIELDS},
    "KubeEdge": {"modules": {"edged": {"tailoredKubeletConfig": FIELDS}}},
    "k0s": {"spec": {"workerProfiles": [{"name": "cpu-manager", "values": FIELDS}]}},
    "kOps": {
        "spec": {
            "kubelet": {
                **only(
                    "cpuManagerPolicy",
                    "topologyManagerPolicy",
                    "cpuCFSQuota",
                    "cpuCFSQuotaPeriod",
                    "kubeReserved",
                    "systemReserved",
                ),
                "featureGates": {"CustomCPUCFSQuotaPeriod": "true"},
            }
        }
    },
    "Gardener": {
        "spec": {"kubernetes": {"kubelet": only("cpuManagerPolicy", "cpuCFSQuota", "kubeReserved", "featureGates")}}
    },
}


@pytest.mark.parametrize("name", YAML_FORMS)
def test_yaml(name: str) -> None:
    assert yaml.safe_load(snippet(name, SETTINGS, COMPANIONS)) == YAML_FORMS[name]


BOTTLEROCKET = """\
# There is no field for: topologyManagerPolicyOptions, cpuCFSQuotaPeriod, featureGates.CustomCPUCFSQuotaPeriod.
[settings.kubernetes]
cpu-manager-policy = "static"
cpu-manager-policy-options = ["full-pcpus-only"]
cpu-manager-reconcile-period = "5s"
topology-manager-policy = "restricted"
topology-manager-scope = "pod"
memory-manager-policy = "Static"
cpu-cfs-quota-enforced = false
reserved-cpus = "0,12"

[settings.kubernetes.kube-reserved]
cpu = "200m"
memory = "1Gi"

[settings.kubernetes.system-reserved]
cpu = "100m"

[settings.kubernetes.memory-manager-reserved-memory.1]
enabled = true
memory = "1Gi"
hugepages-1Gi = "2Gi"
"""


def test_bottlerocket() -> None:
    assert snippet("Bottlerocket", SETTINGS, COMPANIONS) == BOTTLEROCKET
    assert snippet("Bottlerocket", {"kube_reserved_cpu": "1"}) == '[settings.kubernetes.kube-reserved]\ncpu = "1"\n'


def test_what_a_system_has_no_field_for_is_named() -> None:
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0-1", "system_reserved_cpu": "1"}
    assert snippet("Gardener", wanted) == (
        "# There is no field for: reservedSystemCPUs, systemReserved.cpu.\n"
        "spec:\n  kubernetes:\n    kubelet:\n      cpuManagerPolicy: static\n"
    )
    # Nothing is left to paste.
    assert snippet("kOps", {"topology_manager_scope": "pod"}) == "# There is no field for: topologyManagerScope.\n"


def test_only_what_is_wanted_is_in_it() -> None:
    assert snippet("kubespray", {"topology_manager_policy": "none"}) == "kubelet_topology_manager_policy: none\n"
    # What is to be as it is without a setting needs none.
    assert snippet("Talos", {"cpu_manager_policy_options": {}, "reserved_system_cpus": ""}) == ""
    assert snippet("Talos", {}) == ""


# kubespray writes the one field that it has always, and the others where they are switched on.
KUBE_RESERVED = {"cpu": "100m", "memory": "256Mi"}
WRITTEN = {"kubeReserved": KUBE_RESERVED, "systemReserved": {"cpu": "500m", "memory": "512Mi", "pid": "1000"}}
CGROUPS = {"kubeReservedCgroup": "/kube.slice", "systemReservedCgroup": "/system.slice"}


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ({"system_reserved_cpu": "1"}, {}, {"systemReserved": {"cpu": "1"}}),
        # What else is reserved stays.
        ({"system_reserved_cpu": "1"}, WRITTEN, {"systemReserved": {**WRITTEN["systemReserved"], "cpu": "1"}}),
        (
            {"system_reserved_cpu": "1"},
            {**WRITTEN, **CGROUPS},
            {"systemReserved": {**WRITTEN["systemReserved"], "cpu": "1"}, **CGROUPS},
        ),
        (
            {"system_reserved_cpu": "0"},
            {**WRITTEN, **CGROUPS},
            {"systemReserved": {"cpu": "0", "memory": "512Mi", "pid": "1000"}, **CGROUPS},
        ),
        ({"system_reserved_cpu": "0", "system_reserved_memory": "0"}, {}, {}),
        # The kubelet takes no cgroup beside these CPUs.
        ({"reserved_system_cpus": "0,4"}, {}, {"reservedSystemCPUs": "0,4"}),
        (
            {"reserved_system_cpus": "0,4", "system_reserved_cpu": "0"},
            {**WRITTEN, **CGROUPS},
            {"reservedSystemCPUs": "0,4", "systemReserved": {"memory": "512Mi", "pid": "1000"}},
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("reserves", [False, True])
def test_kubespray_writes_what_is_wanted(
    wanted: dict[str, Any], found: dict[str, Any], expected: dict[str, Any], reserves: bool
) -> None:
    companions: dict[tuple[str, ...], Any] = {
        (name,): "" for name in found if name in CGROUPS and "reserved_system_cpus" in wanted
    }
    pasted = yaml.safe_load(snippet("kubespray", wanted, companions, found))
    kube = "kubeReservedCgroup" in expected or (reserves and "reserved_system_cpus" not in wanted)
    inventory = {"kube_reserved": kube, "system_reserved": reserves, "system_pid_reserved": "1000"}
    cgroup = {"kubeReservedCgroup": "/kube.slice"} if kube else {}
    assert kubespray.fields({**inventory, **pasted}) == {"kubeReserved": KUBE_RESERVED, **cgroup, **expected}


def test_where_extra_arguments_of_kubespray_go() -> None:
    assert snippet("kubespray", {"system_reserved_cpu": "1"}) == (
        "# Add to what kubelet_config_extra_args has, and remove these keys from kubelet_node_config_extra_args.\n"
        'kubelet_config_extra_args:\n  systemReserved:\n    cpu: "1"\nsystem_reserved: false\n'
    )


def test_reserved_cgroups_go_on_eks() -> None:
    companions = {("systemReservedCgroup",): "", ("kubeReservedCgroup",): "", ("featureGates", "X"): REMOVE}
    (config,) = yaml.safe_load(snippet("EKS AL2023", {"reserved_system_cpus": "0-1"}, companions))["spec"].values()
    assert config == {
        "config": {"reservedSystemCPUs": "0-1", "systemReservedCgroup": "", "kubeReservedCgroup": ""},
    }


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_every_pointer_reaches_the_operator(distribution: Distribution) -> None:
    answer = elsewhere(distribution, SETTINGS, COMPANIONS)
    if not distribution.pointer:
        assert answer is None
        return
    assert answer is not None
    assert answer["why"] == distribution.pointer
    # Where the settings belong to a cloud's API or to an image, or are flags, there is nothing to paste.
    assert bool(answer["snippet"]) == (
        distribution.name not in ("GKE", "AKS", "EKS AL2", "RKE1", "StarlingX", "Deckhouse")
    )


def test_what_reads_as_something_else_is_quoted() -> None:
    assert yaml.safe_load(snippet("Talos", {"reserved_system_cpus": "3", "kube_reserved_cpu": "1"})) == {
        "machine": {"kubelet": {"extraConfig": {"reservedSystemCPUs": "3", "kubeReserved": {"cpu": "1"}}}}
    }

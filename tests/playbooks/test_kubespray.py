# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An inventory of kubespray as it is: its groups and its variables, with the playbooks unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import KNOWN, misspelled
from ansible_collections.kubenode.cpu_manager.tests.machines import kubespray
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .conftest import Run, ansible_playbook, fingerprint

CONFIGURATION = "etc/kubernetes/kubelet-config.yaml"
ROLLOUT, PROPOSE, REPORT = ("kubenode.cpu_manager." + name for name in ("rollout", "propose", "drift_report"))

# One machine is both, as in small clusters.
GROUPS = {
    "kube_control_plane": ["control-1"],
    "etcd": ["control-1"],
    "kube_node": ["control-1", "worker-1", "worker-2"],
}

# group_vars of its releases 2.29 and later.
ALL: dict[str, Any] = {
    "kube_version": "1.33.4",
    "bin_dir": "/usr/local/bin",
    "system_reserved": False,
    "container_manager": "containerd",
}
CLUSTER: dict[str, Any] = {
    "kube_network_plugin": "calico",
    "kubelet_max_pods": 110,
    "kubelet_enforce_node_allocatable": "pods",
    "kubelet_feature_gates": [],
    "kube_reserved": False,
    "kube_cpu_reserved": "100m",
    "kube_memory_reserved": "256Mi",
    "system_cpu_reserved": "500m",
    "system_memory_reserved": "512Mi",
    "kube_override_hostname": "{{ '' if cloud_provider | default('') == 'aws' else inventory_hostname }}",
    "kubelet_cpu_manager_policy": "static",
    "kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "kubelet_topology_manager_policy": "restricted",
    "kubelet_topology_manager_scope": "pod",
    "kubelet_config_extra_args": {"serializeImagePulls": False},
}
CONTROL_PLANE: dict[str, Any] = {
    "kube_cpu_reserved": "200m",
    "kube_memory_reserved": "512Mi",
    "kubelet_config_extra_args": {"serializeImagePulls": False, "reservedSystemCPUs": "0,8"},
    "kubelet_node_config_extra_args": {},
}
SYSTEM_RESERVED = {"cpu": "500m", "memory": "512Mi"}
WORKERS: dict[str, Any] = {
    "kubelet_node_config_extra_args": {"reservedSystemCPUs": "0-1,8-9", "systemReserved": SYSTEM_RESERVED}
}
# What each host has of these.
VARIABLES: dict[str, dict[str, Any]] = {
    "control-1": {**ALL, **CLUSTER, **CONTROL_PLANE},
    **{host: {**ALL, **CLUSTER, **WORKERS} for host in ("worker-1", "worker-2")},
}

# Names of kubespray's inventories and defaults that are about kubelets.
NAMES = (
    "kube_reserved kube_cpu_reserved kube_memory_reserved kube_ephemeral_storage_reserved kube_pid_reserved"
    " kube_reserved_cgroups kube_reserved_cgroups_for_service_slice kube_master_cpu_reserved"
    " kube_master_memory_reserved system_reserved system_cpu_reserved system_memory_reserved"
    " system_ephemeral_storage_reserved system_pid_reserved system_reserved_cgroups"
    " system_reserved_cgroups_for_service_slice system_master_cpu_reserved system_master_memory_reserved"
    " eviction_hard eviction_hard_control_plane kubelet_address kubelet_bind_address"
    " kubelet_enforce_node_allocatable kubelet_runtime_cgroups kubelet_kubelet_cgroups"
    " kubelet_runtime_cgroups_cgroupfs kubelet_kubelet_cgroups_cgroupfs kubelet_fail_swap_on kubelet_swap_behavior"
    " kubelet_status_update_frequency kubelet_max_pods kubelet_pod_pids_limit kubelet_config_extra_args"
    " kubelet_config_extra_args_cgroupfs kubelet_node_config_extra_args kubelet_logfiles_max_nr"
    " kubelet_logfiles_max_size kubelet_custom_flags kubelet_node_custom_flags kubelet_healthz_port"
    " kubelet_healthz_bind_address kubelet_rotate_certificates kubelet_rotate_server_certificates"
    " kubelet_protect_kernel_defaults kubelet_authentication_token_webhook kubelet_authorization_mode_webhook"
    " kubelet_cgroup_driver kubelet_feature_gates kubelet_event_record_qps kubelet_shutdown_grace_period"
    " kubelet_shutdown_grace_period_critical_pods kubelet_seccomp_default kubelet_streaming_connection_idle_timeout"
    " kubelet_image_gc_high_threshold kubelet_image_gc_low_threshold kubelet_make_iptables_util_chains"
    " kubelet_systemd_hardening kubelet_secure_addresses kubelet_csr_approver_enabled"
    " kubelet_preferred_address_types kubelet_cpu_manager_policy kubelet_cpu_manager_policy_options"
    " kubelet_topology_manager_policy kubelet_topology_manager_scope kube_override_hostname kube_version"
    " kube_read_only_port node_labels node_taints"
)


@pytest.mark.parametrize("name", NAMES.split())
def test_no_name_of_kubespray_is_taken_for_a_misspelt_one(name: str) -> None:
    assert misspelled([name]) == []


def test_the_common_variables_are_ours() -> None:
    kinds = ("cpu_manager_policy", "cpu_manager_policy_options", "topology_manager_policy", "topology_manager_scope")
    assert {"kubelet_" + kind for kind in kinds} <= KNOWN


class Cluster:
    """An inventory in kubespray's form, and its nodes as kubespray left them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.run_in = directory / "run"
        self.hosts = {host: {"kubelet_node_root": str(directory / "nodes" / host)} for host in GROUPS["kube_node"]}
        for host, variables in self.hosts.items():
            shape, root = parse_name("2s1n4c2t"), directory / "nodes" / host
            write_tree(shape.topology(), root, shape.whole())
            write_kubelet(root, KUBELETS["kubespray"])
            variables["kubelet_target_version"] = ALL["kube_version"]
        # worker-1 and worker-2 are no control plane.
        children: dict[str, Any] = {name: {"hosts": dict.fromkeys(hosts)} for name, hosts in GROUPS.items()}
        children["workers"] = {"hosts": {"worker-1": None, "worker-2": None}}
        children["k8s_cluster"] = {"children": {"kube_control_plane": None, "kube_node": None}}
        self.write("hosts.yaml", {"all": {"children": children}})
        self.group("all", ALL)
        self.group("k8s_cluster", CLUSTER)
        self.group("kube_control_plane", CONTROL_PLANE)
        self.group("workers", WORKERS)

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        path = self.directory / "inventory" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(content)), encoding="utf-8")

    def group(self, name: str, variables: Mapping[str, Any]) -> None:
        self.write("group_vars/%s/%s.yml" % (name, name), variables)

    def configure(self, host: str, variables: Mapping[str, Any]) -> None:
        """Write the configuration that kubespray writes for these variables."""
        path = self.directory / "nodes" / host / CONFIGURATION
        path.write_text(kubespray.configuration(variables), encoding="utf-8")

    def written(self, host: str) -> dict[str, Any]:
        """Return the fields of its configuration that are about more than the file."""
        text = (self.directory / "nodes" / host / CONFIGURATION).read_text("utf-8")
        return {key: value for key, value in yaml.safe_load(text).items() if key not in ("apiVersion", "kind")}

    def run(self, playbook: str, *arguments: str) -> Run:
        inventory = self.directory / "inventory/hosts.yaml"
        return ansible_playbook(self.run_in, playbook, self.hosts, "-i", str(inventory), *arguments)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def plans(run: Run) -> dict[str, dict[str, Any]]:
    assert run.status == 0, run.account()
    return {
        host: result
        for host, results in run.results.items()
        # The first one of each.
        for result in reversed(results)
        if "refusals" in result
    }


def test_what_kubespray_wrote_is_what_is_wanted(cluster: Cluster) -> None:
    """The variables mean the same: on nodes that kubespray has configured with them nothing is to be changed."""
    for host, variables in VARIABLES.items():
        cluster.configure(host, variables)
    before = fingerprint(cluster.directory / "nodes")
    found = plans(cluster.run(ROLLOUT, "--check"))
    assert {host: (plan["status"], plan["drift"], plan["refusals"]) for host, plan in found.items()} == {
        host: ("clean", [], []) for host in GROUPS["kube_node"]
    }
    # And they are all of them.
    assert found["control-1"]["wanted"] == {
        "cpu_manager_policy": "static",
        "cpu_manager_policy_options": {"full-pcpus-only": "true"},
        "topology_manager_policy": "restricted",
        "topology_manager_scope": "pod",
        "kube_reserved_cpu": "200m",
        "kube_reserved_memory": "512Mi",
        "reserved_system_cpus": "0,8",
    }
    worker = found["worker-1"]["wanted"]
    assert (worker["system_reserved_cpu"], worker["system_reserved_memory"]) == ("500m", "512Mi")
    assert worker["reserved_system_cpus"] == "0-1,8-9"
    report = cluster.run(REPORT, "--check")
    assert report.status == 0, report.account()
    assert "3 clean" in report.output
    assert fingerprint(cluster.directory / "nodes") == before


def test_a_rollout_brings_the_variables_to_the_nodes(cluster: Cluster) -> None:
    found = plans(cluster.run(ROLLOUT, "-e", "cpu_manager_serial=100%"))
    for host, variables in VARIABLES.items():
        written = cluster.written(host)
        expected = kubespray.fields(variables)
        # Of other extra arguments the value on the node counts.
        for key in ("serializeImagePulls", "enforceNodeAllocatable"):
            expected.pop(key)
        assert {key: written[key] for key in expected} == expected
        # It is said where else they have to be, by kubespray's names.
        assert found[host]["elsewhere"]["name"] == "kubespray"
        pasted = yaml.safe_load(found[host]["elsewhere"]["snippet"])
        assert pasted["kubelet_cpu_manager_policy_options"] == {"full-pcpus-only": "true"}
        assert pasted["kube_cpu_reserved"] == expected["kubeReserved"]["cpu"]
        assert kubespray.fields(pasted) == expected


def test_the_next_run_of_kubespray_changes_nothing(cluster: Cluster) -> None:
    """With what the plan shows in its inventory, also where that had what no kubelet starts with."""
    switched_on = {"system_reserved": True, "kube_reserved": True}
    extra = {"kubelet_node_config_extra_args": {"reservedSystemCPUs": "0-1,8-9"}}
    cluster.group("workers", {**switched_on, **extra})
    before = {**ALL, **CLUSTER, **switched_on}
    for host in ("worker-1", "worker-2"):
        cluster.configure(host, before)
    run = cluster.run(ROLLOUT, "-e", "cpu_manager_serial=100%", "-e", "cpu_manager_hosts=workers")
    plan = plans(run)["worker-1"]
    assert plan["refusals"] == []

    pasted = yaml.safe_load(plan["elsewhere"]["snippet"])
    pasted["kubelet_config_extra_args"] = {
        **CLUSTER["kubelet_config_extra_args"],
        **pasted["kubelet_config_extra_args"],
    }
    # The cgroups are set to nothing, which is the same as not there.
    written = {key: value for key, value in cluster.written("worker-1").items() if value != ""}
    assert kubespray.fields({**before, **pasted}) == written
    cluster.group("workers", pasted)
    for host in ("worker-1", "worker-2"):
        cluster.configure(host, {**before, **pasted})
    after = plans(cluster.run(ROLLOUT, "--check", "-e", "cpu_manager_hosts=workers"))["worker-1"]
    assert (after["status"], after["drift"], after["refusals"]) == ("clean", [], [])
    assert after["wanted"] == plan["wanted"]
    assert yaml.safe_load(after["elsewhere"]["snippet"]) == yaml.safe_load(plan["elsewhere"]["snippet"])


def test_our_variables_count_more(cluster: Cluster) -> None:
    cluster.group(
        "workers",
        {
            **WORKERS,
            "kubelet_reservation": {"count": 2},
            "kubelet_kube_reserved_cpu": "300m",
            "kubelet_system_reserved_memory": "1Gi",
        },
    )
    wanted = plans(cluster.run(ROLLOUT, "--check"))["worker-1"]["wanted"]
    assert wanted["reserved_system_cpus"] == "0,8"
    assert wanted["kube_reserved_cpu"] == "300m"
    assert wanted["kube_reserved_memory"] == "256Mi"
    assert wanted["system_reserved_memory"] == "1Gi"


def test_what_kubespray_does_not_say_is_not_wanted(cluster: Cluster) -> None:
    """Its defaults are in its roles, which are not here."""
    for name in ("k8s_cluster", "kube_control_plane", "workers"):
        cluster.group(name, {"kubelet_max_pods": 110})
    found = plans(cluster.run(ROLLOUT, "--check"))
    assert all(plan["wanted"] == {} for plan in found.values())
    assert {plan["status"] for plan in found.values()} == {"nothing wanted"}


def test_a_proposal_for_such_a_cluster(cluster: Cluster) -> None:
    cluster.group(
        "workers",
        {**WORKERS, "cpu_manager_workload": "latency", "kube_override_hostname": "{{ ip }}", "ip": "10.0.0.7"},
    )
    run = cluster.run(PROPOSE, "-e", "cpu_manager_hosts=workers", "-e", '{"cpu_manager_node_objects": ["labels"]}')
    assert run.status == 0, run.account()
    written = next(
        result for results in run.results.values() for result in results if result["task"] == "Write the proposal"
    )
    # kubespray's groups are deeper than those of the proposal.
    assert any(warning.startswith("kubelet_cpu_manager_policy_options has") for warning in written["warnings"])
    assert {entry["metadata"]["name"] for entry in written["objects"]} == {"10.0.0.7"}

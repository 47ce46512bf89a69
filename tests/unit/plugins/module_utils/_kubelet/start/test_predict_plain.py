# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is decoded at once is what the whole way makes of it: the same prediction, to the last word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import (
    predict as engine,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import (
    predict as prediction,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import (
    predict as whole,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    are_plain,
    plain_file,
    plain_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
TEXT = "".join("%s: %s\n" % item for item in HEADER.items())
TOPOLOGY = parse_name("2s1n2c2t").topology()

KUBEADM: dict[str, Any] = {
    **HEADER,
    "authentication": {
        "anonymous": {"enabled": False},
        "webhook": {"cacheTTL": "0s", "enabled": True},
        "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
    },
    "authorization": {"mode": "Webhook", "webhook": {"cacheAuthorizedTTL": "0s", "cacheUnauthorizedTTL": "0s"}},
    "cgroupDriver": "systemd",
    "clusterDNS": ["10.96.0.10"],
    "clusterDomain": "cluster.local",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "cpuManagerReconcilePeriod": "0s",
    "crashLoopBackOff": {},
    "evictionPressureTransitionPeriod": "0s",
    "fileCheckFrequency": "0s",
    "healthzBindAddress": "127.0.0.1",
    "healthzPort": 10248,
    "httpCheckFrequency": "0s",
    "imageMaximumGCAge": "0s",
    "imageMinimumGCAge": "0s",
    "logging": {
        "flushFrequency": 0,
        "options": {"json": {"infoBufferSize": "0"}, "text": {"infoBufferSize": "0"}},
        "verbosity": 0,
    },
    "memorySwap": {},
    "nodeStatusReportFrequency": "0s",
    "nodeStatusUpdateFrequency": "0s",
    "resolvConf": "/run/systemd/resolve/resolv.conf",
    "rotateCertificates": True,
    "runtimeRequestTimeout": "0s",
    "shutdownGracePeriod": "0s",
    "shutdownGracePeriodCriticalPods": "0s",
    "staticPodPath": "/etc/kubernetes/manifests",
    "streamingConnectionIdleTimeout": "0s",
    "syncFrequency": "0s",
    "volumeStatsAggPeriod": "0s",
}


def host(minor: int = 36, **details: Any) -> Host:
    nodes = tuple(node.id for node in TOPOLOGY.numa_nodes)
    return Host(kubelet_view(TOPOLOGY), minor, nodes, TOPOLOGY.numa_distances, 16 << 30, **details)


def test_what_kubeadm_writes_is_plain() -> None:
    decoded = plain_values(KUBEADM, 33)
    assert decoded is not None
    assert decoded.keys() == KUBEADM.keys()
    assert decoded["syncFrequency"] == 0
    assert decoded["authentication"]["webhook"] == {"cacheTTL": 0, "enabled": True}
    # Older kubelets do not have all of these fields.
    assert plain_values(KUBEADM, 32) is None


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "Pod"},
        {"cpuManagerPolicy": ""},
        {"cpuManagerPolicy": 5},
        {"cpuManagerPolcy": "static"},
        {"cpuCFSQuota": "false"},
        {"cpuManagerReconcilePeriod": "5"},
        {"cpuManagerReconcilePeriod": None},
        {"syncFrequency": "1m"},
        {"syncFrequency": 0.0},
        {"syncFrequency": False},
        {"healthzPort": 0},
        {"healthzPort": 65536},
        {"healthzPort": True},
        {"maxPods": -1},
        {"maxPods": 110.5},
        {"kubeReserved": {"cpu": 1}},
        {"kubeReserved": []},
        {"featureGates": {"CPUManagerPolicyAlphaOptions": "true"}},
        {"clusterDNS": [None]},
        {"clusterDNS": "10.96.0.10"},
        {"cgroupDriver": "other"},
        {"authorization": {"mode": "RBAC"}},
        {"authentication": {"anonymous": {"Enabled": False}}},
        {"authentication": []},
        {"memorySwap": {"swapBehavior": "NoSwap"}},
        {"logging": {"format": "json"}},
        {"reservedMemory": []},
    ],
)
def test_what_is_not_plain(values: dict[str, Any]) -> None:
    assert plain_values({**HEADER, **values}, 36) is None


@pytest.mark.parametrize(
    ("content", "is_plain"),
    [
        (TEXT, True),
        (TEXT + "cpuManagerPolicy: static # why\n", True),
        (TEXT + "clusterDomain: ü\n", False),
        (TEXT + "clusterDomain: a\nclusterDomain: b\n", False),
        (TEXT + "clusterDomain: [\n", False),
        (json.dumps(HEADER), False),
        ("- a\n", False),
        ("", False),
        (TEXT + "#" * (1 << 16), False),
    ],
)
def test_a_file(content: str, is_plain: bool) -> None:
    assert (plain_file(content.encode("utf-8")) is not None) == is_plain


@pytest.mark.parametrize(
    ("arguments", "is_plain"),
    [
        ([], True),
        (["--config=/etc/kubelet.yaml", "--kubeconfig=/etc/kubelet.conf"], True),
        (["--config="], False),
        (["--config", "/etc/kubelet.yaml"], False),
        (["--config=/etc/a\n"], False),
        (["--v=2"], False),
        (["static"], False),
    ],
)
def test_flags(arguments: list[str], is_plain: bool) -> None:
    assert are_plain(arguments) == is_plain


CPUS = st.sampled_from(["0", "0-1", "0,4", "7", "8", "0-7", "1-0", "x", "0,,1", " 0", "99999999999", "0-1\n"])
AMOUNTS = st.sampled_from(["0", "1", "500m", "9", "-1", "x", "1Gi", "100Gi", "1.5", ".5", "1e3", "", "10E", "0.1n"])
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "cpuManagerPolicy": st.sampled_from(["none", "static", "Static"]),
        "cpuManagerPolicyOptions": st.dictionaries(
            st.sampled_from(["full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket", "x"]),
            st.sampled_from(["true", "false", "yes"]),
            max_size=2,
        ),
        "reservedSystemCPUs": CPUS,
        "kubeReserved": st.dictionaries(st.sampled_from(["cpu", "memory", "ephemeral-storage", "x"]), AMOUNTS),
        "systemReserved": st.dictionaries(st.sampled_from(["cpu", "memory", "pid"]), AMOUNTS),
        "evictionHard": st.dictionaries(
            st.sampled_from(["memory.available", "nodefs.available", "imagefs.inodesFree", "pid.available", "x"]),
            st.sampled_from(["100Mi", "5%", "05%", "0%", "101%", "-1", "", "0", "20Gi"]),
        ),
        "topologyManagerPolicy": st.sampled_from(["none", "restricted", "x"]),
        "topologyManagerScope": st.sampled_from(["pod", "x"]),
        "topologyManagerPolicyOptions": st.dictionaries(
            st.sampled_from(["prefer-closest-numa-nodes", "x"]), st.sampled_from(["true", "x"])
        ),
        "memoryManagerPolicy": st.sampled_from(["None", "Static", "x"]),
        "cpuCFSQuotaPeriod": st.sampled_from(["100ms", "5ms", "2s", "0s"]),
        "cpuManagerReconcilePeriod": st.sampled_from(["0s", "5s", "-1s"]),
        "cpuCFSQuota": st.booleans(),
        "enforceNodeAllocatable": st.lists(st.sampled_from(["pods", "none", "kube-reserved", "x"]), max_size=2),
        "kubeReservedCgroup": st.sampled_from(["/kube.slice"]),
        "cgroupRoot": st.sampled_from(["/", "/x"]),
        "cgroupDriver": st.sampled_from(["systemd", "cgroupfs"]),
        "cgroupsPerQOS": st.booleans(),
        "failCgroupV1": st.booleans(),
        "failSwapOn": st.booleans(),
        "singleProcessOOMKill": st.booleans(),
        "protectKernelDefaults": st.booleans(),
        "allowedUnsafeSysctls": st.lists(st.sampled_from(["net.*", "foo*"]), max_size=1),
        "containerLogMaxSize": st.sampled_from(["10Mi", "x"]),
        "maxPods": st.integers(0, 500),
        "mergeDefaultEvictionSettings": st.booleans(),
    },
)
HOSTS = st.builds(
    host,
    st.sampled_from([33, 34, 35, 36, 37]),
    cgroup_v1=st.booleans(),
    storage=st.sampled_from([None, 100 << 30]),
    lacks_cgroup=st.sampled_from([lambda _path: None, lambda _path: ["/sys/fs/cgroup"], lambda _path: []]),
    has_systemd=st.sampled_from([None, True, False]),
    swap_on=st.booleans(),
    kernel_flag=st.sampled_from([lambda _flag: None, lambda _flag: 1]),
)


@given(VALUES, HOSTS)
def test_the_same_prediction(values: dict[str, Any], machine: Host) -> None:
    configuration = {**KUBEADM, **values}
    content = json.dumps(configuration)
    # YAML without JSON's first sign, which is read otherwise.
    text = "".join("%s: %s\n" % (name, json.dumps(value)) for name, value in configuration.items())
    assert engine.predict_plain(configuration, machine) is not None
    plain = engine.predict(prediction.GivenToKubelet((), text.encode("ascii"), None, "/config"), machine)
    fully = whole.predict_fully(prediction.GivenToKubelet((), content.encode("ascii"), None, "/config"), machine)
    assert plain.findings == fully.findings
    assert plain.unknown == fully.unknown
    assert plain.checked == fully.checked
    assert engine.predict_values(configuration, machine).findings == fully.findings

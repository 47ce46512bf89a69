# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubelet configurations as kubeadm, kubespray, k3s, nodeadm and AKS lay them out, and changes to them."""

from __future__ import annotations

import json
from typing import Any

import yaml as pyyaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration

# Sorted keys, lists at the indentation of their keys.
KUBEADM = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
"""

# A template's output: a document start, no order, comments, quotes of all kinds, no line break at the end.
KUBESPRAY = """\
---
# This file is written by a template; changes are lost.
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
nodeStatusUpdateFrequency: "10s"
failSwapOn: True
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: True
clusterDomain: cluster.local
protectKernelDefaults: true
cpuManagerPolicy: 'none'   # until the next maintenance
maxPods: 110

# Reservations, see the runbook
kubeReserved:
  # the kubelet and the container runtime
  cpu: "100m"   # measured
  memory: "256Mi"
  ephemeral-storage: 500Mi # disk
  # pid: "1000"
systemReserved:
  cpu: 500m
  memory: 512Mi
evictionHard: {memory.available: 100Mi, nodefs.available: "10%"}
featureGates:
  CustomCPUCFSQuotaPeriod: true
clusterDNS:
  - 169.254.25.10
  - "fd00::a"
resolvConf: "/run/systemd/resolve/resolv.conf"
shutdownGracePeriod: 60s"""

# A drop-in: little, and with null, which deletes what the files before it say.
K3S = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration

cpuManagerPolicy: static
cpuManagerPolicyOptions:
    full-pcpus-only: "true"
    strict-cpu-reservation: null
reservedSystemCPUs: "0,16"
shutdownGracePeriod:
"""

NODEADM = """\
{
    "kind": "KubeletConfiguration",
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "authentication": {
        "x509": {
            "clientCAFile": "/etc/kubernetes/pki/ca.crt"
        },
        "anonymous": {
            "enabled": false
        }
    },
    "clusterDNS": [
        "172.20.0.10"
    ],
    "evictionHard": {
        "memory.available": "100Mi",
        "nodefs.available": "10%"
    },
    "kubeReserved": {
        "cpu": "70m",
        "memory": "442Mi"
    },
    "featureGates": {},
    "maxPods": 29,
    "cpuCFSQuota": true,
    "memoryThrottlingFactor": 0.9
}"""
AKS = json.dumps(json.loads(NODEADM), separators=(",", ":")) + "\n"
ONE_LINE = json.dumps(json.loads(NODEADM)) + "\n"

# YAML, but in flow style below its document start.
FLOW_YAML = """\
---
{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration,
 kubeReserved: {cpu: 100m, memory: }, clusterDNS: [10.96.0.10, "::1"],
 'maxPods': 110,}
"""

FILES = {
    "kubeadm": KUBEADM,
    "kubespray": KUBESPRAY,
    "k3s": K3S,
    "nodeadm": NODEADM,
    "aks": AKS,
    "one line": ONE_LINE,
    "flow": FLOW_YAML,
    "crlf": KUBESPRAY.replace("\n", "\r\n"),
    "json with crlf": NODEADM.replace("\n", "\r\n"),
    "json with tabs": NODEADM.replace("    ", "\t"),
    "byte order mark": "\ufeff" + KUBEADM,
}
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

Changes = dict[tuple[str, ...], Any]


def changed(text: str, changes: Changes) -> str:
    return KubeletConfiguration.parse(text).with_changes(changes).text


def reference(text: str) -> Any:
    """Return the values as other readers see them. JSON has tabs and numbers such as 1e+20, which PyYAML does not
    know."""
    return json.loads(text) if text.startswith("{") else pyyaml.safe_load(text)

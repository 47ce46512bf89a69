# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole predictions for kubelets 1.29 to 1.32, whose rules are known from their sources alone."""

from __future__ import annotations

from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import DropIns
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    GivenToKubelet,
    Prediction,
    predict,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    host as machine,
)

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\ncpuCFSQuota: false\n"
OPTIONS = STATIC + "cpuManagerPolicyOptions: {%s: 'true'}\n"
ALPHA = "featureGates: {CPUManagerPolicyAlphaOptions: true}\n"
NUMA = "topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {%s}\n"
CORES, STRICT, UNCORE = "distribute-cpus-across-cores", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"

ALL = (29, 30, 31, 32)
NO_GATE = "unrecognized feature gate: "
LOCKED = "cannot set feature gate %s to false, feature is locked to true"
NO_FLAG = "unknown flag: --"
NO_OPTION = 'unknown CPU Manager Policy option: "%s"'
IS_ALPHA = 'CPU Manager Policy Alpha-level Options not enabled, but option "%s" provided'
NO_TOPOLOGY_OPTION = 'unknown Topology Manager Policy option: "%s"'
SWAP = 'invalid configuration: memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"'


def said(text: str, minor: int, flags: Sequence[str] = (), drop_ins: DropIns | None = None) -> Prediction:
    given = GivenToKubelet(flags, (HEADER + text).encode(), drop_ins, "/x", "" if drop_ins is None else "/d")
    found: Host = machine(minor=minor)
    return predict(given, found)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        # Gates: that came, were locked, and went.
        ("featureGates: {ImageVolume: true}", {29: NO_GATE + "ImageVolume", 30: NO_GATE + "ImageVolume"}),
        (
            "featureGates: {PodLevelResources: true}",
            dict.fromkeys((29, 30, 31), NO_GATE + "PodLevelResources"),
        ),
        ("featureGates: {HPAContainerMetrics: false}", {30: LOCKED, 31: LOCKED, 32: NO_GATE + "HPAContainerMetrics"}),
        ("featureGates: {MemoryManager: false}", {32: LOCKED}),
        ("featureGates: {CPUManager: false}", dict.fromkeys(ALL, LOCKED)),
        ("featureGates: {CPUManager: true, SidecarContainers: false}", {}),
        (
            "featureGates: {SecurityContextDeny: true}",
            dict.fromkeys((30, 31, 32), NO_GATE + "SecurityContextDeny"),
        ),
        (
            "featureGates: {DRAControlPlaneController: true}",
            dict.fromkeys((29, 30, 32), NO_GATE + "DRAControlPlaneController"),
        ),
        ("featureGates: {TopologyManager: true}", dict.fromkeys(ALL, NO_GATE + "TopologyManager")),
        # Options of the static policy.
        (OPTIONS % "full-pcpus-only", {}),
        (OPTIONS % "distribute-cpus-across-numa" + ALPHA, {}),
        (OPTIONS % CORES, {29: NO_OPTION % CORES, 30: NO_OPTION % CORES, 31: IS_ALPHA % CORES, 32: IS_ALPHA % CORES}),
        (OPTIONS % CORES + ALPHA, {29: NO_OPTION % CORES, 30: NO_OPTION % CORES}),
        (OPTIONS % STRICT + ALPHA, dict.fromkeys((29, 30, 31), NO_OPTION % STRICT)),
        (OPTIONS % UNCORE, {**dict.fromkeys((29, 30, 31), NO_OPTION % UNCORE), 32: IS_ALPHA % UNCORE}),
        # Options of the topology manager.
        (NUMA % "prefer-closest-numa-nodes: 'true'", {}),
        (
            NUMA % "max-allowable-numa-nodes: '9'",
            dict.fromkeys((29, 30), NO_TOPOLOGY_OPTION % "max-allowable-numa-nodes"),
        ),
        # Other fields.
        ("memorySwap: {swapBehavior: UnlimitedSwap}\nfeatureGates: {NodeSwap: true}", {30: SWAP, 31: SWAP, 32: SWAP}),
        (
            "podLogsDir: logs",
            dict.fromkeys((30, 31, 32), 'invalid configuration: pod logs path "logs" must be absolute path'),
        ),
        (
            "maxPods: -1",
            dict.fromkeys(ALL, "invalid configuration: maxPods (--max-pods) -1 must not be a negative number"),
        ),
    ],
)
def test_what_is_refused(text: str, refused: dict[int, str]) -> None:
    found: dict[int, Any] = {}
    for minor in ALL:
        prediction = said(text, minor)
        assert prediction.starts is not None
        if prediction.refusal is not None:
            found[minor] = prediction.refusal.text
    name = text.partition("{")[2].partition(":")[0]
    assert sorted(found) == sorted(refused)
    for minor, words in refused.items():
        assert found[minor].endswith(words % name if words == LOCKED else words)


@pytest.mark.parametrize(
    ("flag", "refused"),
    [
        ("--keep-terminated-pod-volumes=false", [31, 32]),
        ("--iptables-masquerade-bit=14", [31, 32]),
        ("--azure-container-registry-config=/etc/kubernetes/azure.json", [30, 31, 32]),
        ("--fail-cgroupv1=false", [29, 30]),
        ("--container-runtime=remote", [29, 30, 31, 32]),
        # That a flag is known to none of them is sure, too.
        ("--cpu-manager-polcy=static", [29, 30, 31, 32]),
        ("--register-schedulable=true", []),
        ("--pod-infra-container-image=pause", []),
    ],
)
def test_flags_that_went_and_came(flag: str, refused: list[int]) -> None:
    found = {minor: said("", minor, [flag]).refusal for minor in ALL}
    assert [minor for minor, refusal in found.items() if refusal is not None] == refused
    name = flag.partition("=")[0].strip("-")
    assert all(refusal is None or refusal.text == NO_FLAG + name for refusal in found.values())


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ("failCgroupV1: true", [29, 30]),
        ("containerLogMaxWorkers: 2", [29]),
        ("crashLoopBackOff: {}", [29, 30, 31]),
        ("singleProcessOOMKill: true", [29, 30, 31]),
        ("mergeDefaultEvictionSettings: true", [29, 30, 31, 32]),
        ("userNamespaces: {idsPerPod: 65536}", [29, 30, 31, 32]),
        ("logging: {options: {text: {infoBufferSize: '0'}}}", [29, 30]),
        ("imageMaximumGCAge: 0s", []),
        ("reservedCpus: 0-1", [29, 30, 31, 32]),
    ],
)
def test_fields_that_are_not_there_yet_are_ignored(text: str, ignored: list[int]) -> None:
    predictions = {minor: said(text, minor) for minor in ALL}
    assert [minor for minor, prediction in predictions.items() if prediction.ignored] == ignored
    assert all(prediction.starts for prediction in predictions.values())


DROP_IN: DropIns = [("10.conf", (HEADER + "maxPods: 5\n").encode())]
VARIABLE = "a kubelet 1.29 takes --config-dir only with KUBELET_CONFIG_DROPIN_DIR_ALPHA in its environment"
MERGE = "a kubelet 1.%d merges drop-ins in a way that is not known in full"


@pytest.mark.parametrize(
    ("drop_ins", "minor", "reasons"),
    [
        (DROP_IN, 29, [VARIABLE]),
        ([], 29, [VARIABLE]),
        (DROP_IN, 30, [MERGE % 30]),
        (DROP_IN, 31, [MERGE % 31]),
        ([], 31, []),
        ([("10.txt", b"")], 31, []),
        (DROP_IN, 32, []),
        (None, 29, []),
    ],
)
def test_how_drop_ins_are_merged_is_known_since_1_32(drop_ins: DropIns | None, minor: int, reasons: list[str]) -> None:
    prediction = said("", minor, drop_ins=drop_ins)
    assert [(doubt.reason, doubt.where) for doubt in prediction.unknown] == [(reason, "/d") for reason in reasons]
    assert prediction.starts is (None if reasons else True)
    # What is refused whatever they say is refused.
    assert said("featureGates: {NoSuchGate: true}", minor, drop_ins=drop_ins).starts is False

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    KUBELET_CONFIGURATION,
    STRUCTS,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import (
    DUPLICATE,
    SPELLING,
    UNKNOWN,
    OddMember,
    odd_members,
)


@pytest.mark.parametrize(
    ("tree", "members"),
    [
        ({"cpuManagerPolicy": "none", "kubeReserved": {"cpu": "1"}}, []),
        ({"fooBar": {"a": {}}}, [OddMember(UNKNOWN, "fooBar", "fooBar", KUBELET_CONFIGURATION)]),
        ({"authentication": "x", "reservedMemory": [5], "clusterDNS": {}}, []),
        (
            {"authentication": {"webhook": {"enable": 1}}},
            [OddMember(UNKNOWN, "authentication.webhook.enable", "enable", "KubeletWebhookAuthentication")],
        ),
        (
            {"reservedMemory": [{}, {"node": 1}]},
            [OddMember(UNKNOWN, "reservedMemory[1].node", "node", "MemoryReservation")],
        ),
    ],
)
def test_unknown_names(tree: Any, members: list[OddMember]) -> None:
    assert odd_members(tree, 36, False) == members


def test_known_names() -> None:
    assert odd_members(dict.fromkeys(STRUCTS[KUBELET_CONFIGURATION]), 36, False) == []
    assert len(STRUCTS[KUBELET_CONFIGURATION]) > 120
    nested = {
        "authentication": {"x509": {"clientCAFile": "/ca"}, "webhook": {"enabled": True, "cacheTTL": "0s"}},
        "logging": {"format": "json", "options": {"json": {"infoBufferSize": "0"}}},
        "evictionHard": {"any.signal": "1"},
        "shutdownGracePeriodByPodPriority": [{"priority": 1, "shutdownGracePeriodSeconds": 2}],
        "memorySwap": None,
    }
    assert odd_members(nested, 36, False) == []


@pytest.mark.parametrize(
    "path",
    [
        "authentication.anonymous.enabled",
        "authentication.webhook.enabled",
        "authentication.webhook.cacheTTL",
        "authentication.x509.clientCAFile",
        "authorization.mode",
        "authorization.webhook.cacheAuthorizedTTL",
        "authorization.webhook.cacheUnauthorizedTTL",
        "crashLoopBackOff.maxContainerRestartPeriod",
        "memorySwap.swapBehavior",
        "reservedMemory[].numaNode",
        "reservedMemory[].limits",
        "shutdownGracePeriodByPodPriority[].priority",
        "shutdownGracePeriodByPodPriority[].shutdownGracePeriodSeconds",
        "userNamespaces.idsPerPod",
    ],
)
def test_members_of_structs(path: str) -> None:
    def found(path: str) -> list[str]:
        value: Any = None
        for name in reversed(path.split(".")):
            value = {name.replace("[]", ""): [value] if name.endswith("[]") else value}
        return [member.path for member in odd_members(value, 36, False)]

    assert found(path) == []
    assert found(path + "s") == [path.replace("[]", "[0]") + "s"]


def test_keys_that_are_there_twice() -> None:
    tree = read_json(b'{"maxPods": 1, "maxPods": 2, "kubeReserved": {"cpu": "1", "cpu": "2"}, "x": {"a": 1, "a": 1}}')
    assert odd_members(tree, 36, False) == [
        OddMember(DUPLICATE, "maxPods", "maxPods", KUBELET_CONFIGURATION, "maxPods"),
        OddMember(DUPLICATE, "kubeReserved.cpu", "cpu", ""),
        OddMember(UNKNOWN, "x", "x", KUBELET_CONFIGURATION),
    ]


def test_other_spellings() -> None:
    tree = {"Logging": {"Format": "text"}, "maxpods": 1}
    assert odd_members(tree, 36, True) == [
        OddMember(SPELLING, "Logging", "Logging", KUBELET_CONFIGURATION, "logging"),
        OddMember(SPELLING, "logging.Format", "Format", "LoggingConfiguration", "format"),
        OddMember(SPELLING, "maxpods", "maxpods", KUBELET_CONFIGURATION, "maxPods"),
    ]


def test_not_more_than_a_hundred() -> None:
    assert len(odd_members({"x%d" % number: 1 for number in range(200)}, 36, False)) == 100

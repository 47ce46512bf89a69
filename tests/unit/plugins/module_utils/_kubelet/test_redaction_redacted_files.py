# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets go from configuration files, and what these say to the modules stays."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flag_files import kubelet_args
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redaction import (
    configuration_redacted,
    kubelet_args_redacted,
)

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        "token: hunter2\nkubelet-arg:\n  - v=2\n  - manifest-url-header=A:hunter2\n",
        "kubelet-arg+:\n- max-pods=5\nagent-token: 'hunter2'\n",
        '{"agent-token": "hunter2", "kubelet-arg": ["max-pods=250"]}',
        "# hunter2\nserver: https://x\n",
        "kubelet-arg: []\n",
        "kubelet-arg: v=3\n",
        "kubelet-arg: [config, token=hunter2, vault=hunter2]\n",
        "",
    ],
)
def test_rancher(text: str) -> None:
    found = kubelet_args_redacted(text)
    assert SECRET not in found
    for before in ("", "kubelet-arg: [a=b]\n"):
        expected = [[word.replace(SECRET, "redacted") for word in words] for words in kubelet_args([before, text])]
        assert kubelet_args([before, found]) == expected


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "staticPodURLHeader:\n  Authorization:\n  - Bearer hunter2 # why\ncpuManagerPolicy: static # kept\n",
        HEADER + "staticPodURLHeader: {Authorization: [hunter2], B: ['hunter2-2']}\nmaxPods: 5\n",
        HEADER + 'staticPodURLHeader:\n  A: ["\\x68unter2"]\nclusterDomain: hunter.local\n',
        HEADER + "staticPodURLHeader:\n  A: [static]\ncpuManagerPolicy: static\n",
        HEADER + "StaticPodURLHeader: hunter2\n",
        HEADER + "staticPodURLHeader:\n  A:\n  - |\n    hunter2\n    hunter2\ncpuManagerPolicy: static\n",
        HEADER + "staticPodURL: https://user:hunter2@example.org/\n",
        HEADER + "staticPodURL: https://example.org/hunter2\n",
        '{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", %s}'
        % '"staticPodURLHeader": {"A": ["hunter2"]}',
    ],
)
def test_a_configuration(text: str) -> None:
    found = configuration_redacted(text)
    assert "unter2" not in found
    before, after = (KubeletConfiguration.parse(content).values for content in (text, found))
    for key in before:
        assert key.lower().startswith("staticpodurl") or after[key] == before[key]
    assert list(before) == list(after)
    assert configuration_redacted(found) == found


def test_a_configuration_without_secrets_stays_to_the_byte() -> None:
    text = HEADER + "# comment\r\nfeatureGates: {A: true}\n\nreservedMemory:\n  # as before\n- numaNode: 0\n"
    assert configuration_redacted(text) == text
    json = (
        '{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "kubeReserved": {"cpu": "1"}}'
    )
    assert configuration_redacted(json) == json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Nothing\nmaxPods: [hunter2\n", "kind: xxxxxxx\nmaxPods: [xxxxxx0\n"),
        ("password: |\n  hunter2\n  more\n bad", "xxxxxxxx: |\n  xxxxxx0\n  xxxx\n xxx"),
        (HEADER + "maxPods: 5\n---\nfoo: hunter2\n", HEADER + "maxPods: 5\n---\nxxx: xxxxxx0\n"),
        (HEADER + "maxPods: 7\nmaxPods: 5 # hunter2\n", HEADER + "maxPods: 0\nmaxPods: 5 # redacted\n"),
        (HEADER + "clusterDNS:\n# token\n- 10.0.0.1\n", HEADER + "clusterDNS:\n# redacted\n- 10.0.0.1\n"),
        (HEADER + "clusterDNS: [a, # hunter2\n b]\n", HEADER + 'clusterDNS: ["a", "b"]\n'),
        (HEADER + "foo: hunter2\nbar: {a: 12345}\n", HEADER + 'foo: "redacted"\nbar: {a: "redacted"}\n'),
        (HEADER + "authentication: hunter2\n", HEADER + 'authentication: "redacted"\n'),
        (HEADER + "clusterDNS: &hosts [a]\nfoo: *hosts\n", HEADER + 'clusterDNS: &hosts [a]\nfoo: ["redacted"]\n'),
        ('{"maxPods": 5, "foo": "hunter2"', '{"maxPods": 0, "xxx": "xxxxxx0"'),
    ],
)
def test_what_is_no_setting_does_not_stay(text: str, expected: str) -> None:
    assert configuration_redacted(text) == expected
    assert configuration_redacted(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: hunter2\n    client-key-data: 'hunter2'\n",
        '{"kind":"Config","users":[{"user":{"token":"hunter2","password":"hunter2"}}]}',
        "staticPodURLHeader: {A: [hunter2]\n",
    ],
)
def test_another_file_in_its_place(text: str) -> None:
    assert SECRET not in configuration_redacted(text)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import NAMES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flags import (
    FLAGS,
    flag_of,
    flag_of_letter,
    removed_in,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import (
    KUBELET_CONFIGURATION,
    STRUCTS,
)

NAMED = {name: field for field, name in NAMES.items()}


@pytest.mark.parametrize("name", sorted(name for name, flag in FLAGS.items() if flag.path))
def test_that_each_flag_sets_a_known_field(name: str) -> None:
    assert FLAGS[name].path[0] in STRUCTS[KUBELET_CONFIGURATION]


@pytest.mark.parametrize("name", sorted(NAMED))
def test_that_flags_that_are_written_set_a_field_of_the_configuration_itself(name: str) -> None:
    assert FLAGS[name[2:]].path == (NAMED[name],)


def test_that_no_two_flags_set_the_same_field() -> None:
    paths = [flag.path for flag in FLAGS.values() if flag.path]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("cpu-manager-policy", [33, 34, 35, 36, 37]),
        ("cpu_manager_policy", [33, 34, 35, 36, 37]),  # underscores
        ("CPU-manager-policy", []),  # upper case
        ("pod-infra-container-image", [33, 34]),
        ("register-schedulable", [33]),
        ("cloud-config", [33]),
        ("keep-terminated-pod-volumes", []),
        ("storage-driver-user", [33, 34, 35, 36]),
        ("housekeeping-interval", [33, 34, 35, 36, 37]),
        ("version", [33, 34, 35, 36, 37]),
        ("network-plugin", []),
        ("", []),
    ],
)
def test_in_which_versions_a_flag_exists(name: str, versions: list[int]) -> None:
    assert [minor for minor in range(33, 38) if flag_of(name, minor)] == versions


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("cpu-manager-policy-options", [28, 29, 30, 31, 32]),
        ("config-dir", [28, 29, 30, 31, 32]),
        ("azure-container-registry-config", [28, 29]),
        ("keep-terminated-pod-volumes", [28, 29, 30]),
        ("iptables-drop-bit", [28, 29, 30]),
        ("iptables-masquerade-bit", [28, 29, 30]),
        ("fail-cgroupv1", [31, 32]),
        ("log-text-split-stream", [31, 32]),
        ("log-text-info-buffer-size", [31, 32]),
        ("log-json-split-stream", [28, 29, 30, 31, 32]),
        ("register-schedulable", [28, 29, 30, 31, 32]),
        ("pod-infra-container-image", [28, 29, 30, 31, 32]),
        ("container-runtime", []),
        ("logtostderr", []),
    ],
)
def test_in_which_older_versions_a_flag_exists(name: str, versions: list[int]) -> None:
    assert [minor for minor in range(28, 33) if flag_of(name, minor)] == versions


@pytest.mark.parametrize(("letter", "name"), [("v", "v"), ("h", "help"), ("c", None), ("", None)])
def test_letters(letter: str, name: str | None) -> None:
    flag = flag_of_letter(letter)
    assert (flag.name if flag else None) == name


@pytest.mark.parametrize(
    ("name", "minor", "version"),
    [
        ("pod_infra_container_image", 36, 35),
        ("pod-infra-container-image", 34, None),  # it still has it
        ("network-plugin", 36, 24),
        ("network-plugin", 23, None),
        ("docker_tls", 24, 24),
        ("experimental-bootstrap-kubeconfig", 36, 23),
        ("foo", 36, None),
    ],
)
def test_removed_in(name: str, minor: int, version: int | None) -> None:
    assert removed_in(name, minor) == version

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals that are predicted of a node's kubelet, and that it has been seen not to make."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.module import mistaken_in
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    planned_config,
    predict_configuration,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import configure
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import STATIC


def node_with(root: Path, text: str) -> Node:
    write_machine(root, "1s4c2t")
    (root / "var/lib/kubelet").mkdir(parents=True)
    configure(root, text)
    return Node(Tree(str(root)))


def mistake(node: Node) -> None:
    """Have the node take all that is predicted to be refused of it for a mistake."""
    findings = predict_configuration(node).findings
    node.mistaken = frozenset((finding.where, finding.text) for finding in findings if finding.fatal)
    assert node.mistaken


def test_what_the_kubelet_does_not_refuse_is_no_refusal(tmp_path: Path) -> None:
    node = node_with(tmp_path, STATIC + "memorySwap: {swapBehavior: Nonsense}\n")
    with pytest.raises(RefusedError):
        planned_config(node, {})
    mistake(node)
    for found in (node, node.of_version(36), node.on(OverlaidTree(node.tree, {}))):
        assert predict_configuration(found).starts is True
        assert planned_config(found, {}).policy_name == "static"


def test_other_refusals_stay(tmp_path: Path) -> None:
    node = node_with(tmp_path, STATIC + "memorySwap: {swapBehavior: Nonsense}\n")
    mistake(node)
    configure(tmp_path, STATIC + "memorySwap: {swapBehavior: Nonsense}\ntopologyManagerScope: moon\n")
    (refusal,) = [finding for finding in predict_configuration(node).findings if finding.fatal]
    assert "moon" in refusal.text


@pytest.mark.parametrize("text", ["cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n", "maxPods: [\n"])
def test_where_it_is_not_certain_with_what_the_cpu_manager_starts_the_refusal_stays(tmp_path: Path, text: str) -> None:
    node = node_with(tmp_path, text)
    mistake(node)
    assert predict_configuration(node).starts is False


@pytest.mark.parametrize("trial", [None, "", [], {}, {"mistaken": 1}, {"mistaken": [1]}, {"mistaken": [[1, 2, 3]]}])
def test_what_is_no_trial_names_no_mistake(trial: object) -> None:
    assert mistaken_in(trial) == frozenset()


def test_what_a_trial_names(tmp_path: Path) -> None:
    assert mistaken_in({"mistaken": [["a", "b"], ["a", "b"], ["c", ""]]}) == {("a", "b"), ("c", "")}

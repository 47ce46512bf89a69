# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flags of a kubelet that take the place of a whole map in its files: what that does to its start."""

from __future__ import annotations

from typing import Iterable, Mapping, Sequence

from ..errors import NodeError
from ..kubelet.file.configuration import ReplacedMap
from ..kubelet.start.finding import Finding, harmful
from ..kubelet.start.prediction import Prediction
from .node import Node

# What is refused for want of what a flag may have taken away: {where: (fields, resource)}.
_WANTING: Mapping[str, tuple[Sequence[str], str]] = {
    "reservedSystemCPUs": (("kubeReserved", "systemReserved"), "cpu"),
    "reservedMemory": (("kubeReserved", "systemReserved"), "memory"),
}


def with_replaced(node: Node, predictions: Iterable[Prediction]) -> list[Prediction]:
    """The predictions, each with what such flags take away, as a finding or as the cause of a refusal."""
    try:
        configuration = node.configuration()
    except NodeError:  # which the kubelet refuses, too
        configuration = None
    maps = () if configuration is None else configuration.replaced_maps()
    return [_with_replaced(prediction, maps) for prediction in predictions]


def _with_replaced(prediction: Prediction, maps: Sequence[ReplacedMap]) -> Prediction:
    checked = prediction.checked
    if checked is None or not maps:
        return prediction
    found = [harmful(replaced.to_cause(), replaced.to_remedy(), replaced.flag) for replaced in maps]
    before = [*(_explained(finding, maps) for finding in checked.before), *found]
    checked = checked._replace(before=before)
    return prediction._replace(findings=checked.findings, checked=checked)


def _explained(finding: Finding, maps: Sequence[ReplacedMap]) -> Finding:
    fields, resource = _WANTING.get(finding.where, ((), ""))
    for replaced in maps if finding.fatal else ():
        if replaced.field in fields and resource in replaced.lost:
            return finding._replace(
                cause="%s; %s" % (finding.cause, replaced.to_cause()),
                remedy="add %s=%s to %s in %s, or remove that flag"
                % (resource, replaced.lost[resource], replaced.flag, replaced.place),
            )
    return finding

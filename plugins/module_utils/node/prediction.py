# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would the kubelet of this node start: its files, flags and machine, the CPU and memory managers' states left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping

from ..errors import RefusedError
from ..kubelet.file.configuration import Configuration, KubeletConfiguration
from ..kubelet.installed.distributions import has_unit, service_of
from ..kubelet.settings import check_wishes, needed_config, start_error
from ..kubelet.start.engine import predict, predict_plain
from ..kubelet.start.prediction import Prediction, Starts
from .given import given_of, given_with, planned_values
from .node import Node
from .restored_states import with_restored

if TYPE_CHECKING:
    from ..kubelet.start.prediction import Given
    from ..state.config import CPUManagerConfig

# The fields without which it is not certain what the CPU manager starts with.
_OF_CPUS = frozenset(("cpuManagerPolicy", "cpuManagerPolicyOptions", "reservedSystemCPUs", "topologyManagerPolicy"))


def predict_configuration(node: Node, wanted: Mapping[str, object] | None = None) -> Prediction:
    """What is predicted of the kubelet of this node with `wanted` in its configuration."""
    (prediction,) = _of_node(node, predict(given_with(node, wanted) if wanted else given_of(node), node.machine()))
    return prediction


def _of_node(node: Node, *predictions: Prediction) -> list[Prediction]:
    """The predictions with what more the node's files tell than the kubelet is given."""
    answers = with_restored(node, *predictions)
    installation = node.installation
    if installation is not None and installation.flags:
        # Imported here, as below: most kubelets have no flags that count.
        from .replaced_maps import with_replaced

        answers = with_replaced(node, answers)
    if installation is not None and has_unit(node.tree, service_of(node.tree, installation.distribution)):
        from .unit_start import with_unit

        answers = with_unit(node.tree, service_of(node.tree, installation.distribution), answers)
    return answers


def predicted_starts(node: Node, wanted: Mapping[str, object], configuration: Configuration | None = None) -> Starts:
    """What is predicted of this node as it is, and with what is wanted.

    configuration: what the kubelet runs with, where it has been read already.
    """
    found, host = given_of(node), node.machine()
    prediction = None
    if found.is_alone and isinstance(configuration, KubeletConfiguration) and configuration.is_plain:
        prediction = predict_plain(configuration.values, host)
    if prediction is None:
        prediction = predict(found, host)
    planned = prediction if not wanted else _planned(node, wanted, configuration, found, prediction)
    return Starts(*_of_node(node, prediction, planned))


def _planned(
    node: Node,
    wanted: Mapping[str, object],
    configuration: Configuration | None,
    found: Given,
    prediction: Prediction,
) -> Prediction:
    """What is predicted with what is wanted; `prediction` is that of what is found."""
    values = planned_values(node, wanted, configuration) if found.is_alone else None
    plain = None if values is None else predict_plain(values, node.machine())
    if plain is not None:
        return plain
    planned = given_with(node, wanted)
    return prediction if planned == found else predict(planned, node.machine())


def config_after(starts: Starts) -> CPUManagerConfig:
    """What the CPU manager would start with after a change.

    Raises RefusedError where the kubelet would refuse what is planned; for what is found already, only where it is not
    certain then with what the CPU manager would start.
    """
    found_before = {(finding.where, finding.text) for finding in starts.found.findings if finding.fatal}
    for finding in starts.planned.findings:
        if finding.fatal and (finding.where, finding.text) not in found_before:
            raise start_error(finding)
    return certain_config(starts.planned)


def certain_config(prediction: Prediction) -> CPUManagerConfig:
    """With what the CPU manager would start, were the kubelet to get so far. Raises RefusedError."""
    for finding in prediction.findings:
        if finding.fatal and finding.where.partition(".")[0] in _OF_CPUS:
            raise start_error(finding)
    if prediction.checked is None or prediction.checked.cpu_manager is None:
        return needed_config(prediction)
    check_wishes(prediction.checked.cpu_manager)
    return prediction.checked.cpu_manager


def config_if_certain(prediction: Prediction) -> CPUManagerConfig | None:
    """The same; None where it is not certain."""
    try:
        return certain_config(prediction)
    except RefusedError:
        return None

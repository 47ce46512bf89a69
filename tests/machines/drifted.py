# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose configuration and checkpoint are given as texts, and their drift reports."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import ConfigurationError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import KubeletConfiguration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import Starts, predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

from .kubelets import HEADER
from .shape import parse_name
from .troubles import STATIC
from .values import cpus, defaults_of_settings

SETTINGS: dict[str, Any] = {
    **defaults_of_settings(),
    "cpu_manager_policy": "static",
    "reserved_system_cpus": "0,4",
}


def file(text: str = "") -> KubeletConfiguration:
    return KubeletConfiguration.parse(HEADER + text, "config.yaml")


def state(default: str, **containers: str) -> bytes:
    assignments = {"uid-" + name: {name: cpus(text)} for name, text in containers.items()}
    return write_checkpoint("static", State(cpus(default), assignments))


def starts_of(configuration: KubeletConfiguration, wanted: Mapping[str, Any], host: Host) -> Starts:
    """Return what is predicted of a kubelet that has this file and nothing else, also where that cannot be read."""
    try:
        planned = plan_settings(wanted, configuration, host.minor).configuration
    except ConfigurationError:
        planned = configuration
    found, then = (predict_values(each.values, host, each.source) for each in (configuration, planned))
    return Starts(found, then)


def told(
    wanted: Mapping[str, Any], text: str | None = STATIC, checkpoint: bytes | None = None, machine: str = "1s4c2t"
) -> dict[str, Any]:
    """Return the report of a node; `text` is None for one without a kubelet."""
    topology = parse_name(machine).topology()
    host = Host(kubelet_view(topology))
    if text is None:
        return report(topology, host, None, checkpoint, wanted)
    configuration = file(text)
    starts = starts_of(configuration, wanted, host)
    return report(topology, host, configuration, checkpoint, wanted, starts=starts)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import NEWEST_MINOR
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import (
    Finding,
    Host,
    Unknown,
    harmful,
    refused,
    refused_by,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name


def test_findings() -> None:
    assert refused("text", "cause", "remedy", "where") == Finding("text", "cause", "remedy", True, "where")
    assert harmful("cause", "remedy", "where") == Finding("", "cause", "remedy", False, "where")
    assert harmful("cause", "remedy", "where", "text").text == "text"


def test_a_refusal_from_elsewhere_keeps_its_remedy_apart() -> None:
    assert refused_by(KubeletError("no; never", "do that"), "cause", "where", "the policy: ") == refused(
        "the policy: no; never", "cause", "do that", "where"
    )
    assert refused_by(KubeletError("no"), "cause", "where").remedy == ""


def test_plain_data() -> None:
    assert refused("t", "c", "r", "w")._replace(context="before: ").to_dict() == {
        "text": "t",
        "cause": "c",
        "remedy": "r",
        "fatal": True,
        "where": "w",
        "context": "before: ",
    }
    assert refused("t", "c", "r", "w").context == ""
    assert Unknown("cannot be seen", "field").to_dict() == {"reason": "cannot be seen", "where": "field"}


def test_a_host_of_which_little_is_known() -> None:
    topology = parse_name("2s1n1c+memory2").topology()
    host = Host(kubelet_view(topology))
    assert host.minor == NEWEST_MINOR
    assert host.nodes() == (0, 1)
    assert host._replace(numa_nodes=tuple(node.id for node in topology.numa_nodes)).nodes() == (0, 1, 2, 3)
    assert (host.memory, host.storage, host.has_systemd) == (None, None, None)
    assert (host.cgroup_v1, host.swap_on) == (False, False)
    assert host.lacks_cgroup("kubepods") is None
    assert host.kernel_flag("vm/panic_on_oom") is None

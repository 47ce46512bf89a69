# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a trial start takes, what it computes, and how much longer a rollout is with one on each node.

The kubelet is 1.20.2 with containerd, on this machine as a live node. Trials on one machine wait for each other, so a
fleet is not played: its nodes try at the same time, as many as Ansible has forks.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.tests.cluster.binaries import KUBELET, RUNTIME, binaries
from ansible_collections.kubenode.cpu_manager.tests.cluster.fleet import ROLLOUT
from ansible_collections.kubenode.cpu_manager.tests.cluster.kubelet_node import saved
from ansible_collections.kubenode.cpu_manager.tests.cluster.trial_node import CHECKPOINT, LiveNode
from ansible_collections.kubenode.cpu_manager.tests.kernel.cgroups import alone
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import ansible_playbook

ROUNDS = 3
# Seconds of a trial, and of the processor.
LONGEST, MOST_COMPUTED = 10.0, 6.0
# Seconds by which a rollout of 20 nodes may be longer, with as many forks, as our ansible.cfg has.
MOST_LONGER = 15.0
WANTED: dict[str, Any] = {
    "kubelet_cpu_manager_policy": "static",
    "kubelet_reserved_system_cpus": "0",
    "kubelet_target_version": "1.20",
    # No service starts a kubelet here.
    "kubelet_manage_service": False,
}


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    with tempfile.TemporaryDirectory() as name, alone():
        node = LiveNode(binaries(KUBELET + RUNTIME), Path(name) / "node")
        done = [node.answer("try") for _round in range(ROUNDS)]
        assert all(trial["answer"]["starts"] for trial in done)
        node.configure({"cpuManagerPolicy": "none"})
        node.write(CHECKPOINT, saved("none", "").decode("ascii"))
        times: dict[str, list[float]] = {"never": [], "auto": []}
        for _round in range(ROUNDS):
            for mode, found in times.items():
                host = {**WANTED, "ansible_python_interpreter": str(node.python()), "kubelet_trial": mode}
                began = time.monotonic()
                run = ansible_playbook(Path(name) / "run", ROLLOUT, {"node": host}, "--check")
                found.append(time.monotonic() - began)
                assert run.status == 0, run.account()
    seconds = statistics.median(trial["answer"]["seconds"] for trial in done)
    computed = statistics.median(trial["computed"] for trial in done)
    never, auto = (min(found) for found in times.values())
    print("A trial start, median of %d: %.1f s (limit %.0f)," % (ROUNDS, seconds, LONGEST), end=" ")
    print("%.1f s of the processor (limit %.0f)" % (computed, MOST_COMPUTED))
    print(
        "A rollout with --check, best of %d: without a trial %.1f s, with one %.1f s;" % (ROUNDS, never, auto), end=" "
    )
    print("%.1f s longer where all nodes try at once (limit %.0f)" % (auto - never, MOST_LONGER))
    return seconds <= LONGEST and computed <= MOST_COMPUTED and auto - never <= MOST_LONGER

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a trial start takes, what it computes, and how much longer a rollout is with one on each node.

The kubelet is that of the tests, with containerd, on this machine as a live node. Of a fleet, each host has cgroups of
its own here, as trials on one node wait for each other. The hosts share the CPUs of this machine; separate nodes do
not.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

from ansible_collections.kubenode.cpu_manager.tests.cluster.binaries import KUBELET, RUNTIME, binaries
from ansible_collections.kubenode.cpu_manager.tests.cluster.fleet import ROLLOUT
from ansible_collections.kubenode.cpu_manager.tests.cluster.kubelet_node import saved
from ansible_collections.kubenode.cpu_manager.tests.cluster.trial_node import CHECKPOINT, LiveNode
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import ansible_playbook
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

ROUNDS = 3
# Seconds of a trial, and of the processor.
LONGEST, MOST_COMPUTED = 10.0, 6.0
# Seconds by which a rollout of 20 nodes may be longer, with as many forks, as our ansible.cfg has.
MOST_LONGER = 15.0
WANTED: dict[str, Any] = {
    "kubelet_cpu_manager_policy": "static",
    "kubelet_reserved_system_cpus": "0",
    "kubelet_target_version": kubernetes.version(),
    # No service starts a kubelet here.
    "kubelet_manage_service": False,
}
# Hosts of a fleet.
HOSTS = 20
CGROUPS = Path("/sys/fs/cgroup")
# Runs a command in cgroups of its own, which it finds as the topmost ones: once they are there, they stay.
_IN_CGROUPS = """\
set -e
name=$1
shift
for top in /sys/fs/cgroup/*; do
    if [ ! -L "$top" ] && [ -e "$top/cgroup.procs" ]; then
        mkdir -p "$top/$name"
        for file in cpuset.cpus cpuset.mems; do
            [ ! -e "$top/$file" ] || cat "$top/$file" > "$top/$name/$file"
        done
        echo $$ > "$top/$name/cgroup.procs"
    fi
done
cat /proc/self/mountinfo > /opt/mounts
exec unshare --cgroup --mount sh -ec '
    # None can be mounted over itself.
    mount -t tmpfs none /sys/fs/cgroup
    while read -r _ _ _ _ path _ _ kind _ options; do
        case "$kind" in
            cgroup) mkdir -p "$path"; mount -t cgroup -o "${options#rw,}" none "$path" ;;
            cgroup2) mkdir -p "$path"; mount -t cgroup2 none "$path" ;;
        esac
    done < /opt/mounts
    exec "$@"
' sh "$@"
"""


@contextmanager
def own_cgroups(names: list[str]) -> Iterator[None]:
    """Remove the cgroups of these names afterwards."""
    try:
        yield
    finally:
        for name in names:
            for path in CGROUPS.glob("*/" + name):
                path.rmdir()


def _computed(names: list[str]) -> float:
    """Return seconds that have been computed in these cgroups."""
    files = [CGROUPS / "cpuacct" / name / "cpuacct.usage" for name in names]
    return sum(int(file.read_text(encoding="ascii")) for file in files if file.exists()) / 1e9


def _starts(result: Any) -> bool:
    return bool((result.get("trial") or {}).get("starts"))


def measure_fleet(programs: Path, directory: Path) -> bool:
    """Print how long a rollout's check of a fleet takes; True when each host has an answer, within the limits."""
    if not (CGROUPS / "cpuacct").is_dir():
        print("A fleet with trials: not measured, as hosts have cgroups of their own here with cgroup v1 only")
        return True
    names = ["kubenode-bench-%d" % number for number in range(HOSTS)]
    hosts: dict[str, dict[str, Any]] = {}
    for name in names:
        node = LiveNode(programs, directory / name)
        node.configure({"cpuManagerPolicy": "none"})
        node.write(CHECKPOINT, saved("none", "").decode("ascii"))
        hosts[name] = {**WANTED, "ansible_python_interpreter": str(node.python("sh", "-c", _IN_CGROUPS, "sh", name))}
    seconds, computed = {}, {}
    answered: set[str] = set()
    with own_cgroups(names):
        for mode in ("never", "auto"):
            before, began = _computed(names), time.monotonic()
            with_mode = {name: {**host, "kubelet_trial": mode} for name, host in hosts.items()}
            run = ansible_playbook(directory / "run", ROLLOUT, with_mode, "--check")
            seconds[mode], computed[mode] = time.monotonic() - began, _computed(names) - before
            assert run.status == 0, run.account()
            answered = {name for name in names if any(_starts(result) for result in run.results[name])}
    each = (computed["auto"] - computed["never"]) / HOSTS
    longer = seconds["auto"] - seconds["never"]
    print("A rollout of %d hosts with --check, all on this machine: without trials" % HOSTS, end=" ")
    print("%.0f s, with them %.0f s;" % (seconds["never"], seconds["auto"]), end=" ")
    print("%.0f s longer (limit %.0f); a trial computes %.1f s there" % (longer, MOST_LONGER, each), end=" ")
    print("(limit %.0f); %d of them have an answer" % (MOST_COMPUTED, len(answered)))
    return len(answered) == HOSTS and longer <= MOST_LONGER and each <= MOST_COMPUTED


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    programs = binaries(KUBELET + RUNTIME)
    with tempfile.TemporaryDirectory() as name, alone():
        node = LiveNode(programs, Path(name) / "node")
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
        is_fleet_within = measure_fleet(programs, Path(name) / "fleet")
    seconds = statistics.median(trial["answer"]["seconds"] for trial in done)
    computed = statistics.median(trial["computed"] for trial in done)
    never, auto = (min(found) for found in times.values())
    print("A trial start, median of %d: %.1f s (limit %.0f)," % (ROUNDS, seconds, LONGEST), end=" ")
    print("%.1f s of the processor (limit %.0f)" % (computed, MOST_COMPUTED))
    print(
        "A rollout with --check, best of %d: without a trial %.1f s, with one %.1f s;" % (ROUNDS, never, auto), end=" "
    )
    print("%.1f s longer where all nodes try at once (limit %.0f)" % (auto - never, MOST_LONGER))
    return is_fleet_within and seconds <= LONGEST and computed <= MOST_COMPUTED and auto - never <= MOST_LONGER

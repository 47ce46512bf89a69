# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What binds the processes of containers to fewer CPUs than their cgroups have, as the files of a node say.

Sources: systemd.exec(5), systemd-system.conf(5); the scheduler plugin of redhat-performance/tuned.
"""

from __future__ import annotations

from .._base.tree import Tree
from .._host.layers import manager_affinity
from .._host.systemd import merged_cpus, unit_settings
from .._owners.owners import read_tuned
from ..cpuset import CPUSet
from .container_cpus import Observed

# The services that start containers.
_RUNTIMES = ("containerd", "crio", "docker", "k3s", "k3s-agent", "rke2-server", "rke2-agent")


def with_binders(tree: Tree, observed: Observed) -> Observed:
    """Return what runs on a node, with what its processes are bound by."""
    return observed._replace(binders=_binders(tree, observed.online))


def _binders(tree: Tree, online: CPUSet) -> dict[str, CPUSet]:
    """Return {what, with its file: the CPUs}."""
    services = [merged_cpus(unit_settings(tree, name + ".service", "CPUAffinity")) for name in _RUNTIMES]
    found = {
        "CPUAffinity= in %s" % given.path: given.cpus
        for given in (*services, manager_affinity(tree))
        if given is not None and given.cpus is not None
    }
    tuned = read_tuned(tree)
    if tuned is not None and tuned.moves_pods and tuned.isolated is not None:
        text = "[scheduler] of tuned's profile %s, without cgroup_ps_blacklist=/kubepods\\.slice/"
        found[text % " ".join(tuned.profiles)] = online - tuned.isolated
    return found

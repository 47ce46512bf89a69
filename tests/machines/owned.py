# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows who manages CPUs on a node: each owner by each of its signs, files and what takes more than these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Mapping, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.owner.owners import (
    BALLOONS,
    CRIO_INTERRUPTS,
    CRIO_SHARED,
    DRA_CPU,
    GORESCTRL,
    HOUSEKEEPING,
    IRQBALANCE,
    KUBELET_STATIC,
    RECONCILE,
    TOPOLOGY_AWARE,
    TUNED,
    Facts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.owner.owners import CACHE as CACHE_PARTITION
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree

REGISTRY = "var/lib/kubelet/plugins_registry/"
CACHE = "var/lib/nri-resource-policy/cache"
WANTS = "etc/systemd/system/%s.target.wants/%s"
JOURNAL = "var/lib/kubenode-cpu-manager/housekeeping.json"
CACHE_JOURNAL = "var/lib/kubenode-cpu-manager/cache.json"
TIMER = "kubenode-cpu-manager-reconcile.timer"
ALLOWED = '[crio.runtime.runtimes.fast]\nallowed_annotations = ["irq-load-balancing.crio.io"]\n'
SHARED = '[crio.runtime]\nshared_cpuset = "2-3"\n'
NO_FACTS = Facts()
# In short what tuned's own profile has that is about CPUs, and its file of variables.
PARTITIONING = """\
[main]
summary=Keep the system off some CPUs

[variables]
include=/etc/tuned/cpu-partitioning-variables.conf
isolated_cores = ${isolated_cores}
not_isolated=${f:cpulist_invert:${isolated_cores}}

[sysfs]
/sys/devices/virtual/workqueue/cpumask = ${not_isolated}
/sys/devices/system/machinecheck/machinecheck*/ignore_ce = 1

[systemd]
cpu_affinity=${not_isolated}

[irqbalance]
banned_cpus=${isolated_cores}

[scheduler]
isolated_cores=${isolated_cores}
ps_blacklist=.*pmd.*

[bootloader]
cmdline_cpu_part=+nohz=on nohz_full=${isolated_cores} rcu_nocbs=${isolated_cores} secret=1
"""
TUNED_VARIABLES = "etc/tuned/cpu-partitioning-variables.conf"
TUNED_PROFILE = "usr/lib/tuned/cpu-partitioning/tuned.conf"
TUNED_FILES = {
    "etc/tuned/active_profile": "cpu-partitioning\n",
    "etc/tuned/profile_mode": "manual\n",
    TUNED_PROFILE: PARTITIONING,
    TUNED_VARIABLES: "# Examples:\n# isolated_cores=2,4-7\nisolated_cores=6-7\n",
}


class Sign(NamedTuple):
    """By what an owner is found. is_active: whether it is an active one on a live node."""

    name: str
    files: Mapping[str, str]
    facts: Facts
    owner: str
    evidence: tuple[str, ...]
    is_active: bool


def write_owned(root: Path, files: Mapping[str, str]) -> Tree:
    """Write these files of a node."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Tree(str(root))


def spec(*lines: object) -> str:
    """A CDI file of the DRA driver with these lines of environment."""
    devices = [{"name": "claim-%d" % number, "containerEdits": {"env": [line]}} for number, line in enumerate(lines)]
    return json.dumps({"cdiVersion": "0.8.0", "kind": "dra.k8s.io/cpu", "devices": devices})


SIGNS = (
    Sign(
        "kubelet",
        {},
        Facts("static", ("/var/lib/kubelet/config.yaml", "process 7")),
        KUBELET_STATIC,
        ("/var/lib/kubelet/config.yaml", "process 7"),
        True,
    ),
    Sign(
        "dra, its socket",
        {REGISTRY + "dra.cpu-reg.sock": ""},
        NO_FACTS,
        DRA_CPU,
        ("/" + REGISTRY + "dra.cpu-reg.sock",),
        True,
    ),
    Sign(
        "dra, a pod of a rolling update",
        {REGISTRY + "dra.cpu-0f3f7f0a-reg.sock": ""},
        NO_FACTS,
        DRA_CPU,
        ("/" + REGISTRY + "dra.cpu-0f3f7f0a-reg.sock",),
        True,
    ),
    Sign(
        "dra, at a kubelet elsewhere",
        {"mnt/kubelet/plugins_registry/dra.cpu-reg.sock": ""},
        Facts(kubelet_root="/mnt/kubelet/"),
        DRA_CPU,
        ("/mnt/kubelet/plugins_registry/dra.cpu-reg.sock",),
        True,
    ),
    Sign("dra, cdi", {"run/cdi/dra.cpu.json": spec()}, NO_FACTS, DRA_CPU, ("/run/cdi/dra.cpu.json",), False),
    Sign(
        "dra, its process",
        {"var/run/cdi/dra.k8s.io-cpu_x.yaml": ""},
        Facts(processes={"dracpu": [9]}),
        DRA_CPU,
        ("/var/run/cdi/dra.k8s.io-cpu_x.yaml", "process 9"),
        True,
    ),
    Sign(
        "dra, only its containers",
        {"run/cdi/dra.cpu.json": spec("DRA_CPUSET_a=4-7")},
        Facts(claims=[8, 11]),
        DRA_CPU,
        ("/run/cdi/dra.cpu.json", "DRA_CPUSET_* in the environment of process 8, 11"),
        False,
    ),
    Sign("balloons, left", {CACHE: '{"PolicyName": "balloons"}'}, NO_FACTS, BALLOONS, ("/" + CACHE,), False),
    Sign(
        "topology, left", {CACHE: '{"PolicyName": "topology-aware"}'}, NO_FACTS, TOPOLOGY_AWARE, ("/" + CACHE,), False
    ),
    Sign(
        "balloons, its process",
        {},
        Facts(processes={"nri-resource-policy-balloons": [5]}),
        BALLOONS,
        ("process 5",),
        True,
    ),
    Sign(
        "topology, started by the runtime",
        {"opt/nri/plugins/10-nri-resource-policy-topology-aware": ""},
        Facts(processes={"nri-resource-policy-topology-aware": [5]}),
        TOPOLOGY_AWARE,
        ("/opt/nri/plugins/10-nri-resource-policy-topology-aware", "process 5"),
        True,
    ),
    Sign(
        "balloons, plugin files",
        {"opt/nri/plugins/90-balloons": "", "etc/nri/conf.d/90-balloons.conf": ""},
        NO_FACTS,
        BALLOONS,
        ("/opt/nri/plugins/90-balloons", "/etc/nri/conf.d/90-balloons.conf"),
        False,
    ),
    Sign(
        "crio, interrupts",
        {"etc/crio/crio.conf.d/99.conf": ALLOWED, WANTS % ("multi-user", "crio.service"): ""},
        NO_FACTS,
        CRIO_INTERRUPTS,
        ("/etc/crio/crio.conf.d/99.conf",),
        True,
    ),
    Sign(
        "crio, shared",
        {"etc/crio/crio.conf": SHARED},
        Facts(processes={"crio": [4]}),
        CRIO_SHARED,
        ("/etc/crio/crio.conf", "process 4"),
        True,
    ),
    Sign("crio, left", {"etc/crio/crio.conf": SHARED}, NO_FACTS, CRIO_SHARED, ("/etc/crio/crio.conf",), False),
    Sign(
        "tuned",
        {"etc/tuned/active_profile": "cpu-partitioning"},
        Facts(processes={"tuned": [3]}),
        TUNED,
        ("/etc/tuned/active_profile", "process 3"),
        True,
    ),
    Sign(
        "tuned, with its files",
        TUNED_FILES,
        Facts(processes={"tuned": [3]}),
        TUNED,
        ("/etc/tuned/active_profile", "/" + TUNED_PROFILE, "/" + TUNED_VARIABLES, "process 3"),
        True,
    ),
    Sign(
        "tuned, at boot",
        {"etc/tuned/active_profile": "realtime", WANTS % ("multi-user", "tuned.service"): ""},
        NO_FACTS,
        TUNED,
        ("/etc/tuned/active_profile", "/" + WANTS % ("multi-user", "tuned.service")),
        True,
    ),
    Sign(
        "tuned, left", {"etc/tuned/active_profile": "realtime"}, NO_FACTS, TUNED, ("/etc/tuned/active_profile",), False
    ),
    Sign(
        "irqbalance",
        {"etc/default/irqbalance": ""},
        Facts(processes={"irqbalance": [2]}),
        IRQBALANCE,
        ("/etc/default/irqbalance", "process 2"),
        True,
    ),
    Sign(
        "irqbalance, at boot",
        {WANTS % ("multi-user", "irqbalance.service"): ""},
        NO_FACTS,
        IRQBALANCE,
        ("/" + WANTS % ("multi-user", "irqbalance.service"),),
        True,
    ),
    Sign(
        "reconcile",
        {WANTS % ("timers", TIMER): "", "etc/systemd/system/" + TIMER: ""},
        NO_FACTS,
        RECONCILE,
        ("/" + WANTS % ("timers", TIMER), "/etc/systemd/system/" + TIMER),
        True,
    ),
    Sign(
        "reconcile, left",
        {"etc/kubenode/cpu-manager-reconcile.json": "{}"},
        NO_FACTS,
        RECONCILE,
        ("/etc/kubenode/cpu-manager-reconcile.json",),
        False,
    ),
    Sign("housekeeping", {JOURNAL: "{}"}, NO_FACTS, HOUSEKEEPING, ("/" + JOURNAL,), True),
    Sign(
        "goresctrl in containerd",
        {"etc/containerd/config.toml": '[plugins."x"]\nrdt_config_file = "/etc/rdt.yaml"\n'},
        NO_FACTS,
        GORESCTRL,
        ("/etc/containerd/config.toml",),
        True,
    ),
    Sign(
        "groups of goresctrl",
        {"sys/fs/resctrl/goresctrl.Guaranteed/schemata": "L3:0=f\n"},
        NO_FACTS,
        GORESCTRL,
        ("/sys/fs/resctrl/goresctrl.Guaranteed",),
        True,
    ),
    Sign("cache", {CACHE_JOURNAL: "{}"}, NO_FACTS, CACHE_PARTITION, ("/" + CACHE_JOURNAL,), True),
)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows who manages CPUs on a node: each owner by each of its signs, files and what takes more than these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Mapping, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    BALLOONS,
    CPU_POOLER,
    CRANE,
    CRI_RESMGR,
    CRIO_INTERRUPTS,
    CRIO_SHARED,
    DRA_CPU,
    GORESCTRL_OWNER,
    HOUSEKEEPING,
    IRQBALANCE_OWNER,
    KATALYST,
    KOORDLET,
    KUBELET_STATIC,
    RECONCILE,
    TOPOLOGY_AWARE,
    TUNED,
    WEKA,
    Facts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import CACHE as CACHE_PARTITION

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
    owner: str
    files: Mapping[str, str]
    evidence: tuple[str, ...]
    is_active: bool = True
    facts: Facts = NO_FACTS


def write_owned(root: Path, files: Mapping[str, str]) -> Tree:
    """Write these files of a node."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Tree(str(root))


def spec(*lines: object) -> str:
    """Return a CDI file of the DRA driver with these lines of environment."""
    devices = [{"name": "claim-%d" % number, "containerEdits": {"env": [line]}} for number, line in enumerate(lines)]
    return json.dumps({"cdiVersion": "0.8.0", "kind": "dra.k8s.io/cpu", "devices": devices})


SIGNS = (
    Sign(
        "kubelet",
        KUBELET_STATIC,
        {},
        ("/var/lib/kubelet/config.yaml", "process 7"),
        facts=Facts("static", ("/var/lib/kubelet/config.yaml", "process 7")),
    ),
    Sign("weka, its file", WEKA, {"opt/nri/plugins/99-weka-cpuset": ""}, ("/opt/nri/plugins/99-weka-cpuset",), False),
    Sign("weka, its process", WEKA, {}, ("process 31",), facts=Facts(processes={"weka-cpuset": [31]})),
    Sign("koordlet", KOORDLET, {"run/koordlet/koordlet.sock": ""}, ("/run/koordlet/koordlet.sock",)),
    *(
        Sign("%s, its process" % owner, owner, {}, ("process 31",), facts=Facts(processes={program: [31]}))
        for owner, program in (
            (KOORDLET, "koordlet"),
            (CRANE, "crane-agent"),
            (CPU_POOLER, "cpusetter"),
            (CRI_RESMGR, "cri-resmgr"),
        )
    ),
    Sign(
        "katalyst",
        KATALYST,
        {REGISTRY + "qrm_cpu_plugin_dynamic.sock": ""},
        ("/" + REGISTRY + "qrm_cpu_plugin_dynamic.sock",),
    ),
    Sign(
        "katalyst, left over",
        KATALYST,
        {"var/lib/kubelet/resource-plugins/kubelet_qrm_checkpoint": "{}"},
        ("/var/lib/kubelet/resource-plugins/kubelet_qrm_checkpoint",),
        False,
    ),
    Sign("dra, its socket", DRA_CPU, {REGISTRY + "dra.cpu-reg.sock": ""}, ("/" + REGISTRY + "dra.cpu-reg.sock",)),
    Sign(
        "dra, a pod of a rolling update",
        DRA_CPU,
        {REGISTRY + "dra.cpu-0f3f7f0a-reg.sock": ""},
        ("/" + REGISTRY + "dra.cpu-0f3f7f0a-reg.sock",),
    ),
    Sign(
        "dra, at a kubelet elsewhere",
        DRA_CPU,
        {"mnt/kubelet/plugins_registry/dra.cpu-reg.sock": ""},
        ("/mnt/kubelet/plugins_registry/dra.cpu-reg.sock",),
        facts=Facts(kubelet_root="/mnt/kubelet/"),
    ),
    Sign("dra, cdi", DRA_CPU, {"run/cdi/dra.cpu.json": spec()}, ("/run/cdi/dra.cpu.json",), is_active=False),
    Sign(
        "dra, its process",
        DRA_CPU,
        {"var/run/cdi/dra.k8s.io-cpu_x.yaml": ""},
        ("/var/run/cdi/dra.k8s.io-cpu_x.yaml", "process 9"),
        facts=Facts(processes={"dracpu": [9]}),
    ),
    Sign(
        "dra, only its containers",
        DRA_CPU,
        {"run/cdi/dra.cpu.json": spec("DRA_CPUSET_a=4-7")},
        ("/run/cdi/dra.cpu.json", "DRA_CPUSET_* in the environment of process 8, 11"),
        is_active=False,
        facts=Facts(claims=[8, 11]),
    ),
    Sign("balloons, left", BALLOONS, {CACHE: '{"PolicyName": "balloons"}'}, ("/" + CACHE,), is_active=False),
    Sign(
        "topology, left", TOPOLOGY_AWARE, {CACHE: '{"PolicyName": "topology-aware"}'}, ("/" + CACHE,), is_active=False
    ),
    Sign(
        "balloons, its process",
        BALLOONS,
        {},
        ("process 5",),
        facts=Facts(processes={"nri-resource-policy-balloons": [5]}),
    ),
    Sign(
        "topology, started by the runtime",
        TOPOLOGY_AWARE,
        {"opt/nri/plugins/10-nri-resource-policy-topology-aware": ""},
        ("/opt/nri/plugins/10-nri-resource-policy-topology-aware", "process 5"),
        facts=Facts(processes={"nri-resource-policy-topology-aware": [5]}),
    ),
    Sign(
        "balloons, plugin files",
        BALLOONS,
        {"opt/nri/plugins/90-balloons": "", "etc/nri/conf.d/90-balloons.conf": ""},
        ("/opt/nri/plugins/90-balloons", "/etc/nri/conf.d/90-balloons.conf"),
        is_active=False,
    ),
    Sign(
        "crio, interrupts",
        CRIO_INTERRUPTS,
        {"etc/crio/crio.conf.d/99.conf": ALLOWED, WANTS % ("multi-user", "crio.service"): ""},
        ("/etc/crio/crio.conf.d/99.conf",),
    ),
    Sign(
        "crio, shared",
        CRIO_SHARED,
        {"etc/crio/crio.conf": SHARED},
        ("/etc/crio/crio.conf", "process 4"),
        facts=Facts(processes={"crio": [4]}),
    ),
    Sign("crio, left", CRIO_SHARED, {"etc/crio/crio.conf": SHARED}, ("/etc/crio/crio.conf",), is_active=False),
    Sign(
        "tuned",
        TUNED,
        {"etc/tuned/active_profile": "cpu-partitioning"},
        ("/etc/tuned/active_profile", "process 3"),
        facts=Facts(processes={"tuned": [3]}),
    ),
    Sign(
        "tuned, with its files",
        TUNED,
        TUNED_FILES,
        ("/etc/tuned/active_profile", "/" + TUNED_PROFILE, "/" + TUNED_VARIABLES, "process 3"),
        facts=Facts(processes={"tuned": [3]}),
    ),
    Sign(
        "tuned, at boot",
        TUNED,
        {"etc/tuned/active_profile": "realtime", WANTS % ("multi-user", "tuned.service"): ""},
        ("/etc/tuned/active_profile", "/" + WANTS % ("multi-user", "tuned.service")),
    ),
    Sign(
        "tuned, left", TUNED, {"etc/tuned/active_profile": "realtime"}, ("/etc/tuned/active_profile",), is_active=False
    ),
    Sign(
        "irqbalance",
        IRQBALANCE_OWNER,
        {"etc/default/irqbalance": ""},
        ("/etc/default/irqbalance", "process 2"),
        facts=Facts(processes={"irqbalance": [2]}),
    ),
    Sign(
        "irqbalance, at boot",
        IRQBALANCE_OWNER,
        {WANTS % ("multi-user", "irqbalance.service"): ""},
        ("/" + WANTS % ("multi-user", "irqbalance.service"),),
    ),
    Sign(
        "reconcile",
        RECONCILE,
        {WANTS % ("timers", TIMER): "", "etc/systemd/system/" + TIMER: ""},
        ("/" + WANTS % ("timers", TIMER), "/etc/systemd/system/" + TIMER),
    ),
    Sign(
        "reconcile, left",
        RECONCILE,
        {"etc/kubenode/cpu-manager-reconcile.json": "{}"},
        ("/etc/kubenode/cpu-manager-reconcile.json",),
        is_active=False,
    ),
    Sign("housekeeping", HOUSEKEEPING, {JOURNAL: "{}"}, ("/" + JOURNAL,)),
    Sign(
        "goresctrl in containerd",
        GORESCTRL_OWNER,
        {"etc/containerd/config.toml": '[plugins."x"]\nrdt_config_file = "/etc/rdt.yaml"\n'},
        ("/etc/containerd/config.toml",),
    ),
    Sign(
        "groups of goresctrl",
        GORESCTRL_OWNER,
        {"sys/fs/resctrl/goresctrl.Guaranteed/schemata": "L3:0=f\n"},
        ("/sys/fs/resctrl/goresctrl.Guaranteed",),
    ),
    Sign("cache", CACHE_PARTITION, {CACHE_JOURNAL: "{}"}, ("/" + CACHE_JOURNAL,)),
)

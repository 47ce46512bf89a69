# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each check of the report has a node as files on which it is found, and the same node on which it is not."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Collection, Iterable, Iterator, Mapping, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import noted
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.assemble import Terms as ReportTerms
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.assemble import assemble
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.checks import (
    CHECKS,
    NOTE,
    check_of_subject,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.configz import settings_of_configz
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.journal import Journal as CacheJournal
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.journal import text_of, wish_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.report import cache_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.journal import (
    CHANGING,
    DRAINING,
    STOPPING,
    Journal,
    SavedFile,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.places import (
    CACHE,
    HOUSEKEEPING,
    LAST,
    OPEN,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.plan import Terms, rollout_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping import journal as house_journal
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.report import housekeeping
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.isolation import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.throttling import throttling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import CPUFiles, Files
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.tools import MEMORY
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    CONFIG,
    EMPTY,
    HOST,
    KUBEPODS,
    MEMORY_STATE,
    OWN_ID,
    OWN_POD,
    RUNNING,
    SHARED_ID,
    SHARED_POD,
    SOUND,
    STATIC,
    Saved,
    cgroups,
    container_path,
    isolation_answer,
    memory_state,
    process,
    state,
    write_saved,
)

CHECKOUT = Path(__file__).parents[2]

# These do not come from the files of a node, so their rows have `configz` or `added`.
NOT_OF_FILES = {
    "running-kubelet-differs": "what the API server answers for the node is compared with its files",
    "running-kubelet-unread": "the action plugin adds the note where the API server does not answer",
    "exclusive-cpus-disturbed": "who runs on which CPU is no file: the answer is made of a sample",
    "noted": "every note of the collection has a check; a newer collection may send one that is not in the list",
}

ROLLOUT, REPAIR = "kubenode.cpu_manager.rollout", "kubenode.cpu_manager.repair"

POLICY = {"cpu_manager_policy": "static"}
RESERVED = {"reserved_system_cpus": "0,4"}


class Trouble(NamedTuple):
    """A node with a trouble and the node without it, with the ids of all checks that are found on each."""

    checks: Collection[str]
    node: Saved
    without: Saved = SOUND
    wanted: Mapping[str, Any] = POLICY
    checks_without: Collection[str] = ()
    # What configz of the running kubelet has, and a note that others add; both only on the node with the trouble.
    configz: Mapping[str, Any] = {}
    added: tuple[str, str] | None = None
    # What both nodes are looked at for, too: an answer, or None for what the module answers for the files.
    looks: Mapping[str, Any] = {}
    looks_without: Mapping[str, Any] = {}


OWN_PATH, SHARED_PATH = container_path(OWN_POD, OWN_ID), container_path(SHARED_POD, SHARED_ID)
# With weights by the new formula, and without quotas.
WEIGHTS = {
    OWN_PATH: CPUFiles(weight=174),
    OWN_POD: CPUFiles(weight=174),
    SHARED_PATH: CPUFiles(weight=35),
    SHARED_POD: CPUFiles(weight=35),
}
COUNTED = SOUND._replace(quotas=WEIGHTS)


def _throttling(check: str, **files: CPUFiles) -> Trouble:
    """A node whose containers or pods have these files of the cpu controller."""
    paths = {"own": OWN_PATH, "own_pod": OWN_POD, "shared": SHARED_PATH, "shared_pod": SHARED_POD}
    quotas = {**WEIGHTS, **{paths[name]: file for name, file in files.items()}}
    look = {"throttling": None}
    return Trouble([check], SOUND._replace(quotas=quotas), COUNTED, looks=look, looks_without=look)


# The host's services keep to the reserved CPUs, also after the next boot.
KEPT = SOUND.having({"/etc/systemd/system/system.slice.d/50-cpus.conf": "[Slice]\nAllowedCPUs=0,4\n"})
IRQ = "/proc/irq/24/smp_affinity_list"
INTERRUPT = {"/proc/irq/24/effective_affinity_list": "2\n", IRQ: "2-3\n"}
HOUSE = {"housekeeping": None}
BROUGHT = house_journal.Journal(
    house_journal.Wish(CPUSet((0, 4)), ("interrupts",)), CPUSet((0, 4)), "", {}, {}, {}, (), (), {}, is_done=True
)
OWN_KIND = "/sys/fs/cgroup/own.mount/cpuset.cpus.partition"
# Four ways of the L3 cache are set apart for the exclusive CPUs.
RESCTRL = "/sys/fs/resctrl/"
SET_APART = CacheJournal(wish_of({"exclusive_share": 4}), "", "L3", {0: 0x7FF}, {0: (0x7F0,)})
DIVIDED = EMPTY.having(
    {
        CHECKPOINT: state(db="1,5"),
        CACHE: text_of(SET_APART),
        "/proc/mounts": "resctrl /sys/fs/resctrl resctrl rw 0 0\n",
        RESCTRL + "info/L3/num_closids": "16\n",
        RESCTRL + "info/L3/cbm_mask": "7ff\n",
        RESCTRL + "info/L3/min_cbm_bits": "1\n",
        RESCTRL + "info/L3/shareable_bits": "600\n",
        RESCTRL + "info/MB/num_closids": "8\n",
        RESCTRL + "info/MB/min_bandwidth": "10\n",
        RESCTRL + "info/MB/bandwidth_gran": "10\n",
        RESCTRL + "cpus_list": "0,2-4,6-7\n",
        RESCTRL + "mode": "shareable\n",
        RESCTRL + "schemata": "    L3:0=7f0\n    MB:0= 100\n",
        RESCTRL + "kubenode.exclusive/cpus_list": "1,5\n",
        RESCTRL + "kubenode.exclusive/mode": "shareable\n",
        RESCTRL + "kubenode.exclusive/schemata": "    L3:0=00f\n    MB:0= 100\n",
        RESCTRL + "kubenode.exclusive/tasks": "",
    }
)


def _cache(check: str, files: Mapping[str, str | None], without: Mapping[str, str | None]) -> Trouble:
    """A node whose caches are divided, with other files of resctrl."""
    look = {"cache": None}
    found, quiet = (DIVIDED.having({RESCTRL + name: text for name, text in part.items()}) for part in (files, without))
    return Trouble([check], found, quiet, looks=look, looks_without=look)


def _group(mask: str, tasks: str = "") -> dict[str, str | None]:
    """A group of somebody else with these ways."""
    return {
        "db/cpus_list": "\n",
        "db/mode": "shareable\n",
        "db/schemata": "L3:0=%s\nMB:0=100\n" % mask,
        "db/tasks": tasks,
    }


def _line(booted: str) -> Saved:
    """A node that was booted with this argument, and will be with that of its configuration."""
    made = "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Linux' {\n\tlinux /vmlinuz rcu_nocbs=1-3,5-7\n}\n"
    return KEPT.having(
        {"/proc/cmdline": booted + "\n", "/boot/grub/grub.cfg": made, "/usr/sbin/grub-mkconfig": "default/grub.d"}
    )


MEMORY_STATIC = (
    "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)
MEMORY_WANTED = {
    "memory_manager_policy": "Static",
    "system_reserved_memory": "924Mi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
NO_STATIC = SOUND.configured("").having({CHECKPOINT: state("none", "")})._replace(cgroups=cgroups("", ""))
DRA_DRIVER = {"/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock": ""}
NRI_POLICY = {"/var/lib/nri-resource-policy/cache": '{"PolicyName": "topology-aware"}'}
FLAG = {"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--cpu-manager-reconcile-period=1s\n"}
KUBESPRAY = EMPTY._replace(files={}).having(
    {
        "/etc/kubernetes/kubelet-config.yaml": HEADER + STATIC,
        "/etc/kubernetes/kubelet.env": 'KUBELET_ARGS="--config=/etc/kubernetes/kubelet-config.yaml"\n',
    }
)
KERNEL_DEFAULTS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
PROTECTED = EMPTY.configured(STATIC + "protectKernelDefaults: true\n")
CPUMAP, CPULIST = ("/sys/devices/system/node/node0/" + name for name in ("cpumap", "cpulist"))
NO_CPUSETS = {
    "/proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "/sys/fs/cgroup/kubepods.slice/cgroup.procs": "",
}
# Of the first process of the container with exclusive CPUs.
STATUS = "/proc/%d/status" % int(OWN_ID[:6], 16)
MANY_EXCLUSIVE = SOUND.having({CHECKPOINT: state(shared="0,4", db="1-3,5-7")})._replace(
    cgroups=cgroups(own="1-3,5-7", shared="0,4")
)
# The checkpoint has one more pod, of which nothing runs.
ANOTHER_POD = SOUND.having({CHECKPOINT: state(shared="0,3-4,7", db="1,5", gone="2,6")})._replace(
    cgroups=cgroups(shared="0,3-4,7")
)
NO_POD_RUNS = SOUND.having({CHECKPOINT: state(shared="0-7")})
LAST_CHANGE = '{"format": 1, "phase": "changing", "facts": {}, "run": "", "files": {}}'
# Before 1.36 the feature gate of another quota period is off.
OLDER = EMPTY._replace(minor=35)
SHORT_PERIOD, GATE = "cpuCFSQuotaPeriod: 50ms\n", "featureGates: {CustomCPUCFSQuotaPeriod: true}\n"
PERIOD_WANTED = {"cpu_cfs_quota_period": "50ms"}


def _setting(check: str, fields: str, **wanted: Any) -> Trouble:
    """A node whose file does not have these fields, which are wanted."""
    return Trouble([check], EMPTY, EMPTY.configured(STATIC + fields), wanted)


NO_KUBELET = EMPTY._replace(files={})
STOPPED = Journal(STOPPING, {}, {})

TROUBLES: dict[str, Trouble] = {
    # --- danger ---------------------------------------------------------------------------------------
    "configuration cut off": Trouble(["configuration-unreadable"], SOUND.configured("cpuManagerPolicy: [\n")),
    "configuration of a policy that no kubelet has": Trouble(
        ["configuration-unreadable"],
        EMPTY.configured("cpuManagerPolicy: dynamic\n"),
        EMPTY,
        RESERVED,
    ),
    "configuration gone while the kubelet runs": Trouble(
        ["configuration-unreadable"], RUNNING.having({CONFIG: None}), RUNNING
    ),
    "memory that is not reserved on any NUMA node": Trouble(
        ["kubelet-would-not-start"],
        SOUND.configured(STATIC + "memoryManagerPolicy: Static\n"),
        SOUND.configured(STATIC + MEMORY_STATIC),
    ),
    "reserved CPU that the machine lacks, another reservation wanted": Trouble(
        ["kubelet-would-not-start", "reservation-differs"],
        EMPTY.configured("cpuManagerPolicy: static\nreservedSystemCPUs: 0,4,99\n"),
        EMPTY,
        RESERVED,
    ),
    "checkpoint cut off": Trouble(["checkpoint-refused"], SOUND.having({CHECKPOINT: "{"})),
    "checkpoint with CPUs that are switched off": Trouble(
        ["checkpoint-refused"],
        SOUND._replace(machine="1s4c2t+offline3,7", cgroups=None),
        SOUND._replace(cgroups=None),
    ),
    "memory manager's state cut off": Trouble(
        ["memory-state-refused"],
        SOUND.having({MEMORY_STATE: "{"}),
        SOUND.having({MEMORY_STATE: memory_state("None")}),
    ),
    "memory manager's state of another reservation": Trouble(
        ["memory-state-refused"],
        SOUND.configured(STATIC + MEMORY_STATIC).having({MEMORY_STATE: memory_state("Static", 2 << 30)}),
        SOUND.configured(STATIC + MEMORY_STATIC).having({MEMORY_STATE: memory_state("Static", 1 << 30)}),
    ),
    # --- settings -------------------------------------------------------------------------------------
    "policy none": Trouble(["policy-differs"], EMPTY.configured("reservedSystemCPUs: 0,4\n"), EMPTY),
    "no policy options": _setting(
        "policy-options-differ",
        "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n",
        cpu_manager_policy_options={"full-pcpus-only": "true"},
    ),
    "long reconcile period": _setting(
        "reconcile-period-differs", "cpuManagerReconcilePeriod: 5s\n", cpu_manager_reconcile_period="5s"
    ),
    "topology manager's policy none": _setting(
        "topology-manager-differs", "topologyManagerPolicy: best-effort\n", topology_manager_policy="best-effort"
    ),
    "topology manager's scope container": _setting(
        "topology-manager-differs", "topologyManagerScope: pod\n", topology_manager_scope="pod"
    ),
    "no topology manager's options": _setting(
        "topology-manager-differs",
        "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n",
        topology_manager_policy_options={"prefer-closest-numa-nodes": "true"},
    ),
    "memory manager's policy None": _setting("memory-manager-differs", MEMORY_STATIC, **MEMORY_WANTED),
    "no memory reserved": _setting(
        "memory-manager-differs", "kubeReserved: {memory: 1Gi}\n", kube_reserved_memory="1Gi"
    ),
    "other CPUs reserved": Trouble(
        ["reservation-differs"],
        EMPTY.configured("cpuManagerPolicy: static\nreservedSystemCPUs: 1,5\n"),
        EMPTY,
        RESERVED,
    ),
    "no CPUs reserved by count": _setting(
        "reservation-differs", "kubeReserved: {cpu: 500m}\n", kube_reserved_cpu="500m"
    ),
    "quota on": _setting("cfs-quota-differs", "cpuCFSQuota: false\n", cpu_cfs_quota=False),
    "long quota period, and its feature gate off": Trouble(
        ["cfs-quota-differs", "field-differs"], OLDER, OLDER.configured(STATIC + SHORT_PERIOD + GATE), PERIOD_WANTED
    ),
    "short quota period without its feature gate": Trouble(
        ["field-differs", "kubelet-would-not-start"],
        OLDER.configured(STATIC + SHORT_PERIOD),
        OLDER.configured(STATIC + SHORT_PERIOD + GATE),
        PERIOD_WANTED,
    ),
    "cgroup named for the system, which keeps CPUs from being reserved": Trouble(
        ["field-differs", "kubelet-would-not-start"],
        EMPTY.configured(STATIC + "systemReservedCgroup: /system\n"),
        EMPTY,
        RESERVED,
    ),
    # --- what the kernel enforces ---------------------------------------------------------------------
    "container with a CPU too many": Trouble(["cpuset-differs"], SOUND._replace(cgroups=cgroups(own="1-2,5"))),
    "shared container with all CPUs": Trouble(["cpuset-differs"], SOUND._replace(cgroups=cgroups(shared=""))),
    "host's services fenced in, on an exclusive CPU too": Trouble(
        ["cgroup-differs"], SOUND._replace(cgroups=cgroups(host="0-1,4"))
    ),
    "cgroup of all pods without a CPU of a container": Trouble(
        ["cgroup-differs", "cpuset-differs", "kubepods-narrow"], SOUND._replace(cgroups=cgroups(kubepods="0-6"))
    ),
    "cgroup of all pods without a CPU that no container uses yet": Trouble(
        ["kubepods-narrow"],
        NO_POD_RUNS._replace(cgroups={KUBEPODS: Files("0-6", "")}),
        NO_POD_RUNS._replace(cgroups={KUBEPODS: Files("", "")}),
    ),
    "host's services on all CPUs": Trouble(["host-not-fenced"], SOUND._replace(cgroups=cgroups(host=""))),
    "cpusets of an earlier static policy, and the host's services on all CPUs": Trouble(
        ["cpusets-left-over"],
        NO_STATIC._replace(cgroups={**cgroups("0-3", ""), HOST: Files("", "", (1,))}),
        NO_STATIC._replace(cgroups={**cgroups("", ""), HOST: Files("", "", (1,))}),
        {"cpu_manager_policy": "none"},
    ),
    "exclusive CPUs of a pod that is gone": Trouble(["exclusive-cpus-idle"], ANOTHER_POD),
    "process bound to a CPU": Trouble(
        ["process-bound"],
        SOUND.having({STATUS: "Cpus_allowed_list:\t1\n"}),
        SOUND.having({STATUS: "Cpus_allowed_list:\t1,5\n"}),
    ),
    "cpusets of an earlier static policy": Trouble(
        ["cpusets-left-over"],
        NO_STATIC._replace(cgroups=cgroups()),
        NO_STATIC,
        {"cpu_manager_policy": "none"},
    ),
    "cgroups without cpusets": Trouble(
        ["cgroups-unreadable"], SOUND._replace(cgroups=None).having(NO_CPUSETS), SOUND._replace(cgroups=None)
    ),
    # --- the machine ----------------------------------------------------------------------------------
    "reserved CPU isolated": Trouble(
        ["isolated-cpus-differ"],
        MANY_EXCLUSIVE._replace(machine="1s4c2t+isolated0-3,5-7"),
        MANY_EXCLUSIVE._replace(machine="1s4c2t+isolated1-3,5-7"),
    ),
    "reserved CPU without ticks": Trouble(
        ["isolated-cpus-differ"],
        EMPTY._replace(machine="1s4c2t+nohz0"),
        EMPTY._replace(machine="1s4c2t+nohz1"),
    ),
    "CPU of the shared pool isolated": Trouble(
        ["shared-pool-isolated"],
        EMPTY._replace(machine="1s4c2t+isolated3"),
        EMPTY,
    ),
    "only some exclusive CPUs isolated": Trouble(
        ["exclusive-not-isolated"],
        MANY_EXCLUSIVE._replace(machine="1s4c2t+isolated2-3,6-7"),
        MANY_EXCLUSIVE._replace(machine="1s4c2t+isolated1-3,5-7"),
    ),
    "one thread reserved of a core": Trouble(
        ["reservation-splits-cores"], EMPTY.configured("cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n"), EMPTY
    ),
    "one thread wanted of a core": Trouble(
        ["reservation-differs", "wanted-reservation-splits-cores"],
        EMPTY,
        EMPTY.configured("cpuManagerPolicy: static\nreservedSystemCPUs: 0,2\n"),
        {"reserved_system_cpus": "0,2"},
        ["reservation-splits-cores"],
    ),
    "one thread of a core switched off": Trouble(
        ["cores-uneven"], EMPTY._replace(machine="1s4c2t+offline7"), EMPTY._replace(machine="1s4c2t+offline3,7")
    ),
    "CPUs in no NUMA node": Trouble(["cpus-unseen"], EMPTY.having({CPUMAP: "77\n", CPULIST: "0-2,4-6\n"}), EMPTY),
    "cores of one id": Trouble(
        ["topology-odd"],
        EMPTY.having(dict.fromkeys(("/sys/devices/system/cpu/cpu%d/topology/core_id" % cpu for cpu in (1, 5)), "0\n")),
        EMPTY,
    ),
    "NUMA nodes that overlap": Trouble(
        ["topology-odd", "cpus-unseen"],
        EMPTY._replace(machine="2n2c2t").having({"/sys/devices/system/node/node1/cpumap": "ff\n"}),
        EMPTY._replace(machine="2n2c2t"),
    ),
    # --- the kubelet ----------------------------------------------------------------------------------
    "configuration changed after the start": Trouble(
        ["kubelet-not-restarted"], RUNNING._replace(changed=(CONFIG,)), RUNNING
    ),
    "two kubelets": Trouble(
        ["kubelet-ambiguous"], RUNNING.having(process(8, "/usr/bin/kubelet", "--config=" + CONFIG)), RUNNING
    ),
    "field misspelt": Trouble(
        ["field-ignored"], EMPTY.configured(STATIC + "reservedCPUs: 0\n"), EMPTY.configured(STATIC + "maxPods: 20\n")
    ),
    "kernel's settings that are not saved": Trouble(
        ["start-uncertain"],
        PROTECTED,
        PROTECTED.having({"/proc/sys/" + name: value + "\n" for name, value in KERNEL_DEFAULTS.items()}),
    ),
    "kubelet of no known version": Trouble(["version-assumed"], EMPTY._replace(minor=None), EMPTY),
    "kubelet too old": Trouble(["version-untested"], EMPTY._replace(minor=32), EMPTY._replace(minor=33)),
    "kubelet too new": Trouble(["version-untested"], EMPTY._replace(minor=37), EMPTY),
    "node of kubespray": Trouble(["settings-elsewhere"], KUBESPRAY, EMPTY),
    "node of kubespray without any wish": Trouble(["settings-elsewhere"], KUBESPRAY, EMPTY, {}),
    # --- a change of the node -------------------------------------------------------------------------
    "drained for a change": Trouble(["change-interrupted"], SOUND._replace(journal=Journal(DRAINING, {}, {}))),
    "halfway through a change": Trouble(
        ["change-interrupted"],
        SOUND.configured("")._replace(
            journal=Journal(CHANGING, {CONFIG: SavedFile((HEADER + STATIC).encode(), 0o644)}, {})
        ),
    ),
    "damaged journal": Trouble(["change-interrupted", "change-refused"], SOUND.having({OPEN: "{"})),
    "wanted setting that a flag gives": Trouble(
        ["reconcile-period-differs", "change-refused"],
        EMPTY.having(FLAG),
        EMPTY,
        {"cpu_manager_reconcile_period": "5s"},
        ["reconcile-period-differs"],
    ),
    # --- who else manages CPUs ------------------------------------------------------------------------
    "DRA CPU driver beside the static policy": Trouble(["two-owners"], SOUND.having(DRA_DRIVER)),
    "NRI policy beside the static policy": Trouble(["two-owners"], EMPTY.having(NRI_POLICY), EMPTY),
    "two who give containers their CPUs, and one has moved a container": Trouble(
        ["two-owners", "cpuset-differs", "change-refused"],
        SOUND._replace(cgroups=cgroups(own="1-2,5")).having(DRA_DRIVER),
    ),
    "DRA CPU driver where the static policy is wanted": Trouble(
        ["policy-differs", "reservation-differs", "checkpoint-outdated", "change-refused"],
        NO_STATIC.having(DRA_DRIVER),
        NO_STATIC,
        {**POLICY, **RESERVED},
        ["policy-differs", "reservation-differs", "checkpoint-outdated"],
    ),
    # --- not of files ---------------------------------------------------------------------------------
    "kubelet that runs with another period": Trouble(
        ["running-kubelet-differs"],
        SOUND,
        configz={"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4", "cpuManagerReconcilePeriod": "5s"},
    ),
    "misspelt field, and a kubelet that writes its period in another way": Trouble(
        ["field-ignored"],
        SOUND.configured(STATIC + "cpuManagerReconcilePeriod: 1m\nreservedCPUs: 0\n"),
        configz={"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4", "cpuManagerReconcilePeriod": "1m0s"},
    ),
    "kubelet whose API server does not answer": Trouble(
        ["running-kubelet-unread"], SOUND, added=("running-kubelet-unread", "it cannot be read: HTTP status 403")
    ),
    "note of a newer collection": Trouble(["noted"], SOUND, added=("moon-phase", "the moon is full")),
    "note under an id of a difference": Trouble(["noted"], SOUND, added=("policy-differs", "the policy is none")),
    # --- further looks --------------------------------------------------------------------------------
    "kernel thread on an exclusive CPU": Trouble(
        ["exclusive-cpus-disturbed"],
        SOUND,
        looks={"isolation": isolation_answer(kernel_thread=0.03)},
        looks_without={"isolation": isolation_answer(kernel_thread=0.001)},
    ),
    "isolation of a node that is saved": Trouble(
        ["isolation-unmeasured"], SOUND, looks={"isolation": None}, looks_without={"isolation": isolation_answer()}
    ),
    "look that failed": Trouble(
        ["isolation-unmeasured", "throttling-unmeasured"],
        COUNTED,
        COUNTED,
        looks={look: {"failed": True, "msg": "worker-1: not permitted"} for look in ("isolation", "throttling")},
        looks_without={"isolation": isolation_answer(), "throttling": None},
    ),
    "quota on exclusive CPUs": _throttling("exclusive-cpus-with-quota", own=CPUFiles(200000, weight=174)),
    "quota on the pod of exclusive CPUs, and not looked at": Trouble(
        ["exclusive-cpus-with-quota"],
        COUNTED._replace(quotas={**WEIGHTS, OWN_POD: CPUFiles(200000, weight=174)}),
        COUNTED._replace(quotas={**WEIGHTS, OWN_POD: CPUFiles(200000, weight=174)}),
        looks={"throttling": None},
    ),
    "quota of one CPU on two exclusive ones": _throttling("limit-below-request", own=CPUFiles(100000, weight=174)),
    "container that is throttled": _throttling(
        "container-throttled", shared=CPUFiles(50000, weight=35, counted=(1000, 400, 30000000), local=30000000)
    ),
    "weights of pods by the old formula": _throttling(
        "weights-by-two-formulas", own_pod=CPUFiles(weight=79), shared_pod=CPUFiles(weight=10)
    ),
    "interrupt on a CPU that is not reserved": Trouble(
        ["host-on-exclusive-cpus"], KEPT.having(INTERRUPT), KEPT, looks=HOUSE, looks_without=HOUSE
    ),
    "interrupt that only the kernel moves": Trouble(
        ["interrupts-not-movable"],
        KEPT.having(INTERRUPT)._replace(fixed=(IRQ,)),
        KEPT.having({**INTERRUPT, "/proc/irq/24/effective_affinity_list": "4\n"})._replace(fixed=(IRQ,)),
        looks=HOUSE,
        looks_without=HOUSE,
    ),
    "slice that no file of systemd keeps on its CPUs": Trouble(
        ["housekeeping-not-lasting"], SOUND, KEPT, looks=HOUSE, looks_without=HOUSE
    ),
    "partition that is none": Trouble(
        ["partition-invalid"],
        KEPT.having({OWN_KIND: "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n"}),
        KEPT.having({OWN_KIND: "isolated\n"}),
        looks=HOUSE,
        looks_without=HOUSE,
    ),
    "housekeeping that was interrupted": Trouble(
        ["housekeeping-unfinished"],
        KEPT.having({HOUSEKEEPING: house_journal.text_of(BROUGHT._replace(is_done=False))}),
        KEPT.having({HOUSEKEEPING: house_journal.text_of(BROUGHT)}),
        looks=HOUSE,
        looks_without=HOUSE,
    ),
    "argument of the kernel that waits for a boot": Trouble(
        ["kernel-line-not-booted"], _line("quiet"), _line("rcu_nocbs=1-3,5-7"), looks=HOUSE, looks_without=HOUSE
    ),
    "argument of the kernel with a reserved CPU": Trouble(
        ["kernel-line-odd"],
        KEPT.having({"/proc/cmdline": "rcu_nocbs=0-3\n"}),
        KEPT.having({"/proc/cmdline": "rcu_nocbs=1-3\n"}),
        looks=HOUSE,
        looks_without=HOUSE,
    ),
    "damaged mask of a workqueue": Trouble(
        ["housekeeping-unmeasured"],
        KEPT.having({"/sys/devices/virtual/workqueue/cpumask": "?\n"}),
        KEPT.having({"/sys/devices/virtual/workqueue/cpumask": "11\n"}),
        looks=HOUSE,
        looks_without=HOUSE,
    ),
    "resctrl after a boot": _cache(
        "cache-partition-lost",
        {
            "schemata": "L3:0=7ff\nMB:0=100\n",
            "cpus_list": "0-7\n",
            **{"kubenode.exclusive/" + name: None for name in ("cpus_list", "mode", "schemata", "tasks")},
        },
        {},
    ),
    "exclusive group without a CPU": _cache(
        "cache-partition-differs", {"cpus_list": "0,2-7\n", "kubenode.exclusive/cpus_list": "1\n"}, {}
    ),
    "group of somebody else in the ways": _cache("cache-foreign-group", _group("003"), _group("7f0")),
    "devices that fill all ways": _cache("cache-ways-of-devices", {"info/L3/shareable_bits": "7ff\n"}, {}),
    "exclusive CPU with a shared sibling": Trouble(
        ["cache-cores-split"],
        DIVIDED.having({CHECKPOINT: state(shared="0,2-7", db="1")}),
        DIVIDED,
        looks={"cache": None},
        looks_without={"cache": None},
    ),
    "processes in a class of a runtime": _cache("cache-class-by-runtime", _group("7f0", "77\n"), _group("7f0")),
    "damaged schemata": _cache("cache-unmeasured", {"db/cpus_list": "?\n", "db/schemata": "L3:0=7f0\n"}, _group("7f0")),
    "no cpu controller": Trouble(
        ["throttling-unmeasured"], SOUND, COUNTED, looks={"throttling": None}, looks_without={"throttling": None}
    ),
    # --- a state that only the wanted settings refuse ---
    "static policy wanted, and an accepted checkpoint of the policy none": Trouble(
        ["policy-differs", "reservation-differs", "checkpoint-outdated"], NO_STATIC, SOUND, {**POLICY, **RESERVED}
    ),
    "CPUs of a container wanted for the system": Trouble(
        ["reservation-differs", "checkpoint-outdated"],
        SOUND,
        EMPTY.configured("cpuManagerPolicy: static\nreservedSystemCPUs: 0-1,4-5\n"),
        {"reserved_system_cpus": "0-1,4-5"},
    ),
    "memory manager's policy Static wanted, and an accepted state of the policy None": Trouble(
        ["memory-manager-differs", "memory-state-outdated"],
        SOUND.having({MEMORY_STATE: memory_state("None")}),
        SOUND.configured(STATIC + MEMORY_STATIC).having({MEMORY_STATE: memory_state("Static", 1 << 30)}),
        MEMORY_WANTED,
    ),
    "memory manager's state refused as the node is, and accepted with what is wanted": Trouble(
        ["memory-manager-differs", "memory-state-refused"],
        SOUND.having({MEMORY_STATE: memory_state("Static", 1 << 30)}),
        SOUND.configured(STATIC + MEMORY_STATIC).having({MEMORY_STATE: memory_state("Static", 1 << 30)}),
        MEMORY_WANTED,
    ),
    # --- no kubelet, or no longer ---
    "no kubelet": Trouble(["kubelet-missing"], NO_KUBELET, EMPTY),
    "configuration gone in a change that was interrupted": Trouble(
        ["kubelet-missing", "change-interrupted"], NO_KUBELET._replace(journal=STOPPED), EMPTY
    ),
    "configuration gone since the last change": Trouble(
        ["configuration-unreadable"], NO_KUBELET.having({LAST: LAST_CHANGE}), EMPTY
    ),
}


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)


def findings_of(
    saved: Saved,
    root: Path,
    wanted: Mapping[str, Any],
    configz: Mapping[str, Any] | None = None,
    added: tuple[str, str] | None = None,
    looks: Mapping[str, Any] | None = None,
) -> list[dict[str, str]]:
    """The findings of a node in the report; its answer and the report are plain data."""
    tree = write_saved(saved, root)
    answer = rollout_report(Node(tree, minor=saved.minor), wanted, Terms())
    if added is not None:
        answer["note_checks"].append(added[0])
        answer["notes"].append(added[1])
    running = settings_of_configz({"kubeletconfig": dict(configz)}) if configz else {}
    seen = {
        name: _seen(name, Node(tree, minor=saved.minor)) if look is None else look
        for name, look in (looks or {}).items()
    }
    plain, plain_looks = json.loads(json.dumps([answer, seen]))
    result = Result("worker-1", "2026-11-23T15:00:00Z", plain, running, [], plain_looks)
    report = assemble([result], ReportTerms("CPU drift report", 1795446245.0))
    assert json.loads(json.dumps(report)) == report
    (node,) = report["nodes"]
    assert (node["state"] in ("drift", "refused")) == any(finding["severity"] != NOTE for finding in node["findings"])
    found: Any = node["findings"]
    assert set(report["checks"]) == checks_of(found)
    return list(found)


def _seen(look: str, node: Node) -> dict[str, Any]:
    """What the module of a look returns."""
    if look == "isolation":
        return isolation_report(node, 1, 1.0)
    if look == "housekeeping":
        return housekeeping(node, None)
    if look == "cache":
        return cache_report(node, 0)
    result = throttling(node, 0, 25)
    return {**result, **noted(result["notes"])}


def checks_of(findings: Iterable[Mapping[str, str]]) -> set[str]:
    return {finding["check"] for finding in findings}


def check_with_and_without(trouble: Trouble, root: Path) -> None:
    found = findings_of(trouble.node, root / "with", trouble.wanted, trouble.configz, trouble.added, trouble.looks)
    assert checks_of(found) == set(trouble.checks)
    without = findings_of(trouble.without, root / "without", trouble.wanted, looks=trouble.looks_without)
    assert checks_of(without) == set(trouble.checks_without)
    for finding in (*found, *without):
        assert finding["severity"] == CHECKS[finding["check"]].severity
        assert finding["remedy"], finding
        assert finding["text"] or (finding["subject"] and finding["wanted"] != finding["found"]), finding


@pytest.mark.parametrize("name", TROUBLES)
def test_the_checks_of_a_node_with_a_trouble_and_without_it(root: Path, name: str) -> None:
    check_with_and_without(TROUBLES[name], root)


def test_every_check_has_a_node_with_it_and_one_without_it() -> None:
    rows = list(TROUBLES.values())
    assert {check for row in rows for check in set(row.checks) - set(row.checks_without)} == set(CHECKS)
    of_files = {
        check
        for row in rows
        if not row.configz and row.added is None and not any(row.looks.values())
        for check in row.checks
    }
    assert set(CHECKS) - of_files == set(NOT_OF_FILES)


# --- what a finding says to do ------------------------------------------------------------------------


def test_every_setting_has_a_check_of_its_own() -> None:
    assert [name for name in SETTINGS if name not in check_of_subject(name).subjects] == []


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, trouble in TROUBLES.items()
        if any(playbook in CHECKS[check].remedy for check in trouble.checks for playbook in (ROLLOUT, REPAIR))
    ],
)
def test_the_playbook_of_a_remedy_has_something_to_do(root: Path, name: str) -> None:
    trouble = TROUBLES[name]
    found = findings_of(trouble.node, root, trouble.wanted, trouble.configz)
    for playbook, wanted in ((ROLLOUT, trouble.wanted), (REPAIR, {})):
        if any(playbook in finding["remedy"] for finding in found):
            node = Node(Tree(str(root)), minor=trouble.node.minor)
            assert rollout_report(node, wanted, Terms())["actions"], playbook


def test_a_refusal_names_its_place_once(root: Path) -> None:
    found = findings_of(EMPTY.having(FLAG), root, {"cpu_manager_reconcile_period": "5s"})
    (refusal,) = (finding for finding in found if finding["check"] == "change-refused")
    place = refusal["text"].partition(": ")[0]
    assert not refusal["text"].startswith("%s: %s: " % (place, place))


def remedies() -> list[str]:
    subjects = [(check, subject) for check in CHECKS.values() for subject in ("", *check.subjects)]
    return sorted({check.remedy_for(subject) for check, subject in subjects})


@pytest.mark.parametrize("remedy", remedies())
def test_what_a_remedy_names_is_there(remedy: str) -> None:
    assert "{" not in remedy
    assert remedy[-1] == "."
    for name in re.findall(r"kubenode\.cpu_manager\.(\w+)", remedy):
        places = CHECKOUT / "playbooks" / (name + ".yml"), CHECKOUT / "roles" / name
        assert any(place.exists() for place in places), name
    for name in re.findall(r"\b(?:kubelet|drift_report)_\w+", remedy):
        role = "drift_report" if name.startswith("drift_report") else "kubelet"
        specification = (CHECKOUT / "roles" / role / "meta/argument_specs.yml").read_text("utf-8")
        assert re.search(r"^ +%s:$" % name, specification, re.MULTILINE), name
    playbooks = "".join(path.read_text("utf-8") for path in (CHECKOUT / "playbooks").glob("*.yml"))
    for name in re.findall(r"\bcpu_manager_\w+", remedy.replace("kubelet_cpu_manager", "")):
        assert name in playbooks

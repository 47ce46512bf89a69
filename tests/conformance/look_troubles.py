# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Troubles that further looks at a node find, or that do not come from its files."""

from __future__ import annotations

from typing import Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import CACHE, HOUSEKEEPING
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    CacheJournal,
    text_of,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping_journal as house_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import answer_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.look import look_by_api
from ansible_collections.kubenode.cpu_manager.tests.conformance.trouble_case import Trouble
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import CPUFiles
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    EMPTY,
    OWN_ID,
    OWN_POD,
    SHARED_ID,
    SHARED_POD,
    SOUND,
    STATIC,
    Saved,
    container_path,
    isolation_answer,
    state,
)

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
    """Return a node whose containers or pods have these files of the cpu controller."""
    paths = {"own": OWN_PATH, "own_pod": OWN_POD, "shared": SHARED_PATH, "shared_pod": SHARED_POD}
    quotas = {**WEIGHTS, **{paths[name]: file for name, file in files.items()}}
    look = {"throttling": None}
    return Trouble([check], SOUND._replace(quotas=quotas), COUNTED, looks=look, looks_without=look)


# The host's services keep to the reserved CPUs, also after the next boot.
KEPT = SOUND.having({"/etc/systemd/system/system.slice.d/50-cpus.conf": "[Slice]\nAllowedCPUs=0,4\n"})
IRQ = "/proc/irq/24/smp_affinity_list"
INTERRUPT = {"/proc/irq/24/effective_affinity_list": "2\n", IRQ: "2-3\n"}
HOUSE = {"housekeeping": None}
BROUGHT = house_journal.HousekeepingJournal(
    house_journal.HousekeepingWish(CPUSet((0, 4)), ("interrupts",)),
    CPUSet((0, 4)),
    "",
    {},
    {},
    {},
    (),
    (),
    {},
    is_done=True,
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
    """Return a node whose caches are divided, with other files of resctrl."""
    look = {"cache": None}
    found, quiet = (DIVIDED.having({RESCTRL + name: text for name, text in part.items()}) for part in (files, without))
    return Trouble([check], found, quiet, looks=look, looks_without=look)


def _impact(cpus: str) -> Mapping[str, object]:
    """Return the look at the impact where whole cores of two CPUs come to a node with a pod that has so many for
    itself."""
    plan, pods = plan_of(), [pod_of("db-0", "a", cpus, ("StatefulSet", "db"))]
    return {"impact": look_by_api("worker-1", plan, plan["beside_cpus"], node_of("a"), pods)}


def _group(mask: str, tasks: str = "") -> dict[str, str | None]:
    """Return a group of somebody else with these ways."""
    return {
        "db/cpus_list": "\n",
        "db/mode": "shareable\n",
        "db/schemata": "L3:0=%s\nMB:0=100\n" % mask,
        "db/tasks": tasks,
    }


def _line(booted: str) -> Saved:
    """Return a node that was booted with this argument, and will be with that of its configuration."""
    made = "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Linux' {\n\tlinux /vmlinuz rcu_nocbs=1-3,5-7\n}\n"
    return KEPT.having(
        {"/proc/cmdline": booted + "\n", "/boot/grub/grub.cfg": made, "/usr/sbin/grub-mkconfig": "default/grub.d"}
    )


STARTED = Trial(True, version="1.36.3", seconds=3.1, runtime="/usr/bin/containerd")
REFUSED = STARTED._replace(
    starts=False, message='unable to determine reserved CPU resources for static policy, "0-1" is not online'
)


def _trial(check: str, trial: Trial, program: str | None = None) -> Trouble:
    """Return a node on which a kubelet did this in a trial, and one on which it started."""
    found, without = ({"trial": answer_of(said, program)} for said in (trial, STARTED))
    return Trouble([check], SOUND, looks=found, looks_without=without)


LOOK_TROUBLES: dict[str, Trouble] = {
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
    "waiver whose last day is over": Trouble(
        ["waiver-ended"], SOUND, added=("waiver-ended", "the last day was 2026-11-22; the reason was: ticket 4711")
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
    "kubelet that refuses its files": _trial("kubelet-refuses-start", REFUSED),
    "kubelet of the next version that refuses the node's files": _trial(
        "next-kubelet-refuses-start",
        REFUSED._replace(version="1.37.0", message="unknown flag: --pod-infra-container-image"),
        "/usr/local/bin/kubelet-1.37",
    ),
    "kubelet that starts where a refusal was predicted": _trial(
        "prediction-differs",
        STARTED._replace(differs=True, mistaken=(("config.yaml", "memorySwap.swapBehavior is not supported"),)),
    ),
    "trial on a node that is saved": Trouble(
        ["trial-unmeasured"], SOUND, looks={"trial": None}, looks_without={"trial": answer_of(STARTED, None)}
    ),
    "pods that would be refused": Trouble(
        ["pods-would-be-refused"], SOUND, looks=_impact("3"), looks_without=_impact("4")
    ),
    "pods that the API server does not give": Trouble(
        ["impact-unmeasured"],
        SOUND,
        looks={"impact": {"failed": True, "msg": "the API server does not answer"}},
        looks_without=_impact("4"),
    ),
    "no cpu controller": Trouble(
        ["throttling-unmeasured"], SOUND, COUNTED, looks={"throttling": None}, looks_without={"throttling": None}
    ),
}

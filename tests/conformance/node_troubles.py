# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Troubles that a node's own files show: settings, states, cgroups, the machine, the kubelet and changes."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST, OPEN, SERVICES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    DRAINING,
    STOPPING,
    RolloutJournal,
    SavedFile,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.conformance.trouble_case import POLICY, RESERVED, Trouble
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import Files
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    CONFIG,
    EMPTY,
    HOST,
    KUBEPODS,
    MEMORY_STATE,
    MEMORY_STATIC,
    OWN_ID,
    OWN_POD,
    RUNNING,
    SOUND,
    STATIC,
    cgroups,
    container_path,
    memory_state,
    process,
    state,
)


def dividing(pods: Mapping[str, CPUSet] = MappingProxyType({})) -> bytes:
    """Return the checkpoint of SOUND, and what pods have as a whole."""
    own = {"uid-db": {"server": CPUSet((1, 5))}}
    free = CPUSet.parse("0,2-4,6-7") - CPUSet(cpu for cpus in pods.values() for cpu in cpus)
    return write_checkpoint("static", State(free, own, pods), Format3)


MEMORY_WANTED = {
    "memory_manager_policy": "Static",
    "system_reserved_memory": "924Mi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
NO_STATIC = SOUND.configured("").having({CHECKPOINT: state("none", "")})._replace(cgroups=cgroups("", ""))
DRA_DRIVER = {"/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock": ""}
NRI_POLICY = {"/var/lib/nri-resource-policy/cache": '{"PolicyName": "topology-aware"}'}
MANY_NODES = EMPTY._replace(machine="1s17n1c", files={}).configured(
    "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ntopologyManagerPolicy: restricted\n"
    "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '17'}\n"
)
# Two sockets of four cores, with two NUMA nodes each.
SOCKETS = EMPTY._replace(machine="2s2n2c2t").having({CHECKPOINT: state("static", "0-15")})
ALIGNED = (
    "cpuManagerPolicy: static\nreservedSystemCPUs: 0,8\nfeatureGates: {CPUManagerPolicyAlphaOptions: true}\n"
    "cpuManagerPolicyOptions: {align-by-socket: 'true'}\n"
)
FLAG = {"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--cpu-manager-reconcile-period=1s\n"}
UNIT = "[Service]\nExecStartPre=%s\nExecStart=/usr/bin/kubelet --config=" + CONFIG + "\n"
REMOVING = {"/etc/systemd/system/kubelet.service": UNIT % ("/bin/rm -f " + CHECKPOINT)}
HARMLESS_UNIT = {"/etc/systemd/system/kubelet.service": UNIT % "/bin/mkdir -p /etc/kubernetes/manifests"}
OWN = container_path(OWN_POD, OWN_ID)
EXCLUSIVE_ABOVE = {"/sys/fs/cgroup/%s/cpuset.cpus.exclusive" % path: "1,5\n" for path in (KUBEPODS, OWN_POD)}
NO_PARTITION = {OWN: Files("1,5", "0", partition="isolated invalid (Parent is not a partition root)")}
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
# Its pod has one more container, which does not run.
INIT_ENDED = SOUND.having(
    {
        CHECKPOINT: write_checkpoint(
            "static", State(CPUSet((0, 3, 4, 6, 7)), {"uid-db": {"server": CPUSet((1, 5)), "load": CPUSet((2,))}})
        )
    }
)._replace(cgroups=cgroups(shared="0,3-4,6-7"))
DIVIDING = SOUND.configured(
    STATIC + "topologyManagerPolicy: best-effort\ntopologyManagerScope: pod\n"
    "featureGates: {PodLevelResourceManagers: true}\n"
)
UNOWNED_CURED = DIVIDING.having({CHECKPOINT: dividing()})
UNOWNED = DIVIDING.having({CHECKPOINT: dividing({"uid-gone": CPUSet((2,))})})._replace(
    cgroups=cgroups(shared="0,3-4,6-7")
)
WHOLE_POD = DIVIDING.having({CHECKPOINT: dividing({"uid-db": CPUSet((1, 5))})})
WHOLE_CORES = SOUND.configured(STATIC + "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n")
WHOLE_CORES_WANTED = {**POLICY, "cpu_manager_policy_options": {"full-pcpus-only": "true"}}
NO_POD_RUNS = SOUND.having({CHECKPOINT: state(shared="0-7")})
LAST_CHANGE = '{"format": 1, "phase": "changing", "facts": {}, "run": "", "files": {}}'
# Before 1.36 the feature gate of another quota period is off.
OLDER = EMPTY._replace(minor=35)
SHORT_PERIOD, GATE = "cpuCFSQuotaPeriod: 50ms\n", "featureGates: {CustomCPUCFSQuotaPeriod: true}\n"
PERIOD_WANTED = {"cpu_cfs_quota_period": "50ms"}


def _setting(check: str, fields: str, **wanted: Any) -> Trouble:
    """Return a node whose file does not have these fields, which are wanted."""
    return Trouble([check], EMPTY, EMPTY.configured(STATIC + fields), wanted)


NO_KUBELET = EMPTY._replace(files={})
STOPPED = RolloutJournal(STOPPING, {}, {})


NODE_TROUBLES: dict[str, Trouble] = {
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
        "topologyManagerPolicy: best-effort\ntopologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n",
        topology_manager_policy="best-effort",
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
    "running pod that has more cores than are free": Trouble(
        ["pods-lost-at-restart"],
        WHOLE_CORES.having({CHECKPOINT: state(shared="0,3-4,7", db="1-2,5-6")})._replace(
            cgroups=cgroups(own="1-2,5-6", shared="0,3-4,7")
        ),
        WHOLE_CORES,
        WHOLE_CORES_WANTED,
    ),
    "CPU of an init container that has ended": Trouble(["init-cpus-lost"], INIT_ENDED),
    "CPUs of a pod as a whole that no container has": Trouble(
        ["pod-cpus-lost", "exclusive-cpus-idle"], UNOWNED, UNOWNED_CURED
    ),
    "pod with CPUs as a whole": Trouble(["pods-lost-at-restart"], WHOLE_POD, UNOWNED_CURED),
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
    "more NUMA nodes than sets of them can be gone through": Trouble(
        ["numa-nodes-many"], MANY_NODES, MANY_NODES._replace(machine="1s16n1c")
    ),
    "an option that acts on hints, and none are asked for": Trouble(
        ["option-ineffective"],
        SOCKETS.configured(ALIGNED),
        SOCKETS.configured(ALIGNED + "topologyManagerPolicy: best-effort\n"),
    ),
    "CPUs of two sockets in spite of an option": Trouble(
        ["option-ineffective"],
        SOCKETS.configured(ALIGNED + "topologyManagerPolicy: best-effort\n").having(
            {CHECKPOINT: state("static", "0-2,5-10,13-15", db="3-4,11-12")}
        ),
        SOCKETS.configured(ALIGNED + "topologyManagerPolicy: best-effort\n").having(
            {CHECKPOINT: state("static", "0-1,4-9,12-15", db="2-3,10-11")}
        ),
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
        EMPTY._replace(machine="2n2c2t").having(
            # It has the link of a CPU of the other node, too.
            {"/sys/devices/system/node/node1/cpumap": "ff\n", "/sys/devices/system/node/node1/cpu0/online": "1\n"}
        ),
        EMPTY._replace(machine="2n2c2t"),
    ),
    # --- the kubelet ----------------------------------------------------------------------------------
    "configuration changed after the start": Trouble(
        ["kubelet-not-restarted"], RUNNING._replace(changed=(CONFIG,)), RUNNING
    ),
    "node in a container": Trouble(
        ["cpus-out-of-reach"],
        SOUND.having({"/sys/fs/cgroup/cpuset.cpus.effective": "1-7\n"}),
        SOUND.having({"/sys/fs/cgroup/cpuset.cpus.effective": "0-7\n"}),
    ),
    "container that is no partition": Trouble(
        ["container-partition-invalid"],
        SOUND.having(EXCLUSIVE_ABOVE)._replace(cgroups={**cgroups(), **NO_PARTITION}),
        SOUND.having(EXCLUSIVE_ABOVE),
    ),
    "unit that removes the states": Trouble(["states-removed"], SOUND.having(REMOVING), SOUND.having(HARMLESS_UNIT)),
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
    "drained for a change": Trouble(["change-interrupted"], SOUND._replace(journal=RolloutJournal(DRAINING, {}, {}))),
    "cordoned by a change that did not end": Trouble(
        ["change-interrupted", "node-cordoned"],
        SOUND._replace(
            journal=RolloutJournal(
                DRAINING, {}, {"node": "worker-1", "cordoned": False, "taints": []}, "run", began=1796000000
            )
        ),
    ),
    "halfway through a change": Trouble(
        ["change-interrupted"],
        SOUND.configured("")._replace(
            journal=RolloutJournal(
                CHANGING, {CONFIG: SavedFile((HEADER + STATIC).encode(), 0o644)}, {}, "run", {CONFIG: HEADER.encode()}
            )
        ),
    ),
    "halfway through a change of which nobody knows what it wrote": Trouble(
        ["change-interrupted"],
        SOUND.configured("")._replace(
            journal=RolloutJournal(CHANGING, {CONFIG: SavedFile((HEADER + STATIC).encode(), 0o644)}, {})
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
    "a unit of ours that anybody may write": Trouble(
        ["program-not-roots"],
        SOUND.having({SERVICES[0]: "[Service]\n"})._replace(writable=SERVICES[:1]),
        SOUND.having({SERVICES[0]: "[Service]\n"}),
    ),
    "a journal that anybody may write": Trouble(
        ["program-not-roots"],
        SOUND.having({LAST: LAST_CHANGE})._replace(writable=(LAST,)),
        SOUND.having({LAST: LAST_CHANGE}),
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

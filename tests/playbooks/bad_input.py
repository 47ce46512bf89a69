# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All that can be wrong, by a name for each: files, settings, machines and parameters, with what the message says."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import LARGEST_OF_KUBELET

from .bad_nodes import (
    CHECKPOINT,
    CONFIG,
    CONFIGURATION,
    CORE,
    CPU,
    IN_USE,
    MACHINE,
    OPTIONS,
    PERIOD,
    RESERVED,
    ROLE,
    Bad,
    added,
    directory,
    fifo,
    flags,
    led_out,
    longer,
    network_card,
    removed,
    text,
)

NO_ARCHIVE = "or give a directory with the files of a node"
NO_ROOT = "no such directory; give the directory that holds the node's /sys and /etc"
FIFO = "is not a regular file; put it out of the way"
LONG = "is longer than 1048576 bytes, as no such file is; put it out of the way"
LINK = "this link is not followed; put what it leads to in its place"
SAVE_AGAIN = "save the node's files again"
IS_IT_WHOLE = "is the file whole?"
OTHER_FILE = "name the file that the kubelet's --config gives in config_path"
DURATIONS = "write it as 10s, 1m30s or 500ms"
QUANTITIES = "write CPUs as 2, 0.5 or 500m"
NEAREST = "the nearest counts are 2 and 4; take one of them"
FEWER = "reserve fewer with reserved_system_cpus, or kube_reserved_cpu and system_reserved_cpu"
DRAIN = "drain the node and set discard_assignments: true"
ROLE_DRAIN = "drain the node and set kubelet_discard_assignments: true"

ALPHA = added("featureGates: {CPUManagerPolicyAlphaOptions: true}\n")
TO_NONE = {"cpu_manager_policy": "none", "reserved_system_cpus": ""}

BAD: dict[str, Bad] = {
    # --- the root
    "no-root": Bad("drift_info", "root /no/such/root", NO_ROOT, root="/no/such/root", knows_node=False),
    "relative-root": Bad("checkpoint", "root: 'some/where'", "begin it with a /", root="some/where", knows_node=False),
    "root-is-a-file": Bad(
        "cpu_topology_info", "root /proc/cpuinfo", NO_ARCHIVE, root="/proc/cpuinfo", knows_node=False
    ),
    "role-no-root": Bad(ROLE, "root /no/such/root", NO_ROOT, root="/no/such/root", knows_node=False),
    # --- what is no file
    "config-directory": Bad("kubelet_config", CONFIG, FIFO, change=directory(CONFIG)),
    "config-fifo": Bad("kubelet_config", CONFIG, FIFO, change=fifo(CONFIG)),
    "checkpoint-directory": Bad("checkpoint", CHECKPOINT, FIFO, change=directory(CHECKPOINT)),
    "checkpoint-long": Bad("checkpoint", CHECKPOINT, LONG, change=longer(CHECKPOINT, LARGEST_OF_KUBELET)),
    "config-long": Bad("kubelet_config", CONFIG, LONG, change=longer(CONFIG, LARGEST_OF_KUBELET)),
    "checkpoint-fifo": Bad("checkpoint_info", CHECKPOINT, FIFO, change=fifo(CHECKPOINT)),
    "sysfs-directory": Bad("reserved_cpus", CPU + "online", SAVE_AGAIN, {"count": 2}, directory(CPU + "online")),
    "sysfs-fifo": Bad("cpu_topology_info", CPU[:-1], "is this a node's root directory", change=fifo(CPU + "online")),
    "no-cpuinfo": Bad("cpu_topology_info", "proc/cpuinfo", SAVE_AGAIN, {"source": "cpuinfo"}, removed("proc/cpuinfo")),
    "role-config-fifo": Bad(ROLE, CONFIG, FIFO, change=fifo(CONFIG)),
    # --- links out of the tree
    "config-link": Bad("kubelet_config", CONFIG, LINK, change=led_out(CONFIG)),
    "checkpoint-link": Bad("checkpoint", CHECKPOINT, LINK, {"state": "absent"}, led_out(CHECKPOINT)),
    "cpu-link": Bad("cpu_topology_info", CPU + "cpu3", LINK, change=led_out(CPU + "cpu3")),
    "online-link": Bad("drift_info", CPU + "online", LINK, change=led_out(CPU + "online")),
    "role-kubelet-link": Bad(ROLE, "var/lib/kubelet", LINK, change=led_out("var/lib/kubelet")),
    # --- damaged configurations
    "truncated-yaml": Bad(
        "kubelet_config",
        CONFIG + ": line 5, column 44",
        IS_IT_WHOLE,
        change=added('cpuManagerPolicyOptions: {full-pcpus-only: "tr'),
    ),
    "truncated-json": Bad(
        "kubelet_config",
        CONFIG + ": line 2, column 34",
        IS_IT_WHOLE,
        change=text(CONFIG, '{\n  "kind": "KubeletConfiguration",'),
    ),
    "tab": Bad("kubelet_config", CONFIG + ": line 6", "use spaces", change=added("kubeReserved:\n\tcpu: 1\n")),
    "twice": Bad(
        "kubelet_config",
        "cpuManagerPolicy",
        "remove one of the two",
        {"cpu_manager_policy": "static"},
        added("cpuManagerPolicy: none\n"),
    ),
    "empty": Bad("checkpoint_info", CONFIG, OTHER_FILE, change=text(CONFIG, "")),
    "list": Bad("kubelet_config", CONFIG, OTHER_FILE, change=text(CONFIG, "- cpuManagerPolicy\n")),
    "kind": Bad("kubelet_config", CONFIG, OTHER_FILE, change=text(CONFIG, "apiVersion: v1\nkind: ConfigMap\n")),
    "no-kind": Bad("kubelet_config", CONFIG, OTHER_FILE, change=text(CONFIG, "cpuManagerPolicy: none\n")),
    "latin": Bad("kubelet_config", CONFIG, "write it in UTF-8", change=text(CONFIG, b"# \xe9\n")),
    "found-policy": Bad(
        "kubelet_config",
        CONFIG + ": cpuManagerPolicy: 'dynamic'",
        "one of none, static",
        change=text(CONFIG, CONFIGURATION.replace("static", "dynamic")),
    ),
    "found-cpus": Bad(
        "kubelet_config",
        CONFIG + ": reservedSystemCPUs",
        "position 3: expected a CPU id",
        change=text(CONFIG, CONFIGURATION.replace("0,4", "0,,4")),
    ),
    "found-option": Bad(
        "kubelet_config",
        CONFIG + ": cpuManagerPolicyOptions",
        'write it quoted, as in "true"',
        change=added("cpuManagerPolicyOptions: {full-pcpus-only: true}\n"),
    ),
    "found-quantity": Bad(
        "kubelet_config", CONFIG + ": kubeReserved.cpu", QUANTITIES, change=added("kubeReserved: {cpu: 1c}\n")
    ),
    "found-period": Bad(
        "kubelet_config",
        CONFIG + ": cpuManagerReconcilePeriod",
        DURATIONS,
        change=added("cpuManagerReconcilePeriod: soon\n"),
    ),
    "no-mapping": Bad(
        "kubelet_config", CONFIG, "repair it first", {"kube_reserved_cpu": "2"}, added("kubeReserved: [cpu]\n")
    ),
    "role-no-mapping": Bad(
        ROLE, CONFIG, "repair it first", {"kubelet_kube_reserved_cpu": "2"}, added("kubeReserved: [cpu]\n")
    ),
    # --- damaged topologies
    "mask": Bad("cpu_topology_info", CPU + CORE, SAVE_AGAIN, change=text(CPU + CORE, "0g\n")),
    "online": Bad("drift_info", CPU + "online: CPU list '0-'", SAVE_AGAIN, change=text(CPU + "online", "0-\n")),
    "nothing-online": Bad("drift_info", CPU[:-1], "is this a node's root", change=text(CPU + "online", "\n")),
    "cpuinfo": Bad(
        "cpu_topology_info", "proc/cpuinfo", SAVE_AGAIN, {"source": "cpuinfo"}, text("proc/cpuinfo", "processor: x\n")
    ),
    "lscpu": Bad("cpu_topology_info", "lscpu", "give the whole output", {"source": "lscpu", "text": "CPU 0"}),
    "hwloc": Bad("cpu_topology_info", "hwloc", "give the whole output", {"source": "hwloc", "text": "<topology>"}),
    "cadvisor": Bad("cpu_topology_info", "MachineInfo", "give the whole answer", {"source": "cadvisor", "text": "{}"}),
    "no-text": Bad(
        "cpu_topology_info", "source is lscpu, which takes text", "set it", {"source": "lscpu"}, knows_node=False
    ),
    # --- no kubelet
    "no-kubelet": Bad("kubelet_config", "no kubelet runs here", OTHER_FILE, change=removed(CONFIG)),
    "no-kubelet-there": Bad("checkpoint", "etc/kubelet.yaml", OTHER_FILE, {"config_path": "/etc/kubelet.yaml"}),
    "role-no-kubelet": Bad(ROLE, "no-kubelet", "in kubelet_config_path", change=removed(CONFIG)),
    "version": Bad("drift_info", "kubelet_version", "such as 1.36 or v1.35.6", {"kubelet_version": "the newest"}),
    # --- how many CPUs
    "count-0": Bad("reserved_cpus", "count:", "reserve at least one", {"count": 0}),
    "count-all": Bad("reserved_cpus", "count:", "at least one must be left", {"count": 8}),
    "count-more": Bad("kubelet_config", "count:", "at least one must be left", {"reservation": {"count": 9}}),
    "count-splits": Bad("drift_info", "count:", NEAREST, {"reservation": {"count": 3}}),
    "role-count-splits": Bad(ROLE, "count:", NEAREST, {"kubelet_reservation": {"count": 3}}),
    "count-word": Bad(
        "reserved_cpus",
        "count: 'many' is not a whole number",
        "write one such as 2",
        {"count": "many"},
        knows_node=False,
    ),
    "fraction": Bad("reserved_cpus", "fraction:", "between 0 and 1", {"fraction": 1.5}),
    "fraction-all": Bad("reserved_cpus", "fraction:", "at least one must be left", {"fraction": 1}),
    "curve-empty": Bad("reserved_cpus", "curve:", "give one with a fraction", {"curve": []}),
    "curve-fraction": Bad("reserved_cpus", "curve: step 1", "between 0 and 1", {"curve": [{"fraction": -1}]}),
    "curve-open": Bad(
        "reserved_cpus",
        "curve: step 1",
        "only the last step may stand for all others",
        {"curve": [{"fraction": 0.5}, {"fraction": 0.1}]},
    ),
    "no-way": Bad("drift_info", "reservation", "give one of count, fraction and curve", {"reservation": {}}),
    "two-ways": Bad(
        "drift_info",
        "not count and fraction",
        "give one of count, fraction and curve",
        {"reservation": {"count": 2, "fraction": 0.1}},
    ),
    "two-ways-at-once": Bad(
        "reserved_cpus",
        "count and fraction exclude each other",
        "remove one",
        {"count": 2, "fraction": 0.1},
        knows_node=False,
    ),
    "kubelet-count": Bad("reserved_cpus", "method kubelet", "omit it", {"method": "kubelet", "count": 2}),
    "kubelet-nothing": Bad("reserved_cpus", "kubeReserved", "set reservedSystemCPUs, or", {"method": "kubelet"}),
    "kubelet-quantity": Bad(
        "reserved_cpus", "kube_reserved_cpu", QUANTITIES, {"method": "kubelet", "kube_reserved_cpu": "1c"}
    ),
    "device": Bad(
        "reserved_cpus", "near_device", "there are eth0", {"count": 2, "near_device": "eth1"}, network_card("0")
    ),
    "device-path": Bad(
        "reserved_cpus", "near_device", "the name of a network device", {"count": 2, "near_device": "../eth0"}
    ),
    "device-nowhere": Bad(
        "reserved_cpus",
        "near_device",
        "omit near_device",
        {"count": 2, "near_device": "eth0"},
        network_card("-1"),
    ),
    "device-elsewhere": Bad(
        "drift_info",
        "near_device",
        "NUMA node 7 does not exist; there are 0, 1; omit reservation.near_device",
        {"reservation": {"count": 2, "near_device": "eth0"}},
        network_card("7"),
    ),
    # --- settings
    "policy": Bad(
        "kubelet_config",
        "cpu_manager_policy: 'dynamic' is not possible",
        "take one of none, static",
        {"cpu_manager_policy": "dynamic"},
        knows_node=False,
    ),
    "role-policy": Bad(
        ROLE,
        "kubelet_cpu_manager_policy",
        "one of: none, static",
        {"kubelet_cpu_manager_policy": "dynamic"},
        knows_node=False,
    ),
    "option": Bad("kubelet_config", OPTIONS, "the kubelet 1.36 has", {OPTIONS: {"full-cpus": "true"}}),
    "option-value": Bad("checkpoint", OPTIONS, 'write "true" or "false"', {OPTIONS: {"full-pcpus-only": "yes"}}),
    "option-none": Bad(
        "kubelet_config",
        OPTIONS,
        "remove cpuManagerPolicyOptions, or set cpuManagerPolicy: static",
        {**TO_NONE, OPTIONS: {"full-pcpus-only": "true"}},
    ),
    "option-excluded": Bad(
        "drift_info",
        OPTIONS,
        "drop one of the two",
        {OPTIONS: {"full-pcpus-only": True, "distribute-cpus-across-cores": True}},
        ALPHA,
    ),
    # Nobody asks for it, so nobody switches its gate on.
    "option-alpha": Bad(
        "kubelet_config",
        OPTIONS,
        "set the feature gate CPUManagerPolicyAlphaOptions",
        {PERIOD: "5s"},
        change=added('cpuManagerPolicyOptions: {align-by-socket: "true"}\n'),
    ),
    # What counts before the file, and nodes that others manage.
    "flag": Bad(
        "kubelet_config",
        "--cpu-manager-reconcile-period=1s in ",
        "remove it there, restart the kubelet, run again",
        {PERIOD: "5s"},
        flags("--cpu-manager-reconcile-period=1s"),
    ),
    "flag-gate": Bad(
        "kubelet_config",
        "featureGates.CPUManagerPolicyAlphaOptions: --feature-gates=CPUManagerPolicyAlphaOptions=false in ",
        "remove it there, restart the kubelet, run again",
        {OPTIONS: {"align-by-socket": "true"}},
        flags("--feature-gates=CPUManagerPolicyAlphaOptions=false"),
    ),
    "flag-unreadable": Bad(
        "kubelet_config", "--kube-reserved in ", "found 'cpu', expected key=value", change=flags("--kube-reserved=cpu")
    ),
    "role-flag": Bad(
        ROLE,
        "--cpu-manager-reconcile-period=1s in ",
        "remove it there, restart the kubelet, run again",
        {"kubelet_cpu_manager_reconcile_period": "5s"},
        flags("--cpu-manager-reconcile-period=1s"),
    ),
    "talos": Bad(
        "kubelet_config",
        "Talos manages its kubelets itself",
        "use machine.kubelet.extraConfig",
        {PERIOD: "5s", "config_path": "/" + CONFIG},
        text("etc/os-release", "ID=talos\n"),
    ),
    "memory-state": Bad(
        "checkpoint",
        "var/lib/kubelet/memory_manager_state",
        "these containers would lose their memory: pod uid-db, container server; nothing was written; drain the node",
        {"memory_manager_policy": "None"},
        text("var/lib/kubelet/memory_manager_state", '{"policyName":"Static","entries":{"uid-db":{"server":[]}}}'),
    ),
    "memory-static": Bad(
        "kubelet_config",
        "reserved_memory: the kubelet would not start",
        "over all NUMA nodes",
        {"memory_manager_policy": "Static"},
    ),
    "option-newer": Bad(
        "drift_info",
        OPTIONS,
        "the kubelet 1.31 has",
        {OPTIONS: {"prefer-align-cpus-by-uncorecache": "true"}, "kubelet_version": "v1.31.4"},
    ),
    "socket-in-one-node": Bad(
        "kubelet_config",
        OPTIONS,
        "drop one of the two",
        {"topology_manager_policy": "single-numa-node", OPTIONS: {"align-by-socket": "true"}},
        ALPHA,
    ),
    "half-a-node": Bad(
        "kubelet_config", OPTIONS, "drop align-by-socket", {OPTIONS: {"align-by-socket": "true"}}, ALPHA, "1n2s2c2t"
    ),
    "many-nodes": Bad(
        "kubelet_config",
        "topology_manager_policy",
        "set topologyManagerPolicy: none, or max-allowable-numa-nodes",
        {"topology_manager_policy": "restricted"},
        machine="2s5n1c2t",
    ),
    "duration": Bad("kubelet_config", PERIOD, DURATIONS, {PERIOD: "10"}),
    "duration-word": Bad("kubelet_config", PERIOD, DURATIONS, {PERIOD: "soon"}),
    "duration-negative": Bad("drift_info", PERIOD, "write 0 or more", {PERIOD: "-5s"}),
    "quantity": Bad("kubelet_config", "kube_reserved_cpu", QUANTITIES, {"kube_reserved_cpu": "1 core"}),
    "quantity-negative": Bad("drift_info", "system_reserved_cpu", "write 0 or more", {"system_reserved_cpu": "-1"}),
    # --- reserved CPUs
    "cpu-list": Bad("kubelet_config", RESERVED, "position 3: expected a CPU id", {RESERVED: "0,,4"}),
    "cpu-stride": Bad("drift_info", RESERVED, "write '0,4'", {RESERVED: "0-7:1/4"}),
    "cpu-missing": Bad("kubelet_config", RESERVED, "no CPUs 8, or they are offline); take others", {RESERVED: "0,8"}),
    "cpu-offline": Bad("checkpoint", RESERVED, "or switch them on", {RESERVED: "0,5"}, machine=MACHINE + "+offline5"),
    "reserved-all": Bad("kubelet_config", "CPUs 0-7", FEWER, {RESERVED: "0-7"}),
    "all-by-quantity": Bad("drift_info", "CPUs 0-7", FEWER, {RESERVED: "", "kube_reserved_cpu": "8"}),
    "more-by-quantity": Bad("drift_info", "kubeReserved", "reserve fewer", {RESERVED: "", "kube_reserved_cpu": "9"}),
    "reserved-none": Bad("kubelet_config", "reservedSystemCPUs", "or a cpu in kubeReserved", {RESERVED: ""}),
    "role-none": Bad(ROLE, "reservedSystemCPUs", "or a cpu in kubeReserved", {"kubelet_reserved_system_cpus": ""}),
    "twice-reserved": Bad(
        "drift_info",
        "reserved_system_cpus and reservation exclude each other",
        "remove one",
        {RESERVED: "0", "reservation": {"count": 2}},
        knows_node=False,
    ),
    "role-twice-reserved": Bad(
        ROLE,
        "kubelet_reserved_system_cpus and kubelet_reservation exclude each other",
        "remove one",
        {"kubelet_reserved_system_cpus": "0", "kubelet_reservation": {"count": 2}},
        knows_node=False,
    ),
    "cgroup": Bad(
        "kubelet_config",
        "(systemReservedCgroup is set)",
        "remove systemReservedCgroup",
        change=added("systemReservedCgroup: /system.slice\nenforceNodeAllocatable: [pods, system-reserved]\n"),
    ),
    # --- a checkpoint in use
    "in-use": Bad("checkpoint", CHECKPOINT, DRAIN, TO_NONE, IN_USE),
    "in-use-absent": Bad("checkpoint", CHECKPOINT, DRAIN, {"state": "absent"}, IN_USE),
    "role-in-use": Bad(ROLE, CHECKPOINT, ROLE_DRAIN, {"kubelet_" + name: TO_NONE[name] for name in TO_NONE}, IN_USE),
}

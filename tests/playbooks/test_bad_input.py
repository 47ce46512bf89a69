# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong ends in one message, which names node, file or parameter, and a remedy; the node stays as it is."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import Run, ansible_playbook, fingerprint, play

CONFIG = "var/lib/kubelet/config.yaml"
CHECKPOINT = "var/lib/kubelet/cpu_manager_state"
CPU = "sys/devices/system/cpu/"
CORE = "cpu0/topology/core_cpus"
OUTSIDE = "outside"

OPTIONS = "cpu_manager_policy_options"
PERIOD = "cpu_manager_reconcile_period"
RESERVED = "reserved_system_cpus"
ROLE = "role"

CONFIGURATION = HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"

# 8 CPUs; a core is n, n+4.
MACHINE = "2s1n2c2t"

Change = Callable[[Path], None]


def as_it_is(root: Path) -> None:
    """No change."""


class Bad(NamedTuple):
    """One thing that is wrong, and what the message is to say about it."""

    # A module, or the role kubelet, whose parameters are variables.
    asked: str
    # The file or the parameter that is wrong, and what to do about it: texts in the message.
    subject: str
    remedy: str
    parameters: Mapping[str, Any] = {}
    change: Change = as_it_is
    machine: str = MACHINE
    # In place of the tree.
    root: str = ""
    # Ansible itself refuses some parameters before it knows the node.
    knows_node: bool = True


# --- changes -------------------------------------------------------------------------------------


def text(path: str, content: str | bytes) -> Change:
    """Other content for a file."""

    def change(root: Path) -> None:
        # Not the file of the other trees, which is the same one.
        (root / path).unlink(missing_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    return change


def added(lines: str) -> Change:
    """More lines for the configuration."""
    return text(CONFIG, CONFIGURATION + lines)


def directory(path: str) -> Change:
    """A directory in a file's place."""

    def change(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        (root / path).mkdir()

    return change


def fifo(path: str) -> Change:
    """A pipe that nobody writes to in a file's place: who opens it as a file waits forever."""

    def change(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        os.mkfifo(root / path)

    return change


def led_out(path: str) -> Change:
    """A link to what stands in a file's or directory's place, outside of the tree."""

    def change(root: Path) -> None:
        target = root.parent / OUTSIDE / root.name
        target.parent.mkdir(exist_ok=True)
        (root / path).rename(target)
        (root / path).symlink_to(target)

    return change


def removed(path: str) -> Change:
    """No such file."""
    return lambda root: (root / path).unlink()


def flags(*words: str) -> Change:
    """These flags for the kubelet."""

    def change(root: Path) -> None:
        (root / "etc/default").mkdir(parents=True)
        (root / "etc/default/kubelet").write_text('KUBELET_EXTRA_ARGS="%s"\n' % " ".join(words), encoding="ascii")

    return change


def network_card(numa_node: str) -> Change:
    """A network device eth0 that is attached to this NUMA node."""

    def change(root: Path) -> None:
        device = root / "sys/class/net/eth0/device"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(numa_node + "\n", encoding="ascii")

    return change


def checkpoint(policy: str, default: str, **containers: str) -> Change:
    """A checkpoint with a pod of these containers."""
    assignments = {"a-pod": {name: CPUSet.parse(cpus) for name, cpus in containers.items()}} if containers else {}
    return text(CHECKPOINT, write_checkpoint(policy, State(CPUSet.parse(default), assignments)))


# --- what can be wrong ---------------------------------------------------------------------------

NO_ARCHIVE = "or give a directory with the files of a node"
NO_ROOT = "no such directory; give the directory that holds the node's /sys and /etc"
FIFO = "is not a regular file; put it out of the way"
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

# The pod's CPUs are one core, 1 and 5.
IN_USE = checkpoint("static", "0,2-4,6-7", app="1,5")
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
    "no-text": Bad("cpu_topology_info", "source is lscpu", "text", {"source": "lscpu"}, knows_node=False),
    # --- no kubelet
    "no-kubelet": Bad("kubelet_config", CONFIG, OTHER_FILE, change=removed(CONFIG)),
    "no-kubelet-there": Bad("checkpoint", "etc/kubelet.yaml", OTHER_FILE, {"config_path": "/etc/kubelet.yaml"}),
    "role-no-kubelet": Bad(ROLE, "no-kubelet", "in kubelet_config_path", change=removed(CONFIG)),
    "version": Bad("drift_info", "kubelet_version", "such as 1.36 or v1.35.6", {"kubelet_version": "the newest"}),
    # --- how many CPUs
    "count-0": Bad("reserved_cpus", "count:", "reserve at least one", {"count": 0}),
    "count-all": Bad("reserved_cpus", "count:", "at least one must be left", {"count": 8}),
    "count-more": Bad("kubelet_config", "count:", "at least one must be left", {"reservation": {"count": 9}}),
    "count-splits": Bad("drift_info", "count:", NEAREST, {"reservation": {"count": 3}}),
    "role-count-splits": Bad(ROLE, "count:", NEAREST, {"kubelet_reservation": {"count": 3}}),
    "count-word": Bad("reserved_cpus", "'count'", "convert", {"count": "many"}, knows_node=False),
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
        "reserved_cpus", "count|fraction", "mutually exclusive", {"count": 2, "fraction": 0.1}, knows_node=False
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
        "NUMA node 7 does not exist; there are 0, 1; omit near_device",
        {"reservation": {"count": 2, "near_device": "eth0"}},
        network_card("7"),
    ),
    # --- settings
    "policy": Bad(
        "kubelet_config",
        "cpu_manager_policy",
        "one of: none, static",
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
        "--cpu-manager-reconcile-period in ",
        "remove it there, restart the kubelet, and run again",
        {PERIOD: "5s"},
        flags("--cpu-manager-reconcile-period=1s"),
    ),
    "flag-gate": Bad(
        "kubelet_config",
        "featureGates.CPUManagerPolicyAlphaOptions: --feature-gates in ",
        "remove it there, restart the kubelet, and run again",
        {OPTIONS: {"align-by-socket": "true"}},
        flags("--feature-gates=CPUManagerPolicyAlphaOptions=false"),
    ),
    "flag-unreadable": Bad(
        "kubelet_config", "--kube-reserved in ", "found 'cpu', expected key=value", change=flags("--kube-reserved=cpu")
    ),
    "role-flag": Bad(
        ROLE,
        "--cpu-manager-reconcile-period in ",
        "remove it there, restart the kubelet, and run again",
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
        "reserved_system_cpus|reservation",
        "mutually exclusive",
        {RESERVED: "0", "reservation": {"count": 2}},
        knows_node=False,
    ),
    "role-twice-reserved": Bad(
        ROLE,
        "reserved_system_cpus|reservation",
        "mutually exclusive",
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

# A play in which all hosts fail would end the run: here one is not asked.
BYSTANDER = "bystander"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good node of each machine in BAD, once; not to be changed."""
    directory = tmp_path_factory.mktemp("machines")
    for name in {bad.machine for bad in BAD.values()}:
        make_node(directory / name, name)
    return directory


def make_node(root: Path, machine: str) -> None:
    """A node with a kubelet that is as it should be; its name is its machine."""
    topology = write_machine(root, machine)
    (root / "etc").mkdir()
    (root / "var/lib/kubelet").mkdir(parents=True)
    (root / "etc/hostname").write_text(machine + "\n", encoding="ascii")
    text(CONFIG, CONFIGURATION)(root)
    checkpoint("static", str(topology.online))(root)


def host(root: str, asked: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a node."""
    return {"kubelet_node_root": root, **parameters} if asked == ROLE else {"parameters": {"root": root, **parameters}}


def ask_all(table: Mapping[str, Bad]) -> list[dict[str, Any]]:
    """A play for each module and role that asks the nodes for which it is meant."""
    return [
        entry
        for asked in dict.fromkeys(bad.asked for bad in table.values())
        for entry in ask(asked, [name for name, bad in table.items() if bad.asked == asked])
    ]


def ask(asked: str, host_names: Sequence[str]) -> list[dict[str, Any]]:
    """A play that asks these nodes."""
    names = ",".join([BYSTANDER, *host_names])
    condition = "inventory_hostname != '%s'" % BYSTANDER
    if asked == ROLE:
        return play(hosts=names, roles=[{"role": "kubenode.cpu_manager.kubelet", "when": condition}])
    defaults = {"group/kubenode.cpu_manager.cpu_manager": "{{ parameters }}"}
    return play(
        {"name": "Ask", "kubenode.cpu_manager." + asked: {}, "when": condition}, hosts=names, module_defaults=defaults
    )


# What is found wrong: who only reads reports it.
FOUND = (
    *("config-directory", "config-fifo", "truncated-yaml", "truncated-json", "tab", "empty", "list", "kind"),
    *("no-kind", "latin", "found-policy", "found-cpus", "found-option", "found-quantity", "found-period"),
    *("flag-unreadable", "cgroup"),
)


def test_what_is_found_wrong_is_reported(machines: Path, tmp_path: Path) -> None:
    hosts = {}
    for name in FOUND:
        root = tmp_path / "nodes" / name
        shutil.copytree(machines / MACHINE, root, symlinks=True, copy_function=os.link)
        BAD[name].change(root)
        hosts[name] = {"root": str(root)}
    before = fingerprint(tmp_path / "nodes")
    tasks = [
        {"name": "Ask", "kubenode.cpu_manager." + module: {"root": "{{ root }}", "cpu_cfs_quota": True}}
        for module in ("drift_info", "rollout_info")
    ]
    run = ansible_playbook(tmp_path / "run", play(*tasks), hosts)
    assert run.status == 0, run.account()
    for name, results in run.results.items():
        for result in results:
            (row,) = (row for row in result["drift"] if row["subject"] in ("configuration", "start"))
            assert BAD[name].subject.rpartition("/")[2].partition(":")[0] in row["found"] + str(row["source"]), name
            assert row["remedy"], name
            assert (result["status"], bool(result["found_refusal"])) == ("drift", True), name
        assert results[1]["refusals"], name
    assert fingerprint(tmp_path / "nodes") == before


def test_one_message_and_nothing_changed(machines: Path, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    hosts: dict[str, dict[str, Any]] = {BYSTANDER: {}}
    node_names = {}
    for name, bad in BAD.items():
        root = machines / bad.machine
        node_names[name] = bad.machine
        if bad.change is not as_it_is:
            root, node_names[name] = nodes / name, "worker-" + name
            shutil.copytree(machines / bad.machine, root, symlinks=True, copy_function=os.link)
            text("etc/hostname", "worker-%s\n" % name)(root)
            bad.change(root)
        hosts[name] = host(bad.root or str(root), bad.asked, bad.parameters)
    before = fingerprint(nodes), fingerprint(machines)

    # For what only reads, check mode is the same.
    changing = {name: bad for name, bad in BAD.items() if bad.asked in (ROLE, "kubelet_config", "checkpoint")}
    for rows, mode in ((changing, "--check"), (BAD, "--diff")):
        run = ansible_playbook(tmp_path / "run", ask_all(rows), hosts, mode)
        assert run.status != 0
        assert "Traceback" not in run.output
        messages = {name: one_message(run, name) for name in rows}
        assert {
            name: message for name, message in messages.items() if not says(message, rows[name], node_names[name])
        } == {}
        lasts = {name: run.last(name) for name in rows}
        assert {name: last.get("failure") for name, last in lasts.items() if not is_told(last, name)} == {}
        assert (fingerprint(nodes), fingerprint(machines)) == before


# What programs decide by, when a module fails.
KINDS = (
    *("input", "kubelet", "node", "refused", "permission", "assignments", "another_run", "kubelet_runs"),
    *("no_kubelet", "no_configuration", "would_not_start"),
)
# The text itself says what would be right: these have no remedy beside it.
NO_REMEDY = ("cpu-list", "found-cpus", "flag-unreadable")
# The remedy of these is still within the text of what is wrong.
REMEDY_WITHIN = (
    *("truncated-yaml", "truncated-json", "tab", "list", "kind", "no-kind", "no-mapping", "no-kubelet"),
    *("found-policy", "found-option", "found-quantity", "found-period", "no-kubelet-there", "option", "option-value"),
    *("option-none", "option-alpha", "socket-in-one-node", "half-a-node", "many-nodes", "duration", "duration-word"),
    *("quantity", "cpu-missing", "cpu-offline", "reserved-all", "reserved-none", "cgroup"),
    *("quantity-negative", "kubelet-quantity", "duration-negative", "option-excluded", "option-newer", "cpu-stride"),
    *("all-by-quantity", "more-by-quantity", "empty", "version"),
)


def is_told(result: Mapping[str, Any], name: str) -> bool:
    """Whether programs get a known kind and the remedy. Ansible's own refusals of parameters have no such thing."""
    bad, failure = BAD[name], result.get("failure")
    if bad.asked == ROLE or (failure is None and not bad.knows_node):
        return True
    may_lack = name in NO_REMEDY or name in REMEDY_WITHIN
    return failure is not None and failure["kind"] in KINDS and (bool(failure["remedy"]) or may_lack)


def says(message: str, bad: Bad, node_name: str) -> bool:
    """Whether a message names what is wrong, what to do about it, and the node."""
    return (
        bad.subject in message
        and bad.remedy in message
        and (not bad.knows_node or message.startswith(node_name + ": "))
    )


def one_message(run: Run, host_name: str) -> str:
    """The message of the one task of a host that failed, its last."""
    *others, last = run.results[host_name]
    assert [result["outcome"] for result in others] == ["ok"] * len(others), host_name
    assert last["outcome"] == "failed", host_name
    message = last["msg"]
    assert isinstance(message, str)
    return message


NOBODY = {
    "ansible_become": True,
    "ansible_become_method": "su",
    "ansible_become_user": "nobody",
    # It has no shell to log in with.
    "ansible_become_flags": "-s /bin/sh",
}


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that all users may look into, unlike tmp_path."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def ordinary_user() -> dict[str, Any]:
    """The variables of a host that is worked on without root's rights."""
    if os.geteuid() != 0:
        return {}
    for python in (sys.executable, "/usr/bin/python3"):
        run_it = shlex.join([python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"])
        done = subprocess.run(["su", "nobody", "-s", "/bin/sh", "-c", run_it], stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return {**NOBODY, "ansible_python_interpreter": python}
    pytest.skip("the user nobody can run no Python here")


def hidden(path: str) -> Change:
    """Nobody but root may look at a file or into a directory."""
    return lambda root: (root / path).chmod(0)


def kubespray(root: Path) -> None:
    """A configuration that all may read, and a kubelet's directory that is root's."""
    (root / "etc/kubernetes").mkdir()
    (root / CONFIG).rename(root / "etc/kubernetes/kubelet-config.yaml")
    hidden("var/lib/kubelet")(root)


# What an ordinary user has no right to.
AS_ROOT = "cannot be read: Permission denied; read it as root (become: true)"
FORBIDDEN = {
    "config": Bad("kubelet_config", CONFIG, AS_ROOT, change=hidden(CONFIG)),
    "checkpoint": Bad("checkpoint_info", CHECKPOINT, AS_ROOT, change=hidden(CHECKPOINT)),
    "kubelet": Bad("drift_info", CONFIG, AS_ROOT, change=hidden("var/lib/kubelet")),
    "kubespray": Bad("drift_info", CONFIG, AS_ROOT, change=kubespray),
    "kubespray-checkpoint": Bad(
        "checkpoint_info", CONFIG, AS_ROOT, {"config_path": "/etc/kubernetes/kubelet-config.yaml"}, kubespray
    ),
    "sysfs": Bad("cpu_topology_info", CPU + CORE, AS_ROOT, change=hidden(CPU + CORE)),
}


def test_without_root(ordinary_user: dict[str, Any], open_directory: Path, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {BYSTANDER: {}}
    for name, bad in FORBIDDEN.items():
        make_node(open_directory / name, MACHINE)
        bad.change(open_directory / name)
        hosts[name] = {**host(str(open_directory / name), bad.asked, bad.parameters), **ordinary_user}
    run = ansible_playbook(tmp_path, ask_all(FORBIDDEN), hosts)
    for name, bad in FORBIDDEN.items():
        assert says(one_message(run, name), bad, MACHINE), name


def test_without_the_right_to_write(ordinary_user: dict[str, Any], open_directory: Path, tmp_path: Path) -> None:
    root = open_directory / "node"
    make_node(root, MACHINE)
    (root / "var/lib/kubelet").chmod(0o555)
    before = fingerprint(root)
    hosts = {"node": {**host(str(root), "kubelet_config", {"cpu_manager_reconcile_period": "5s"}), **ordinary_user}}
    plays = ask("kubelet_config", ["node"])
    for mode in (["--check"], []):
        message = one_message(ansible_playbook(tmp_path, plays, {BYSTANDER: {}, **hosts}, *mode), "node")
        assert message == (
            "%s: %s: cannot be written: Permission denied; nothing was written; write it as root (become: true)"
            % (MACHINE, root / CONFIG)
        )
        assert fingerprint(root) == before

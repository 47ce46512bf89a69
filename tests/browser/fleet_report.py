# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of fleets of any size, as data, for tests and benchmarks: many shapes of machines, and few nodes that drift.

fleet_report(10_000) has 40 shapes, 3 % of drift of ten kinds, and 1 % of nodes that were not read. with_markup() makes
a report hostile.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import layout
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import LOOKS
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import node as empty_node
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

# As plugins/plugin_utils/report/shapes.py has it; tests change it at will.
Report = Any

# What each ends, or begins, where it is not escaped.
SCRIPT = "<script>document.title='owned';document.body.id='owned'</script>"
IMAGE = "\"'><img src=x onerror=\"document.title='owned'\">"
CLOSING = "</script></style></title></select></noscript><svg onload=document.title='owned'>\u2028<!--<script>"

_MADE = "2026-11-23T15:04:05Z"
_MACHINES = (
    "2s2n12c2t",
    "2s1n16c2t+interleaved",
    "1s4n2l4c2t",
    "2s4n2l4c2t",
    "2s1n10c2t+interleaved+offline5,29",
    "1s1n32c2t",
    "1s6c2t8e+adjacent",
    "2s1n24c2t+isolated8-15",
)
_KERNELS = ("6.1.0-18-amd64", "5.15.0-113-generic", "6.8.0-45-generic")
_KUBELETS = ("kubeadm 1.35.6", "kubeadm 1.34.9", "k3s 1.35.4")
_RUNTIMES = ("containerd", "CRI-O")
_ZONES = ("fra1", "ams2", "iad3", "sin1")
_WORKLOADS = ("shop/db-{}/server", "orders/postgres-{}/postgres", "media/encoder-{}/ffmpeg", "radio/upf-{}/dataplane")
_DRAIN = "drain the node, then run the playbook rollout with kubelet_cpu_manager_drain"

# The kinds of drift: (check, severity, title, subject, wanted, found, text, remedy)
_KINDS = (
    ("policy-differs", "warning", "The CPU manager's policy is not the wanted one", "cpu_manager_policy", "static",
     "none", "", "run the playbook rollout for the node, or set kubelet_cpu_manager_policy to what the node has"),
    ("reserved-cpus-differ", "warning", "Other CPUs are reserved than wanted", "reserved_system_cpus", "0-1", "0-3",
     "", "run the playbook rollout for the node"),
    ("options-differ", "warning", "The policy's options are not the wanted ones", "cpu_manager_policy_options",
     "{full-pcpus-only: true}", "{}", "", "run the playbook rollout for the node"),
    ("topology-policy-differs", "warning", "The topology manager's policy is not the wanted one",
     "topology_manager_policy", "single-numa-node", "best-effort", "", "run the playbook rollout for the node"),
    ("not-restarted", "warning", "The running kubelet has not read its files since they changed",
     "topology_manager_scope", "pod", "container", "", "restart the kubelet while the node is drained"),
    ("checkpoint-refused", "danger", "The kubelet's next start would fail at its checkpoint", "checkpoint", "", "",
     "the policy of the checkpoint is none, and that of the configuration is static", _DRAIN),
    ("would-not-start", "danger", "The kubelet would not start with its configuration", "configuration", "", "",
     "reservedSystemCPUs: CPU 64 is not online", "correct reservedSystemCPUs in the kubelet's configuration"),
    ("container-cpus-differ", "warning", "A container runs on other CPUs than its own", "shop/db-0/server", "4-5,28-29",
     "0-47", "", "run the playbook repair for the node"),
    ("exclusive-shared", "danger", "Exclusive CPUs belong to two containers", "radio/upf-2/dataplane", "", "",
     "the CPUs 6-7 belong to radio/upf-1/dataplane, too", "delete one of the pods"),
    ("reserved-split-core", "note", "A core is reserved by half", "reserved_system_cpus", "0,24", "0-1",
     "", "reserve both threads of a core"),
)  # fmt: skip
_MESSAGES = {
    "unreachable": "Failed to connect to the host via ssh:\nConnection timed out during banner exchange",
    "failed": "the answer of the node cannot be read: it is no JSON",
    "missing": "the inventory names it, and there is no result",
    "stale": "its result is 51 hours old, and 24 are allowed",
}
_UNREAD = tuple(_MESSAGES)
_WAYS = ("wanted", "files", "kubelet", "checkpoint", "kernel")


def fleet_report(nodes: int = 300, shapes: int = 40, drift: float = 0.03, seed: int = 7) -> Report:
    """Return a report of so many nodes, the same for the same arguments.

    shapes: how many groups; drift: the part of the nodes that have findings. 1 % of the nodes was not read.
    """
    chance = Random(seed)
    groups = [_group(number) for number in range(shapes)]
    made = [_node(number, groups, chance, drift) for number in range(nodes)]
    order = ("refused", "drift", "failed", "unreachable", "missing", "stale", "clean", "nothing wanted", "no kubelet")
    made.sort(key=lambda node: (order.index(node["state"]), node["host"]))
    for group in groups:
        members = [node["state"] for node in made if node["group"] == group["id"]]
        group.update(nodes=len(members), states=dict(Counter(members)))
        del group["topology"]
    checks = {
        name: {
            "severity": severity,
            "title": title,
            "why": "Pods with guaranteed CPUs run on CPUs that others use, too: their latency is not that promised.",
            "remedy": remedy,
            "page": "docs/docsite/rst/checks.rst#%s" % name,
        }
        for name, severity, title, _subject, _wanted, _found, _text, remedy in _KINDS
    }
    return {
        "schema_version": "1.0",
        "kind": "kubenode.cpu_manager/report",
        "fleet": "production, Europe and Asia",
        "title": "CPU drift report",
        "made": _MADE,
        "summary": _summary(made),
        "groups": sorted((group for group in groups if group["nodes"]), key=lambda group: int(group["nodes"])),
        "problems": [
            {
                "file": "slices/a/nodes/worker-fra1-0003.json",
                "text": "is cut off at byte 812",
                "remedy": "read the node again",
            },
            {
                "file": "slices/b/nodes/notes.txt",
                "text": "is no result of a node",
                "remedy": "remove it from the directory of results",
            },
        ],
        "gone": [
            {"host": node["host"], "check": "policy-differs", "subject": "cpu_manager_policy"}
            for node in [node for node in made if node["state"] == "clean"][:4]
        ],
        "checks": checks,
        "nodes": made,
    }


def _summary(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    checks: dict[str, Counter[str]] = {}
    for node in nodes:
        for finding in node["findings"]:
            counts = checks.setdefault(finding["check"], Counter())
            counts["waived" if finding["waived"] else "nodes"] += 1
            counts["new"] += finding["since"] == "new" and not finding["waived"]
    severities = {kind[0]: kind[1] for kind in _KINDS}
    rows: list[dict[str, Any]] = [
        {"check": name, "severity": severities[name], **{key: counts[key] for key in ("nodes", "waived", "new")}}
        for name, counts in checks.items()
    ]
    rows.sort(key=lambda row: (("danger", "warning", "note").index(row["severity"]), -row["nodes"]))
    states = dict(Counter(node["state"] for node in nodes))
    outcome = "danger" if "refused" in states else "drift" if "drift" in states else "clean"
    return {
        "nodes": len(nodes),
        "states": states,
        "checks": rows,
        "gone": 4,
        "outcome": outcome,
        "exit_status": {"danger": 3, "drift": 2, "clean": 0}[outcome],
    }


# --- machines -----------------------------------------------------------------------------------------


def _group(number: int) -> dict[str, Any]:
    """Return a shape; the first ones are those that most nodes have."""
    topology = parse_name(_MACHINES[number % len(_MACHINES)]).topology()
    counts = {"socket": topology.sockets, "NUMA node": topology.numa_nodes, "L3 cache": topology.caches}
    counted = {name: len(members) for name, members in {**counts, "core": topology.cores}.items()}
    parts = ["%d %s%s" % (count, name, "" if count == 1 else "s") for name, count in counted.items()]
    return {
        "id": number,
        "machine": ", ".join(["%d CPUs online" % len(topology.online), *parts]),
        "kernel": _KERNELS[number // 8 % 3 if number % 3 == 0 else 0],
        "kubelet": _KUBELETS[number // 16 % 3],
        "distribution": _KUBELETS[number // 16 % 3].partition(" ")[0],
        "runtime": _RUNTIMES[number % 7 == 6],
        "settings": {
            "cpu_manager_policy": "static",
            "cpu_manager_policy_options": "{full-pcpus-only: true}" if number % 9 else "{}",
            "reserved_system_cpus": "0-1" if number % 5 else "0-3",
            "topology_manager_policy": "single-numa-node" if number < 30 else "restricted",
            "topology_manager_scope": "pod",
            "memory_manager_policy": "None",
        },
        "map": {"boxes": _boxes(layout(topology)), "offline": list(topology.offline)},
        "topology": topology,
    }


def _boxes(members: list[Any]) -> list[dict[str, Any]]:
    names = {"socket": "socket", "numa_node": "NUMA node", "l3_cache": "L3"}
    return [
        {"core": list(member)}
        if isinstance(member, list)
        else {
            "kind": member["kind"],
            "name": "%s %s" % (names[member["kind"]], member["id"]),
            "members": _boxes(member["members"]),
        }
        for member in members
    ]


# --- nodes --------------------------------------------------------------------------------------------


def _node(number: int, groups: list[dict[str, Any]], chance: Random, drift: float) -> dict[str, Any]:
    # Few shapes have most nodes, and each has one at least.
    group = groups[number if number < len(groups) else min(int(chance.expovariate(0.15)), len(groups) - 1)]
    node: dict[str, Any] = empty_node(
        "worker-%s-%04d" % (_ZONES[number % len(_ZONES)], number),
        looked_at="2026-11-23T15:%02d:%02dZ" % divmod(number % 240, 60),
        group=group["id"],
        containers={"version": "2", "kept": str(chance.randint(20, 60)), "different": "0", "skipped": "12"},
        **_use(group["topology"], chance),
    )
    draw = chance.random()
    if number % 100 == 50:
        state = _UNREAD[number // 100 % len(_UNREAD)]
        node.update(state=state, message=_MESSAGES[state])
        if state != "stale":
            looked_at = "" if state == "missing" else node["looked_at"]
            node.update(pools={}, owners=[], containers={}, looked_at=looked_at, group=None)
    elif draw < drift:
        _drift(node, chance)
    elif draw < drift + 0.005:
        node.update(state=chance.choice(("no kubelet", "nothing wanted")))
    elif draw < drift + 0.013:
        node["findings"] = [_finding(_KINDS[chance.choice((0, 9))], chance, waived=True)]
    return node


def _drift(node: dict[str, Any], chance: Random) -> None:
    kinds = chance.sample(_KINDS, chance.choice((1, 1, 1, 2, 3)))
    kinds.sort(key=lambda kind: ("danger", "warning", "note").index(kind[1]))
    node["findings"] = [_finding(kind, chance) for kind in kinds]
    node["state"] = "refused" if kinds[0][1] == "danger" else "drift"
    node["actions"] = "stop kubelet, write configuration, start kubelet"
    for kind in kinds:
        if "_" in kind[3]:
            ways: dict[str, Any] = {**dict.fromkeys(_WAYS, kind[5]), "wanted": kind[4], "kernel": None}
            node["ways"].append({"subject": kind[3], **ways, "odd": ["files", "kubelet", "checkpoint"]})
    if node["state"] == "refused":
        node["refusals"] = ["the kubelet runs pods with exclusive CPUs; %s" % _DRAIN]
    if chance.random() < 0.3:
        node["elsewhere"] = {
            "name": "kubespray",
            "why": "kubespray writes the kubelet's configuration at its next run",
            "snippet": "kubelet_cpu_manager_policy: static\nkubelet_topology_manager_policy: single-numa-node\n",
        }
        node["looks"] = deepcopy(LOOKS)


def _finding(kind: tuple[str, ...], chance: Random, waived: bool = False) -> dict[str, Any]:
    check, severity, _title, subject, wanted, found, text, remedy = kind
    return {
        "check": check,
        "severity": severity,
        "subject": subject,
        "wanted": wanted,
        "found": found,
        "source": "/var/lib/kubelet/config.yaml" if wanted else "/var/lib/kubelet/cpu_manager_state",
        "text": text,
        "remedy": remedy,
        "waived": {"reason": "until the rack is rebuilt", "until": "2026-12-31"} if waived else None,
        "since": chance.choice(("new", "known", "known")),
        "first_seen": "2026-11-02T03:00:00Z",
    }


def _use(topology: Topology, chance: Random) -> dict[str, Any]:
    """Return the pools and owners of a node on which some containers have whole cores."""
    cores = [core.cpus for core in topology.cores]
    reserved, free = cores[0], cores[1:]
    owners, exclusive = [], CPUSet()
    for number in range(chance.randint(2, 9)):
        size = chance.randint(1, 3)
        if len(free) < size + 3:
            break
        start = chance.randrange(len(free) - size)
        taken = CPUSet(cpu for core in free[start : start + size] for cpu in core)
        del free[start : start + size]
        exclusive = exclusive | taken
        owners.append(["exclusive", _WORKLOADS[number % 4].format(chance.randrange(20)), str(taken)])
    shared = topology.online - reserved - exclusive
    pools = {
        "online": topology.online,
        "reserved": reserved,
        "exclusive": exclusive,
        "shared": shared,
        "offline": topology.offline,
        "isolated": topology.isolated,
        "reserved_wanted": cores[0] | cores[1] if chance.random() < 0.1 else "",
    }
    rest = [["reserved", "", str(reserved)], ["shared", "", str(shared)], ["offline", "", str(topology.offline)]]
    return {"pools": {name: str(cpus) for name, cpus in pools.items()}, "owners": owners + rest}


def with_long_texts(report: Report) -> Report:
    """Return the same with names and texts as long as real ones: notes about nodes that are as wanted, and reasons."""
    made = deepcopy(report)
    reason = 'refused: not all reserved cpus: "0-2,24-26" are present in defaultCpuSet: "0-7,9-23,25-31"'
    for node in made["nodes"]:
        if node["state"] == "clean":
            node["host"] += ".eu-central-1.compute.internal"
            note = _finding(_KINDS[9], Random(7))
            node["findings"] += [{**note, "text": "the kubelet counts with halves " * 5}] * 3
        elif node["ways"]:
            ways = {**dict.fromkeys(_WAYS), "wanted": "accepted", "checkpoint": reason}
            node["ways"].append({"subject": "checkpoint", **ways, "odd": ["checkpoint"]})
    return made


# --- a hostile fleet ----------------------------------------------------------------------------------


def with_markup(report: Mapping[str, Any], markup: str) -> Report:
    """Return the report with the markup in place of every text and of every free name; hosts stay distinct by a
    number."""
    hostile: Report = _marked(report, markup)
    for number, node in enumerate(hostile["nodes"]):
        node["host"] = "%s%d" % (markup, number)
    return hostile


def _marked(value: Any, markup: str, free_names: bool = False) -> Any:
    if isinstance(value, str):
        return markup
    if isinstance(value, list):
        return [_marked(item, markup) for item in value]
    if isinstance(value, dict):
        free = {"settings", "states", "checks"}
        return {
            markup if free_names else key: _marked(item, markup, free_names=key in free) for key, item in value.items()
        }
    return value

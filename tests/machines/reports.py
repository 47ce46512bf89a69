# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of fleets that exist only as data: with nodes of every state, with hostile texts, and of any size.

report()                                      # a node of every state, a finding of every kind
report(nodes=[node("a", findings=[finding()])], fleet="east")
hostile(texts)                                # the same report with other texts in its fields
big(10000)                                    # most nodes clean, 3 % with drift
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from itertools import cycle
from typing import Any, Iterable, Mapping, Sequence

from hypothesis import strategies as st

MADE = "2026-11-23T15:04:05Z"
LOOKED_AT = "2026-11-23T15:00:00Z"
UNREAD = ("failed", "unreachable", "missing", "stale")
STATES = ("clean", "nothing wanted", "no kubelet", "drift", "refused", *UNREAD)

CHECKS: dict[str, dict[str, str]] = {
    check: {
        "severity": severity,
        "title": title,
        "why": "Containers would have other CPUs than they were given.",
        "remedy": "Run the playbook rollout.",
        "page": "docs/docsite/rst/checks.rst#%s" % check,
    }
    for check, severity, title in (
        ("checkpoint-refused", "danger", "The kubelet would refuse the checkpoint"),
        ("policy-differs", "warning", "The CPU manager's policy is not the wanted one"),
        ("cpuset-differs", "warning", "A container has other CPUs than the checkpoint gives it"),
        ("field-differs", "warning", "A field that goes with a setting is not as it has to be"),
        ("change-refused", "warning", "A rollout would refuse to change the node"),
        ("reservation-splits-cores", "note", "The reservation splits cores"),
    )
}

# What a node could send: markup of every form, escape sequences, wide and invisible characters, no character at all.
HOSTILE = (
    "<script>alert(1)</script>",
    "]]></failure><failure>",
    '" onload="x',
    "a | b \\| c \\\\| d",
    "`code` ``more`` `",
    "@everyone see #1 and https://example.com/ www.example.com :tada:",
    "[link](https://example.com) ![image](https://example.com/i.png)",
    "# heading\n- item\n\n| a | b |\n|---|---|\n",
    "\x1b[31mred\x1b]0;title\x07",
    "\x00\x08\r\n\t\u2028\ufeff",
    "\ud800\uffff\ufffe",
    "漢字かな漢字かな漢字かな漢字かな漢字かな漢字かな漢字かな",
    "o\u0308" * 50,
    'a="b\\",c} 1\n# TYPE evil counter\nevil 1',
    "%s %d {0} $(x) \\N{DIGIT ONE} \\1",
    "x" * 3000,
    "",
)


# What a node was looked at for: two containers, layers or groups of each look.
LOOKS: dict[str, Any] = {
    "isolation": {
        "is_measured": True,
        "seconds": 5.002,
        "containers": [
            {
                "container": "shop/db-0/server",
                "cpus": "4-5",
                "verdict": "disturbed",
                "own_percent": 93.1,
                "foreign_percent": 3.2,
                "by": ["kernel thread kworker/5:1-events 6.4 %", "interrupts 12 eth0 0.1 %"],
            },
            {
                "container": "shop/db-1/server",
                "cpus": "6",
                "verdict": "",
                "own_percent": None,
                "foreign_percent": None,
                "by": [],
            },
        ],
        "left_out": 0,
    },
    "throttling": {
        "is_measured": True,
        "seconds": None,
        "containers": [
            {
                "container": "shop/web-1/app",
                "exclusive": "",
                "limit_cpus": 0.5,
                "quota_us": 50000,
                "period_us": 100000,
                "limit_of": "container",
                "throttled_percent": 40.0,
            },
            {
                "container": "shop/db-0/server",
                "exclusive": "4-5",
                "limit_cpus": None,
                "quota_us": None,
                "period_us": None,
                "limit_of": "",
                "throttled_percent": None,
            },
        ],
        "left_out": 3,
    },
    "housekeeping": {
        "is_measured": True,
        "reserved": "0-1",
        "layers": [
            {
                "layer": "interrupts",
                "settings": 40,
                "to_change": 31,
                "fixed": 8,
                "examples": ["new interrupts: 0-47", "24 eth0-0: 0-47", "25 eth0-1: 3"],
            },
            {"layer": "slices", "settings": 4, "to_change": 0, "fixed": 0, "examples": []},
        ],
    },
    "cache": {
        "is_measured": True,
        "exclusive": "4-6",
        "groups": [
            {
                "group": "kubenode.exclusive",
                "owner": "ours",
                "mode": "exclusive",
                "cpus": "4-6",
                "ways": "L3 0: f, 1: f",
                "processes": 0,
                "occupancy": 8126464,
            },
            {
                "group": "/",
                "owner": "root",
                "mode": "shareable",
                "cpus": "0-3,7",
                "ways": "L3 0: 7f0, 1: 7f0",
                "processes": 0,
                "occupancy": None,
            },
        ],
        "left_out": 0,
    },
    "trial": {
        "is_measured": True,
        "seconds": 3.1,
        "trials": [
            {
                "kubelet": "/usr/local/bin/kubelet-1.37",
                "version": "1.37.0",
                "starts": False,
                "message": "unknown flag: --x",
                "checkpoint": "2 -> 4",
                "differs": True,
            }
        ],
    },
}


def finding(check: str = "policy-differs", **parts: Any) -> Any:
    """Return a finding; for a check that is not in CHECKS its severity is to be given."""
    return {
        "check": check,
        "severity": parts.get("severity") or CHECKS[check]["severity"],
        "subject": "cpu_manager_policy",
        "wanted": "static",
        "found": "none",
        "source": "/var/lib/kubelet/config.yaml",
        "text": "",
        "remedy": "set kubelet_cpu_manager_policy",
        "waived": None,
        "since": "",
        "first_seen": "",
        **parts,
    }


def node(host: str = "worker-1", state: str = "clean", **parts: Any) -> Any:
    """Return a node without findings."""
    return {
        "host": host,
        "state": state,
        "looked_at": "" if state == "missing" else LOOKED_AT,
        "group": None if state in (*UNREAD, "no kubelet") else 0,
        "message": "",
        "findings": [],
        "ways": [],
        "actions": "",
        "refusals": [],
        "elsewhere": {},
        "containers": {},
        "pools": {},
        "owners": [],
        **parts,
    }


def group(**parts: Any) -> Any:
    """Return a group of nodes of one shape, of four CPUs."""
    cores = [{"core": [0, 2]}, {"core": [1, 3]}]
    return {
        "id": 0,
        "machine": "4 CPUs online, 1 socket, 1 NUMA node, 1 L3 cache, 2 cores",
        "kernel": "6.1.0-18-amd64",
        "kubelet": "kubeadm 1.35.6",
        "distribution": "kubeadm",
        "runtime": "containerd",
        "settings": {"cpu_manager_policy": "static"},
        "nodes": 3,
        "states": {"clean": 2, "drift": 1},
        "map": {"boxes": [{"kind": "socket", "name": "socket 0", "members": cores}], "offline": []},
        **parts,
    }


def nodes_of_every_state() -> list[Any]:
    """Return the worst first; with findings that are waived, new, in words, notes, and of a check that is not
    described."""
    in_words = {"subject": "checkpoint", "wanted": "", "found": "", "text": "the checksum is wrong"}
    refusal = {**in_words, "subject": "", "text": "running containers would lose CPUs", "remedy": ""}
    container = {
        "subject": "container shop/db-0/server",
        "wanted": "4-5",
        "found": "0-3 (cpuset.cpus: 0-7)",
        "remedy": "",
    }
    note = finding(
        "reservation-splits-cores", subject="", wanted="", found="", text="the reservation 0-1 splits cores", remedy=""
    )
    return [
        node(
            "worker-7",
            "refused",
            findings=[finding("checkpoint-refused", **in_words), finding("change-refused", **refusal)],
            refusals=["running containers would lose CPUs"],
        ),
        node("worker-6", "failed", message="worker-6: the module failed\nin its second line"),
        node("worker-8", "unreachable", message="no route to host"),
        node("worker-9", "missing"),
        node("worker-10", "stale", findings=[finding()]),
        *(
            node(
                host,
                "drift",
                findings=[
                    finding(since="new"),
                    finding("cpuset-differs", **container),
                    finding("field-differs", waived={"reason": "until the | move", "until": "2026-12-31"}),
                    note,
                ],
                ways=[
                    {
                        "subject": "cpu_manager_policy",
                        "wanted": "static",
                        "files": "none",
                        "kubelet": None,
                        "checkpoint": "none",
                        "kernel": None,
                        "odd": ["files", "checkpoint"],
                    }
                ],
                actions="stop kubelet, write configuration, start kubelet",
                elsewhere={"name": "kubespray", "why": "its next run writes the file anew", "snippet": "a: 1\n"},
                containers={"version": "2", "kept": "40", "different": "1", "skipped": "12"},
                pools={
                    "online": "0-47",
                    "reserved": "0-1",
                    "exclusive": "4-5",
                    "shared": "2-3,6-47",
                    "stranded": "2-3",
                },
                owners=[["exclusive", "shop/db-0/server", "4-5"], ["reserved", "", "0-1"]],
            )
            for host in ("worker-2", "worker-3", "worker-4")
        ),
        node("worker-5", "drift", findings=[finding("own-check", severity="danger", found="")]),
        node("bastion", "no kubelet"),
        node("worker-11", "nothing wanted", looks=deepcopy(LOOKS)),
        node("worker-1", findings=[note]),
        node("worker-12", findings=[finding("field-differs", waived={"reason": "wanted so", "until": ""})]),
    ]


def report(nodes: Sequence[Mapping[str, Any]] | None = None, **parts: Any) -> Any:
    """Return a whole report, its summary counted from the nodes."""
    chosen = nodes_of_every_state() if nodes is None else list(nodes)
    return {
        "schema_version": "1.0",
        "kind": "kubenode.cpu_manager/report",
        "fleet": "",
        "title": "CPU drift report",
        "made": MADE,
        "summary": summary(chosen),
        "groups": [group()],
        "problems": [
            {"file": "slices/a/nodes/x.json", "text": "is cut off at byte 812", "remedy": "copy the file again"}
        ],
        "gone": [
            *(gone(host, "policy-differs", "cpu_manager_policy") for host in ("worker-1", "worker-11", "worker-12")),
            gone("worker-1", "cpuset-differs", "container shop/db-0/server"),
        ],
        "checks": {check: dict(about) for check, about in CHECKS.items()},
        "nodes": chosen,
        **parts,
    }


def gone(host: str, check: str, subject: str) -> Any:
    """Return a finding of the baseline that is gone."""
    return {"host": host, "check": check, "subject": subject}


def summary(nodes: Sequence[Mapping[str, Any]]) -> Any:
    """Return the part `summary` of a report, as the contract of the report has it."""
    rows: dict[str, dict[str, Any]] = {}
    for item in nodes:
        for check in dict.fromkeys(found["check"] for found in item["findings"]):
            alike = [found for found in item["findings"] if found["check"] == check]
            start = {"check": check, "severity": alike[0]["severity"], "nodes": 0, "waived": 0, "new": 0}
            row = rows.setdefault(check, start)
            row["nodes"] += any(not found["waived"] for found in alike)
            row["waived"] += any(found["waived"] for found in alike)
            row["new"] += any(found["since"] == "new" for found in alike)
    severities = {row["severity"] for row in rows.values() if row["nodes"]}
    states = Counter(item["state"] for item in nodes)
    outcome, status = "clean", 0
    for wanted, found, number in (
        ("unknown", any(state in states for state in UNREAD), 1),
        ("drift", "warning" in severities, 2),
        ("danger", "danger" in severities, 3),
    ):
        outcome, status = (wanted, number) if found else (outcome, status)
    order = ("danger", "warning", "note")
    return {
        "nodes": len(nodes),
        "states": dict(states),
        "checks": sorted(rows.values(), key=lambda row: (order.index(row["severity"]), -row["nodes"])),
        "gone": 4,
        "outcome": outcome,
        "exit_status": status,
    }


# --- hostile ------------------------------------------------------------------------------------------

# What the report itself decides, and no node.
OF_THE_REPORT = frozenset(
    [
        "schema_version",
        "kind",
        "made",
        "looked_at",
        "state",
        "severity",
        "outcome",
        "check",
        "since",
        "first_seen",
        "odd",
        "verdict",
    ]
)


def hostile(texts: Iterable[str] = HOSTILE, keep: Iterable[str] = OF_THE_REPORT) -> Any:
    """Return the report of every state with these texts, in turn, in place of all texts but those of the keys in
    `keep`."""
    endless, kept = cycle(texts), frozenset(keep)

    def changed(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: part if key in kept else changed(part) for key, part in value.items()}
        if isinstance(value, list):
            return [changed(part) for part in value]
        return next(endless) if isinstance(value, str) else value

    result = changed(report())
    assert isinstance(result, dict)
    return result


# One text or several, in turn in all places.
hostile_texts = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(HOSTILE)), min_size=1, max_size=6)


# --- big ----------------------------------------------------------------------------------------------


def big(count: int, alike: bool = True) -> Any:
    """Return a report of `count` nodes: 3 % have drift, 1 % cannot be read, and half have a note; alike: with equal
    values."""
    nodes = []
    note = finding(
        "reservation-splits-cores", subject="", wanted="", found="", text="the reservation 0-1 splits cores", remedy=""
    )
    for number in range(count):
        host, notes = "worker-%d.example" % number, [note] if number % 2 else []
        if number % 100 == 50:
            nodes.append(node(host, "unreachable", message="%s: no route to host" % host))
        elif number % 100 in (3, 47, 71):
            found = "none" if alike else "0-%d" % number
            checks = list(CHECKS)[number // 100 % 4 :][:2]
            nodes.append(node(host, "drift", findings=[*(finding(check, found=found) for check in checks), *notes]))
        else:
            nodes.append(node(host, findings=notes))
    order = ("unreachable", "drift", "clean")
    return report(sorted(nodes, key=lambda item: order.index(item["state"])))

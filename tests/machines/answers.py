# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nodes answer to rollout_info: one answer with every part, and any JSON in place of any of its parts."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterator

import jsonschema
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

# 2026-11-23T15:04:05Z
MADE = 1795446245.0
LOOKED_AT = "2026-11-23T15:00:00Z"
TOPOLOGY: dict[str, Any] = parse_name("2s1n2c2t").topology().to_dict()
# The longest that a text may be: 20,000 characters, each of them as an escape such as \U000e0001.
LONGEST = 20002 * 10

ANSWER: dict[str, Any] = {
    "status": "drift",
    "topology": TOPOLOGY,
    "kernel": "6.1.0-18-amd64",
    "kubelet": {"distribution": "kubeadm", "version": "1.35.6", "cri_socket": "/run/containerd/containerd.sock"},
    "wanted": {"cpu_manager_policy": "static"},
    "found": {"cpu_manager_policy": "none", "cpu_manager_reconcile_period": "10s"},
    "drift": [
        {
            "subject": "cpu_manager_policy",
            "found": "none",
            "wanted": "static",
            "source": "/var/lib/kubelet/config.yaml",
            "remedy": "set it",
        }
    ],
    "actions": ["stop_kubelet", "start_kubelet"],
    "checkpoint": {"verdict": "accepted", "policy": "none"},
    "enforcement": {"version": 2, "containers": {"kept": 40, "different": 1, "skipped": 12}},
    "cpus": {
        "online": "0-7",
        "reserved": "0,4",
        "exclusive": "1-2",
        "shared": "3",
        "stranded": "3",
        "reserved_wanted": "0-1",
    },
    "owners": [
        {"use": "exclusive", "owner": "a/b/c", "cpus": "1"},
        {"use": "exclusive", "owner": "a/b/d", "cpus": "2"},
        {"use": "reserved", "owner": "", "cpus": "0,4"},
        {"use": "shared", "owner": "", "cpus": "3,5-7"},
    ],
    "elsewhere": {"name": "kubespray", "why": "its next run writes the file anew", "snippet": "a: 1\n"},
    "refusals": [{"kind": "refused", "where": "config.yaml", "text": "it is a link", "remedy": "remove it"}],
    "notes": ["the reservation splits cores", "a note"],
    "note_checks": ["reservation-splits-cores", ""],
}
# To the further looks, by their names.
LOOKS: dict[str, Any] = {
    "isolation": {
        "seconds": 5.002,
        "threshold": 1.0,
        "containers": [
            {
                "pod_uid": "8dbda0f5",
                "pod": "shop/db-0",
                "container": "server",
                "cpus": "1",
                "verdict": "disturbed",
                "own_percent": 93.1,
                "foreign_percent": 6.4,
                "interrupts": 1250,
                "by": [{"kind": "kernel thread", "name": "kworker/1:1-events", "cpus": "1", "percent": 6.4}],
            },
            {"pod_uid": "7a", "pod": "", "container": "", "cpus": "2", "verdict": "idle", "by": []},
        ],
        "findings": [
            {
                "check": "exclusive-cpus-disturbed",
                "subject": "shop/db-0/server",
                "wanted": "CPUs 1 for itself",
                "found": "in 5.0 s: kernel thread kworker/1:1-events: 6.4 % of a CPU, on CPUs 1",
                "remedy": "keep kernel threads off",
            }
        ],
        "notes": ["the reservation splits cores", "tasks were left out"],
        "note_checks": ["reservation-splits-cores", "isolation-unmeasured"],
    },
    "throttling": {
        "kernel": "6.1.0-18-amd64",
        "hierarchy": {"version": 2, "mount": "/sys/fs/cgroup"},
        "seconds": None,
        "containers": [
            {
                "pod_uid": "uid-web",
                "pod": "shop/web-1",
                "container": "app",
                "exclusive": "",
                "limit": {"cgroup": "pods/web", "cpus": 0.5},
                "throttled_percent": 40.0,
            },
            {
                "pod_uid": "uid-db",
                "pod": "shop/db-0",
                "container": "server",
                "exclusive": "1",
                "limit": {"cgroup": "pods/db", "cpus": 1.0},
                "throttled_percent": None,
            },
            {"pod_uid": "uid-free", "pod": "shop/free", "container": "app", "exclusive": "", "limit": None},
        ],
        "cgroups": {
            "pods/web": {"kind": "container", "quota_us": 50000, "period_us": 100000},
            "pods/db": {"kind": "pod", "quota_us": 100000, "period_us": 100000},
        },
        "findings": [
            {
                "check": "container-throttled",
                "subject": "shop/web-1/app",
                "wanted": "throttled in at most 25 % of the periods",
                "found": "throttled in 400 of 1000 periods",
                "remedy": "raise the limit",
            }
        ],
        "notes": [],
        "note_checks": [],
    },
    "housekeeping": {
        "reserved": "0-1",
        "reserved_source": "options",
        "online": "0-7",
        "layers": [
            {
                "layer": "slices",
                "name": "system.slice",
                "path": "/sys/fs/cgroup/system.slice/cpuset.cpus",
                "wanted": "0-1",
                "found": None,
                "effective": "0-7",
                "problem": "",
            },
        ],
        "interrupts": [
            {
                "layer": "interrupts",
                "name": "24 eth0-0",
                "path": "/proc/irq/24/smp_affinity_list",
                "wanted": "0-1",
                "found": "0-7",
                "effective": "3",
                "problem": "",
            },
            {
                "layer": "interrupts",
                "name": "25 nvme0q1",
                "path": "/proc/irq/25/smp_affinity_list",
                "wanted": None,
                "found": "3",
                "effective": "3",
                "problem": "fixed",
            },
        ],
        "interrupts_left_out": 0,
        "findings": [
            {
                "check": "host-on-exclusive-cpus",
                "subject": "slices",
                "wanted": "host's processes run on the reserved CPUs 0-1 only",
                "found": "1 of 1 may run elsewhere: system.slice (no limit)",
                "remedy": "run the role housekeeping",
            }
        ],
        "notes": [],
        "note_checks": [],
    },
    "cache": {
        "supported": True,
        "mounted": True,
        "exclusive": "4-6",
        "groups": [
            {
                "name": "/",
                "owner": "root",
                "mode": "shareable",
                "cpus": "0-3,7",
                "schemata": {"L3": {"0": "7f0", "1": "7f0"}, "MB": {"0": "100", "1": "100"}},
                "processes": 0,
                "counted": {"0": {"occupancy": None}},
            },
            {
                "name": "kubenode.exclusive",
                "owner": "ours",
                "mode": "shareable",
                "cpus": "4-5",
                "schemata": {"L3": {"0": "f", "1": "f"}},
                "processes": 0,
                "counted": {"0": {"occupancy": 4096}, "1": {"occupancy": 1024}},
            },
        ],
        "partition": {"exclusive_share": 4, "mode": "shareable", "mount": False},
        "findings": [
            {
                "check": "cache-partition-differs",
                "subject": "resctrl",
                "wanted": "as by the settings and the checkpoint",
                "found": "to write: kubenode.exclusive, cpus_list: 4-6",
                "remedy": "run the role cache",
            }
        ],
        "notes": [],
        "note_checks": [],
    },
    "impact": {
        "node": {"changes": True, "exclusive": 2, "allocatable": 10, "stranded": 0, "shared": 14},
        "workloads": [
            {
                "workload": "ReplicaSet shop/db-6c9f",
                "fate": "refused",
                "when_empty": True,
                "pods": 2,
                "refused": 2,
                "reason": "SMTAlignmentError",
                "message": "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
                "why": "",
                "cure": "ask for 4 CPUs instead of 3",
                "inexact": "",
            },
            {"workload": "StatefulSet shop/queue", "fate": "gains", "when_empty": False, "pods": 1, "refused": 0},
            {"workload": "DaemonSet shop/agent", "fate": "stays", "when_empty": False, "pods": 1, "refused": 0},
        ],
        "findings": [
            {
                "check": "pods-would-be-refused",
                "subject": "ReplicaSet shop/db-6c9f",
                "wanted": "2 pods admitted",
                "found": "2 refused, also by the empty node: SMTAlignmentError",
                "remedy": "ask for 4 CPUs instead of 3",
            }
        ],
        "notes": ["not counted, as they cannot be read: shop/odd"],
        "note_checks": ["impact-unmeasured"],
    },
    "trial": {
        "starts": False,
        "message": "unknown flag: --x",
        "reason": "",
        "version": "1.37.0",
        "seconds": 0.3,
        "runtime": "/usr/bin/containerd",
        "not_tried": [],
        "program": "/usr/local/bin/kubelet-1.37",
        "prediction_differs": True,
        "checkpoint_format": {"before": 2, "after": 4},
        "findings": [
            {
                "check": "next-kubelet-refuses-start",
                "subject": "/usr/local/bin/kubelet-1.37",
                "wanted": "starts",
                "found": "kubelet 1.37.0 does not start: unknown flag: --x",
                "remedy": "",
            },
            {
                "check": "prediction-differs",
                "subject": "/usr/local/bin/kubelet-1.37",
                "wanted": "predicted: a start",
                "found": "kubelet 1.37.0 does not start",
                "remedy": "",
            },
        ],
        "notes": [],
        "note_checks": [],
    },
}
CLEAN_ANSWER: dict[str, Any] = {"status": "clean", "topology": TOPOLOGY, "found": {"cpu_manager_policy": "static"}}

STATUSES = ("clean", "nothing wanted", "no kubelet", "drift", "refused", "failed", "unreachable", "missing", "stale")

# Any value of JSON, and often one that has a meaning somewhere in an answer.
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.sampled_from(["0-3", "static", "exclusive", "container a/b/c", "cpu_manager_policy", "\x1b[31m", *STATUSES]),
        st.sampled_from(sorted(CHECKS)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=5), st.sampled_from(["subject", "text", "0"])), inner, max_size=3),
    ),
    max_leaves=6,
)


def _changed(part: Any) -> st.SearchStrategy[Any]:
    """Return the part with any value in place of one or several of those in it."""
    if isinstance(part, dict):
        return st.fixed_dictionaries({}, optional={key: _changed(value) for key, value in part.items()})
    if isinstance(part, list):
        return st.one_of(json_values, st.lists(st.one_of([json_values, *map(_changed, part[:1])]), max_size=4))
    return st.one_of(st.just(part), json_values)


# Answers that are wrong in some of their parts only, and any value at all.
answers = st.one_of(
    json_values,
    _changed(ANSWER),
    st.builds(
        lambda changed, status: {**ANSWER, **changed, "status": status}, _changed(ANSWER), st.sampled_from(STATUSES)
    ),
    st.builds(lambda key, value: {**ANSWER, key: value}, st.sampled_from([*ANSWER, "failed", "msg"]), json_values),
    st.builds(
        lambda key, value: {**ANSWER, "topology": {**TOPOLOGY, key: value}},
        st.sampled_from(sorted(TOPOLOGY)),
        json_values,
    ),
)


# Further looks that are wrong in some of their parts only, and any value at all.
looks = st.one_of(
    st.dictionaries(st.sampled_from(sorted(LOOKS)), json_values),
    _changed(LOOKS),
    st.builds(
        lambda name, key, value: {**LOOKS, name: {**LOOKS[name], key: value}},
        st.sampled_from(sorted(LOOKS)),
        st.sampled_from(sorted({key for look in LOOKS.values() for key in look} | {"failed", "msg"})),
        json_values,
    ),
)


def result(
    host: str = "worker-1",
    answer: Any = None,
    looked_at: str = LOOKED_AT,
    running: Any = None,
    waivers: Any = (),
    looks: Any = None,
) -> Result:
    """Return what a look gave; without an answer that of a node with drift."""
    return Result(
        host, looked_at, ANSWER if answer is None else answer, running or {}, list(waivers), looks or {}, "", True
    )


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in a value, also the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from texts_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from texts_in(part)
    else:
        assert value is None or isinstance(value, (int, float)), type(value)


def can_be_shown(text: str) -> bool:
    """Return whether it has nothing that a terminal or a browser obeys, and is not too long."""
    return len(text) <= LONGEST and not any(
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        for character in text
        if character != "\n"
    )


@lru_cache(maxsize=None)
def _validator() -> Any:
    schema = Path(__file__).parents[2] / "docs" / "schema" / "report-1.json"
    return jsonschema.Draft202012Validator(json.loads(schema.read_text("utf-8")))


def check_report(report: Any) -> None:
    """Fail unless it is a report of the published schema, all of whose texts can be shown."""
    assert [(list(error.absolute_path), error.message[:200]) for error in _validator().iter_errors(report)] == []
    assert [text for text in texts_in(report) if not can_be_shown(text)] == []

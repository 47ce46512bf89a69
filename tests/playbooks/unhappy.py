# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong in each action plugin, and what its message says: the same with each ansible-core.

How Ansible hands an error on differs from series to series, and so does what it puts into a result beside the message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

CHECKOUT = Path(__file__).parent.parent.parent
NO_ROOT = "/no/such/root: no such directory; give the directory that holds the node's /sys and /etc"
# What says that an error was not met.
BUGS = ("serializable", "Traceback", "Unexpected", "AnsibleTagged", "<class")


class Unhappy(NamedTuple):
    """A task that fails: the module, its options, and a part of its message."""

    module: str
    options: Mapping[str, Any]
    said: str


TABLE = (
    Unhappy("rollout_info", {"root": "/no/such/root"}, NO_ROOT),
    Unhappy(
        "rollout_info", {"root": "/no/such/root", "drain": "perhaps"}, "drain: 'perhaps' is neither true nor false"
    ),
    Unhappy("node_report", {"root": "/no/such/root", "directory": "report"}, NO_ROOT),
    Unhappy(
        "node_report",
        {"directory": "report", "look_at": ["everything"]},
        "look_at: 'everything' is not possible; take one of",
    ),
    Unhappy("node_report", {"directory": "report", "root": "/", "waivers": [{"check": "none"}]}, "has no reason"),
    Unhappy("fleet_report", {"directory": "report", "baseline": "/nowhere.json"}, "/nowhere.json: cannot be read"),
    Unhappy(
        "fleet_report",
        {"directory": "report", "fail_on": "drfit"},
        "fail_on: 'drfit' is not possible; did you mean drift?",
    ),
    Unhappy(
        "policy_simulation", {"directory": "out", "host": "node", "machine": "2 things"}, "is not a count of something"
    ),
    Unhappy(
        "settings_proposal",
        {"plans": {}, "wishes": {"node": {"workload": "games"}}},
        "cpu_manager_workload: 'games' is not possible",
    ),
    Unhappy(
        "isolation_benchmark_report", {"directory": "out", "forms": ["pictures"]}, "forms: 'pictures' is not possible"
    ),
    Unhappy("kubernetes_core_check", {}, "purpose: is missing; set it"),
)


def rows() -> tuple[Unhappy, ...]:
    """Return all of them, and a node that is not there for each action plugin that has none here."""
    named = {row.module for row in TABLE}
    others = sorted(path.stem for path in (CHECKOUT / "plugins" / "action").glob("*.py"))
    return (*TABLE, *(Unhappy(name, {"root": "/no/such/root"}, "") for name in others if name not in named))


def unhappy_plays() -> list[dict[str, Any]]:
    """Return one play, in which each task fails and the next is run."""
    tasks = [
        {"name": str(number), "kubenode.cpu_manager." + row.module: dict(row.options), "ignore_errors": True}
        for number, row in enumerate(rows())
    ]
    return [{"name": "Fail", "hosts": "all", "gather_facts": False, "tasks": tasks}]


def unhappy_problems(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the results of these tasks on one host."""
    problems = []
    by_name = {result["task"]: result for result in results}
    for number, row in enumerate(rows()):
        result = by_name.get(str(number), {})
        message = str(result.get("msg", ""))
        if result.get("outcome") != "failed" or not message or row.said not in message:
            problems.append("%s: it says %r, not %r" % (row.module, message, row.said))
        if any(bug in message for bug in BUGS) or (row.said and message.count(row.said) > 1):
            problems.append("%s: it says %r" % (row.module, message))
    return problems

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the report of a large fleet takes: of HOSTS local hosts beside a ping, and of 10,000 saved results."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import time_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result, write_result
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

from .drift import CONFIGURATION, make_node
from .tasks import PING

HOSTS = int(os.environ.get("HOSTS", "1000"))
FORKS = 20
LIMIT = 1.5

RESULTS = 10000
SHAPES = 40
# One node in so many drifts.
DRIFTING = 33
MOST_SECONDS, MOST_MIB, MOST_PAGE_MB = 60.0, 1024, 20
FORMS = ["json", "html", "junit", "prometheus", "markdown", "table"]

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "reserved_system_cpus": "0-1",
}
# What is wrong on the nodes that drift: other wanted settings, or another text of the configuration or the checkpoint.
TROUBLES: tuple[dict[str, Any], ...] = (
    {"wanted": {"cpu_manager_policy": "none", "cpu_manager_policy_options": {}}},
    {"wanted": {"cpu_manager_policy_options": {}}},
    {"wanted": {"cpu_manager_reconcile_period": "5s"}},
    {"wanted": {"topology_manager_policy": "restricted"}},
    {"wanted": {"reserved_system_cpus": "0-3"}},
    {"wanted": {"cpu_cfs_quota": False}},
    {"configuration": CONFIGURATION + "cpuManagerPolcy: none\n"},
    {"configuration": "apiVersion: [\n"},
    {"configuration": CONFIGURATION.replace("reservedSystemCPUs: 0-1", "reservedSystemCPUs: 0-9999")},
    {"checkpoint": '{"policyName": "sta'},
)


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    with tempfile.TemporaryDirectory() as name:
        kept = measure_results(Path(name))
        return measure_hosts(Path(name)) and kept


# --- 10,000 results ---------------------------------------------------------------------------------


def measure_results(directory: Path) -> bool:
    """Return all forms of the report of many results, as the playbook `report` makes them."""
    for number, answer in zip(range(RESULTS), _answers(directory)):
        result = Result("worker-%05d" % number, time_of(time.time()), answer, {}, [])
        write_result(str(directory / "results"), result)
    variables = {
        "drift_report_directory": str(directory / "report"),
        "drift_report_sources": [str(directory / "results")],
        "drift_report_forms": FORMS,
    }
    before = time.monotonic()
    _run(["kubenode.cpu_manager.report", "-e", json.dumps(variables)])
    seconds = time.monotonic() - before
    mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    page = (directory / "report/drift.html").stat().st_size / 1e6
    print("The report of %d results of %d shapes, all forms:" % (RESULTS, SHAPES))
    print("  %.1f s (limit %d), %d MiB (limit %d)" % (seconds, MOST_SECONDS, mib, MOST_MIB))
    print("  the page has %.1f MB (limit %d)" % (page, MOST_PAGE_MB))
    return seconds <= MOST_SECONDS and mib <= MOST_MIB and page <= MOST_PAGE_MB


def _answers(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the answers of nodes of all shapes in turn; one in DRIFTING nodes is not as wanted."""
    roots = [make_node(directory, _shape(number)) for number in range(SHAPES)]
    clean = [_answer(root, {}) for root in roots]
    drifting = [[_answer(root, trouble) for trouble in TROUBLES] for root in roots]
    for number in range(sys.maxsize):
        shape = number % SHAPES
        is_drifting = number % DRIFTING == 0
        yield drifting[shape][number // DRIFTING % len(TROUBLES)] if is_drifting else clean[shape]


def _shape(number: int) -> str:
    """Return the shape of one of 40 machines, of 1 or 2 sockets, with 8 to 176 CPUs."""
    name = "%ds%dn%dc2t" % (1 + number % 2, 1 + number // 2 % 2, 4 + number // 4 * 2)
    parse_name(name)
    return name


def _answer(root: Path, trouble: dict[str, Any]) -> dict[str, Any]:
    kubelet = root / "var/lib/kubelet"
    texts = {"config.yaml": trouble.get("configuration"), "cpu_manager_state": trouble.get("checkpoint")}
    saved = {name: (kubelet / name).read_text("utf-8") for name in texts}
    for name, text in texts.items():
        (kubelet / name).write_text(saved[name] if text is None else text, "utf-8")
    answer = rollout_report(Node(Tree(str(root)), minor=36), {**WANTED, **trouble.get("wanted", {})}, ChangeTerms())
    for name, text in saved.items():
        (kubelet / name).write_text(text, "utf-8")
    return answer


# --- many hosts, and the whole playbook --------------------------------------------------------------


def measure_hosts(directory: Path) -> bool:
    """Return the playbook drift_report with all forms, beside ansible.builtin.ping of the same hosts, on the wall."""
    root = make_node(directory, "2s1n12c2t+interleaved")
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"node%04d" % number: {"kubelet_node_root": str(root)} for number in range(HOSTS)}
    inventory = directory / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}), encoding="utf-8")
    ping = directory / "ping.json"
    play = {"name": "Ping", "hosts": "all", "gather_facts": False, "tasks": [PING]}
    ping.write_text(json.dumps([play]), encoding="utf-8")
    settings = {"kubelet_" + name: value for name, value in WANTED.items()}
    extra = {**settings, "drift_report_directory": str(directory / "hosts"), "drift_report_forms": FORMS}
    common = ["-i", str(inventory), "-f", str(FORKS)]
    seconds = {}
    for what, arguments in {
        "ping": [str(ping)],
        "report": ["kubenode.cpu_manager.drift_report", "-e", json.dumps(extra)],
    }.items():
        before = time.monotonic()
        _run([*common, *arguments])
        seconds[what] = time.monotonic() - before
    times_ping = seconds["report"] / seconds["ping"]
    print("The drift report of %d local hosts, all forms, seconds on the wall:" % HOSTS)
    print(
        "  ping %.1f, report %.1f  %.2f times ping (limit %.2f)"
        % (seconds["ping"], seconds["report"], times_ping, LIMIT)
    )
    return times_ping <= LIMIT


def _run(arguments: list[str]) -> None:
    done = subprocess.run(["ansible-playbook", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("ansible-playbook failed:\n%s%s" % (done.stdout[-5000:], done.stderr[-5000:]))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The EXAMPLES of every module, each task as it is written, on a saved node; and the examples of the roles.

Each module has a host of its own, all of one node, or of a copy where the module changes it, and they run side by side.
A task that would meet this machine runs in check mode, or is shown.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import misspelled
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups, housekept, texts
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write_layers
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import TUNED_FILES
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import CHECKOUT, Run, ansible_playbook, fingerprint, play, task

MODULES = sorted((CHECKOUT / "plugins" / "modules").glob("*.py"))
ROLES = sorted((CHECKOUT / "roles").glob("*/README.md"))
GROUP = "kubenode.cpu_manager."

# 48 CPUs; a core is n, n+24.
MACHINE = "2s1n12c2t"
ONLINE = "0-47"
STATE = "var/lib/kubelet/cpu_manager_state"
CGROUPS = (
    "machine.slice/database.scope",
    "machine.slice/backup.scope",
    "kubepods.slice/kubepods-burstable.slice",
    *cgroups.HOST,
)
LOGGED = 'E1127 12:00:00.000000    4711 run.go:74] "command failed" err="unknown flag: --x"\n'
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "uid": "8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a"},
    "spec": {"containers": [{"name": "nginx", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]},
}

TRACE = {
    "version": 1,
    "name": "two",
    "description": "one with a GPU",
    "duration": 60,
    "pods": [
        {
            "name": "trainer",
            "qosClass": "Guaranteed",
            "cpu": 4,
            "resources": {"memory": "64Gi", "nvidia.com/gpu": 1},
            "arrives": 0,
            "load": [[0, 4]],
        },
        {"name": "web", "qosClass": "Burstable", "cpu": "500m", "arrives": 0, "load": [[0, 1]]},
    ],
}

# What needs more than a saved node: a running kubelet, CPUs to measure on, a resctrl that takes writes. Without a
# measurement there is nothing to register.
IN_CHECK_MODE = ("wait_for_kubelet", "isolation_benchmark", "cache_partition")
# This would restart a service of this machine; what it is given, and on which condition, is shown.
SERVICE = "ansible.builtin.service"
# There is no cluster to ask; tests/cluster has one.
OF_CLUSTER = GROUP + "on_api_host"
# The task that is for a node without a kubelet.
WITHOUT_KUBELET = "Give out the CPUs of a node without a kubelet"
# And the one for a node with tuned, which all others of its module refuse.
WITH_TUNED = "Have tuned isolate the CPUs that the kubelet does not reserve, and set all layers that tuned does not"
REPORTS = ("eu", "us", "ap")
# One that a service sees, which the tests' own need not be.
PYTHON = "/usr/bin/python3"
VICTIM = {"workload": "victim", "qos_class": "Guaranteed", "cpus": "1", "exclusive": True}
BLOCKS = ("block", "rescue", "always")
# These change their node, or assume one of their own.
WRITERS = (
    "allocation_plan",
    "checkpoint",
    "cpuset",
    "housekeeping",
    "kubelet_change",
    "kubelet_config",
    "node_textfile",
    "reconcile",
    "reconcile_program",
    "rollout_journal",
    "runtime_config",
)
# What the examples assume of a node: isolated CPUs; a kernel that can make partitions, and no pods on reserved CPUs.
STRICT = """cpuManagerPolicy: static
reservedSystemCPUs: 0-3
cpuManagerPolicyOptions:
  strict-cpu-reservation: "true"
"""
ASSUMED = {
    "allocation_plan": {"sys/devices/system/cpu/isolated": "4-47\n"},
    "housekeeping": {
        "sys/fs/cgroup/system.slice/cpuset.cpus.exclusive": "\n",
        "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/cpuset.cpus": "4-47\n",
        "var/lib/kubelet/config.yaml": HEADER + STRICT,
    },
}
# What the examples assume of a node that is not as they want it: it stops there, as the task's name says.
STOPS = "ansible.builtin.assert"


def examples(module: Path) -> list[dict[str, Any]]:
    """Return the tasks of a module's examples."""
    tree = ast.parse(module.read_text("utf-8"))
    written = [
        ast.literal_eval(statement.value)
        for statement in tree.body
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "EXAMPLES"
    ]
    return [entry for text in written for entry in yaml.safe_load(text)]


def leaves(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tasks, and those of blocks."""
    for entry in tasks:
        inner = [task for part in BLOCKS for task in entry.get(part, ())]
        yield from leaves(inner) if inner else (entry,)


def action_of(entry: dict[str, Any]) -> str:
    """Return the module of a task."""
    return next(key for key in entry if "." in key)


def measured() -> dict[str, Any]:
    """Return what a benchmark returns that ran one case twice."""
    times = {"seconds": 1.0, "p50": 0.002, "p99": 0.003, "longest": 0.009}
    row = {"case": 0, "workload": "victim", "qos_class": "Guaranteed", **times}
    numbers = dict.fromkeys(("cpus", "cores", "sockets", "numa_nodes", "threads_per_core"), 2)
    return {
        "schema_version": "1.0",
        "machine": {**numbers, **dict.fromkeys(("model", "kernel", "load", "governor"), "x"), "virtual": True},
        "seed": 1,
        "settings": {"runs": 2, "reserved": "0"},
        "cases": [{"experiment": "stand-alone", "placement": "exclusive", "containers": [VICTIM]}],
        "rows": [{**row, "run": run, "place": run} for run in range(2)],
        "verdict": [],
        "left_out": [],
        "notes": [],
    }


def write_node(root: Path) -> None:
    """Write a node with the static policy, and with everything that a module looks at."""
    write_machine(root, MACHINE)
    housekept.write_node(root)
    write_layers(root, ONLINE)
    files = dict.fromkeys(CGROUPS, cgroups.Files(ONLINE, "0-1"))
    cgroups.write_cgroups(root, cgroups.V2, files, ONLINE)
    state = write_checkpoint("static", State(CPUSet.parse(ONLINE), {}))
    contents = {
        "etc/hostname": b"worker\n",
        "etc/containerd/config.toml": b'version = 3\n[plugins."io.containerd.nri.v1.nri"]\ndisable = true\n',
        "sys/devices/system/cpu/possible": ONLINE.encode(),
        "sys/class/net/eth0/device/numa_node": b"1\n",
        "var/lib/node_exporter/node.prom": b"",
        "var/lib/kubelet/config.yaml": (HEADER + 'cpuManagerPolicy: static\nreservedSystemCPUs: "0,24"\n').encode(),
        STATE: state,
        STATE + ".20261121T101500Z~": state,
    }
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    record(root, PLATFORMS["xeon-l3-mba-mbm"], mounts="cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")


class Examples:
    """A directory with a playbook that runs all examples, and the nodes for it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        pristine = directory / "node"
        write_node(pristine)
        self.hosts: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        for module in MODULES:
            root = pristine
            if module.stem in WRITERS:
                root = directory / "nodes" / module.stem
                shutil.copytree(pristine, root, symlinks=True)
            self.hosts[module.stem] = {
                "root": str(root),
                "benchmark": measured(),
                "pods_of_this_node": {"resources": [POD]},
            }
            self.tasks[module.stem] = examples(module)
        self.hosts["housekeeping"]["ansible_python_interpreter"] = PYTHON
        for name, files in ASSUMED.items():
            for path, text in files.items():
                (directory / "nodes" / name / path).write_text(text, encoding="utf-8")
        for name, place in zip(("worker-1", "worker-2", "worker-3"), REPORTS):
            self.hosts[name] = {"root": str(pristine), "place": place, "benchmark": measured()}
        self.own_nodes = {WITHOUT_KUBELET: directory / "bare", WITH_TUNED: directory / "tuned"}
        for root in self.own_nodes.values():
            shutil.copytree(pristine, root, symlinks=True)
        shutil.rmtree(self.own_nodes[WITHOUT_KUBELET] / "var/lib/kubelet")
        for path, text in TUNED_FILES.items():
            file = self.own_nodes[WITH_TUNED] / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def plays(self) -> list[dict[str, Any]]:
        for name, tasks in self.tasks.items():
            # What an example writes on the controller goes to this directory.
            text = json.dumps([*map(self._guarded, tasks)]).replace("/srv/", "%s/srv/" % self.directory)
            text = text.replace("/root/", "%s/root/" % self.directory)
            (self.directory / (name + ".json")).write_text(text, encoding="utf-8")
        report = task("node_report", root="{{ root }}", directory="%s/srv/reports/{{ place }}" % self.directory)
        return [
            *play(report, hosts="workers"),
            {
                "name": "Run the examples",
                "hosts": ":".join(self.tasks),
                "gather_facts": False,
                "strategy": "free",
                "module_defaults": {
                    "group/kubenode.cpu_manager.cpu_manager": {"root": "{{ root }}"},
                    # The service would be one of this machine.
                    GROUP + "kubelet_change": {"manage_service": False},
                },
                "tasks": [
                    {
                        "name": "Run those of one module",
                        "ansible.builtin.include_tasks": "%s/{{ inventory_hostname }}.json" % self.directory,
                    }
                ],
            },
        ]

    def _guarded(self, entry: dict[str, Any]) -> dict[str, Any]:
        if "block" in entry:
            return {key: [*map(self._guarded, part)] if key in BLOCKS else part for key, part in entry.items()}
        action = action_of(entry)
        # Here each host is the only one.
        guarded = {key: value for key, value in entry.items() if key != "run_once"}
        if action.replace(GROUP, "") in IN_CHECK_MODE:
            guarded["check_mode"] = True
            guarded.pop("register", None)
        if action in (SERVICE, OF_CLUSTER):
            guarded["ansible.builtin.debug"] = {"msg": guarded.pop(action)}
        if action == STOPS:
            guarded["ignore_errors"] = True
        if entry["name"] in self.own_nodes:
            guarded["vars"] = {"root": str(self.own_nodes[entry["name"]])}
        return guarded

    def run(self, name: str, *arguments: str) -> Run:
        workers = self.directory / "workers.ini"
        workers.write_text("[workers]\nworker-[1:3]\n", encoding="utf-8")
        run_in = self.directory / name
        run_in.mkdir()
        for place in ("root", "srv/reports/all", "srv/benchmarks"):
            (self.directory / place).mkdir(parents=True, exist_ok=True)
        (run_in / "saved-nodes").symlink_to(self.directory / "root")
        (run_in / "node7.lscpu").write_text(texts.lscpu(parse_name(MACHINE).topology()), encoding="utf-8")
        (run_in / "deployment.yml").write_text(yaml.safe_dump(POD), encoding="utf-8")
        (run_in / "trace.json").write_text(json.dumps(TRACE), encoding="utf-8")
        (run_in / "kubelet.log").write_text(LOGGED, encoding="utf-8")
        return ansible_playbook(run_in, self.plays(), self.hosts, "-i", str(workers), *arguments)


@pytest.fixture(scope="module")
def example_set() -> Iterator[Examples]:
    """Yield the examples, in memory where that is possible: saved nodes have thousands of small files."""
    with tempfile.TemporaryDirectory() as directory:
        yield Examples(Path(directory))


def test_every_example_runs(example_set: Examples) -> None:
    before = fingerprint(example_set.directory / "node")
    run = example_set.run("run")
    ended = {
        name: [result for result in run.results[name] if result["outcome"] == "ok" or "assertion" in result]
        for name in example_set.tasks
    }
    names = {name: [entry["name"] for entry in leaves(tasks)] for name, tasks in example_set.tasks.items()}
    missing = {
        "%s: %s" % (name, title)
        for name, titles in names.items()
        for title in titles
        if title not in [result["task"] for result in ended[name]]
    }
    assert missing == set(), run.account()
    assert run.status == 0, run.account()
    assert fingerprint(example_set.directory / "node") == before


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_module_has_an_example_of_itself(module: Path) -> None:
    assert GROUP + module.stem in [action_of(entry) for entry in leaves(examples(module))]


@pytest.mark.parametrize("readme", ROLES, ids=lambda path: path.parent.name)
def test_the_examples_of_roles_set_variables_that_are_known(readme: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", readme.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    specifications = CHECKOUT.glob("roles/*/meta/argument_specs.yml")
    mains = [yaml.safe_load(path.read_text("utf-8"))["argument_specs"]["main"] for path in specifications]
    options = {name for main in mains for name in main["options"]}
    for block in blocks:
        document = yaml.safe_load(block)
        variables = document if isinstance(document, dict) else {}
        for entry in document if isinstance(document, list) else ():
            for role in entry["roles"]:
                assert role["role"] == GROUP + readme.parent.name
                variables = {**variables, **role.get("vars", {})}
        assert variables
        assert misspelled(variables) == []
        assert set(variables) <= options

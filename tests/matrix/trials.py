# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The main job on saved nodes of each Python, and whatever else an ansible-core is tried with.

Every warning of Ansible is a failure: of what is to go, it says so by a warning first.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

import yaml

from ansible_collections.kubenode.cpu_manager.tests.machines.demo import DEMO, write_demo_fleet
from ansible_collections.kubenode.cpu_manager.tests.playbooks.unhappy import unhappy_plays, unhappy_problems
from ansible_collections.kubenode.cpu_manager.tests.support import pythons

from .cores import ROOT, Environment, needed_by_playbooks

# By hostile nodes and mistaken inventories, and by hosts that are one machine, where one run ends while another looks.
_PROVOKED = re.compile(
    "owned|Removed (unexpected internal|reserved) key|had junk after the JSON data"
    "|Deprecation warnings can be disabled|has another value in the inventory of|Skipped entry"
)
# As Ansible writes them on the terminal and in its log.
_WARNING = re.compile(r"^.*\[(?:DEPRECATION )?WARNING\]: .*$", re.MULTILINE)
# Of the demo, which is shown to people who wait: most of its time is starting Ansible, and a module at a node.
MOST = {"runs of Ansible": 1, "plays": 10, "tasks": 61}
_BEFORE, _AFTER = {"drift", "refused"}, {"clean"}


# A kubeconfig of a server that refuses each connection.
_NOBODY = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
"""


class Trial(NamedTuple):
    """An environment, and the directory for what is done with it, which is empty."""

    environment: Environment
    directory: Path

    def run(self, name: str, *command: str, **variables: str) -> list[str]:
        """Run a program of the environment, and keep what it prints as NAME.log. What went wrong, if anything.

        A warning in what Ansible logs counts as well as one on the terminal: not all output gets there.
        """
        printed, logged = (self.directory / (name + end) for end in (".log", ".ansible.log"))
        with printed.open("w", encoding="utf-8") as output:
            status = subprocess.run(
                command,
                check=False,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    **self.environment.variables(),
                    "ANSIBLE_DEPRECATION_WARNINGS": "1",
                    "ANSIBLE_LOG_PATH": str(logged),
                    **variables,
                },
            ).returncode
        problems = ["%s: ended with status %d, see %s" % (name, status, printed)] if status else []
        texts = [path.read_text("utf-8", "replace") for path in (logged, printed) if path.exists()]
        warnings = dict.fromkeys(line for text in texts for line in warnings_in(text))
        return [*problems, *("%s: %s, see %s" % (name, warning, printed) for warning in warnings)]


def warnings_in(text: str) -> list[str]:
    """Return the warnings in what Ansible has printed or logged, each as its first line."""
    return ["[" + line.partition("[")[2] for line in _WARNING.findall(text)]


def demo(trial: Trial) -> list[str]:
    """Show the demo. What went wrong."""
    fleet = trial.directory / "demo"
    fleet.mkdir()
    problems = trial.run("demo", str(DEMO / "run"), str(fleet))
    took = effort((trial.directory / "demo.log").read_text("utf-8", "replace"))
    return [*problems, *("demo: %d %s" % (count, name) for name, count in took.items() if count > MOST[name])]


def effort(printed: str) -> dict[str, int]:
    """Return what Ansible has done by what it has printed: how often it was started, its plays, and the tasks of all
    hosts."""
    return {
        "runs of Ansible": len(re.findall(r"^PLAY RECAP ", printed, re.MULTILINE)),
        "plays": len(re.findall(r"^PLAY \[", printed, re.MULTILINE)),
        "tasks": sum(map(int, re.findall(r"^\S+ +: ok=([0-9]+) ", printed, re.MULTILINE))),
    }


def unhappy(trial: Trial) -> list[str]:
    """Let each action plugin fail. What it does not say of it."""
    results = trial.directory / "unhappy.jsonl"
    node = {"ansible_connection": "local", "ansible_python_interpreter": str(trial.environment.programs / "python")}
    for name, content in (("hosts", {"all": {"hosts": {"node": node}}}), ("plays", unhappy_plays())):
        (trial.directory / ("unhappy-%s.json" % name)).write_text(json.dumps(content), encoding="utf-8")
    problems = trial.run(
        "unhappy",
        *("ansible-playbook", "-i", "unhappy-hosts.json", "unhappy-plays.json"),
        ANSIBLE_CALLBACK_PLUGINS=str(ROOT / "tests" / "playbooks" / "callback_plugins"),
        ANSIBLE_CALLBACKS_ENABLED="record",
        RECORD_RESULTS=str(results),
    )
    lines = results.read_text("utf-8").splitlines() if results.exists() else []
    said = unhappy_problems([json.loads(line)[1] for line in lines])
    return [*problems, *("unhappy: " + problem for problem in said)]


def on_nodes(trial: Trial, versions: Sequence[str], is_whole: bool) -> dict[str, list[str]]:
    """Report on saved nodes, roll out in check mode and for real, and report again, with these Pythons on the nodes.

    is_whole: all nodes of the demo have each Python; otherwise each Python has one of them, in turn.
    {Python: what went wrong with it}; what is about none in particular is there for each.
    """
    write_demo_fleet(trial.directory / "pristine")
    hosts = dict(_hosts(trial.directory, versions, is_whole))
    inventory = trial.directory / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": _wanted()}}), encoding="utf-8")
    problems = list(_job(trial, inventory))
    expected = {"before": _BEFORE, "after": _AFTER, "merged": _AFTER}
    found = {report: _states(trial.directory / report / "drift.json") for report in expected}
    return {
        version: [
            *problems,
            *(
                "%s: the report %r has it as %s" % (host, report, found[report].get(host, "missing"))
                for host in hosts
                if hosts[host]["node_python"] == version
                for report, states in expected.items()
                if found[report].get(host) not in states
            ),
        ]
        for version in versions
    }


def guides(trial: Trial) -> list[str]:
    """Report on a node and ask an API server that is not there, with the ansible.cfg of each guide that has one.

    The interpreter is found as Ansible finds it. What went wrong, but for the API server.
    """
    trial.environment.install(*(line for line in needed_by_playbooks() if line.startswith("kubernetes")))
    problems = []
    for guide, text in configurations().items():
        configuration = trial.directory / guide / "ansible.cfg"
        configuration.parent.mkdir()
        configuration.write_text(text, encoding="utf-8")
        write_demo_fleet(trial.directory / guide / "fleet")
        places = {"root": trial.directory / guide / "fleet" / "xeon", "kubeconfig": trial.directory / guide / "config"}
        places["kubeconfig"].write_text(_NOBODY, encoding="utf-8")
        host = "xeon ansible_connection=local kubelet_node_root=%(root)s kubelet_kubeconfig=%(kubeconfig)s\n" % places
        (trial.directory / guide / "inventory").write_text(host, encoding="utf-8")
        for playbook in ("drift_report", "impact"):
            arguments = ("-i", guide + "/inventory", "-e", "kubelet_api_timeout=10")
            command = ("ansible-playbook", *arguments, "kubenode.cpu_manager." + playbook)
            found = trial.run(
                "%s-%s" % (guide, playbook), *command, ANSIBLE_CONFIG=str(configuration), PWD=str(configuration.parent)
            )
            problems += [problem for problem in found if playbook != "impact" or "ended with status 2" not in problem]
    return problems


def configurations() -> dict[str, str]:
    """Return {guide: its ansible.cfg}"""
    found = {}
    for path in sorted((ROOT / "docs" / "docsite" / "rst").glob("*.rst")):
        for block in re.findall(r"^   # ansible\.cfg\n((?:   .*\n|\n)+)", path.read_text("utf-8"), re.MULTILINE):
            found[path.stem] = re.sub("^   ", "", block, flags=re.MULTILINE)
    return found


def playbooks(trial: Trial, *chosen: str) -> list[str]:
    """Run tests/playbooks, or those of its tests that are chosen. What went wrong."""
    trial.environment.install(*needed_by_playbooks())
    command = ["python", "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--rootdir", str(ROOT)]
    # Not the place of others, who may run at the same time and tidy up.
    command += ["--basetemp", str(trial.directory / "pytest")]
    place = ROOT / "tests" / "playbooks"
    found = trial.run("playbooks", *command, *(str(place / test) for test in chosen or [""]))
    return [problem for problem in found if not _PROVOKED.search(problem)]


def sanity(trial: Trial, *arguments: str) -> list[str]:
    """Run ansible-test sanity with these arguments. What went wrong."""
    command = ["python", str(ROOT / "tests" / "running" / "ansible_test"), "sanity", "--local", *arguments]
    # It warns of Pythons that are not there, and of those that its core has outgrown.
    return [problem for problem in trial.run("sanity", *command) if not problem.startswith("sanity: [WARNING]")]


def _hosts(directory: Path, versions: Sequence[str], is_whole: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    nodes = sorted(path.name for path in (directory / "pristine").iterdir())
    for number, version in enumerate(versions):
        for node in nodes if is_whole else [nodes[number % len(nodes)]]:
            name = "%s-%s" % (node, version)
            root = directory / "fleet" / name
            shutil.copytree(directory / "pristine" / node, root, symlinks=True)
            yield (
                name,
                {
                    "node_python": version,
                    "ansible_python_interpreter": str(pythons.installed()[version]),
                    "kubelet_node_root": str(root),
                },
            )


def _wanted() -> dict[str, Any]:
    """Return what the demo's nodes are to have."""
    inventory = yaml.safe_load((DEMO / "inventory.yml").read_text("utf-8"))
    return {
        name: value
        for name, value in inventory["all"]["vars"].items()
        if name.startswith("kubelet_") or name == "ansible_connection"
    }


def _job(trial: Trial, inventory: Path) -> Iterator[str]:
    """Yield the playbooks, one after the other. What went wrong."""
    fleet = trial.directory / "fleet"

    def play(name: str, playbook: str, report: str, *arguments: str) -> list[str]:
        values = json.dumps({"cpu_manager_serial": "100%", "drift_report_directory": str(trial.directory / report)})
        command = ("ansible-playbook", "-i", str(inventory), "-e", values, "kubenode.cpu_manager." + playbook)
        return trial.run(name, *command, *arguments)

    before = _contents(fleet)
    yield from play("report-before", "drift_report", "before", "--check")
    yield from play("plan", "rollout", "before", "--check", "--diff")
    if _contents(fleet) != before:
        yield "plan: check mode has changed the nodes"
    yield from play("rollout", "rollout", "before", "--diff")
    after = _contents(fleet)
    yield from play("report-after", "drift_report", "after", "--check", "-e", "drift_report_fail_on=drift")
    sources = json.dumps({"drift_report_sources": [str(trial.directory / "after")]})
    yield from play("report-merged", "report", "merged", "-e", sources)
    if _contents(fleet) != after:
        yield "report: it has changed the nodes"


def _contents(root: Path) -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and not path.is_symlink()}


def _states(report: Path) -> dict[str, str]:
    """Return {host: its state in a report}"""
    if not report.exists():
        return {}
    return {node["host"]: node["state"] for node in json.loads(report.read_text("utf-8"))["nodes"]}

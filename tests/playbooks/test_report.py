# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drift report: on hostile nodes, as a browser sees it, and on nodes that are managed elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.installed.distributions import (
    DISTRIBUTIONS,
    NOWHERE,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .conftest import Run, ansible_playbook, fingerprint
from .test_distributions import MACHINE, make_managed_node

DRIFT_REPORT = "kubenode.cpu_manager.drift_report"

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.needs(CHROMIUM or "chromium")

# What a node writes in order to act in the operator's browser, and in the operator's terminal. The page as it is has
# neither this title nor this id.
SCRIPT = "<script>document.title='owned';document.body.id='owned'</script>"
IMAGE = "\"><img src=x onerror=document.title='owned'>"
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m"

WANTED = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0"}


class Report(NamedTuple):
    """One run of the playbook, and what it wrote."""

    run: Run
    nodes: dict[str, dict[str, Any]]
    page: str


def make_report(directory: Path, hosts: dict[str, dict[str, Any]], *arguments: str) -> Report:
    run = ansible_playbook(directory, DRIFT_REPORT, hosts, *arguments)
    written = directory / "drift-report"
    assert (written / "drift.json").exists(), run.account()
    nodes = json.loads((written / "drift.json").read_text(encoding="utf-8"))
    return Report(run, {node["host"]: node for node in nodes}, (written / "drift.html").read_text(encoding="utf-8"))


# --- hostile nodes ------------------------------------------------------------------------------------


def answering(directory: Path, name: str, answer: Any) -> dict[str, Any]:
    """A host that a stranger has: its Python answers what the stranger likes."""
    python = directory / name
    python.parent.mkdir(exist_ok=True)
    python.write_text("#!/bin/sh\ncat <<'END'\n%s\nEND\n" % json.dumps(answer), encoding="utf-8")
    python.chmod(0o755)
    return {"ansible_python_interpreter": str(python)}


def hostile_answer(markup: str) -> dict[str, Any]:
    """Markup wherever the report shows something."""
    return {
        "changed": False,
        "host": "honest",
        "status": markup,
        "message": markup,
        "topology": {"online": "0-1", "cores": ["0", "1"], "sockets": {"0": "0-1"}, "problems": [markup]},
        "drift": [{"subject": markup, "found": {markup: [markup]}, "wanted": markup, "remedy": markup}],
        "actions": [markup],
        "checkpoint": {"verdict": "refused", "remedy": markup},
        "enforcement": {"version": markup, "containers": {"kept": markup, "different": markup}},
        "refusals": [{"where": markup, "text": markup, "remedy": markup}],
        "elsewhere": {"name": markup, "why": markup, "snippet": markup},
        "cpus": {"online": markup, "shared": "0-1"},
        "owners": [{"use": "exclusive", "owner": markup, "cpus": "0"}, {"use": markup, "owner": markup, "cpus": "1"}],
        "notes": [markup, "{{ lookup('ansible.builtin.pipe', 'touch owned') }}"],
    }


# Types that are not those of a module.
ODD_ANSWERS: dict[str, Any] = {
    "numbers": dict.fromkeys(hostile_answer(""), 7),
    "lists": {key: [["x"], 1, None] for key in hostile_answer("")},
    "mappings": {key: {"a": {"b": []}} for key in hostile_answer("")},
    "nothing": {"changed": False},
    "null": {**dict.fromkeys(hostile_answer("")), "status": "clean"},
    "huge": {"status": "clean", "topology": {"online": "0-65535", "cores": ["0-65535"]}, "notes": ["n" * 10**6]},
    "cpusets": {"status": "clean", "topology": {"online": "0-", "cores": "x"}, "cpus": {"online": "-1"}},
    "sequences": hostile_answer(ESCAPE),
    "lines": {"failed": True, "msg": "one\ntwo\n" + "wide " * 60},
}


class Hostile(NamedTuple):
    """The report on a fleet in which one node is honest."""

    report: Report
    directory: Path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, pristine_fleet: Path) -> Hostile:
    directory = tmp_path_factory.mktemp("hostile")

    def copy_of(node: str, name: str) -> Path:
        root = directory / "nodes" / name
        shutil.copytree(pristine_fleet / node, root, symlinks=True)
        return root

    roots = {name: copy_of("edge", name) for name in ("honest", "options", "dropin", "isolated", "hostname")}
    roots["pods"] = copy_of("epyc", "pods")

    # Valid as a configuration, with markup as a value.
    config = roots["options"] / "etc/kubernetes/kubelet/config.json"
    values = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps({**values, "cpuManagerPolicyOptions": {SCRIPT: IMAGE + ESCAPE}}), encoding="utf-8")
    # A file is named by a message that says what is wrong with it.
    drop_in = roots["dropin"] / "etc/kubernetes/kubelet/config.json.d" / ("10-%s.conf" % IMAGE)
    drop_in.parent.mkdir()
    drop_in.write_text("kind: [%s\n" % SCRIPT, encoding="utf-8")
    (roots["isolated"] / "sys/devices/system/cpu/isolated").write_text(SCRIPT + "\n", encoding="utf-8")
    # A message of failure begins with it.
    for name in ("hostname", "isolated"):
        (roots[name] / "etc/hostname").write_text(SCRIPT + "\n", encoding="utf-8")
    (roots["hostname"] / "etc/kubernetes/kubelet/config.json").write_text(SCRIPT, encoding="utf-8")
    # Pods are named by the links to their logs.
    for log in (roots["pods"] / "var/log/containers").iterdir():
        log.rename(log.with_name(log.name.replace("postgres-0_", IMAGE + "_")))

    hosts: dict[str, dict[str, Any]] = {
        name: {"kubelet_node_root": str(root), **WANTED} for name, root in roots.items()
    }
    hosts["options"]["kubelet_cpu_manager_policy_options"] = {"full-pcpus-only": "true"}
    strangers = {"script": hostile_answer(SCRIPT), "image": hostile_answer(IMAGE), **ODD_ANSWERS}
    hosts.update({name: answering(directory / "strangers", name, answer) for name, answer in strangers.items()})
    # Inventories come from elsewhere, too.
    hosts["<b id=owned>"] = hosts["nothing"]
    title = json.dumps({"drift_report_title": "Fleet " + SCRIPT})
    return Hostile(make_report(directory / "run", hosts, "-e", title), directory)


class Tags(HTMLParser):
    """What a page consists of."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.in_title = False
        self.title = ""
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.in_title = tag == "title"
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.in_title = self.in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_title:
            self.title += data


def test_a_hostile_node_does_not_stop_the_report(hostile: Hostile) -> None:
    nodes, page = hostile.report.nodes, Tags(hostile.report.page)
    assert len(nodes) == 18
    assert nodes["honest"]["status"] == "drift"
    # It is itself, and nobody else calls itself so.
    assert nodes["honest"]["found"]["cpu_manager_policy"] == "static"
    assert nodes["script"]["host"] == "script"
    sections = [value for name, value in page.attributes if name == "id"]
    assert sections == list(nodes)
    assert "CPU 0: reserved" in " ".join(value for _name, value in page.attributes)
    assert not (hostile.directory / "run/owned").exists()
    assert "{{ lookup('ansible.builtin.pipe', 'touch owned') }}" in page.text


def test_markup_of_a_node_is_text(hostile: Hostile) -> None:
    page = Tags(hostile.report.page)
    assert not set(page.tags) & {"script", "img", "link", "iframe", "svg", "a", "form"}
    assert not [name for name, _value in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert page.title == "Fleet " + SCRIPT
    statuses = {"options": "drift", "pods": "drift", "dropin": "drift", "hostname": "drift", "isolated": "failed"}
    assert {name: hostile.report.nodes[name]["status"] for name in statuses} == statuses, hostile.report.run.account()
    for shown in (
        "{%s: " % SCRIPT,
        "orders/%s/postgres" % IMAGE,
        "10-%s.conf" % IMAGE,
        "<script>document.title",
        "<b id=owned>",
    ):
        assert shown in page.text


def test_no_node_writes_to_the_terminal(hostile: Hostile) -> None:
    table = hostile.report.run.output.partition("NODE ")[2].partition("Report: ")[0]
    assert not [one for one in table if one != "\n" and not one.isprintable()]
    assert "\\x1b" in table
    assert not [one for one in hostile.report.page if one != "\n" and not one.isprintable() and one != "\xa0"]


def test_a_message_of_several_lines_is_in_its_place(hostile: Hostile) -> None:
    table = hostile.report.run.output.partition("NODE ")[2].partition("Report: ")[0].splitlines()
    (first,) = [at for at, line in enumerate(table) if re.match(r" *lines +failed +one two wide wide", line)]
    columns = table[first].index("one two")
    assert table[first + 1].startswith(" " * columns + "wide wide")


def dom_of(page: str, directory: Path) -> Tags:
    """The page as a browser has it, once its scripts, if any, have run."""
    assert CHROMIUM is not None
    directory.mkdir()
    (directory / "page.html").write_text(page, encoding="utf-8")
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", *quiet, "--virtual-time-budget=2000"),
            *("--user-data-dir=%s" % (directory / "profile"), "--dump-dom", (directory / "page.html").as_uri()),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    return Tags(done.stdout.decode())


def without_policy(page: str) -> str:
    open_page, found = re.subn(r"<meta http-equiv=.Content-Security-Policy.*?>", "", page)
    assert found == 1
    return open_page


def is_owned(page: Tags) -> bool:
    return page.title == "owned" or ("id", "owned") in page.attributes


@in_a_browser
def test_no_script_of_a_node_runs_in_a_browser(hostile: Hostile, tmp_path: Path) -> None:
    # Each wall holds without the other.
    page = dom_of(without_policy(hostile.report.page), tmp_path / "escaped")
    assert page.title == "Fleet " + SCRIPT
    assert not is_owned(page)
    assert not set(page.tags) & {"script", "img"}
    assert page.text.count(SCRIPT) > 20
    assert page.text.count(IMAGE) > 20


@in_a_browser
@pytest.mark.parametrize("markup", [SCRIPT, IMAGE])
def test_the_policy_of_the_page_keeps_scripts_from_running(hostile: Hostile, tmp_path: Path, markup: str) -> None:
    page = hostile.report.page.replace("</body>", markup + "</body>")
    assert not is_owned(dom_of(page, tmp_path / "policy"))
    # What would happen without.
    assert is_owned(dom_of(without_policy(page), tmp_path / "open"))


# --- nodes that are managed elsewhere -----------------------------------------------------------------


class Elsewhere(NamedTuple):
    """The report, and the one that names hosts without a kubelet in one line."""

    whole: Report
    quiet: Report


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    directory = tmp_path_factory.mktemp("elsewhere")
    fleet = directory / "fleet"
    managed = {known.name.lower(): known for known in DISTRIBUTIONS if known.place == NOWHERE and known.config_path}
    assert sorted(managed) == sorted(MANAGED)
    for name, known in managed.items():
        make_managed_node(fleet / name, known)
    others = ("kops", "gardener", "kubespray", "rke2", "bastion")
    for name in others:
        write_tree(parse_name(MACHINE).topology(), fleet / name, parse_name(MACHINE).whole())
        if name in KUBELETS:
            write_kubelet(fleet / name, KUBELETS[name])
    # A flag that counts before every file.
    flags = fleet / "rke2/etc/rancher/rke2/config.yaml"
    flags.parent.mkdir(parents=True)
    flags.write_text("kubelet-arg:\n- cpu-manager-policy=none\n", encoding="utf-8")
    hosts = {name: {"kubelet_node_root": str(fleet / name), **WANTED} for name in (*managed, *others)}
    before = fingerprint(fleet)
    whole = make_report(directory / "whole", hosts)
    quiet = make_report(directory / "quiet", hosts, "-e", "cpu_manager_skip_hosts_without_kubelet=true")
    assert fingerprint(fleet) == before
    return Elsewhere(whole, quiet)


MANAGED = ("openshift", "talos", "bottlerocket", "gke", "aks", "k0s")


def test_the_drift_of_managed_nodes_is_shown(elsewhere: Elsewhere) -> None:
    report = elsewhere.whole
    assert report.run.status == 0, report.run.account()
    page = Tags(report.page)
    for name in (*MANAGED, "rke2"):
        node = report.nodes[name]
        assert node["status"] == "drift", name
        assert "cpu_manager_policy" in [row["subject"] for row in node["drift"]], name
        assert [refusal["kind"] for refusal in node["refusals"]] == ["refused"], name
        assert "%s: cannot be changed: " % name in report.run.output
    refusals = [refusal["text"] for node in report.nodes.values() for refusal in node["refusals"]]
    assert page.text.count("Cannot be changed: ") == len(refusals)
    assert all(refusal in page.text for refusal in refusals)
    assert "machined would undo it: use machine.kubelet.extraConfig" in page.text
    for name, distribution in (("kops", "kOps"), ("gardener", "Gardener"), ("kubespray", "kubespray")):
        assert report.nodes[name]["refusals"] == []
        assert report.nodes[name]["kubelet"]["distribution"] == distribution


def test_hosts_without_a_kubelet_are_named(elsewhere: Elsewhere) -> None:
    whole, quiet = elsewhere
    assert whole.nodes == quiet.nodes
    assert whole.nodes["bastion"]["status"] == "no kubelet"
    assert quiet.run.status == 0, quiet.run.account()
    assert re.search(r"bastion +no kubelet\n", whole.run.output)
    assert "No kubelet, skipped" not in whole.run.output + whole.page
    assert not re.search(r"bastion +no kubelet", quiet.run.output)
    assert "No kubelet, skipped: bastion\n" in quiet.run.output
    assert 'id="bastion"' in whole.page
    assert 'id="bastion"' not in quiet.page
    assert "No kubelet, skipped: bastion." in quiet.page

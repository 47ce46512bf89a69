# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drift report: on hostile nodes, as a browser sees it, and on nodes that are managed elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.installed.distributions import (
    DISTRIBUTIONS,
    NOWHERE,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .conftest import CopyOf, Run, ansible_playbook, fingerprint
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
    """One run of the playbook, and what it wrote: the report, its nodes, and what each of these answered."""

    run: Run
    report: dict[str, Any]
    nodes: dict[str, dict[str, Any]]
    answers: dict[str, dict[str, Any]]
    page: str


def make_report(directory: Path, hosts: dict[str, dict[str, Any]], *arguments: str) -> Report:
    run = ansible_playbook(directory, DRIFT_REPORT, hosts, *arguments)
    written = directory / "drift-report"
    assert (written / "drift.json").exists(), run.account()
    report = json.loads((written / "drift.json").read_text(encoding="utf-8"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in (written / "nodes").iterdir()]
    return Report(
        run,
        report,
        {node["host"]: node for node in report["nodes"]},
        {result["host"]: result["answer"] for result in results},
        (written / "drift.html").read_text(encoding="utf-8"),
    )


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
        "status": "drift",
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
    "state": {**hostile_answer(SCRIPT), "status": SCRIPT},
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
    report, page = hostile.report, Tags(hostile.report.page)
    assert len(report.nodes) == 19
    # Its checkpoint is damaged, as that of all copies of it.
    assert report.nodes["honest"]["state"] == "refused"
    # It is itself, and no other node is taken for it.
    assert report.answers["honest"]["found"]["cpu_manager_policy"] == "static"
    assert report.answers["script"]["host"] == "honest"
    assert report.report["summary"]["nodes"] == 19
    assert report.report["summary"]["outcome"] == "danger"
    assert not (hostile.directory / "run/owned").exists()
    assert "{{ lookup('ansible.builtin.pipe', 'touch owned') }}" in page.text


def test_markup_of_a_node_is_text(hostile: Hostile) -> None:
    page = Tags(hostile.report.page)
    # Its data and its program.
    assert page.tags.count("script") == 2
    assert not set(page.tags) & {"img", "link", "iframe", "object"}
    assert not [name for name, _value in page.attributes if name.startswith("on") or name in ("src", "style")]
    assert page.title.startswith("Fleet " + SCRIPT)
    states = {"options": "refused", "pods": "drift", "dropin": "refused", "hostname": "refused", "isolated": "failed"}
    assert {name: hostile.report.nodes[name]["state"] for name in states} == states, hostile.report.run.account()
    # As text in the HTML, or as data, in which < and > are escaped.
    for shown in ("{%s: " % SCRIPT, "orders/%s/postgres" % IMAGE, "10-%s.conf" % IMAGE, "<b id=owned>"):
        as_data = json.dumps(shown)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e")
        assert shown in page.text or as_data in page.text, shown


def test_no_node_writes_to_the_terminal(hostile: Hostile) -> None:
    table = hostile.report.run.output.partition("NODES ")[2].partition("Report: ")[0]
    assert not [letter for letter in table if letter != "\n" and not letter.isprintable()]
    assert "\\x1b" in table
    assert not [sign for sign in hostile.report.page if sign != "\n" and not sign.isprintable() and sign != "\xa0"]


def test_a_message_of_several_lines_is_in_its_place(hostile: Hostile) -> None:
    table = hostile.report.run.output.partition("NODES ")[2].partition("Report: ")[0].splitlines()
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
    assert page.title.startswith("Fleet " + SCRIPT)
    assert not is_owned(page)
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert SCRIPT in page.text
    assert IMAGE in page.text


@in_a_browser
@pytest.mark.parametrize("markup", [SCRIPT, IMAGE])
def test_the_policy_of_the_page_keeps_scripts_from_running(hostile: Hostile, tmp_path: Path, markup: str) -> None:
    page = hostile.report.page.replace("</body>", markup + "</body>")
    assert not is_owned(dom_of(page, tmp_path / "policy"))
    # What would happen without.
    assert is_owned(dom_of(without_policy(page), tmp_path / "open"))


# --- nodes that are managed elsewhere -----------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Report:
    directory = tmp_path_factory.mktemp("elsewhere")
    fleet = directory / "fleet"
    managed = {
        distribution.name.lower(): distribution
        for distribution in DISTRIBUTIONS
        if distribution.place == NOWHERE and distribution.config_path
    }
    assert sorted(managed) == sorted(MANAGED)
    for name, distribution in managed.items():
        make_managed_node(fleet / name, distribution)
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
    report = make_report(directory / "run", hosts)
    assert fingerprint(fleet) == before
    return report


MANAGED = ("openshift", "talos", "bottlerocket", "gke", "aks", "k0s")


def checks_of(node: dict[str, Any]) -> list[str]:
    return [finding["check"] for finding in node["findings"]]


def test_the_drift_of_managed_nodes_is_shown(elsewhere: Report) -> None:
    assert elsewhere.run.status == 0, elsewhere.run.account()
    data = json.loads(re.findall(r"<script type=.application/json.*?>(.*?)</script>", elsewhere.page, re.DOTALL)[0])
    for name in (*MANAGED, "rke2"):
        node = elsewhere.nodes[name]
        assert node["state"] == "drift", name
        assert {"policy-differs", "change-refused"} <= set(checks_of(node)), name
        assert [refusal["kind"] for refusal in elsewhere.answers[name]["refusals"]] == ["refused"], name
        assert node["refusals"][0] in json.dumps(data, ensure_ascii=False).replace('\\\\"', '"').replace('\\"', '"')
    assert "machined would undo it: use machine.kubelet.extraConfig" in elsewhere.page
    for name, distribution in (("kops", "kOps"), ("gardener", "Gardener"), ("kubespray", "kubespray")):
        assert elsewhere.nodes[name]["refusals"] == []
        assert elsewhere.answers[name]["kubelet"]["distribution"] == distribution
        assert "settings-elsewhere" in checks_of(elsewhere.nodes[name])


def test_hosts_without_a_kubelet_are_named(elsewhere: Report) -> None:
    bastion = elsewhere.nodes["bastion"]
    assert bastion["state"] == "no kubelet"
    assert checks_of(bastion) == ["kubelet-missing"]
    assert "No kubelet: bastion\n" in elsewhere.run.output
    assert "bastion" in Tags(elsewhere.page).text


# --- forms, waivers, gates, parts ------------------------------------------------------------------------------


def report_playbook(directory: Path, playbook: str, hosts: dict[str, dict[str, Any]], **variables: Any) -> Run:
    return ansible_playbook(directory, "kubenode.cpu_manager." + playbook, hosts, "-e", json.dumps(variables))


def read_report(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "drift-report/drift.json").read_text(encoding="utf-8"))
    return report


PERIOD = {"kubelet_cpu_manager_reconcile_period": "7s"}
# What was not measured.
OF_CACHES = ("cache-foreign-group", "cache-partition-differs", "cache-partition-lost")
WAIVER = {"check": "reconcile-period-differs", "reason": "ticket 4711", "until": "2999-12-31"}


def test_all_forms_have_one_outcome(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {name: {"kubelet_node_root": str(copy_of("epyc", name)), **PERIOD} for name in ("a1", "a2")}
    forms = ["json", "html", "junit", "prometheus", "markdown", "table"]
    textfile = tmp_path / "node.prom"
    run = report_playbook(
        tmp_path, "drift_report", hosts, drift_report_forms=forms, drift_report_node_textfile=str(textfile)
    )
    assert run.status == 0, run.account()
    report = read_report(tmp_path)
    assert report["summary"]["exit_status"] == 2
    assert report["summary"]["states"] == {"drift": 2}
    written = tmp_path / "drift-report"
    suites = ElementTree.parse(written / "drift.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["a1", "a2"]
    failed = {case.get("name") for case in suites[0] if case.find("failure") is not None}
    of_node = {finding["check"] for finding in report["nodes"][0]["findings"] if finding["severity"] != "note"}
    assert failed == of_node
    assert {"reconcile-period-differs", "cpuset-differs"} <= of_node
    metrics = (written / "drift.prom").read_text("utf-8")
    assert re.search(r'kubenode_cpu_nodes\{fleet="default",state="drift"\} 2\n', metrics)
    assert "reconcile-period-differs" in (written / "drift.md").read_text("utf-8")
    assert re.search(r"^2 nodes: 2 drift; .*exit status 2$", run.output, re.MULTILINE)
    # Two equal nodes are one row.
    assert re.search(r"^a\[1-2\] +drift", run.output, re.MULTILINE)
    assert "kubenode_cpu_mispinned_containers 1\n" in textfile.read_text("utf-8")


def test_nodes_are_looked_at_for_isolation_and_throttling(tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {}
    looks = {"counted": (["throttling"], 0), "both": (["throttling", "isolation"], 1), "neither": ([], 5)}
    for name, (look_at, seconds) in looks.items():
        write_node(tmp_path / name, V2)
        hosts[name] = {
            "kubelet_node_root": str(tmp_path / name),
            "drift_report_look_at": look_at,
            "drift_report_look_seconds": seconds,
        }
    before = fingerprint(tmp_path / "counted")
    run = report_playbook(
        tmp_path, "drift_report", hosts, drift_report_forms=["json", "html", "junit", "table"], drift_report_redact=True
    )
    assert run.status == 0, run.account()
    assert fingerprint(tmp_path / "counted") == before
    nodes = {node["host"]: node for node in read_report(tmp_path)["nodes"]}
    of_looks = {
        name: {finding["check"] for finding in node["findings"] if finding["source"].endswith("_info")}
        for name, node in nodes.items()
    }
    # Of a saved node, seconds say nothing of what it counts.
    assert of_looks == {
        "counted": {"exclusive-cpus-with-quota", "container-throttled"},
        "both": {"exclusive-cpus-with-quota"},
        "neither": set(),
    }
    assert {"isolation-unmeasured", "throttling-unmeasured"} <= set(checks_of(nodes["both"]))
    # The names of containers are hidden.
    assert {row["container"] for row in nodes["counted"]["looks"]["throttling"]["containers"]} == {
        "/".join(sha256(part).hexdigest()[:8] for part in name.split(b"/"))
        for name in (b"shop/db-0/server", b"shop/web-1/app")
    }
    assert nodes["both"]["looks"]["isolation"]["is_measured"] is False
    assert "looks" not in nodes["neither"]
    written = {
        name: json.loads((tmp_path / "drift-report/nodes" / (name + ".json")).read_text("utf-8"))["looks"]
        for name in looks
    }
    assert {name: sorted(found) for name, found in written.items()} == {
        name: sorted(look_at) for name, (look_at, _seconds) in looks.items()
    }
    assert "invocation" not in written["counted"]["throttling"]
    suites = ElementTree.parse(tmp_path / "drift-report/drift.xml").getroot()
    skipped = {
        suite.get("name"): {case.get("name") for case in suite if case.find("skipped") is not None} for suite in suites
    }
    of_throttling = {"exclusive-cpus-with-quota", "limit-below-request"}
    of_housekeeping = {"host-on-exclusive-cpus", "housekeeping-unfinished", "kernel-line-not-booted"}
    others = {"exclusive-cpus-disturbed", *of_housekeeping, *OF_CACHES}
    assert skipped == {
        "counted": others,
        "both": others,
        "neither": {*others, *of_throttling},
    }
    assert "exclusive-cpus-with-quota" in run.output


def test_waivers_baseline_and_gates(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {"good": {"kubelet_node_root": str(copy_of("edge", "good"))}}
    config = Path(hosts["good"]["kubelet_node_root"]) / "var/lib/kubelet/cpu_manager_state"
    config.unlink()
    first = report_playbook(tmp_path / "first", "drift_report", hosts)
    assert first.status == 0, first.account()
    before = read_report(tmp_path / "first")
    baseline = str(tmp_path / "first/drift-report/drift.json")
    assert before["summary"]["gone"] is None

    hosts["good"].update(PERIOD)
    drifted = report_playbook(
        tmp_path / "drifted", "drift_report", hosts, drift_report_baseline=baseline, drift_report_fail_on="drift"
    )
    assert drifted.status != 0
    report = read_report(tmp_path / "drifted")
    since = {finding["check"]: finding["since"] for finding in report["nodes"][0]["findings"]}
    assert since["reconcile-period-differs"] == "new"
    assert set(since.values()) <= {"new", "known"}
    assert (report["summary"]["gone"], report["gone"]) == (0, [])

    del hosts["good"]["kubelet_cpu_manager_reconcile_period"]
    mended = report_playbook(
        tmp_path / "mended",
        "drift_report",
        hosts,
        drift_report_baseline=str(tmp_path / "drifted/drift-report/drift.json"),
    )
    assert read_report(tmp_path / "mended")["gone"] == [
        {
            "host": "good",
            "check": "reconcile-period-differs",
            "subject": "cpu_manager_reconcile_period",
        }
    ]
    assert "good: gone: reconcile-period-differs cpu_manager_reconcile_period\n" in mended.output
    hosts["good"].update(PERIOD)

    # The inventory has the waiver for this host.
    hosts["good"]["drift_report_waivers"] = [WAIVER]
    waived = report_playbook(tmp_path / "waived", "drift_report", hosts, drift_report_fail_on="drift")
    assert waived.status == 0, waived.account()
    (node,) = read_report(tmp_path / "waived")["nodes"]
    assert [finding["waived"] for finding in node["findings"] if finding["check"] == WAIVER["check"]] == [
        {"reason": "ticket 4711", "until": "2999-12-31"}
    ]
    hosts["good"]["drift_report_waivers"] = [{**WAIVER, "until": "2020-01-01"}]
    expired = report_playbook(tmp_path / "expired", "drift_report", hosts, drift_report_fail_on="drift")
    assert expired.status != 0
    assert read_report(tmp_path / "expired")["summary"]["outcome"] == "drift"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"drift_report_fail_on": "always"}, "fail_on must be one of"),
        ({"drift_report_forms": ["pdf"]}, "pdf"),
        ({"drift_report_look_at": ["moon"]}, "look_at must be one or more of: isolation, throttling, housekeeping"),
        (
            {"drift_report_look_at": ["isolation"], "drift_report_look_seconds": 0},
            "look_seconds: 0 seconds are no time for isolation; give 1 to 3600",
        ),
        ({"drift_report_baseline": "/nowhere.json"}, "/nowhere.json: cannot be read"),
        (
            {"drift_report_waivers": [{**WAIVER, "check": "no-such"}]},
            "drift_report_waivers[0]: there is no check no-such",
        ),
        ({"drift_report_waivers": [{**WAIVER, "until": "soon"}]}, "drift_report_waivers[0].until"),
    ],
)
def test_what_is_wanted_wrong_is_refused(
    copy_of: CopyOf, tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("edge", "node"))}}
    run = report_playbook(tmp_path, "drift_report", hosts, **variables)
    assert run.status != 0
    assert message in " ".join(run.output.split())
    assert not list(tmp_path.glob("drift-report/*"))


def test_a_report_of_nodes_none_of_which_can_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "sys").mkdir(parents=True)
    hosts: dict[str, dict[str, Any]] = {
        "broken": {"kubelet_node_root": str(broken)},
        "away": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
    }
    textfile = tmp_path / "node.prom"
    run = report_playbook(
        tmp_path,
        "drift_report",
        hosts,
        drift_report_forms=["json", "table"],
        drift_report_node_textfile=str(textfile),
    )
    assert run.status != 0
    assert {node["host"]: node["state"] for node in read_report(tmp_path)["nodes"]} == {
        "broken": "failed",
        "away": "unreachable",
    }
    # Each host fails once, and says why. That its text file was written does not change that.
    for host in hosts:
        (failed,) = (result for result in run.results[host] if result["outcome"] == "failed")
        assert failed["msg"] == failed["message"] != ""
    assert "kubenode_cpu" in textfile.read_text("utf-8")
    assert re.search(r"^2 nodes: .*1 failed", run.output, re.MULTILINE)


def test_parts_of_a_fleet_become_one_report(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {
        name: {"kubelet_node_root": str(copy_of("edge", name))} for name in ("eu", "us", "ap", "missing")
    }
    for part in ("eu", "us", "ap"):
        run = ansible_playbook(tmp_path / part, DRIFT_REPORT, hosts, "--limit", part)
        assert run.status == 0, run.account()
    # A part that was cut off, and a file that is of another node.
    (tmp_path / "ap/drift-report/nodes/ap.json").write_text('{"kind": "kubenode', encoding="utf-8")
    shutil.copy(tmp_path / "eu/drift-report/nodes/eu.json", tmp_path / "us/drift-report/nodes/other.json")
    sources = [str(tmp_path / part) for part in ("eu", "us", "ap")]
    whole = report_playbook(
        tmp_path / "whole", "report", hosts, drift_report_sources=sources, drift_report_fail_on="danger"
    )
    assert whole.status != 0
    report = read_report(tmp_path / "whole")
    states = {node["host"]: node["state"] for node in report["nodes"]}
    assert states == {"eu": "refused", "us": "refused", "ap": "missing", "missing": "missing"}
    assert sorted(Path(problem["file"]).name for problem in report["problems"]) == ["ap.json", "other.json"]
    assert whole.output.count("ap.json") == 1

    old = report_playbook(
        tmp_path / "old", "report", hosts, drift_report_sources=sources[:1], drift_report_max_age="0s"
    )
    # By default, too: a node of which nothing is known is never clean.
    assert old.status != 0, old.account()
    assert "1 stale" in old.results["localhost"][-1]["msg"]
    assert {node["state"] for node in read_report(tmp_path / "old")["nodes"]} == {"missing", "stale"}

    read = report_playbook(tmp_path / "read", "report", {"us": hosts["us"]}, drift_report_sources=sources[1:2])
    assert read.status != 0, read.account()
    assert "1 result file not used" in read.results["localhost"][-1]["msg"]
    (tmp_path / "us/drift-report/nodes/other.json").unlink()
    # What differs fails only where that is wanted.
    read = report_playbook(tmp_path / "read", "report", {"us": hosts["us"]}, drift_report_sources=sources[1:2])
    assert read.status == 0, read.account()
    assert read_report(tmp_path / "read")["summary"]["outcome"] == "danger"


def test_parts_of_two_fleets_are_not_mixed(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("edge", "node"))}}
    for fleet in ("east", "west"):
        run = report_playbook(tmp_path / fleet, "drift_report", hosts, drift_report_fleet=fleet)
        assert run.status == 0, run.account()
        assert read_report(tmp_path / fleet)["fleet"] == fleet
    sources = [str(tmp_path / fleet) for fleet in ("east", "west")]
    mixed = report_playbook(tmp_path / "mixed", "report", hosts, drift_report_sources=sources)
    assert mixed.status != 0
    (problem,) = read_report(tmp_path / "mixed")["problems"]
    assert problem["file"] == str(tmp_path / "west/drift-report/nodes/node.json")
    assert problem["text"].startswith('is of the fleet "west", and ')
    assert mixed.output.count("west/drift-report/nodes/node.json") == 1
    (tmp_path / "east/drift-report/nodes/node.json").unlink()
    west = report_playbook(tmp_path / "west", "report", hosts, drift_report_sources=sources, drift_report_fleet="west")
    assert west.status == 0, west.account()
    assert read_report(tmp_path / "west")["problems"] == []


def test_names_of_pods_are_hidden(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("epyc", "node"))}}
    shown = report_playbook(tmp_path / "shown", "drift_report", hosts)
    hidden = report_playbook(tmp_path / "hidden", "drift_report", hosts, drift_report_redact=True)
    assert (shown.status, hidden.status) == (0, 0), hidden.account()
    texts, checks = [], []
    for name in ("shown", "hidden"):
        files = [path for path in (tmp_path / name / "drift-report").rglob("*") if path.is_file()]
        texts.append("".join(path.read_text("utf-8") for path in files))
        checks.append([finding["check"] for finding in read_report(tmp_path / name)["nodes"][0]["findings"]])
    assert "postgres" in texts[0]
    assert "postgres" not in texts[1] + hidden.output
    assert checks[0] == checks[1]
    digest = sha256(b"postgres").hexdigest()[:8]
    assert digest in texts[1]

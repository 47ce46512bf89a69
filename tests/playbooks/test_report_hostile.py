# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drift report on hostile nodes, as it is read, as a terminal shows it, and as a browser does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .drift_report import WANTED, Report, Tags, make_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.needs(CHROMIUM or "chromium")

# What a node writes in order to act in the operator's browser, and in the operator's terminal. The page as it is has
# neither this title nor this id.
SCRIPT = "<script>document.title='owned';document.body.id='owned'</script>"
IMAGE = "\"><img src=x onerror=document.title='owned'>"
# What Ansible would run, were it a template to it.
TEMPLATE = "".join(
    "%s %s %s" % (begin, "lookup('ansible.builtin.pipe', 'touch owned')", end)
    for begin, end in (
        ("{{", "}}"),
        ("{%- if", "%}{% endif %}"),
        ("#}{#-#}{{", "}}{# "),
        ("{% raw %}{% endraw %}{{", "}}"),
    )
)
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m"


def answering(directory: Path, name: str, answer: Any) -> dict[str, Any]:
    """Return a host that a stranger has: its Python answers what the stranger likes."""
    python = directory / name
    python.parent.mkdir(exist_ok=True)
    python.write_text("#!/bin/sh\ncat <<'END'\n%s\nEND\n" % json.dumps(answer), encoding="utf-8")
    python.chmod(0o755)
    return {"ansible_python_interpreter": str(python)}


def hostile_answer(markup: str) -> dict[str, Any]:
    """Return an answer with markup wherever the report shows something."""
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
    "templates": {**hostile_answer(TEMPLATE), TEMPLATE: TEMPLATE, "msg": TEMPLATE, "found": {TEMPLATE: TEMPLATE}},
    "template": {"failed": True, "msg": TEMPLATE},
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


def test_a_hostile_node_does_not_stop_the_report(hostile: Hostile) -> None:
    report, page = hostile.report, Tags(hostile.report.page)
    assert len(report.nodes) == 21
    # Its checkpoint is damaged, as that of all copies of it.
    assert report.nodes["honest"]["state"] == "refused"
    # It is itself, and no other node is taken for it.
    assert report.answers["honest"]["found"]["cpu_manager_policy"] == "static"
    assert report.answers["script"]["host"] == "honest"
    assert report.report["summary"]["nodes"] == 21
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
    """Return the page as a browser has it, once its scripts, if any, have run."""
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

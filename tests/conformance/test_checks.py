# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each check of the report has a node as files on which it is found, and the same node on which it is not."""

from __future__ import annotations

import importlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS, NOTE, check_of_subject
from ansible_collections.kubenode.cpu_manager.tests.conformance.node_reports import (
    HOST,
    TROUBLES,
    WITHOUT_SAMPLE,
    report_of,
    samples,
)
from ansible_collections.kubenode.cpu_manager.tests.conformance.node_troubles import FLAG
from ansible_collections.kubenode.cpu_manager.tests.conformance.trouble_case import Trouble
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import EMPTY, Saved

CHECKOUT = Path(__file__).parents[2]

# These do not come from the files of a node, so their rows have `configz` or `added`.
NOT_OF_FILES = {
    "running-kubelet-differs": "what the API server answers for the node is compared with its files",
    "running-kubelet-unread": "the action plugin adds the note where the API server does not answer",
    "exclusive-cpus-disturbed": "who runs on which CPU is no file: the answer is made of a sample",
    "kubelet-refuses-start": "a kubelet that is started says it: tests/cluster/test_trial.py has real ones",
    "next-kubelet-refuses-start": "as above",
    "prediction-differs": "as above",
    "pods-would-be-refused": "the API server says which pods there are",
    "impact-unmeasured": "the API server says which pods there are, or does not answer",
    "waiver-ended": "whoever waives a finding says so in variables, until a day",
    "noted": "every note of the collection has a check; a newer collection may send one that is not in the list",
}

ROLLOUT, REPAIR = "kubenode.cpu_manager.rollout", "kubenode.cpu_manager.repair"


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def findings_of(saved: Saved, root: Path, wanted: Mapping[str, Any], **more: Any) -> list[dict[str, str]]:
    """Return the findings of a node in its report, which is plain data; `more` is what report_of() takes."""
    report = report_of(saved, root, wanted, **more)
    assert json.loads(json.dumps(report)) == report
    (node,) = report["nodes"]
    assert (node["state"] in ("drift", "refused")) == any(finding["severity"] != NOTE for finding in node["findings"])
    found: Any = node["findings"]
    assert set(report["checks"]) == checks_of(found)
    return list(found)


def checks_of(findings: Iterable[Mapping[str, str]]) -> set[str]:
    return {finding["check"] for finding in findings}


def check_with_and_without(trouble: Trouble, root: Path) -> None:
    more = {"configz": trouble.configz, "added": trouble.added, "looks": trouble.looks}
    found = findings_of(trouble.node, root / "with", trouble.wanted, **more)
    assert checks_of(found) == set(trouble.checks)
    without = findings_of(trouble.without, root / "without", trouble.wanted, looks=trouble.looks_without)
    assert checks_of(without) == set(trouble.checks_without)
    for finding in (*found, *without):
        assert finding["severity"] == CHECKS[finding["check"]].severity
        assert finding["remedy"], finding
        assert finding["text"] or (finding["subject"] and finding["wanted"] != finding["found"]), finding


@pytest.mark.parametrize("name", TROUBLES)
def test_the_checks_of_a_node_with_a_trouble_and_without_it(root: Path, name: str) -> None:
    check_with_and_without(TROUBLES[name], root)


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    return samples()


def test_what_is_shown_for_each_check_is_of_no_directory_of_a_test(shown: dict[str, str]) -> None:
    assert set(shown) == set(CHECKS) - {WITHOUT_SAMPLE}
    assert [check for check, text in shown.items() if "/tmp" in text or HOST not in text or check not in text] == []


def test_the_page_of_checks_has_a_section_for_each(shown: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(CHECKOUT / "docs")
    writer = importlib.import_module("write_checks")
    _begin, *parts = re.split(r"^\.\. _.*checks\.([\w-]+):\n\n", writer.page(shown), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2]))
    assert set(sections) == set(CHECKS)
    for name, check in CHECKS.items():
        assert sections[name].startswith("%s\n%s\n" % (name, "~" * len(name)))
        texts = [writer.escaped(text) for text in (check.title, check.why, check.remedy_for())]
        assert [text for text in [*texts, *shown.get(name, "").split()] if text not in sections[name]] == []


def test_every_check_has_a_node_with_it_and_one_without_it() -> None:
    rows = list(TROUBLES.values())
    assert {check for row in rows for check in set(row.checks) - set(row.checks_without)} == set(CHECKS)
    of_files = {
        check
        for row in rows
        if not row.configz and row.added is None and not any(row.looks.values())
        for check in row.checks
    }
    assert set(CHECKS) - of_files == set(NOT_OF_FILES)


# --- what a finding says to do ------------------------------------------------------------------------


def test_every_setting_has_a_check_of_its_own() -> None:
    assert [name for name in SETTINGS if name not in check_of_subject(name).subjects] == []


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, trouble in TROUBLES.items()
        if any(playbook in CHECKS[check].remedy for check in trouble.checks for playbook in (ROLLOUT, REPAIR))
    ],
)
def test_the_playbook_of_a_remedy_has_something_to_do(root: Path, name: str) -> None:
    trouble = TROUBLES[name]
    found = findings_of(trouble.node, root, trouble.wanted, configz=trouble.configz)
    for playbook, wanted in ((ROLLOUT, trouble.wanted), (REPAIR, {})):
        if any(playbook in finding["remedy"] for finding in found):
            node = Node(Tree(str(root)), minor=trouble.node.minor)
            assert rollout_report(node, wanted, ChangeTerms())["actions"], playbook


def test_a_refusal_names_its_place_once(root: Path) -> None:
    found = findings_of(EMPTY.having(FLAG), root, {"cpu_manager_reconcile_period": "5s"})
    (refusal,) = (finding for finding in found if finding["check"] == "change-refused")
    place = refusal["text"].partition(": ")[0]
    assert not refusal["text"].startswith("%s: %s: " % (place, place))


def remedies() -> list[str]:
    subjects = [(check, subject) for check in CHECKS.values() for subject in ("", *check.subjects)]
    return sorted({check.remedy_for(subject) for check, subject in subjects})


@pytest.mark.parametrize("remedy", remedies())
def test_what_a_remedy_names_is_there(remedy: str) -> None:
    assert "{" not in remedy
    assert remedy[-1] == "."
    for name in re.findall(r"kubenode\.cpu_manager\.(\w+)", remedy):
        places = CHECKOUT / "playbooks" / (name + ".yml"), CHECKOUT / "roles" / name
        assert any(place.exists() for place in places), name
    for name in re.findall(r"\b(?:kubelet|drift_report)_\w+", remedy):
        role = "drift_report" if name.startswith("drift_report") else "kubelet"
        specification = (CHECKOUT / "roles" / role / "meta/argument_specs.yml").read_text("utf-8")
        assert re.search(r"^ +%s:$" % name, specification, re.MULTILINE), name
    playbooks = "".join(path.read_text("utf-8") for path in (CHECKOUT / "playbooks").glob("*.yml"))
    for name in re.findall(r"\bcpu_manager_\w+", remedy.replace("kubelet_cpu_manager", "")):
        assert name in playbooks

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drift report on nodes that are managed elsewhere, and on hosts without a kubelet."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import DISTRIBUTIONS, NOWHERE
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .conftest import fingerprint
from .drift_report import WANTED, Report, Tags, checks_of, make_report
from .test_distributions import MACHINE, make_managed_node


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
    report = make_report(directory / "run", hosts, "-e", "cpu_manager_skip_hosts_without_kubelet=true")
    assert fingerprint(fleet) == before
    return report


MANAGED = ("openshift", "talos", "bottlerocket", "gke", "aks", "k0s")


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


def test_no_gate_passes_where_no_kubelet_was_found(tmp_path: Path) -> None:
    """As with a root that is forgotten or misspelled: nothing was read, so nothing is as wanted."""
    write_tree(parse_name(MACHINE).topology(), tmp_path / "node", parse_name(MACHINE).whole())
    hosts = {"worker": {"kubelet_node_root": str(tmp_path / "node")}}
    for gate in ("never", "unread", "danger", "drift"):
        report = make_report(tmp_path / gate, hosts, "-e", "drift_report_fail_on=" + gate)
        assert report.run.status != 0, report.run.account()
        assert (report.nodes["worker"]["state"], report.report["summary"]["exit_status"]) == ("failed", 1)
        assert "no kubelet runs here, and there is no file of one" in report.nodes["worker"]["message"]
        skips = ("-e", "drift_report_fail_on=" + gate, "-e", "cpu_manager_skip_hosts_without_kubelet=true")
        report = make_report(tmp_path / (gate + "-left-out"), hosts, *skips)
        assert report.nodes["worker"]["state"] == "no kubelet"
        is_said = "no host has a kubelet, so nothing was compared" in " ".join(report.run.output.split())
        assert (report.run.status, is_said) == ((0, False) if gate == "never" else (2, True)), report.run.account()


def test_why_no_module_started_is_in_the_message(tmp_path: Path) -> None:
    """Ansible's own message is that there is no JSON; what the node wrote, such as sudo, says why."""
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n", encoding="utf-8")
    interpreter.chmod(0o755)
    hosts = {"worker": {"kubelet_node_root": str(tmp_path), "ansible_python_interpreter": str(interpreter)}}
    report = make_report(tmp_path / "run", hosts)
    assert report.run.status != 0
    assert report.nodes["worker"]["message"] == (
        "the module gave no answer: sudo: a password is required; the node needs Python 3.8 or later, and its user the"
        " right to become root"
    )

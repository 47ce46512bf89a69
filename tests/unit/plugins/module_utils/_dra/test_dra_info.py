# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dra/dra_info.py: what the driver's documentation requires, file by file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dra.dra_info import DriverWish, driver_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
CONFIG, CONTAINERD = "/var/lib/kubelet/config.yaml", "/etc/containerd/config.toml"
RESERVED = 'reservedSystemCPUs: "0,4"\n'
READY = {CONFIG: HEADER + RESERVED, CONTAINERD: "version = 3\n"}


def node(root: Path, files: Mapping[str, str | bytes], minor: int | None = 36, kubelet_root: str | None = None) -> Node:
    write_machine(root, "1s4c2t")
    for path, content in files.items():
        place = Path("%s%s" % (root, path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Node(Tree(str(root)), None, kubelet_root, minor)


def test_a_node_that_is_ready(tmp_path: Path) -> None:
    report = driver_report(node(tmp_path, READY), {}, DriverWish())
    assert (report["ready"], report["findings"], report["notes"]) == (True, [], [])
    assert (report["reserved_cpus"], report["chart_values"]) == ("0,4", {"driverConfig": {"reservedCPUs": "0,4"}})
    assert report["driver"] == {"found": False, "in_use": False, "evidence": []}
    assert (report["runtime"]["kind"], report["runtime"]["nri"], report["runtime"]["cdi"]) == ("containerd", True, True)
    assert report["settings"]["reserved_system_cpus"] == "0,4"


class Case(NamedTuple):
    """What is other than on a node that is ready, and the ids of what is found, with whether to_dra changes it."""

    found: Mapping[str, bool]
    files: Mapping[str, str | bytes] = {}
    wanted: Mapping[str, Any] = {}
    wish: DriverWish = DriverWish()
    minor: int = 36


CASES = {
    "static": Case({"cpu-manager-policy": True}, {CONFIG: HEADER + RESERVED + "cpuManagerPolicy: static\n"}),
    "exclusive CPUs": Case(
        {"checkpoint": True},
        {
            "/var/lib/kubelet/cpu_manager_state": write_checkpoint(
                "static", State(CPUSet.parse("0,2-4,6-7"), {"pod": {"web": CPUSet.parse("1,5")}}), format_for(36)
            )
        },
    ),
    "no exclusive CPUs": Case(
        {},
        {"/var/lib/kubelet/cpu_manager_state": write_checkpoint("none", State(CPUSet.parse(""), {}), format_for(36))},
    ),
    "old Kubernetes": Case({"kubernetes-version": False}, minor=33),
    "the gate is off": Case(
        {"feature-gate": False},
        {CONFIG: HEADER + RESERVED + "featureGates: {DynamicResourceAllocation: false}\n"},
        minor=34,
    ),
    "nothing is reserved": Case({}, {CONFIG: HEADER}),
    "half a CPU": Case({"reserved-cpus": False}, {CONFIG: HEADER + "kubeReserved: {cpu: 500m}\n"}),
    "two CPUs without a name": Case(
        {"reserved-cpus": False}, {CONFIG: HEADER + "kubeReserved: {cpu: 500m}\nsystemReserved: {cpu: 1500m}\n"}
    ),
    "two CPUs with a name for the driver": Case(
        {},
        {CONFIG: HEADER + "kubeReserved: {cpu: 500m}\nsystemReserved: {cpu: 1500m}\n"},
        wish=DriverWish(CPUSet.parse("0,4")),
    ),
    "the list counts": Case({}, {CONFIG: HEADER + RESERVED + "kubeReserved: {cpu: 500m}\n"}),
    "will be reserved": Case({}, {CONFIG: HEADER}, {"reserved_system_cpus": "0-1"}, DriverWish(CPUSet.parse("0-1"))),
    "another number": Case({"reserved-cpus": False}, wish=DriverWish(CPUSet.parse("0"))),
    "other CPUs": Case({"reserved-cpus": False}, wish=DriverWish(CPUSet.parse("1,5"))),
    "NRI and CDI are off": Case({"nri": True, "cdi": True}, {CONTAINERD: "version = 2\n"}),
    "NRI and CDI of a version": Case(
        {}, {CONTAINERD: "version = 2\n"}, wish=DriverWish(runtime_version="containerd v2.0.0")
    ),
    "the socket is elsewhere": Case(
        {"nri-socket": False},
        {CONTAINERD: 'version = 3\n[plugins."io.containerd.nri.v1.nri"]\nsocket_path = "/x/nri.sock"\n'},
    ),
    "CDI looks elsewhere": Case(
        {"cdi-directories": False},
        {CONTAINERD: "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\ncdi_spec_dirs = ['/etc/cdi']\n"},
    ),
    "the runtime's file is damaged": Case({"runtime": False}, {CONTAINERD: "version\n"}),
    "another owner": Case({"other-owner": False}, {"/opt/nri/plugins/10-nri-resource-policy-balloons": ""}),
    "another owner is allowed": Case(
        {},
        {"/opt/nri/plugins/10-nri-resource-policy-balloons": ""},
        wish=DriverWish(allowed=("nri-balloons",)),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_the_driver_needs(case: Case, tmp_path: Path) -> None:
    report = driver_report(node(tmp_path, {**READY, **case.files}, case.minor), case.wanted, case.wish)
    found = {finding["id"]: finding["changed_by_to_dra"] for finding in report["findings"]}
    assert found == case.found, report["findings"]
    assert report["ready"] == (not case.found)
    assert all(finding["text"] and finding["remedy"] for finding in report["findings"])


@pytest.mark.parametrize(("minor", "is_noted"), [(33, False), (34, True), (35, True), (36, False)])
def test_the_gate_of_the_default_mode(minor: int, is_noted: bool, tmp_path: Path) -> None:
    report = driver_report(node(tmp_path, READY, minor), {}, DriverWish())
    assert any("DRAConsumableCapacity" in note for note in report["notes"]) is is_noted


def test_the_driver_is_there(tmp_path: Path) -> None:
    socket = "/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock"
    report = driver_report(node(tmp_path, {**READY, socket: ""}), {}, DriverWish())
    assert report["driver"] == {"found": True, "in_use": True, "evidence": [socket]}
    assert report["ready"]


def test_a_root_directory_of_its_own(tmp_path: Path) -> None:
    report = driver_report(node(tmp_path, READY, kubelet_root="/data/kubelet"), {}, DriverWish())
    assert report["chart_values"] == {"driverConfig": {"reservedCPUs": "0,4"}, "kubeletRootDir": "/data/kubelet"}


def test_there_is_no_socket_on_a_live_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = node(tmp_path, READY)
    monkeypatch.setattr(Tree, "live", property(lambda _tree: True))
    wish = DriverWish(runtime_version="2.0.0")
    (finding,) = driver_report(saved, {}, wish)["findings"]
    # The runtime's files are right already, so nothing would restart it.
    assert (finding["id"], finding["changed_by_to_dra"]) == ("nri-socket", False)
    # CDI is off: its file changes, and then the runtime is restarted.
    nri = 'version = 2\n[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n'
    changed = node(tmp_path / "changed", {**READY, CONTAINERD: nri})
    findings = driver_report(changed, {}, DriverWish(runtime_version="1.7.0"))["findings"]
    assert {finding["id"]: finding["changed_by_to_dra"] for finding in findings} == {"cdi": True, "nri-socket": True}
    (tmp_path / "var/run/nri").mkdir(parents=True)
    (tmp_path / "var/run/nri/nri.sock").touch()
    assert driver_report(saved, {}, wish)["ready"]


@pytest.mark.parametrize("wish", [DriverWish(runtime_version="new"), DriverWish(allowed=("nobody",))])
def test_what_is_wanted_wrong(wish: DriverWish, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        driver_report(node(tmp_path, READY), {}, wish)


def test_a_host_without_a_kubelet(tmp_path: Path) -> None:
    with pytest.raises(NodeError) as caught:
        driver_report(node(tmp_path, {}), {}, DriverWish())
    assert caught.value.kind == "no_kubelet"

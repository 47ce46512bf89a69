# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saved nodes with several container runtimes, from the static policy to what the DRA CPU driver needs, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import Run, ansible_playbook

TO_DRA, FROM_DRA = "kubenode.cpu_manager.to_dra", "kubenode.cpu_manager.from_dra"
ROLLBACK = "kubenode.cpu_manager.rollback"

KUBELET = "/var/lib/kubelet/config.yaml"
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
CONTAINERD = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-kubenode-cpu-manager.toml"
CRIO_DROP_IN = "/etc/crio/crio.conf.d/99-kubenode-cpu-manager.conf"
NOTES = "/var/lib/kubenode-cpu-manager/"

STATIC = (
    HEADER
    + """\
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "true"
reservedSystemCPUs: "0,4"
"""
)
OLD = """\
version = 2
# of containerd config default
[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    enable_cdi = false
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.nri.v1.nri"]
    disable = true
"""
NEW = """\
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.nri.v1.nri"]
disable = true
"""
CRIO = "[crio.nri]\nenable_nri = false\n"
CRIO_ENDPOINT = "containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n"

NODES: dict[str, dict[str, str]] = {
    "old": {KUBELET: STATIC, CONTAINERD: OLD},
    "new": {KUBELET: STATIC, CONTAINERD: NEW},
    "on": {KUBELET: STATIC, CONTAINERD: "version = 3\n"},
    "crio": {KUBELET: STATIC + CRIO_ENDPOINT, "/etc/crio/crio.conf.d/10-crio.conf": CRIO},
}
# What to_dra writes, but for the kubelet's own files.
WRITTEN = {"old": {CONTAINERD}, "new": {DROP_IN}, "on": set(), "crio": {CRIO_DROP_IN}}

VARIABLES: dict[str, Any] = {
    "kubelet_target_version": "1.36.0",
    "kubelet_cpu_manager_policy": "static",
    "kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "kubelet_reserved_system_cpus": "0,4",
}


def make_node(root: Path, files: Mapping[str, str]) -> None:
    write_machine(root, "1s4c2t")
    for path, content in files.items():
        write(root, path, content.encode())
    write(root, CHECKPOINT, write_checkpoint("static", State(CPUSet.parse("0-7"), {}), format_for(36)))


def write(root: Path, path: str, content: bytes) -> None:
    place = Path("%s%s" % (root, path))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def contents(root: Path) -> dict[str, bytes]:
    """Return the files of a node below /etc and /var, without backups and our own notes."""
    found = {
        "/%s" % path.relative_to(root): path.read_bytes()
        for top in ("etc", "var")
        for path in (root / top).rglob("*")
        if path.is_file() and not path.name.endswith("~")
    }
    return {path: content for path, content in found.items() if not path.startswith(NOTES)}


class Nodes:
    """Nodes, and the playbooks on them."""

    def __init__(self, directory: Path, nodes: Mapping[str, Mapping[str, str]]) -> None:
        self.directory = directory
        self.roots = {name: directory / "nodes" / name for name in nodes}
        for name, files in nodes.items():
            make_node(self.roots[name], files)

    def run(self, name: str, playbook: str, *arguments: str, **variables: Mapping[str, Any]) -> Run:
        """Run a playbook with variables of some of the hosts."""
        hosts = {
            host: {"kubelet_node_root": str(root), **VARIABLES, **variables.get(host, {})}
            for host, root in self.roots.items()
        }
        everywhere = ("-e", "cpu_manager_serial=100%")
        return ansible_playbook(self.directory / name, playbook, hosts, *everywhere, *arguments)

    def contents(self) -> dict[str, dict[str, bytes]]:
        return {name: contents(root) for name, root in self.roots.items()}


class Story(NamedTuple):
    """Nodes, and their files before and after each run."""

    nodes: Nodes
    runs: dict[str, Run]
    files: dict[str, dict[str, dict[str, bytes]]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    nodes = Nodes(tmp_path_factory.mktemp("dra"), NODES)
    runs, files = {}, {"": nodes.contents()}
    steps = {
        "preview": (TO_DRA, "--check", "--diff"),
        "there": (TO_DRA, "--diff"),
        "again": (TO_DRA,),
        "back": (FROM_DRA,),
    }
    for name, (playbook, *arguments) in steps.items():
        runs[name] = nodes.run(name, playbook, *arguments)
        files[name] = nodes.contents()
    for run in runs.values():
        assert run.status == 0, run.account()
    return Story(nodes, runs, files)


def changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> set[str]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def test_check_mode_writes_nothing_and_shows_all(story: Story) -> None:
    assert story.files["preview"] == story.files[""]
    for line in ("-cpuManagerPolicy: static", "+disable = false", "+enable_nri = true", "+enable_cdi = true"):
        assert line in story.runs["preview"].output
        assert line in story.runs["there"].output


def test_to_dra_writes_what_is_needed_and_no_more(story: Story) -> None:
    for name, written in WRITTEN.items():
        before, after = story.files[""][name], story.files["there"][name]
        assert changed(before, after) - {CHECKPOINT} == {KUBELET, *written}, name
        assert b"cpuManagerPolicy: none\n" in after[KUBELET]
        assert b"full-pcpus-only" not in after[KUBELET]
        assert b'reservedSystemCPUs: "0,4"' in after[KUBELET]
        if CHECKPOINT in after:
            checkpoint = decode_checkpoint(after[CHECKPOINT])
            assert (checkpoint.policy_name, checkpoint.entries or {}) == ("none", {})


def test_to_dra_shows_the_values_of_the_driver(story: Story) -> None:
    output = story.runs["there"].output
    assert 'old new on crio {"driverConfig": {"reservedCPUs": "0,4"}}' in " ".join(output.split())
    for results in story.runs["there"].results.values():
        last = [result for result in results if "findings" in result and "chart_values" in result][-1]
        assert (last["ready"], last["findings"]) == (True, [])


def test_a_second_run_changes_nothing(story: Story) -> None:
    assert story.files["again"] == story.files["there"]
    assert not [result for results in story.runs["again"].results.values() for result in results if result["changed"]]


def test_a_rollback_takes_the_runtime_back_with_the_kubelet(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, NODES)
    before = nodes.contents()
    for name, playbook in (("there", TO_DRA), ("rolled-back", ROLLBACK)):
        run = nodes.run(name, playbook)
        assert run.status == 0, run.account()
    after = nodes.contents()
    for name in NODES:
        assert changed(before[name], after[name]) <= {CHECKPOINT}, name


def test_from_dra_puts_the_runtime_back_to_the_byte(story: Story) -> None:
    for name in NODES:
        before, after = story.files[""][name], story.files["back"][name]
        assert changed(before, after) <= {KUBELET, CHECKPOINT}, name
        assert b"cpuManagerPolicy: static\n" in after[KUBELET]
        assert b"full-pcpus-only" in after[KUBELET]


class Refused(NamedTuple):
    """What a node has more than the node "old", what it is given, and why it is refused."""

    message: str
    files: Mapping[str, str] = {}
    variables: Mapping[str, Any] = {}


REFUSED = {
    "version": Refused(
        "Kubernetes 1.33 has no resource.k8s.io/v1; upgrade the cluster to 1.34 or later",
        variables={"kubelet_target_version": "1.33.2"},
    ),
    "number": Refused(
        "kubelet_dra_reserved_cpus: the driver is to reserve 1 CPU (0), and the kubelet reserves 2 CPUs",
        variables={"kubelet_dra_reserved_cpus": "0"},
    ),
    "others": Refused(
        "kubelet_dra_reserved_cpus: the CPUs 1,5 are others than the kubelet's 0,4",
        variables={"kubelet_dra_reserved_cpus": "1,5"},
    ),
    "counted": Refused(
        "kubelet_reserved_system_cpus: the kubelet reserves 1.5 CPUs without naming them",
        {KUBELET: STATIC.replace('reservedSystemCPUs: "0,4"', 'kubeReserved:\n  cpu: "1500m"')},
        {"kubelet_reserved_system_cpus": ""},
    ),
    "gate": Refused(
        "the feature gate DynamicResourceAllocation is off",
        {KUBELET: STATIC + "featureGates:\n  DynamicResourceAllocation: false\n"},
        {"kubelet_target_version": "1.34.1"},
    ),
    "damaged": Refused("config.toml: cannot be understood: line 2", {CONTAINERD: "version = 2\n[plugins\n"}),
    "directories": Refused(
        "cdi_spec_dirs has no /var/run/cdi",
        {CONTAINERD: OLD.replace("enable_cdi = false", 'cdi_spec_dirs = ["/etc/cdi"]')},
    ),
    "docker": Refused(
        "Docker has no NRI", {KUBELET: STATIC + "containerRuntimeEndpoint: unix:///run/cri-dockerd.sock\n"}
    ),
}


def test_what_the_driver_cannot_have_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, {name: {**NODES["old"], **refused.files} for name, refused in REFUSED.items()})
    before = nodes.contents()
    run = nodes.run("run", TO_DRA, **{name: refused.variables for name, refused in REFUSED.items()})
    assert run.status != 0
    for name, refused in REFUSED.items():
        assert run.last(name)["outcome"] == "failed"
        assert refused.message in run.last(name)["msg"]
    assert nodes.contents() == before


def test_what_the_plan_refuses_of_the_runtime(tmp_path: Path) -> None:
    """No file here turns NRI on: another one has the last word, or the plugin is not loaded at all."""
    files = {
        "later": {**NODES["crio"], "/etc/crio/crio.conf.d/99-z.conf": CRIO},
        "disabled": {**NODES["old"], CONTAINERD: OLD.replace("\n#", '\ndisabled_plugins = ["cri"]\n#', 1)},
    }
    nodes = Nodes(tmp_path, files)
    before = nodes.contents()
    run = nodes.run("run", TO_DRA)
    assert run.status != 0
    assert "99-z.conf: says otherwise" in run.last("later")["msg"]
    assert "[crio.nri] enable_nri = true" in run.last("later")["msg"]
    assert "disabled_plugins keeps containerd from loading" in run.last("disabled")["msg"]
    assert nodes.contents() == before


def test_from_dra_is_refused_while_the_driver_is_there(tmp_path: Path) -> None:
    registered = "/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock"
    nodes = Nodes(tmp_path, {"node": {**NODES["old"], registered: ""}})
    before = nodes.contents()
    run = nodes.run("run", FROM_DRA)
    assert run.status != 0
    assert "the DRA CPU driver is still there" in run.last("node")["msg"]
    assert registered in run.last("node")["msg"]
    assert nodes.contents() == before

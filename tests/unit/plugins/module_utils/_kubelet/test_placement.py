# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole kubelets of many distributions: what is planned for their files, and that it has the wanted effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.placement import main_file, plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import differences, plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import read_sources
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER, KUBELETS
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.placement_nodes import (
    apply,
    found,
    planned,
    texts,
    write_node,
)

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"},
    "topology_manager_policy": "restricted",
    "cpu_cfs_quota_period": "50ms",
    "reserved_system_cpus": "0,4",
    "kube_reserved_cpu": "250m",
}


# --- every distribution -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", KUBELETS)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    kubelet = KUBELETS[name]
    root = write_node(tmp_path / "node", kubelet)
    before, files = found(root, kubelet.version), texts(root)
    assert apply(root, kubelet.version, WANTED) == list(kubelet.written)
    assert differences(WANTED, found(root, kubelet.version)) == []
    # Once is enough.
    assert planned(root, kubelet.version, WANTED) == []
    # What nobody asked for stays.
    others = {setting: value for setting, value in before.items() if setting not in WANTED}
    assert differences(others, found(root, kubelet.version)) == []
    # Only these files are written.
    after = texts(root)
    assert {path for path in after if after[path] != files.get(path)} == {str(root) + path for path in kubelet.written}

    apply(root, kubelet.version, before)
    assert differences(before, found(root, kubelet.version)) == []
    assert planned(root, kubelet.version, before) == []


@pytest.mark.parametrize("name", [name for name, kubelet in KUBELETS.items() if kubelet.command_line])
def test_stopped_for_the_change(name: str, tmp_path: Path) -> None:
    """The role asks while the kubelet runs, and writes while it does not."""
    kubelet = KUBELETS[name]
    root = write_node(tmp_path / "node", kubelet)
    asked = Node(Tree(str(root))).installation
    assert asked is not None
    assert asked.command_line == tuple(kubelet.command_line.split())
    running = planned(root, kubelet.version, WANTED)
    (root / "proc/4711/cmdline").unlink()
    assert planned(root, kubelet.version, WANTED, command_line=asked.command_line) == running


some_settings = st.fixed_dictionaries(
    {},
    optional={
        "cpu_manager_policy": st.sampled_from(["static", "none"]),
        "cpu_manager_policy_options": st.dictionaries(
            st.sampled_from(["full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket"]),
            st.sampled_from(["true", "false"]),
        ),
        "cpu_manager_reconcile_period": st.sampled_from(["10s", "5s"]),
        "topology_manager_policy": st.sampled_from(["none", "restricted"]),
        "cpu_cfs_quota": st.booleans(),
        "cpu_cfs_quota_period": st.sampled_from(["100ms", "5ms"]),
        "reserved_system_cpus": st.sampled_from(["", "0", "0,4"]),
        "kube_reserved_cpu": st.sampled_from(["0", "500m"]),
        "system_reserved_memory": st.sampled_from(["0", "1Gi"]),
        "memory_manager_policy": st.sampled_from(["None", "Static"]),
        "reserved_memory": st.sampled_from([[], [{"numaNode": 0, "limits": {"memory": "1Gi"}}]]),
    },
)


@given(st.sampled_from(sorted(KUBELETS)), st.lists(some_settings, min_size=1, max_size=3))
def test_any_change_has_its_effect(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: list[dict[str, Any]]
) -> None:
    kubelet = KUBELETS[name]
    root = write_node(tmp_path_factory.mktemp("any") / "node", kubelet)
    for wanted in steps:
        apply(root, kubelet.version, wanted)
        assert differences(wanted, found(root, kubelet.version)) == []
        assert planned(root, kubelet.version, wanted) == []


# --- what is written --------------------------------------------------------------------------------

OPTION = {"cpu_manager_policy": "static", "cpu_manager_policy_options": {"full-pcpus-only": "true"}}


def written(tmp_path: Path, name: str, *steps: Mapping[str, Any]) -> str:
    """Return the last file after these changes."""
    kubelet = KUBELETS[name]
    root = write_node(tmp_path / "node", kubelet)
    for wanted in steps:
        apply(root, kubelet.version, wanted)
    return (root / kubelet.written[-1].lstrip("/")).read_text(encoding="utf-8")


def test_drop_in(tmp_path: Path) -> None:
    text = written(tmp_path, "k3s", OPTION, {"cpu_manager_policy": "none"})
    # Nothing below gives options, so nothing has to be removed.
    assert text == (
        "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"
        "apiVersion: kubelet.config.k8s.io/v1beta1\n"
        "cpuManagerPolicy: none\n"
        "kind: KubeletConfiguration\n"
    )


def test_a_drop_in_removes_what_is_below_it(tmp_path: Path) -> None:
    kubelet = KUBELETS["k3s"]
    base = HEADER + "cpuManagerPolicyOptions: {full-pcpus-only: 'true', strict-cpu-reservation: 'true'}\n"
    defaults = next(path for path in kubelet.files if path.endswith(".conf"))
    root = write_node(tmp_path / "node", kubelet._replace(files={defaults: base + "reservedSystemCPUs: '0'\n"}))
    apply(root, "1.33", {**OPTION, "reserved_system_cpus": ""})
    text = (root / kubelet.written[0].lstrip("/")).read_text(encoding="utf-8")
    assert '  full-pcpus-only: "true"\n  strict-cpu-reservation: null\n' in text
    assert "reservedSystemCPUs: null\n" in text
    assert found(root, "1.33")["cpu_manager_policy_options"] == {"full-pcpus-only": "true"}
    apply(root, "1.33", {"cpu_manager_policy": "none"})
    assert "cpuManagerPolicyOptions: null\n" in (root / kubelet.written[0].lstrip("/")).read_text(encoding="utf-8")


def test_kubelet_arg(tmp_path: Path) -> None:
    assert written(tmp_path, "k3s-flags", OPTION, {"cpu_cfs_quota": False, "kube_reserved_cpu": "1"}) == (
        "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"
        "kubelet-arg+:\n"
        '  - "cpu-manager-policy=static"\n'
        '  - "cpu-manager-policy-options=full-pcpus-only=true"\n'
        '  - "cpu-cfs-quota=false"\n'
        '  - "kube-reserved=cpu=1"\n'
    )


def test_microk8s(tmp_path: Path) -> None:
    alpha = {**OPTION, "cpu_manager_policy_options": {"align-by-socket": "true"}}
    assert written(tmp_path, "microk8s", alpha) == (
        "# the kubelet's\n--root-dir=${SNAP_COMMON}/var/lib/kubelet\n"
        "--cpu-manager-policy=static\n--cpu-manager-policy-options=align-by-socket=true\n"
        "--feature-gates=NodeSwap=false,CPUManagerPolicyAlphaOptions=true\n"
    )


def test_eks_gives_the_cgroups_up(tmp_path: Path) -> None:
    text = written(tmp_path, "eks", {"cpu_manager_policy": "static", "reserved_system_cpus": "0"})
    assert '"kubeReservedCgroup": "",\n' in text
    assert '"systemReservedCgroup": ""\n' in text
    assert '"kubeReserved": {"cpu": "70m", "memory": "442Mi"},\n' in text


def test_comments_stay(tmp_path: Path) -> None:
    assert "# the cluster's\nclusterDomain: cluster.local  # as everywhere\n" in written(tmp_path, "kubeadm", OPTION)


# --- kubeadm's patch --------------------------------------------------------------------------------


def test_patch(tmp_path: Path) -> None:
    kubelet = KUBELETS["kubeadm-patches"]
    root = write_node(tmp_path / "node", kubelet)
    patch = root / kubelet.written[0].lstrip("/")
    apply(root, kubelet.version, OPTION)
    assert patch.read_text(encoding="utf-8") == (
        "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"
        "apiVersion: kubelet.config.k8s.io/v1beta1\n"
        "cpuManagerPolicy: static\n"
        'cpuManagerPolicyOptions:\n  full-pcpus-only: "true"\n'
        "kind: KubeletConfiguration\n"
    )
    # The cluster's configuration may give options: then they are to go.
    apply(root, kubelet.version, {"cpu_manager_policy": "none"})
    assert "cpuManagerPolicyOptions: null\n" in patch.read_text(encoding="utf-8")
    # A change by hand is undone together with its patch.
    patch.unlink()
    assert apply(root, kubelet.version, {"cpu_manager_policy": "none"}) == [kubelet.written[0]]
    assert planned(root, kubelet.version, {}) == []


def test_a_patch_whose_file_was_made_anew(tmp_path: Path) -> None:
    """As kubeadm does without its patches: the file says what is wanted, and the patch does not yet."""
    kubelet = KUBELETS["kubeadm-patches"]
    root = write_node(tmp_path / "node", kubelet)
    patch = root / kubelet.written[0].lstrip("/")
    config = root / "var/lib/kubelet/config.yaml"
    before = config.read_bytes()
    apply(root, kubelet.version, OPTION)
    config.write_bytes(before)
    apply(root, kubelet.version, {"cpu_manager_policy": "none"})
    text = patch.read_text(encoding="utf-8")
    assert "cpuManagerPolicy: none\n" in text
    assert "cpuManagerPolicyOptions: null\n" in text


@pytest.mark.parametrize(("version", "patches_dir", "files"), [("1.24", None, 1), ("1.25", None, 2), ("1.36", "", 1)])
def test_no_patch(version: str, patches_dir: str | None, files: int, tmp_path: Path) -> None:
    root = write_node(tmp_path / "node", KUBELETS["kubeadm-patches"])
    node = Node(Tree(str(root)), minor=minor_version(version))
    plan = plan_settings(OPTION, node.needed_configuration(), node.minor)
    assert len(plan_files(read_sources(node, patches_dir), plan, OPTION, node.minor)) == files


# --- which file it is -------------------------------------------------------------------------------


def test_what_was_written_as_flags_stays_flags(tmp_path: Path) -> None:
    """After an upgrade of k3s, too: flags count before drop-ins."""
    kubelet = KUBELETS["k3s-flags"]
    root = write_node(tmp_path / "node", kubelet)
    apply(root, "1.31", OPTION)
    directory = root / "var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
    directory.mkdir(parents=True)
    (directory / "00-k3s-defaults.conf").write_text(HEADER, encoding="utf-8")
    assert apply(root, "1.33", {"cpu_manager_policy": "none"}) == list(kubelet.written)
    assert found(root, "1.33")["cpu_manager_policy"] == "none"


@pytest.mark.parametrize("name", KUBELETS)
def test_main_file(name: str, tmp_path: Path) -> None:
    root = write_node(tmp_path / "node", KUBELETS[name])
    minor = minor_version(KUBELETS[name].version)
    assert main_file(read_sources(Node(Tree(str(root)))), minor) == "%s%s" % (root, KUBELETS[name].written[-1])

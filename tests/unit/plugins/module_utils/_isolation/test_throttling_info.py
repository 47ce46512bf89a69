# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import hashed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling_info import throttling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.hidden_names import with_hidden_names
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    CGROUPFS,
    STYLES,
    V1,
    V2,
    CPUFiles,
    Style,
    pod_path,
    write_cgroups,
    write_cpu,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.promises import take_over
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import (
    DATABASE,
    LIMITED,
    OWN_PATH,
    SANDBOX_PATH,
    SHARED,
    SHARED_PATH,
    write_node,
)


@pytest.fixture
def root() -> Iterator[Path]:
    """Yield a root directory, in memory where that is possible."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def look(root: Path, minor: int | None = None, seconds: int = 0) -> dict[str, Any]:
    return throttling(Node(Tree(str(root)), minor=minor), seconds, 25)


UNMEASURED = "throttling-unmeasured"


class LiveTree(Tree):
    """Files below a directory that are taken for those of a node that runs."""

    @property
    def live(self) -> bool:
        return True


def look_live(root: Path, meanwhile: Any) -> dict[str, Any]:
    node = Node(Tree(str(root)), minor=33)
    node.tree = LiveTree(str(root))
    return throttling(node, 1, 25, sleep=lambda _seconds: meanwhile())


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_each_kind_of_cgroups(root: Path, style: Style) -> None:
    write_node(root, style)
    found = look(root, 32)
    assert [(row["pod"], row["container"], row["exclusive"]) for row in found["containers"]] == [
        ("shop/db-0", "server", "1,5"),
        ("shop/web-1", "app", ""),
    ]
    own, shared = found["containers"]
    assert own["limit"] == {"cgroup": OWN_PATH, "cpus": 2.0}
    assert own["levels"] == [OWN_PATH, DATABASE, "kubepods.slice", "/"]
    assert (own["throttled_percent"], own["qos_class"]) == (10.0, "Guaranteed")
    assert shared["limit"] == {"cgroup": SHARED_PATH, "cpus": 0.5}
    assert shared["counted"]["throttled_us"] == 30000000
    assert SANDBOX_PATH not in found["cgroups"]
    assert [found["cgroups"][path]["kind"] for path in own["levels"]] == ["container", "pod", "pods", "root"]
    assert [(row["check"], row["subject"]) for row in found["findings"]] == [
        ("exclusive-cpus-with-quota", "shop/db-0/server"),
        ("container-throttled", "shop/web-1/app"),
    ]
    assert "bring it to 1.33 or later" in found["findings"][0]["remedy"]
    assert (found["notes"], found["kernel"], found["seconds"]) == ([], "6.1.0-18-amd64", None)
    split = [line for line in found["meaning"] if "cpusets are in version" in line]
    assert len(split) == (style is STYLES["hybrid-v2"])


def test_crun_puts_processes_in_a_cgroup_below(root: Path) -> None:
    inner = OWN_PATH + "/container"
    write_node(root, V2, {**LIMITED, inner: CPUFiles(150000, weight=174)})
    found = look(root, 32)
    own = found["containers"][0]
    assert (own["cgroup"], own["levels"][:3]) == (OWN_PATH, [inner, OWN_PATH, DATABASE])
    assert own["limit"] == {"cgroup": inner, "cpus": 1.5}
    # The counts are those of the cgroup that the runtime has made for the container.
    assert own["throttled_percent"] == 10.0
    assert [found["cgroups"][path]["kind"] for path in own["levels"][:3]] == ["container", "container", "pod"]
    assert [row["check"] for row in found["findings"]] == ["limit-below-request", "container-throttled"]


@pytest.mark.parametrize(
    ("minor", "more", "text"),
    [
        (32, "", "the kubelet 1.32 sets one"),
        (32, "cpuCFSQuota: false\n", "the kubelet sets no quotas"),
        (33, "featureGates: {DisableCPUQuotaWithExclusiveCPUs: false}\n", "take the feature gate"),
        (33, "featureGates: {AllBeta: false}\n", "take the feature gate"),
        (33, "", "the kubelet 1.33 sets none"),
        (37, "featureGates: {DisableCPUQuotaWithExclusiveCPUs: false}\n", "the kubelet 1.37 sets none"),
        (None, "", "give kubelet_version"),
    ],
)
def test_the_remedy_is_for_this_kubelet(root: Path, minor: int | None, more: str, text: str) -> None:
    write_node(root, V2, more=more)
    assert text in look(root, minor)["findings"][0]["remedy"]


@pytest.mark.parametrize(
    ("cpus", "more", "check", "remedy"),
    [
        ("1,5", "", "exclusive-cpus-with-quota", "with its policy none, the kubelet sets one on every container"),
        ("1,5", "cpuCFSQuota: false\n", "exclusive-cpus-with-quota", "the kubelet sets no quotas"),
        # It requests two of them.
        ("1,5-6", "", "limit-below-request", "the program of the role reconcile lifts the quotas of a container"),
        ("1", "", "exclusive-cpus-with-quota", "with its policy none"),
    ],
)
def test_exclusive_cpus_of_our_own_policies(root: Path, cpus: str, more: str, check: str, remedy: str) -> None:
    write_node(root, V2, more=more)
    take_over(root, {("uid-db", "server"): cpus}, requested=2)
    found = look(root, 33)
    assert [row["exclusive"] for row in found["containers"]] == [cpus, ""]
    first = found["findings"][0]
    assert (first["check"], first["subject"]) == (check, "shop/db-0/server")
    assert remedy in first["remedy"]
    # The weights are by what it requests.
    assert [row["check"] for row in found["findings"][1:]] == ["container-throttled"]


def test_a_quota_below_the_request_of_a_container_that_has_not_grown(root: Path) -> None:
    write_node(root, V2, {**LIMITED, OWN_PATH: CPUFiles(150000, weight=174)})
    take_over(root, {("uid-db", "server"): "1,5"}, requested=2)
    first = look(root, 33)["findings"][0]
    assert first["check"] == "limit-below-request"
    assert "look for what wrote the quota" in first["remedy"]


def test_a_saved_node_counts_no_more(root: Path) -> None:
    write_node(root, V2)
    found = look(root, 32, 5)
    assert (found["seconds"], [row["counted"] for row in found["containers"]]) == (0, [None, None])
    assert [note.check for note in found["notes"]] == [UNMEASURED]
    assert [row["check"] for row in found["findings"]] == ["exclusive-cpus-with-quota"]


def test_a_sample(root: Path) -> None:
    write_node(root, V2)
    after = {**LIMITED, SHARED_PATH: CPUFiles(50000, counted=(1050, 410, 31000000), local=31000000)}
    found = look_live(root, lambda: write_cpu(root, V2, after))
    assert found["containers"][1]["counted"] == {
        "periods": 50,
        "throttled_periods": 10,
        "throttled_us": 1000000,
        "bursts": 0,
        "burst_us": 0,
        "local_us": 1000000,
    }
    assert found["containers"][1]["throttled_percent"] == 20.0
    assert (found["notes"], [row["check"] for row in found["findings"]]) == ([], ["exclusive-cpus-with-quota"])
    assert 0 <= found["seconds"] < 1


def test_what_changes_while_it_is_looked_at(root: Path) -> None:
    top = write_node(root, V2)

    def meanwhile() -> None:
        shutil.rmtree(top / OWN_PATH)
        write_cpu(root, V2, {SHARED_PATH: CPUFiles(50000, counted=(3, 2, 100))})

    found = look_live(root, meanwhile)
    assert [row["counted"] for row in found["containers"]] == [None, None]
    ended, restarted = sorted(found["notes"], key=lambda note: "backwards" in note)
    assert "1 container(s) (shop/db-0/server) ended" in ended
    assert "1 cgroup(s) (%s) were made anew" % SHARED_PATH in restarted
    assert ended.check == restarted.check == UNMEASURED
    # What it had before it ended.
    assert found["containers"][0]["limit"] == {"cgroup": OWN_PATH, "cpus": 2.0}


def test_no_controller(root: Path) -> None:
    write_node(root, V2)
    (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpuset memory\n")
    found = look(root)
    assert (found["hierarchy"], found["containers"], found["findings"]) == (None, [], [])
    assert "no cpu controller" in found["notes"][0]
    assert found["notes"][0].check == UNMEASURED

    # Without pods, there is nothing to measure.
    shutil.rmtree(root / "sys/fs/cgroup/kubepods.slice")
    assert look(root)["notes"] == []


def test_a_cgroup_root_that_leads_out(root: Path) -> None:
    write_node(root, V2, more="cgroupRoot: /../../etc\n")
    (note,) = look(root)["notes"]
    assert "leads out of the hierarchy" in note


def test_a_controller_that_is_not_enabled_for_pods(root: Path) -> None:
    top = write_node(root, V2)
    for path in (OWN_PATH, SHARED_PATH):
        for name in ("cpu.max", "cpu.max.burst", "cpu.weight"):
            (top / path / name).unlink()
        (top / path / "cpu.stat").write_text("usage_usec 1\n")
    (note,) = look(root)["notes"]
    assert "cgroup.subtree_control" in note
    assert "2 container(s) (shop/db-0/server, shop/web-1/app)" in note


def test_a_kernel_without_quotas(root: Path) -> None:
    top = write_node(root, V1)
    for file in top.rglob("cpu.cfs_*"):
        file.unlink()
    for file in top.rglob("cpu.stat*"):
        file.unlink()
    found = look(root)
    assert "CONFIG_CFS_BANDWIDTH" in found["notes"][0]
    assert (found["findings"], found["containers"][0]["counted"]) == ([], None)


def test_a_node_that_was_saved_without_these_files(root: Path) -> None:
    top = write_node(root, V2)
    for file in top.rglob("cpu.*"):
        file.unlink()
    found = look(root)
    (note,) = found["notes"]
    assert "have no files of the cpu controller" in note
    assert [row["levels"] for row in found["containers"]] == [[], []]


def test_hostile_files(root: Path) -> None:
    top = write_node(root, V2)
    (top / OWN_PATH / "cpu.max").write_text("<script>alert(1)</script>\n")
    (top / SHARED_PATH / "cpu.stat").write_bytes(b"nr_periods \xff\xfe\nnr_throttled -3\n")
    for number in range(7):
        path = "%s/cri-containerd-%064x.scope" % (DATABASE, number)
        write_cpu(root, V2, {DATABASE: LIMITED[DATABASE], path: CPUFiles()})
        (top / path / "cpu.weight").write_text("heavy\n")
        (root / ("var/log/containers/db-0_shop_c%d-%064x.log" % (number, number))).touch()
    found = look(root, 32)
    assert len(found["notes"]) == 6
    assert "and 4 more" in found["notes"][-1]
    assert {note.check for note in found["notes"]} == {UNMEASURED}
    assert found["cgroups"][OWN_PATH]["quota_us"] is None
    assert found["cgroups"][SHARED_PATH]["counted"] is None
    # The pod's quota is still one.
    assert [(row["check"], row["subject"]) for row in found["findings"]] == [
        ("exclusive-cpus-with-quota", "shop/db-0/server")
    ]


@pytest.mark.parametrize("content", [b"", b"\0", b"{}", b'{"policyName":', b"[]", b'{"entries": {"uid-db": 5}}'])
def test_a_checkpoint_that_cannot_be_read(root: Path, content: bytes) -> None:
    write_node(root, V2)
    (root / "var/lib/kubelet/cpu_manager_state").write_bytes(content)
    found = look(root)
    assert [row["exclusive"] for row in found["containers"]] == ["", ""]
    assert len(found["notes"]) == (content != b"{}")


def test_no_checkpoint(root: Path) -> None:
    write_node(root, V2)
    (root / "var/lib/kubelet/cpu_manager_state").unlink()
    assert look(root)["notes"] == []


def test_containers_of_unknown_names(root: Path) -> None:
    write_node(root, V2, names=False)
    found = look(root)
    assert [row["container"] for row in found["containers"]] == ["", "", ""]
    (note,) = found["notes"]
    assert "1 pod(s) (uid-db)" in note
    assert [row["subject"] for row in found["findings"]] == ["uid-web/" + SHARED[:12]]


def test_pods_with_cpus_of_their_own(root: Path) -> None:
    """How containers share these, and so whether they are to have a quota, only the kubelet knows."""
    write_node(root, V2)
    cpus = CPUSet.parse("1,5")
    state = State(CPUSet.parse("0,2-4,6-7"), {"uid-db": {"server": cpus}}, {"uid-db": cpus})
    (root / "var/lib/kubelet/cpu_manager_state").write_bytes(write_checkpoint("static", state, Format3))
    found = look(root)
    assert found["containers"][0]["exclusive"] == ""
    assert found["notes"] == []
    # The quota of a pod in which one container has none throttles that one, too.
    cgroup = root / "sys/fs/cgroup" / OWN_PATH
    (cgroup / "cpu.max").write_text("max 100000\n")
    (note,) = look(root)["notes"]
    assert note == (
        "the quota of pod shop/db-0, which has CPUs 1,5 as a whole, is 2 CPUs: when the containers that share CPUs use"
        " it up, all are throttled, also 1 container(s) (shop/db-0/server) without a quota of its own"
    )


def test_no_kubelet_and_a_broken_configuration(root: Path) -> None:
    write_node(root, V2)
    (root / "var/lib/kubelet/config.yaml").write_text("kind: [\n")
    found = look(root)
    assert any("cannot be read" in note or "config.yaml" in note for note in found["notes"])
    assert len(found["containers"]) == 2
    (root / "var/lib/kubelet/config.yaml").unlink()
    found = look(root)
    assert (found["notes"], len(found["containers"])) == ([], 2)
    shutil.rmtree(root / "sys/fs/cgroup/kubepods.slice")
    found = look(root)
    assert (found["notes"], found["containers"], found["hierarchy"]) == (
        [],
        [],
        {"version": 2, "mount": "/sys/fs/cgroup"},
    )


def test_hidden_names(root: Path) -> None:
    write_node(root, V2)
    plain = look(root, 32)
    found = throttling(with_hidden_names(Node(Tree(str(root)), minor=32)), 0, 25)
    assert [(row["pod"], row["container"]) for row in found["containers"]] == [
        ("/".join(map(hashed, row["pod"].split("/"))), hashed(row["container"]))
        for row in sorted(plain["containers"], key=lambda row: hashed(row["pod"].split("/")[1]))
    ]
    assert not any(name in str(found) for name in ("db-0", "web-1", "server", "'app'"))
    assert sorted(row["check"] for row in found["findings"]) == sorted(row["check"] for row in plain["findings"])


@pytest.mark.parametrize(
    ("seconds", "percent", "name"), [(-1, 25, "seconds"), (3601, 25, "seconds"), (0, 101, "percent")]
)
def test_numbers_that_make_no_sense(root: Path, seconds: int, percent: int, name: str) -> None:
    with pytest.raises(InputError, match=name):
        throttling(Node(Tree(str(root))), seconds, percent)


@pytest.mark.parametrize("style", [V1, V2], ids=["v1", "v2"])
def test_a_thousand_containers(root: Path, style: Style) -> None:
    """Two seconds are promised beyond the sample."""
    write_cgroups(root, style, {})
    cgroups = {}
    (root / "var/log/containers").mkdir(parents=True)
    entries: dict[str, dict[str, CPUSet]] = {}
    for pod in range(500):
        path = pod_path(CGROUPFS, "uid-%d" % pod, ("Guaranteed", "Burstable")[pod % 2])
        cgroups[path] = CPUFiles(400000)
        cgroups["%s/%064x" % (path, 5000 + pod)] = CPUFiles()
        for number in range(2):
            container = "%064x" % (2 * pod + number)
            cgroups["%s/%s" % (path, container)] = CPUFiles(200000, counted=(100, 50, 100), local=100)
            (root / ("var/log/containers/p%d_shop_c%d-%s.log" % (pod, number, container))).touch()
        if pod % 2 == 0:
            entries["uid-%d" % pod] = {"c0": CPUSet.parse("%d-%d" % (2 * pod, 2 * pod + 1))}
    write_cpu(root, style, cgroups)
    (root / "var/lib/kubelet").mkdir(parents=True)
    state = State(CPUSet.parse("1-2"), entries)
    (root / "var/lib/kubelet/cpu_manager_state").write_bytes(write_checkpoint("static", state))
    start = time.process_time()
    found = look(root)
    took = time.process_time() - start
    assert len(found["containers"]) == 1000
    assert len(found["findings"]) == 250 + 750
    assert took < 2, took

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passes over real processes in this machine's own cpusets, of cgroup v1, below cgroups made for each test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    Hierarchy,
    lineage,
    parent_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers import crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import LoggedContainer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import container_cpus
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_writes import Listed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.enforcement import compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node, cgroup_root_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import (
    ReconcileResult,
    reconcile_listed,
    reconcile_pods,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import readable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

OWN, SHARED = ("%064x" % number for number in (0xA, 0xB))
STATE = State(CPUSet.parse("0"), {"uid-db": {"server": CPUSet.parse("1")}})


def _why_not() -> str:
    if os.geteuid():
        return "needs root"
    try:
        hierarchy = Hierarchy(Tree())
    except NodeError as error:
        return str(error)
    if hierarchy.version != 1 or not {0, 1} <= set(hierarchy.online_cpus()):
        return "needs the cpuset controller of cgroup v1, and CPUs 0 and 1"
    return ""


WHY_NOT = _why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


class Place:
    """Cgroups of this test below one of its own, with sleeping processes in them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.top = Path(Hierarchy(Tree()).mount, name)
        self.processes: list[subprocess.Popen[bytes]] = []

    def make(self, path: str, cpus: str = "0-1") -> None:
        """Make a cgroup with these CPUs, and those above it with all that there are."""
        at = self.top
        for part in ("", *path.split("/")):
            at = at / part
            if not at.exists():
                at.mkdir()
                (at / "cpuset.mems").write_text("0")
                (at / "cpuset.cpus").write_text((at.parent / "cpuset.cpus").read_text() if part else "0-1")
        self.write(path, cpus)

    def sleep(self, path: str) -> int:
        """Start a process there; give its id."""
        process = subprocess.Popen(["sleep", "300"])
        self.processes.append(process)
        (self.top / path / "cgroup.procs").write_text("%d" % process.pid)
        return process.pid

    def path(self, path: str) -> str:
        """Return the path in the hierarchy."""
        return "%s/%s" % (self.name, path)

    def write(self, path: str, cpus: str) -> None:
        # The kernel does not see a write of nothing.
        (self.top / path / "cpuset.cpus").write_text(cpus + "\n")

    def read(self, path: str) -> str:
        return (self.top / path / "cpuset.cpus").read_text().strip()

    def clean(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for directory, _names, _files in os.walk(self.top, topdown=False):
            os.rmdir(directory)


@contextmanager
def a_place() -> Iterator[Place]:
    with alone():
        made = Place("kubenode-reconcile-%d" % os.getpid())
        try:
            yield made
        finally:
            made.clean()


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place() as made:
        yield made


def allowed(pid: int) -> str:
    """Return the CPUs that a process runs on, as the kernel says."""
    for line in Path("/proc/%d/status" % pid).read_text().splitlines():
        name, _colon, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return value.strip()
    raise AssertionError


def kubelet_files(directory: Path, place: Place, state: State = STATE) -> Node:
    """Return this machine with a kubelet whose cgroups are those of the test."""
    (directory / "config.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n" % place.name
    )
    (directory / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
    return Node(Tree(), str(directory / "config.yaml"), str(directory))


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give containers the names that their logs would tell; this machine has no such logs."""
    containers = {OWN: LoggedContainer("shop/db-0", "server"), SHARED: LoggedContainer("shop/web-1", "app")}
    monkeypatch.setattr(crictl, "logged_containers", lambda _tree: containers)


OWN_PATH, SHARED_PATH = "kubepods/poduid-db/" + OWN, "kubepods/burstable/poduid-web/" + SHARED


def results(answer: ReconcileResult) -> list[str]:
    return sorted(row.result for row in answer.rows)


def compared(node: Node) -> tuple[str, str]:
    """Return how many containers are different by the report, and what the first one has."""
    observed, _notes = container_cpus.observe(node.tree, cgroup_root_of(node.configuration()))
    assert observed is not None
    said = readable(node.checkpoint())
    enforcement = compare(observed, said.policy_name, said.state)
    found = [row["found"] for row in enforcement.drift if row["subject"].startswith("container ")]
    return "%d different" % enforcement.summary["containers"]["different"], "".join(found[:1])


def test_a_hand_edit_behind_our_back(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.make(OWN_PATH, "1")
    place.make(SHARED_PATH, "0")
    own, shared = place.sleep(OWN_PATH), place.sleep(SHARED_PATH)
    node = kubelet_files(tmp_path, place)
    assert results(reconcile_pods(node, None, act=True)) == ["kept", "kept"]

    place.write(OWN_PATH, "0-1")
    place.write(SHARED_PATH, "0-1")
    place.write("kubepods/poduid-db", "0-1")
    assert (allowed(own), allowed(shared)) == ("0-1", "0-1")
    check = reconcile_pods(node, None, act=False)
    assert (allowed(own), allowed(shared)) == ("0-1", "0-1")
    assert reconcile_pods(node, None, act=True) == check
    assert results(check) == ["written", "written"]
    assert (allowed(own), allowed(shared)) == ("1", "0")

    monkeypatch.setattr(os, "write", lambda *_arguments: pytest.fail("a write"))
    again = reconcile_pods(node, None, act=True)
    assert results(again) == ["kept", "kept"]
    assert not again.changed


def test_a_narrowed_parent(place: Place, tmp_path: Path) -> None:
    place.make(OWN_PATH, "0")
    own = place.sleep(OWN_PATH)
    place.write("kubepods/poduid-db", "0")
    place.write("kubepods", "0")
    run = reconcile_pods(kubelet_files(tmp_path, place), None, act=True)
    assert (results(run), allowed(own)) == (["written"], "1")
    assert [write.new for write in run.widened] == [CPUSet((0, 1))] * 2
    assert not reconcile_pods(kubelet_files(tmp_path, place), None, act=True).changed


def exclude(place: Place, path: str) -> None:
    """Make a cgroup exclusive, and those above it, which have to be it first."""
    for exclusive in ("", *reversed(list(lineage(path)))):
        try:
            (place.top / exclusive / "cpuset.cpu_exclusive").write_text("1")
        except OSError as error:
            pytest.skip("%s cannot be exclusive on this machine: %s" % (exclusive or "the topmost", error))


@pytest.mark.parametrize(
    ("sets", "holders", "refused"),
    [
        ({"kubepods": "0", OWN_PATH: "0", "held": "1"}, ["held"], "kubepods"),
        ({"kubepods/poduid-db": "0", OWN_PATH: "0", "kubepods/held": "1"}, ["kubepods/held"], "kubepods/poduid-db"),
        ({OWN_PATH: "0", "kubepods/poduid-db/held": "1"}, ["kubepods/poduid-db/held"], OWN_PATH),
        # The kubelet's own, which nothing else has to be.
        (
            {"kubepods/burstable": "1", "kubepods/poduid-db": "0", OWN_PATH: "0"},
            ["kubepods/burstable"],
            "kubepods/poduid-db",
        ),
        # All CPUs, and each has one of them.
        ({"kubepods": "", SHARED_PATH: "", "a": "0", "b": "1"}, ["a", "b"], "kubepods"),
    ],
    ids=["beside all pods", "beside the pod", "beside the container", "a class", "two"],
)
def test_what_an_exclusive_cgroup_holds_is_not_promised(
    place: Place, tmp_path: Path, sets: dict[str, str], holders: list[str], refused: str
) -> None:
    """At whatever level above the container: the kernel looks at all siblings of what is written."""
    for path, cpus in sets.items():
        place.make(path, cpus)
    for path in holders:
        exclude(place, path)
    with pytest.raises(OSError, match=r"Errno 22"):
        place.write(refused, "0-1")
    node = kubelet_files(tmp_path, place, STATE._replace(default_cpu_set=CPUSet((0, 1))))
    check = reconcile_pods(node, None, act=False)
    assert reconcile_pods(node, None, act=True) == check
    assert (results(check), check.changed) == (["failed"], False)
    held = ["its sibling {0} has {1}, and {0} is exclusive".format(place.path(path), sets[path]) for path in holders]
    assert check.rows[0].why.partition(" cannot be ")[0] == place.path(refused) + ": cpuset.cpus"
    assert ": %s (EINVAL); take them from " % " and ".join(held) in check.rows[0].why


PLACES = (
    "kubepods",
    "kubepods/burstable",
    "kubepods/burstable/poduid-web",
    SHARED_PATH,
    "kubepods/poduid-db",
    OWN_PATH,
)
HOLDERS = ("held", "kubepods/held", "kubepods/poduid-db/held")
SETS = tuple(map(CPUSet, ((), (0,), (1,), (0, 1))))


@given(st.data())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_check_mode_says_what_the_kernel_will(data: st.DataObject) -> None:
    """Whatever each cgroup has, and whichever are exclusive."""
    with tempfile.TemporaryDirectory() as directory, a_place() as place:
        sets = {"": CPUSet((0, 1))}
        for path in (*PLACES, *HOLDERS):
            above = sets[parent_of(path)]
            sets[path] = data.draw(st.sampled_from([cpus for cpus in SETS if cpus <= above]))
            place.make(path, str(sets[path]))
        for path in ("", *data.draw(st.lists(st.sampled_from((*PLACES, *HOLDERS)), unique=True).map(sorted))):
            with suppress(OSError):
                (place.top / path / "cpuset.cpu_exclusive").write_text("1")
        node = kubelet_files(Path(directory), place)
        check = reconcile_pods(node, None, act=False)
        assert reconcile_pods(node, None, act=True) == check
        for result in results(check):
            event(result)


def test_what_the_kernel_does_not_take(place: Place, tmp_path: Path) -> None:
    place.make(OWN_PATH + "/nested", "0")
    place.make(SHARED_PATH, "0-1")
    own, shared = place.sleep(OWN_PATH), place.sleep(SHARED_PATH)
    run = reconcile_pods(kubelet_files(tmp_path, place), None, act=True)
    assert (results(run), allowed(own), allowed(shared)) == (["failed", "written"], "0-1", "0")
    os.rmdir(place.top / OWN_PATH / "nested")
    assert results(reconcile_pods(kubelet_files(tmp_path, place), None, act=True)) == ["kept", "written"]
    assert allowed(own) == "1"


def test_a_container_does_not_hide_behind_a_cgroup_of_its_own(place: Place, tmp_path: Path) -> None:
    """It makes one of the name that crun gives, with the right CPUs, and stays outside of it."""
    scope = "kubepods/poduid-db/cri-containerd-%s.scope" % OWN
    place.make(scope + "/container", "1")
    place.make(scope + "/stranger", "0-1")
    inner, outer, stranger = (place.sleep(path) for path in (scope + "/container", scope, scope + "/stranger"))
    node = kubelet_files(tmp_path, place)
    assert compared(node) == ("1 different", "0-1")
    run = reconcile_pods(node, None, act=True)
    # The kernel does not narrow what has a wider one below.
    assert (results(run), place.read(scope)) == (["failed"], "0-1")
    assert "stranger has 0-1" in run.rows[0].why
    place.write(scope + "/stranger", "1")
    assert results(reconcile_pods(node, None, act=True)) == ["written"]
    assert [allowed(process) for process in (inner, outer, stranger)] == ["1"] * 3
    assert compared(node) == ("0 different", "")
    assert results(reconcile_pods(node, None, act=True)) == ["kept"]


def test_a_node_without_a_kubelet(place: Place, tmp_path: Path) -> None:
    place.make("db")
    place.make("web")
    database, web = place.sleep("db"), place.sleep("web")
    node = Node(Tree(), None, str(tmp_path / "kubelet"))
    listed = [
        Listed("db", "server", "%s/db" % place.name, 1),
        Listed("web", "app", "%s/web" % place.name, 0),
    ]
    reserved = CPUSet((0,))

    def one_pass(containers: list[Listed], act: bool = True) -> ReconcileResult:
        return reconcile_listed(node, containers, StaticOptions(), reserved, act)

    check = one_pass(listed, act=False)
    assert (allowed(database), allowed(web)) == ("0-1", "0-1")
    assert one_pass(listed) == check
    assert (allowed(database), allowed(web)) == ("1", "0")
    written = json.loads((tmp_path / "kubelet/cpu_manager_state").read_text())
    assert (written["defaultCpuSet"], written["entries"]) == ("0", {"db": {"server": "1"}})
    assert not one_pass(listed).changed

    place.write("db", "0-1")
    assert results(one_pass(listed)) == ["kept", "written"]
    assert allowed(database) == "1"
    # Not listed any more: its CPU is everybody's again.
    assert results(one_pass(listed[1:])) == ["written"]
    assert allowed(web) == "0-1"


PASS = """\
import sys
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import reconcile_pods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
answer = reconcile_pods(Node(Tree(), sys.argv[2] + "/config.yaml", sys.argv[2]), None, act=True)
sys.exit(0 if [row.result for row in answer.rows] == sys.argv[3:] else 1)
"""


@pytest.mark.needs("strace")
def test_no_system_call_writes_to_an_unchanged_node(place: Place, tmp_path: Path) -> None:
    place.make(SHARED_PATH, "0-1")
    place.sleep(SHARED_PATH)
    kubelet_files(tmp_path, place)

    def opened_for_writing(*expected: str) -> list[str]:
        log = tmp_path / "strace"
        options = ["-f", "-qq", "-e", "trace=open,openat,openat2,creat", "-o", str(log)]
        tests = Path(__file__).parent.parent
        environment: dict[str, Any] = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        arguments = [sys.executable, "-c", PASS, str(tests), str(tmp_path), *expected]
        subprocess.run(["strace", *options, *arguments], check=True, env=environment, timeout=120)
        return [line for line in log.read_text().splitlines() if "O_WRONLY" in line or "O_RDWR" in line]

    # Without its name; nobody in its pod has exclusive CPUs.
    assert len(opened_for_writing("written")) == 1
    assert opened_for_writing("kept") == []

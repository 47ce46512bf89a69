# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is saved is what the modules read, and they say the same of it."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.archive import unpacked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import SAID, Tree, node_name
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import COLLECTION, save_node
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import read_listed
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.varied import DEMO, MACHINES, SECRET, make_busy, make_demo

CHECKOUT = Path(__file__).parents[5]
PACKAGE = "ansible_collections.kubenode.cpu_manager.plugins.modules."

WANTED: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "memory_manager_policy": "Static",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1124Mi"}}],
    "reservation": {"count": 2},
}
PODS = [{"metadata": {"name": "app"}, "spec": {"containers": [{"name": "app"}]}}]
# Every module that reads a node, with what makes it read all that it can.
MODULES: list[tuple[str, dict[str, Any]]] = [
    ("drift_info", {}),
    ("drift_info", {"cpu_manager_policy": "static", "reservation": {"count": 2, "near_device": "eth0"}}),
    ("rollout_info", {}),
    ("rollout_info", {**WANTED, "upgrade_to": "1.37"}),
    ("rollout_info", {"change": "rollback"}),
    ("start_check", WANTED),
    ("start_check", {"config_path": "/etc/odd.yaml"}),
    ("kubelet_config", {"cpu_manager_policy": "static", "reservation": {"count": 2}}),
    ("checkpoint", {"discard_assignments": True}),
    ("checkpoint_info", WANTED),
    ("cpu_topology_info", {}),
    ("cpu_topology_info", {"source": "cpuinfo"}),
    ("reserved_cpus", {"count": 2}),
    ("reserved_cpus", {"count": 2, "near_device": "eth0"}),
    ("reserved_cpus", {"count": 2, "near_device": "eth9"}),
    ("allocation_plan", {"pods": PODS}),
    ("reconcile", {}),
    ("throttling_info", {}),
    ("rollout_journal", {"state": "read"}),
    ("rollout_journal", {"state": "read", "source": "last"}),
    ("cpuset", {"path": "kubepods.slice", "cpus": "0-1"}),
    ("cpuset", {"path": "kubepods", "cpus": "0-1"}),
    ("wait_for_kubelet", {}),
    ("housekeeping_info", {}),
    ("housekeeping_info", {"reserved_system_cpus": "0-1"}),
    ("dra_info", {}),
    ("admission_info", {}),
    ("admission_info", {"pods": True}),
    ("admission_info", {"devices": [{"resource": "x.com/gpu", "pci_vendor": "10de"}]}),
    ("cache_info", {}),
    ("cache_partition", {"exclusive_share": 2}),
    ("cache_partition", {"state": "absent"}),
    # Of a saved node nothing is counted, so there is nothing to wait for.
    ("isolation_info", {"seconds": 1}),
    ("isolation_benchmark", {"seed": 1}),
    # A Python that services see, wherever that of the tests is.
    ("housekeeping", {"reserved_system_cpus": "0-1", "interpreter": "/usr/bin/python3"}),
    ("housekeeping", {"state": "absent"}),
    ("reconcile_program", {}),
    ("runtime_config", {}),
    ("runtime_config", {"nri": True, "cdi": True}),
]
# What shows the most.
FEW = [call for call in MODULES if call[0] in ("rollout_info", "kubelet_config")]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where archives are unpacked."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


class Recorder:
    """The paths that are opened, looked at or listed, as the system calls name them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.paths: set[str] = set()
        self.listed: set[str] = set()
        for name in ("open", "stat"):
            patch.setattr(os, name, self._recording(getattr(os, name)))
        for name in ("listdir", "scandir"):
            patch.setattr(os, name, self._listing(getattr(os, name)))

    def _recording(self, function: Any) -> Any:
        def record(path: Any, *arguments: Any, **keywords: Any) -> Any:
            with suppress(TypeError, OSError):
                directory = keywords.get("dir_fd")
                above = os.readlink("/proc/self/fd/%d" % directory) if directory is not None else ""
                self.paths.add(os.path.join(above, os.fsdecode(path)))
            return function(path, *arguments, **keywords)

        return record

    def _listing(self, function: Any) -> Any:
        def record(path: Any = ".") -> Any:
            self.listed.add(os.readlink("/proc/self/fd/%d" % path) if isinstance(path, int) else os.fsdecode(path))
            return function(path)

        return record

    def below(self, root: Path) -> set[str]:
        """Return what of it is there, by the place below a root, past all links."""
        start = "%s/" % root
        found = set()
        for path in self.paths:
            real = os.path.realpath(path)
            if path.startswith(start) and real.startswith(start) and os.path.exists(real):
                found.add(real[len(start) :])
        return found


def ask(capsys: pytest.CaptureFixture[str], root: Path, module: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return what a module prints in check mode."""
    arguments = {"root": str(root), "_ansible_check_mode": True, **parameters}
    with patch_module_args(arguments), pytest.raises(SystemExit):
        import_module(PACKAGE + module).main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    answer.pop("invocation", None)
    # It is answered, or there is one clear error.
    assert answer.get("failed") is None or "\n" not in answer["msg"], (module, answer)
    return answer


def modules_for(name: str) -> list[tuple[str, dict[str, Any]]]:
    if name == "brought":
        # Its journal is saved without what the files were before: an archive cannot say what is to be written.
        return [call for call in MODULES if call[0] != "housekeeping"]
    return FEW if name in KUBELETS or name in ("xeon", "epyc", "edge") else MODULES


def save(root: Path, archive: Path, redact: bool = False) -> dict[str, Any]:
    tree = Tree(str(root))
    content, about = save_node(Node(tree), node_name(tree), redact)
    archive.write_bytes(content)
    return about


def places(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as opened:
        return {member.name: member for member in opened}


def contents(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            file = opened.extractfile(member) if member.isreg() else None
            yield member.name, file.read() if file is not None else b""


def without_root(answer: dict[str, Any], root: str) -> Any:
    return json.loads(json.dumps(answer).replace(root, ""))


def as_saved(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what housekeeping answers, without the lines of irqbalance's file that have nothing of CPUs: none is
    saved."""
    for row in answer.get("changes", ()):
        if row["layer"] == "irqbalance":
            row.update({when: re.sub(r"^[0-9]+ bytes$", "bytes", row[when]) for when in ("before", "after")})
    for shown in answer.get("diff", ()):
        for when in ("before", "after"):
            lines = shown[when].splitlines()
            if any(line.startswith("IRQBALANCE_") for line in lines):
                shown[when] = [line.replace("'", '"') for line in lines if line.startswith("IRQBALANCE_BANNED")]
    return answer


@pytest.mark.parametrize("name", MACHINES)
def test_the_modules_say_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, temporary: Path, name: str
) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    MACHINES[name](root)
    save(root, archive)
    for module, parameters in modules_for(name):
        on_node, on_archive = (ask(capsys, place, module, parameters) for place in (root, archive))
        # What a module shows of a file of the node is redacted, too.
        expected = json.loads(json.dumps(without_root(on_node, str(root))).replace("redacted", "hunter2"))
        found = without_root(on_archive, "%s:" % archive)
        found = json.loads(json.dumps(found).replace(str(archive), "").replace("redacted", "hunter2"))
        if module == "housekeeping" and "failed" not in expected:
            found, expected = as_saved(found), as_saved(expected)
        # Digests of what is redacted in an archive.
        assert sorted(found.pop("judged", ())) == sorted(expected.pop("judged", ()))
        assert found == expected, (module, parameters)
    assert list(temporary.iterdir()) == []


def kind(path: str) -> str:
    """Return a path with the names of one machine taken out."""
    path = re.sub(r"(kubepods|system|user|init)[^/]*(/.*)?/(?=(cgroup|cpuset|memory)\.)", "", path)
    path = re.sub(r"hugepages-\d+kB", "hugepages", path)
    return re.sub(r"\d+", "N", path)


def test_what_is_saved_is_what_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kinds_read, kinds_saved = set(), set()
    for name, make in MACHINES.items():
        root, archive = tmp_path / name, tmp_path / (name + ".tar.gz")
        make(root)
        save(root, archive)
        with monkeypatch.context() as patch:
            recorder = Recorder(patch)
            for module, parameters in MODULES:
                ask(capsys, root, module, parameters)
        saved = places(archive)
        read = recorder.below(root)
        missing = {path for path in read if path not in saved and not (root / path).is_dir()}
        # Of the processes only the kubelet is saved, and of a mount point nothing is to be read.
        missing -= {path for path in missing if re.fullmatch(r"proc/\d+/(cmdline|status)", path) and "712" not in path}
        assert missing == set(), name
        directories = {path for path in read if (root / path).is_dir()}
        above = {str(parent) for path in saved for parent in Path(path).parents}
        assert {path for path in directories if path not in saved and path not in above} == set(), name
        kinds_read |= {kind(path) for path in read}
        kinds_saved |= {kind(path) for path, member in saved.items() if member.isreg() and member.size}
    unread = kinds_saved - kinds_read - {SAID.lstrip("/")}
    assert unread == set()


@pytest.mark.parametrize("name", ["busy", "old", "layered", "owned", "brought"])
@pytest.mark.parametrize("redact", [False, True])
def test_no_secret_is_saved(tmp_path: Path, name: str, redact: bool) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    MACHINES[name](root)
    about = save(root, archive, redact)
    found = dict(contents(archive))
    assert {path for path, content in found.items() if SECRET in content} == set()
    assert b"aHVudGVyMg" not in b"".join(found.values())
    assert about["left_out"] == []
    assert not any("shadow" in path or "pki" in path or path == "etc/kubernetes/kubelet.conf" for path in found)
    if name == "busy":
        assert b"10.0.0.1" in found["etc/extra.env"]
        assert b"--v=2" in found["usr/lib/systemd/system/kubelet.service"]


def test_hashed_names_change_no_answer_but_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root, plain, hashed = tmp_path / "node", tmp_path / "plain.tar.gz", tmp_path / "hashed.tar.gz"
    make_demo("epyc")(root)
    save(root, plain)
    save(root, hashed, redact=True)
    listed = read_listed((DEMO / "containers/epyc").read_text("utf-8"))
    names = {name for container in listed for name in (*container.pod.split("/"), container.container)}
    for path, content in contents(hashed):
        for name in names:
            assert not re.search(r"\b%s\b" % re.escape(name), path) or "/log/" not in path
            assert '"%s"' % name not in content.decode("utf-8", "replace")
    before, after = (ask(capsys, archive, "drift_info", {}) for archive in (plain, hashed))
    assert before["checkpoint"]["verdict"] == after["checkpoint"]["verdict"] == "accepted"
    assert before["enforcement"] == after["enforcement"]
    assert [(owner["use"], owner["cpus"]) for owner in before["owners"]] == [
        (owner["use"], owner["cpus"]) for owner in after["owners"]
    ]
    assert len(before["drift"]) == len(after["drift"]) > 0
    assert before["owners"] != after["owners"]


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    root = tmp_path / "node"
    make_busy(root)
    node = Node(Tree(str(root)))
    first, second = (save_node(node, "busy", now=1e9)[0] for _time in range(2))
    assert first == second
    assert save_node(node, "busy", now=2e9)[0] != first


def test_times_of_change_are_kept(tmp_path: Path) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    make_busy(root)
    config = root / "var/lib/kubelet/config.yaml"
    os.utime(config, (1700000000.25, 1700000000.25))
    save(root, archive)
    opened = unpacked(str(archive))
    assert os.stat(opened.directory + "/var/lib/kubelet/config.yaml").st_mtime == 1700000000.25
    opened.remove()
    assert not os.path.exists(opened.directory)


def test_links_out_of_a_saved_node_are_left_out(tmp_path: Path) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    make_demo("xeon")(root)
    write(tmp_path, "secret", SECRET)
    config = Node(Tree(str(root))).config_path or ""
    (root / config.lstrip("/")).unlink()
    (root / config.lstrip("/")).symlink_to(tmp_path / "secret")
    with pytest.raises(Exception, match="leads out"):
        Node(Tree(str(root)))
    (root / "proc/meminfo").symlink_to(tmp_path / "secret")
    (root / config.lstrip("/")).unlink()
    about = save(root, archive)
    assert about["left_out"] == [{"path": "/proc/meminfo", "why": "it is a link out of the node's files"}]
    assert all(SECRET not in content for _path, content in contents(archive))


def test_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    archive = tmp_path / "this.tar.gz"
    save(Path("/"), archive)
    for module in ("cpu_topology_info", "drift_info"):
        live, saved = (ask(capsys, place, module, {}) for place in (Path("/"), archive))
        assert json.loads(json.dumps(saved).replace("%s:/" % archive, "/").replace(str(archive), "/")) == live


def test_the_version_is_that_of_the_collection() -> None:
    assert "\nversion: %s\n" % COLLECTION in (CHECKOUT / "galaxy.yml").read_text("utf-8")


def test_the_first_file_says_what_was_saved(tmp_path: Path) -> None:
    root, archive = tmp_path / "node", tmp_path / "node.tar.gz"
    make_busy(root)
    about = save(root, archive)
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as opened:
        first = opened.next()
        assert first is not None
        assert first.name == SAID.lstrip("/")
        file = opened.extractfile(first)
        assert file is not None
        written = json.loads(file.read())
    assert written == {key: value for key, value in about.items() if key != "files"}

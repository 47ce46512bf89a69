# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_cgroup/writer.py."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any, Callable, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.command import run_command
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    CPU,
    CPUS,
    EFFECTIVE,
    MEMS,
    Hierarchy,
    Quota,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writer import (
    Systemd,
    carry_out,
    read_quota,
    systemd_of,
    write_quota,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writes import Write
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    V1,
    V2,
    CPUFiles,
    Files,
    Style,
    write_cgroups,
    write_cpu,
)

OLD = {"a": "0-3", "a/b": "0-3", "a/c": "2"}
NEW = {"a": "0-1", "a/b": "1", "a/c": ""}


def write(path: str, old: str, new: str, file: str = CPUS) -> Write:
    return Write(path, file, CPUSet.parse(old), CPUSet.parse(new))


WRITES = (
    write("a/b", "0-3", "1"),
    write("a/c", "2", ""),
    write("a", "0-3", "0-1"),
    write("a", "0-1", "0", MEMS),
)


def machine(root: Path, style: Style = V1) -> Hierarchy:
    write_cgroups(root, style, {path: Files(cpus, "0-1" if path == "a" else "") for path, cpus in OLD.items()})
    return Hierarchy(Tree(str(root)))


def sets(hierarchy: Hierarchy) -> dict[str, str]:
    return {path: str(hierarchy.read_set(path, CPUS)) for path in hierarchy.cgroups()}


def failing(monkeypatch: pytest.MonkeyPatch, number: int, failure: Callable[[], BaseException]) -> None:
    """Let the write with this number, from 0, fail."""
    real, count = os.write, 0

    def refuse(descriptor: int, data: bytes) -> int:
        nonlocal count
        count += 1
        if count == number + 1:
            raise failure()
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", refuse)


# --- files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", [V1, V2])
def test_a_plan_is_carried_out(tmp_path: Path, style: Style) -> None:
    hierarchy = machine(tmp_path, style)
    carry_out(hierarchy, WRITES)
    assert sets(hierarchy) == NEW
    assert Path(hierarchy.place("a", CPUS)).read_bytes() == b"0-1\n"
    assert Path(hierarchy.place("a", MEMS)).read_bytes() == b"0\n"
    assert Path(hierarchy.place("a/c", CPUS)).read_bytes() == b"\n"


def test_a_saved_node_follows_as_a_kernel_would(tmp_path: Path) -> None:
    sets = {"a": "0-3", "a/b": "2-5", "a/b/c": "", "a/d": "0", "e": "0-7"}
    for style in (V1, V2):
        root = tmp_path / str(style.version)
        files = {path: Files(cpus, "0") for path, cpus in sets.items()}
        write_cgroups(root, style, files)
        changes = [write("a", "0-3", "4-7"), write("e", "0-7", "")]
        carry_out(Hierarchy(Tree(str(root))), changes)
        # As if it had been so from the beginning.
        new = {**files, "a": Files("4-7", "0"), "e": Files("", "0")}
        write_cgroups(tmp_path / "new" / str(style.version), style, new)
        expected = Hierarchy(Tree(str(tmp_path / "new" / str(style.version))))
        found = Hierarchy(Tree(str(root)))
        assert [found.read(path) for path in found.cgroups()] == [expected.read(path) for path in expected.cgroups()]


def test_v1_gives_no_cgroup_another_set_for_its_parent(tmp_path: Path) -> None:
    hierarchy = machine(tmp_path)
    of_child = Path(hierarchy.place("a/b", EFFECTIVE[1, CPUS]))
    of_child.write_text("2\n", encoding="ascii")  # a CPU went offline
    carry_out(hierarchy, [write("a", "0-3", "0-4")])
    assert Path(hierarchy.place("a", EFFECTIVE[1, CPUS])).read_text(encoding="ascii") == "0-4\n"
    assert of_child.read_text(encoding="ascii") == "2\n"


def test_an_old_kernel_has_nothing_that_follows(tmp_path: Path) -> None:
    hierarchy = machine(tmp_path)
    for path in hierarchy.cgroups():
        Path(hierarchy.place(path, EFFECTIVE[1, CPUS])).unlink()
    carry_out(hierarchy, WRITES[:1])
    assert hierarchy.read_set("a/b", CPUS) == CPUSet.parse("1")
    assert hierarchy.read_set("a/b", EFFECTIVE[1, CPUS]) is None


@pytest.mark.parametrize("number", range(len(WRITES)))
def test_a_failure_undoes_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    hierarchy = machine(tmp_path)
    failing(monkeypatch, number, lambda: OSError(errno.EBUSY, os.strerror(errno.EBUSY)))
    with pytest.raises(NodeError) as caught:
        carry_out(hierarchy, WRITES)
    refused = WRITES[number]
    assert str(caught.value) == (
        "%s: the kernel refuses %s: Device or resource busy; everything is as it was before"
        % (hierarchy.place(refused.path, refused.file), str(refused.new) or "empty")
    )
    assert sets(hierarchy) == OLD
    assert hierarchy.read_set("a", MEMS) == CPUSet.parse("0-1")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, ValueError])
@pytest.mark.parametrize("number", range(len(WRITES)))
def test_an_interruption_undoes_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[BaseException]
) -> None:
    hierarchy = machine(tmp_path)
    failing(monkeypatch, number, kind)
    with pytest.raises(kind):
        carry_out(hierarchy, WRITES)
    assert sets(hierarchy) == OLD


def test_the_kernel_is_told_from_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hierarchy = machine(tmp_path)
    monkeypatch.setattr(Tree, "live", True)
    failing(monkeypatch, 0, lambda: OSError(errno.EACCES, os.strerror(errno.EACCES)))
    with pytest.raises(NodeError, match=r"Permission denied \(it is not within what the parent has\); everything"):
        carry_out(hierarchy, WRITES)
    monkeypatch.undo()
    monkeypatch.setattr(Tree, "live", True)
    failing(monkeypatch, 0, lambda: OSError(errno.EIO, os.strerror(errno.EIO)))
    with pytest.raises(NodeError, match=r"the kernel refuses 1: Input/output error; everything"):
        carry_out(hierarchy, WRITES)


@pytest.mark.parametrize("gone", ["a/b", "a"])
@pytest.mark.parametrize("when", ["before", "while open"])
def test_a_cgroup_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str, when: str) -> None:
    hierarchy = machine(tmp_path)
    writes = (WRITES[1], *(write for write in WRITES if write.path == gone and write.file == CPUS))
    if when == "before":
        shutil.rmtree(hierarchy.place("a/b"))
        (Path(hierarchy.place("a")) / CPUS).unlink()
    else:
        failing(monkeypatch, 1, lambda: OSError(errno.ENODEV, os.strerror(errno.ENODEV)))
    with pytest.raises(NodeError) as caught:
        carry_out(hierarchy, writes)
    message = "%s: the cgroup vanished while it was worked on; everything is as it was before"
    assert str(caught.value) == message % hierarchy.place(gone, CPUS)
    assert sets(hierarchy)["a/c"] == OLD["a/c"]


@pytest.mark.parametrize("look", [1, 2])
def test_a_cgroup_vanishes_at_each_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int) -> None:
    """Before it is opened to be written, and before it is read again."""
    hierarchy = machine(tmp_path)
    real, place = Hierarchy.open_file, Path(hierarchy.place("a/b"))
    seen: list[int] = []

    def vanishing(self: Hierarchy, path: str, name: str, flags: int) -> int:
        if len(seen) == look:
            shutil.rmtree(place)
        seen.append(flags)
        return real(self, path, name, flags)

    monkeypatch.setattr(Hierarchy, "open_file", vanishing)
    with pytest.raises(NodeError, match=r"a/b/cpuset.cpus: the cgroup vanished while it was worked on; everything"):
        carry_out(hierarchy, WRITES[:1])


def test_somebody_else_changed_it_since_the_plan(tmp_path: Path) -> None:
    hierarchy = machine(tmp_path)
    Path(hierarchy.place("a", CPUS)).write_text("0-5\n", encoding="utf-8")
    with pytest.raises(
        RefusedError, match=r"/a/cpuset.cpus: was changed from 0-3 to 0-5 while it was worked on; .*; run again"
    ):
        carry_out(hierarchy, WRITES)
    assert sets(hierarchy) == {**OLD, "a": "0-5"}


def test_what_is_read_again_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hierarchy = machine(tmp_path)
    real = os.write
    monkeypatch.setattr(
        os, "write", lambda descriptor, data: real(descriptor, b"7\n" if data.split() == [b"1"] else data)
    )
    with pytest.raises(NodeError) as caught:
        carry_out(hierarchy, WRITES)
    place = hierarchy.place("a/b", CPUS)
    assert str(caught.value) == (
        "%s: holds 7 after 1 was written; not undone: %s: a different program has changed it to 7" % (place, place)
    )


def test_what_cannot_be_undone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hierarchy = machine(tmp_path)
    real, count = os.write, 0

    def refuse(descriptor: int, data: bytes) -> int:
        nonlocal count
        count += 1
        if count in (3, 4):  # the third write, and the undoing of the second
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(NodeError, match=r"a/cpuset.cpus: .*; not undone: \S*/a/c/cpuset.cpus: the kernel refuses 2"):
        carry_out(hierarchy, WRITES[:3])
    assert sets(hierarchy)["a/b"] == OLD["a/b"]


def test_processes_keep_what_they_had_where_no_set_can_be_emptied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cgroups(tmp_path, V2, {"a": Files("0-3"), "a/b": Files("", "", (7,)), "c": Files("2")})
    hierarchy = Hierarchy(Tree(str(tmp_path)))
    real = os.write

    def kernel(descriptor: int, data: bytes) -> int:
        if not data.split():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if data.split() == [b"7"]:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", kernel)
    with pytest.raises(NodeError) as caught:
        carry_out(hierarchy, [write("a/b", "", "1"), write("c", "2", "7")])
    assert str(caught.value) == (
        "%s: the kernel refuses 7: Invalid argument; not undone: %s: the kernel refuses empty: No space left on device;"
        " it has all that its parent has, 0-3" % (hierarchy.place("c", CPUS), hierarchy.place("a/b", CPUS))
    )
    assert sets(hierarchy) == {"a": "0-3", "a/b": "0-3", "c": "2"}


def test_v1_sets_nothing_else_where_no_set_can_be_emptied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cgroups(tmp_path, V1, {"a": Files("0-3"), "a/b": Files(""), "c": Files("2")})
    hierarchy = Hierarchy(Tree(str(tmp_path)))
    real = os.write

    def kernel(descriptor: int, data: bytes) -> int:
        if data.split() in ([], [b"7"]):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", kernel)
    with pytest.raises(NodeError, match=r"the kernel refuses empty: No space left on device$"):
        carry_out(hierarchy, [write("a/b", "", "1"), write("c", "2", "7")])
    assert sets(hierarchy) == {"a": "0-3", "a/b": "1", "c": "2"}


def test_no_link_is_followed(tmp_path: Path) -> None:
    hierarchy = machine(tmp_path)
    target = tmp_path / "other"
    target.write_text("0-3\n", encoding="utf-8")
    place = Path(hierarchy.place("a", CPUS))
    place.unlink()
    place.symlink_to(target)
    with pytest.raises(RefusedError, match=r"/a/cpuset.cpus: is a symbolic link, .*; everything is as it was before"):
        carry_out(hierarchy, WRITES)
    assert target.read_text(encoding="utf-8") == "0-3\n"
    assert sets_of_children(hierarchy) == {"a/b": "0-3", "a/c": "2"}


def sets_of_children(hierarchy: Hierarchy) -> dict[str, str]:
    return {path: str(hierarchy.read_set(path, CPUS)) for path in ("a/b", "a/c")}


@pytest.mark.parametrize(("number", "remedy"), [(errno.EACCES, "; write it as root"), (errno.EROFS, "")])
def test_a_file_that_nobody_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    hierarchy = machine(tmp_path)
    real = os.open

    def refuse(path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        if path == CPUS and flags & os.O_WRONLY:
            raise OSError(number, os.strerror(number))
        return real(path, flags, *arguments, **keywords)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NodeError, match="a/b/cpuset.cpus: cannot be written: .*%s" % remedy):
        carry_out(hierarchy, WRITES)


# --- systemd ----------------------------------------------------------------------------------------


class FakeSystemd:
    """A systemctl of which the units are known, and that writes the files as systemd does."""

    def __init__(self, top: Path, *units: str) -> None:
        self.top = top
        self.units = {path.rpartition("/")[2]: path for path in units}
        self.properties: dict[str, str] = {}
        self.set: list[tuple[str, ...]] = []
        self.broken: dict[str, str] = {}

    def __call__(self, arguments: Sequence[str]) -> str:
        program, verb, *options = arguments
        assert program == "systemctl"
        unit, rest = (options[-1], "") if verb == "show" else (options[-2], options[-1])
        if verb == "show":
            name = options[0].partition("=")[2]
            assert options == ["--property=" + name, "--", unit]
            value = "/" + self.units[unit] if name == "ControlGroup" and unit in self.units else ""
            return "%s=%s\n" % (name, value or self.properties.get("%s %s" % (unit, name), ""))
        assert verb == "set-property"
        assert options[-3] == "--"
        self.set.append(tuple(options))
        if rest in self.broken:
            raise NodeError("systemctl set-property: %s" % self.broken[rest])
        name, _equals, value = rest.partition("=")
        self.properties["%s %s" % (unit, name)] = value
        if value:
            file = {"AllowedCPUs": CPUS, "AllowedMemoryNodes": MEMS}[name]
            (self.top / self.units[unit] / file).write_text(value + "\n", encoding="utf-8")
        return ""


@pytest.fixture
def units(tmp_path: Path) -> tuple[Hierarchy, FakeSystemd]:
    paths = ("system.slice", "system.slice/a.service", "system.slice/a.service/x.scope", "b.scope", "c", "d.slice")
    top = write_cgroups(tmp_path, V2, {path: Files("0-3", "0-1") for path in paths})
    return Hierarchy(Tree(str(tmp_path))), FakeSystemd(top, *(path for path in paths if path != "d.slice"))


@pytest.mark.parametrize(("runtime", "options"), [(False, ()), (True, ("--runtime",))])
def test_units_are_set_by_systemd(units: tuple[Hierarchy, FakeSystemd], runtime: bool, options: Sequence[str]) -> None:
    hierarchy, fake = units
    # In a service there is another manager; c is no unit by its name, and systemd does not know d.slice.
    paths = ("system.slice", "system.slice/a.service", "system.slice/a.service/x.scope", "b.scope", "c", "d.slice")
    carry_out(hierarchy, [write(path, "0-3", "1-2") for path in paths], Systemd(runtime, fake))
    assert sets(hierarchy) == dict.fromkeys(paths, "1-2")
    assert fake.set == [(*options, "--", unit, "AllowedCPUs=1-2") for unit in ("system.slice", "a.service", "b.scope")]


def test_memory_nodes_and_nothing(units: tuple[Hierarchy, FakeSystemd]) -> None:
    """systemd leaves the file as it is when it is to be empty."""
    hierarchy, fake = units
    carry_out(hierarchy, [write("b.scope", "0-3", ""), write("b.scope", "0-1", "1", MEMS)], Systemd(False, fake))
    assert fake.set == [("--", "b.scope", "AllowedCPUs="), ("--", "b.scope", "AllowedMemoryNodes=1")]
    assert hierarchy.read_set("b.scope", CPUS) == CPUSet()
    assert hierarchy.read_set("b.scope", MEMS) == CPUSet.parse("1")


@pytest.mark.parametrize("before", ["", "0-3", "0-2"])
def test_a_failure_of_systemd_undoes_what_was_done(units: tuple[Hierarchy, FakeSystemd], before: str) -> None:
    hierarchy, fake = units
    fake.properties["b.scope AllowedCPUs"] = before
    fake.broken["AllowedCPUs=2"] = "Unknown assignment: AllowedCPUs=2"
    with pytest.raises(NodeError) as caught:
        carry_out(hierarchy, [write("b.scope", "0-3", "1"), write("system.slice", "0-3", "2")], Systemd(False, fake))
    assert str(caught.value).startswith("systemctl set-property: Unknown assignment: AllowedCPUs=2; ")
    assert fake.properties["b.scope AllowedCPUs"] == before
    # 0-2: the property came back, and systemd wrote what was not in the file before.
    told = "a different program has changed it to 0-2" if before == "0-2" else "everything is as it was before"
    assert told in str(caught.value)
    assert hierarchy.read_set("b.scope", CPUS) == CPUSet.parse("0-3" if before != "0-2" else "0-2")


def test_which_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the running machine's, and only of v2 alone."""
    saved = machine(tmp_path / "v2", V2)
    legacy = machine(tmp_path / "v1", V1)
    monkeypatch.setattr(os.path, "isdir", lambda path: path == "/run/systemd/system")
    assert systemd_of(saved) is None
    monkeypatch.setattr(Tree, "live", True)
    found = systemd_of(saved, runtime=True)
    assert found is not None
    assert found.runtime
    assert found.run is run_command
    assert systemd_of(legacy) is None
    monkeypatch.setattr(saved, "mount", "/sys/fs/cgroup/unified")
    assert systemd_of(saved) is None
    monkeypatch.undo()
    monkeypatch.setattr(Tree, "live", True)
    monkeypatch.setattr(os.path, "isdir", lambda _path: False)
    assert systemd_of(saved) is None


# --- quotas -----------------------------------------------------------------------------------------


def of_cpu(root: Path, style: Style, quota: int | None) -> Hierarchy:
    write_cgroups(root, style, {"a": Files("0")})
    write_cpu(root, style, {"a": CPUFiles(quota, 50_000)})
    return Hierarchy(Tree(str(root)), CPU)


@pytest.mark.parametrize("style", [V1, V2])
@pytest.mark.parametrize("quota", [None, 1000, 200_000])
def test_quotas(tmp_path: Path, style: Style, quota: int | None) -> None:
    hierarchy = of_cpu(tmp_path, style, quota)
    assert read_quota(hierarchy, "a") == Quota(quota, 50_000)
    assert read_quota(hierarchy, "b") is None
    for changed in (None, 7000):
        write_quota(hierarchy, "a", Quota(changed, 50_000))
        assert read_quota(hierarchy, "a") == Quota(changed, 50_000)


@pytest.mark.parametrize("text", ["", "max", "max 0", "max x", "1000", "x 100000", "-1 100000", "9" * 20 + " 100000"])
def test_what_is_no_quota(tmp_path: Path, text: str) -> None:
    hierarchy = of_cpu(tmp_path, V2, None)
    Path(hierarchy.place("a", "cpu.max")).write_text(text + "\n", encoding="ascii")
    assert read_quota(hierarchy, "a") == (Quota(None, 100_000) if text == "-1 100000" else None)

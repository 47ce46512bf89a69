# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_rollout/rollout_journal.py, which write and read one file."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST, OPEN
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.journal_steps import JournalStep, note
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    DRAINING,
    STOPPING,
    RolloutJournal,
    SavedFile,
    changed_files,
    files_back,
    files_to_write,
    judged_journal,
    may_be_written,
    read_journal,
    remove_journal,
    restore,
    save_files,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._runtime.runtime_files import find_runtime
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

CONFIG = "/var/lib/kubelet/config.yaml"
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    return Tree(str(tmp_path))


def put(tree: Tree, path: str, content: bytes, mode: int = 0o644) -> Path:
    file = Path(tree.path(path))
    file.write_bytes(content)
    file.chmod(mode)
    return file


def test_no_journal(tree: Tree) -> None:
    assert read_journal(tree) is None
    remove_journal(tree)


def test_a_journal_is_read_as_it_was_written(tree: Tree) -> None:
    put(tree, CONFIG, b"kind: \xff\n", 0o640)
    journal = RolloutJournal(
        CHANGING, save_files(tree, [CONFIG, CHECKPOINT]), {"cordoned": False, "taints": [{"key": "a"}]}
    )
    write_journal(tree, journal)
    assert read_journal(tree) == journal
    assert journal.files[CHECKPOINT] == SavedFile(None)
    assert journal.files[CONFIG][:2] == (b"kind: \xff\n", 0o640)
    assert os.stat(tree.path(OPEN)).st_mode & 0o777 == 0o600
    assert read_journal(tree, LAST) is None
    # What was secret in a file is so in the journal.
    assert os.stat(os.path.dirname(tree.path(OPEN))).st_mode & 0o777 == 0o700


def test_a_journal_replaces_the_one_before(tree: Tree) -> None:
    write_journal(tree, RolloutJournal(DRAINING, {}, {}))
    write_journal(tree, RolloutJournal(CHANGING, {}, {"cordoned": True}))
    assert read_journal(tree) == RolloutJournal(CHANGING, {}, {"cordoned": True})
    assert os.listdir(os.path.dirname(tree.path(OPEN))) == ["change.json"]
    remove_journal(tree)
    assert os.listdir(os.path.dirname(tree.path(OPEN))) == []


def test_a_journal_of_a_run_without_a_name(tree: Tree) -> None:
    write_journal(tree, RolloutJournal(DRAINING, {}, {}, "one"))
    journal = read_journal(tree)
    assert journal is not None
    assert journal.to_dict() == {"phase": "draining", "files": [], "facts": {}, "run": "one"}
    put(tree, OPEN, b'{"format": 1, "phase": "changing", "facts": {}, "files": {}}')
    assert read_journal(tree) == RolloutJournal(CHANGING, {}, {}, "")


@pytest.mark.parametrize(
    ("began", "ends", "took"),
    [
        (1000, 1240.9, 240),
        (1000, 1000.5, None),
        (1000, 900, None),
        (1000, 1000 + 86401, None),
        (None, 1240, None),
    ],
    ids=["measured", "at-once", "clock-set-back", "off-for-days", "no-drain"],
)
def test_how_long_a_change_took(tree: Tree, began: int | None, ends: float, took: int | None) -> None:
    write_journal(tree, RolloutJournal(DRAINING, {}, {}, began=began))
    journal = read_journal(tree)
    assert journal is not None
    assert (journal.began, journal.took(ends)) == (began, took)
    write_journal(tree, journal._replace(began=None, drain_seconds=took), LAST)
    last = read_journal(tree, LAST)
    assert last is not None
    assert last.to_dict().get("drain_seconds") == took


@pytest.mark.parametrize("wrong", ["true", "-5", "0", "1e3", '"240"', "[240]", "1" + "0" * 400])
def test_a_wrong_time_keeps_no_change_from_being_taken_back(tree: Tree, wrong: str) -> None:
    Path(tree.path(OPEN)).parent.mkdir()
    text = '{"format": 1, "phase": "draining", "facts": {}, "files": {}, "began": %s, "drain_seconds": %s}'
    put(tree, OPEN, (text % (wrong, wrong)).encode("ascii"))
    assert read_journal(tree) == RolloutJournal(DRAINING, {}, {})


@pytest.mark.parametrize("use", [read_journal, remove_journal])
def test_a_journal_that_is_a_link_to_nothing_is_not_none(tree: Tree, use: Callable[[Tree], object]) -> None:
    journal = Path(tree.path(OPEN))
    journal.parent.mkdir()
    journal.symlink_to("nothing")
    with pytest.raises(NodeError, match=r"change\.json: cannot be read"):
        use(tree)


def test_a_journal_without_a_place(tree: Tree) -> None:
    directory = Path(tree.path(OPEN)).parent
    directory.touch()
    with pytest.raises(NodeError) as caught:
        write_journal(tree, RolloutJournal(DRAINING, {}, {}))
    assert (caught.value.where, "nothing was changed" in caught.value.problem) == (str(directory), True)
    assert caught.value.remedy


def test_what_cannot_be_saved(tree: Tree) -> None:
    config = Path(tree.path(CONFIG))
    config.symlink_to("missing.yaml")
    with pytest.raises(NodeError, match=r"config\.yaml: is a link to nothing, .*/missing\.yaml, and") as caught:
        save_files(tree, [CONFIG])
    assert caught.value.remedy
    config.unlink()
    config.symlink_to("config.yaml")
    with pytest.raises(NodeError, match=r"config\.yaml"):
        save_files(tree, [CONFIG])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"format": 2, "phase": "changing", "facts": {}, "files": {}}',
        b'{"format": 1, "phase": "flying", "facts": {}, "files": {}}',
        b'{"format": 1, "phase": "changing", "facts": [], "files": {}}',
        b'{"format": 1, "phase": "changing", "facts": {}, "files": []}',
        b'{"format": 1, "phase": "changing", "facts": {}, "files": {"/a": {}}}',
        b'{"format": 1, "phase": "changing", "facts": {}, "files": {"/a": {"content": "?", "mode": 1}}}',
        b'{"format": 1, "phase": "changing", "facts": {}, "files": {"/a": 7}}',
        b'{"format": 1, "phase": "changing", "facts": {}, "files": {"/a": {"content": "", "mode": 1e999}}}',
        b'{"format": 1, "phase": "changing", "files": {}, "facts": ' + b"[" * 100_000,
    ],
)
def test_a_damaged_journal(tree: Tree, content: bytes) -> None:
    write_journal(tree, RolloutJournal(DRAINING, {}, {}))
    put(tree, OPEN, content)
    with pytest.raises(NodeError) as caught:
        read_journal(tree)
    assert str(caught.value).startswith(tree.path(OPEN) + ": cannot be read as the journal of a change: ")
    assert "remove the file" in str(caught.value)


def test_a_path_that_is_not_absolute(tree: Tree) -> None:
    with pytest.raises(InputError, match=r"^files: 'config\.yaml' is not an absolute path on the node"):
        save_files(tree, ["config.yaml"])


def back(tree: Tree, journal: RolloutJournal, overwrite: bool = False) -> list[str]:
    """Take the change back; give the files that were written."""
    backs = files_back(tree, journal, overwrite=overwrite)
    paths = files_to_write(tree, backs)
    restore(tree, backs, keep=3)
    return paths


def test_files_are_put_back_to_the_byte(tree: Tree) -> None:
    config, checkpoint = put(tree, CONFIG, b"old", 0o604), put(tree, CHECKPOINT, b"state", 0o600)
    untouched = put(tree, "/var/lib/kubelet/other", b"same")
    before = untouched.stat()
    new = "/var/lib/kubelet/new"
    saved = save_files(tree, [CONFIG, CHECKPOINT, "/var/lib/kubelet/other", new])
    journal = RolloutJournal(CHANGING, saved, {}, "run", {CONFIG: b"half", CHECKPOINT: None, new: b"new"})
    assert changed_files(tree, journal) == []
    assert back(tree, journal) == []
    put(tree, CONFIG, b"half", 0o604)
    checkpoint.unlink()
    put(tree, new, b"new")
    assert changed_files(tree, journal) == [CONFIG, CHECKPOINT, new]
    assert back(tree, journal) == [CONFIG, CHECKPOINT, new]
    assert (config.read_bytes(), config.stat().st_mode & 0o777) == (b"old", 0o604)
    assert (checkpoint.read_bytes(), checkpoint.stat().st_mode & 0o777) == (b"state", 0o600)
    assert untouched.stat() == before
    # Nothing else is left: of what the change itself wrote, there is no backup.
    assert sorted(os.listdir(config.parent)) == ["config.yaml", "cpu_manager_state", "other"]
    assert back(tree, journal) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="another owner needs root")
def test_owner_and_mode(tree: Tree) -> None:
    """They are put back where it is not known what the change wrote; else others have set them, as of a file."""
    config = put(tree, CONFIG, b"old", 0o640)
    os.chown(config, 12, 34)
    os.chown(config.parent, 12, 34)
    journal = RolloutJournal(CHANGING, save_files(tree, [CONFIG]), {})
    written = journal._replace(written={CONFIG: b"new"})
    put(tree, CONFIG, b"new", 0o600)
    os.chown(config, 56, 78)
    assert back(tree, written) == [CONFIG]
    status = config.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777, config.read_bytes()) == (56, 78, 0o600, b"old")
    assert back(tree, journal) == [CONFIG]
    for used in (journal, written):
        status = config.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777, config.read_bytes()) == (12, 34, 0o640, b"old")
        config.unlink()
        assert back(tree, used) == [CONFIG]


@pytest.mark.skipif(os.geteuid() != 0, reason="another owner needs root")
@pytest.mark.parametrize(("user", "group", "is_refused"), [(0, 0, False), (12, 34, False), (12, 7, True), (7, 0, True)])
def test_a_file_is_given_to_nobody_who_has_neither_it_nor_its_directory(
    tree: Tree, user: int, group: int, is_refused: bool
) -> None:
    os.chown(put(tree, CONFIG, b"new"), 12, 34)
    journal = RolloutJournal(CHANGING, {CONFIG: SavedFile(b"old", 0o644, user, group)}, {})
    problem = files_back(tree, journal, overwrite=True)[CONFIG].problem
    assert (problem is not None and problem.kind == "not_ours") == is_refused


@pytest.mark.parametrize(
    ("path", "found", "is_refused"),
    [
        ("/etc/cron.d/evil", None, True),
        ("/etc/passwd", b"root::0:0\n", True),
        ("/etc/systemd/system/evil.service", None, True),
        ("/etc/systemd/system/a.service.d/50-kubenode-cpu-manager.conf", None, True),
        ("/etc/kubernetes/../cron.d/50-kubenode-cpu-manager.conf", None, True),
        ("/etc/kubernetes/kubelet.conf.d/50-kubenode-cpu-manager.conf", None, False),
        ("/etc/rancher/k3s/config.yaml.d/90-kubenode-cpu-manager.yaml", None, False),
        ("/etc/kubernetes/patches/kubeletconfiguration90-kubenode-cpu-manager+merge.yaml", None, False),
        ("/etc/kubernetes/kubelet.env", None, False),
        ("/data/kubelet/memory_manager_state", None, False),
        # Wherever --config= leads: as what is there says.
        ("/opt/kubelet.yaml", b"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n", False),
        ("/opt/kubelet.json", b'{"kind": "KubeletConfiguration"}', False),
        ("/opt/kubelet.yaml", b"kind: Pod\n", True),
        ("/etc/containerd/config.toml", b"version = 2\n", False),
        ("/opt/imported.toml", b"# BEGIN kubenode.cpu_manager\n", False),
        ("/opt/imported.toml", b"version = 2\n", True),
        # Where nothing would be written, nothing is refused.
        ("/opt/imported.toml", b"saved", False),
    ],
)
def test_only_what_a_change_writes_is_put_back(
    tmp_path: Path, path: str, found: bytes | None, is_refused: bool
) -> None:
    """Also of a journal in a node that somebody else has saved: what is put back there is a file of who unpacks it."""
    tree, here = Tree(str(tmp_path)), tmp_path / os.path.normpath(path)[1:]
    here.parent.mkdir(parents=True)
    if found is not None:
        put(tree, path, found)
    saved = SavedFile(b"saved", 0o644, os.geteuid(), os.getegid())
    write_journal(tree, RolloutJournal(CHANGING, {path: saved}, {"rollout": "2026-11-20T10:00:00.000001"}), LAST)
    back = JournalStep("restored", source="last", files=[path], overwrite_edited=True)
    if not is_refused:
        note(tree, back)
        assert here.read_bytes() == b"saved"
        return
    with pytest.raises(RefusedError, match="the journal would put it back, and no change writes this file") as caught:
        note(tree, back)
    assert (caught.value.kind, caught.value.where) == ("not_ours", tree.path(path))
    assert (here.read_bytes() if here.exists() else None) == found


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1644, -1])
def test_no_file_is_put_back_with_the_rights_of_another_user(tree: Tree, mode: int) -> None:
    write_journal(tree, RolloutJournal(CHANGING, {CONFIG: SavedFile(b"", mode)}, {}))
    with pytest.raises(NodeError, match="cannot be read as the journal of a change: no file that is put back has"):
        read_journal(tree)


@pytest.mark.parametrize(
    ("socket", "name"),
    [
        ("/run/containerd/containerd.sock", ""),
        ("/run/crio/crio.sock", ""),
        ("/run/k3s/containerd/containerd.sock", "k3s"),
        ("/run/k3s/containerd/containerd.sock", "RKE2"),
        ("/var/snap/microk8s/common/run/containerd.sock", ""),
    ],
)
def test_the_files_of_a_runtime_are_among_those_that_a_change_writes(tree: Tree, socket: str, name: str) -> None:
    runtime = find_runtime(tree, socket, name)
    places = [runtime.config, *("%s/a" % place for place in (runtime.drop_ins, runtime.template) if place)]
    assert [path for path in places if not may_be_written(path, None)] == []


def test_a_directory_that_is_gone(tree: Tree) -> None:
    config = put(tree, CONFIG, b"old")
    journal = RolloutJournal(CHANGING, save_files(tree, [CONFIG]), {})
    config.unlink()
    config.parent.rmdir()
    with pytest.raises(RefusedError, match="its directory is gone"):
        back(tree, journal)


@pytest.mark.parametrize("act", [write_journal, lambda tree, _new, path, judged: remove_journal(tree, path, judged)])
@pytest.mark.parametrize("first", [None, RolloutJournal(DRAINING, {}, {}, "first")])
def test_a_journal_is_replaced_only_as_long_as_it_is_what_was_judged(
    tree: Tree, act: Callable[..., None], first: RolloutJournal | None
) -> None:
    if first is not None:
        write_journal(tree, first)
    judged = judged_journal(tree)
    assert judged.journal == first
    rival = RolloutJournal(DRAINING, {}, {}, "second")
    write_journal(tree, rival)
    if act is write_journal or first is not None:
        with pytest.raises(RefusedError, match="was changed while it was worked on"):
            act(tree, RolloutJournal(CHANGING, {}, {}, "first"), OPEN, judged)
    assert read_journal(tree) == rival


@settings(max_examples=examples(25))
@given(
    st.dictionaries(st.text(min_size=1, max_size=8).map("/".__add__), st.one_of(st.none(), st.binary()), max_size=3),
    st.dictionaries(st.text(max_size=4), st.recursive(st.one_of(st.none(), st.booleans(), st.text()), st.lists)),
)
def test_every_journal_survives(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes | None], facts: dict[str, object]
) -> None:
    tree = Tree(str(tmp_path_factory.mktemp("node")))
    saved = {path: SavedFile(None) if content is None else SavedFile(content, 0o600) for path, content in files.items()}
    for written in (None, files):
        journal = RolloutJournal(CHANGING, saved, facts, "run", written)
        write_journal(tree, journal)
        assert read_journal(tree) == journal
    assert json.loads(Path(tree.path(OPEN)).read_text(encoding="utf-8"))["format"] == 1


@pytest.mark.parametrize(
    ("phase", "facts", "steps"),
    [
        (DRAINING, {"node": "a"}, ["start_kubelet", "rejoin_cluster"]),
        (STOPPING, {}, ["start_kubelet"]),
        (STOPPING, {"runtime": {}}, ["restart_runtime", "start_kubelet"]),
        (CHANGING, {}, ["stop_kubelet", "restore_files", "start_kubelet"]),
        (
            CHANGING,
            {"node": "a", "runtime": {}, "rollout": "b"},
            ["stop_kubelet", "restore_files", "restart_runtime", "start_kubelet", "rejoin_cluster"],
        ),
    ],
)
def test_what_leads_back(phase: str, facts: dict[str, object], steps: list[str]) -> None:
    assert RolloutJournal(phase, {}, facts).steps_back() == steps


# --- how long a drain takes, step by step ---------------------------------------------------------------


class Clock:
    """The clock of the node."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.now)


def step(tree: Tree, clock: Clock, state: str, seconds: float = 0, run: str = "first", **given: Any) -> None:
    """Note one step of a change, some seconds after the last."""
    clock.now += seconds
    note(tree, JournalStep(state, run, **given))


def last_time(tree: Tree) -> int | None:
    last = read_journal(tree, LAST)
    assert last is not None
    assert last.began is None
    return last.drain_seconds


def test_a_drain_is_measured_from_its_beginning_to_the_end_of_the_change(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tree, CONFIG, b"kind: KubeletConfiguration\n")
    clock = Clock(monkeypatch)
    step(tree, clock, "draining", facts={"node": "a"})
    # Once more, as a task that is repeated.
    step(tree, clock, "draining", 10, facts={"node": "a"})
    step(tree, clock, "stopping", 180, begin=False)
    step(tree, clock, "changing", 1, files=[CONFIG], facts={"rollout": "one"})
    put(tree, CONFIG, b"kind: KubeletConfiguration\nmaxPods: 5\n")
    step(tree, clock, "done", 49, files=[CONFIG])
    assert last_time(tree) == 240
    # The way back is a drain, too, and a newer one.
    step(tree, clock, "draining", 1000, facts={"node": "a"})
    step(tree, clock, "changing", 60, files=[CONFIG])
    step(tree, clock, "undone", 60)
    assert last_time(tree) == 120


def test_a_change_that_was_not_at_work_all_the_time_is_not_measured(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tree, CONFIG, b"a: 1\n")
    clock = Clock(monkeypatch)
    for number, steps in enumerate(
        (
            # Nothing is drained.
            [("stopping", "first")],
            # It was interrupted, and another run goes on.
            [("draining", "first"), ("taken", "second"), ("draining", "second"), ("stopping", "second")],
        )
    ):
        for state, run in steps:
            step(tree, clock, state, 60, run)
        run = steps[-1][1]
        step(tree, clock, "changing", 60, run, files=[CONFIG])
        put(tree, CONFIG, b"b: %d\n" % number)
        step(tree, clock, "done", 60, run)
        assert last_time(tree) is None

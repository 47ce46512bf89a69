# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal is read as it was written, and what is no journal is one error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import LIST, LIVE_LAYERS, MASK
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.partitions import KINDS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    BALANCE,
    LOAD,
    PATH,
    RELOAD,
    TUNE,
    HousekeepingJournal,
    HousekeepingWish,
    KeptFile,
    OwnCPUs,
    SavedValue,
    checksum,
    clean_up,
    read_journal,
    remove_journal,
    text_of,
    with_progress,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import SavedFile
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PATHS = st.from_regex(r"(/[a-z0-9_.-]*[a-z0-9]){1,3}", fullmatch=True).filter(
    lambda path: os.path.normpath(path) == path
)
WANTS = "/etc/systemd/system/multi-user.target.wants/"
CPUS = st.sets(st.integers(0, 99)).map(CPUSet)
SAVED = st.builds(SavedFile, st.binary(max_size=9), st.integers(0, 0o777), st.integers(0, 9), st.integers(0, 9))
SLICES = st.sampled_from(["isolated.slice", "b.slice"])
OWN = st.builds(OwnCPUs, CPUS, st.sampled_from(KINDS), SLICES)
JOURNALS = st.builds(
    HousekeepingJournal,
    st.builds(
        HousekeepingWish,
        CPUS,
        st.lists(TEXTS).map(tuple),
        st.lists(TEXTS).map(tuple),
        TEXTS,
        st.none() | OWN,
        st.lists(TEXTS).map(tuple),
    ),
    CPUS,
    TEXTS,
    st.dictionaries(
        PATHS.map("{}/cpuset.cpus".format),
        st.builds(SavedValue, st.sampled_from(LIVE_LAYERS), TEXTS, st.sampled_from([LIST, MASK]), TEXTS, st.booleans()),
        max_size=3,
    ),
    st.dictionaries(
        PATHS,
        st.builds(
            KeptFile,
            TEXTS,
            st.just(SavedFile(None)) | SAVED,
            st.lists(TEXTS, max_size=2).map(tuple),
            st.none() | st.binary(max_size=9),
        ),
        max_size=3,
    ),
    st.dictionaries(st.sampled_from([WANTS + "a.service", WANTS + "b.slice"]), TEXTS, max_size=2),
    st.lists(PATHS, max_size=2).map(tuple),
    st.lists(st.sampled_from([RELOAD, BALANCE, TUNE, LOAD]), max_size=4, unique=True).map(tuple),
    st.dictionaries(PATHS, TEXTS, max_size=2),
    st.booleans(),
    st.lists(SLICES, max_size=2).map(tuple),
)
EMPTY = HousekeepingJournal(HousekeepingWish(CPUSet(), ()), CPUSet(), "", {}, {}, {}, (), (), {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(JOURNALS)
def test_it_is_read_as_it_was_written(tmp_path: Path, journal: HousekeepingJournal) -> None:
    tree = Tree(str(tmp_path))
    write_journal(tree, journal)
    assert read_journal(tree) == journal
    assert (tmp_path / PATH[1:]).stat().st_mode & 0o7777 == 0o600
    assert (tmp_path / PATH[1:]).parent.stat().st_mode & 0o7777 == 0o700


def test_none(tmp_path: Path) -> None:
    assert read_journal(Tree(str(tmp_path))) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        text_of(EMPTY).replace('"format": 1', '"format": 2').encode(),
        text_of(EMPTY).replace('"reserved": ""', '"reserved": "x"').encode(),
        text_of(EMPTY).replace('"layers": []', '"layers": "all"').encode(),
        text_of(EMPTY).replace('"pending": []', '"pending": ["reboot"]').encode(),
        text_of(EMPTY).replace('"directories": []', '"directories": ["/a/../b"]').encode(),
        text_of(EMPTY).replace('"kernel": {}', '"kernel": []').encode(),
        text_of(EMPTY).replace('"kernel": {}', '"kernel": {"a": {}}').encode(),
        text_of(EMPTY).replace('"files": {}', '"files": {"/a": {"layer": "", "before": {"content": "?"}}}').encode(),
        text_of(
            EMPTY._replace(values={"/a": SavedValue("moon", "", LIST, "", True)}),
        ).encode(),
    ],
)
def test_what_is_no_journal(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PATH[1:]).parent.mkdir(parents=True)
    (tmp_path / PATH[1:]).write_bytes(content)
    with pytest.raises(NodeError, match="cannot be read as the journal") as caught:
        read_journal(Tree(str(tmp_path)))
    assert caught.value.remedy


def with_journal(root: Path, name: str, text: str) -> tuple[Tree, Path]:
    """Return a node with a journal, and another file beside it."""
    tree, file = Tree(str(root)), (root / PATH[1:]).with_name(name)
    write_journal(tree, EMPTY)
    file.write_text(text)
    return tree, file


def test_removed_with_its_directory(tmp_path: Path) -> None:
    tree, _stray = with_journal(tmp_path, ".housekeeping.json.kubenode-0123456789abcdef", "half")
    remove_journal(tree)
    assert list((tmp_path / "var/lib").iterdir()) == []
    remove_journal(tree)


def test_a_directory_that_others_use_stays(tmp_path: Path) -> None:
    tree, change_journal = with_journal(tmp_path, "change.json", "{}")
    remove_journal(tree)
    assert list(change_journal.parent.iterdir()) == [change_journal]


def test_strays_of_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/.a.conf.kubenode-0123456789abcdef").write_text("half")
    clean_up(Tree(str(tmp_path)), ["/etc/a.conf", "/nowhere/b.conf"])
    assert list((tmp_path / "etc").iterdir()) == []


def test_when_all_is_done() -> None:
    file = KeptFile("boot", SavedFile(None), ("a", "b"))
    journal = EMPTY._replace(
        wish=HousekeepingWish(CPUSet.parse("1"), ()),
        within=CPUSet.parse("0-1"),
        files={"/a": file},
        pending=(RELOAD,),
    )
    done = with_progress(journal, {"/b": "EIO"})
    assert done.within == CPUSet.parse("1")
    assert done.files["/a"].ours == ("b",)
    assert done.pending == ()
    assert done.refused == {"/b": "EIO"}
    assert done.is_done


def test_a_checksum_is_of_the_content() -> None:
    assert checksum(b"a") != checksum(b"b")
    assert len(checksum(b"")) == 64


def test_nothing_of_it_needs_more_than_json() -> None:
    assert json.loads(text_of(EMPTY))["format"] == 1


@pytest.mark.parametrize(
    ("former", "names"),
    [
        ([["systemctl", "daemon-reload"], ["systemctl", "try-restart", "irqbalance.service"]], (RELOAD, BALANCE)),
        ([["tuned-adm", "profile", "cpu-partitioning", "mine"], ["tuned-adm", "auto_profile"]], (TUNE,)),
        (
            [["/usr/sbin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"], ["/sbin/grub2-mkconfig", "-o", "/boot/a"]],
            (LOAD,),
        ),
        ([["/usr/sbin/grubby", "--update-kernel=ALL", "--remove-args=nohz_full=2-7 rcu_nocbs=2-7"]], (LOAD,)),
        ([["/usr/bin/kernel-install", "add", "6.1.0-1-amd64", "/boot/vmlinuz-6.1.0-1-amd64"]], (LOAD,)),
        ([RELOAD, LOAD], (RELOAD, LOAD)),
        ([["sh", "-c", "id > /owned"]], None),
        ([["systemctl", "daemon-reload", "--root=/x"]], None),
        ([["systemctl", "start", "evil.service"]], None),
        ([["/tmp/grub-mkconfig", "-o", "/boot/grub/grub.cfg"]], None),
        ([["/usr/sbin/grub-mkconfig", "-o", "/etc/cron.d/evil"]], None),
        ([["/usr/sbin/grubby", "--update-kernel=ALL", "--args=a", "\n--x"]], None),
        (["reboot"], None),
    ],
)
def test_a_command_is_known_by_its_name_and_never_taken_from_the_journal(
    tmp_path: Path, former: list[Any], names: tuple[str, ...] | None
) -> None:
    """A former version wrote the commands themselves: those that it made are understood, and all else is damage."""
    tree = Tree(str(tmp_path))
    write_journal(tree, EMPTY)
    (tmp_path / PATH[1:]).write_text(text_of(EMPTY).replace('"pending": []', '"pending": %s' % json.dumps(former)))
    if names is None:
        with pytest.raises(NodeError, match="cannot be read as the journal of the housekeeping"):
            read_journal(tree)
    else:
        assert read_journal(tree) == EMPTY._replace(pending=names)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("kernel", "/etc/cron.d/evil", SavedValue("slices", "", LIST, "", True)._asdict()),
        ("kernel", "/proc/sys/kernel/core_pattern", SavedValue("watchdog", "", LIST, "", True)._asdict()),
        ("links", "/etc/systemd/system/a.service", "/x"),
        ("links", "/etc/systemd/system/multi-user.target.wants/../a", "/x"),
    ],
)
def test_values_and_links_are_only_those_that_a_housekeeping_writes(
    tmp_path: Path, name: str, path: str, value: object
) -> None:
    tree = Tree(str(tmp_path))
    write_journal(tree, EMPTY)
    data = {**json.loads(text_of(EMPTY)), name: {path: value}}
    (tmp_path / PATH[1:]).write_text(json.dumps(data))
    with pytest.raises(NodeError, match="is no path on the node"):
        read_journal(tree)

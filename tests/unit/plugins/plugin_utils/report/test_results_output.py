# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import put_file, stem_of, sweep

# It writes a part of a text, and then waits to be killed.
WRITER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import put_file

def parts():
    yield "new " * 1000000
    print("half", flush=True)
    time.sleep(600)

put_file(sys.argv[2], parts())
"""


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    return tmp_path / "drift.json"


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_a_new_file(path: Path) -> None:
    put_file(str(path), ["a", "b\n", "ü"])
    assert path.read_bytes() == "ab\nü".encode()
    assert names(path.parent) == ["drift.json"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o666 == 0o644


def test_directories_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "x.json"
    put_file(str(path), ["a"])
    assert path.read_text() == "a"


def test_a_file_in_the_current_directory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    put_file("drift.json", ["a"])
    assert path.read_text() == "a"


def test_a_file_is_replaced(path: Path) -> None:
    path.write_text("old" * 100)
    before = path.stat().st_ino
    with path.open() as reader:
        put_file(str(path), ["new"])
        # Who has it open goes on reading the old one.
        assert reader.read() == "old" * 100
    assert path.read_text() == "new"
    assert path.stat().st_ino != before


def test_lines_end_as_they_are(path: Path) -> None:
    put_file(str(path), ["a\r\nb\n"])
    assert path.read_bytes() == b"a\r\nb\n"


def test_half_a_character(path: Path) -> None:
    put_file(str(path), ["a\ud800b"])
    assert path.read_bytes() == b"a\\ud800b"


@pytest.mark.parametrize("target", ["there", "nowhere", "directory"])
def test_a_link_is_replaced(path: Path, target: str) -> None:
    (path.parent / "there").write_text("kept")
    (path.parent / "directory").mkdir()
    path.symlink_to(target)
    put_file(str(path), ["new"])
    assert not path.is_symlink()
    assert path.read_text() == "new"
    assert (path.parent / "there").read_text() == "kept"
    assert names(path.parent) == ["directory", "drift.json", "there"]


@pytest.mark.parametrize("is_link", [True, False])
def test_what_is_in_the_place_of_the_temporary_file_is_neither_followed_nor_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    victim, temporary = path.parent / "victim", path.parent / ("drift.json.%s~" % ("00" * 8))
    victim.write_text("kept")
    if is_link:
        temporary.symlink_to(victim)
    else:
        temporary.hardlink_to(victim)
    with pytest.raises(NodeError, match=r"drift\.json: cannot be written: "):
        put_file(str(path), ["new"])
    assert victim.read_text() == "kept"
    assert not path.exists()


def test_two_writers_of_one_file_do_not_disturb_each_other(path: Path) -> None:
    """Also where both have the same number, as in two containers: the last one counts, whole."""

    def parts() -> Iterator[str]:
        yield "first"
        put_file(str(path), ["second"])
        assert path.read_text() == "second"
        yield " and whole"

    put_file(str(path), parts())
    assert path.read_text() == "first and whole"
    assert names(path.parent) == ["drift.json"]


def test_what_is_written_is_on_the_disk_before_it_has_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def recorded(name: str) -> Any:
        real = getattr(os, name)

        def call(*arguments: Any) -> None:
            calls.append(name)
            real(*arguments)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, recorded(name))
    put_file(str(path), ["new"])
    assert calls == ["fsync", "replace"]


def broken() -> Iterator[str]:
    yield "new"
    raise KeyError("no such part")


def test_a_text_that_cannot_be_made_leaves_the_old_file(path: Path) -> None:
    path.write_text("old")
    with pytest.raises(KeyError, match="no such part"):
        put_file(str(path), broken())
    assert path.read_text() == "old"
    assert names(path.parent) == ["drift.json"]


def test_a_killed_writer_leaves_the_old_file(path: Path) -> None:
    path.write_text("old")
    tests = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-c", WRITER, str(tests), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        assert path.read_text() == "old"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert path.read_text() == "old"
    # The rest of it does not look like a result file.
    (stray,) = (name for name in names(path.parent) if name != "drift.json")
    assert not stray.endswith(".json")
    put_file(str(path), ["new"])
    assert path.read_text() == "new"


def test_a_directory_in_place_of_the_file(path: Path) -> None:
    path.mkdir()
    with pytest.raises(NodeError, match=r"drift\.json: cannot be written: ") as caught:
        put_file(str(path), ["new"])
    assert caught.value.where == str(path)
    assert names(path.parent) == ["drift.json"]


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(NodeError, match="cannot be written: "):
        put_file(str(tmp_path / "a" / "x.json"), ["new"])
    assert (tmp_path / "a").read_text() == "old"


def test_a_full_disk() -> None:
    with pytest.raises(NodeError, match="cannot be written: "):
        put_file("/proc/self/x.json", ["new"])


def test_what_killed_runs_left_is_removed_after_a_day(tmp_path: Path) -> None:
    day = 86400
    left = (
        "drift.json.77~",
        "drift.html.0123456789abcdef~",
        ".progress-0af",
        "nodes/a.json.e7~",
        "nodes/a.xml.json.7~",
    )
    new = ("drift.json.78~", ".progress-78", "nodes/a.json.78~")
    stays = (
        *("drift.json", ".progress", ".progress-x", "notes.json.77~", "drift.json.~1~"),
        *("nodes/a.json", "nodes/.progress-7", "nodes/a.json.x~", "more/nodes/a.json.77~"),
    )
    now = 1795446245.0
    for directory in ("nodes", "more/nodes", "nodes/b.json.77~"):
        (tmp_path / directory).mkdir(parents=True)
    for names_of_age, age in ((left, day + 1), (new, day - 1), (stays, day + 1)):
        for name in names_of_age:
            (tmp_path / name).write_text("x")
            os.utime(tmp_path / name, (now - age, now - age))
    (tmp_path / "nodes/link.json.77~").symlink_to("nowhere")
    before = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    sweep(str(tmp_path), now)
    after = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert before - after == set(left)
    sweep(str(tmp_path / "nowhere"), now)
    sweep(str(tmp_path / "drift.json"), now)


names_of_hosts = st.one_of(
    st.text(), st.text(alphabet="ab-_/.%2D\\", max_size=6), st.text(min_size=80).map(lambda text: text * 3)
)


@given(st.lists(names_of_hosts, min_size=1, max_size=2), st.lists(names_of_hosts, min_size=1, max_size=2))
def test_names_that_differ_give_files_that_differ(first: list[str], second: list[str]) -> None:
    if len(first) == len(second):
        assert (stem_of(*first) == stem_of(*second)) is (first == second)
    assert re.fullmatch(r"[A-Za-z0-9_.~%-]{0,217}", stem_of(*first))
    assert stem_of(*first) not in (".", "..")


@pytest.mark.parametrize(
    ("given_names", "expected"),
    [
        (("worker-3.example.org",), "worker-3.example.org"),
        (("a/b",), "a%2Fb"),
        (("a_b",), "a_b"),
        (("a%2Fb",), "a%252Fb"),
        (("..",), "%2E%2E"),
        (("edge", "services"), "edge-services"),
        (("a-b", "c"), "a-b-c"),
        (("a", "b-c"), "a-b%2Dc"),
    ],
)
def test_stems(given_names: tuple[str, ...], expected: str) -> None:
    assert stem_of(*given_names) == expected

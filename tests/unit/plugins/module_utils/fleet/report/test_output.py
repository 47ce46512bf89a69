# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.output import put_file, sweep

# It writes a part of a text, and then waits to be killed.
WRITER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.output import put_file

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


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(path: Path) -> None:
    victim = path.parent / "victim"
    victim.write_text("kept")
    (path.parent / ("drift.json.%d~" % os.getpid())).symlink_to(victim)
    with pytest.raises(NodeError, match=r"drift\.json: cannot be written: "):
        put_file(str(path), ["new"])
    assert victim.read_text() == "kept"
    assert not path.exists()


def test_what_a_killed_run_left_is_no_obstacle(path: Path) -> None:
    stray = path.parent / ("drift.json.%d~" % os.getpid())
    stray.write_text("half" * 1000)
    put_file(str(path), ["new"])
    assert path.read_text() == "new"
    assert names(path.parent) == ["drift.json"]


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
    tests = Path(__file__).resolve().parents[5]
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
    left = ("drift.json.77~", "drift.html.123456~", ".progress-77", "nodes/a.json.77~", "nodes/drift.xml.json.7~")
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

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Archives of strangers: what is unpacked stays inside, and all else is refused with nothing left of it."""

from __future__ import annotations

import errno
import gzip
import io
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Iterator, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import archive as archive_module
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.archive import unpacked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.counted import lines_run
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples


@pytest.fixture(autouse=True)
def private_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield where archives are unpacked; nothing is left there."""
    directory = tmp_path / "unpacked"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory
    assert list(directory.iterdir()) == []


def member(
    name: str,
    content: bytes = b"",
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
    form: Literal[0, 1, 2] = tarfile.PAX_FORMAT,
    **more: Any,
) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(form) + content + bytes(-len(content) % 512)


def packed(*members: bytes, end: bytes = bytes(1024)) -> bytes:
    return gzip.compress(b"".join(members) + end)


def put(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "node.tar.gz"
    path.write_bytes(content)
    return str(path)


def tree_of(directory: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(Path(directory).rglob("*")):
        name = str(path.relative_to(directory))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_files_directories_and_links(tmp_path: Path, form: Literal[0, 1, 2]) -> None:
    long = "d/" + "/".join(["n" * 90] * 2) + "/é"
    content = packed(
        member("./", kind=tarfile.DIRTYPE, form=form),
        member("d/", kind=tarfile.DIRTYPE, form=form),
        member("./d/file", b"x" * 600, form=form, mtime=1700000000),
        member(long, b"y", form=form),
        member("d/e/link", kind=tarfile.SYMTYPE, target="../file", form=form),
        member("link", kind=tarfile.SYMTYPE, target="d/e", form=form),
    )
    opened = unpacked(put(tmp_path, content))
    found = tree_of(opened.directory)
    assert found["d/file"] == b"x" * 600
    assert found[long] == b"y"
    assert (found["d/e/link"], found["link"], found["d"]) == ("../file", "d/e", None)
    assert os.stat(opened.directory).st_mode & 0o777 == 0o700
    assert os.stat(opened.directory + "/d/file").st_mode & 0o777 == 0o600
    assert os.stat(opened.directory + "/d/file").st_mtime == 1700000000
    opened.remove()


def test_a_directory_as_tar_wrote_it_before_there_was_a_sign_for_it(tmp_path: Path) -> None:
    opened = unpacked(put(tmp_path, packed(member("d/"), member("d/e/", kind=b"\0"), member("d/e/file", b"x"))))
    assert tree_of(opened.directory) == {"d": None, "d/e": None, "d/e/file": b"x"}
    opened.remove()


@pytest.mark.parametrize(("mode", "kept"), [(0o644, 0o600), (0o200, 0o600), (0o444, 0o400), (0o066, 0o400)])
def test_whether_a_file_may_be_written_is_kept(tmp_path: Path, mode: int, kept: int) -> None:
    opened = unpacked(put(tmp_path, packed(member("file", b"x", mode=mode), member("d/", kind=tarfile.DIRTYPE))))
    assert os.stat(opened.directory + "/file").st_mode & 0o777 == kept
    assert os.stat(opened.directory + "/d").st_mode & 0o777 == 0o700
    opened.remove()


REFUSED: dict[str, list[bytes]] = {
    "absolute": [member("/etc/passwd", b"x")],
    "up": [member("../x", b"x")],
    "up inside": [member("a/../../x", b"x")],
    "up that stays": [member("a/../x", b"x")],
    "no name": [member(".", b"x")],
    "hard link": [member("a", b"x"), member("b", kind=tarfile.LNKTYPE, target="a")],
    "device": [member("a", kind=tarfile.CHRTYPE)],
    "block device": [member("a", kind=tarfile.BLKTYPE)],
    "pipe": [member("a", kind=tarfile.FIFOTYPE)],
    "sparse": [member("a", kind=tarfile.GNUTYPE_SPARSE)],
    "unknown": [member("a", kind=b"Z")],
    "absolute link": [member("a", kind=tarfile.SYMTYPE, target="/etc")],
    "link up": [member("a/b", kind=tarfile.SYMTYPE, target="../../x")],
    "link up at the top": [member("a", kind=tarfile.SYMTYPE, target="..")],
    "link through a link": [
        member("a/b", kind=tarfile.SYMTYPE, target=".."),
        member("c", kind=tarfile.SYMTYPE, target="a/b/.."),
    ],
    "empty link": [member("a", kind=tarfile.SYMTYPE)],
    "file in a link": [member("a", kind=tarfile.SYMTYPE, target="b"), member("a/x", b"x")],
    "link in place of a directory": [member("a/x", b"x"), member("a", kind=tarfile.SYMTYPE, target="b")],
    "file in a file": [member("a", b"x"), member("a/x", b"x")],
    "twice": [member("a", b"x"), member("./a", b"y")],
    "deep": [member("/".join(["d"] * 200), b"x")],
    "pax path": [member("a", b"x", pax_headers={"path": "/etc/passwd"})],
    "pax link": [member("a", kind=tarfile.SYMTYPE, target="b", pax_headers={"linkpath": "/etc"})],
    "pax sparse": [member("a", b"x", pax_headers={"GNU.sparse.major": "1"})],
    "long file": [member("a", pax_headers={"size": str((16 << 20) + 1)})],
    "long path": [member("/".join(["d" * 200] * 6), b"x")],
    "long link": [member("a", kind=tarfile.SYMTYPE, target="b" * 2000)],
    "long description": [member("a", b"x", pax_headers={"comment": "x" * (1 << 17)})],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    outside = tree_of(str(tmp_path))
    with pytest.raises(RefusedError, match=r"^root .*node\.tar\.gz: has .*; nothing of it was read; give an archive"):
        unpacked(put(tmp_path, packed(member("first", b"x"), *REFUSED[name])))
    assert set(tree_of(str(tmp_path))) - set(outside) == {"node.tar.gz"}


WHOLE = packed(member("a", os.urandom(5000)), member("b", b"y"))

DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "no gzip": b"hello, this is no archive" * 100,
    "no compressed data": WHOLE[:10] + b"\xff" * 100,
    "no tar": gzip.compress(b"hello" * 1000),
    "cut off": WHOLE[:-20],
    "cut off early": WHOLE[: len(WHOLE) // 2],
    "cut off before its end": gzip.compress(gzip.decompress(WHOLE)[:-1024]),
    "wrong checksum": WHOLE[:-8] + bytes(4) + WHOLE[-4:],
    "another name than its sum is of": packed(member("a", b"x").replace(b"a", b"b", 1)),
    "a size with more digits than any": packed(member("a", b"", pax_headers={"size": "1" * 5000})),
    "a size with too many digits": packed(member("a", b"", pax_headers={"size": "1" * 13})),
    "negative size": packed(member("a", b"", pax_headers={"size": "-5"})),
    "size of a link": packed(member("a", kind=tarfile.SYMTYPE, target="b", pax_headers={"size": "512"})),
    "bad description": packed(member("a", b"5 a=b", kind=tarfile.XHDTYPE), member("b", b"x")),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged(tmp_path: Path, name: str) -> None:
    with pytest.raises(NodeError, match=r"^root .*node\.tar\.gz: (is|has|gives) .*; save the node again"):
        unpacked(put(tmp_path, DAMAGED[name]))


def test_an_error_of_the_system_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_file: gzip.GzipFile, _size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(gzip.GzipFile, "read", read)
    with pytest.raises(NodeError, match="cannot be unpacked: Input/output error; look at the file"):
        unpacked(put(tmp_path, WHOLE))


def test_too_many_and_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "MOST_MEMBERS", 10)
    with pytest.raises(RefusedError, match="has more than 10 files"):
        unpacked(put(tmp_path, packed(*(member("f%d" % number) for number in range(11)))))
    with pytest.raises(RefusedError, match="has more than 10 files and directories"):
        unpacked(put(tmp_path, packed(member("/".join("abcdefghijk")))))
    with pytest.raises(RefusedError, match="has a description that is too long"):
        unpacked(put(tmp_path, packed(*(member("x", b"9 a=bcde\n", kind=tarfile.XGLTYPE) for _number in range(21)))))
    monkeypatch.setattr(archive_module, "MOST_BYTES", 1 << 20)
    with pytest.raises(RefusedError, match="is longer than 1 MB when unpacked"):
        unpacked(put(tmp_path, packed(member("zeros", bytes(2 << 20)))))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """What a header says is refused before anything of it is unpacked, however small the archive is."""
    bomb = tarfile.TarInfo("etc/hostname")
    bomb.size = 256 << 20
    path = put(tmp_path, packed(bomb.tobuf(tarfile.PAX_FORMAT), bytes(32 << 20)))
    assert os.path.getsize(path) < 64 << 10

    def refused() -> None:
        with pytest.raises(RefusedError, match=r"has a file that is longer than 16777216 bytes, 'etc/hostname'"):
            unpacked(path)

    assert lines_run(refused) < 20_000


@pytest.mark.parametrize(
    "part",
    [
        member("d/", kind=tarfile.DIRTYPE),
        member("x", b"9 a=bcde\n", kind=tarfile.XGLTYPE),
        member("x", b"8 a=bcd\n" * 500, kind=tarfile.XHDTYPE) + member("d/", kind=tarfile.DIRTYPE),
        member("d" * 200 + "/" + "e" * 200 + "/", kind=tarfile.DIRTYPE),
    ],
    ids=["directories", "for all", "descriptions", "long names"],
)
def test_each_member_takes_as_many_steps_as_the_one_before(tmp_path: Path, part: bytes) -> None:
    def steps(count: int) -> int:
        path = put(tmp_path, packed(*[part] * count))
        return lines_run(lambda: unpacked(path).remove())

    few, some, many = steps(1), steps(11), steps(41)
    assert abs((many - some) - 3 * (some - few)) < (some - few) // 10


def test_paths_and_rights(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"root: 'node\.tar\.gz' is not an absolute path"):
        unpacked("node.tar.gz")
    with pytest.raises(NodeError, match="cannot be unpacked: No such file or directory"):
        unpacked(str(tmp_path / "none.tar.gz"))


def test_names_of_the_archive_take_the_place_of_the_directory(tmp_path: Path) -> None:
    opened = unpacked(put(tmp_path, packed(member("etc/hostname", b"x\n"))))
    here = opened.directory
    said = opened.named({here + "/a": [here, "in %s/etc/x: bad" % here, 5, None], "node": os.path.basename(here)})
    assert said == {
        opened.path + ":/a": [opened.path, "in %s:/etc/x: bad" % opened.path, 5, None],
        "node": "node.tar.gz",
    }
    error = opened.read_only()
    assert (error.kind, error.where) == ("read_only", "root %s" % opened.path)
    opened.remove()
    opened.remove()


MOST_EXAMPLES = 2000 if os.environ.get("HOSTILE") else examples(100)
NAMES = st.sampled_from(["a", "b", "a/b", "a/b/c", "../a", "/a", "a/..", ".", "", "a//b", "./a", "b/../../x", "é" * 60])
KINDS = st.sampled_from([b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"x", b"g", b"L", b"K", b"Z"])
MEMBERS = st.lists(st.tuples(NAMES, st.binary(max_size=40), KINDS, NAMES), max_size=6)


def check_inside(tmp_path: Path, content: bytes) -> None:
    """Check that the content, whatever it is, is unpacked inside, or that there is one error and nothing is left."""
    before = set(tree_of(str(tmp_path)))
    path = put(tmp_path, content)
    try:
        opened = unpacked(path)
    except (NodeError, RefusedError):
        pass
    else:
        real = os.path.realpath(opened.directory)
        for place in Path(opened.directory).rglob("*"):
            assert (os.path.realpath(place) + "/").startswith(real + "/")
        opened.remove()
    assert set(tree_of(str(tmp_path))) - before <= {"node.tar.gz"}


@settings(deadline=None, max_examples=MOST_EXAMPLES)
@given(MEMBERS, st.integers(0, 60))
def test_hostile_members(tmp_path_factory: pytest.TempPathFactory, members: list[Any], cut: int) -> None:
    content = packed(*(member(name, data, kind, target) for name, data, kind, target in members))
    directory = tmp_path_factory.getbasetemp()
    check_inside(_private(directory), content[: len(content) - cut] if cut < 20 else content)


@settings(deadline=None, max_examples=MOST_EXAMPLES)
@given(st.binary(max_size=1500), st.integers(0, 511), st.integers(0, 255), st.booleans())
def test_hostile_bytes(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int, byte: int, with_sum: bool
) -> None:
    block = bytearray(member("a/b", b"content", kind=b"0", target="x", mtime=5))
    block[place] = byte
    if with_sum:
        block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:512]))
    directory = _private(tmp_path_factory.getbasetemp())
    check_inside(directory, packed(bytes(block), noise))
    check_inside(directory, gzip.compress(noise))
    check_inside(directory, noise)


def _private(base: Path) -> Path:
    directory = base / "hostile"
    directory.mkdir(exist_ok=True)
    return directory


def test_the_reader_reads_what_tar_writes(tmp_path: Path) -> None:
    packed_by_tar = io.BytesIO()
    with tarfile.open(fileobj=packed_by_tar, mode="w:gz") as opened:
        info = tarfile.TarInfo("etc/hostname")
        info.size, info.mtime = 3, 1700000000
        opened.addfile(info, io.BytesIO(b"n1\n"))
    found = unpacked(put(tmp_path, packed_by_tar.getvalue()))
    assert tree_of(found.directory) == {"etc": None, "etc/hostname": b"n1\n"}
    found.remove()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection's archive, the same to the byte wherever and whenever it is built from the same files.

ansible-galaxy takes the order of the directory, the time of each file and the time of the build into it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from operator import itemgetter
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Iterable, Mapping

import yaml

MANIFEST, FILES = "MANIFEST.json", "FILES.json"
# The pages that docs/write_NAME.py make of the code.
PAGES = ("checks", "errors")


def build(source: Path, output: Path, metadata: Mapping[str, Any] | None = None) -> Path:
    """Build the collection in `source`, and return its archive in `output`.

    metadata: what its MANIFEST.json is to have in place of what galaxy.yml says. All files have the time of the
    release, or of the commit. Pages that are missing are written. Raises CalledProcessError.
    """
    write_pages(source, [name for name in PAGES if not _page(source, name).exists()])
    with TemporaryDirectory() as temporary:
        command = ["ansible-galaxy", "collection", "build", "--output-path", temporary, str(source)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (built,) = Path(temporary).glob("*.tar.gz")
        content = normalised(built.read_bytes(), time_of(source), metadata or {})
        output.mkdir(parents=True, exist_ok=True)
        (output / built.name).write_bytes(content)
    return output / built.name


def write_pages(source: Path, names: Iterable[str] = PAGES) -> None:
    """Write these pages of the documentation of a checkout from its code. Raises CalledProcessError."""
    for name in names:
        subprocess.run([sys.executable, "-B", str(source / "docs" / ("write_%s.py" % name))], check=True)


def _page(source: Path, name: str) -> Path:
    return source / "docs" / "docsite" / "rst" / (name + ".rst")


def with_metadata(archive: Path, output: Path, metadata: Mapping[str, Any]) -> Path:
    """Write a copy of an archive to `output`, with this in its MANIFEST.json, and return it."""
    with tarfile.open(archive) as tar:
        when = int(tar.getmember(MANIFEST).mtime)
    output.mkdir(parents=True, exist_ok=True)
    (output / archive.name).write_bytes(normalised(archive.read_bytes(), when, metadata))
    return output / archive.name


def time_of(source: Path) -> int:
    """Return seconds since the epoch: of the day of the release, of the commit where it is none, 0 without a
    repository."""
    version = yaml.safe_load((source / "galaxy.yml").read_text("utf-8"))["version"]
    releases = yaml.safe_load((source / "changelogs" / "changelog.yaml").read_text("utf-8"))["releases"]
    if version in releases:
        day = datetime.fromisoformat(releases[version]["release_date"])
        return int(day.replace(tzinfo=timezone.utc).timestamp())
    if not (source / ".git").exists():
        return 0
    command = ["git", "-C", str(source), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def normalised(archive: bytes, when: int, metadata: Mapping[str, Any]) -> bytes:
    """Return an archive of ansible-galaxy, with its members in order and nothing of the machine that built it."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {member.name: member for member in tar.getmembers()}
        contents = {name: _content(tar, name) for name, member in members.items() if member.isfile()}
    files = json.loads(contents[FILES])
    # Directories that git has, which are those with something in them.
    kept = {".", *contents, *(str(parent) for name in contents for parent in PurePosixPath(name).parents)}
    files["files"] = sorted((file for file in files["files"] if file["name"] in kept), key=itemgetter("name"))
    contents[FILES] = _json(files)
    manifest = json.loads(contents[MANIFEST])
    manifest["collection_info"].update(metadata)
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(contents[FILES]).hexdigest()
    contents[MANIFEST] = _json(manifest)
    tarred, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in [MANIFEST, FILES, *sorted((members.keys() & kept) - {MANIFEST, FILES})]:
            content = contents.get(name, b"")
            tar.addfile(_member(members[name], len(content), when), io.BytesIO(content))
    # gzip.compress() would write what differs between versions of Python.
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(tarred.getvalue())
    return packed.getvalue()


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise ValueError("%s is no file of the archive" % name)
    return file.read()


def _member(found: tarfile.TarInfo, size: int, when: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(found.name)
    member.type, member.linkname, member.mtime, member.size = found.type, found.linkname, when, size
    # As ansible-galaxy has it: whoever may execute a file follows from its owner.
    member.mode = 0o755 if found.isdir() or found.mode & 0o100 else 0o644
    return member


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode("utf-8")


def metadata_of(archive: Path) -> dict[str, Any]:
    """Return what the MANIFEST.json of an archive says about the collection."""
    with tarfile.open(archive) as tar:
        info: dict[str, Any] = json.loads(_content(tar, MANIFEST))["collection_info"]
    return info


def sha256(path: Path) -> str:
    """Return the checksum of a file, as sha256sum writes it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checkout() -> Path:
    """Return the checkout that this file is in."""
    return Path(os.path.abspath(__file__)).parents[2]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/vm/cpio.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.vm import cpio

FILES = {
    "init": cpio.File(b"#!/bin/sh\n", executable=True),
    "kernel/firmware/acpi/madt.aml": cpio.File(bytes(range(7))),
    "empty": cpio.File(b""),
}


def test_parts_are_aligned() -> None:
    archive = cpio.archive(FILES)
    assert len(archive) % 512 == 0
    at = archive.index(b"kernel/firmware/acpi/madt.aml\0")
    assert archive[at - 110 : at - 104] == b"070701"
    assert archive.index(bytes(range(7))) % 4 == 0


@pytest.mark.needs("cpio")
def test_cpio_unpacks_it(tmp_path: Path) -> None:
    archive = cpio.archive(FILES, directories=("proc", "a/b"))
    subprocess.run(["cpio", "--quiet", "-idm"], input=archive, cwd=tmp_path, check=True)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert found == {"a", "a/b", "empty", "init", "kernel", "kernel/firmware", "kernel/firmware/acpi", "proc"} | set(
        FILES
    )
    for name, file in FILES.items():
        assert (tmp_path / name).read_bytes() == file.data
        assert bool((tmp_path / name).stat().st_mode & 0o100) == file.executable

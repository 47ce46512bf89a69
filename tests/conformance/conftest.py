# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The saved machines in ../shared/machines beside the checkout; without them the tests that need one are skipped."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Iterator

import pytest

MACHINES = Path(__file__).resolve().parents[2].parent / "shared" / "machines"
EXPECTED = ".expected.json"
NAMES = sorted(path.name[: -len(EXPECTED)] for path in MACHINES.glob("*" + EXPECTED))

Unpack = Callable[[str], str]


@pytest.fixture(scope="session")
def unpack() -> Iterator[Unpack]:
    """unpack(NAME) is the root directory of a machine, unpacked once."""
    with tempfile.TemporaryDirectory() as directory:

        def root_of(name: str) -> str:
            archive = MACHINES / (name + ".tar.xz")
            if not archive.exists():
                pytest.skip("%s is not there" % archive)
            root = Path(directory, name)
            if not root.exists():
                root.mkdir()
                # Python's tarfile takes five times as long for as many small files.
                subprocess.run(["tar", "-xJf", str(archive), "-C", str(root)], check=True)
            return str(root)

        yield root_of

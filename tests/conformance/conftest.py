# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The saved machines in the directory that SAVED_MACHINES names; without it there are no tests that need one."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Iterator

import pytest

MACHINES = Path(os.environ.get("SAVED_MACHINES") or os.devnull)
EXPECTED = ".expected.json"
NAMES = sorted(path.name[: -len(EXPECTED)] for path in MACHINES.glob("*" + EXPECTED))

Unpack = Callable[[str], str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take out the tests that need a saved machine, where nobody says where these are."""
    if NAMES:
        return
    if os.environ.get("SAVED_MACHINES"):
        raise pytest.UsageError("SAVED_MACHINES: there are no machines in %s" % MACHINES)
    items[:] = [item for item in items if "unpack" not in getattr(item, "fixturenames", ())]


@pytest.fixture(scope="session")
def unpack() -> Iterator[Unpack]:
    """Yield a function: unpack(NAME) is the root directory of a machine, unpacked once."""
    with tempfile.TemporaryDirectory() as directory:

        def root_of(name: str) -> str:
            archive = MACHINES / (name + ".tar.xz")
            root = Path(directory, name)
            if not root.exists():
                root.mkdir()
                # Python's tarfile takes five times as long for as many small files.
                subprocess.run(["tar", "-xJf", str(archive), "-C", str(root)], check=True)
            return str(root)

        yield root_of

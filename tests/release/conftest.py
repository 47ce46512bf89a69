# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of the release share: the archive, and a machine that has Ansible and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from . import archive
from .importer import NOWHERE
from .tools import programs

CHECKOUT = archive.checkout()


class Machine:
    """A user's machine: an empty home, and a virtual environment with ansible-core alone."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.programs = directory / "venv" / "bin"
        self.home.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", str(directory / "venv")], check=True)
        requirements = str(CHECKOUT / "requirements.txt")
        self.pip("-r", requirements)

    def pip(self, *arguments: str) -> None:
        """Install in the environment."""
        install = [str(self.programs / "pip"), "install", "-qq", "--disable-pip-version-check", *arguments]
        subprocess.run(install, check=True)

    def run(self, *command: str, expect: int = 0) -> str:
        """Return what a command prints that the user types at home."""
        # Of the tests' own environment, nothing about Ansible and Python.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON", "VIRTUAL_"))
        }
        environment.update(HOME=str(self.home), PATH="%s:/usr/bin:/bin" % self.programs, PWD=str(self.home))
        done = subprocess.run(
            command,
            cwd=self.home,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == expect, done.stdout
        return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive of the checkout as it is, with a repository, which a server wants."""
    return archive.build(CHECKOUT, tmp_path_factory.mktemp("archive"), {"repository": NOWHERE})


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return one for all tests of a process, before anything is installed there."""
    try:
        return Machine(tmp_path_factory.mktemp("machine"))
    except subprocess.CalledProcessError as error:
        lacking(TOOL, "no ansible-core to install: %s" % error)


@pytest.fixture(scope="session")
def tools() -> Path:
    """Return the directory with the programs of requirements.txt."""
    try:
        return programs()
    except subprocess.CalledProcessError as error:
        lacking(TOOL, "no tools of the release to install: %s" % error)


def copied(sources: Sequence[str], target: Path) -> None:
    """Copy what git has or would add of the checkout, as a repository of its own with one commit."""
    listed = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", *sources]
    names = os.fsdecode(subprocess.run(listed, check=True, stdout=subprocess.PIPE).stdout).split("\0")
    for name in filter(None, names):
        source, file = CHECKOUT / name, target / name
        if source.is_file():  # one that is deleted is listed until that is committed
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(source.read_bytes())
            file.chmod(source.stat().st_mode & 0o777)

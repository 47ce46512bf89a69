# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The versions of ansible-core, and virtual environments with them, which are kept for the next time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.support import pythons

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".cache" / "matrix"
# Of requirements-test.txt, what tests/playbooks imports. No linter: each of them wants an ansible-core of its own.
TOOLS = ("hypothesis", "jsonschema", "kubernetes", "prometheus-client")
PYTEST = ("pytest", "pytest-timeout", "pytest-xdist")

# ansible-test has the Pythons of its ansible-core.
_QUESTION = """\
import json
from ansible.release import __version__
from ansible_test._util.target.common import constants
told = [__version__, constants.CONTROLLER_PYTHON_VERSIONS, constants.REMOTE_ONLY_PYTHON_VERSIONS]
print(json.dumps(told))
"""


class Environment(NamedTuple):
    """A virtual environment with an ansible-core: of which series (such as 2.20), on which Python (such as 3.12)."""

    core: str
    python: str

    @property
    def name(self) -> str:
        return "%s-%s" % (self.core, self.python)

    @property
    def directory(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def programs(self) -> Path:
        return self.directory / "bin"

    def variables(self) -> dict[str, str]:
        """Return the environment of a process that uses its programs, and the collection as it is in this checkout."""
        return {
            **os.environ,
            "PATH": os.pathsep.join([str(self.programs), os.environ["PATH"]]),
            "VIRTUAL_ENV": str(self.directory),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "NO_COLOR": "1",
        }

    def install(self, *requirements: str) -> None:
        """Install Python packages. Raises subprocess.CalledProcessError."""
        pip = [str(self.programs / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, *requirements], check=True)

    def make(self) -> None:
        """Make it, unless it is there. A series that is not supported yet may be there as a pre-release only."""
        complete = self.directory / ".complete"
        if complete.exists():
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        subprocess.run([pythons.installed()[self.python], "-m", "venv", str(self.directory)], check=True)
        self.install(*([] if self.core in supported() else ["--pre"]), "ansible-core==%s.*" % self.core)
        complete.touch()


class Core(NamedTuple):
    """What a series of ansible-core says of itself: its version here, and the Pythons that it runs on and manages.

    Of the Pythons, those that the collection is for.
    """

    version: str
    controllers: tuple[str, ...]
    nodes: tuple[str, ...]


def supported() -> tuple[str, ...]:
    """Return the series of ansible-core that requirements.txt allows, the oldest first."""
    text = (ROOT / "requirements.txt").read_text("utf-8")
    ((lowest, beyond),) = re.findall(r"^ansible-core>=2\.(\d+),<2\.(\d+)$", text, re.MULTILINE)
    return tuple("2.%d" % minor for minor in range(int(lowest), int(beyond)))


def core_of(series: str) -> Core:
    """Return what there is of a series, by its newest version for the newest Python here. Raises CalledProcessError."""
    newest = Environment(series, [version for version in pythons.VERSIONS if version in pythons.installed()][-1])
    newest.make()
    told = subprocess.run(
        [newest.programs / "python", "-c", _QUESTION], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    version, controllers, others = json.loads(told)
    return Core(version, _promised(controllers), _promised([*others, *controllers]))


def needed_by_playbooks() -> list[str]:
    """Return what tests/playbooks needs, with the versions of requirements-test.txt."""
    lines = (ROOT / "requirements-test.txt").read_text("utf-8").splitlines()
    return [line for line in lines if re.split(r"[~>=]", line)[0] in (*TOOLS, *PYTEST)]


def _promised(versions: Sequence[str]) -> tuple[str, ...]:
    return tuple(version for version in pythons.VERSIONS if version in versions)


def python_of_core(series: str) -> str:
    """Return on which Python a series is tried where it is tried on one only: the newest series on the newest."""
    controllers = core_of(series).controllers
    return controllers[-1 if series == supported()[-1] else 0]


def lacking_pythons() -> list[str]:
    """Return the Pythons that the collection is for and that are not here."""
    return [version for version in pythons.VERSIONS if version not in pythons.installed()]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a server says of an archive before it takes it: galaxy-importer, with the checks that servers have."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from . import archive
from .tools import programs

# No container is run. The rest is what servers check by default, said here as a machine may have a configuration.
CHECKS = """\
[galaxy-importer]
check_changelog = true
run_ansible_doc = true
run_ansible_lint = true
offline_ansible_lint = true
run_ansible_test = false
"""
# A server takes no collection without a repository. This stands for one until galaxy.yml names it.
NOWHERE = "https://example.org/kubenode.cpu_manager"
# What the importer writes when it has taken an archive.
_RESULT = "importer_result.json"
# It lints what is not installed, and so does not find our own playbooks, which files of extensions/ name.
_NOT_INSTALLED = re.compile(r"WARNING: ERROR +Failed to find kubenode\.cpu_manager\.\w+ playbook\.")


class Verdict(NamedTuple):
    """What the importer says: whether it takes the archive, its remarks, and all that it printed."""

    is_taken: bool
    remarks: list[str]
    output: str

    @property
    def is_clean(self) -> bool:
        """Whether a server takes the archive and has nothing to say against it."""
        return self.is_taken and not self.remarks


def check_release(made: Path) -> Verdict:
    """Return what check() says of an archive that is to be released. Where it names no repository, NOWHERE stands in
    for it."""
    if archive.metadata_of(made).get("repository"):
        return check(made)
    with TemporaryDirectory() as temporary:
        return check(archive.with_metadata(made, Path(temporary), {"repository": NOWHERE}))


def check(made: Path) -> Verdict:
    """Import an archive into nowhere. Raises CalledProcessError where the importer cannot be installed."""
    tools = programs()
    with TemporaryDirectory() as temporary:
        home = Path(temporary)
        (home / "galaxy-importer.cfg").write_text(CHECKS, encoding="utf-8")
        # A server has no other collections and no configuration of Ansible.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment.update(
            HOME=temporary,
            PATH=os.pathsep.join([str(tools), environment.get("PATH", "")]),
            GALAXY_IMPORTER_CONFIG=str(home / "galaxy-importer.cfg"),
        )
        done = subprocess.run(
            [str(tools / "python"), "-m", "galaxy_importer.main", str(made.resolve())],
            cwd=temporary,
            env=environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        is_taken = done.returncode == 0 and (home / _RESULT).is_file()
    remarks = [line for line in done.stdout.splitlines() if line.startswith(("WARNING", "ERROR", "CRITICAL"))]
    return Verdict(is_taken, [line for line in remarks if not _NOT_INSTALLED.fullmatch(line)], done.stdout)

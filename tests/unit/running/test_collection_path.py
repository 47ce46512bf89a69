# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible finds a checkout wherever it lies, and one place says how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.collection_path import ROOT

HERE = "tests/collection_path.py"
# What ansible-core makes of the path of a role.
NAME_OF_ROLE = """
import sys
from ansible.utils.collection_loader import _collection_finder as finder
finder._AnsibleCollectionFinder(paths=[sys.argv[1]])._install()
role = sys.argv[1] + "/ansible_collections/kubenode/cpu_manager/roles/kubelet"
print(finder._get_collection_name_from_path(role))
"""


def collections_by_make(checkout: Path, home: Path) -> Path:
    """Let make link a checkout, and return the directory that it tells Ansible."""
    for name in ("Makefile", HERE):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "told.mk").write_text("include Makefile\ntold: link\n\t@echo $$ANSIBLE_COLLECTIONS_PATH\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    told = ["make", "--no-print-directory", "-f", "told.mk", "told"]
    return Path(subprocess.check_output(told, cwd=checkout, env=environment, text=True).strip())


@pytest.mark.parametrize(
    "directory",
    ["src/cpu_manager", "src/ansible_collections/kubenode/cpu_manager", "ansible_collections/clones/two"],
)
def test_ansible_knows_the_checkout_wherever_it_lies(tmp_path: Path, directory: str) -> None:
    checkout = tmp_path / directory
    collections = collections_by_make(checkout, tmp_path / "home")
    assert (collections / "ansible_collections/kubenode/cpu_manager").resolve() == checkout
    # For what asks nobody.
    assert (checkout / "build/collections").resolve() == collections
    command = [sys.executable, "-c", NAME_OF_ROLE, str(collections)]
    assert subprocess.check_output(command, text=True).strip() == "kubenode.cpu_manager"


def test_two_checkouts_are_two(tmp_path: Path) -> None:
    checkouts = [tmp_path / name / "ansible_collections/kubenode/cpu_manager" for name in ("one", "two")]
    assert len({collections_by_make(checkout, tmp_path / "home") for checkout in checkouts}) == len(checkouts)


def test_no_other_file_says_where_it_is() -> None:
    """ansible.cfg, mypy and molecule ask nobody: for them the Makefile makes build/collections."""
    asks_nobody = {"Makefile", "ansible.cfg", "pyproject.toml", "extensions/molecule/config.yml"}
    looked = [
        "git",
        "-C",
        str(ROOT),
        "grep",
        "-lE",
        r'build(/|" / ")collections',
        "--",
        ":!" + HERE,
        ":!tests/unit/running",
    ]
    found = subprocess.run(looked, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert set(found) == asks_nobody

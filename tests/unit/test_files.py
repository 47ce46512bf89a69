# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files are in the collection, and which signs are in them. Licences are for reuse: see make lint."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
# What a person writes, and reads in a diff.
TEXTS = {".cfg", ".css", ".j2", ".js", ".md", ".py", ".rst", ".sh", ".toml", ".txt", ".yml"}
# Signs that nobody sees, or that look like others: controls, tabs, blanks of other widths, marks of direction, and
# blanks at the end of a line.
UNSEEN = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u2069\ufeff]"
)
BLANK_END = re.compile(r"[ \t]+$", re.MULTILINE)
# Written by others, or with a tab where the format takes nothing else.
AS_THEY_ARE = ("changelogs/changelog.yaml", "demo/fleet/", "tests/vm/files/")
# What Ansible finds below plugins/ by its ending; and data of what only the controller imports.
PLUGIN_ENDINGS = {"filter": {".py", ".yml"}, "test": {".py", ".yml"}, "plugin_utils": {".py", ".json"}}


def _files() -> list[str]:
    """Return what git has or would add, as a copy without git has it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, check=False, stdout=subprocess.PIPE)
    if listed.returncode != 0:
        return []
    return [name for name in os.fsdecode(listed.stdout).split("\0") if name and (CHECKOUT / name).is_file()]


FILES = _files()


@pytest.mark.skipif(not FILES, reason="no repository of git")
def test_no_sign_is_unseen() -> None:
    texts = [name for name in FILES if Path(name).suffix in TEXTS and not name.startswith(AS_THEY_ARE)]
    assert len(texts) > 500
    wrong = {}
    for name in texts:
        text = (CHECKOUT / name).read_text("utf-8")
        found = UNSEEN.findall(text)
        if found or (text and not text.endswith("\n")):
            wrong[name] = found
    assert wrong == {}


@pytest.mark.skipif(not FILES, reason="no repository of git")
def test_plugins_are_regular_files_with_an_ending_that_ansible_reads() -> None:
    plugins = [Path(name) for name in FILES if name.startswith("plugins/")]
    assert plugins
    odd = [
        str(path)
        for path in plugins
        if (CHECKOUT / path).is_symlink() or path.suffix not in PLUGIN_ENDINGS.get(path.parts[1], {".py"})
    ]
    assert odd == []


def test_the_action_group_has_every_module_that_is_about_a_node() -> None:
    """These take the node's directory: its fragment documents that, and the group sets it for all at once."""
    groups = yaml.safe_load((CHECKOUT / "meta" / "runtime.yml").read_text("utf-8"))["action_groups"]
    of_nodes = set()
    for path in (CHECKOUT / "plugins" / "modules").glob("*.py"):
        documentation = yaml.safe_load(path.read_text("utf-8").partition('DOCUMENTATION = r"""')[2].partition('"""')[0])
        if "kubenode.cpu_manager.node" in documentation["extends_documentation_fragment"]:
            of_nodes.add(path.stem)
    assert set(groups["cpu_manager"]) == of_nodes
    assert len(groups["cpu_manager"]) == len(of_nodes)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.systemd import check_visible

HIDDEN = ("/home", "/tmp")
LIVE = Tree("/")


@pytest.mark.parametrize(
    ("interpreter", "files", "hidden"),
    [
        ("/usr/bin/python3", ["/usr/local/lib/a.pyz", "/etc/a.json"], HIDDEN),
        ("/usr/bin/python3", ["/tmpfiles/a.pyz"], HIDDEN),
        ("/nowhere/python3", ["/tmp/a.pyz"], ()),
    ],
)
def test_what_a_service_sees(interpreter: str, files: Sequence[str], hidden: Sequence[str]) -> None:
    check_visible(LIVE, interpreter, files, hidden)


@pytest.mark.parametrize(
    ("interpreter", "files", "where"),
    [
        ("/home/a/python", ["/usr/a"], "/home/a/python"),
        ("/usr/bin/python3", ["/usr/a", "/tmp/a"], "/tmp/a"),
        ("/usr/bin/python3", ["/usr/../home/a"], "/usr/../home/a"),
    ],
)
def test_what_it_does_not_see(interpreter: str, files: Sequence[str], where: str) -> None:
    with pytest.raises(RefusedError, match="does not see") as caught:
        check_visible(LIVE, interpreter, files, HIDDEN)
    assert (caught.value.kind, caught.value.where) == ("hidden", where)


def test_a_relative_interpreter() -> None:
    with pytest.raises(InputError, match="absolute"):
        check_visible(LIVE, "python3", ["/usr/a"], HIDDEN)


def test_of_a_saved_node_no_python_of_this_machine_is_asked(tmp_path: Path) -> None:
    check_visible(Tree(str(tmp_path)), "/no/such/python3", ["/usr/a"], HIDDEN)
    with pytest.raises(RefusedError, match="does not see"):
        check_visible(Tree(str(tmp_path)), "/home/a/python3", ["/usr/a"], HIDDEN)

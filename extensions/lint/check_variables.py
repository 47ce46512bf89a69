#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Says which variables of this collection in group_vars and host_vars have a wrong name or value, without a node.

    check_variables.py group_vars host_vars

Takes files of variables, playbooks, whose `vars` it looks at, and directories. A directory that is not there is left
out. Ends with 1 if something is wrong, and if there is no file to look at. It needs ansible-core, and neither a network
nor the collection's installation: it takes the collection that it is a part of.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Callable, Iterator, Sequence

COLLECTION = Path(__file__).resolve().parents[2]
NAME = "kubenode_cpu_manager_of_%s" % __name__
# Of a file in group_vars or host_vars; a name without an ending is Ansible's, too.
ENDINGS = ("", ".yml", ".yaml", ".json")


def checker() -> Callable[[Path], list[str]]:
    """Return what says what is wrong with a file, taken from this collection wherever it lies, as pre-commit's copy
    of it."""
    if NAME not in sys.modules:
        # Under a name of its own: of ansible_collections, whoever imports this may have a loader.
        package = ModuleType(NAME)
        package.__path__ = [str(COLLECTION)]
        sys.modules[NAME] = package
    found: Callable[[Path], list[str]]
    found = import_module(NAME + ".plugins.plugin_utils.variables_of_files").wrong_in_file
    return found


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files, and those that Ansible reads below the directories."""
    for path in paths:
        if not path.suffix and not path.exists():
            print("%s: is not there, and is left out" % path, file=sys.stderr)
        elif path.is_dir():
            found = (file for file in sorted(path.rglob("*")) if not file.name.startswith(".") and file.is_file())
            yield from (file for file in found if file.suffix in ENDINGS)
        else:
            yield path


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file of variables, or a directory")
    paths = parser.parse_args(arguments).paths
    check = checker()
    status, files = 0, list(files_of(paths))
    if not files:
        print("%s: no file of variables is there; name the directories of your inventory" % " ".join(map(str, paths)))
        return 1
    for path in files:
        for wrong in check(path):
            print("%s: %s" % (path, wrong))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes this checkout importable as ansible_collections.kubenode.cpu_manager, and found by Ansible, wherever it lies.

pytest gets it through conftest.py. As a program it prints where the Makefile makes the link for Ansible. A script says,
before its first import from the collection:

    import collection_path  # with tests/ on sys.path

    collection_path.register()
"""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


def collections_of(checkout: Path) -> Path:
    """Return the directory in which Ansible finds a checkout, by a link.

    ansible-core reads the name of a collection from a path, which has to have exactly one `ansible_collections`. A
    checkout below such a directory has its link outside.
    """
    if "ansible_collections" not in checkout.parts:
        return checkout / "build" / "collections"
    name = sha256(str(checkout).encode("utf-8")).hexdigest()[:12]
    return Path.home() / ".cache" / "kubenode-cpu-manager" / "checkouts" / name / "collections"


COLLECTIONS = collections_of(ROOT)


def register() -> None:
    """Register the collection and its parents as packages, unless a loader (ansible-test's, an installation) has it."""
    if _is_importable("ansible_collections.kubenode.cpu_manager.plugins"):
        return
    for name, path in (
        ("ansible_collections", []),
        ("ansible_collections.kubenode", []),
        ("ansible_collections.kubenode.cpu_manager", [str(ROOT)]),
    ):
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # a parent is missing
        return False


if __name__ == "__main__":
    print(COLLECTIONS)

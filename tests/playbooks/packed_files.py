# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prints which modules are packed otherwise than by Ansible alone, as JSON: {module: the files}.

A process of its own, as Ansible's loader of collections cannot be taken out of one.
"""

from __future__ import annotations

import datetime
import inspect
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from ansible.executor import module_common
from ansible.plugins.loader import init_plugin_loader

COLLECTION = "ansible_collections.kubenode.cpu_manager.plugins"
# What ansible-core's function takes, of which it has more since 2.19.
TAKEN = inspect.signature(module_common.recursive_finder).parameters


def found_of(module: str, source: bytes) -> dict[str, bytes]:
    """Return what is found that a module imports: {name in the archive: content}."""
    more: list[Any] = []
    if "extension_manager" in TAKEN:
        more = [datetime.datetime.now(datetime.timezone.utc), module_common._builder.ExtensionManager()]
    name = "%s.modules.%s" % (COLLECTION, module)
    with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        module_common.recursive_finder(module, name, source, archive, *more)
        # What Ansible adds with the module itself.
        found = {name: archive.read(name) for name in archive.namelist() if archive.read(name)}
        assert len(archive.namelist()) == len(set(archive.namelist())), module
    return found


def main(paths: list[Path]) -> None:
    init_plugin_loader()
    # Only now, as the collection is importable.
    from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.packing import quick_finder  # noqa: PLC0415

    different = {}
    for path in paths:
        source = path.read_bytes()
        with quick_finder():
            fast = found_of(path.stem, source)
        slow = found_of(path.stem, source)
        assert any("kubenode" in name for name in slow), path
        if fast != slow:
            different[path.stem] = sorted(
                name for name in fast.keys() | slow.keys() if fast.get(name) != slow.get(name)
            )
    print(json.dumps(different))


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])

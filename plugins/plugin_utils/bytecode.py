# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bytecode for the modules that Ansible sends to nodes.

Ansible sends a module as a zip archive of sources, in base64 within a script, and a node compiles all of them again in
each task: that is most of what a module takes that changes nothing. Python reads bytecode from such an archive where it
is that of its own version, and otherwise the source beside it (Lib/zipimport.py, from Python 3.8 on).
"""

from __future__ import annotations

import base64
import dis
import fcntl
import hashlib
import importlib.util
import io
import marshal
import os
import re
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import ansible
from ansible import constants

# The archive in the script, by the names of ansible-core 2.18 and of later ones. What a user gives cannot begin a line.
_ARCHIVE = re.compile(rb"^ *(?:ZIPDATA = |zip_data=)'([A-Za-z0-9+/=]+)'", re.MULTILINE)
# The interpreter's version, where its name has it.
_VERSIONED = re.compile(r"python(\d+\.\d+)$")
_MINE = "%d.%d" % sys.version_info[:2]
# Where the sources come from, by how their names in the archive begin.
_ROOTS = {
    "ansible/": Path(ansible.__file__).parent,
    "ansible_collections/kubenode/cpu_manager/": Path(__file__).resolve().parents[2],
}
# A header that lets Python use bytecode without a look at the source: PEP 552.
_HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)


def with_bytecode(script: bytes, interpreter: str) -> bytes:
    """A module as Ansible packs it, with bytecode beside the sources of its archive.

    interpreter: the node's. Where its name says another version than the controller's, or the script has no such
    archive, it is returned as it is. The archives of a run are kept in Ansible's own temporary directory.
    """
    version = _VERSIONED.search(interpreter)
    found = _ARCHIVE.search(script)
    if found is None or (version is not None and version.group(1) != _MINE):
        return script
    return script[: found.start(1)] + _kept(found.group(1)) + script[found.end(1) :]


def _kept(archive: bytes) -> bytes:
    """The archive with bytecode, in base64. The first process that needs it makes it, others wait."""
    directory = Path(constants.DEFAULT_LOCAL_TMP) / "kubenode-bytecode"
    directory.mkdir(mode=0o700, exist_ok=True)
    kept = directory / hashlib.sha256(archive).hexdigest()
    with (directory / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            made = directory / "made"
            made.write_bytes(base64.b64encode(_with_bytecode(base64.b64decode(archive))))
            os.replace(made, kept)
    return kept.read_bytes()


def _with_bytecode(archive: bytes) -> bytes:
    packed = io.BytesIO(archive)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as files:
        sources = {_module_name(name): name for name in files.namelist() if name.endswith(".py")}
        # What Ansible starts by itself; all else is imported.
        wanted = [name for name in sources if ".modules." in name or "._ansiballz." in name]
        seen = set(wanted)
        while wanted:
            name = wanted.pop()
            code = _code(name, sources[name], files.read(sources[name]))
            if code is not None:
                files.writestr(sources[name] + "c", _HEADER + marshal.dumps(code))
                is_package = sources[name].endswith("/__init__.py")
                found = _imported(code, name if is_package else name.rpartition(".")[0])
                wanted += (found & sources.keys()) - seen
                seen |= found
    return packed.getvalue()


def _module_name(file: str) -> str:
    return file[: -len(".py")].replace("/", ".").removesuffix(".__init__")


def _code(name: str, file: str, source: bytes) -> CodeType | None:
    """The bytecode of a file of the archive, or None if the source is not on the controller: Ansible writes some.

    Python keeps what it compiles in __pycache__.
    """
    for beginning, root in _ROOTS.items():
        path = root / file[len(beginning) :]
        if file.startswith(beginning) and path.is_file() and path.read_bytes() == source:
            return SourceFileLoader(name, str(path)).get_code(name)
    return None


def _imported(code: CodeType, package: str) -> set[str]:
    """What a file imports when it is imported itself, with the packages that these are in.

    What only its functions import is not needed in most tasks, and would make the archive larger for all.
    """
    found: set[str] = set()
    before: list[Any] = [0, ()]
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            level, names = before
            name = importlib.util.resolve_name("." * level + step.argval, package)
            found.update("%s.%s" % (name, each) for each in names or ())
            parts = name.split(".")
            found.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
        elif step.opname.startswith("LOAD_"):
            before = [before[1], step.argval]
    return found

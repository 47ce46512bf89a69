# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the modules are packed that Ansible sends to nodes: what they import is found fast, and they have bytecode.

Ansible sends a module as a zip archive of sources, in base64 within a script. For each module of a run it parses all
that this imports, and looks for each imported name as for a file: of a module of 80 files, most of a first task.

A node compiles all of them again in each task: that is most of what a module takes that changes nothing. Python reads
bytecode from such an archive where it is that of its own version, and otherwise the source beside it (Lib/zipimport.py,
from Python 3.8 on). Where the interpreter's name has the version, as it has where Ansible finds the interpreter, only
what that version reads is sent.
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
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any, Iterator, Mapping

import ansible
from ansible import constants
from ansible.executor import module_common

# The archive in the script, by the names of ansible-core 2.18 and of later ones. What a user gives cannot begin a line.
_ARCHIVE = re.compile(rb"^ *(?:ZIPDATA = |zip_data=)'([A-Za-z0-9+/=]+)'", re.MULTILINE)
# The interpreter's version, where its name has it, and where it is, in a shebang, too.
_VERSIONED = re.compile(r"(?:^|[/!])python(\d+\.\d+)$")
# Of these a Python may be a link to the same, and they do not read this bytecode.
_OTHERS = re.compile(r"pypy|graal")
_MINE = "%d.%d" % sys.version_info[:2]
_COLLECTION = "ansible_collections/kubenode/cpu_manager/"
# Where the sources come from, by how their names in the archive begin.
_ROOTS = {"ansible/": Path(ansible.__file__).parent, _COLLECTION: Path(__file__).resolve().parents[2]}
# Each import that a file of ours has of others of ours, or of Ansible, also in its functions: where from, and what.
_IMPORT = re.compile(rb"^[ \t]*from (\.[\w.]*|ansible[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
# Makes programs of the sources that came with a module.
_NEEDS_SOURCES = _COLLECTION + "plugins/module_utils/_base/zipapp.py"
# A header that lets Python use bytecode without a look at the source: PEP 552.
_HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
# Without docstrings, and without the columns of each instruction: with both, bytecode is half as large again. Python
# keeps what it compiles in __pycache__, where it may.
_COMPILER = ("-P", "-S", "-OO", "-X", "no_debug_ranges", "-c")
_COMPILE = """
import marshal, sys
from importlib.machinery import SourceFileLoader
codes = {file: SourceFileLoader(name, path).get_code(name) for file, name, path in marshal.load(sys.stdin.buffer)}
marshal.dump({file: marshal.dumps(code) for file, code in codes.items()}, sys.stdout.buffer)
"""


@contextmanager
def quick_finder() -> Iterator[None]:
    """Have Ansible find what a module of ours imports of Ansible, and find this collection's files here, within the
    context.

    What is packed is the same. An Ansible that finds in another way than those that are known finds all by itself.
    """
    find: Any = getattr(module_common, "recursive_finder", None)

    def find_others(*arguments: Any, **options: Any) -> Any:
        _name, module, source, archive = arguments[:4]
        file = module.replace(".", "/") + ".py"
        if not file.startswith(_COLLECTION):
            return find(*arguments, **options)
        ours, others = _imported_by(file, bytes(source))
        # Ansible reads nothing else of our source: it has no metadata for Ansible's serialization.
        found = find(*arguments[:2], others, *arguments[3:], **options)
        for name, content in ours.items():
            archive.writestr(name, content)
        return found

    if find is None:
        yield
        return
    module_common.recursive_finder = find_others
    try:
        yield
    finally:
        module_common.recursive_finder = find


def _imported_by(file: str, source: bytes) -> tuple[dict[str, bytes], bytes]:
    """Return {each file of ours that this file imports, by itself or by others: its content}, and their imports of
    others.

    Files have the names that they have in an archive.
    """
    root = _ROOTS[_COLLECTION]
    contents: dict[str, bytes] = {}
    others: set[bytes] = set()
    wanted = [(file, source)]
    while wanted:
        importer, content = wanted.pop()
        for origin, names in _IMPORT.findall(content):
            place = _place(importer, origin.decode())
            if place is None:
                others.add(b"from %s import %s\n" % (origin, names))
                continue
            files = [place + ".py"]
            if not (root / files[0]).is_file():
                files = ["%s/%s.py" % (place, name) for name in re.findall(r"\w+", names.decode())]
            parents = place.split("/")
            files += ["/".join((*parents[:count], "__init__.py")) for count in range(2, len(parents) + 1)]
            for name in files:
                if _COLLECTION + name not in contents and (root / name).is_file():
                    contents[_COLLECTION + name] = found = (root / name).read_bytes()
                    wanted.append((_COLLECTION + name, found))
    return contents, b"".join(sorted(others))


def _place(importer: str, origin: str) -> str | None:
    """Return where in the collection an import is from, such as plugins/module_utils/cpuset; None: not of this
    collection."""
    name = origin.lstrip(".")
    level = len(origin) - len(name)
    path = name.replace(".", "/")
    if level:
        return "/".join((*importer[len(_COLLECTION) :].split("/")[:-level], *filter(None, [path])))
    return path[len(_COLLECTION) :] if path.startswith(_COLLECTION) else None


def with_bytecode(script: bytes, interpreter: str) -> bytes:
    """Return a module as Ansible packs it, with bytecode in its archive, and without the sources that a node does not
    read.

    interpreter: the node's. Where its name says another version than the controller's, or the script has no such
    archive, it is returned as it is. Where its path names another implementation, the sources stay. The archives of a
    run are kept in Ansible's own temporary directory.
    """
    version = _VERSIONED.search(interpreter)
    found = _ARCHIVE.search(script)
    if found is None or (version is not None and version.group(1) != _MINE):
        return script
    is_mine = version is not None and sys.implementation.name == "cpython" and not _OTHERS.search(interpreter)
    return script[: found.start(1)] + _kept(found.group(1), is_mine) + script[found.end(1) :]


def _kept(archive: bytes, is_mine: bool) -> bytes:
    """Return the archive with bytecode, in base64. The first process that needs it makes it, others wait."""
    directory = Path(constants.DEFAULT_LOCAL_TMP) / "kubenode-bytecode"
    directory.mkdir(mode=0o700, exist_ok=True)
    kept = directory / (hashlib.sha256(archive).hexdigest() + (".mine" if is_mine else ".any"))
    with (directory / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            made = directory / "made"
            made.write_bytes(base64.b64encode(_with_bytecode(base64.b64decode(archive), is_mine)))
            os.replace(made, kept)
    return kept.read_bytes()


def _with_bytecode(archive: bytes, is_mine: bool) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        sources = {name: files.read(name) for name in files.namelist()}
    bytecode = _compiled(sources)
    if is_mine and _NEEDS_SOURCES not in sources:
        kept = {file: source for file, source in sources.items() if file not in bytecode}
    else:
        kept = sources
        bytecode = {file: bytecode[file] for file in _imported_at_once(bytecode)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as files:
        for file, source in kept.items():
            files.writestr(file, source)
        for file, code in bytecode.items():
            files.writestr(file + "c", _HEADER + code)
    return packed.getvalue()


def _compiled(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return {a file of the archive: its bytecode}, of those whose source is on the controller: Ansible writes some
    itself."""
    bytecode = {}
    wanted = []
    for file, source in sources.items():
        for beginning, root in _ROOTS.items():
            path = root / file[len(beginning) :]
            if file.startswith(beginning) and file.endswith(".py") and path.is_file() and path.read_bytes() == source:
                code = _kept_by_python(path)
                if code is None:
                    wanted.append((file, _module_name(file), str(path)))
                else:
                    bytecode[file] = code
    if wanted:
        command = [sys.executable, *_COMPILER, _COMPILE]
        compiled = subprocess.run(command, input=marshal.dumps(wanted), stdout=subprocess.PIPE, check=True).stdout
        bytecode.update(marshal.loads(compiled))
    return bytecode


def _kept_by_python(path: Path) -> bytes | None:
    """Return the bytecode without docstrings in __pycache__, where Python would take it: of this source, by PEP 552."""
    try:
        kept = Path(importlib.util.cache_from_source(path, optimization=2)).read_bytes()
    except OSError:
        return None
    source = path.stat()
    facts = (0, int(source.st_mtime), source.st_size)
    header = importlib.util.MAGIC_NUMBER + b"".join((fact & 0xFFFFFFFF).to_bytes(4, "little") for fact in facts)
    return kept[len(header) :] if kept.startswith(header) else None


def _imported_at_once(bytecode: Mapping[str, bytes]) -> set[str]:
    """Return the files that a module imports before it begins, and the module.

    What only functions import is not needed in most tasks, and would make the archive larger for all.
    """
    files = {_module_name(file): file for file in bytecode}
    # What Ansible starts by itself; all else is imported.
    wanted = [name for name in files if ".modules." in name or "._ansiballz." in name]
    seen = set(wanted)
    while wanted:
        name = wanted.pop()
        is_package = files[name].endswith("/__init__.py")
        found = _imported(marshal.loads(bytecode[files[name]]), name if is_package else name.rpartition(".")[0])
        found &= files.keys() - seen
        wanted += found
        seen |= found
    return {files[name] for name in seen}


def _module_name(file: str) -> str:
    return file[: -len(".py")].replace("/", ".").removesuffix(".__init__")


def _imported(code: CodeType, package: str) -> set[str]:
    """Return what a file imports when it is imported itself, with the packages that these are in."""
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

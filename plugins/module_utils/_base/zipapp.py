# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A part of this core as one executable file, to be run without Ansible.

The file is a zip archive that Python runs; see the zipapp module of the standard library. The same core always gives
the same bytes.
"""

from __future__ import annotations

import ast
import importlib
import io
import zipfile
from typing import Iterator

# What the core is called in the archive.
PACKAGE = "cpu_manager"

_HERE = __name__.rpartition("._base.")[0]
_MAIN = """\
import sys
import {package}._base.startup
from {package}.{module} import main
sys.exit(main(sys.argv[1:]))
"""
# The first that a zip archive can hold: the time of a build says nothing about the core.
_DATE = (1980, 1, 1, 0, 0, 0)


def build(module: str, interpreter: str) -> bytes:
    """Return the program whose main() is in `module`, named as seen from here ("_programs.reconcile_program")."""
    sources = {}
    waiting = ["_base.startup", module]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = _source(name)
            waiting += _imports(name, sources[name])
    files = {"%s/%s.py" % (PACKAGE, name.replace(".", "/")): source for name, source in sources.items()}
    for path in list(files):
        directory = path.rpartition("/")[0]
        while directory:
            files.setdefault(directory + "/__init__.py", "")
            directory = directory.rpartition("/")[0]
    files["__main__.py"] = _MAIN.format(package=PACKAGE, module=module)
    archive = io.BytesIO()
    archive.write(b"#!%s\n" % interpreter.encode("utf-8"))
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as writer:
        for path in sorted(files):
            writer.writestr(zipfile.ZipInfo(path, _DATE), files[path], zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def _source(name: str) -> str:
    # Ansible brings the core as an archive, too: there are no files to read.
    module = importlib.import_module("%s.%s" % (_HERE, name))
    return str(module.__loader__.get_source(module.__name__))  # type: ignore[union-attr]


def _is_package(name: str) -> bool:
    return hasattr(importlib.import_module("%s.%s" % (_HERE, name)), "__path__")


def _imports(name: str, source: str) -> Iterator[str]:
    """Yield the modules of the core that a module imports, also those that it imports only when they are needed."""
    parts = name.split(".")
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.ImportFrom) and statement.level:
            path = ".".join([*parts[: len(parts) - statement.level], *filter(None, [statement.module])])
            if statement.module and not _is_package(path):
                yield path
            else:
                yield from (".".join(filter(None, [path, alias.name])) for alias in statement.names)

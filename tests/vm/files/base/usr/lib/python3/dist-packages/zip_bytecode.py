# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep what Python compiles of zip archives.

Ansible sends each module as an archive of sources, mostly the same ones, and compiling them is most of what a module
does on an emulated machine. Imports hardly anything, as each Python that starts imports it.
"""

from __future__ import annotations

import _imp
import marshal
import os
import zipimport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable

DIRECTORY = "/var/cache/zip-bytecode"


def keep(importer: Any = zipimport, directory: str = DIRECTORY) -> None:
    """Let `importer` compile a source once for all processes, which keep the code in `directory`."""
    compile_source = importer._compile_source
    importer._compile_source = lambda path, source: compiled(compile_source, directory, path, source)


def compiled(compile_source: Callable[[str, bytes], CodeType], directory: str, path: str, source: bytes) -> CodeType:
    """Return the code of a source, kept before or now."""
    kept = "%s/%s" % (directory, _imp.source_hash(0, source).hex())
    try:
        with open(kept, "rb") as file:
            code: CodeType = marshal.loads(file.read())
            return code
    except OSError:
        code = compile_source(path, source)
    part = "%s.%d" % (kept, os.getpid())
    try:
        os.makedirs(directory, exist_ok=True)
        with open(part, "wb") as file:
            file.write(marshal.dumps(code))
        os.replace(part, kept)
    except OSError:
        # It can do without.
        pass
    return code

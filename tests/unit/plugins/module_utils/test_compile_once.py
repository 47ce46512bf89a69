# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.kubenode.cpu_manager.plugins.module_utils import compile_once

# Imports `module` from the archive given, once compile_once is there if that is asked for too.
PROGRAM = """
import builtins, sys
archive, once = sys.argv[1:]
real_compile, names = builtins.compile, []
def counted(source, name, *rest, **more):
    names.append(name)
    return real_compile(source, name, *rest, **more)
builtins.compile = counted
sys.path.insert(0, archive)
if once == "once":
    import compile_once
import module
print(sum("module.py" in str(name) for name in names), module.ANSWER, module.__file__)
"""


def import_from_zip(directory: Path, once: str) -> list[str]:
    archive = directory / "code.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("module.py", "ANSWER = 42\n")
        writer.write(compile_once.__file__, "compile_once.py")
    arguments = [sys.executable, "-c", PROGRAM, str(archive), once]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_a_file_in_an_archive_is_compiled_once(tmp_path: Path) -> None:
    assert import_from_zip(tmp_path, "once") == ["1", "42", str(tmp_path / "code.zip" / "module.py")]


def test_python_still_needs_that(tmp_path: Path) -> None:
    assert import_from_zip(tmp_path, "as ever")[0] == "2"


def test_another_kind_of_importer_is_left_as_it_is() -> None:
    importer = SimpleNamespace()
    compile_once.keep_compiled(importer)
    assert vars(importer) == {}

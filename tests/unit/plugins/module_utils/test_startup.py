# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.kubenode.cpu_manager.plugins.module_utils import startup

# Imports `module` from the archive given, after startup if that is asked for.
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
    import startup
import module
print(sum("module.py" in str(name) for name in names), module.ANSWER, module.__file__)
"""


def import_from_zip(directory: Path, once: str) -> list[str]:
    archive = directory / "code.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("module.py", "ANSWER = 42\n")
        writer.write(startup.__file__, "startup.py")
    arguments = [sys.executable, "-c", PROGRAM, str(archive), once]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_a_file_in_an_archive_is_compiled_once(tmp_path: Path) -> None:
    assert import_from_zip(tmp_path, "once") == ["1", "42", str(tmp_path / "code.zip" / "module.py")]


def test_python_still_needs_that(tmp_path: Path) -> None:
    assert import_from_zip(tmp_path, "as ever")[0] == "2"


def test_another_kind_of_importer_is_left_as_it_is() -> None:
    importer = SimpleNamespace()
    startup.keep_compiled(importer)
    assert vars(importer) == {}


def test_the_collector_leaves_alone_what_was_there() -> None:
    count = "import gc, sys; sys.path.insert(0, sys.argv[1]); import startup; print(gc.get_freeze_count())"
    command = [sys.executable, "-c", count, str(Path(startup.__file__).parent)]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) > 0


def test_another_collector_is_left_as_it_is() -> None:
    startup.spare_collector(SimpleNamespace())

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import startup
from ansible_collections.kubenode.cpu_manager.tests.support.zip_import import import_from_zip

PLACE = Path(startup.__file__).parent


def test_a_file_in_an_archive_is_compiled_once(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    assert import_from_zip(archive, 42, "import startup", PLACE) == (1, 42, str(archive / "module.py"))


def test_python_still_needs_that(tmp_path: Path) -> None:
    assert import_from_zip(tmp_path / "code.zip", 42).compilations == 2


def test_another_kind_of_importer_is_left_as_it_is() -> None:
    importer = SimpleNamespace()
    startup.keep_compiled(importer)
    assert vars(importer) == {}


def test_the_collector_leaves_alone_what_was_there() -> None:
    count = (
        "import gc, sys; sys.path.insert(0, sys.argv[1]); import startup;"
        " print(gc.get_freeze_count(), *gc.get_threshold())"
    )
    command = [sys.executable, "-c", count, str(PLACE)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(told[0]) > 0
    assert int(told[1]) == 100000


def test_another_collector_is_left_as_it_is() -> None:
    startup.spare_collector(SimpleNamespace())

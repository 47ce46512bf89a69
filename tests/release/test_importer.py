# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive passes the importer of the servers, and the importer is one that refuses."""

from __future__ import annotations

from pathlib import Path

from . import archive, importer
from .conftest import CHECKOUT


def test_the_importer_takes_it_without_a_remark(tools: Path, built: Path) -> None:
    verdict = importer.check(built)
    assert verdict.is_clean, verdict.output
    assert "ansible-lint run complete" in verdict.output
    assert "Getting doc strings via ansible-doc" in verdict.output


def test_it_refuses_an_archive_that_is_none(tools: Path, tmp_path: Path) -> None:
    broken = archive.build(CHECKOUT, tmp_path, {"license": ["no such licence"]})
    verdict = importer.check(broken)
    assert not verdict.is_taken
    assert "no such licence" in "".join(verdict.remarks)

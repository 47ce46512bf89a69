# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pictures of the page concepts are what the static policy does today."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "docsite" / "rst"
DRAWN = "import json, draw_cpus; print(json.dumps(draw_cpus.pictures()))"


def test_the_pictures_are_those_of_the_policy() -> None:
    # Another order of hashes, another directory: the pictures are the same.
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": seed}
        drawn = subprocess.run(
            [sys.executable, "-c", DRAWN], cwd=DOCS, env=environment, check=True, stdout=subprocess.PIPE
        )
        kept = {path.name: path.read_text("utf-8") for path in (PAGES / "images").glob("cpus-*.svg")}
        assert kept == json.loads(drawn.stdout)


def test_the_page_shows_every_picture() -> None:
    shown = re.findall(r"image:: images/(cpus-\S+\.svg)", (PAGES / "concepts.rst").read_text("utf-8"))
    assert sorted(shown) == sorted(path.name for path in (PAGES / "images").glob("cpus-*.svg"))

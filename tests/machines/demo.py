# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo's fleet, as directory trees: what demo/run makes, for tests that need it without the rest of the demo."""

from __future__ import annotations

import shutil
from pathlib import Path

from .command import main as write_machine

DEMO = Path(__file__).parents[2] / "demo"


def write_demo_fleet(fleet: Path) -> None:
    """Write the saved nodes of the demo into a directory that is not there yet, each below its name."""
    shutil.copytree(DEMO / "fleet", fleet)
    for line in (DEMO / "machines").read_text(encoding="utf-8").splitlines():
        node, name = line.split()
        containers = DEMO / "containers" / node
        write_machine([name, str(fleet / node), *(["--containers", str(containers)] if containers.exists() else [])])

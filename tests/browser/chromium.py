# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The browser of the tests, and the packages that drive it."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

HERE = Path(__file__).resolve().parent
MODULES = HERE.parents[1] / "build" / "browser"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OLDEST_NODE = 20


def driven(script: Path, job: Path) -> Any:
    """Return what a script of node prints that drives the browser through a job, as data."""
    done = subprocess.run(
        ["node", str(script), str(job)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def node_modules() -> Path:
    """Return the folder of the packages of package.json; they are installed where they are not, or are others."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < OLDEST_NODE:
        lacking(TOOL, "node is %s, and playwright-core takes version %d" % (version, OLDEST_NODE))
    lock = (HERE / "package-lock.json").read_bytes()
    installed = MODULES / "installed.json"
    MODULES.mkdir(parents=True, exist_ok=True)
    # Tests in other processes want them, too.
    with open(MODULES / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not installed.is_file() or installed.read_bytes() != lock:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, MODULES / name)
            npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            done = subprocess.run(npm, cwd=MODULES, capture_output=True, text=True, check=False, timeout=300)
            if done.returncode:
                lacking(TOOL, "no packages of tests/browser/package.json: npm ci failed with %d" % done.returncode)
            installed.write_bytes(lock)
    return MODULES / "node_modules"

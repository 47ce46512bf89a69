# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of results as several tests write them, and a user who may not read all of them."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import (
    Problem,
    Result,
    file_name,
    read_results,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import LOOKED_AT
from ansible_collections.kubenode.cpu_manager.tests.support.directories import open_to_all

CONTENT: dict[str, Any] = {
    "schema_version": "1.0",
    "kind": "kubenode.cpu_manager/node",
    "fleet": "east",
    "host": "a",
    "looked_at": LOOKED_AT,
    "answer": {"status": "clean"},
    "running": {},
    "waivers": [],
}


@contextmanager
def common_user(directory: Path) -> Iterator[None]:
    """Run the context as a user who, unlike root, may not read every file."""
    user = os.geteuid()
    if user == 0:
        open_to_all(directory)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def put(nodes: Path, host: str = "a", **parts: Any) -> Path:
    path = nodes / file_name(host)
    path.write_text(json.dumps({**CONTENT, "host": host, **parts}))
    return path


def only_problem(path: Path, fleet: str = "") -> Problem:
    """Return the problem of a file that is not used, and check that the file beside it is read nevertheless."""
    good = put(path.parent, "good")
    first, second = read_results([str(path), str(good)], fleet)
    assert isinstance(first, Problem)
    assert isinstance(second, Result)
    assert (second.host, first.file) == ("good", str(path))
    assert first.text != ""
    assert first.remedy != ""
    return first

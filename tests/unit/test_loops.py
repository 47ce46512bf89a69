# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No answer of a node or of an API server makes tasks: each item of a loop is a task of the controller, which takes it
some tenths of a second, while all other hosts wait.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
FILES = sorted(
    path
    for pattern in ("roles/*/tasks/**/*.yml", "roles/*/handlers/*.yml", "playbooks/**/*.yml", "extensions/eda/**/*.yml")
    for path in CHECKOUT.glob(pattern)
)

# What bounds the loops of a file, in their order; a list in the file itself needs no reason.
BOUNDS = {
    "roles/reconcile/tasks/absent.yml": [
        "two paths of the operator",
        "three paths of the operator",
    ],
    "roles/reconcile/tasks/present.yml": ["two units of the role"],
}


def loops_in(items: Any) -> Iterator[object]:
    """Yield what each task goes over."""
    if isinstance(items, list):
        for item in items:
            yield from loops_in(item)
    elif isinstance(items, dict):
        for key, value in items.items():
            if key == "loop" or key.startswith("with_"):
                yield value
            elif isinstance(value, list):
                yield from loops_in(value)


def is_written_out(loop: object) -> bool:
    """Return whether the items are in the file, and none of them is made when it runs."""
    return isinstance(loop, list)


def test_each_loop_has_a_bound_that_no_answer_moves() -> None:
    assert len(FILES) > 50
    found = {
        str(path.relative_to(CHECKOUT)): [
            loop for loop in loops_in(yaml.safe_load(path.read_text("utf-8"))) if not is_written_out(loop)
        ]
        for path in FILES
    }
    counts = {path: len(loops) for path, loops in found.items() if loops}
    assert counts == {path: len(bounds) for path, bounds in BOUNDS.items()}


@pytest.mark.parametrize("loop", ["{{ found.files }}", {"a": 1}])
def test_a_loop_that_is_made_when_it_runs_is_found(loop: object) -> None:
    tasks = [{"block": [{"debug": {}, "loop": loop}]}, {"debug": {}, "with_items": loop}, {"debug": {}, "loop": [1]}]
    assert [each for each in loops_in(tasks) if not is_written_out(each)] == [loop, loop]

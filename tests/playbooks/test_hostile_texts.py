# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nodes print and answer, as an operator's terminal shows it in each playbook: nothing that it would obey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import CopyOf, Run, ansible_playbook
from .hostile_python import hostile_python

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\b\r"
# What ansible-core of all versions reads of an answer, and shows.
SHOWN: dict[str, Any] = {
    "warnings": [ESCAPE + "warned"],
    "deprecations": [{"msg": ESCAPE + "deprecated", "version": "9.0", "collection_name": "a.b"}],
    "notes": [ESCAPE + "noted"],
    "diff": [{"before": ESCAPE, "after": "x", "before_header": ESCAPE, "after_header": ESCAPE}],
    "invocation": {"module_args": {ESCAPE: ESCAPE}},
    "_ansible_" + ESCAPE: ESCAPE,
    "_ansible_verbose_override": ESCAPE,
    ESCAPE: ESCAPE,
}
FAILED = {**SHOWN, "failed": True, "msg": ESCAPE + "failed", "exception": "Traceback\n" + ESCAPE + "thrown"}
# {host: what its Python prints before and after its answer, and what its answers have}
FAILING: dict[str, tuple[str, str, dict[str, Any]]] = {
    "fails": ("", "", FAILED),
    "no-answer": (ESCAPE + "said [", "", {}),
    "unreachable": ("", "", {"unreachable": True, "msg": ESCAPE + "lost"}),
    "skipped": ("", "", {**SHOWN, "skipped": True, "skip_reason": ESCAPE}),
}
GOING_ON: dict[str, tuple[str, str, dict[str, Any]]] = {
    "warns": ("", "", SHOWN),
    "junk": (ESCAPE + "junk\n", "\n" + ESCAPE + "more junk\n", {}),
}
PLAYBOOKS = ("plan", "save", "rollback", "repair")


def run(directory: Path, root: Path, nodes: dict[str, tuple[str, str, dict[str, Any]]], *playbooks: str) -> Run:
    (directory / "pods.yml").write_text("", encoding="utf-8")
    hosts = {
        name: {
            "kubelet_node_root": str(root),
            "kubelet_cpu_manager_policy": "static",
            "cpu_manager_manifests": str(directory / "pods.yml"),
            **hostile_python(directory / "pythons" / name, more, None, before, after),
        }
        for name, (before, after, more) in nodes.items()
    }
    first, *others = ("kubenode.cpu_manager." + name for name in playbooks)
    # The most that is shown of results; more is what connections say of themselves.
    return ansible_playbook(directory / "run", first, hosts, *others, "-vv", "--diff", "--check")


def obeyed(text: str) -> set[str]:
    return {sign for sign in text if sign != "\n" and not sign.isprintable()}


@pytest.mark.parametrize("playbook", ["rollout", "save"])
def test_a_node_that_fails_writes_nothing_to_the_terminal(copy_of: CopyOf, tmp_path: Path, playbook: str) -> None:
    done = run(tmp_path, copy_of("edge", "node"), FAILING, playbook)
    assert done.status != 0
    assert obeyed(done.output) == set()
    for said in ("\\x1b]0;owned\\x07", "failed", "warned", "deprecated", "said [", "lost"):
        assert said in done.output, said


def test_a_node_that_goes_on_writes_nothing_to_the_terminal(copy_of: CopyOf, tmp_path: Path) -> None:
    done = run(tmp_path, copy_of("edge", "node"), GOING_ON, *PLAYBOOKS)
    assert obeyed(done.output) == set()
    for said in ("\\x1b]0;owned\\x07", "warned", "deprecated", "junk"):
        assert said in done.output, said

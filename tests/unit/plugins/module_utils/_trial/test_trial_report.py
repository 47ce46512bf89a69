# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a drift report has of a trial; tests/cluster/test_trial.py has the trials themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import (
    answer_of,
    check_program,
    contents_of,
    trial_report,
)

from .programs import put_program

SAID = Trial(True, version="1.37.0", seconds=3.1)
NEXT = "/usr/local/bin/kubelet-1.37"
REFUSAL = SAID._replace(starts=False, message="unknown flag: --x")


@pytest.mark.parametrize(
    ("trial", "program", "found"),
    [
        (SAID, None, []),
        (SAID, NEXT, []),
        (
            REFUSAL,
            None,
            [("kubelet-refuses-start", "kubelet", "starts", "kubelet 1.37.0 does not start: unknown flag: --x")],
        ),
        (
            REFUSAL._replace(message="", differs=True),
            NEXT,
            [
                ("next-kubelet-refuses-start", NEXT, "starts", "kubelet 1.37.0 does not start: it said nothing"),
                ("prediction-differs", NEXT, "predicted: a start", "kubelet 1.37.0 does not start"),
            ],
        ),
        (
            SAID._replace(differs=True, mistaken=[("--v", "bad"), ("--x", "worse")]),
            None,
            [("prediction-differs", "kubelet", "predicted: a refusal: bad; worse", "kubelet 1.37.0 starts")],
        ),
    ],
)
def test_what_a_report_has_of_a_trial(
    trial: Trial, program: str | None, found: list[tuple[str, str, str, str]]
) -> None:
    answer = answer_of(trial, program)
    names = ("check", "subject", "wanted", "found")
    assert answer["findings"] == [{**dict(zip(names, row)), "remedy": ""} for row in found]
    assert (answer["program"], answer["notes"], answer["note_checks"]) == (program, [], [])


def test_where_there_is_no_trial_a_note_says_why(tmp_path: Path) -> None:
    reason = "cannot be tried: unshare pid: Operation not permitted"
    answer = answer_of(Trial(None, reason=reason), NEXT)
    assert (answer["findings"], answer["notes"], answer["note_checks"]) == ([], [reason], ["trial-unmeasured"])
    with pytest.raises(NodeError):
        trial_report(Node(Tree(str(tmp_path))), {"cpu_manager_policy": "static"})


@pytest.mark.parametrize("timeout", [4, 601])
def test_a_time_that_is_none(tmp_path: Path, timeout: int) -> None:
    with pytest.raises(InputError) as error:
        trial_report(Node(Tree(str(tmp_path))), {}, timeout=timeout)
    assert error.value.to_row() == {
        "kind": "input",
        "where": "timeout",
        "text": "%d seconds are no time for a trial" % timeout,
        "remedy": "give 5 to 600",
    }


@pytest.mark.parametrize("timeout", [5, 600])
def test_the_longest_and_the_shortest_time(tmp_path: Path, timeout: int) -> None:
    with pytest.raises(NodeError):  # there is no kubelet
        trial_report(Node(Tree(str(tmp_path))), {}, timeout=timeout)


def test_the_files_that_are_planned() -> None:
    assert contents_of({"/a": "x", "/b/c": None, "/e": ""}) == {"/a": b"x", "/b/c": None, "/e": b""}
    largest = "x" * (1 << 20)
    assert contents_of({"/a": largest})["/a"] == largest.encode("ascii")


@pytest.mark.parametrize(
    ("files", "text", "remedy"),
    [
        ({"a": "x"}, "'a' is no plain absolute path", "write it from / on, without .."),
        ({"/a/../b": "x"}, "'/a/../b' is no plain absolute path", "write it from / on, without .."),
        ({"/": None}, "'/' is no plain absolute path", "write it from / on, without .."),
        ({"/a": 7}, "the content of /a is no text", "write it in quotes"),
        ({"/a": "x" * ((1 << 20) + 1)}, "/a has more than 1048576 bytes", ""),
    ],
)
def test_files_that_no_kubelet_has(files: dict[str, Any], text: str, remedy: str) -> None:
    with pytest.raises(InputError) as error:
        contents_of(files)
    assert (error.value.what, error.value.where, error.value.remedy) == (text, "files", remedy)


def test_a_program_is_one_that_only_root_can_have_put_there(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    program = tmp_path / "kubelet"
    for path in (str(program), "kubelet", str(tmp_path)):
        with pytest.raises(InputError) as error:
            check_program(tree, path)
        assert (error.value.what, error.value.where) == ("%s is no program on this node" % path, "program")
    put_program(tmp_path, program, 0o644)
    with pytest.raises(InputError):
        check_program(tree, str(program))
    put_program(tmp_path, program)
    check_program(tree, str(program))
    put_program(tmp_path, program, 0o757)
    with pytest.raises(RefusedError, match="others may write it") as refusal:
        check_program(tree, str(program))
    assert "nothing was started" in refusal.value.remedy

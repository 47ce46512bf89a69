# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/results.py: names of files, what is written, and which files are found.

Files that are found and not used are in test_results_not_used.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import (
    Problem,
    Result,
    file_name,
    find_files,
    read_result,
    read_results,
    write_result,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    LOOKED_AT,
    LOOKS,
    answers,
    json_values,
    result,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.nested import LEVELS, nested

from .result_files import common_user, put

# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("worker-3", "worker-3.json"),
        ("worker-3.example.com", "worker-3.example.com.json"),
        ("a_b~c", "a_b~c.json"),
        ("fe80::1%eth0", "fe80%3A%3A1%25eth0.json"),
        ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd.json"),
        ("/etc/passwd", "%2Fetc%2Fpasswd.json"),
        (".", "%2E.json"),
        ("..", "%2E%2E.json"),
        ("", ".json"),
        ("a\0b\n", "a%00b%0A.json"),
        ("ü", "%C3%BC.json"),
        ("\udcff", "%ED%B3%BF.json"),  # half a character
        ("%2E", "%252E.json"),
    ],
)
def test_file_name(host: str, name: str) -> None:
    assert file_name(host) == name


hosts = st.one_of(
    st.text(),
    st.text(alphabet=st.characters()),  # with half characters
    st.text(alphabet="./%~-\\\0é2EF"),
    st.builds(lambda text, count: text * count, st.text(min_size=1, max_size=3), st.integers(50, 300)),
)


@given(hosts)
def test_any_host_has_a_name_in_the_directory(host: str) -> None:
    name = file_name(host)
    assert os.path.basename(name) == name
    assert name not in ("", ".", "..")
    assert name.isascii()
    assert "\0" not in name
    # With the end that it has while it is written.
    assert len(name) + len(".0123456789abcdef~") <= 255
    assert name.endswith(".json")
    assert os.path.normpath(os.path.join("/d/nodes", name)) == "/d/nodes/" + name


@given(hosts, hosts, st.integers(0, 3))
def test_different_hosts_have_different_names(first: str, second: str, alike: int) -> None:
    # Long ones that are nearly equal, too.
    for start in ("", "x" * 190, "é" * 100):
        pair = (start + first, start + (second if alike else first + "x"))
        assert (file_name(pair[0]) == file_name(pair[1])) == (pair[0] == pair[1])


def test_the_name_of_a_long_host_is_none_of_another_host() -> None:
    long = file_name("x" * 300)[: -len(".json")]
    assert file_name(long) != long + ".json"


@pytest.mark.parametrize("host", ["a" * 10000, "..", "/", "\udc80\ud800", "x/../../y", "é" * 300])
def test_a_file_of_that_name_can_be_written_and_read(tmp_path: Path, host: str) -> None:
    path = write_result(str(tmp_path), result(host))
    assert [entry.parent for entry in tmp_path.rglob("*.json")] == [tmp_path / "nodes"]
    assert list(find_files([str(tmp_path)])) == [path]
    assert read_result(path).host == host


# --- writing --------------------------------------------------------------------------------------


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    given_result = Result(
        "a", LOOKED_AT, ANSWER, {"cpu_manager_policy": "none"}, [{"check": "policy-differs"}], LOOKS, "east"
    )
    path = write_result(str(tmp_path / "new" / "directory"), given_result)
    assert path == str(tmp_path / "new" / "directory" / "nodes" / "a.json")
    assert read_result(path) == read_result(path, "east") == given_result


def test_what_ansible_adds_is_left_out(tmp_path: Path) -> None:
    added = {
        "invocation": {"module_args": {"token": "secret"}},
        "changed": False,
        "warnings": ["x"],
        "deprecations": [],
        "exception": "x",
        "ansible_facts": {},
        "_ansible_no_log": False,
        "_ansible_parsed": True,
    }
    path = write_result(str(tmp_path), result("a", {**ANSWER, **added}))
    assert read_result(path).answer == ANSWER
    assert "secret" not in Path(path).read_text()


def test_the_next_look_replaces_the_result(tmp_path: Path) -> None:
    write_result(str(tmp_path), result("a", {"status": "drift"}))
    path = write_result(str(tmp_path), result("a", {"status": "clean"}))
    assert [entry.name for entry in (tmp_path / "nodes").iterdir()] == ["a.json"]
    assert read_result(path).answer == {"status": "clean"}


def test_a_result_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("in the way")
    with pytest.raises(NodeError, match="cannot be written: "):
        write_result(str(tmp_path), result())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "deep", "circle"])
def test_an_answer_that_nobody_could_read_again_is_a_failure_of_the_node(tmp_path: Path, value: Any) -> None:
    if value in ("deep", "circle"):
        part: list[Any] = []
        whole = part
        for _level in range(100000 if value == "deep" else 0):
            part = [part]
        whole.append(whole if value == "circle" else 1)
        value = part
    read = read_result(write_result(str(tmp_path), result("a", {"status": "clean", "x": value})))
    assert read.answer["failed"] is True
    assert read.answer["msg"].startswith("the answer of the node cannot be written: ")


@given(answers, json_values)
def test_any_answer_is_written_and_read(tmp_path_factory: pytest.TempPathFactory, answer: Any, running: Any) -> None:
    answer = answer if isinstance(answer, dict) else {"x": answer}
    given_result = Result("a", LOOKED_AT, answer, {"x": running}, [])
    read = read_result(write_result(str(tmp_path_factory.getbasetemp()), given_result))
    dropped = ("invocation", "exception", "warnings", "deprecations", "ansible_facts", "changed")
    kept = {key: value for key, value in answer.items() if key not in dropped and not key.startswith("_")}
    assert read == given_result._replace(answer=kept)


# --- finding --------------------------------------------------------------------------------------


def test_files_are_found_anywhere_below(tmp_path: Path) -> None:
    for name in ("nodes/b.json", "nodes/a.json", "slices/x/nodes/c.json", "slices/nodes/deep/nodes/d.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    # These are no result files.
    for name in ("drift.json", "nodes/x.json.77~", "nodes/notes.txt", "slices/e.json", "nodes.json"):
        (tmp_path / name).write_text("{}")
    found = [os.path.relpath(path, tmp_path) for path in find_files([str(tmp_path)])]
    assert found == ["nodes/a.json", "nodes/b.json", "slices/nodes/deep/nodes/d.json", "slices/x/nodes/c.json"]


@pytest.mark.parametrize("form", ["%s", "%s/", "%s//", "%s/.", "%s/../nodes"])
def test_the_directory_of_the_files_itself(nodes: Path, form: str) -> None:
    put(nodes)
    assert [os.path.basename(path) for path in find_files([form % nodes])] == ["a.json"]


def test_the_current_directory(nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(nodes)
    monkeypatch.chdir(nodes)
    assert list(find_files(["."])) == ["./a.json"]


def test_a_file_is_taken_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "gone.json").symlink_to("nowhere")
    names = [str(tmp_path / name) for name in ("x.json", "gone.json")]
    assert list(find_files(names)) == names


def test_links_to_directories_are_not_followed(tmp_path: Path, nodes: Path) -> None:
    put(nodes)
    (nodes / "nodes").symlink_to(nodes)
    (tmp_path / "more").symlink_to(tmp_path)
    assert len(list(find_files([str(tmp_path)]))) == 1
    # But one that is given is.
    assert len(list(find_files([str(tmp_path / "more")]))) == 1


@pytest.mark.parametrize("name", ["nowhere", "nowhere/nodes", "a\0b", "\udcff"])
def test_a_place_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="there is no such file or directory") as caught:
        list(find_files([str(tmp_path), str(tmp_path / name)]))
    assert caught.value.where == str(tmp_path / name)


def test_nothing_is_there(tmp_path: Path) -> None:
    assert list(find_files([])) == list(find_files([str(tmp_path)])) == []


def test_a_directory_that_nobody_may_read_is_a_problem(tmp_path: Path, nodes: Path) -> None:
    put(nodes)
    closed = tmp_path / "slice" / "nodes"
    closed.mkdir(parents=True)
    put(closed, "b")
    closed.chmod(0)
    with common_user(tmp_path):
        first, second = read_results(find_files([str(tmp_path)]))
    assert isinstance(first, Result)
    assert second == Problem(str(closed), "cannot be read: Permission denied", "correct its mode, or take it away")


def test_results_in_directories_nested_deeply(tmp_path: Path) -> None:
    with nested(tmp_path):
        write_result(str(tmp_path / ("d/" * LEVELS)), Result("node", LOOKED_AT, {}, {}, []))
        (path,) = find_files([str(tmp_path)])
        assert path.endswith("/d/d/nodes/node.json")

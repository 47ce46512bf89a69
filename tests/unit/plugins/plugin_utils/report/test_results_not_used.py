# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of results that are not used, each with a problem that says why; and those that look so, and are."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import seconds_of, time_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import (
    LARGEST,
    Problem,
    Result,
    read_result,
    read_results,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import LOOKED_AT, json_values

from .result_files import CONTENT, common_user, only_problem, put


def test_a_file_that_is_cut_off_anywhere(nodes: Path) -> None:
    path = put(nodes)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        problem = only_problem(path)
        assert problem.text == "is cut off, at character %d" % int(problem.text.rpartition(" ")[2])
        assert int(problem.text.rpartition(" ")[2]) <= end


def test_a_byte_that_is_changed_is_a_problem_or_a_result(nodes: Path) -> None:
    path = put(nodes)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for byte in (b"\0", b"\xff", b"}", b'"', b"9", b"\\"):
            path.write_bytes(whole[:at] + byte + whole[at + 1 :])
            (read,) = read_results([str(path)])
            assert isinstance(read, (Problem, Result))
            assert read[0] in (str(path), "a")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is cut off, at character 0"),
        (b"\n\n", "is cut off, at character 2"),
        (b"{} {}", "is no JSON, at character 3"),
        (b"{'a': 1}", "is no JSON, at character 1"),
        (b"host: a\n", "is no JSON, at character 0"),
        (b"\xef\xbb\xbf{}", "is no JSON, at character 0"),  # the mark of a program for Windows
        (b'{"a": "\xff"}', "is no JSON"),
        (b"\xff\xfe{\0}\0", "is no JSON"),
        (b'{"answer": NaN}', "is no JSON"),
        (b'{"answer": -Infinity}', "is no JSON"),
        (b"[" * 200000, "is no JSON"),
        (b'{"a":' * 200000, "is no JSON"),
    ],
)
def test_what_is_no_json(nodes: Path, content: bytes, text: str) -> None:
    path = nodes / "a.json"
    path.write_bytes(content)
    assert only_problem(path).text == text


@pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="this Python reads numbers of any length")
def test_a_number_that_is_too_long(nodes: Path) -> None:
    path = nodes / "a.json"
    path.write_text("1" * 10000)
    assert only_problem(path).text == "is no JSON"


@pytest.mark.parametrize("data", [None, 7, "x", [], [CONTENT], {}, {**CONTENT, "kind": None}, {**CONTENT, "kind": "x"}])
def test_what_is_no_result(nodes: Path, data: Any) -> None:
    path = nodes / "a.json"
    path.write_text(json.dumps(data))
    problem = only_problem(path)
    assert problem.text == "is no result of a node"
    assert problem.remedy == "give only what the role drift_report wrote below nodes"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"schema_version": "2.0"}, 'has the schema version "2.0", and this is 1.0'),
        ({"schema_version": "10.0"}, 'has the schema version "10.0", and this is 1.0'),
        ({"schema_version": ""}, 'has the schema version "", and this is 1.0'),
        ({"schema_version": 1.0}, "has the schema version 1.0, and this is 1.0"),
        ({"schema_version": None}, "has the schema version null, and this is 1.0"),
        ({"host": "b"}, 'is the result of another host, "b"'),
        ({"host": "../a"}, 'is the result of another host, "../a"'),
        ({"host": "\ud800\x1b"}, 'is the result of another host, "\\ud800\\x1b"'),
        ({"host": "x" * 1000000}, 'is the result of another host, "%s"' % ("x" * 80)),
        ({"host": None}, "is the result of another host, null"),
        ({"host": ["a"]}, "is the result of another host, [a]"),
        ({"fleet": "west"}, 'is of the fleet "west", not of east'),
        ({"fleet": ""}, 'is of the fleet "", not of east'),
        ({"fleet": None}, "is of the fleet null, not of east"),
        ({"looked_at": ""}, "does not say when the node was looked at"),
        ({"looked_at": None}, "does not say when the node was looked at"),
        ({"looked_at": 1795446245}, "does not say when the node was looked at"),
        ({"looked_at": "2026-11-23"}, "does not say when the node was looked at"),
        ({"answer": None}, "has no answer of the node"),
        ({"answer": []}, "has no answer of the node"),
        ({"running": None}, "has no answer of the node"),
        ({"running": []}, "has no answer of the node"),
        ({"waivers": {}}, "has no answer of the node"),
        ({"looks": None}, "has no answer of the node"),
        ({"looks": []}, "has no answer of the node"),
        ({"waivers": None}, "has no answer of the node"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_part_that_is_wrong(nodes: Path, parts: Any, text: str) -> None:
    path = nodes / "a.json"
    path.write_text(json.dumps({**CONTENT, **parts}))
    assert only_problem(path, "east").text == text


@pytest.mark.parametrize("depth", [10, 500, 900, 940, 960, 980, 990, 1000, 5000, 100000])
@pytest.mark.parametrize("name", ["host", "schema_version", "fleet", "looked_at", "answer", "running"])
def test_a_part_that_is_deep(nodes: Path, name: str, depth: int) -> None:
    """However deep it is, and wherever Python's recursion ends."""
    path = nodes / "a.json"
    text = json.dumps({**CONTENT, name: "HERE"})
    path.write_text(text.replace('"HERE"', "[" * depth + "]" * depth))
    only_problem(path, "east")


def test_newer_minor_schemas_and_more_members_are_read(nodes: Path) -> None:
    path = put(nodes, schema_version="1.9", added_later={"x": 1})
    assert read_result(str(path)) == Result("a", LOOKED_AT, {"status": "clean"}, {}, [], fleet="east")


def test_what_came_later_need_not_be_there(nodes: Path) -> None:
    path = nodes / "a.json"
    path.write_text(json.dumps({key: value for key, value in CONTENT.items() if key not in ("running", "waivers")}))
    assert read_result(str(path)) == Result("a", LOOKED_AT, {"status": "clean"}, {}, [], fleet="east")


def test_the_fleet_counts_only_where_one_is_given(nodes: Path) -> None:
    path = put(nodes)
    assert read_result(str(path)) == read_result(str(path), "east")
    with pytest.raises(RefusedError, match="is of the fleet"):
        read_result(str(path), "west")


def test_results_of_several_fleets(nodes: Path) -> None:
    """Nobody has said which one is meant, and hosts of both may have the same names."""
    paths = [
        put(nodes, "a", fleet=""),
        put(nodes, "b", fleet="east"),
        put(nodes, "c", fleet="west\x1b"),
        put(nodes, "d", fleet="east"),
        put(nodes, "e", fleet=None),
    ]
    read = list(read_results(map(str, paths)))
    assert [item.host if isinstance(item, Result) else item for item in read] == [
        "a",
        "b",
        Problem(
            str(paths[2]),
            'is of the fleet "west\\x1b", and %s is of "east"' % paths[1],
            "say which fleet is meant, or take the file out of the given places",
        ),
        "d",
        "e",
    ]
    assert [isinstance(item, Result) for item in read_results(map(str, paths), "east")] == [
        False,
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(("ahead", "is_used"), [(-86400, True), (300, True), (301, False), (10**9, False)])
def test_a_result_of_the_future(tmp_path: Path, ahead: int, is_used: bool) -> None:
    """It would be the newest one for ever."""
    now = float(seconds_of(LOOKED_AT) - ahead)
    path = put(tmp_path, "a", fleet="west")
    good = put(tmp_path, "good", looked_at=time_of(now))
    first, second = read_results([str(path), str(good)], now=now)
    if is_used:
        assert isinstance(first, Result)
        return
    assert first == Problem(
        str(path),
        "was looked at on 2026-11-23T15:00:00Z, and it is %s" % time_of(now),
        "correct the clock that is wrong, and look at the node again with the playbook drift_report",
    )
    # It does not say which fleet is meant either.
    assert isinstance(second, Result)


def test_results_of_one_node_and_moment(nodes: Path, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    copies = [
        put(tmp_path / "copies", "same"),
        put(tmp_path / "copies", "newer", looked_at="2026-11-23T15:00:01Z"),
        put(tmp_path / "copies", "other", running={"cpu_manager_policy": "none"}),
    ]
    paths = [str(put(nodes, path.name[:-5])) for path in copies]
    read = list(read_results([*paths, *map(str, copies)]))
    assert [isinstance(item, Result) for item in read] == [True, True, True, True, True, False]
    assert read[5] == Problem(
        str(copies[2]),
        "differs from %s, which is of the same node and moment" % paths[2],
        "look at the node again, or take one of the two out of the given places",
    )


def test_deep_results_of_one_node_and_moment(nodes: Path, tmp_path: Path) -> None:
    """Wherever Python's recursion ends."""
    for depth in range(100, 1000, 50):
        path, copy = put(nodes), tmp_path / "a.json"
        deep = json.dumps({**CONTENT, "answer": {"x": "HERE"}}).replace('"HERE"', "[" * depth + "]" * depth)
        path.write_text(deep)
        copy.write_text(deep)
        assert len(list(read_results([str(path), str(copy)]))) == 2


def test_a_file_that_is_not_there(nodes: Path) -> None:
    assert only_problem(nodes / "a.json").text == "cannot be read: No such file or directory"


def test_a_directory_in_place_of_a_file(nodes: Path) -> None:
    (nodes / "a.json").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _time in range(20):
        assert only_problem(nodes / "a.json").text == "cannot be read: Is a directory"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_fifo_in_place_of_a_file(nodes: Path) -> None:
    os.mkfifo(nodes / "a.json")
    assert only_problem(nodes / "a.json").text == "is not a regular file"


def test_links(nodes: Path) -> None:
    (nodes / "a.json").symlink_to("/dev/zero")
    assert only_problem(nodes / "a.json").text == "is not a regular file"
    (nodes / "b.json").symlink_to("b.json")
    assert only_problem(nodes / "b.json").text == "cannot be read: Too many levels of symbolic links"
    (nodes / "c.json").symlink_to("nowhere")
    assert only_problem(nodes / "c.json").text == "cannot be read: No such file or directory"
    (nodes / "d.json").symlink_to(nodes)
    assert only_problem(nodes / "d.json").text == "cannot be read: Is a directory"
    # The result of another host under this name.
    (nodes / "e.json").symlink_to("good.json")
    assert only_problem(nodes / "e.json").text == 'is the result of another host, "good"'


def test_a_link_to_the_result_of_the_host_is_read(nodes: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (nodes / "a.json").symlink_to(put(tmp_path / "elsewhere"))
    assert read_result(str(nodes / "a.json")).host == "a"


def test_a_file_that_is_too_large(nodes: Path) -> None:
    path = put(nodes)
    os.truncate(path, 100 << 20)
    assert only_problem(path).text == "has %d bytes, more than any node answers" % (100 << 20)
    os.truncate(path, LARGEST)
    assert "more than any node" not in only_problem(path).text


def test_a_file_that_nobody_may_read(nodes: Path) -> None:
    path = put(nodes)
    path.chmod(0)
    put(nodes, "good")
    with common_user(nodes):
        first, second = read_results([str(path), str(nodes / "good.json")])
    assert first == Problem(str(path), "cannot be read: Permission denied", "correct its mode, or take it away")
    assert isinstance(second, Result)


def test_the_same_file_twice(nodes: Path) -> None:
    path = str(put(nodes))
    assert [type(read) for read in read_results([path, path])] == [Result, Result]


def test_a_member_twice(nodes: Path) -> None:
    path = put(nodes)
    path.write_text(path.read_text()[:-1] + ', "host": "b"}')
    assert only_problem(path).text == 'is the result of another host, "b"'


@given(json_values, st.sampled_from([*CONTENT, ""]))
def test_any_file_is_a_problem_or_a_result(tmp_path_factory: pytest.TempPathFactory, value: Any, name: str) -> None:
    path = tmp_path_factory.getbasetemp() / "a.json"
    path.write_text(json.dumps({**CONTENT, name: value} if name else value))
    (read,) = read_results([str(path)], "east")
    assert isinstance(read, (Problem, Result))
    if isinstance(read, Result):
        assert read.host == "a"


@given(st.binary())
def test_any_bytes_are_a_problem(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "a.json"
    path.write_bytes(content)
    (read,) = read_results([str(path)])
    assert isinstance(read, Problem)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/toml.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.toml import (
    BEGIN,
    END,
    LONGEST,
    TOMLError,
    header,
    parse,
    table_text,
    with_keys,
    without_blocks,
)

NRI = ("plugins", "io.containerd.nri.v1.nri")
CRI = ("plugins", "io.containerd.grpc.v1.cri")
WANTED = {NRI: {"disable": "false"}, CRI: {"enable_cdi": "true"}}


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        pytest.param("a = 1", ("a",), 1, id="a number"),
        pytest.param("a = 1_000 # b = 2", ("a",), 1000, id="with a comment"),
        pytest.param("a = -1", ("a",), -1, id="negative"),
        pytest.param("a = true\r\nb = false\r\n", ("b",), False, id="lines of Windows"),
        pytest.param('a = "x # y\\u0041\\n\'"', ("a",), "x # yA\n'", id="a string"),
        pytest.param("a = 'x\\y\"'", ("a",), 'x\\y"', id="a literal string"),
        pytest.param('a = """x\n"y" """', ("a",), 'x\n"y" ', id="a long string"),
        pytest.param("a = '''x\n[b]\n'''", ("a",), "x\n[b]\n", id="a long literal string"),
        pytest.param("a = [ 1, # one\n 'b',\n]", ("a",), [1, "b"], id="a list"),
        pytest.param("a = [[1], []]", ("a",), [[1], []], id="a list of lists"),
        pytest.param("a = {b = {c = 'd'}, e.f = 2}", ("a", "b", "c"), "d", id="an inline table"),
        pytest.param("a = {b = {c = 'd'}, e.f = 2}", ("a", "e", "f"), 2, id="dotted in an inline table"),
        pytest.param("a = {}", ("a", "b"), None, id="nothing in an inline table"),
        pytest.param("a.'b.c'.\"d\" = 1", ("a", "b.c", "d"), 1, id="dotted"),
        pytest.param("[a . 'b.c']\nd = 1", ("a", "b.c", "d"), 1, id="a table"),
        pytest.param("[a]\n[a.b]\nc = 1\n[d]\nc = 2", ("a", "b", "c"), 1, id="a table in a table"),
        pytest.param("[[a]]\nb = 1\n[[a]]\nb = 2", ("a", "b"), None, id="a list of tables"),
        pytest.param("a = 1979-05-27 07:32:00Z", ("a",), "1979-05-27 07:32:00Z", id="a time"),
        pytest.param("a = 0x1F", ("a",), "0x1F", id="another base"),
        pytest.param("a = [1,\r\n 2\r\n]\r\nb = 1", ("a",), [1, 2], id="a list in lines of Windows"),
        pytest.param('a = "\\U0010FFFF\\U00110000"', ("a",), "\U0010ffff\ufffd", id="beyond all characters"),
        pytest.param("", ("a",), None, id="nothing"),
    ],
)
def test_values(text: str, path: tuple[str, ...], value: Any) -> None:
    assert parse(text).value(path) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a", "line 1: there is no =", id="no value"),
        pytest.param("a =", "line 1: there is no value where a value begins", id="an empty value"),
        pytest.param("a = 1\na = 2", "line 2: the key a is there twice", id="a key twice"),
        pytest.param("[a]\n[b]\n[a]", "line 3: the table a is there twice", id="a table twice"),
        pytest.param("[a.'b.c']\n[a.'b.c']", "line 2: the table a.b.c is there twice", id="a table in a table twice"),
        pytest.param("a = {b = 1, b = 2}", "line 1: the key b is there twice", id="twice in a table"),
        pytest.param("a = {b = 1, b.c = 2}", "line 1: b is a value and a table", id="both"),
        pytest.param("[a", "line 1: there is no ]", id="an open header"),
        pytest.param("\n[a] b = 1", "line 2: there is more than one statement in a line", id="two statements"),
        pytest.param("a = 1 b = 2", "line 1: there is more than one statement in a line", id="two keys"),
        pytest.param('a = "b', "line 1: there is no string where a string begins", id="an open string"),
        pytest.param('a = """b', "line 1: there is no string where a string begins", id="an open long string"),
        pytest.param("a = [1\n2]", "line 2: there is no ]", id="an open list"),
        pytest.param("a = " + "[" * 40, "line 1: lists and tables are nested deeper than 32 times", id="deep"),
        pytest.param("{{ template }}", "line 1: there is no key where a key begins", id="a template"),
        pytest.param("\0", "line 1: there is no key where a key begins", id="binary"),
        pytest.param("#" * (LONGEST + 1), "line 1: the file is longer than 1048576 characters", id="huge"),
    ],
)
def test_what_is_no_toml(text: str, message: str) -> None:
    with pytest.raises(TOMLError) as caught:
        parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("", False),
        ("[plugins]", False),
        ('[plugins."io.containerd.nri.v1.nri"]', True),
        ('[plugins."io.containerd.nri.v1.nri".x]', True),
        ('plugins."io.containerd.nri.v1.nri".x = 1', True),
        ('plugins = {"io.containerd.nri.v1.nri" = {}}', True),
        ('plugins = {"io.containerd.nri.v1.nrj" = {}}', False),
    ],
)
def test_which_tables_there_are(text: str, defines: bool) -> None:
    assert parse(text).defines(NRI) is defines


@pytest.mark.parametrize(("begin", "end", "levels"), [("[", "]", 32), ("{a = ", "}", 32), ("[{a = ", "}]", 16)])
def test_the_deepest_that_is_read(begin: str, end: str, levels: int) -> None:
    text = "b = %s1%s" % (begin * levels, end * levels)
    assert parse(text).defines(("b",))
    with pytest.raises(TOMLError, match="nested deeper than 32 times"):
        parse(text.replace("1", begin + "1" + end))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_value_that_was_there_comes_back(newline: str) -> None:
    lines = ["version = 2", '[plugins."io.containerd.nri.v1.nri"]', "  disable = true # so", "socket_path = '/x'", ""]
    text = newline.join(lines)
    changed = with_keys(text, {NRI: {"disable": "false"}})
    assert parse(changed).value((*NRI, "disable")) is False
    assert without_blocks(changed) == text


def test_a_key_with_another_value_and_one_that_is_new() -> None:
    text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  a = 1\n'
    text += '[plugins."io.containerd.nri.v1.nri"]\n  disable = true # so\n'
    assert with_keys(text, WANTED) == (
        'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n'
        "# BEGIN kubenode.cpu_manager\nenable_cdi = true\n# END kubenode.cpu_manager\n  a = 1\n"
        '[plugins."io.containerd.nri.v1.nri"]\n'
        "# BEGIN kubenode.cpu_manager\n#-   disable = true # so\n  disable = false # so\n# END kubenode.cpu_manager\n"
    )


def test_tables_that_are_new() -> None:
    assert with_keys("version = 2\n", WANTED) == (
        "version = 2\n# BEGIN kubenode.cpu_manager\n"
        '[plugins."io.containerd.nri.v1.nri"]\ndisable = false\n\n'
        '[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n'
        "# END kubenode.cpu_manager\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("version = 2", "the last line has no end", id="no end"),
        pytest.param(
            '[plugins."io.containerd.nri.v1.nri"]\ndisable = [\n]\n', "the value of disable has", id="more lines"
        ),
        pytest.param("\nplugins = {}\n", 'line 2: the table plugins."io.containerd.nri', id="an inline table"),
        pytest.param(
            'plugins."io.containerd.nri.v1.nri".socket_path = "x"\n', 'line 1: the table plugins."io', id="dotted"
        ),
    ],
)
def test_what_cannot_be_changed(text: str, message: str) -> None:
    with pytest.raises(TOMLError) as caught:
        with_keys(text, WANTED)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        BEGIN + "\n",
        END + "\n",
        "%s\na = 1\n%s\na = 2\n%s\n" % (BEGIN, BEGIN, END),
        "a = 1 %s\n%s\n" % (BEGIN, END),
    ],
)
def test_a_block_that_was_damaged(text: str) -> None:
    with pytest.raises(TOMLError):
        without_blocks(text)


def test_a_header() -> None:
    assert header(("plugins", "a.b", "c-d_1")) == 'plugins."a.b".c-d_1'
    assert table_text({("a",): {"b": "1", "c": "2"}}) == "[a]\nb = 1\nc = 2\n"


_LINES = st.sampled_from(
    [
        "",
        "# a comment",
        "\t",
        "x = 1",
        'y = ["a",\n  "b"]',
        "[plugins]",
        '[plugins."io.containerd.nri.v1.nri"]',
        "[plugins.'io.containerd.grpc.v1.cri']",
        '  [plugins."io.containerd.grpc.v1.cri".containerd]',
        "disable = true",
        "  disable=true # off",
        "enable_cdi = false",
        "'enable_cdi' = false",
        "[[z]]",
        "z = '''\n[plugins]\n'''",
    ]
)


@given(st.lists(_LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_blocks_are_taken_out_to_the_byte(lines: list[str], newline: str, is_ended: bool) -> None:
    text = newline.join(lines) + (newline if is_ended and lines else "")
    try:
        document, changed = parse(text), with_keys(text, WANTED)
    except TOMLError:
        return
    assert without_blocks(changed) == text
    after = parse(changed)
    assert (after.value((*NRI, "disable")), after.value((*CRI, "enable_cdi"))) == (False, True)
    ours = {(*NRI, "disable"), (*CRI, "enable_cdi")}
    assert {path: entry.value for path, entry in after.entries.items() if path not in ours} == {
        path: entry.value for path, entry in document.entries.items() if path not in ours
    }


@given(st.lists(_LINES, max_size=8))
def test_python_reads_the_same(lines: list[str]) -> None:
    tomllib = pytest.importorskip("tomllib")
    text = "\n".join(lines)
    try:
        wanted = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    for path, entry in parse(text).entries.items():
        if not any(name.startswith("[") for name in path):
            value: Any = wanted
            for name in path:
                value = value[name]
            assert entry.value == value

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.grub import (
    ShellValue,
    read_assignments,
)

X, Y = "GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"


def read(text: str) -> dict[str, tuple[str, bool]]:
    return {name: (value.text, value.is_sure) for name, value in read_assignments(text, "file", {}).items()}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# A=1\n\n \t\n", {}),
        ("A=1", {"A": ("1", True)}),
        ("A=1 # B=2\n", {"A": ("1", True)}),
        ("A=1#2\n", {"A": ("1#2", True)}),
        ("A=1 B=2;C=3\n", {"A": ("1", True), "B": ("2", True), "C": ("3", True)}),
        ("A=\n", {"A": ("", True)}),
        ("A='a \"b\" $c'\n", {"A": ('a "b" $c', True)}),
        ('A="a\nb"\n', {"A": ("a\nb", True)}),
        ('A="a \\\nb"\n', {"A": ("a b", True)}),
        ('A="\\$x \\" \\a \\\\"\n', {"A": ('$x " \\a \\', True)}),
        ("A=a\\ b\\\nc\n", {"A": ("a bc", True)}),
        ("A=1\nA=2\n", {"A": ("2", True)}),
        ('A=1\nB="$A ${A}3"\n', {"A": ("1", True), "B": ("1 13", True)}),
        ("export A=1 B\n", {"A": ("1", True)}),
        ("export=1\n", {"export": ("1", True)}),
        ("A=\"x\"'y'z\n", {"A": ("xyz", True)}),
        ('%s="$%s x"\n' % (X, X), {X: (" x", True)}),
        ("A=$\n", {"A": ("$", True)}),
        ("A=$HOME\n", {"A": ("", False)}),
        ("A=$(a (b) c)x B=1\n", {"A": ("x", False), "B": ("1", True)}),
        ("A=`a \\` b`\n", {"A": ("", False)}),
        ("A=$1\n", {"A": ("", False)}),
        ("A=~\n", {"A": ("~", False)}),
        ("A=$(echo ')' \\) b)\n", {"A": ("", False)}),
        ("A=`a 2> /dev/null || echo Debian`\n", {"A": ("", False)}),
        ("A=\"$(sed 's, release .*$,,g' /etc/system-release)\"\nB=1\n", {"A": ("", False), "B": ("1", True)}),
        ('A=$( . /etc/os-release; echo "${NAME:-Debian}" )\n', {"A": ("", False)}),
        ("A=${B:-x y}\n", {"A": ("", False)}),
        ("A=$B\nC=1\n", {"A": ("", False), "C": ("1", True)}),
    ],
)
def test_values(text: str, values: dict[str, tuple[str, bool]]) -> None:
    assert read(text) == values


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nif true; then\n", 2),
        (". /etc/os-release\n", 1),
        ("\nA+=1\n", 2),
        ('A="x\ny\n', 1),
        ("A='x\ny\n", 1),
        ("A=1 ls\n", 1),
        ("ls\n", 1),
        ("A=1 && B=2\n", 1),
        ("A=(1 2)\n", 1),
        ("A=$(x\n", 1),
        ("A=$(x ')\n", 1),
        ("A=`x\n", 1),
        ("A=1\\", 1),
        ("f() { A=1; }\n", 1),
        ("export\n", 1),
        ("A-B=1\n", 1),
        ("A=1\n; B=2\n", 2),
        ("A=1;;B=2\n", 1),
        ("A=1\0\n", 1),
    ],
)
def test_what_is_not_understood(text: str, line: int) -> None:
    with pytest.raises(RefusedError) as caught:
        read(text)
    assert caught.value.where == "file, line %d" % line
    assert caught.value.what.startswith(repr(text.splitlines()[line - 1]))


def test_a_huge_file() -> None:
    with pytest.raises(RefusedError, match="is no shell file that can be read"):
        read("#" * (1 << 20) + "\n")


def test_places_and_what_was_before() -> None:
    before = {X: ShellValue("a", True, "other, line 1")}
    found = read_assignments('B=1\n%s="$%s b"\n' % (X, X), "file", before)
    assert found[X] == ShellValue("a b", True, "file, line 2")
    assert before == {X: ShellValue("a", True, "other, line 1")}


PIECES = st.sampled_from(
    [X + "=", Y + "=", "$" + X, "${%s}" % Y, '"', "'", "\\", "\n", " ", "a", "b=1", "#", ";", "$", "x.y", "\t"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=14).map("".join))
def test_a_shell_says_the_same(tmp_path: Path, text: str) -> None:
    """What is read at all is what the system's own shell makes of it."""
    try:
        values = read_assignments(text, "file", {})
    except RefusedError:
        return
    (tmp_path / "file").write_text(text, encoding="ascii")
    done = subprocess.run(
        ["/bin/sh", "-c", '. "$1"; printf "%%s|%%s" "$%s" "$%s"' % (X, Y), "sh", str(tmp_path / "file")],
        capture_output=True,
        check=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    sure = {name: value for name, value in values.items() if value.is_sure}
    answers = dict(zip((X, Y), done.stdout.split("|")))
    for name, answer in answers.items():
        if name in sure or name not in values:
            assert answer == (values[name].text if name in values else "")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/command.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.command import SilentError, run_command
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError


def test_what_it_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_command(["printf", "%s", "a b; $(c)"]) == "a b; $(c)"
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run_command(["sh", "-c", "echo $LC_ALL; cat"]) == "C\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "/no/such"], r"^ls /no/such: .*No such file or directory$"),
        (["sh", "-c", "echo on standard output; exit 1"], r": on standard output$"),
        (["false"], r"^false: failed with status 1$"),
        (["no-such-command", "a"], r"^no-such-command: No such file or directory$"),
    ],
)
def test_how_it_fails(arguments: list[str], message: str) -> None:
    with pytest.raises(NodeError, match=message) as caught:
        run_command(arguments)
    assert not isinstance(caught.value, SilentError)


def test_who_does_not_answer() -> None:
    with pytest.raises(SilentError, match=r"^sleep 9: no answer in 0.01 seconds$"):
        run_command(["sleep", "9"], patience=0.01)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/errors.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import errors
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    CPUManagerError,
    InputError,
    KubeletError,
    NodeError,
    RefusedError,
    call_options,
    option,
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NodeError("cannot be read"), "cannot be read"),
        (NodeError("cannot be read", "/a"), "/a: cannot be read"),
        (NodeError("cannot be read", remedy="read it as root"), "cannot be read; read it as root"),
        (NodeError("cannot be read", "/a", "read it as root"), "/a: cannot be read; read it as root"),
        (KubeletError("invalid", "write it anew"), "invalid; write it anew"),
    ],
)
def test_message(error: CPUManagerError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("x"), "input"),
        (KubeletError("x"), "kubelet"),
        (NodeError("x"), "node"),
        (RefusedError("x"), "refused"),
        (RefusedError("x", kind="another_run"), "another_run"),
    ],
)
def test_kind(error: CPUManagerError, kind: str) -> None:
    assert error.to_dict() == {"kind": kind, "where": "", "remedy": ""}


def test_part_of_something() -> None:
    inner = RefusedError("is 3", "limits.cpu", "write 4", kind="split_core")
    outer = inner.within("pod a")
    assert isinstance(outer, RefusedError)
    assert str(outer) == "pod a: limits.cpu: is 3; write 4"
    assert outer.to_dict() == {"kind": "split_core", "where": "pod a", "remedy": "write 4"}
    assert str(inner) == "limits.cpu: is 3; write 4"


def test_more_about_what_is_wrong() -> None:
    inner = NodeError("cannot be written", "/a", "write it as root", kind="permission")
    outer = inner.adding("everything is as it was before")
    assert isinstance(outer, NodeError)
    assert str(outer) == "/a: cannot be written; everything is as it was before; write it as root"
    assert outer.to_dict() == {"kind": "permission", "where": "/a", "remedy": "write it as root"}
    assert outer.within("b").to_dict()["remedy"] == "write it as root"
    assert str(inner) == "/a: cannot be written; write it as root"


def test_part_of_something_keeps_what_the_kubelet_says() -> None:
    outer = KubeletError("invalid", "write it anew").within("reserved_system_cpus")
    assert (outer.text, str(outer)) == ("invalid", "reserved_system_cpus: invalid; write it anew")


def test_options_have_the_names_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_OPTION_NAMES", {})
    assert option("discard_assignments") == "discard_assignments"
    call_options({"discard_assignments": "kubelet_discard_assignments"})
    assert option("discard_assignments") == "kubelet_discard_assignments"
    assert option("root") == "root"

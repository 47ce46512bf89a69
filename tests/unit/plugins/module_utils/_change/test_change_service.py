# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_change/change_service.py: what root carries out, root alone has written."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.own_lock import try_lock
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change import change_service, node_change
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.change_service import (
    PLACE,
    PROGRESS,
    REQUEST,
    RESULT,
    carried_out,
    main,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.node_change import NodeChange
from ansible_collections.kubenode.cpu_manager.tests.faults.changing import Change
from ansible_collections.kubenode.cpu_manager.tests.faults.test_reboots import CASES, on_disk, write_node
from ansible_collections.kubenode.cpu_manager.tests.support.others import as_root, place

__all__ = ("place",)


def requested(root: Path, **given: Any) -> Change:
    """Return a node for which a change is requested."""
    case = CASES["none to static"]
    write_node(root, case)
    change = Change(str(root), "2026-11-22T09:30:00", **case.settings)
    (root / PLACE[1:]).mkdir(parents=True, mode=0o700)
    (root / REQUEST[1:]).write_text(
        json.dumps({"call": "one", "parameters": {**change.given, **given}}), encoding="utf-8"
    )
    (root / REQUEST[1:]).chmod(0o600)
    return change


def test_a_request_is_carried_out_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requested(tmp_path)
    old = on_disk(tmp_path)
    assert main([str(tmp_path)]) == 0
    result = json.loads((tmp_path / RESULT[1:]).read_text(encoding="utf-8"))
    assert (result["call"], result["result"]["failed"]) == ("one", False)
    assert on_disk(tmp_path) != old
    assert [stat.S_IMODE((tmp_path / path[1:]).stat().st_mode) for path in (PROGRESS, RESULT)] == [0o600, 0o600]
    # Whoever starts it again finds its result. This process still has the lock.
    monkeypatch.setattr(change_service, "_STARTUP", 0.1)
    new, progress = on_disk(tmp_path), (tmp_path / PROGRESS[1:]).read_bytes()
    assert main([str(tmp_path)]) == 0
    assert (on_disk(tmp_path), (tmp_path / PROGRESS[1:]).read_bytes()) == (new, progress)


def test_a_log_that_takes_no_line_keeps_no_change_from_its_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requested(tmp_path)
    # It takes what Python keeps, and nothing of that reaches it.
    monkeypatch.setattr(sys, "stdout", open("/dev/full", "w", encoding="utf-8"))  # noqa: SIM115
    assert main([str(tmp_path)]) == 0
    result = json.loads((tmp_path / RESULT[1:]).read_text(encoding="utf-8"))
    assert result["result"]["failed"] is False
    with suppress(OSError):
        sys.stdout.close()


def test_nothing_is_carried_out_without_a_request(tmp_path: Path) -> None:
    requested(tmp_path)
    (tmp_path / REQUEST[1:]).unlink()
    old = on_disk(tmp_path)
    assert main([str(tmp_path)]) == 0
    assert on_disk(tmp_path) == old


@as_root
@pytest.mark.parametrize("way", ["mode", "owner", "directory", "link"])
def test_a_request_that_another_user_may_write_is_not_carried_out(way: str, place: Path) -> None:
    requested(place)
    old, here = on_disk(place), place / REQUEST[1:]
    if way == "mode":
        here.chmod(0o622)
    elif way == "owner":
        os.chown(here, 65534, 65534)
    elif way == "directory":
        here.parent.chmod(0o777)
    else:
        theirs = place / "theirs"
        here.rename(theirs)
        os.chown(theirs, 65534, 65534)
        here.symlink_to("../../../../theirs")
    with pytest.raises((RefusedError, PermissionError)):
        main([str(place)])
    assert on_disk(place) == old
    assert not (place / RESULT[1:]).exists()


def test_of_a_saved_node_no_service_of_this_machine_is_stopped(tmp_path: Path) -> None:
    given = {**requested(tmp_path).given, "manage_service": True, "service": None}
    old = on_disk(tmp_path)
    for acts in (True, False):
        with pytest.raises(RefusedError, match="is a saved node, and the service would be one of the machine"):
            carried_out(Tree(str(tmp_path)), given, acts)
    assert on_disk(tmp_path) == old


def test_a_systemd_that_does_not_take_the_unit_keeps_no_change_from_being_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As one that is older than a property: the process has a session of its own then."""
    program = tmp_path / "systemd-run"
    program.write_text("#!/bin/sh\necho 'Unknown assignment' >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
    monkeypatch.setattr(change_service, "has_systemd", lambda _tree: True)
    assert change_service._by_systemd(Tree("/"), ["true"], 1) is False
    program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert change_service._by_systemd(Tree("/"), ["true"], 1) is True
    assert change_service._by_systemd(Tree(str(tmp_path)), ["true"], 1) is False


def begin_late(monkeypatch: pytest.MonkeyPatch, root: Path, seconds: float) -> Change:
    """Begin a change whose process is at work, and writes its first step only after these seconds."""
    change = requested(root)
    (root / REQUEST[1:]).unlink()
    lock = try_lock(str(root / PLACE[1:] / "running")) if seconds else None

    def tell() -> None:
        (root / PROGRESS[1:]).write_text("\n", encoding="utf-8")
        (root / PROGRESS[1:]).chmod(0o600)

    def start(*_arguments: object) -> bool:
        if lock is not None:
            threading.Timer(seconds, tell).start()
        return True

    monkeypatch.setattr(change_service, "_STARTUP", 0.2)
    monkeypatch.setattr(change_service, "_by_systemd", start)
    # Pytest finds the collection in its own way.
    monkeypatch.setattr(change_service, "_code", lambda _tree: "")
    change_service._begin(Tree(str(root)), {**change.given, "call": "one"})
    return change


def test_a_process_that_starts_too_late_has_nothing_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine that is very busy: nobody waits for it any more."""
    with pytest.raises(NodeError, match="did not start; nothing was changed"):
        begin_late(monkeypatch, tmp_path, 0)
    old = on_disk(tmp_path)
    assert main([str(tmp_path)]) == 0
    assert on_disk(tmp_path) == old
    assert Tree(str(tmp_path)).content(RESULT) is None


def test_a_process_that_is_at_work_keeps_its_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it is killed, it is started again with that."""
    begin_late(monkeypatch, tmp_path, 0.6)
    assert json.loads((tmp_path / REQUEST[1:]).read_text(encoding="utf-8"))["call"] == "one"


def test_a_process_that_dies_again_and_again_starts_the_kubelet_and_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each of its starts is written down. The files stay for a run that takes them back."""
    started = []
    monkeypatch.setattr(node_change, "control", lambda service, action: started.append((service, action)))
    monkeypatch.setattr(NodeChange, "go_on", lambda *_: pytest.fail("it is tried once more"))
    requested(tmp_path, manage_service=True)
    (tmp_path / PROGRESS[1:]).write_text("\nStop the kubelet\n" + "\n" * 3, encoding="utf-8")
    old = on_disk(tmp_path)
    assert main([str(tmp_path)]) == 0
    assert on_disk(tmp_path) == old
    assert started == [("kubelet", "start")]
    result = json.loads((tmp_path / RESULT[1:]).read_text(encoding="utf-8"))["result"]
    assert (result["failed"], result["undone"], result["failure"]["kind"]) == (True, False, "died")
    assert "run the role again" in result["msg"]

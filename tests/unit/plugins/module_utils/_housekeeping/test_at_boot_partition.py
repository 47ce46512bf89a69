# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A partition on a saved node: it is made, kept and taken back."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import carry_out as program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping as bring,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import needs_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    read_journal,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.partitioned import OWN, TOP, Saved


def test_made_kept_and_back(saved: Saved) -> None:
    before = saved.files()
    check = saved.bring(act=False)
    assert saved.files() == before
    first = saved.bring()
    assert first.to_dict() == check.to_dict()
    assert [saved.held("cpuset.cpus" + name) for name in ("", ".exclusive", ".partition")] == ["2-3", "2-3", "isolated"]
    unit = (saved.root / "etc/systemd/system" / OWN).read_text().splitlines()
    assert unit[-2:] == ["[Slice]", "AllowedCPUs=2-3"]
    assert "Before=kubenode-housekeeping.service" in unit
    assert (saved.root / "etc/systemd/system/multi-user.target.wants" / OWN).is_symlink()
    assert saved.commands == [("systemctl", "daemon-reload"), ("systemctl", "start", OWN)]
    last = [change["path"] for change in first.to_dict()["changes"]][-3:]
    assert last == [TOP + OWN + "/cpuset.cpus" + name for name in ("", ".exclusive", ".partition")]
    assert not saved.bring().changed

    assert saved.bring(own="3", kind="root").changed
    assert [saved.held("cpuset.cpus" + name) for name in ("", ".exclusive", ".partition")] == ["3", "3", "root"]
    assert not saved.bring(own="3", kind="root").changed

    bring.absent(saved.tree, act=True, run=saved.run)
    # On a saved node it is left to others.
    assert saved.held("cpuset.cpus.partition") == "member"
    saved.run(("systemctl", "stop", OWN))
    assert saved.files() == before


def test_not_wanted_any_more(saved: Saved) -> None:
    saved.bring()
    saved.bring(own="")
    assert saved.commands[-2:] == [("systemctl", "stop", OWN), ("systemctl", "daemon-reload")]
    assert not (saved.root / "etc/systemd/system" / OWN).exists()
    journal = read_journal(saved.tree)
    assert journal is not None
    assert (journal.slices, journal.wish.partition) == ((), None)
    assert not saved.bring(own="").changed


def test_processes_are_still_there(saved: Saved) -> None:
    saved.bring()
    write(saved.root, TOP + OWN + "/cgroup.events", "populated 1\n")
    answer = bring.absent(saved.tree, act=True, run=saved.run)
    assert ("systemctl", "stop", OWN) not in answer.commands
    assert [saved.held("cpuset.cpus" + name) for name in ("", ".partition")] == ["0-7", "member"]
    assert "processes run in it" in answer.notes[-1]


def test_nobody_starts_the_slice(saved: Saved) -> None:
    answer = saved.bring(runs=False)
    assert needs_of(answer.needs)["slices"] == [["systemctl", "start", OWN]]
    assert needs_of(answer.needs)["update_loader"] == []
    assert not saved.commands
    assert not saved.bring(runs=False).changed
    saved.run(("systemctl", "start", OWN))
    assert saved.bring(runs=False).changed
    assert saved.held("cpuset.cpus.partition") == "isolated"


def test_the_kernel_makes_none(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says it, and not an error; nothing becomes one later by itself, and the next run tries again."""
    real = run._text
    says = "isolated invalid (Cpu list in cpuset.cpus.exclusive not exclusive)"

    def text(tree: Tree, path: str) -> str | None:
        found = real(tree, path)
        return says if path.endswith("cpuset.cpus.partition") and found == "isolated" else found

    monkeypatch.setattr(run, "_text", text)
    with pytest.raises(NodeError, match=re.escape("refuses isolated: Cpu list in cpuset.cpus.exclusive not exclusive")):
        saved.bring()
    assert saved.held("cpuset.cpus.partition") == "member"
    monkeypatch.undo()
    assert saved.bring().changed
    assert saved.held("cpuset.cpus.partition") == "isolated"


def test_a_slice_that_does_not_get_its_files(saved: Saved) -> None:
    saved.make(OWN)
    (saved.root / TOP[1:] / OWN / "cpuset.cpus.exclusive").unlink()
    with pytest.raises(NodeError, match="exclusive: the kernel refuses 2-3: there is no such file"):
        saved.bring()


def test_after_a_boot(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    saved.bring()
    saved.run(("systemctl", "stop", OWN))
    housekept.boot(saved.root)
    assert program.main([str(saved.root)]) == 0
    assert "systemd has not started this slice" in capsys.readouterr().out
    saved.run(("systemctl", "start", OWN))
    assert program.main([str(saved.root)]) == 0
    assert "partition: isolated.slice cpuset.cpus.partition: member to isolated" in capsys.readouterr().out
    assert saved.held("cpuset.cpus.exclusive") == "2-3"


@pytest.mark.parametrize(
    ("key", "value"), [("partition", {"cpus": "2", "kind": "member", "slice": OWN}), ("slices", ["a-b.slice"])]
)
def test_a_damaged_journal(saved: Saved, key: str, value: object) -> None:
    saved.bring()
    place = saved.root / PATH[1:]
    place.write_text(json.dumps({**json.loads(place.read_text()), key: value}))
    with pytest.raises(NodeError, match="cannot be read as the journal"):
        read_journal(saved.tree)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""isolation_info on saved nodes, on this machine, and with what is wanted wrong."""

from __future__ import annotations

from pathlib import Path

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task


def test_nodes_of_each_kind(tmp_path: Path, copy_of: CopyOf) -> None:
    roots = {"saved": str(copy_of("epyc", "saved")), "here": "/"}
    before = fingerprint(tmp_path / "nodes")
    look = task("isolation_info", root="{{ root }}", seconds=1)
    run = ansible_playbook(tmp_path / "run", play(look), {name: {"root": root} for name, root in roots.items()})
    assert run.status == 0, run.account()
    assert fingerprint(tmp_path / "nodes") == before
    saved, here = run.last("saved"), run.last("here")
    assert saved["note_checks"].count("isolation-unmeasured") >= 1
    assert (saved["cpus"], saved["findings"], saved["observer"]) == ([], [], None)
    assert {row["verdict"] for row in saved["containers"]} <= {None}
    assert 0.9 < here["seconds"] < 5
    assert len(here["cpus"]) >= 1
    assert here["observer"]["tasks"] > 1
    assert not saved["changed"]
    assert not here["changed"]


def test_what_is_wanted_wrong(tmp_path: Path) -> None:
    wrong = {"none": {"seconds": 0}, "long": {"seconds": 100000}, "low": {"threshold": 0}}
    options = {name: "{{ %s | default(omit) }}" % name for name in ("seconds", "threshold")}
    run = ansible_playbook(tmp_path / "run", play(task("isolation_info", root="/", **options)), wrong)
    assert run.status != 0
    for name, wanted in wrong.items():
        result = run.last(name)
        (option,) = wanted
        assert (result["failure"]["kind"], result["failure"]["where"]) == ("input", option), run.account()

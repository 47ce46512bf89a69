# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that cannot be written, several that are written all or none, and how long backups stay."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.journal_steps import JournalStep, note

from .conftest import CopyOf, Run, ansible_playbook, fingerprint, play, task

CONFIG = "var/lib/kubelet/config.yaml"
CHECKPOINT = "var/lib/kubelet/cpu_manager_state"
PATCH = "etc/kubernetes/patches/kubeletconfiguration90-kubenode-cpu-manager+merge.yaml"
JOURNAL = "/var/lib/kubenode-cpu-manager/change.json"

# Prepares mounts that only one run sees, and then does it.
_PRIVATE = 'set -e\n%s\nexec "$@"\n'


@pytest.fixture
def private_mounts() -> None:
    if os.geteuid() != 0:
        pytest.skip("private mounts need root")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("there are no private mounts here")


def with_mounts(commands: str) -> tuple[str, ...]:
    """Return what to put before a command, so that it sees what these commands of a shell mount."""
    return ("unshare", "--mount", "sh", "-c", _PRIVATE % commands, "sh")


def ask(directory: Path, root: Path, module: str, *arguments: str, mounts: str = "", **parameters: Any) -> Run:
    """Return one task on one node."""
    plays = play({**task(module, root=str(root), **parameters), "ignore_errors": True})
    return ansible_playbook(directory, plays, {"node": {}}, *arguments, prefix=with_mounts(mounts) if mounts else ())


@pytest.mark.parametrize(
    ("module", "path", "parameters"),
    [
        ("kubelet_config", CONFIG, {"cpu_manager_reconcile_period": "7s"}),
        ("checkpoint", CHECKPOINT, {"state": "absent", "discard_assignments": True}),
    ],
)
@pytest.mark.usefixtures("private_mounts")
def test_a_read_only_file_system_is_met_in_check_mode(
    copy_of: CopyOf, tmp_path: Path, module: str, path: str, parameters: dict[str, Any]
) -> None:
    root = copy_of("xeon", "node")
    directory = (root / path).parent
    mounts = f"mount --bind {directory} {directory}; mount -o remount,bind,ro {directory}"
    before = fingerprint(root)
    told = []
    for mode in (["--check"], []):
        result = ask(tmp_path / "run", root, module, *mode, mounts=mounts, **parameters).last("node")
        assert result["outcome"] != "ok", result
        assert result["failure"] == {
            "kind": "node",
            "where": str(root / path),
            "remedy": "mount its file system for writing, and run again",
        }
        assert "cannot be written: Read-only file system; nothing was written" in result["msg"]
        told.append(result["msg"])
    assert told[0] == told[1]
    assert fingerprint(root) == before


@pytest.mark.usefixtures("private_mounts")
def test_a_full_disk_is_met_in_check_mode(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("xeon", "node")
    place = (root / CONFIG).parent
    mounts = (
        "cp -a {0} {1}; mount -t tmpfs -o size=64k none {0}; cp -a {1}/. {0};"
        " dd if=/dev/zero of={0}/filler 2>/dev/null || true"
    )
    mounts = mounts.format(place, tmp_path / "saved")
    result = ask(
        tmp_path / "run", root, "kubelet_config", "--check", mounts=mounts, cpu_manager_reconcile_period="7s"
    ).last("node")
    assert result["failure"]["remedy"] == "make room on its file system (df, df -i), and run again"
    assert "No space left on device; nothing was written" in result["msg"]


@pytest.mark.usefixtures("private_mounts")
def test_several_files_are_written_all_or_none(copy_of: CopyOf, tmp_path: Path) -> None:
    """The second cannot be replaced, as something is mounted on it: the first is put back, and no backup stays."""
    root = copy_of("xeon", "node")
    (root / PATCH).parent.mkdir(parents=True, exist_ok=True)
    wanted = {"cpu_manager_reconcile_period": "7s"}
    assert ask(tmp_path / "run", root, "kubelet_config", **wanted).last("node")["files"] == [
        str(root / path) for path in (PATCH, CONFIG)
    ]
    for path in root.rglob("*~"):
        path.unlink()
    before = fingerprint(root)
    for backup in (True, False):
        result = ask(
            tmp_path / "run",
            root,
            "kubelet_config",
            mounts="mount --bind {0} {0}".format(root / CONFIG),
            cpu_manager_reconcile_period="9s",
            backup=backup,
        ).last("node")
        assert result["failure"]["where"] == str(root / CONFIG)
        assert "cannot be written: Device or resource busy; the old content is still there" in result["msg"]
        assert fingerprint(root) == before
    # A first file that was not there is away again.
    (root / PATCH).unlink()
    before = fingerprint(root)
    mounts = "mount --bind {0} {0}".format(root / CONFIG)
    run = ask(tmp_path / "run", root, "kubelet_config", mounts=mounts, cpu_manager_reconcile_period="9s")
    assert run.last("node")["failure"]["kind"] == "node"
    assert fingerprint(root) == before


def test_backups_stay_as_long_as_is_said(copy_of: CopyOf, tmp_path: Path) -> None:
    nodes = {"default": {}, "two": {"backup_keep": 2}, "every": {"backup_keep": 0}, "less": {"backup_keep": -1}}
    hosts = {}
    for name, parameters in nodes.items():
        root = copy_of("xeon", name)
        for number in range(1, 6):
            (root / (CONFIG + ".2020010%dT000000Z~" % number)).write_text("old")
        hosts[name] = {"parameters": {"root": str(root), "cpu_manager_reconcile_period": "7s", **parameters}}
    call = {"name": "Do it", "kubenode.cpu_manager.kubelet_config": "{{ parameters }}", "ignore_errors": True}
    run = ansible_playbook(tmp_path / "run", play(call), hosts)
    left = {}
    for name in ("default", "two", "every"):
        result = run.last(name)
        assert result["outcome"] == "ok", run.account()
        found = sorted((tmp_path / "nodes" / name / CONFIG).parent.glob("config.yaml.*~"))
        assert str(found[-1]) == result["backup_file"]
        left[name] = [path.name[len("config.yaml.") :][:8] for path in found[:-1]]
    days = ["2020010%d" % number for number in range(1, 6)]
    assert left == {"default": days[-2:], "two": days[-1:], "every": days}
    failure = run.last("less")["failure"]
    assert (failure["kind"], failure["where"]) == ("input", "backup_keep")


def dangling(root: Path) -> str:
    (root / "var/lib/kubelet/link").symlink_to("nothing")
    return "is a link to nothing, %s/var/lib/kubelet/nothing, and cannot be saved; nothing was changed" % root


def loop(root: Path) -> str:
    (root / "var/lib/kubelet/link").symlink_to("link")
    return "cannot be saved: Too many levels of symbolic links; nothing was changed"


def directory(root: Path) -> str:
    (root / "var/lib/kubelet/link").mkdir()
    return "is not a regular file"


def fifo(root: Path) -> str:
    os.mkfifo(root / "var/lib/kubelet/link")
    return "is not a regular file"


def test_what_cannot_be_saved_is_named(copy_of: CopyOf) -> None:
    """A link to nothing among the files of a change and its like end in a message, not in a traceback."""
    cases: dict[str, tuple[Path, str, str, str]] = {}
    for bad in (dangling, loop, directory, fifo):
        root = copy_of("xeon", bad.__name__)
        cases[bad.__name__] = (root, "/var/lib/kubelet/link", bad(root), str(root / "var/lib/kubelet/link"))
    for name, path in (("nul", "/var/lib/kubelet/\0"), ("relative", "config.yaml")):
        cases[name] = (copy_of("xeon", name), path, "is not ", "")
    for name, (root, path, message, where) in cases.items():
        with pytest.raises(CPUManagerError) as caught:
            note(Tree(str(root)), JournalStep("changing", files=[path]))
        assert message in str(caught.value), name
        assert not where or caught.value.where == where
        assert caught.value.remedy or name == "nul", name
        assert not Path(str(root) + JOURNAL).exists()

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an earlier version wrote: this one reads it, and undoes what it says. See docs/docsite/rst/compatibility.rst.

kept/VERSION has what a version wrote, each set as the files of a node or of a controller. `make keep` writes those of
the version that is checked out, by its own playbooks.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import CACHE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches import cache_partition
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.exclusive import read_promise
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import (
    PublishedCPUs,
    content_of,
    read_said,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.promises import promise
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.support.others import as_root

from .bad_nodes import CONFIG, CONFIGURATION, MACHINE, checkpoint, text
from .conftest import CHECKOUT, Run, ansible_playbook, fingerprint, play, task

KEPT = Path(__file__).parent / "kept"
VERSIONS = sorted(path.name for path in KEPT.iterdir())
HOST = "worker-1"
POD, CONTAINER = "9c2f4e3a-7d1b-4e0a-8f55-2b6d1c3e9a10", "db"
PUBLISHED = "run/kubenode/cpus/%s/%s.json" % (POD, CONTAINER)
GIVEN = CPUSet.parse("1,5")
# No cluster, no service, and no program of the kubelet.
ALONE = {"kubelet_drain": False, "kubelet_manage_service": False, "kubelet_trial": "never"}
WANTED = {"kubelet_reserved_system_cpus": "0-1,4-5", "kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true"}}
HOUSEKEEPING = {"housekeeping_layers": ["slices", "interrupts"], "housekeeping_persistent": False}
JSON = {"drift_report_forms": ["json"]}

pytestmark = as_root


def run(directory: Path, playbook: Any, root: Path, *arguments: str, **more: Any) -> Run:
    hosts = {HOST: {"kubelet_node_root": str(root), **ALONE, **more}}
    return ansible_playbook(directory, playbook, hosts, *arguments)


def done(directory: Path, playbook: Any, root: Path, **more: Any) -> Run:
    """Return a run that has to succeed."""
    result = run(directory, playbook, root, **more)
    assert result.status == 0, result.account()
    return result


def node(root: Path, kept: Path | None = None) -> Path:
    """Return the node as it was before, with what was kept of it."""
    write_machine(root, MACHINE)
    housekept.write_node(root)
    (root / "var/lib/kubelet").mkdir()
    text(CONFIG, CONFIGURATION)(root)
    checkpoint("static", "0-7")(root)
    if kept is not None:
        shutil.copytree(kept, root, dirs_exist_ok=True)
        for path in root.rglob("var/lib/kubenode-cpu-manager"):
            path.chmod(0o700)
    return root


def keep(directory: Path, kept: Path) -> None:
    """Let this version write each set."""
    rolled_out = node(directory / "rolled_out")
    interrupted = node(directory / "interrupted")
    housekeeping = node(directory / "housekeeping")
    before = fingerprint(rolled_out)
    done(directory / "run", "kubenode.cpu_manager.rollout", rolled_out, **WANTED)
    begun = {"root": str(interrupted), "run": "one"}
    begin = [
        task("rollout_journal", **begun, state="stopping"),
        task("rollout_journal", **begun, state="changing", files=["/" + CONFIG]),
        task("kubelet_config", **begun, reserved_system_cpus="0-1,4-5"),
    ]
    done(directory / "run", play(*begin), interrupted)
    done(directory / "run", "kubenode.cpu_manager.housekeeping", housekeeping, **HOUSEKEEPING)
    for root in (rolled_out, interrupted, housekeeping):
        for name, mark in fingerprint(root).items():
            # Backups are for people.
            if (root / name).is_file() and before.get(name) != mark and not name.endswith("~"):
                (kept / root.name / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, kept / root.name / name)

    run_directory = directory / "report"
    done(run_directory, "kubenode.cpu_manager.drift_report", rolled_out, kubelet_reserved_system_cpus="0,4", **JSON)
    shutil.copytree(run_directory / "drift-report", kept / "report")
    done(directory / "save", "kubenode.cpu_manager.save", rolled_out)
    shutil.copytree(directory / "save" / "saved-nodes", kept / "saved")

    promise(kept / "promised", {(POD, CONTAINER): str(GIVEN)}, "0,2-4,6-7")
    entry = PublishedCPUs(POD, CONTAINER, GIVEN, True, "dynamic", GIVEN)
    (kept / "promised" / PUBLISHED).parent.mkdir(parents=True)
    topology = read_sysfs(Tree(str(rolled_out)))
    (kept / "promised" / PUBLISHED).write_bytes(content_of(entry, topology.online, topology, 1.0))
    wish = cache_partition.wish_of({"exclusive_share": 4})
    cache = cache_partition.CacheJournal(wish, "boot", "L3", {0: 0x7FF}, {0: (0x7F0,)}, True)
    (kept / "promised" / CACHE[1:]).parent.mkdir(parents=True)
    (kept / "promised" / CACHE[1:]).write_text(cache_partition.text_of(cache), encoding="utf-8")


if "KEEP" in os.environ:

    def test_this_version_is_kept(tmp_path: Path) -> None:
        version = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text("utf-8"))["version"]
        shutil.rmtree(KEPT / version, ignore_errors=True)
        keep(tmp_path, KEPT / version)


def changed(root: Path, before: dict[str, str]) -> set[str]:
    """Return which of the files that were there before are not as they were."""
    after = fingerprint(root)
    return {name for name, mark in before.items() if after.get(name) != mark}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kept", "playbook"), [("rolled_out", "rollback"), ("interrupted", "repair")])
def test_a_change_that_ended_and_one_that_did_not_are_taken_back(
    version: str, kept: str, playbook: str, tmp_path: Path
) -> None:
    before = fingerprint(node(tmp_path / "before"))
    root = node(tmp_path / "node", KEPT / version / kept)
    assert changed(root, before) == {CONFIG}
    done(tmp_path / "run", "kubenode.cpu_manager." + playbook, root)
    assert changed(root, before) == set()
    assert not (root / "var/lib/kubenode-cpu-manager/change.json").exists()


@pytest.mark.parametrize("version", VERSIONS)
def test_housekeeping_is_taken_back(version: str, tmp_path: Path) -> None:
    before = fingerprint(node(tmp_path / "before"))
    root = node(tmp_path / "node", KEPT / version / "housekeeping")
    assert changed(root, before)
    done(tmp_path / "run", "kubenode.cpu_manager.housekeeping", root, **HOUSEKEEPING, housekeeping_state="absent")
    assert changed(root, before) == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_results_and_a_report_are_read(version: str, tmp_path: Path) -> None:
    sources = KEPT / version / "report"
    baseline = sources / "drift.json"
    given = {"drift_report_sources": [str(sources)], "drift_report_baseline": str(baseline), **JSON}
    merged = run(tmp_path / "run", "kubenode.cpu_manager.report", tmp_path, "-e", json.dumps(given))
    assert merged.status == 0, merged.account()
    made, kept = (json.loads(file.read_text("utf-8")) for file in (tmp_path / "run/drift-report/drift.json", baseline))
    assert made["problems"] == []
    (shown,), (earlier,) = made["nodes"], kept["nodes"]
    assert [found["check"] for found in shown["findings"]] == [found["check"] for found in earlier["findings"]]
    assert "reservation-differs" in [found["check"] for found in shown["findings"]]
    assert {found["since"] for found in shown["findings"]} == {"known"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_saved_node_is_read(version: str, tmp_path: Path) -> None:
    archive = KEPT / version / "saved" / (HOST + ".tar.gz")
    answer = done(tmp_path, play(task("drift_info", root=str(archive))), archive).last(HOST)
    assert answer["cpus"]["reserved"] == "0-1,4-5"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_remembered_of_containers_and_caches_is_read(version: str, tmp_path: Path) -> None:
    root = node(tmp_path / "node", KEPT / version / "promised")
    found, _content = read_promise(Tree(str(root)))
    assert found is not None
    assert found.state.containers[POD, CONTAINER].cpus == GIVEN.mask
    said = read_said((root / PUBLISHED).read_bytes())
    assert said is not None
    assert (said.cpus, said.exclusive, said.by, said.since) == (GIVEN, True, "dynamic", 1.0)
    journal = cache_partition.read_journal(Tree(str(root)))
    assert journal is not None
    assert (journal.former, journal.ours, journal.is_mounted) == ({0: 0x7FF}, {0: (0x7F0,)}, True)

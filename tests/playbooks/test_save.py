# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook save: one archive a node, whole or not at all, and every module takes it as its root."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import LARGEST

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task
from .hostile_python import hostile_python

SAVE = "kubenode.cpu_manager.save"
NODES = ("xeon", "epyc", "edge")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield where nodes and this machine keep what is for a moment; nothing is left there."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    assert list(directory.glob("kubenode-*")) == []


pytestmark = pytest.mark.usefixtures("temporary")


def test_a_fleet_is_saved_and_read(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {node: {"kubelet_node_root": str(copy_of(node, node))} for node in NODES}
    before = fingerprint(tmp_path / "nodes")

    check = ansible_playbook(tmp_path / "check", SAVE, hosts, "--check")
    assert check.status == 0, check.account()
    assert not (tmp_path / "check/saved-nodes").exists()

    run = ansible_playbook(tmp_path / "run", SAVE, hosts)
    assert run.status == 0, run.account()
    saved = tmp_path / "run/saved-nodes"
    assert sorted(path.name for path in saved.iterdir()) == sorted(node + ".tar.gz" for node in NODES)
    assert saved.stat().st_mode & 0o777 == 0o700
    for node in NODES:
        archive = saved / (node + ".tar.gz")
        assert archive.stat().st_mode & 0o777 == 0o600
        answer = next(result for result in run.results[node] if "sha256" in result)
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == answer["sha256"]
        assert answer["left_out"] == []
    assert fingerprint(tmp_path / "nodes") == before

    # Every module says the same of the archive.
    tasks = [task("drift_info", root="{{ root }}"), task("rollout_info", root="{{ root }}", cpu_manager_policy="none")]
    on_nodes = ansible_playbook(
        tmp_path / "nodes-read",
        play(*tasks),
        {node: {"root": host["kubelet_node_root"]} for node, host in hosts.items()},
    )
    on_archives = ansible_playbook(
        tmp_path / "archives-read", play(*tasks), {node: {"root": str(saved / (node + ".tar.gz"))} for node in NODES}
    )
    assert on_nodes.status == on_archives.status == 0, on_archives.account()
    for node in NODES:
        for expected, found in zip(on_nodes.results[node], on_archives.results[node]):
            assert named(found, "%s:" % (saved / (node + ".tar.gz"))) == named(
                expected, hosts[node]["kubelet_node_root"]
            )


def test_the_report_says_the_same_of_the_archives(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {node: {"kubelet_node_root": str(copy_of(node, node))} for node in NODES}
    run = ansible_playbook(tmp_path / "run", SAVE, hosts)
    assert run.status == 0, run.account()
    archives = {node: str(tmp_path / "run/saved-nodes" / (node + ".tar.gz")) for node in NODES}
    # On a saved node no time passes: throttling is counted from the start of each cgroup.
    looks = {"drift_report_look_at": ["throttling", "housekeeping", "cache"], "drift_report_look_seconds": 0}
    said = {}
    for name, roots in (
        ("nodes", {node: host["kubelet_node_root"] for node, host in hosts.items()}),
        ("archives", archives),
    ):
        places = {node: {"kubelet_node_root": root} for node, root in roots.items()}
        reported = ansible_playbook(
            tmp_path / name, "kubenode.cpu_manager.drift_report", places, "-e", json.dumps(looks)
        )
        assert reported.status == 0, reported.account()
        report = json.loads((tmp_path / name / "drift-report/drift.json").read_text("utf-8"))
        assert [node["host"] for node in report["nodes"] if len(node["looks"]) != 3] == []
        said[name] = {node["host"]: {**node, "looked_at": ""} for node in report["nodes"]}
        said[name] = {host: named(named(node, roots[host] + ":"), roots[host]) for host, node in said[name].items()}
    assert said["archives"] == said["nodes"]


def named(value: Any, root: str) -> Any:
    if isinstance(value, str):
        return value.replace(root, "").replace(root.rstrip(":"), "")
    if isinstance(value, dict):
        return {key: named(item, root) for key, item in value.items()}
    return [named(item, root) for item in value] if isinstance(value, list) else value


def test_a_second_archive_takes_the_place_of_the_first(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("epyc", "epyc")
    hosts = {"epyc": {"kubelet_node_root": str(root), "cpu_manager_save_directory": str(tmp_path / "there")}}
    archives = []
    for redact in ("false", "true"):
        run = ansible_playbook(tmp_path / redact, SAVE, hosts, "-e", "cpu_manager_save_redact=" + redact)
        assert run.status == 0, run.account()
        with tarfile.open(tmp_path / "there/epyc.tar.gz") as opened:
            archives.append(opened.getnames())
    assert any("/log/containers/postgres-0_" in name for name in archives[0])
    assert not any("postgres-0" in name for name in archives[1])


def test_a_node_names_no_file_of_this_machine_and_fills_no_disk(copy_of: CopyOf, tmp_path: Path) -> None:
    """Whatever a node answers, its archive has a limit, and comes to the one place that the operator has named."""
    secret = tmp_path / "secret"
    secret.write_text("of this machine\n", encoding="utf-8")
    named_by_node = {"dest": str(secret), "path": str(secret), "src": "/dev/zero", "local_dest": str(tmp_path / "x")}
    answers: dict[str, dict[str, Any]] = {
        "names-files": named_by_node,
        "endless": {"dest": "/dev/zero", "content": "A" * (LARGEST // 3 * 4 + 4)},
        "number": {"content": 7},
        "text": {"content": "no base64!"},
        # Each once was a task.
        "many": {"files": [{"path": "/nonexistent", "uid": 0}] * 200},
    }
    hosts = {
        name: {
            "kubelet_node_root": str(copy_of("edge", name)),
            **hostile_python(tmp_path / "pythons" / name, answer, {"node_save"}),
        }
        for name, answer in answers.items()
    }
    run = ansible_playbook(tmp_path / "run", SAVE, hosts)
    assert run.status == 2, run.account()
    saved = tmp_path / "run/saved-nodes"
    assert sorted(path.name for path in saved.iterdir()) == ["many.tar.gz", "names-files.tar.gz"]
    assert tarfile.is_tarfile(saved / "names-files.tar.gz")
    assert not (tmp_path / "x").exists()
    said = {name: str([result.get("msg") for result in run.results[name]]) for name in hosts}
    assert "has more than %d bytes" % LARGEST in said["endless"]
    assert "answers without an archive" in said["number"]
    assert "is no base64" in said["text"]
    assert len(run.results["many"]) == len(run.results["names-files"])
    assert "content" not in {key for results in run.results.values() for result in results for key in result}


def test_a_failure_leaves_nothing(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("xeon", "xeon")
    (tmp_path / "file").write_text("in the way\n", encoding="utf-8")
    hosts: dict[str, dict[str, Any]] = {
        "nowhere": {"kubelet_node_root": str(tmp_path / "nothing")},
        "in the way/..": {"kubelet_node_root": str(root), "cpu_manager_save_directory": str(tmp_path / "file")},
        # Two hosts, and two archives.
        "rack/1": {"kubelet_node_root": str(root)},
        "rack_1": {"kubelet_node_root": str(root)},
    }
    run = ansible_playbook(tmp_path / "run", SAVE, hosts)
    assert run.status == 2, run.account()
    assert "no such directory" in str([result.get("msg") for result in run.results["nowhere"]])
    saved = tmp_path / "run/saved-nodes"
    assert sorted(path.name for path in saved.iterdir()) == ["rack%2F1.tar.gz", "rack_1.tar.gz"]
    assert (tmp_path / "file").read_text("utf-8") == "in the way\n"


def test_what_would_change_an_archive_is_refused(copy_of: CopyOf, tmp_path: Path) -> None:
    archive = tmp_path / "run/saved-nodes/xeon.tar.gz"
    run = ansible_playbook(tmp_path / "run", SAVE, {"xeon": {"kubelet_node_root": str(copy_of("xeon", "xeon"))}})
    assert run.status == 0, run.account()
    content = archive.read_bytes()
    hosts = {"node": {"root": str(archive)}}
    wanted = {"cpu_manager_policy": "static", "reservation": {"count": 2}}
    modules: dict[str, dict[str, Any]] = {
        "kubelet_config": wanted,
        "checkpoint": {"discard_assignments": True},
        "kubelet_change": {"step": "begin_drain", "run": "first", "facts": {"node": "xeon"}},
        "node_save": {"dest": str(tmp_path / "again.tar.gz")},
    }
    tasks = [
        {**task(module, module, root="{{ root }}", **parameters), "ignore_errors": True}
        for module, parameters in modules.items()
    ]
    refused = ansible_playbook(tmp_path / "refused", play(*tasks), hosts)
    checked = ansible_playbook(tmp_path / "checked", play(*tasks), hosts, "--check")
    for module, result, plan in zip(modules, refused.results["node"], checked.results["node"]):
        assert result["failure"]["kind"] == "read_only", module
        assert "unpack it into a directory" in result["failure"]["remedy"]
        assert "failure" not in plan, module
        assert plan["changed"], module
    assert archive.read_bytes() == content
    assert not (tmp_path / "again.tar.gz").exists()


def test_a_damaged_archive_is_one_clear_error(copy_of: CopyOf, tmp_path: Path) -> None:
    run = ansible_playbook(tmp_path / "run", SAVE, {"xeon": {"kubelet_node_root": str(copy_of("xeon", "xeon"))}})
    assert run.status == 0, run.account()
    archive = tmp_path / "run/saved-nodes/xeon.tar.gz"
    cut, text = tmp_path / "cut.tar.gz", tmp_path / "text.tar.gz"
    cut.write_bytes(archive.read_bytes()[:-100])
    text.write_bytes(gzip.compress(b"no archive" * 100))
    hosts = {"cut": {"root": str(cut)}, "text": {"root": str(text)}}
    failed = ansible_playbook(tmp_path / "failed", play(task("drift_info", root="{{ root }}")), hosts)
    assert failed.last("cut")["msg"].startswith(
        "root %s: is cut off; save the node again, copy the archive again" % cut
    )
    assert "is no archive of tar" in failed.last("text")["msg"]
    assert {failed.last(host)["failure"]["kind"] for host in hosts} == {"node"}


def test_a_rollout_of_an_archive_is_refused_with_its_plan(copy_of: CopyOf, tmp_path: Path) -> None:
    """Nothing can be written there. What only plans, and check mode, are for archives, too."""
    hosts = {"epyc": {"kubelet_node_root": str(copy_of("epyc", "epyc"))}}
    saved = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.save", hosts)
    assert saved.status == 0, saved.account()
    archive = str(tmp_path / "run/saved-nodes/epyc.tar.gz")
    hosts = {"epyc": {"kubelet_node_root": archive, "kubelet_cpu_manager_reconcile_period": "7s"}}
    for playbook, arguments in (("plan_changes", ()), ("rollout", ("--check",))):
        run = ansible_playbook(tmp_path / playbook, "kubenode.cpu_manager." + playbook, hosts, *arguments)
        assert run.status == 0, run.account()
    run = ansible_playbook(tmp_path / "refused", "kubenode.cpu_manager.rollout", hosts)
    assert run.status == 2, run.account()
    assert "an archive is read-only, and something in it would change" in run.last("epyc")["msg"]
    assert "Make sure that this batch can be changed" not in run.output

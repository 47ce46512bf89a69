# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_containers/crictl.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers import crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import (
    Crictl,
    find_crictl,
    find_names,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

PS = """{"containers": [
  {"id": "a1", "podSandboxId": "b1", "metadata": {"name": "server", "attempt": 1}, "state": "CONTAINER_RUNNING",
   "labels": {"io.kubernetes.pod.name": "db-0", "io.kubernetes.pod.namespace": "shop"}},
  {"id": "a2", "metadata": {"name": "stray"}, "labels": null}
]}"""


def test_names_and_writes() -> None:
    calls: list[Sequence[str]] = []

    def run(arguments: Sequence[str]) -> str:
        calls.append(arguments)
        return PS

    runtime = Crictl("/usr/bin/crictl", "unix:///run/crio/crio.sock", run)
    runtime.read()
    assert runtime.names == {"a1": ("shop/db-0", "server"), "a2": ("", "stray")}
    assert [runtime.serves(container) for container in ("a1", "b1")] == [True, False]
    runtime.set_cpus("a1", CPUSet((1, 2, 5)))
    command = ["/usr/bin/crictl", "--runtime-endpoint", "unix:///run/crio/crio.sock"]
    assert calls == [[*command, "ps", "-o", "json"], [*command, "update", "--cpuset-cpus", "1-2,5", "a1"]]


def test_names_where_there_are_no_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Crictl("crictl", None, lambda _arguments: PS)
    monkeypatch.setattr(crictl, "find_crictl", lambda _tree, _endpoint: runtime)
    tree = Tree(str(tmp_path))
    assert find_names(tree) == ({"a1": ("shop/db-0", "server"), "a2": ("", "stray")}, True)
    hidden, all_named = find_names(tree, hide_names=True)
    assert all_named
    assert set(hidden) == {"a1", "a2"}
    assert not {"shop/db-0", "server", "stray"} & {name for names in hidden.values() for name in names}
    monkeypatch.setattr(crictl, "find_crictl", lambda _tree, _endpoint: None)
    assert find_names(tree) == ({}, False)
    broken = Crictl("crictl", None, lambda _arguments: "")
    monkeypatch.setattr(crictl, "find_crictl", lambda _tree, _endpoint: broken)
    assert find_names(tree) == ({}, False)


def test_no_container_at_all() -> None:
    runtime = Crictl("crictl", None, lambda _arguments: '{"containers": null}')
    runtime.read()
    assert (runtime.names, runtime.failure) == ({}, "")


DEEP = "[" * 100_000
NAMED = '{"containers": [{"id": "a1", "labels": "io.kubernetes.pod.name"}]}'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"containers": [{}]}', '{"containers": [1]}', '{"containers": 1}', DEEP, NAMED]
)
def test_what_cannot_be_read_is_a_failure(text: str) -> None:
    runtime = Crictl("crictl", None, lambda _arguments: text)
    runtime.read()
    assert runtime.failure.startswith("crictl ps: what it prints cannot be read")
    assert runtime.serves("a1")
    with pytest.raises(NodeError, match="cannot be read"):
        runtime.set_cpus("a1", CPUSet((1,)))


def test_it_is_found_on_a_live_node_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "crictl"
    command.write_text("#!/bin/sh\nprintf '{\"containers\": []}'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    assert find_crictl(Tree(str(tmp_path))) is None
    runtime = find_crictl(Tree())
    assert runtime is not None
    runtime.read()
    assert (runtime.names, runtime.failure) == ({}, "")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setattr(crictl, "_MORE_PLACES", str(tmp_path / "nowhere"))
    assert find_crictl(Tree()) is None


PODS = """{"items": [
  {"id": "b1", "labels": {"io.kubernetes.pod.uid": "u1"}, "annotations": {"cpu-manager.kubenode/elastic": "2-8"}},
  {"id": "b2", "labels": {"io.kubernetes.pod.uid": "u2"}, "annotations": null},
  {"id": "b3", "labels": null}
]}"""


def test_sandboxes() -> None:
    runtime = Crictl("crictl", None, lambda _arguments: PODS)
    assert runtime.sandboxes() == [("b1", "u1", {"cpu-manager.kubenode/elastic": "2-8"}), ("b2", "u2", {})]
    assert Crictl("crictl", None, lambda _arguments: '{"items": null}').sandboxes() == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"items": [1]}', '{"items": 1}', '{"items": [{"labels": [1]}]}', DEEP]
)
def test_sandboxes_that_cannot_be_read(text: str) -> None:
    runtime = Crictl("crictl", None, lambda _arguments: text)
    assert runtime.sandboxes() == []
    assert runtime.failure.startswith("crictl pods: what it prints cannot be read")
    assert runtime.sandboxes() == []


def test_shares() -> None:
    text = '{"info": {"runtimeSpec": {"linux": {"resources": {"cpu": {"shares": 2048}}}}}}'
    answers = {"crictl inspect -o json a1": text}
    assert Crictl("crictl", None, lambda arguments: answers[" ".join(arguments)]).shares("a1") == 2048
    for memory, limit in (("{}", None), ('{"limit": 0}', None), ('{"limit": true}', None), ('{"limit": 4096}', 4096)):
        more = text.replace('"cpu"', '"memory": %s, "cpu"' % memory)
        assert Crictl("crictl", None, lambda _arguments, more=more: more).made_with("a1") == (2048, limit)  # type: ignore[misc]
    for wrong in (
        "",
        "{}",
        DEEP,
        text.replace("2048", "true"),
        text.replace("2048", '"many"'),
        text.replace("linux", "x"),
    ):
        with pytest.raises(NodeError, match="crictl inspect"):
            Crictl("crictl", None, lambda _arguments, wrong=wrong: wrong).shares("a1")  # type: ignore[misc]

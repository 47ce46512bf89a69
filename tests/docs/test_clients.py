# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The clients on the page of the policy dynamic, run: they see each change of a container's file, and answer."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Iterable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.acting import VOLUME, has_left
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import (
    OURS,
    PLACE,
    PublishedCPUs,
    Publishing,
    opened,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine

from .pages import CHECKOUT, blocks

PAGE = CHECKOUT / "docs" / "docsite" / "rst" / "dynamic.rst"
MACHINE = describe_machine("1 socket x 4 cores x 2 threads")
INTERPRETERS = {"python": [sys.executable, "-c"], "shell": ["sh", "-c"]}
UNTIL = 1763971000.25
# Seconds. The one in shell looks once in each, and this machine may be busy.
PATIENCE = 60


def client(language: str) -> str:
    (text,) = (block.text for block in blocks(PAGE) if block.language == language and "/cpus/app.json" in block.text)
    return text


def publish(root: Path, cpus: str, until: float | None = None) -> None:
    entry = PublishedCPUs("uid", "app", CPUSet.parse(cpus), True, OURS, CPUSet.parse("4-7"), CPUSet(), until)
    with opened(Tree(str(root))) as directory:
        Publishing(directory, MACHINE.online, lambda: MACHINE, 1.0).put(entry)


def pass_on(stream: Iterable[str], lines: Queue[str]) -> None:
    for line in stream:
        lines.put(line)


@pytest.mark.parametrize("language", INTERPRETERS)
def test_a_client(language: str, tmp_path: Path) -> None:
    answers = tmp_path / "var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir" / VOLUME
    answers.mkdir(parents=True)
    publish(tmp_path, "4-7")
    text = client(language).replace("/cpus", str(tmp_path / PLACE[1:] / "uid")).replace("/answers", str(answers))
    process = subprocess.Popen([*INTERPRETERS[language], text], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines: Queue[str] = Queue()
    reader = threading.Thread(target=pass_on, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        assert lines.get(timeout=PATIENCE).split()[0] == "4-7"
        assert not has_left(Tree(str(tmp_path)), "/var/lib/kubelet", "uid", "app", UNTIL)
        publish(tmp_path, "4-5", UNTIL)
        line = lines.get(timeout=PATIENCE).split()
        assert (line[0], float(line[1])) == ("4-5", UNTIL)
        end = time.monotonic() + PATIENCE
        while not has_left(Tree(str(tmp_path)), "/var/lib/kubelet", "uid", "app", UNTIL):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()

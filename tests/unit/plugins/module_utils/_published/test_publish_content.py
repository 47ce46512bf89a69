# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_published/publish.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import (
    OURS,
    PublishedBefore,
    PublishedCPUs,
    content_of,
    head_of,
    is_name,
    read_said,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine

MACHINE = describe_machine("2 sockets x 2 L3 caches x 2 cores x 2 threads")
ONLINE = MACHINE.online


def entry(cpus: str, **more: Any) -> PublishedCPUs:
    return PublishedCPUs("uid", "app", CPUSet.parse(cpus), True, OURS, CPUSet.parse(cpus))._replace(**more)


def test_the_whole_file() -> None:
    content = content_of(entry("4-5,12"), ONLINE, MACHINE, 1000.5)
    assert json.loads(content) == {
        "version": 1,
        "pod": "uid",
        "container": "app",
        "cpus": "4-5,12",
        "exclusive": True,
        "by": "reconcile",
        "effective": "4-5,12",
        "leaving": "",
        "until": None,
        "online": "0-15",
        "siblings": ["4,12", "5,13"],
        "numa_nodes": {"1": "4-5,12"},
        "l3_caches": {"2": "4-5,12"},
        "since": 1000.5,
    }
    # A shell finds each member on a line of its own.
    assert len(content.splitlines()) == 16


def test_what_is_announced() -> None:
    content = content_of(entry("4", leaving=CPUSet((5,)), until=2000.25), ONLINE, MACHINE, 1.0)
    data = json.loads(content)
    assert (data["cpus"], data["leaving"], data["until"]) == ("4", "5", 2000.25)
    assert read_said(content) == PublishedBefore(CPUSet((4,)), True, OURS, 2000.25, 1.0)


@pytest.mark.parametrize(
    "more",
    [
        {"cpus": CPUSet((1,))},
        {"exclusive": False},
        {"by": "kubelet"},
        {"effective": CPUSet((1,))},
        {"leaving": CPUSet((4,))},
        {"until": 1.0},
    ],
)
def test_the_beginning_differs_where_anything_does(more: dict[str, Any]) -> None:
    content = content_of(entry("4-5"), ONLINE, MACHINE, 1.0)
    assert content.startswith(head_of(entry("4-5"), ONLINE))
    assert not content.startswith(head_of(entry("4-5")._replace(**more), ONLINE))
    assert not content.startswith(head_of(entry("4-5"), CPUSet((0, 4, 5))))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"cpus": 1, "exclusive": true, "by": "x", "until": null, "since": 1}',
        b"[" * 5000,
        b'{"cpus": "1", "exclusive": true, "by": "x", "until": 1%s, "since": 1}' % (b"0" * 400),
        b'{"cpus": "1", "exclusive": true, "by": "x", "until": null, "since": 1%s}' % (b"0" * 5000),
        b'{"cpus": "1", "exclusive": true, "by": "x", "until": NaN, "since": 1}',
        b'{"cpus": "1", "exclusive": true, "by": "x", "until": null, "since": Infinity}',
    ],
)
def test_what_is_none_of_ours(content: bytes) -> None:
    assert read_said(content) is None


@pytest.mark.parametrize("name", ["app", "a", "0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4", "a.b_c", "A" * 100])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../up", "a/b", ".app", "-app", "app.", "a b", 'a"b', "a\nb", "app\n", "\u00e9", "a\0b", "a" * 101],
)
def test_names_that_are_none(name: str) -> None:
    assert not is_name(name)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic_state.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import Pod, pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    ANNOTATION,
    ElasticRange,
    elastic_containers,
    parse_range,
)


def pod(*cpus: Any, uid: str = "u1") -> Pod:
    """Return a Guaranteed pod with a container for each of these requests, named c0, c1..."""
    return pod_from_manifest(
        {
            "metadata": {"name": "db", "uid": uid},
            "spec": {
                "containers": [
                    {"name": "c%d" % number, "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}}
                    for number, cpu in enumerate(cpus)
                ]
            },
        }
    )


@pytest.mark.parametrize(("text", "least", "most"), [("2-8", 2, 8), ("1-2", 1, 2), ("16-65536", 16, 65536)])
def test_ranges(text: str, least: int, most: int) -> None:
    assert parse_range(text) == ElasticRange(least, most)


@pytest.mark.parametrize(
    "text",
    [
        # No range.
        *("", "8", "-8", "2-", "2--8", "2..8", "2-8-9", "2,8", "two-eight"),
        # Signs, blanks, leading zeros, other digits, line ends.
        *("+2-8", " 2-8", "2 - 8", "2-8\n", "02-8", "2-08", "0-8", "\u0662-8", "2\u20138"),
        # Nothing to grow in, and more than there can be.
        *("8-2", "4-4", "2-65537", "2-99999", "2-100000"),
        # No text.
        *(28, 2.8, None, ["2-8"], {"2": 8}, True),
    ],
)
def test_what_is_no_range_is_refused_and_says_what_to_write(text: object) -> None:
    with pytest.raises(InputError, match=ANNOTATION) as caught:
        parse_range(text)
    assert caught.value.kind == "input"
    assert caught.value.remedy


def test_the_containers_that_request_the_lower_end_are_elastic() -> None:
    assert elastic_containers(pod(2, 1, 2), {ANNOTATION: "2-8"}, 36) == ({"c0": 8, "c2": 8}, None)


def test_nobody_is_elastic_without_the_annotation() -> None:
    assert elastic_containers(pod(2), {"cpu-manager.kubenode/elastics": "2-8"}, 36) == ({}, None)


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        ((2,), "3-8"),  # nobody requests so many
        ((2,), "2 to 8"),
        (("2500m",), "2-8"),  # no whole CPUs: it has none to itself
    ],
)
def test_a_wrong_annotation_is_reported_and_nobody_is_elastic(cpus: Any, text: str) -> None:
    found = elastic_containers(pod(*cpus), {ANNOTATION: text}, 36)
    assert found.most == {}
    assert found.problem is not None
    assert str(found.problem).startswith("pod db: annotation %s: " % ANNOTATION)
    assert found.problem.kind == "input"


def test_a_pod_that_is_not_guaranteed_is_not_elastic() -> None:
    burstable = pod_from_manifest(
        {"metadata": {"name": "db"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}]}}
    )
    assert elastic_containers(burstable, {ANNOTATION: "2-8"}, 36).problem is not None

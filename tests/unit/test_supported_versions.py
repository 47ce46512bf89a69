# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pages, the metadata and the requirements say of supported versions is the same."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import (
    NEWEST_READ_MINOR,
    OLDEST_READ_MINOR,
)
from ansible_collections.kubenode.cpu_manager.tests.cluster import versions_run
from ansible_collections.kubenode.cpu_manager.tests.cluster.binaries import CONTROL_PLANE, KUBELET, PACKAGED
from ansible_collections.kubenode.cpu_manager.tests.matrix.cores import ROOT, supported
from ansible_collections.kubenode.cpu_manager.tests.matrix.pages import PAGE, README, Row, cores_of, pages
from ansible_collections.kubenode.cpu_manager.tests.support.pythons import VERSIONS

OLDEST = supported()[0]


def test_each_page_has_the_supported_cores() -> None:
    assert tuple(cores_of(README)) == supported()
    assert cores_of(PAGE) == cores_of(README)


def test_each_page_is_as_it_was_written() -> None:
    assert {path: path.read_text("utf-8") for path in (README, PAGE)} == pages(cores_of(README))


def test_each_promised_python_is_that_of_some_core() -> None:
    assert {python for row in cores_of(README).values() for python in row.nodes} == set(VERSIONS)


def test_the_oldest_core_is_the_one_that_the_metadata_requires() -> None:
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text("utf-8"))
    assert runtime["requires_ansible"] == ">=%s.0" % OLDEST


@pytest.mark.parametrize("role", sorted(path.name for path in (ROOT / "roles").iterdir()))
def test_the_oldest_core_is_the_one_that_a_role_requires(role: str) -> None:
    metadata = yaml.safe_load((ROOT / "roles" / role / "meta" / "main.yml").read_text("utf-8"))
    assert metadata["galaxy_info"]["min_ansible_version"] == OLDEST


def test_the_oldest_python_of_nodes_is_the_one_that_ansible_test_checks() -> None:
    config = yaml.safe_load((ROOT / "tests" / "config.yml").read_text("utf-8"))
    assert config["modules"]["python_requires"] == ">=" + VERSIONS[0]


def test_every_set_of_pythons_can_be_read_again(tmp_path: Path) -> None:
    for number in range(1, len(VERSIONS) + 1):
        for some in combinations(VERSIONS, number):
            for path, text in pages({"2.99": Row(some, VERSIONS)}).items():
                copy = tmp_path / path.name
                copy.write_text(text, encoding="utf-8")
                assert cores_of(copy) == {"2.99": Row(some, VERSIONS)}


def test_the_page_has_the_versions_of_kubernetes_that_were_run() -> None:
    found = versions_run.read()
    assert found
    assert {name for names in found.values() for name in names} <= set(versions_run.SHOWN)
    assert PAGE.read_text("utf-8") == versions_run.page(found)


def test_the_workflow_runs_each_version_of_kubernetes_that_is_known() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/kubernetes.yml").read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    minors = range(OLDEST_READ_MINOR, NEWEST_READ_MINOR + 1)
    assert job["strategy"]["matrix"]["kubernetes"] == ["1.%d" % minor for minor in minors]
    (getting,) = (step["run"] for step in job["steps"] if "https" in step.get("run", ""))
    assert "sha256sum --check" in getting
    for program in (*KUBELET, *CONTROL_PLANE):
        assert program in PACKAGED or program in getting

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_rollout/rollout_plan.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import SAID, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.systemd import has_service
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    Services,
    service_refusals,
    with_service_refusals,
)

OF = "service"


class Live(Tree):
    """A directory that is looked at as the files of this machine."""

    live = True


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in ("run/systemd/system", "usr/lib/systemd/system", "run/systemd/generator.late"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("usr/lib/systemd/system/kubelet.service", "usr/lib/systemd/system/worker@.service"):
        (tmp_path / path).write_text("[Service]\n", encoding="utf-8")
    (tmp_path / "run/systemd/generator.late/old.service").write_text("[Service]\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("service", ["kubelet", "kubelet.service", "worker@1", "worker@", "old"])
def test_a_service_that_systemd_has_may_be_stopped(root: Path, service: str) -> None:
    assert has_service(Tree(str(root)), service)
    assert service_refusals(Live(str(root)), service, OF) == []


@pytest.mark.parametrize("service", ["kubelt", "worker", "kubelet.timer", "../system/kubelet.x"])
def test_one_that_it_does_not_have_is_refused(root: Path, service: str) -> None:
    (refusal,) = service_refusals(Live(str(root)), service, OF)
    assert refusal.kind == "no_service"
    assert str(refusal) == "service: systemd has no service %s here; correct it, or remove it" % service


def test_without_systemd_nothing_is_said_of_services(root: Path) -> None:
    (root / "run/systemd/system").rmdir()
    assert service_refusals(Live(str(root)), "kubelt", OF) == []


@pytest.mark.parametrize("service", [None, ""])
def test_that_of_the_distribution_is_not_looked_for(root: Path, service: str | None) -> None:
    assert service_refusals(Live(str(root)), service, OF) == []


def test_a_saved_node_has_no_service_but_one_that_is_named(root: Path) -> None:
    (refusal,) = service_refusals(Tree(str(root)), None, OF)
    assert refusal.kind == "saved_node"
    assert str(refusal) == (
        "manage_service: %s is a saved node, and the service would be one of the machine that has its files; remove it:"
        " the services of a saved node run elsewhere" % root
    )
    assert service_refusals(Tree(str(root)), "kubelet-of-a-test", OF) == []
    (root / SAID.lstrip("/")).write_text("{}", encoding="utf-8")
    (refusal,) = service_refusals(Tree(str(root)), "kubelet-of-a-test", OF)
    assert refusal.kind == "saved_node"


NOTHING: dict[str, Any] = {"actions": [], "journal": None, "runtime": None, "refusals": []}
STOPPING = {**NOTHING, "actions": ["stop_kubelet", "start_kubelet"]}
RUNTIME = {"runtime": {"service": "containerd"}}


@pytest.mark.parametrize(
    ("plan", "services", "missing"),
    [
        (NOTHING, Services(None, None), []),
        (STOPPING, Services(None, None), ["service"]),
        (STOPPING, Services("mine", None), []),
        # A change of the runtime alone stops the kubelet, too.
        ({**STOPPING, **RUNTIME}, Services(None, "its"), ["service"]),
        ({**STOPPING, **RUNTIME}, Services("mine", None), ["runtime_service"]),
        ({**STOPPING, **RUNTIME}, Services("mine", ""), []),
        # What was interrupted is taken back.
        ({**NOTHING, "journal": {"facts": {}}}, Services(None, None), ["service"]),
        ({**NOTHING, "journal": {"facts": RUNTIME}}, Services(None, None), ["service", "runtime_service"]),
    ],
)
def test_a_plan_is_refused_for_each_service_that_it_stops(
    root: Path, plan: dict[str, Any], services: Services, missing: list[str]
) -> None:
    refusals = with_service_refusals(plan, Node(Tree(str(root))), services)["refusals"]
    remedy = "remove it: the services of a saved node run elsewhere"
    assert [refusal["remedy"] for refusal in refusals] == [remedy] * len(missing)
    assert {refusal["kind"] for refusal in refusals} <= {"saved_node"}

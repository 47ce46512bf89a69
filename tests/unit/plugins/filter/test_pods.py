# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/filter/pods.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubenode.cpu_manager.plugins.filter.pods import FilterModule

FILTERS = FilterModule().filters()
WEB: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u",
        "ownerReferences": [{"kind": "X", "controller": True}],
    },
    "spec": {"nodeName": "a", "containers": [{"name": "app", "resources": {"requests": {"cpu": "1500m"}}}]},
}


def test_verdict() -> None:
    verdict = FILTERS["drain_verdict"]([WEB], force=False, delete_emptydir_data=True)
    assert [judged["pod"] for judged in verdict["left"]] == ["shop/web"]
    assert (verdict["stay"], verdict["refused"]) == ([], [])


def test_identities() -> None:
    assert [identity["metadata"]["uid"] for identity in FILTERS["pod_identities"]([WEB])] == ["u"]


@pytest.mark.parametrize("name", FILTERS)
def test_what_are_no_pods(name: str) -> None:
    with pytest.raises(AnsibleFilterError):
        FILTERS[name]([1])


def test_each_is_documented() -> None:
    documented = {path.stem for path in (Path(__file__).parents[4] / "plugins" / "filter").glob("*.yml")}
    assert set(FILTERS) <= documented

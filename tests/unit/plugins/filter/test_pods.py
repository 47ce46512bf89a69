# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

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
    assert [one["pod"] for one in verdict["left"]] == ["shop/web"]
    assert (verdict["stay"], verdict["refused"]) == ([], [])


def test_identities() -> None:
    assert [one["metadata"]["uid"] for one in FILTERS["pod_identities"]([WEB])] == ["u"]


def test_shortage() -> None:
    assert FILTERS["cpu_shortage"]([], [WEB], ["b"]) == []
    node = {"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert FILTERS["cpu_shortage"]([node], [WEB], ["a"]) == [
        {"pod": "shop/web", "cpus": 1.5, "exclusive": 0, "text": "shop/web: 1.5 CPUs"}
    ]


@pytest.mark.parametrize("name", FILTERS)
def test_what_are_no_pods(name: str) -> None:
    with pytest.raises(AnsibleFilterError):
        FILTERS[name]([1], *([[1], ["a"]] if name == "cpu_shortage" else []))


def test_each_is_documented() -> None:
    documented = {path.stem for path in (Path(__file__).parents[4] / "plugins" / "filter").glob("*.yml")}
    assert set(FILTERS) <= documented

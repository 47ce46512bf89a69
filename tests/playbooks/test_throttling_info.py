# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What throttling_info tells of saved nodes with each kind of cgroups, as an operator calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import STYLES, V1, V2, CPUFiles
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import (
    DATABASE,
    LIMITED,
    OWN_PATH,
    SHARED_PATH,
    write_node,
)

from .conftest import ansible_playbook, fingerprint, play, task

OFF = "featureGates: {DisableCPUQuotaWithExclusiveCPUs: false}\n"
WITH_QUOTA = ("exclusive-cpus-with-quota", "shop/db-0/server")
THROTTLED = ("container-throttled", "shop/web-1/app")


def test_each_node(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    hosts: dict[str, dict[str, Any]] = {}
    for name, style in STYLES.items():
        write_node(nodes / name, style)
        hosts[name] = {"version": "1.32"}
    write_node(nodes / "gate", V2, more=OFF)
    hosts["gate"] = {"version": "1.35"}
    small = {**LIMITED, OWN_PATH: CPUFiles(150000, weight=174), DATABASE: CPUFiles(None, weight=79)}
    write_node(nodes / "small", V2, small, kernel="6.18.1")
    hosts["small"] = {"version": "1.35", "percent": 50}
    write_node(nodes / "unlimited", V1, {SHARED_PATH: CPUFiles(), OWN_PATH: CPUFiles()})
    write_node(nodes / "none", V2)
    (nodes / "none/sys/fs/cgroup/cgroup.controllers").write_text("cpuset\n")
    write_node(nodes / "sampled", V2)
    hosts.update({"unlimited": {}, "none": {}, "sampled": {"seconds": 3}})
    for name, variables in hosts.items():
        variables["root"] = str(nodes / name)
    look = task(
        "throttling_info",
        root="{{ root }}",
        kubelet_version="{{ version | default(omit) }}",
        throttled_percent="{{ percent | default(omit) }}",
        seconds="{{ seconds | default(omit) }}",
    )
    hide = task("throttling_info", root="{{ root }}", hide_names=True)
    before = fingerprint(nodes)
    run = ansible_playbook(tmp_path / "run", play(look, hide), hosts, "--check")
    assert run.status == 0, run.account()
    assert fingerprint(nodes) == before
    found = {name: results[0] for name, results in run.results.items()}
    checks = {name: [(row["check"], row["subject"]) for row in found[name]["findings"]] for name in found}
    assert checks == {
        **{name: [WITH_QUOTA, THROTTLED] for name in STYLES},
        "gate": [WITH_QUOTA, THROTTLED],
        "small": [("limit-below-request", "shop/db-0/server"), ("weights-by-two-formulas", "shop/db-0/server")],
        "unlimited": [],
        "none": [],
        "sampled": [WITH_QUOTA],
    }
    remedies = {name: found[name]["findings"][0]["remedy"] for name in ("v1", "gate", "sampled")}
    assert "bring it to 1.33 or later" in remedies["v1"]
    assert "DisableCPUQuotaWithExclusiveCPUs: false out of" in remedies["gate"]
    assert "give kubelet_version" in remedies["sampled"]
    assert {name: row["note_checks"] for name, row in found.items() if row["notes"]} == {
        "none": ["throttling-unmeasured"],
        "sampled": ["throttling-unmeasured"],
    }
    assert any("throttles tasks" in line for line in found["small"]["meaning"])
    for name, style in STYLES.items():
        assert found[name]["containers"][0]["limit"] == {"cgroup": OWN_PATH, "cpus": 2.0}
        assert found[name]["hierarchy"]["version"] == (2 if style is V2 else 1)
        assert not found[name]["changed"]
    for _plain, hidden in run.results.values():
        assert not any(name in str(hidden) for name in ("db-0", "web-1", "server", "shop/"))


def test_numbers_that_make_no_sense(tmp_path: Path) -> None:
    write_node(tmp_path / "node", V2)
    hosts = {"seconds": {"seconds": -1}, "throttled_percent": {"throttled_percent": 101}}
    wrong = task(
        "throttling_info",
        root=str(tmp_path / "node"),
        seconds="{{ seconds | default(0) }}",
        throttled_percent="{{ throttled_percent | default(25) }}",
    )
    run = ansible_playbook(tmp_path / "run", play(wrong), hosts)
    for name in hosts:
        result = run.last(name)
        assert result["failure"]["kind"] == "input"
        assert result["failure"]["where"] == name
        assert "give 0 to" in result["msg"]

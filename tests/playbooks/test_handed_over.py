# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets in pods that a playbook hands over, and in a kubelet's command line: in no output, with -vvv neither.

With -vvv, Ansible shows the arguments as the module had them on the node, which is what it logs there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .conftest import CopyOf, ansible_playbook, play, task
from .hostile_python import hostile_python

SECRET = "hunter2-of-somebody"
POD = {
    "metadata": {"name": "web", "uid": "u-1", "annotations": {"note": SECRET}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "args": [SECRET],
                "env": [{"name": "TOKEN", "value": SECRET}],
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            }
        ]
    },
}
WANTED = {"cpu_manager_policy": "static", "reserved_system_cpus": "0"}


def test_no_secret_is_shown_or_handed_over(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("xeon", "node")
    process = root / "proc/4711"
    process.mkdir(parents=True)
    words = [
        "/usr/bin/kubelet",
        "--config=/var/lib/kubelet/config.yaml",
        "--manifest-url-header=Authorization:" + SECRET,
    ]
    (process / "cmdline").write_text("".join(word + "\0" for word in words), encoding="utf-8")
    variables = {
        "kubelet_node_root": str(root),
        "kubelet_cpu_manager_policy": "none",
        "kubelet_drain": False,
        "kubelet_discard_assignments": True,
        "kubelet_manage_service": True,
        "kubelet_service": "kubelet",
        # With services that only seem to be there.
        **hostile_python(tmp_path / "python", {}),
    }
    common: dict[str, Any] = {"root": str(root), **WANTED, "pods": [POD]}
    tasks = [
        {**task("allocation_plan", **common), "register": "plan"},
        {**task("checkpoint", **common, state="present", allow_running_kubelet=True), "ignore_errors": True},
    ]
    role = {"name": "Change", "ansible.builtin.include_role": {"name": "kubenode.cpu_manager.kubelet"}}
    run = ansible_playbook(tmp_path / "run", play(*tasks, role), {"node": variables}, "--check", "-vvv")
    assert run.status == 0, run.account()
    results = run.results["node"]
    assert [container["container"] for container in results[0]["containers"]] == ["main"], run.account()
    plan = next(result for result in results if "actions" in result)
    assert plan["kubelet"]["command_line"] == [*words[:2], "--manifest-url-header=Authorization:redacted"]
    # It was handed over, to where the checkpoint is planned; of what fails, the header's name is not shown, either.
    assert run.output.count("--manifest-url-header=") > 1
    assert SECRET not in run.output
    assert SECRET not in (tmp_path / "run/results.jsonl").read_text(encoding="utf-8")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pod that saves a node without ssh runs on a virtual machine: a real kubelet, containerd, and runc have it.

There is no API server, so it is a static pod: the DaemonSet's, but with a directory in the place of the ConfigMap.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.kubenode.cpu_manager.tests.cluster.test_without_ssh import ANEW, MANIFEST, members
from ansible_collections.kubenode.cpu_manager.tests.playbooks.test_without_ssh import archive_in, build
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes
from ansible_collections.kubenode.cpu_manager.tests.vm import container

from .conftest import KubeletMachine

PODS, PROGRAM = "/etc/kubernetes/manifests", "/root/program"
LOG = "/var/log/pods/kubenode-save_save-*/save/*.log"
# Its Python, without what is compiled for other programs.
PYTHON = "bin lib lib64 usr/bin/python3* usr/lib64 usr/lib/python3* usr/lib/x86_64-linux-gnu/l*.so*"
CONFIGURATION = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "cgroupDriver": "systemd",
    "staticPodPath": PODS,
    "address": "127.0.0.1",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
}
EXCLUSIVE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "db", "namespace": "shop"},
    "spec": {
        "hostNetwork": True,
        "containers": [
            {
                "name": "db",
                "image": "localhost/busybox:1",
                "imagePullPolicy": "Never",
                "resources": {"limits": {"cpu": "1", "memory": "16Mi"}},
            }
        ],
    },
}
# Beside what a kernel says anew: the processes, of which each look has its own, and what is counted.
OF_PROCESSES = re.compile(
    "/proc/[0-9]+(/.*)?|/proc/(interrupts|softirqs|stat|uptime|vmstat)|.*/(cgroup.procs|cpu.stat)"
)
# Seconds.
PATIENCE = 300


def pod() -> tuple[dict[str, Any], str]:
    """Return the DaemonSet's pod as a static one; and the image that it has."""
    (daemon_set,) = (
        item for item in yaml.safe_load(MANIFEST.read_text("utf-8"))["items"] if item["kind"] == "DaemonSet"
    )
    template = daemon_set["spec"]["template"]
    for volume in template["spec"]["volumes"]:
        if volume.pop("configMap", None):
            volume["hostPath"] = {"path": PROGRAM, "type": "Directory"}
    named = {**template["metadata"], "name": "save", "namespace": daemon_set["metadata"]["namespace"]}
    (save,) = template["spec"]["containers"]
    # One of the machine's own, which has no digest before it is there.
    save["image"] = "python:kubenode"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": template["spec"]}, save["image"]


def printed(log: bytes) -> bytes:
    """Return what a container has printed, of the log that the runtime has written: time, stream, tag, text."""
    return b"".join(line.split(b" ", 3)[3] for line in log.splitlines(keepends=True))


def test_the_pod_prints_what_is_on_the_node(kubelet_machine: KubeletMachine, tmp_path: Path) -> None:
    run = kubelet_machine.run
    manifest, name = pod()
    build(tmp_path / "node-save.pyz")
    run("mkdir", "-p", PODS, PROGRAM, "/var/lib/kubelet")
    run("cat", ">", PROGRAM + "/node-save.pyz", given=(tmp_path / "node-save.pyz").read_bytes())
    run("cat", ">", "/var/lib/kubelet/config.yaml", given=yaml.safe_dump(CONFIGURATION).encode("utf-8"))
    layer = run("cd", "/", "&&", "tar", "-c", PYTHON)
    image = container.archive_of("docker.io/library/" + name, layer)
    run("ctr", "--namespace=k8s.io", "images", "import", "-", given=image)
    for file, what in (("db", EXCLUSIVE), ("save", manifest)):
        run("cat", ">", "%s/%s.json" % (PODS, file), given=json.dumps(what).encode("utf-8"))
    run("systemctl", "start", "kubelet")
    deadline = time.monotonic() + PATIENCE
    log = b""
    while b"kubenode-saved-node-ends" not in log:
        assert time.monotonic() < deadline, log + run("journalctl", "--unit=kubelet", "--lines=30", "--no-pager")
        time.sleep(2)
        log = run("cat", LOG, "2>", "/dev/null", "||", "true")
    found, said = members(archive_in(printed(log)))
    here = run("python3", "-I", "-B", PROGRAM + "/node-save.pyz", "/")
    expected, said_on_node = members(archive_in(here))

    state = json.loads(found["/var/lib/kubelet/cpu_manager_state"][2])
    assert [list(containers.values()) for containers in state["entries"].values()] == [["1"]]
    assert (said["said"]["version"], said["said"]) == (kubernetes.version(), said_on_node["said"])
    others = {path for path in {*found, *expected} if not (ANEW.fullmatch(path) or OF_PROCESSES.fullmatch(path))}
    assert len(others) > 100
    assert [path for path in sorted(others) if found.get(path) != expected.get(path)] == []
    # It waits, and was started once.
    assert run("ls", LOG.rpartition("/")[0]).split() == [b"0.log"]

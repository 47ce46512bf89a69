# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A benchmark as pods, on a real API server. Its node runs the commands of pods as processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import ansible_playbook

from .api import API, APIError, Object
from .control_plane import ControlPlane
from .node import ADDRESS

PLAYBOOK = "kubenode.cpu_manager.isolation_benchmark"
NAME = "bench-node"


class Processes:
    """A node whose pods are processes, with the server that a kubelet has for their logs. A context."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.api = API(control_plane.admin)
        self.started: dict[str, subprocess.Popen[str]] = {}
        self.logs: dict[str, str] = {}
        # The QoS classes of all that were started, in order.
        self.seen: list[tuple[str, str]] = []
        self._beaten = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._server = self._log_server(control_plane.directory)

    def _log_server(self, directory: Path) -> ThreadingHTTPServer:
        logs = self.logs

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = logs.get(self.path.partition("?")[0].split("/")[3], "").encode("ascii")
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_words: Any) -> None:  # pylint: disable=arguments-differ
                """Nobody reads it."""

        server = ThreadingHTTPServer((ADDRESS, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "server.crt", directory / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return server

    def __enter__(self) -> Processes:
        self.api.create("/api/v1/nodes", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": NAME}})
        status = {
            "capacity": {"cpu": "2", "memory": "4Gi", "pods": "10"},
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_address[1]}},
            "nodeInfo": dict.fromkeys(
                (
                    *("machineID", "systemUUID", "bootID", "osImage", "containerRuntimeVersion", "kubeletVersion"),
                    *("kubeProxyVersion", "operatingSystem", "architecture", "kernelVersion"),
                ),
                "6.1.0",
            ),
        }
        self.api.patch("/api/v1/nodes/%s/status" % NAME, {"status": status})
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._thread.join()
        for process in self.started.values():
            _end(process)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._server.shutdown()
        self._server.server_close()
        self.api.delete("/api/v1/nodes/" + NAME, {})
        self.api.__exit__()

    def _beat(self) -> None:
        """Say that the node is ready. Where nobody does for 40 seconds, it is taken for lost."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastHeartbeatTime": now}
        self.api.patch("/api/v1/nodes/%s/status" % NAME, {"status": {"conditions": [ready]}})
        self._beaten = time.monotonic()

    def _work(self) -> None:
        while not self._stopping.wait(0.1):
            if time.monotonic() - self._beaten > 10:
                self._beat()
            for pod in self.api.get("/api/v1/pods", fieldSelector="spec.nodeName=" + NAME)["items"]:
                try:
                    self._care_for(pod)
                except APIError as error:
                    if error.status != 404:  # it was deleted
                        raise

    def _care_for(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        process = self.started.get(name)
        if "deletionTimestamp" in pod["metadata"]:
            if process is not None:
                _end(process)
            self.api.delete(_path(pod), {"gracePeriodSeconds": 0})
        elif process is None:
            (container,) = pod["spec"]["containers"]
            command = [sys.executable, *container["command"][1:]]
            # As a container, it ends with all that it has started.
            self.started[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
            self.seen.append((container["name"], pod["status"]["qosClass"]))
            self._tell(pod, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
        elif pod["status"]["phase"] == "Running" and process.poll() is not None:
            self.logs[name] = process.communicate()[0]
            self._tell(pod, {"phase": "Failed" if process.returncode else "Succeeded"})

    def _tell(self, pod: Object, status: dict[str, Any]) -> None:
        self.api.patch(_path(pod) + "/status", {"status": status})


def _end(process: subprocess.Popen[str]) -> None:
    """End a pod's processes; the first one may have ended, and is not waited for yet."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _path(pod: Object) -> str:
    return "/api/v1/namespaces/%s/pods/%s" % (pod["metadata"]["namespace"], pod["metadata"]["name"])


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[Processes]:
    with Processes(control_plane) as up:
        yield up


def as_pods(control_plane: ControlPlane, namespace: str) -> dict[str, Any]:
    """The variables with which pods of this namespace measure."""
    return {
        "isolation_benchmark_as_pods": True,
        "isolation_benchmark_image": "registry.example/python:3",
        "isolation_benchmark_namespace": namespace,
        "isolation_benchmark_kubeconfig": str(control_plane.admin),
        "cpu_manager_become": False,
    }


def test_pods_are_measured_and_none_is_left(
    control_plane: ControlPlane, namespace: str, node: Processes, tmp_path: Path
) -> None:
    variables = {
        **as_pods(control_plane, namespace),
        "isolation_benchmark_experiments": ["aggressor"],
        "isolation_benchmark_runs": 1,
        "isolation_benchmark_units": 20,
        "isolation_benchmark_seed": 5,
    }
    # Of another benchmark, which goes on.
    another = {"app.kubernetes.io/name": "kubenode-isolation-benchmark", "app.kubernetes.io/instance": "another"}
    container = {"name": "main", "image": "a", "command": ["python3", "-c", "import time; time.sleep(600)"]}
    control_plane.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "another", "namespace": namespace, "labels": another},
            # It waits for a node: a pod on a node that is not there is deleted after a minute.
            "spec": {"nodeSelector": {"kubernetes.io/hostname": "another-node"}, "containers": [container]},
        }
    )
    run = ansible_playbook(tmp_path, PLAYBOOK, {NAME: variables})
    assert run.status == 0, run.account()
    assert node.seen[:2] == [("compute", "Guaranteed"), ("memory", "Guaranteed")]
    assert sorted(node.seen[2:]) == [
        ("aggressor", "Burstable"),
        ("aggressor", "Burstable"),
        ("victim", "Burstable"),
        ("victim", "Guaranteed"),
    ]
    report = json.loads((tmp_path / "isolation-benchmark" / "isolation.json").read_text(encoding="utf-8"))
    result = report["nodes"][0]["result"]
    assert {(row["workload"], row["qos_class"]) for row in result["rows"]} == {
        ("victim", "Guaranteed"),
        ("victim", "Burstable"),
    }
    # The pods of this node can use all CPUs of the machine, as with the policy none.
    assert (result["verdict"], {case["placement"] for case in result["cases"]}) == ([], {"shared"})
    assert any("could use CPUs" in note for note in result["notes"])
    left = control_plane.objects("pods", "--namespace=" + namespace)
    assert [pod["metadata"]["name"] for pod in left] == ["another"]
    # A node that has pods is left alone.
    control_plane.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "other", "namespace": namespace},
            "spec": {
                "nodeName": NAME,
                "containers": [container],
            },
        }
    )
    run = ansible_playbook(tmp_path, PLAYBOOK, {NAME: variables})
    assert run.status == 2, run.output
    assert "bench-node: 1 pod runs on this node; drain it first" in run.last(NAME)["msg"]
    run = ansible_playbook(tmp_path, PLAYBOOK, {NAME: {**variables, "isolation_benchmark_node_name": "no-node"}})
    assert run.status == 2, run.output
    said = "no-node: the cluster has no such node; correct isolation_benchmark_node_name"
    assert run.last(NAME)["msg"].strip() == said


def test_pods_end_when_the_time_is_over(
    control_plane: ControlPlane, namespace: str, node: Processes, tmp_path: Path
) -> None:
    variables = {**as_pods(control_plane, namespace), "isolation_benchmark_seconds": 1}
    run = ansible_playbook(tmp_path, PLAYBOOK, {NAME: variables})
    assert run.status == 2, run.output
    (failure,) = (result["msg"] for result in run.results[NAME] if result["outcome"] == "failed")
    assert failure.startswith("isolation_benchmark_seconds, 1, are over")
    assert control_plane.objects("pods", "--namespace=" + namespace) == []

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import http.server
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report import configz
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.configz import (
    AskedAPI,
    read_configz,
    read_node,
    settings_of_configz,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import json_values

# As a kubelet answers, in its form of durations and amounts.
CONFIGURATION = {
    "cpuManagerPolicy": "static",
    "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
    "cpuManagerReconcilePeriod": "1m0s",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
    "memoryManagerPolicy": "None",
    "cpuCFSQuota": True,
    "cpuCFSQuotaPeriod": "100ms",
    "reservedSystemCPUs": "0-1",
    "kubeReserved": {"cpu": "500m"},
    "evictionHard": {"memory.available": "100Mi"},
}
PATH = "/api/v1/nodes/%s/proxy/configz"


# --- settings_of_configz ------------------------------------------------------------------------------


def test_settings() -> None:
    settings = settings_of_configz({"kubeletconfig": CONFIGURATION})
    assert list(settings) == list(SETTINGS)
    assert settings["cpu_manager_policy"] == "static"
    assert settings["cpu_manager_policy_options"] == {"full-pcpus-only": "true"}
    assert settings["cpu_manager_reconcile_period"] == "1m0s"
    assert settings["kube_reserved_cpu"] == "500m"
    # What it does not have is what the kubelet takes without it.
    assert settings["system_reserved_cpu"] == "0"
    assert settings_of_configz({"kubeletconfig": {}})["cpu_manager_policy"] == "none"


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"kubeletconfig": None}, {"kubeletconfig": []}, CONFIGURATION])
def test_what_is_no_answer(answer: Any) -> None:
    with pytest.raises(NodeError, match="configz of the kubelet: holds no kubeletconfig"):
        settings_of_configz(answer)


@pytest.mark.parametrize(
    "part",
    [
        {"cpuManagerPolicy": "turbo"},
        {"cpuManagerPolicy": ["static"]},
        {"cpuCFSQuota": "true"},
        {"kubeReserved": {"cpu": {}}},
        {"reservedMemory": [7]},
        {"reservedSystemCPUs": "3-1"},
    ],
)
def test_values_that_no_kubelet_has(part: Any) -> None:
    with pytest.raises(NodeError, match="configz of the kubelet"):
        settings_of_configz({"kubeletconfig": {**CONFIGURATION, **part}})


@given(
    st.one_of(
        json_values,
        st.builds(
            lambda key, value: {"kubeletconfig": {**CONFIGURATION, key: value}},
            st.sampled_from(sorted({setting.path[0] for setting in SETTINGS.values()})),
            json_values,
        ),
        st.builds(
            lambda kind, value: {"kubeletconfig": {kind: {"cpu": value, "memory": value}}},
            st.sampled_from(["kubeReserved", "systemReserved"]),
            json_values,
        ),
        st.builds(
            lambda node, limits: {"kubeletconfig": {"reservedMemory": [{"numaNode": node, "limits": limits}] * 2}},
            json_values,
            json_values,
        ),
    )
)
def test_any_answer_has_settings_or_is_an_error(answer: Any) -> None:
    try:
        settings = settings_of_configz(answer)
    except CPUManagerError:
        return
    assert list(settings) == list(SETTINGS)


# --- read_configz -------------------------------------------------------------------------------------


class Server(http.server.BaseHTTPRequestHandler):
    """An API server that proxies to kubelets: {the name of a node: status and body}."""

    answers: ClassVar[dict[str, tuple[int, bytes]]] = {}
    asked: ClassVar[list[str]] = []
    # Until then a request with the status 0 has no answer.
    is_over: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status, body = self.answers.get(self.path, (404, b"{}"))
        if status == 0:
            self.is_over.wait(60)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Write nothing to the terminal."""


@pytest.fixture(name="kubeconfig")
def kubeconfig_fixture(tmp_path: Path) -> Iterator[str]:
    Server.answers.clear()
    Server.asked.clear()
    Server.is_over.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "here", "cluster": {"server": "http://127.0.0.1:%d" % server.server_port}},
                {"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}},
            ],
            "users": [{"name": "a", "user": {"token": "secret"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "a"}} for name in ("here", "nowhere")],
            "current-context": "here",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        yield str(path)
        Server.is_over.set()
        server.shutdown()
        thread.join()


def answer(node: str, status: int, body: Any) -> None:
    Server.answers[PATH % node] = (status, body if isinstance(body, bytes) else json.dumps(body).encode())


def problem(node: str, kubeconfig: str, context: str | None = None) -> NodeError:
    with pytest.raises(NodeError) as caught:
        read_configz(node, AskedAPI(kubeconfig, context))
    return caught.value


def test_the_running_kubelet_is_read(kubeconfig: str) -> None:
    answer("worker-3", 200, {"kubeletconfig": CONFIGURATION})
    settings = read_configz("worker-3", AskedAPI(kubeconfig))
    assert settings == settings_of_configz({"kubeletconfig": CONFIGURATION})
    assert read_configz("worker-3", AskedAPI(kubeconfig, "here")) == settings
    assert Server.asked == [PATH % "worker-3"] * 2


def test_a_node_name_leads_nowhere_else(kubeconfig: str) -> None:
    problem("../../secrets", kubeconfig)
    assert Server.asked == [PATH % "..%2F..%2Fsecrets"]


NO_SERVER = (
    "set kubelet_kubeconfig to the cluster's kubeconfig on this machine, or do not set drift_report_ask_kubelets"
)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, NO_SERVER),
        (403, "give the user of the kubeconfig the right to get nodes/proxy"),
        (404, "set kubelet_node_name to the node's name in the cluster"),
        (503, ""),
    ],
)
def test_an_api_server_that_refuses(kubeconfig: str, status: int, remedy: str) -> None:
    answer("worker-3", status, {"kind": "Status"})
    error = problem("worker-3", kubeconfig)
    assert error.what == "cannot be read: HTTP status %d" % status
    assert error.where == "configz of the kubelet, as the API server gives it for the node worker-3"
    assert error.remedy == remedy


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"kind": "Status", "message": "dial tcp: lookup worker-3: no such host"},
            "dial tcp: lookup worker-3: no such host",
        ),
        ({"message": "x" * 1000}, "x" * 300),
        ({"message": ["a"]}, "['a']"),
        ([], ""),
        (b"\xff", ""),
        (b"[" * 200000, ""),
    ],
)
def test_why_the_api_server_could_not(kubeconfig: str, body: Any, said: str) -> None:
    answer("worker-3", 500, body)
    assert problem("worker-3", kubeconfig).what == "cannot be read: HTTP status 500" + (said and ": " + said)


@pytest.mark.parametrize("body", [b"", b"{", b"not json", b"\xff", b"[" * 200000])
def test_an_answer_that_is_no_json(kubeconfig: str, body: bytes) -> None:
    answer("worker-3", 200, body)
    assert problem("worker-3", kubeconfig).what.startswith("cannot be read: ")


def test_an_answer_of_something_else(kubeconfig: str) -> None:
    answer("worker-3", 200, {"items": []})
    assert problem("worker-3", kubeconfig).what == "holds no kubeletconfig"


def test_an_answer_that_is_too_large(kubeconfig: str) -> None:
    answer("worker-3", 200, b" " * (2 << 20))
    assert problem("worker-3", kubeconfig).what == "has more than %d bytes" % (1 << 20)


def test_no_answer(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configz, "_SECONDS", 0.2)
    answer("worker-3", 0, b"")
    start = time.monotonic()
    assert problem("worker-3", kubeconfig).what.startswith("cannot be read: ")
    assert Server.asked == [PATH % "worker-3"]
    assert time.monotonic() - start < 50


def test_no_api_server(kubeconfig: str) -> None:
    error = problem("worker-3", kubeconfig, "nowhere")
    assert error.what.startswith("cannot be read: ")
    assert len(error.what) < 400


def test_a_context_that_is_not_there(kubeconfig: str) -> None:
    assert problem("worker-3", kubeconfig, "another").what.startswith("cannot be read: ConfigException: ")


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    assert problem("worker-3", str(tmp_path / "nowhere")).what.startswith("cannot be read: ConfigException: ")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    error = problem("worker-3", "/nowhere")
    assert error.what == "the Python library kubernetes is not there"
    assert error.remedy == "install it on the controller, or do not set drift_report_ask_kubelets"


# --- read_node ----------------------------------------------------------------------------------------

NODE, PODS = "/api/v1/nodes/worker-3", "/api/v1/pods?fieldSelector=spec.nodeName%3Dworker-3"


def test_a_node_and_its_pods_are_read(kubeconfig: str) -> None:
    Server.answers[NODE] = (200, b'{"metadata": {"name": "worker-3"}}')
    Server.answers[PODS] = (200, b'{"items": [{"metadata": {"name": "db-0"}}]}')
    assert read_node("worker-3", AskedAPI(kubeconfig)) == (
        {"metadata": {"name": "worker-3"}},
        [{"metadata": {"name": "db-0"}}],
    )
    assert Server.asked == [NODE, PODS]


@pytest.mark.parametrize(
    ("path", "status", "body", "said"),
    [
        (NODE, 404, b"{}", "the node worker-3, as the API server gives it: cannot be read: HTTP status 404"),
        (NODE, 403, b"{}", "give the user of the kubeconfig the right to get nodes"),
        (PODS, 403, b"{}", "give the user of the kubeconfig the right to list pods of all namespaces"),
        (PODS, 200, b"[]", "is not a list of pods"),
        (PODS, 200, b'{"items": {}}', "is not a list of pods"),
        (NODE, 200, b"[]", "is not a list of pods"),
        (PODS, 200, b"{", "the pods of the node worker-3, as the API server gives them: cannot be read: "),
    ],
)
def test_an_api_server_that_gives_no_pods(kubeconfig: str, path: str, status: int, body: bytes, said: str) -> None:
    Server.answers[NODE] = (200, b"{}")
    Server.answers[PODS] = (200, b'{"items": []}')
    Server.answers[path] = (status, body)
    with pytest.raises(NodeError) as caught:
        read_node("worker-3", AskedAPI(kubeconfig))
    assert said in str(caught.value)


def test_pods_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)
    with pytest.raises(NodeError) as caught:
        read_node("worker-3", AskedAPI("/nowhere"))
    assert caught.value.remedy == "install it on the controller, or do not set drift_report_look_at to impact"

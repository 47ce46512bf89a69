# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/api_server.py: which calls are made again, and for how long.

The answers are those of kubernetes.core 5.0 to 6.2; tests/cluster/test_unreliable_api.py has them from its modules.
"""

from __future__ import annotations

import signal
import time
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils import api_server
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.api_server import call, may_pass, with_names

STATUS = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s","reason":"%s","code":%d}'
HEADERS = "HTTP response headers: HTTPHeaderDict({'Retry-After': '1'})\nHTTP response body: "


def dynamic(status: int, reason: str) -> str:
    return "Exception '%d\nReason: %s\n%s{}' raised while trying to get resource" % (status, reason, HEADERS)


REFUSED_LINE = (
    "HTTPSConnectionPool(host='10.0.0.1', port=6443): Max retries exceeded with url: /version (Caused by"
    " NewConnectionError('[Errno 111] Connection refused'))"
)
PASSING: dict[str, dict[str, Any]] = {
    "k8s_info 500": {"msg": dynamic(500, "Internal Server Error")},
    "k8s_info 429": {"msg": dynamic(429, "Too Many Requests")},
    "k8s_info 503": {"msg": dynamic(503, "Service Unavailable")},
    "k8s_drain, look": {"status": 500, "msg": "Failed to retrieve node 'w1' due to: Internal Server Error"},
    "k8s_drain, change": {"msg": "Failed to patch node due to: (504)\nReason: Gateway Timeout\n" + HEADERS},
    "k8s": {
        "reason": "Internal Server Error",
        "msg": "Failed to patch object: " + STATUS % ("x", "InternalError", 500),
    },
    "k8s, as bytes": {"msg": "Failed to patch object: b'%s'" % STATUS % ("x", "InternalError", 500)},
    "k8s, changed meanwhile": {"msg": "Failed to patch object: " + STATUS % ("x", "Conflict", 409)},
    "a module that crashed": {
        "msg": "MODULE FAILURE\nSee stdout/stderr for the exact error",
        "module_stderr": "kubernetes.dynamic.exceptions.InternalServerError: 500\nReason: Internal Server Error\n",
    },
    "a proxy in between": {"msg": "Failed to patch node due to: HTTP 502 Bad Gateway"},
    "nobody listens": {"msg": REFUSED_LINE},
    "reset": {"msg": "x: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))"},
    "closed": {"msg": "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))"},
    "half": {"msg": "('Connection broken: IncompleteRead(10 bytes read, 20 more expected)', IncompleteRead(10 bytes"},
}
FINAL: dict[str, dict[str, Any]] = {
    "401": {"msg": dynamic(401, "Unauthorized")},
    "403": {"status": 403, "msg": "Failed to retrieve node 'w1' due to: Forbidden"},
    "403 of k8s": {"reason": "Forbidden", "msg": "Failed to patch object: " + STATUS % ("no", "Forbidden", 403)},
    "404": {"msg": "Node w1 not found."},
    "409": {"msg": "Failed to create object: " + STATUS % ("x", "AlreadyExists", 409)},
    "422": {"msg": "Failed to patch object: " + STATUS % ("Connection refused", "Invalid", 422)},
    "certificate": {
        "msg": "HTTPSConnectionPool(host='x'): (Caused by SSLError(SSLCertVerificationError(1, '[SSL:"
        " CERTIFICATE_VERIFY_FAILED] certificate verify failed')))"
    },
    "wrong kubeconfig": {"msg": "Could not create API client: Invalid kube-config file. No configuration found."},
    "waited": {"msg": '"Pod" "web": Timed out waiting on resource'},
    "option": {"msg": "Unsupported parameters for (kubernetes.core.k8s_info) module: timeout"},
    "no library": {"msg": "Failed to import the required Python library (kubernetes) on host's Python"},
}


@pytest.mark.parametrize("result", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_asked_again(result: dict[str, Any]) -> None:
    assert may_pass({"failed": True, **result}, {})


@pytest.mark.parametrize("result", FINAL.values(), ids=FINAL)
def test_what_is_refused_for_good_is_not_asked_again(result: dict[str, Any]) -> None:
    assert not may_pass({"failed": True, **result}, {})


def test_a_server_that_does_not_say_what_it_has_is_asked_again() -> None:
    """Its groups answered 503 when it was asked for its resources, which the library takes for none."""
    result = {"api_found": False, "resources": []}
    assert may_pass(result, {"kind": "Node"})
    assert may_pass(result, {"kind": "ReplicaSet", "api_version": "apps/v1"})
    # Not each cluster has it.
    assert not may_pass(result, {"kind": "PodDisruptionBudget", "api_version": "policy/v1"})
    assert not may_pass({"api_found": True, "resources": []}, {"kind": "Node"})


class Server:
    """Gives these answers, the last again and again; one that is a number takes so many seconds."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    def run_module(
        self, _module: str, _plugin: str, _arguments: Mapping[str, Any], _task_vars: Mapping[str, Any]
    ) -> dict[str, Any]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, (int, float)):
            time.sleep(answer)
            return {"late": True}
        return dict(answer)


DOWN = {"failed": True, "msg": REFUSED_LINE}
NO = {"failed": True, "status": 403, "msg": "Forbidden"}
GOOD: dict[str, Any] = {"resources": []}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_server, "_PAUSES", (0.01, 0.02))


def ask(server: Server, timeout: int = 5, name: str = "k8s_info", **arguments: Any) -> dict[str, Any]:
    return call(server, name, arguments, {}, timeout)  # type: ignore[arg-type]  # what it uses of an action


@pytest.mark.usefixtures("pauses")
def test_a_call_is_made_again_until_it_succeeds() -> None:
    server = Server(DOWN, DOWN, DOWN, GOOD)
    assert ask(server) == GOOD
    assert server.asked == 4
    # Each failure is judged anew.
    server = Server(DOWN, NO, GOOD)
    assert ask(server)["failure"]["kind"] == "api_refused"
    assert server.asked == 2
    lacking = {"api_found": False, "resources": [], "msg": "Failed to find API"}
    assert ask(Server(lacking, GOOD)) == GOOD
    # What it never says is no empty answer.
    assert ask(Server(lacking), 1)["failed"]
    assert "failed" not in ask(Server(lacking), 1, api_version="policy/v1")


@pytest.mark.usefixtures("pauses")
def test_an_answer_that_does_not_come_is_waited_for_and_asked_for_again() -> None:
    before = signal.getsignal(signal.SIGALRM)
    server = Server(60, GOOD)
    assert ask(server, 1) == GOOD
    assert server.asked == 2
    assert signal.getsignal(signal.SIGALRM) == before


def test_the_time_is_bounded_and_the_failure_says_how_often_it_was_asked() -> None:
    began = time.monotonic()
    server = Server(DOWN)
    result = ask(server, 1)
    assert time.monotonic() - began < 30
    assert result["failure"]["kind"] == "api_no_answer"
    assert result["msg"].startswith(REFUSED_LINE + "; it was asked %d times in " % server.asked)
    assert server.asked > 1
    silent = ask(Server(60), 1)
    assert silent["msg"].startswith("Timed out after 1 seconds")
    assert silent["failure"]["kind"] == "api_no_answer"


@pytest.mark.usefixtures("pauses")
def test_a_drain_that_fails_is_left_to_who_waits_for_it() -> None:
    for arguments in ({}, {"state": "drain"}):
        server = Server(DOWN, GOOD)
        assert call(server, "k8s_drain", arguments, {}, 5)["failed"]  # type: ignore[arg-type]
        assert server.asked == 1
    server = Server(DOWN, GOOD)
    assert ask(server, name="k8s_drain", state="uncordon") == GOOD


@pytest.mark.usefixtures("pauses")
def test_a_task_with_less_time_keeps_it_and_one_with_more_has_the_rest() -> None:
    class OverError(Exception):
        """The task's time is over."""

    def over(*_arguments: object) -> None:
        raise OverError

    before, left = signal.signal(signal.SIGALRM, over), signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(OverError):
            ask(Server(60), 30)
        signal.setitimer(signal.ITIMER_REAL, 1000)
        assert ask(Server(60, GOOD), 1) == GOOD
        assert 900 < signal.getitimer(signal.ITIMER_REAL)[0] < 1000
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *left)


def test_an_object_has_one_name_however_often_it_is_asked_for() -> None:
    made = {"metadata": {"generateName": "run-", "labels": {"a": "b"}}, "kind": "Pod"}
    named = with_names(made)
    assert named["metadata"]["name"].startswith("run-")
    assert {**named, "metadata": made["metadata"]} == made
    assert "name" not in made["metadata"]
    assert with_names(made) != named
    (first, second) = with_names([made, {"metadata": {"name": "x"}}])
    assert first["metadata"]["name"] != named["metadata"]["name"]
    assert second == {"metadata": {"name": "x"}}
    for definition in (None, "kind: Pod", {}, {"metadata": None}, {"metadata": {"name": "x", "generateName": "y"}}):
        assert with_names(definition) == definition

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls of modules of kubernetes.core, repeated where what failed may pass.

What may pass is no answer in time, a connection that is refused or breaks, and an answer that says so by its status,
such as 429 or 503. What it refuses for good, such as 403, is not asked again.
"""

from __future__ import annotations

import random
import re
import signal
import time
from contextlib import contextmanager, suppress
from http import HTTPStatus
from importlib import import_module
from string import ascii_lowercase
from typing import Any, Iterator, Mapping

from ansible.module_utils.common.text import converters

from ..module_utils._base.errors import CPUManagerError, NodeError
from .guarded_action import GuardedAction
from .report.answers import answered

# What a program decides by: an API server has not answered for as long as it was asked, or has refused.
NO_ANSWER, REFUSED = "api_no_answer", "api_refused"
# Seconds between two calls; the last again and again.
_PAUSES = (1, 2, 4, 8)
# Each API server has these.
_OF_EACH_SERVER = ("v1", "apps/v1", "batch/v1")
_PHRASES = {status.phrase: status.value for status in HTTPStatus}
# kubernetes.core returns the status of HTTP of some calls alone. Of all others it is in the text, as the library
# kubernetes writes its errors (ApiException, DynamicApiError), or as the API server's object Status.
# Proxies and webhooks in between write HTTP before it.
_STATUS = re.compile(r"\b(\d{3})\)?\nReason: |\"code\": ?(\d{3})\b|\bHTTP(?:/[\d.]+)? (\d{3})\b")
_CONFLICT = re.compile(r"\"reason\": ?\"Conflict\"")
# Where nothing has answered, all that there is is how urllib3 and http.client write it.
_BROKEN = re.compile(
    r"HTTPS?ConnectionPool\(|HTTPS?Connection\(|Connection aborted|Connection broken|IncompleteRead|RemoteDisconnected"
    r"|Connection reset by peer|Connection refused"
)
# No call of these has passed.
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"


class _TooLate(BaseException):
    """No handler of other errors takes it for one of its own."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _TooLate after these seconds. A worker of Ansible does what a task says in its main thread.

    A task that has a shorter timeout of its own keeps it.
    """
    of_task, begun = signal.getitimer(signal.ITIMER_REAL)[0], time.monotonic()
    if 0 < of_task <= seconds:
        yield
        return

    def end(*_arguments: object) -> None:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if of_task:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, of_task - (time.monotonic() - begun)))


def _keep_old_names() -> None:
    """Let kubernetes.core import Ansible's texts from where they were, without a warning of ansible-core 2.21.

    Who runs a playbook can do nothing about it.
    """
    with suppress(ImportError):
        old = import_module("ansible.module_utils._text")
        for name in ("to_bytes", "to_native", "to_text"):
            vars(old).setdefault(name, getattr(converters, name))


def call(
    action: GuardedAction, name: str, arguments: Mapping[str, Any], task_vars: Mapping[str, Any], timeout: int
) -> dict[str, Any]:
    """Return the result of a module of kubernetes.core, where it fails with `failure`.

    timeout: for how many seconds to wait for an answer. What may pass is asked again until twice that is over.
    A drain that fails is not repeated: whether pods may be evicted, it is asked as long as these may take.
    """
    module = "kubernetes.core." + name
    _keep_old_names()
    begun = time.monotonic()
    calls, is_drain = 0, name == "k8s_drain" and arguments.get("state", "drain") == "drain"
    while True:
        left = begun + 2 * timeout - time.monotonic()
        try:
            with _at_most(min(timeout, max(1, left))):
                result = action.run_module(module, module, arguments, task_vars)
                # As with its imports here.
                result.pop("deprecations", None)
        except _TooLate:
            text = "Timed out after %d seconds" % timeout
            result = {"failed": True, "msg": text, "status": HTTPStatus.GATEWAY_TIMEOUT.value}
        passes = may_pass(result, arguments)
        pause = _PAUSES[min(calls, len(_PAUSES) - 1)]
        calls += 1
        if not passes or is_drain or time.monotonic() + pause > begun + 2 * timeout:
            return _with_failure(result, passes, calls, time.monotonic() - begun)
        time.sleep(pause)


def with_names(definition: Any) -> Any:
    """Return the definition of an object, or of several, with a name where the API server would make one.

    Else a call that is repeated could make two objects.
    """
    if isinstance(definition, list):
        return [with_names(each) for each in definition]
    metadata = definition.get("metadata") if isinstance(definition, Mapping) else None
    if not isinstance(metadata, Mapping) or "name" in metadata or "generateName" not in metadata:
        return definition
    name = metadata["generateName"] + "".join(random.choices(ascii_lowercase, k=8))
    return {**definition, "metadata": {**metadata, "name": name}}


def _with_failure(result: dict[str, Any], passes: bool, calls: int, seconds: float) -> dict[str, Any]:
    if not (passes or result.get("failed")) or "failure" in result:
        return result
    asked = "; it was asked %d times in %d seconds" % (calls, seconds) if calls > 1 else ""
    text = str(answered(result).get("msg", "it failed without a message")).strip()
    error = CPUManagerError(text + asked, kind=NO_ANSWER if passes else REFUSED)
    return {**result, "failed": True, "msg": str(error), "failure": error.to_dict()}


def may_pass(result: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether the same call may succeed in a moment, by the result of a module. arguments: what it was given."""
    if not result.get("failed"):
        # While a server starts, or has no more answers to give, it does not say what it has.
        return result.get("api_found") is False and arguments.get("api_version", "v1") in _OF_EACH_SERVER
    answer = answered(result)
    # A module that has crashed has it there.
    texts = [str(answer.get(name) or "") for name in ("msg", "module_stderr", "module_stdout", "exception")]
    status = _status(answer, texts)
    if status is None:
        return any(map(_BROKEN.search, texts)) and not any(_UNTRUSTED in text for text in texts)
    if status == HTTPStatus.CONFLICT:
        # Somebody else has changed the object between a look and a change.
        return any(map(_CONFLICT.search, texts))
    return status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS) or status >= 500


def _status(answer: Mapping[str, Any], texts: list[str]) -> int | None:
    """Return the status of HTTP of an answer of the API server; None where there is none."""
    if isinstance(answer.get("status"), int):
        return int(answer["status"])
    if answer.get("reason") in _PHRASES:
        return _PHRASES[answer["reason"]]
    found = next(filter(None, map(_STATUS.search, texts)), None)
    return None if found is None else int(next(filter(None, found.groups())))


def read_cluster(
    action: GuardedAction, what: str, fixed: Mapping[str, Any], task_vars: Mapping[str, Any], **query: Any
) -> list[Any]:
    """Return objects that the API server gives. They may hold passwords: no result and no log has them.

    what: in words, for an error. fixed: what the run acts with, of the host that is asked about: `kubeconfig` and
    `context`, and `api_timeout` in seconds. query: options of k8s_info. Raises NodeError where there is no answer.
    """
    arguments = {name: fixed[name] for name in ("kubeconfig", "context") if fixed.get(name) is not None}
    answer = answered(call(action, "k8s_info", {**arguments, **query}, task_vars, int(fixed["api_timeout"])))
    resources = answer.get("resources")
    if answer.get("failed") or answer.get("unreachable") or not isinstance(resources, list):
        raise NodeError("Read %s: %s" % (what, str(answer.get("msg", "it failed without a message")).strip()))
    return resources

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server says of a node, for its report: /configz of its kubelet, the node itself, and its pods.

It takes the Python library kubernetes on the controller, which kubernetes.core needs, too.
"""

from __future__ import annotations

import json
from contextlib import closing
from importlib import import_module
from typing import Any, Callable, Mapping, NamedTuple

from ...module_utils._base.errors import MALFORMED, CPUManagerError, NodeError
from ...module_utils._kubelet.configuration import Configuration
from ...module_utils._kubelet.settings import found_settings

_SECONDS = 10
# A kubelet answers with some 4 KiB, and the pods of a node are some hundred of as many.
_LARGEST = 1 << 20
_LARGEST_PODS = 1 << 25
# Of a message that is shown, in characters.
_LONGEST = 300
# By the status of HTTP, None where no server answers; others may pass, or are told by the server.
_NO_SERVER = "set kubelet_kubeconfig to the cluster's kubeconfig on this machine, or do not set %(option)s"
_REMEDIES = {
    None: _NO_SERVER,
    401: _NO_SERVER,
    403: "give the user of the kubeconfig the right to %(right)s",
    404: "set kubelet_node_name to the node's name in the cluster",
}


def settings_of_configz(answer: object) -> dict[str, Any]:
    """Return all settings as the running kubelet has them, in the form of the modules. Raises NodeError.

    Source: pkg/kubelet/server/server.go, component-base/configz.
    """
    values = answer.get("kubeletconfig") if isinstance(answer, Mapping) else None
    if not isinstance(values, dict):
        raise NodeError("holds no kubeletconfig", "configz of the kubelet")
    try:
        return found_settings(Configuration(values, "configz of the kubelet"))
    except CPUManagerError:
        raise
    except MALFORMED as error:
        raise NodeError("holds values of other types than a kubelet's", "configz of the kubelet") from error


class AskedAPI(NamedTuple):
    """The API server that is asked, as a kubeconfig names it; None for what the environment says."""

    kubeconfig: str | None = None
    context: str | None = None


def read_configz(node_name: str, server: AskedAPI) -> dict[str, object]:
    """Return the settings of the kubelet of this node of the cluster. Raises NodeError, with the reason in words.

    It takes the right to get nodes/proxy.
    """
    where = "configz of the kubelet, as the API server gives it for the node %s" % node_name
    asked = _Asked(where, "drift_report_ask_kubelets", "get nodes/proxy")

    def ask(api: Any) -> Any:
        return api.connect_get_node_proxy_with_path(
            node_name, "configz", _preload_content=False, _request_timeout=_SECONDS
        )

    return settings_of_configz(_read(asked, server, ask, _LARGEST))


def read_node(node_name: str, server: AskedAPI) -> tuple[dict[str, Any], list[Any]]:
    """Return the node of the cluster, and its pods, as the API server has them. Raises NodeError, with the reason in
    words.

    It takes the rights to get nodes and to list pods of all namespaces.
    """
    option = "drift_report_look_at to impact"

    def node(api: Any) -> Any:
        return api.read_node(node_name, _preload_content=False, _request_timeout=_SECONDS)

    def pods(api: Any) -> Any:
        selector = "spec.nodeName=%s" % node_name
        return api.list_pod_for_all_namespaces(
            field_selector=selector, _preload_content=False, _request_timeout=_SECONDS
        )

    where = "the node %s, as the API server gives it" % node_name
    found = _read(_Asked(where, option, "get nodes"), server, node, _LARGEST)
    where = "the pods of the node %s, as the API server gives them" % node_name
    listed = _read(_Asked(where, option, "list pods of all namespaces"), server, pods, _LARGEST_PODS)
    if not isinstance(found, dict) or not isinstance(listed, dict) or not isinstance(listed.get("items"), list):
        raise NodeError("is not a list of pods", where)
    return found, listed["items"]


class _Asked(NamedTuple):
    """What is asked for, which option asks for it, and which right it takes."""

    where: str
    option: str
    right: str


def _read(asked: _Asked, server: AskedAPI, ask: Callable[[Any], Any], largest: int) -> Any:
    where = asked.where
    try:
        # Imported here: only where the running kubelet is to be read.
        client, config = import_module("kubernetes.client"), import_module("kubernetes.config")
    except ImportError as error:
        remedy = "install it on the controller, or do not set %s" % asked.option
        raise NodeError("the Python library kubernetes is not there", where, remedy) from error
    try:
        configuration = client.Configuration()
        # Each try may take so long, and a kubelet that hangs would take all of them.
        configuration.retries = 0
        api = client.CoreV1Api(
            config.new_client_from_config(
                config_file=server.kubeconfig, context=server.context, client_configuration=configuration
            )
        )
        with closing(ask(api)) as response:
            content = response.read(largest + 1)
        if len(content) > largest:
            raise NodeError("has more than %d bytes" % largest, where)
        return json.loads(content)
    except CPUManagerError:
        raise
    # The library raises errors of its own, of urllib3, of yaml and of the system.
    except Exception as error:  # pylint: disable=broad-exception-caught
        status = getattr(error, "status", None)
        what = _answer_of(error) if status else "%s: %s" % (type(error).__name__, str(error)[:_LONGEST])
        remedy = _REMEDIES.get(status, "") % asked._asdict()
        raise NodeError("cannot be read: %s" % what, where, remedy) from error


def _answer_of(error: Any) -> str:
    """Return what the API server answered in place of what was wanted."""
    what = "HTTP status %s" % error.status
    try:
        message = json.loads(error.body)["message"]
    except MALFORMED:
        return what
    return "%s: %s" % (what, str(message)[:_LONGEST])

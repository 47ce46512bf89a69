# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running kubelet says of itself: /configz of the kubelet, read through the API server."""

from __future__ import annotations

import json
from contextlib import closing
from importlib import import_module
from typing import Any, Mapping

from ...module_utils._base.errors import MALFORMED, CPUManagerError, NodeError
from ...module_utils._kubelet.configuration import Configuration
from ...module_utils._kubelet.settings import found_settings

_SECONDS = 10
# A kubelet answers with some 4 KiB.
_LARGEST = 1 << 20
# Of a message that is shown, in characters.
_LONGEST = 300


def settings_of_configz(answer: object) -> dict[str, Any]:
    """All settings as the running kubelet has them, in the form of the modules. Raises NodeError.

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


def read_configz(node_name: str, kubeconfig: str | None, context: str | None) -> dict[str, object]:
    """The settings of the kubelet of this node of the cluster. Raises NodeError, with the reason in words.

    It takes the Python library kubernetes, which kubernetes.core needs, too, and the right to get nodes/proxy.
    """
    where = "configz of the kubelet, as the API server gives it for the node %s" % node_name
    try:
        # Imported here: only where the running kubelet is to be read.
        client, config = import_module("kubernetes.client"), import_module("kubernetes.config")
    except ImportError as error:
        remedy = "install it on the controller, or do not set drift_report_ask_kubelets"
        raise NodeError("the Python library kubernetes is not there", where, remedy) from error
    try:
        configuration = client.Configuration()
        # Each try may take so long, and a kubelet that hangs would take all of them.
        configuration.retries = 0
        api = client.CoreV1Api(
            config.new_client_from_config(config_file=kubeconfig, context=context, client_configuration=configuration)
        )
        response = api.connect_get_node_proxy_with_path(
            node_name, "configz", _preload_content=False, _request_timeout=_SECONDS
        )
        with closing(response):
            content = response.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise NodeError("has more than %d bytes" % _LARGEST, where)
        return settings_of_configz(json.loads(content))
    except CPUManagerError:
        raise
    # The library raises errors of its own, of urllib3, of yaml and of the system.
    except Exception as error:  # pylint: disable=broad-exception-caught
        status = getattr(error, "status", None)
        what = _answer_of(error) if status else "%s: %s" % (type(error).__name__, str(error)[:_LONGEST])
        remedy = "give the user of the kubeconfig the right to get nodes/proxy" if status == 403 else ""
        raise NodeError("cannot be read: %s" % what, where, remedy) from error


def _answer_of(error: Any) -> str:
    """What the API server answered in place of what was wanted."""
    what = "HTTP status %s" % error.status
    try:
        message = json.loads(error.body)["message"]
    except MALFORMED:
        return what
    return "%s: %s" % (what, str(message)[:_LONGEST])

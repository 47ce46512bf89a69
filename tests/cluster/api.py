# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A client of the Kubernetes API, as small as a kubelet needs it, on the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Iterator, Mapping
from urllib.parse import urlencode, urlsplit

import yaml

Object = dict[str, Any]

# Seconds without an answer.
_PATIENCE = 30
_MERGE = "application/strategic-merge-patch+json"


class APIError(Exception):
    """The API server refuses. `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("%d: %s" % (status, message))
        self.status = status


class API:
    """What the user of a kubeconfig may do; a context, for one thread.

    All raise APIError, and OSError where the server does not answer.
    """

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        context = _named(config, "context", config["current-context"])
        cluster, user = _named(config, "cluster", context["cluster"]), _named(config, "user", context["user"])
        tls = ssl.create_default_context(cadata=_data(cluster, "certificate-authority").decode("ascii"))
        with TemporaryDirectory() as directory:  # ssl reads it from a file only
            pair = Path(directory, "pair.pem")
            pair.write_bytes(_data(user, "client-certificate") + _data(user, "client-key"))
            tls.load_cert_chain(pair)
        server = urlsplit(cluster["server"]).netloc
        self._new = partial(http.client.HTTPSConnection, server, timeout=_PATIENCE, context=tls)
        self._connection = self._new()

    def __enter__(self) -> API:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    @contextmanager
    def another(self) -> Iterator[http.client.HTTPSConnection]:
        """Yield a connection of its own, for any thread."""
        connection = self._new()
        try:
            yield connection
        finally:
            connection.close()

    def get(self, path: str, **query: str) -> Object:
        """Return an object, or a list of them."""
        return self._request("GET", path + "?" + urlencode(query) if query else path)

    def create(self, path: str, value: Mapping[str, Any]) -> Object:
        """Make an object in the collection `path`."""
        return self._request("POST", path, value)

    def patch(self, path: str, value: Mapping[str, Any]) -> Object:
        """Change an object: what is in `value` is merged into it."""
        return self._request("PATCH", path, value, _MERGE)

    def delete(self, path: str, options: Mapping[str, Any]) -> Object:
        """Remove an object."""
        return self._request("DELETE", path, options)

    def _request(self, method: str, path: str, value: Any = None, kind: str = "application/json") -> Object:
        body = None if value is None else json.dumps(value)
        headers = {} if body is None else {"Content-Type": kind}
        try:
            # As long as the server keeps the connection, it is used again.
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            text = response.read().decode("utf-8")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise OSError("%s %s: %s" % (method, path, error)) from error
        if response.status >= 300:
            with suppress(ValueError, KeyError):
                text = json.loads(text)["message"]
            raise APIError(response.status, text)
        answer: Object = json.loads(text)
        return answer


def _named(config: Mapping[str, Any], kind: str, name: str) -> Any:
    return next(entry[kind] for entry in config[kind + "s"] if entry["name"] == name)


def _data(entry: Mapping[str, Any], name: str) -> bytes:
    """Return what a kubeconfig holds itself, or the file that it names."""
    if name + "-data" in entry:
        return base64.b64decode(entry[name + "-data"])
    return Path(entry[name]).read_bytes()

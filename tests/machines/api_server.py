# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""As much of an API server of Kubernetes as clients of nodes, pods and NodeResourceTopology objects need.

tests/cluster has a real one. This one has custom resources, too, and starts in no time. Objects are kept as they come,
without defaults and without validation; a pod that is created ends at once.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import parse_qs, urlsplit

from ansible_collections.kubenode.cpu_manager.tests.support.serving import listening

Object = dict[str, Any]

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
# {path of a group and version: {plural: (kind, whether it is in a namespace)}}
_RESOURCES: dict[str, dict[str, tuple[str, bool]]] = {
    "/api/v1": {
        "nodes": ("Node", False),
        "pods": ("Pod", True),
        "pods/eviction": ("Eviction", True),
        "pods/log": ("Pod", True),
    },
    "/apis/policy/v1": {"poddisruptionbudgets": ("PodDisruptionBudget", True)},
    "/apis/topology.node.k8s.io/v1alpha2": {"noderesourcetopologies": ("NodeResourceTopology", False)},
}


class APIServer(ThreadingHTTPServer):
    """What it has: {path of an object: the object}, and which requests have changed something."""

    daemon_threads = True

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.changes: list[str] = []
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def add(self, *objects: Object) -> None:
        """Have these objects, as if they were created."""
        for given in objects:
            self.objects["%s/%s" % (_collection(given), given["metadata"]["name"])] = given

    def kubeconfig(self, path: Path) -> Path:
        """Write a file with which clients find it, and return its path."""
        configuration = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:%d" % self.server_port}}],
            "users": [{"name": "it", "user": {"token": "none"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        }
        path.write_text(json.dumps(configuration), encoding="utf-8")
        return path


@contextmanager
def serve(*objects: Object) -> Iterator[APIServer]:
    """Yield an API server that has these objects, and listens until the end."""
    server = APIServer()
    server.add(*objects)
    with listening(server):
        yield server


def _collection(given: Object) -> str:
    """Return the path of the collection that an object belongs to."""
    for base, resources in _RESOURCES.items():
        for plural, (kind, is_in_namespace) in resources.items():
            if kind == given["kind"] and base.endswith("/" + given["apiVersion"]):
                namespaced = "/namespaces/%s" % given["metadata"]["namespace"] if is_in_namespace else ""
                return "%s%s/%s" % (base, namespaced, plural)
    raise ValueError("there are no objects such as %r" % given)


def _merged(before: Any, patch: Any) -> Any:
    """Return a merge patch; a strategic one of what the tests change is the same."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = _merged(kept.get(name), value)
    return kept


def _discovered(path: str) -> Object | None:
    """Return what tells a client which resources there are; None where the path is none of that."""
    if path == "/version":
        return {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        versions = [base.removeprefix("/apis/") for base in _RESOURCES if base.startswith("/apis/")]
        groups = [
            {"name": version.partition("/")[0], "preferredVersion": offered, "versions": [offered]}
            for version in versions
            for offered in [{"groupVersion": version, "version": version.partition("/")[2]}]
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path in _RESOURCES:
        resources = [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": namespaced, "verbs": _VERBS}
            for plural, (kind, namespaced) in _RESOURCES[path].items()
        ]
        version = path.removeprefix("/apis/").removeprefix("/api/")
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}
    return None


def _is_selected(found: Object, query: dict[str, list[str]]) -> bool:
    """Return whether an object is one of those that the selectors of a query name, with = and != only."""
    labels = found["metadata"].get("labels", {})
    for parameter, value_of in (("labelSelector", labels.get), ("fieldSelector", lambda name: _field(found, name))):
        for requirement in filter(None, ",".join(query.get(parameter, [])).split(",")):
            name, _equal, wanted = requirement.replace("==", "=").partition("=")
            if (value_of(name.rstrip("!")) == wanted) is name.endswith("!"):
                return False
    return True


def _field(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = found.get(name, {})
    return found


class _Handler(BaseHTTPRequestHandler):
    server: APIServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is that of the base class
        """Log nothing: what changes is in the server's `changes`."""

    def do_GET(self) -> None:
        path, objects = self._path(), self.server.objects
        if (answer := _discovered(path) or objects.get(path)) is not None:
            self._answer(answer)
        elif path.endswith("/log"):
            self._answer("done\n")
        elif self._is_collection(path):
            kind = {plural: kinds[0] for resources in _RESOURCES.values() for plural, kinds in resources.items()}
            items = [objects[name] for name in self._selected(path)]
            version = path.partition("/apis/")[2].rpartition("/")[0] or "v1"
            plural = path.rpartition("/")[2]
            self._answer({"apiVersion": version, "kind": kind[plural] + "List", "metadata": {}, "items": items})
        else:
            self._answer({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}, 404)

    def do_POST(self) -> None:
        path, given, objects = self._path(), self._body(), self._objects()
        if path.endswith("/eviction"):
            del objects[path.removesuffix("/eviction")]
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"}, 201)
            return
        metadata = given["metadata"]
        metadata.setdefault("name", metadata.get("generateName", "") + "1")
        if given["kind"] == "Pod":
            given["status"] = {"phase": "Succeeded"}
        objects["%s/%s" % (path, metadata["name"])] = given
        self._answer(given, 201)

    def do_PATCH(self) -> None:
        path, objects = self._path(), self._objects()
        objects[path] = _merged(objects[path], self._body())
        self._answer(objects[path])

    def do_DELETE(self) -> None:
        path, _options, objects = self._path(), self._body(), self._objects()
        for name in self._selected(path) if self._is_collection(path) else [path]:
            objects.pop(name, None)
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _path(self) -> str:
        return urlsplit(self.path).path.rstrip("/")

    def _is_collection(self, path: str) -> bool:
        return path.rpartition("/")[2] in {plural for resources in _RESOURCES.values() for plural in resources}

    def _selected(self, path: str) -> list[str]:
        """Return the paths of the objects of a collection, or of one in all namespaces, that the query selects."""
        query, (base, _slash, plural) = parse_qs(urlsplit(self.path).query), path.rpartition("/")
        return [
            name
            for name, found in self.server.objects.items()
            if name.startswith(base + "/") and name.split("/")[-2] == plural and _is_selected(found, query)
        ]

    def _objects(self) -> dict[str, Object]:
        """Return what a request may change: the server's objects, or of one that is only tried (dryRun), a copy."""
        if "dryRun" in parse_qs(urlsplit(self.path).query):
            return dict(self.server.objects)
        with self.server.lock:
            self.server.changes.append("%s %s" % (self.command, self._path()))
        return self.server.objects

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")

    def _answer(self, content: object, status: int = 200) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(content, str) else "application/json")
        self.send_header("Content-Length", str(len(text.encode("utf-8"))))
        self.end_headers()
        self.wfile.write(text.encode("utf-8"))

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A control plane of Kubernetes on the loopback interface: etcd, API server, controller manager and scheduler."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Sequence

from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .certificates import Authority, Pair
from .daemons import DaemonError, Daemons
from .ports import LOOPBACK, take_ports

# What QEMU's user network calls the loopback interface of its host.
QEMU_HOST = "10.0.2.2"
_SERVICES = "10.96.0.0/16"
_HOSTS = (LOOPBACK, QEMU_HOST, "10.96.0.1", "localhost", "kubernetes", "kubernetes.default.svc")

# Seconds in which it has to be ready, on a busy machine too.
_PATIENCE = 120.0


class ControlPlane:
    """A control plane whose files are below a directory; in another process it is found by that.

    A context: it is up within, and afterwards its processes and its directory are gone. Authorization is as kubeadm
    sets it up, Node and RBAC.
    """

    def __init__(self, directory: Path, programs: Path, outlive: bool = False) -> None:
        self.directory = directory
        self.programs = programs
        self._daemons = Daemons(directory, outlive)

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    # --- up and down --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, and wait until it does its work. Raises DaemonError, FileExistsError for its directory."""
        self.directory.mkdir(parents=True)
        try:
            self._start()
        except BaseException:
            self._remove()
            raise

    def stop(self) -> None:
        """End it and remove its directory. Raises FileNotFoundError where there is none."""
        self._port()
        self._remove()

    def _remove(self) -> None:
        self._daemons.stop()
        shutil.rmtree(self.directory)

    def _port(self) -> str:
        return (self.directory / "port").read_text(encoding="ascii")

    def _start(self) -> None:
        etcd, etcd_peers, api, controllers, scheduler = map(str, take_ports(5))
        (self.directory / "port").write_text(api, encoding="ascii")
        authority = Authority()
        authority.pair.write(self.directory / "ca")
        authority.issue("server", hosts=_HOSTS).write(self.directory / "server")
        deadline = time.monotonic() + _PATIENCE
        self._run(
            "etcd",
            data_dir=self._file("etcd"),
            unsafe_no_fsync="true",
            listen_client_urls="http://%s:%s" % (LOOPBACK, etcd),
            advertise_client_urls="http://%s:%s" % (LOOPBACK, etcd),
            listen_peer_urls="http://%s:%s" % (LOOPBACK, etcd_peers),
        )
        self._serve(
            "kube-apiserver",
            api,
            etcd_servers="http://%s:%s" % (LOOPBACK, etcd),
            # Where the nodes are guests, their pods find it there.
            advertise_address=QEMU_HOST,
            client_ca_file=self._file("ca.crt"),
            authorization_mode="Node,RBAC",
            enable_admission_plugins="NodeRestriction",
            allow_privileged="true",
            # Nobody can look up the names of nodes.
            kubelet_preferred_address_types="InternalIP",
            service_cluster_ip_range=_SERVICES,
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=self._file("server.key"),
            service_account_signing_key_file=self._file("server.key"),
        )
        self._wait(deadline, api, "/readyz")
        self._serve(
            "kube-controller-manager",
            controllers,
            leader_elect="false",
            kubeconfig=str(self.kubeconfig("system:kube-controller-manager")),
            use_service_account_credentials="true",
            service_account_private_key_file=self._file("server.key"),
            root_ca_file=self._file("ca.crt"),
        )
        self._serve(
            "kube-scheduler",
            scheduler,
            leader_elect="false",
            kubeconfig=str(self.kubeconfig("system:kube-scheduler")),
        )
        self._wait(deadline, controllers, "/healthz")
        self._wait(deadline, scheduler, "/healthz")
        # Without it nobody can make a pod.
        while not self.objects("serviceaccounts", "--field-selector=metadata.name=default"):
            self._pause(deadline)

    def _serve(self, name: str, secure_port: str, **options: str) -> None:
        self._run(
            name,
            bind_address=LOOPBACK,
            secure_port=secure_port,
            tls_cert_file=self._file("server.crt"),
            tls_private_key_file=self._file("server.key"),
            **options,
        )

    def _run(self, name: str, **options: str) -> None:
        flags = ["--%s=%s" % (option.replace("_", "-"), value) for option, value in options.items()]
        program = self.programs / name
        if name in kubernetes.FLAGS:
            flags += kubernetes.flags(name, kubernetes.version_of(program), self.directory)
        self._daemons.start(name, [str(program), *flags])

    def _wait(self, deadline: float, port: str, path: str) -> None:
        context = ssl.create_default_context(cafile=self._file("ca.crt"))
        while True:
            try:
                urllib.request.urlopen("https://%s:%s%s" % (LOOPBACK, port, path), context=context, timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                self._pause(deadline)

    def _pause(self, deadline: float) -> None:
        self._daemons.check()
        if time.monotonic() > deadline:
            raise DaemonError("the control plane is not ready after %.0f s" % _PATIENCE)
        time.sleep(0.1)

    def _file(self, name: str) -> str:
        return str(self.directory / name)

    # --- use ----------------------------------------------------------------------------------------

    @property
    def admin(self) -> Path:
        """The kubeconfig of somebody who may do everything."""
        return self.kubeconfig("admin", ["system:masters"])

    def node_kubeconfig(self, node: str, host: str = LOOPBACK) -> Path:
        """Return the kubeconfig of a node's kubelet, which sees this machine at `host`."""
        return self.kubeconfig("system:node:" + node, ["system:nodes"], host)

    def kubeconfig(self, user: str, groups: Sequence[str] = (), host: str = LOOPBACK) -> Path:
        """Return a kubeconfig, complete in itself, of a user of some groups, who sees this machine at `host`."""
        path = self.directory / "kubeconfigs" / host / user
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(json.dumps(self._kubeconfig(user, groups, host), indent=1), encoding="utf-8")
        return path

    def _kubeconfig(self, user: str, groups: Sequence[str], host: str) -> dict[str, Any]:
        authority = Authority(Pair.read(self.directory / "ca"))
        pair = authority.issue(user, groups)
        cluster = {
            "server": "https://%s:%s" % (host, self._port()),
            "certificate-authority-data": _base64(authority.pair.certificate),
        }
        credentials = {
            "client-certificate-data": _base64(pair.certificate),
            "client-key-data": _base64(pair.key),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
            "current-context": "tests",
        }

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Return what kubectl prints to the administrator. Raises CalledProcessError."""
        options = ["--kubeconfig=%s" % self.admin, "--cache-dir=" + self._file("discovery")]
        command = [str(self.programs / "kubectl"), *options, *arguments]
        done = subprocess.run(
            command, check=True, input=given or "", stdout=subprocess.PIPE, text=True, timeout=_PATIENCE
        )
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        """Make objects, or change them."""
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("apply", "--filename=-", given=json.dumps(listed))

    def wait_for(self, what: str, condition: str, *arguments: str) -> None:
        """Wait until an object has a condition. Raises CalledProcessError when it does not get it."""
        # Which may not be there yet.
        deadline = time.monotonic() + _PATIENCE
        while not self.kubectl("get", "--ignore-not-found", what, *arguments):
            self._pause(deadline)
        self.kubectl("wait", what, "--for=condition=" + condition, "--timeout=%ds" % _PATIENCE, *arguments)

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects that kubectl gets."""
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", "--output=json", *arguments))["items"]
        return items


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which container runtime a node's kubelet uses, where its configuration is, and what has to be restarted for it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from ...command import Run, run_command
from ...errors import InputError, NodeError, RefusedError
from ...tree import Tree

CONTAINERD, CRIO = "containerd", "CRI-O"

_VERSION = re.compile(r"\bv?(\d{1,4})\.(\d{1,4})\b")
_RANCHER = "/var/lib/rancher/%s/agent/etc/containerd"
_MICROK8S = "/var/snap/microk8s/"


class Runtime(NamedTuple):
    """kind: CONTAINERD or CRIO. config: its main file. service: what restarts it; empty where the kubelet's own does.

    version: major and minor; None where it is not known. drop_ins: the directory of which CRI-O reads every file.
    template: the directory of the templates of which k3s and RKE2 make `config` anew at each start.
    """

    kind: str
    config: str
    service: str
    version: tuple[int, int] | None = None
    drop_ins: str = ""
    template: str = ""
    programs: tuple[str, ...] = ()

    def version_text(self) -> str:
        """The version as "1.7"; empty where it is not known."""
        return "" if self.version is None else "%d.%d" % self.version


def find_runtime(tree: Tree, endpoint: str | None, distribution: str = "", version: str | None = None) -> Runtime:
    """The runtime behind a kubelet's endpoint; None is the kubelet's default. distribution: by its name.

    Raises RefusedError for one without NRI, and InputError for a version that is none.
    """
    runtime = _by_endpoint(tree, endpoint or "", distribution)
    return runtime._replace(version=runtime_version(version) if version else None)


def _by_endpoint(tree: Tree, endpoint: str, distribution: str) -> Runtime:
    if "cri-dockerd" in endpoint or "dockershim" in endpoint:
        raise RefusedError(
            "Docker has no NRI, which a DRA driver for CPUs needs",
            where=endpoint,
            remedy="move the node to containerd or CRI-O",
            kind="runtime_config",
        )
    if "/run/k0s/" in endpoint:
        raise RefusedError(
            "k0s makes the configuration of containerd itself",
            where=endpoint,
            remedy="add the tables of NRI and CDI to a file in /etc/k0s/containerd.d",
            kind="runtime_config",
        )
    is_crio = "crio" in endpoint or (not endpoint and _only_crio(tree))
    if is_crio:
        return Runtime(CRIO, "/etc/crio/crio.conf", "crio", drop_ins="/etc/crio/crio.conf.d", programs=("crio",))
    if "/run/k3s/" in endpoint:
        name = "rke2" if distribution == "RKE2" else "k3s"
        directory = _RANCHER % name
        program = "/var/lib/rancher/%s/data/current/bin/containerd" % name
        return Runtime(CONTAINERD, directory + "/config.toml", "", template=directory, programs=(program, CONTAINERD))
    if _MICROK8S in endpoint:
        # At each start containerd.toml is made of it.
        config = _MICROK8S + "current/args/containerd-template.toml"
        return Runtime(CONTAINERD, config, "snap.microk8s.daemon-containerd", programs=())
    return Runtime(CONTAINERD, "/etc/containerd/config.toml", CONTAINERD, programs=(CONTAINERD,))


def _only_crio(tree: Tree) -> bool:
    return tree.exists("/etc/crio") and not tree.exists("/etc/containerd")


def with_version(tree: Tree, runtime: Runtime, run: Run = run_command) -> Runtime:
    """The runtime with its version, as its program says it on a live node; not known where that fails."""
    if runtime.version is not None or not tree.live:
        return runtime
    for program in runtime.programs:
        with suppress(NodeError, InputError):
            return runtime._replace(version=runtime_version(run([program, "--version"])))
    return runtime


def runtime_version(text: str) -> tuple[int, int]:
    """(1, 7) of "1.7.22", or of what the program says of its version. Raises InputError."""
    match = _VERSION.search(text)
    if match is None:
        raise InputError("%r is no version of a container runtime" % text[:80], remedy="give one such as 1.7.22")
    return int(match.group(1)), int(match.group(2))

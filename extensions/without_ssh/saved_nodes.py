#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves the nodes of a cluster that nobody can log in to, by the pods of daemonset.yml beside this file.

    saved_nodes.py program node-save.pyz    write what the pods run, for the ConfigMap node-save
    saved_nodes.py pods NAME@sha256:...     print daemonset.yml with this image, for kubectl apply
    saved_nodes.py take saved-nodes         write what they have printed: an archive a node, and an inventory of all

It needs Python 3.8 or later, and to take, kubectl with rights in the namespace of the pods. What a pod prints is data:
it names no file, and an archive that is not whole is none. Ends with 1 if a node's is missing.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Iterator, Sequence

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
NAMESPACE, LABEL, CONTAINER = "kubenode-save", "app.kubernetes.io/name=kubenode-save", "save"
INVENTORY = "inventory.json"
# Of a pod's log, in bytes. A node with 1,000 containers and 1,024 CPUs has a tenth of it, and a kubelet keeps 10 MiB.
MOST_BYTES = 16 << 20
# As the API server gives them out: a node's becomes a file's.
_NAME = re.compile(r"[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?")
# save_program.py prints the archive so.
_PRINTED = re.compile(
    rb"kubenode-saved-node ([0-9]{1,8}) ([0-9a-f]{64})\n([A-Za-z0-9+/=\n]*)\nkubenode-saved-node-ends\n"
)
# Who gives the image is root on all nodes, so a tag, which can be given to another one, is none.
_IMAGE, _PLACE = re.compile(r"[a-z0-9][-a-z0-9._:/]{0,250}@sha256:[0-9a-f]{64}"), "NAME@sha256:DIGEST"
# Of what is shown of another log.
_SHOWN = 200


class NoArchiveError(Exception):
    """What a pod has printed is no archive."""


def archive_in(log: bytes) -> bytes:
    """Return the archive that a pod has printed. Raises NoArchiveError."""
    if len(log) > MOST_BYTES:
        raise NoArchiveError("it has printed more than %d MiB" % (MOST_BYTES >> 20))
    printed = _PRINTED.search(log)
    if printed is None:
        last = log.rstrip(b"\n").rpartition(b"\n")[2]
        said = "its last line is %r" % last[:_SHOWN].decode("ascii", "replace") if last else "its log is empty"
        raise NoArchiveError("it has not printed a whole archive; %s" % said)
    size, checksum, text = printed.groups()
    try:
        content = base64.b64decode(text.replace(b"\n", b""), validate=True)
    except ValueError:
        content = b""
    if len(content) != int(size) or hashlib.sha256(content).hexdigest() != checksum.decode("ascii"):
        raise NoArchiveError("its archive is damaged")
    return content


def pinned(image: str) -> str:
    """Return an image by its digest. Raises ArgumentTypeError for another one."""
    if not _IMAGE.fullmatch(image):
        raise argparse.ArgumentTypeError("%r is no image with a digest: write it as %s" % (image, _PLACE))
    return image


def daemon_set(image: str) -> str:
    """Return the manifest of the pods with this image."""
    text = (Path(__file__).resolve().parent / "daemonset.yml").read_text(encoding="utf-8")
    return text.replace(_PLACE, image)


def kubectl(*arguments: str, most: int = -1) -> bytes:
    """Return what kubectl prints, at most so many bytes of it. Raises CalledProcessError, OSError."""
    command = ["kubectl", "--namespace=" + NAMESPACE, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        printed = process.stdout.read(most) if process.stdout else b""
        if len(printed) == most:
            process.kill()
    if process.returncode and len(printed) != most:
        raise subprocess.CalledProcessError(process.returncode, command)
    return printed


def pods() -> Iterator[tuple[str, str]]:
    """Yield (node, pod), as the API server names them. Raises CalledProcessError, OSError."""
    for pod in json.loads(kubectl("get", "pods", "--selector=" + LABEL, "--output=json"))["items"]:
        names = (pod["spec"].get("nodeName", ""), pod["metadata"]["name"])
        if all(map(_NAME.fullmatch, names)):
            yield names


def write(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, whole or not at all. Raises OSError."""
    descriptor, temporary = tempfile.mkstemp(dir=str(path.parent), prefix=".kubenode-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, str(path))
    except BaseException:
        os.unlink(temporary)
        raise


def take(directory: Path) -> int:
    """Write the archives and the inventory; 0 where there is a node, and each has printed one. Raises OSError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    hosts: dict[str, Any] = {}
    status = 0
    for node, pod in pods():
        path = directory / (node + ".tar.gz")
        try:
            write(path, archive_in(kubectl("logs", pod, "--container=" + CONTAINER, most=MOST_BYTES + 1)))
        except (NoArchiveError, subprocess.CalledProcessError) as error:
            print("%s: pod %s: %s" % (node, pod, error), file=sys.stderr)
            status = 1
            continue
        hosts[node] = {"kubelet_node_root": str(path.resolve())}
        print("%s: %s" % (node, path))
    if not hosts:
        print("there is no saved node in the namespace %s; apply daemonset.yml first" % NAMESPACE, file=sys.stderr)
        return 1
    here = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    inventory = {"all": {"hosts": hosts, "vars": here}}
    write(directory / INVENTORY, (json.dumps(inventory, indent=1) + "\n").encode("utf-8"))
    return status


def program() -> bytes:
    """Return what the pods run."""
    sys.path.insert(0, str(PLUGINS))
    built: bytes = import_module("module_utils._base.zipapp").build("_saved.save_program", "/usr/bin/env python3")
    return built


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("program", help="write what the pods run").add_argument("file", type=Path)
    commands.add_parser("pods", help="print the manifest of the pods").add_argument("image", type=pinned)
    commands.add_parser("take", help="write what they have printed").add_argument("directory", type=Path)
    given = parser.parse_args(arguments)
    try:
        if given.command == "take":
            return take(given.directory)
        if given.command == "pods":
            print(daemon_set(given.image), end="")
        else:
            write(given.file, program())
    except (OSError, subprocess.CalledProcessError) as error:
        print("%s: %s" % (parser.prog, error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

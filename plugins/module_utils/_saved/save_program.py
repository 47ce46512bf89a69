# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What node_save does, as a program for a pod on a node that nobody can log in to: the archive goes to the pod's log.

The pod mounts the root of its node, read-only. The program makes that its own root, so that it reads what a module
reads on the node, and trusts processes as a module does. extensions/without_ssh/ has the pod and reads the log.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import os
import signal
import sys
import zipfile
from importlib import import_module
from typing import Iterator, Sequence

from .._base.errors import PERMISSION, CPUManagerError, NodeError
from .._base.secrets import text_redacted
from .._base.tree import Tree, node_name
from .._node.node import Node
from .files_of_machine import save_node

# Before the archive in base64, with its size and its SHA-256; and after it. A log may hold less than was printed.
FIRST, LAST = "kubenode-saved-node", "kubenode-saved-node-ends"
# Of a line in characters: a container runtime splits those of 16 KiB.
_WIDTH = 8192


def main(arguments: Sequence[str]) -> int:
    """Print the archive of a node; 0 when it is whole, 1 where the node cannot be saved, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="node-save", description="Print what is saved of a node.")
    parser.add_argument("root", metavar="ROOT", help="where the root of the node is mounted")
    parser.add_argument("--redact", action="store_true", help="hash the names of pods and containers")
    parser.add_argument("--wait", action="store_true", help="then wait for a signal, as a DaemonSet's pod has to")
    given = parser.parse_args(arguments)
    ends = {signal.SIGTERM, signal.SIGINT}
    # The first process of a container has no defaults for signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        enter(given.root)
        tree = Tree()
        content, _about = save_node(Node(tree), node_name(tree), given.redact)
    except (CPUManagerError, OSError) as error:
        sys.stderr.write("error: %s\n" % text_redacted(str(error)))
        return 1
    sys.stdout.write(framed(content))
    sys.stdout.flush()
    if given.wait:
        signal.sigwait(ends)
    return 0


def framed(content: bytes) -> str:
    """Return an archive as a log holds it."""
    text = base64.b64encode(content).decode("ascii")
    lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
    first = "%s %d %s" % (FIRST, len(content), hashlib.sha256(content).hexdigest())
    return "\n".join([first, *lines, LAST, ""])


def enter(root: str) -> None:
    """Make a directory the root of this process, after which it can import nothing more. Raises NodeError, OSError."""
    # The archive that this program comes in, and Python's library, are out of reach then.
    with zipfile.ZipFile(sys.argv[0]) as program:
        for path in program.namelist():
            if "/__init__" not in path and path.count("/"):
                import_module(path[: -len(".py")].replace("/", "."))
                for name in _taken_from_python(program.read(path)):
                    import_module(name)
    try:
        os.chroot(root)
    except PermissionError as error:
        remedy = "give the container the capability SYS_CHROOT"
        raise NodeError("cannot be made the root of this program", root, remedy, PERMISSION) from error
    os.chdir("/")
    # Nothing of the node's is Python for this process.
    sys.path.clear()


def _taken_from_python(source: bytes) -> Iterator[str]:
    """Yield the modules of Python's library that a file imports, also in functions."""
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            yield str(statement.module)

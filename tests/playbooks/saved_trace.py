# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files the modules of a host open, make, look at and execute, and whom they connect to. Source: strace(1)."""

from __future__ import annotations

import os
import re
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

# A module runs in an interpreter that its host names: this one is strace, which starts Python.
_INTERPRETER = """#!/bin/sh
exec strace --follow-forks --seccomp-bpf --decode-fds=path --string-limit=4096 --quiet=all --trace=%s \\
  --output=%s/$$ %s "$@"
"""
_TRACED = "%file,%creds,connect,mount,kill"
_CALL = re.compile(r"^(?:\d+ +)?(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>.*)$")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<directory>[^>]*)>, )?"(?P<path>(?:[^"\\]|\\.)*)"')
_FOUND = re.compile(r"^\d+<(?P<path>/[^>]*)>$")
# What is no file: pipes, sockets and what was made without a name; what was opened before, under its name then; and
# what says nothing. Libraries of Python come as it needs them.
_NO_FILE = ("pipe:", "socket:", "anon_inode:", "/proc/self/fd/")
_NOTHING = "/dev/null"
_LIBRARY = re.compile(r"(/usr)?/lib(64)?/[^ ]*\.so\b.*")
# Whoever looks for where a directory really is looks at those above it.
_LOOKS = ("lstat", "newfstatat", "stat", "statx", "readlink", "readlinkat", "chdir", "access", "faccessat2")


def interpreter(directory: Path) -> str:
    """Return the path of an interpreter that writes what it does into the directory, which is made."""
    directory.mkdir(parents=True)
    script = directory / "python"
    # The name of the version is in none of these, so that each module comes as its sources.
    script.write_text(_INTERPRETER % (_TRACED, shlex.quote(str(directory)), shlex.quote(sys.executable)), "utf-8")
    script.chmod(0o755)
    return str(script)


def touched(directory: Path) -> set[tuple[str, str]]:
    """Return (call, path or peer) of all that was traced, each with the real path where the kernel says it."""
    return {
        found
        for log in directory.iterdir()
        if log.name.isdigit()
        for line in log.read_text("utf-8", "replace").splitlines()
        for found in _of_line(line)
    }


def _of_line(line: str) -> Iterator[tuple[str, str]]:
    call = _CALL.match(line)
    if not call:
        return
    name, arguments = call["name"], call["arguments"]
    if name == "connect":
        yield name, arguments.partition("{")[2]
        return
    if name == "execve" or "xattr" in name:
        # What follows the path are arguments, or the name of an attribute.
        arguments = arguments[: arguments.index('"', 1) + 1]
    for found in _PATH.finditer(arguments):
        yield name, os.path.normpath(os.path.join(found["directory"] or "/", found["path"]))
    real = _FOUND.match(call["result"])
    if real:
        yield name, real["path"]


def outside(found: set[tuple[str, str]], own: set[tuple[str, str]], *roots: Path) -> list[tuple[str, str]]:
    """Return what is neither below one of these roots, nor Python's and Ansible's own.

    own: what a module touches that reads no node.
    """
    python = [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib")]
    below = [str(root) for root in roots] + python + [str(Path("~/.ansible").expanduser())]
    above = {str(place) for root in map(Path, below) for place in root.parents}
    return sorted(
        (call, path)
        for call, path in found - own
        if not path.startswith(_NO_FILE) and path != _NOTHING and not _LIBRARY.fullmatch(path)
        if not any(path == root or path.startswith(root + "/") for root in below)
        and not (call in _LOOKS and path in above)
    )

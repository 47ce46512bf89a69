# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of a kubelet are saved: what it was started with, its configuration, its states, and our journals."""

from __future__ import annotations

import base64
import json
import os
from functools import partial
from typing import Callable, Container, Sequence

from ..errors import MALFORMED, CPUManagerError
from ..host.units import settings_in
from ..kubelet.installed.distributions import (
    CONTAINERD,
    DISTRIBUTIONS,
    DROP_IN_NAME,
    ENVIRONMENT,
    KUBELET_ARG,
    KUBELET_ARG_NAME,
    PATCH_NAME,
    UNIT_DIRECTORIES,
    Distribution,
    marks_of,
    service_of,
)
from ..kubelet.installed.installation import Installation
from ..kubelet.installed.unit import SECTION, assignments_of, resolved, settings_of
from .collector import Change, Collector
from .node import Node
from .places import LAST, OPEN
from .pod_names import checkpoint_without_names, memory_state_without_names
from .redaction import (
    Redaction,
    UnsafeError,
    configuration_redacted,
    environment_redacted,
    flags_redacted,
    kubelet_args_redacted,
    unit_redacted,
    variables_of,
    words_redacted,
)

_WANTS = "/etc/systemd/system/multi-user.target.wants/%s.service"
# Of a process's status: the fields up to its start, which is the last that is read. Others may help an attacker.
_FIELDS_OF_PROCESS = 20


def save_kubelet(collector: Collector, node: Node, redact: bool) -> None:
    """Save the kubelet's files. redact: hash the names of containers."""
    for distribution in DISTRIBUTIONS:
        for mark in marks_of(distribution):
            collector.mark(mark)
    changes = _changes(node, redact)
    installation = node.installation
    if installation is not None:
        _save_units(collector, installation.distribution)
        _save_process(collector, installation)
        if installation.distribution.cri_socket != CONTAINERD:
            collector.mark(installation.distribution.cri_socket)
    for path, change in changes.items():
        collector.file(path, change)
    for path in (OPEN, LAST):
        collector.file(path, lambda content: _journal_redacted(content, changes))


def _changes(node: Node, redact: bool) -> dict[str, Change]:
    """The kubelet's files, whether they are there or not, by path, and what of each is saved."""
    tree, installation = node.tree, node.installation
    found: dict[str, Change] = {
        node.checkpoint_path: checkpoint_without_names if redact else _whole,
        node.memory_state_path: memory_state_without_names if redact else _whole,
    }
    if installation is None:
        return found
    distribution = installation.distribution
    configurations = [installation.config_path]
    if installation.config_dir is not None:
        configurations += [installation.config_dir, "%s/%s" % (installation.config_dir.rstrip("/"), DROP_IN_NAME)]
        configurations += _names(partial(tree.files_below, installation.config_dir))
    if distribution.patches_dir is not None:
        configurations += [distribution.patches_dir, "%s/%s" % (distribution.patches_dir, PATCH_NAME)]
    found.update({path: _of_text(configuration_redacted) for path in configurations if path is not None})
    for file in distribution.flag_files:
        if file.form == KUBELET_ARG:
            beside = file.path + ".d"
            names = [name for name in _names(partial(tree.names, beside)) if name.endswith((".yaml", ".yml"))]
            paths = [file.path, beside, *("%s/%s" % (beside, name) for name in [KUBELET_ARG_NAME, *names])]
            found.update(dict.fromkeys(paths, _of_text(kubelet_args_redacted)))
        elif file.form == ENVIRONMENT:
            found[file.path] = _of_text(partial(environment_redacted, needed=_needed(node, distribution)))
        else:
            found[file.path] = _of_text(flags_redacted)
    return found


def _names(read: Callable[[], Sequence[str]]) -> list[str]:
    try:
        return list(read())
    except CPUManagerError:
        return []


def _whole(content: bytes) -> bytes:
    return content


def _of_text(redaction: Redaction) -> Change:
    """The change of a file of UTF-8 text. Of one that is none, what shows that it is none."""

    def change(content: bytes) -> bytes:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            return b" " * error.start + b"\xff"
        return redaction(text).encode("utf-8", "surrogateescape")

    return change


# --- what starts it ----------------------------------------------------------------------------------------


def _needed(node: Node, distribution: Distribution) -> set[str]:
    """The variables that the command line of the service has."""
    settings = settings_of(node.tree, service_of(node.tree, distribution))
    return {name for key, value in settings if key == "ExecStart" for name in variables_of(value)}


def _save_units(collector: Collector, distribution: Distribution) -> None:
    """Save the units that may start the kubelet, and the environment files that they name."""
    for service in distribution.services:
        collector.mark(_WANTS % service)
        settings = list(settings_of(collector.tree, service))
        needed = {name for key, value in settings if key == "ExecStart" for name in variables_of(value)}
        unit = _of_text(partial(_unit_redacted, service=service, needed=needed))
        for directory in UNIT_DIRECTORIES:
            path = "%s/%s.service" % (directory, service)
            collector.file(path, unit)
            for name in collector.names(path + ".d"):
                if name.endswith(".conf"):
                    collector.file("%s.d/%s" % (path, name), unit)
        for key, value in settings:
            if key == "EnvironmentFile" and value:
                path = resolved(value.lstrip("-"), service)
                collector.file(path, _of_text(partial(environment_redacted, needed=needed)))


def _unit_redacted(text: str, service: str, needed: Container[str]) -> str:
    return unit_redacted(list(settings_in(text, SECTION)), lambda value: assignments_of(value, service), needed)


def _save_process(collector: Collector, installation: Installation) -> None:
    """Save what the running kubelet was started with, and when. Of all other processes nothing is saved."""
    if installation.pid is None:
        return
    path = "/proc/%d" % installation.pid
    words = words_redacted(installation.command_line)
    place = collector.new_place(path + "/cmdline")
    collector.add(place, b"".join(os.fsencode(word) + b"\0" for word in words))
    if words != list(installation.command_line):
        collector.redacted.add(path + "/cmdline")
    collector.file(path + "/stat", _start_alone)
    collector.file("/proc/stat", lambda content: b"".join(_with_start(content.splitlines(True), b"btime ")))
    collector.redacted -= {path + "/stat", "/proc/stat"}


def _with_start(lines: Sequence[bytes], start: bytes) -> list[bytes]:
    return [line for line in lines if line.startswith(start)]


def _start_alone(content: bytes) -> bytes:
    """A process's /proc/PID/stat up to when it started. Source: proc_pid_stat(5)."""
    name, bracket, fields = content.rpartition(b")")
    return name + bracket + b" " + b" ".join(fields.split()[:_FIELDS_OF_PROCESS]) + b"\n" if bracket else b""


# --- journals ----------------------------------------------------------------------------------------------


def _journal_redacted(content: bytes, changes: dict[str, Change]) -> bytes:
    """A journal whose copies of files are as these files are saved. Raises UnsafeError."""
    try:
        journal = json.loads(content.decode("utf-8"))
        files = journal["files"]
        for path, saved in files.items():
            if saved is not None:
                saved["content"] = _copy_redacted(path, saved["content"], changes)
        if journal.get("written") is not None:
            journal["written"] = {
                path: None if content is None else _copy_redacted(path, content, changes)
                for path, content in journal["written"].items()
            }
    except MALFORMED as error:
        raise UnsafeError(str(error)) from error
    # As the journal is written, so that nothing changes where there is no secret.
    return (json.dumps(journal, indent=1, sort_keys=True) + "\n").encode("ascii")


def _copy_redacted(path: str, content: str, changes: dict[str, Change]) -> str:
    change = changes.get(path) or _of_text(configuration_redacted)
    return base64.b64encode(change(base64.b64decode(content, validate=True)) or b"").decode("ascii")

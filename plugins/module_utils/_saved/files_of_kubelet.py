# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of a kubelet are saved: what it was started with, its configuration, its states, and our journals."""

from __future__ import annotations

import base64
import json
import os
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Mapping, Sequence

from .._base.errors import MALFORMED, CPUManagerError
from .._base.journal_file import LAST, OPEN
from .._base.secrets import REDACTED, address_redacted, is_secret
from .._base.tree import Tree
from .._containers.crictl import hashed
from .._host.services import SECTION, Helper, assignments_of, helpers_of, read_service, start_lines
from .._host.systemd import settings_in, unit_paths
from .._kubelet.distributions import (
    CONTAINERD,
    DISTRIBUTIONS,
    DROP_IN_NAME,
    ENVIRONMENT,
    KUBELET_ARG,
    KUBELET_ARG_NAME,
    PATCH_NAME,
    Distribution,
    marks_of,
    service_of,
)
from .._kubelet.installation import Installation
from .._kubelet.redacted_words import words_redacted
from .._kubelet.redaction import (
    Redaction,
    UnsafeError,
    checkpoint_without_names,
    configuration_redacted,
    environment_redacted,
    kubelet_args_redacted,
    lines_redacted,
    memory_state_without_names,
    runtime_redacted,
    unit_redacted,
    variables_of,
)
from .._kubelet.state_removal import START, commands_without_secrets
from .._node.node import PARTITIONING, Node
from .._node.start_check import restored_paths
from ..state.restored import DEVICES, DamageError, Restored, with_numbered_devices, without_content
from .collector import Change, Collector

# What is kept of a journal, beside its copies of files, and of each copy, beside its content.
_OF_JOURNALS, _OF_COPIES = ("format", "phase", "run", "facts", "began", "drain_seconds"), ("mode", "uid", "gid")
_WANTS = "/etc/systemd/system/multi-user.target.wants/%s.service"
# Of a process's status: the fields up to its start, which is the last that is read. Others may help an attacker.
_FIELDS_OF_PROCESS = 20


def save_kubelet(collector: Collector, node: Node, redact: bool) -> None:
    """Save the kubelet's files. redact: hash the names of containers."""
    for distribution in DISTRIBUTIONS:
        for mark in marks_of(distribution):
            collector.mark(mark)
    collector.mark(PARTITIONING)
    changes = _changes(node, redact)
    installation = node.installation
    if installation is not None:
        _save_units(collector, installation.distribution, node.state_paths)
        _save_process(collector, installation)
        if installation.distribution.cri_socket != CONTAINERD:
            collector.mark(installation.distribution.cri_socket)
    for path, change in changes.items():
        collector.file(path, change)
    for path in (OPEN, LAST):
        collector.file(path, lambda content: _journal_redacted(content, changes))


def _changes(node: Node, redact: bool) -> dict[str, Change]:
    """Return the kubelet's files, whether they are there or not, by path, and what of each is saved."""
    tree, installation = node.tree, node.installation
    found: dict[str, Change] = {
        node.checkpoint_path: checkpoint_without_names if redact else _whole,
        node.memory_state_path: memory_state_without_names if redact else _whole,
        # What devices were given can be a secret, and so can their names.
        **{
            path: partial(_restorable, file, node.minor, hashed if redact else str)
            for path, file in restored_paths(node).items()
        },
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
            found[file.path] = _of_text(
                partial(environment_redacted, needed=_needed(tree, service_of(tree, distribution)))
            )
        else:
            found[file.path] = _of_text(lines_redacted)
    return found


def _names(read: Callable[[], Sequence[str]]) -> list[str]:
    try:
        return list(read())
    except CPUManagerError:
        return []


def _whole(content: bytes) -> bytes:
    return content


def _restorable(file: Restored, minor: int, rename: Callable[[str], str], content: bytes) -> bytes:
    """Return what a kubelet says the same of. Raises UnsafeError."""
    if file.name == DEVICES:
        with suppress(DamageError):
            return with_numbered_devices(content, rename)
    short = without_content(file, content, minor)
    if short is None:
        raise UnsafeError("it is not as a kubelet writes it")
    return short


def _of_text(redaction: Redaction) -> Change:
    """Return the change of a file of UTF-8 text. Of one that is none, what shows that it is none."""

    def change(content: bytes) -> bytes:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            return b" " * error.start + b"\xff"
        return redaction(text).encode("utf-8", "surrogateescape")

    return change


# --- what starts it ----------------------------------------------------------------------------------------


def _needed(tree: Tree, service: str) -> dict[str, bool]:
    """Return the variables that the command line of the service has, as variables_of() gives them."""
    lines = start_lines(tree, service)
    return {name: is_value for line in lines for name, is_value in variables_of(line).items()}


def _save_units(collector: Collector, distribution: Distribution, states: Sequence[str]) -> None:
    """Save the units that may start the kubelet, and the environment files that they name."""
    for service in distribution.services:
        collector.mark(_WANTS % service)
        needed = _needed(collector.tree, service)
        removing = commands_without_secrets(collector.tree, service, states)
        for path in unit_paths(collector.tree, service + ".service"):
            lines = ["%s=%s\n" % (each.setting, " ".join(each.words)) for each in removing if each.path == path]
            unit = partial(_unit_redacted, service=service, needed=needed, more="".join(lines))
            collector.file(path, _of_text(unit))
        for path in read_service(collector.tree, service).files:
            collector.file(path, _of_text(partial(environment_redacted, needed=needed)))
        for helper in helpers_of(collector.tree, service):
            _save_helper(collector, service, helper, states)


def _save_helper(collector: Collector, service: str, helper: Helper, states: Sequence[str]) -> None:
    """Save a unit that runs before the kubelet's, as one file with what its commands do to the states and cgroups."""
    commands = commands_without_secrets(collector.tree, helper.name, states, (START,))
    lines = ["%s=%s\n" % (command.setting, " ".join(command.words)) for command in commands]
    text = "[Unit]\nBefore=%s.service\n[Service]\nType=oneshot\n%s" % (service, "".join(lines))
    collector.add(collector.new_place("/etc/systemd/system/%s.service" % helper.name), text.encode())
    link = _WANTS if helper.at_boot else "/etc/systemd/system/%s.service.wants/%%s.service" % service
    collector.add(collector.new_place(link % helper.name), b"")


def _unit_redacted(text: str, service: str, needed: Mapping[str, bool], more: str) -> str:
    settings = list(settings_in(text, SECTION))
    return unit_redacted(settings, lambda value: assignments_of(value, service), needed) + more


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
    save_start(collector, path)


def save_start(collector: Collector, path: str) -> None:
    """Save when a process started, and when the node was booted. path: of its directory in /proc."""
    collector.file(path + "/stat", _start_alone)
    collector.file("/proc/stat", lambda content: b"".join(_with_start(content.splitlines(True), b"btime ")))
    collector.redacted -= {path + "/stat", "/proc/stat"}


def _with_start(lines: Sequence[bytes], start: bytes) -> list[bytes]:
    return [line for line in lines if line.startswith(start)]


def _start_alone(content: bytes) -> bytes:
    """Return a process's /proc/PID/stat up to when it started. Source: proc_pid_stat(5)."""
    name, bracket, fields = content.rpartition(b")")
    return name + bracket + b" " + b" ".join(fields.split()[:_FIELDS_OF_PROCESS]) + b"\n" if bracket else b""


# --- journals ----------------------------------------------------------------------------------------------


def _journal_redacted(content: bytes, changes: dict[str, Change]) -> bytes:
    """Return a journal whose copies of files are as these files are saved. Raises UnsafeError."""
    try:
        journal = json.loads(content.decode("utf-8"))
        kept = {name: _fact(name, journal[name]) for name in _OF_JOURNALS if name in journal}
        kept["files"] = {
            path: saved and _file(saved, change) for path, saved, change in _copies(journal["files"], changes)
        }
        if journal.get("written") is not None:
            copies = _copies(journal["written"], changes)
            kept["written"] = {path: saved and _copy(saved, change) for path, saved, change in copies}
    except MALFORMED as error:
        raise UnsafeError("it is damaged") from error
    # As the journal is written, so that nothing changes where there is no secret.
    return (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode("ascii")


def _copies(saved: dict[str, Any], changes: dict[str, Change]) -> list[tuple[str, Any, Change | None]]:
    return [(path, copy, changes.get(path)) for path, copy in saved.items()]


def _file(saved: dict[str, Any], change: Change | None) -> dict[str, object]:
    return {"content": _copy(saved["content"], change), **{name: int(saved[name]) for name in _OF_COPIES}}


def _copy(content: str, change: Change | None) -> str:
    kept = _copy_redacted(base64.b64decode(content, validate=True), change)
    return base64.b64encode(kept).decode("ascii")


def _copy_redacted(content: bytes, change: Change | None) -> bytes:
    """Return what is kept of a journal's copy of a file. Other files than the kubelet's are those of a container
    runtime."""
    try:
        return (change or runtime_redacted)(content) or b""
    except UnsafeError:
        return REDACTED.encode("ascii") + b"\n"


def shown_difference(node: Node, path: str, before: bytes | None, after: bytes | None) -> list[str]:
    """Return what --diff and -vvv show of a change of one of the kubelet's files, or of its container runtime's:
    its path, and what is in it before and after.

    path: on the node. What was left out of both looks the same; of what is no TOML, the lines that differ are shown.
    """
    change = _changes(node, False).get(path) or runtime_redacted
    texts = [b"" if content is None else content for content in (before, after)]
    try:
        texts = [change(content) or b"" for content in texts]
    except UnsafeError:
        lines = [content.splitlines(True) for content in texts]
        common = set(lines[0]).intersection(lines[1])
        texts = [b"".join(line for line in some if line not in common) for some in lines]
    return [node.tree.path(path), *(text.decode("utf-8", "replace") for text in texts)]


def _fact(name: str, value: object) -> object:
    """Return what is kept of what a journal remembers beside files."""
    if isinstance(value, dict):
        return {str(key): _fact(str(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fact(name, item) for item in value]
    if isinstance(value, str):
        return REDACTED if is_secret(name) else address_redacted(value)
    return value

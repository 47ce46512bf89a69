# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result files of nodes: one for each node and look, so that a fleet can be looked at in parts.

A file holds {"schema_version", "kind", "fleet", "host", "looked_at", "answer", "running", "waivers", "looks"}; its
schema is docs/schema/node-1.json. `running` has the settings that the running kubelet reports, empty where it was not
read; `looks` has what the node answered to each look that was wanted, by the names in LOOKS.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ...errors import CPUManagerError, InputError, NodeError, RefusedError
from .answers import answered
from .output import put_file, stem_of
from .texts import WRONG, line, plain
from .times import seconds_of, time_of

KIND = "kubenode.cpu_manager/node"
SCHEMA_VERSION = "1.0"
_MAJOR = SCHEMA_VERSION.partition(".")[0]
# Of the directory of a report, where the files are.
NODES = "nodes"
_SUFFIX = ".json"
# More than the answer of any real node has, in bytes.
LARGEST = 16 << 20
# By which the clocks of controllers may differ, in seconds.
_MOST_AHEAD = 300


class Result(NamedTuple):
    """What one look at one node gave."""

    host: str
    looked_at: str
    answer: Mapping[str, Any]
    running: Mapping[str, object]
    waivers: Sequence[object]
    looks: Mapping[str, object] = {}
    # Empty where it was given no name.
    fleet: str = ""


class Problem(NamedTuple):
    """A result file that was not used."""

    file: str
    text: str
    remedy: str


def file_name(host: str) -> str:
    """Of a host's result file."""
    return stem_of(host) + _SUFFIX


def write_result(directory: str, result: Result) -> str:
    """Write a result file below `directory`, whole or not at all. Returns its path. Raises NodeError."""
    path = os.path.join(directory, NODES, file_name(result.host))
    content = {"schema_version": SCHEMA_VERSION, "kind": KIND, **result._asdict()}
    try:
        text = _json({**content, "answer": plain(answered(result.answer), str)})
    except WRONG as error:
        # A node may be hostile: what nobody can read again would make it a node without a result.
        answer = {"failed": True, "msg": "the answer of the node cannot be written: %s" % error}
        text = _json({**content, "answer": answer, "running": {}, "looks": {}})
    put_file(path, [text, "\n"])
    return path


def _json(content: Mapping[str, object]) -> str:
    return json.dumps(content, sort_keys=True, default=str, allow_nan=False)


def find_files(sources: Iterable[str]) -> Iterator[str]:
    """The result files in these places: a file, or a directory with NODES in it or anywhere below.

    Links to directories are not followed. A directory that cannot be read is given itself, so that it is a problem.
    Raises InputError for a place that is not there.
    """
    unread: list[str] = []
    for source in sources:
        if not os.path.isdir(source):
            if not os.path.lexists(source):
                raise InputError("there is no such file or directory", source, "give where the reports of a fleet are")
            yield source
            continue
        waiting = [source]
        while waiting:
            directory = waiting.pop()
            try:
                with os.scandir(directory) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                unread.append(directory)
                continue
            if os.path.basename(os.path.abspath(directory)) == NODES:
                yield from (entry.path for entry in found if entry.name.endswith(_SUFFIX) and not entry.is_dir())
            waiting += [entry.path for entry in reversed(found) if entry.is_dir(follow_symlinks=False)]
    yield from unread


def read_results(paths: Iterable[str], fleet: str = "", now: float | None = None) -> Iterator[Result | Problem]:
    """What each of these files holds, or why it is not used.

    fleet: the one whose files count; if empty, that of the first file that names one, and files that name none.
    now: seconds since the epoch. A result of the future is not used: it would be the newest one, and never too old.
    """
    files: dict[tuple[str, str], str] = {}
    named = ("", "")
    for path in paths:
        try:
            result = read_result(path, fleet)
            _check_time(path, result, now)
            if result.fleet and not named[0]:
                named = (result.fleet, path)
            _check_fleet(path, result, *named)
            _check_twice(path, result, files.setdefault((result.host, result.looked_at), path))
            yield result
        except CPUManagerError as error:
            yield Problem(path, error.what, error.remedy)


def _check_time(path: str, result: Result, now: float | None) -> None:
    """Raises NodeError for a result of the future."""
    if now is not None and seconds_of(result.looked_at) > now + _MOST_AHEAD:
        what = "was looked at on %s, and it is %s" % (result.looked_at, time_of(now))
        remedy = "correct the clock that is wrong, and look at the node again with the playbook drift_report"
        raise NodeError(what, path, remedy)


def _check_fleet(path: str, result: Result, fleet: str, first: str) -> None:
    """Raises RefusedError for a result of another fleet than the first: hosts of both may have the same names."""
    if result.fleet and result.fleet != fleet:
        what = "is of the fleet %s, and %s is of %s" % (_short(result.fleet), line(first), _short(fleet))
        raise RefusedError(what, path, "say which fleet is meant, or take the file out of the given places")


def _check_twice(path: str, result: Result, before: str) -> None:
    """Raises RefusedError for a result that differs from one of the same node and moment: which is right is unknown."""
    if path == before:
        return
    try:
        is_same = read_result(before) == result
    except RecursionError:
        is_same = False
    if not is_same:
        what = "differs from %s, which is of the same node and moment" % line(before)
        raise RefusedError(what, path, "look at the node again, or take one of the two out of the given places")


def read_result(path: str, fleet: str = "") -> Result:
    """What a result file holds. Raises NodeError for one that is damaged, RefusedError for one that is not meant."""
    content = _parsed(path)
    again = "look at the node again with the playbook drift_report"
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise RefusedError(
            "is no result of a node", path, "give only what the role drift_report wrote below %s" % NODES
        )
    version = content.get("schema_version")
    if not isinstance(version, str) or version.partition(".")[0] != _MAJOR:
        remedy = "make the report with a collection that is as new as the one that wrote the file"
        raise RefusedError(
            "has the schema version %s, and this is %s" % (_short(version), SCHEMA_VERSION), path, remedy
        )
    host, looked_at = content.get("host"), content.get("looked_at")
    if not isinstance(host, str) or os.path.basename(path) != file_name(host):
        raise RefusedError("is the result of another host, %s" % _short(host), path, "do not rename result files")
    if fleet and content.get("fleet") != fleet:
        what = "is of the fleet %s, not of %s" % (_short(content.get("fleet")), fleet)
        raise RefusedError(what, path, "take it out of the given places")
    try:
        seconds_of(looked_at)
    except InputError as error:
        raise NodeError("does not say when the node was looked at", path, again) from error
    answer, waivers = content.get("answer"), content.get("waivers", [])
    running, looks = content.get("running", {}), content.get("looks", {})
    if not isinstance(answer, dict) or not isinstance(running, dict) or not isinstance(waivers, list):
        raise NodeError("has no answer of the node", path, again)
    if not isinstance(looks, dict):
        raise NodeError("has no answer of the node", path, again)
    named = content.get("fleet")
    return Result(host, str(looked_at), answer, running, waivers, looks, named if isinstance(named, str) else "")


def _parsed(path: str) -> object:
    again = "look at the node again with the playbook drift_report, or take the file away"
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise NodeError("is not a regular file", path, again)
            if status.st_size > LARGEST:
                raise NodeError("has %d bytes, more than any node answers" % status.st_size, path, again)
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise NodeError("cannot be read: %s" % error.strerror, path, "correct its mode, or take it away") from error
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        text = error.doc.strip()
        is_cut = text[:1] in ("", "{") and (text[-1:] != "}" or error.pos >= len(error.doc.rstrip()))
        what = "is cut off" if is_cut else "is no JSON"
        raise NodeError("%s, at character %d" % (what, error.pos), path, again) from error
    except (ValueError, RecursionError) as error:
        raise NodeError("is no JSON", path, again) from error


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _short(value: object) -> str:
    return '"%s"' % line(value[:80]) if isinstance(value, str) else line(value)[:80]

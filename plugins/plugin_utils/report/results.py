# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result files of nodes and the files of reports: one for each node and look, so that a fleet is looked at in
parts.

A file holds {"schema_version", "kind", "fleet", "host", "looked_at", "answer", "running", "waivers", "looks",
"may_lack_kubelet"}; its schema is docs/schema/node-1.json. `running` has the settings that the running kubelet
reports, empty where it was not read; `looks` has what the node answered to each look that was wanted, by the names in
LOOKS.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
from contextlib import suppress
from hashlib import sha256
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence
from urllib.parse import quote

from ...module_utils._base.arguments import instead, nearest
from ...module_utils._base.errors import CPUManagerError, InputError, NodeError, RefusedError
from ...module_utils._base.files import cannot_write
from .answers import WRONG, answered, check_date, line, plain, seconds_of, time_of
from .checks import CHECKS

# Waivers: findings that somebody has accepted until a day, with a reason. Pure.


_KEYS = frozenset(("check", "reason", "until", "subject"))


def checked_waivers(waivers: Iterable[object], option: str) -> list[dict[str, str]]:
    """Return the waivers, as result files hold them. Raises InputError for one that is wrong. option: the name in
    messages.

    waivers: [{"check", "reason", "until"}], with `subject` where only one is meant.
    """
    return [_checked(waiver, "%s[%d]" % (option, number)) for number, waiver in enumerate(waivers)]


def _checked(waiver: object, where: str) -> dict[str, str]:
    if not isinstance(waiver, dict):
        raise InputError("%r is not a mapping" % (waiver,), where, "give check, reason and until")
    unknown = sorted(str(key) for key in waiver if key not in _KEYS)
    if unknown:
        raise InputError("has the unknown key %s" % unknown[0], where, instead(unknown[0], sorted(_KEYS)))
    missing = [key for key in ("check", "reason", "until") if not waiver.get(key)]
    if missing:
        raise InputError("has no %s" % missing[0], where, "give check, reason and until")
    if not isinstance(waiver["check"], str) or waiver["check"] not in CHECKS:
        meant = nearest(waiver["check"], CHECKS)
        remedy = "did you mean %s?" % meant if meant else "take an id from the page on the checks"
        raise InputError("there is no check %s" % (waiver["check"],), where, remedy)
    try:
        until = check_date(waiver["until"])
    except InputError as error:
        raise InputError(error.what, where + ".until", error.remedy) from error
    return {**{key: str(value) for key, value in waiver.items() if value is not None}, "until": until}


# How far a look at many nodes is, as the processes that look count it together in one file.


_RECORD = struct.Struct("<d")
# A line at most so often, in seconds.
_SECONDS = 10.0


def run_of(process: int) -> str:
    """Return the name of the run of a process: another machine, or a container, may have a process of the same
    number."""
    return sha256(("%s %d" % (os.uname().nodename, process)).encode("utf-8", "surrogateescape")).hexdigest()[:16]


class Progress:
    """Counts the nodes of one run. Each process adds a record, the time, to a file: the system keeps these apart."""

    def __init__(self, directory: str, run: str, total: int) -> None:
        self._path = os.path.join(directory, ".progress-%s" % run)
        self._total = total

    def advance(self, now: float) -> str:
        """Count one more node. Returns a line for people, empty where it is not yet time for one."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, _RECORD.pack(now))
                size = os.fstat(descriptor).st_size
                first = os.pread(descriptor, _RECORD.size, 0)
                before = os.pread(descriptor, _RECORD.size, max(size - 2 * _RECORD.size, 0))
            finally:
                os.close(descriptor)
        except OSError:
            return ""  # it is only for information
        done = size // _RECORD.size
        if done >= self._total:
            self.end()
            return ""
        (start,), (last,) = _RECORD.unpack(first), _RECORD.unpack(before)
        # A clock may be set back, and the file may have been that of another program.
        if not 0 <= start <= now or (now - start) // _SECONDS <= (last - start) // _SECONDS:
            return ""
        left = (now - start) / done * (self._total - done)
        return "%d of %d nodes (%d %%), about %s left" % (done, self._total, 100 * done // self._total, _spoken(left))

    def end(self) -> None:
        """Forget the run, also where nodes were not counted."""
        with suppress(OSError):
            os.unlink(self._path)


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return "%d seconds" % max(seconds, 2)
    return "%d minutes" % round(seconds / 60)


# Writes and names the files of reports, on the controller. Several may be written to one directory at once.


_MODE = 0o644
# Of what takes the name's place while a file is written: no two runs have the same.
_RANDOM = 8
# What runs that are killed leave: below the directory of a report, and below its results.
_LEFT = {
    "": re.compile(r"drift\.[a-z]+\.[0-9a-f]{1,16}~|\.progress-[0-9a-f]{1,16}"),
    "nodes": re.compile(r".+\.json\.[0-9a-f]{1,16}~", re.DOTALL),
}
# Another machine may write to the same directory, so its processes are unknown here. No run takes so long, in seconds.
_AGE = 86400
# Of a file's name; the system takes 255.
_LONGEST_NAME = 200


def stem_of(*names: str) -> str:
    """Return a part of a file's name that is made of names, such as of a host, and that no other ones give.

    No name leads out of the directory, whatever the inventory calls a host.
    """
    # Half a character, as JSON may have it, is a part of a name, too.
    first, *more = (quote(name, safe="", errors="surrogatepass") for name in names)
    stem = "-".join([first, *(name.replace("-", "%2D") for name in more)])
    stem = stem if stem.strip(".") else stem.replace(".", "%2E")
    if len(stem) > _LONGEST_NAME:
        stem = stem[:_LONGEST_NAME] + "-" + sha256(stem.encode("ascii")).hexdigest()[:16]
    return stem


def put_file(path: str, parts: Iterable[str]) -> None:
    """Write a text to `path`, as put_bytes() does."""
    # Half a character, as JSON may have it, is no UTF-8.
    put_bytes(path, (part.encode("utf-8", "backslashreplace") for part in parts))


def put_bytes(path: str, parts: Iterable[bytes], private: bool = False) -> None:
    """Write a file to `path`, whole or not at all; its directory is made where there is none.

    private: what is made can be read by its owner alone. A reader sees the old or the new content. A link in the place
    of the file is replaced, not followed.
    Raises NodeError.
    """
    temporary = "%s.%s~" % (path, os.urandom(_RANDOM).hex())
    try:
        os.makedirs(os.path.dirname(path) or ".", 0o700 if private else 0o777, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600 if private else _MODE)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise cannot_write(path, error) from error


def sweep(directory: str, now: float) -> None:
    """Remove what killed runs left in the directory of a report, where that can be done."""
    for place, pattern in _LEFT.items():
        with suppress(OSError), os.scandir(os.path.join(directory, place)) as entries:
            for entry in entries:
                if pattern.fullmatch(entry.name):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and now - status.st_mtime > _AGE:
                            os.unlink(entry.path)


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
    # Whether a host without a kubelet is left out on purpose. Of any other one it is not known how its node is.
    may_lack_kubelet: bool = False


class Problem(NamedTuple):
    """A result file that was not used."""

    file: str
    text: str
    remedy: str


def file_name(host: str) -> str:
    """Return the name of a host's result file."""
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
    """Yield the result files in these places: a file, or a directory with NODES in it or anywhere below.

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
    """Yield what each of these files holds, or why it is not used.

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
    """Raise NodeError for a result of the future."""
    if now is not None and seconds_of(result.looked_at) > now + _MOST_AHEAD:
        what = "was looked at on %s, and it is %s" % (result.looked_at, time_of(now))
        remedy = "correct the clock that is wrong, and look at the node again with the playbook drift_report"
        raise NodeError(what, path, remedy)


def _check_fleet(path: str, result: Result, fleet: str, first: str) -> None:
    """Raise RefusedError for a result of another fleet than the first: hosts of both may have the same names."""
    if result.fleet and result.fleet != fleet:
        what = "is of the fleet %s, and %s is of %s" % (_short(result.fleet), line(first), _short(fleet))
        raise RefusedError(what, path, "say which fleet is meant, or take the file out of the given places")


def _check_twice(path: str, result: Result, before: str) -> None:
    """Raise RefusedError for a result that differs from one of the same node and moment: which is right is unknown."""
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
    """Return what a result file holds. Raises NodeError for one that is damaged, RefusedError for one that is not
    meant."""
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
    fleet = named if isinstance(named, str) else ""
    return Result(host, str(looked_at), answer, running, waivers, looks, fleet, content.get("may_lack_kubelet") is True)


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

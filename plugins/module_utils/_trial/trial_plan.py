# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A trial start decided: with which flags and runtime a kubelet is started, what it must not reach, and what its words
mean. Pure.

Source: cmd/kubelet/app/server.go in Kubernetes; klog's header of a line; docs/man/containerd-config.toml.5.md; mount
options in mountinfo as in proc_pid_mountinfo(5), of cgroup v1 as in cgroups(7).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import posixpath
import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._kubelet.configuration import COMMON_DEFAULTS, reached_at
from .._kubelet.flags import END_OF_FLAGS, MANIFEST_URL, MANIFEST_URL_HEADER, flag_values, split_flags
from ..cpuset import CPUSet

# Where a trial has its own files. Only its own mounts have this directory.
ROOM = "/run/kubenode-trial"
SOCKET = ROOM + "/runtime.sock"
_ENDPOINT = "unix://" + SOCKET

# Seconds. The first form of this took 6 on a busy machine.
PATIENCE = 45.0
RUNTIME_PATIENCE = 10.0
# How long a kubelet that has started may take to say that it is healthy.
HEALTH_PATIENCE = 3.0

CONTAINERD, CRIO = "containerd", "crio"
CGROUPFS, SYSTEMD = "cgroupfs", "systemd"


# Of a trial that there cannot be.
UNTRIED = "cannot be tried: %s"


class UntriedError(Exception):
    """A trial cannot be had here. The message says why."""


class CgroupMount(NamedTuple):
    """Where a hierarchy of cgroups is mounted, and what makes a mount of it: ("cgroup2", "") or ("cgroup", "cpu")."""

    path: str
    kind: str
    options: str = ""


class TrialPlan(NamedTuple):
    """What is started, and on what.

    words: the kubelet's, as the node gives them. values: its configuration as far as it can be read. root: its root
    directory. contents: {path: what is planned there, None for nothing}. cpus: where the trial runs. named_cgroups:
    those that the configuration names and that are there. hierarchies: of all cgroups. runtime: a program and its
    kind, None for none. patience: seconds.
    """

    kubelet: str
    words: Sequence[str]
    values: Mapping[str, Any]
    root: str
    contents: Mapping[str, bytes | None]
    cpus: CPUSet
    named_cgroups: Sequence[str]
    hierarchies: Sequence[CgroupMount]
    runtime: tuple[str, str] | None = None
    patience: float = PATIENCE

    def scaled(self, seconds: float) -> float:
        """So long a part of a usual trial is as long in this one, which may take longer."""
        return seconds * max(1.0, self.patience / PATIENCE)

    def command(self, minor: int) -> list[str]:
        """The command line."""
        return [self.kubelet, *trial_words(self.words, self.values, minor)]

    def hidden(self) -> list[str]:
        """The paths of what the kubelet is not to find: who it is at the API server, and static pods."""
        named = [value for name, value in flag_values(self.words) if name in (*_CREDENTIALS, "pod-manifest-path")]
        return [path for path in (*named, str(self.values.get("staticPodPath"))) if _is_path(path)]

    def named_paths(self) -> list[str]:
        """Every path that a flag or the configuration names, but for what is hidden."""
        named = [value for _name, value in flag_values(self.words)]
        hidden = set(self.hidden())
        return [path for path in dict.fromkeys([*named, *_texts(self.values)]) if _is_path(path) and path not in hidden]

    def writable(self) -> list[str]:
        """The directories of which the kubelet gets copies, to write into."""
        given = [value for name, value in flag_values(self.words) if name == "cert-dir" and _is_path(value)]
        paths = [posixpath.normpath(path) for path in (self.root, *given)]
        return [path for path in dict.fromkeys(paths) if not any(_is_below(path, above) for above in paths)]

    def digest(self, states: Sequence[str]) -> str:
        """A short text that is the same for the same program, words, configuration and files.

        states: the paths of what changes with each pod that comes and goes, and does not count.
        """
        contents = sorted((path, content) for path, content in self.contents.items() if path not in states)
        tried = repr((self.kubelet, list(self.words), self.values, contents))
        return hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]

    def health_address(self) -> tuple[str, int] | None:
        """Where it says that it is healthy; None for nowhere."""
        port = self.values.get("healthzPort", COMMON_DEFAULTS["healthzPort"])
        if not isinstance(port, int) or not 0 < port < 1 << 16:
            return None
        return reached_at(str(self.values.get("healthzBindAddress") or "127.0.0.1")), port


# Of a digest: enough to tell what one node was ever to start with from all else.
_DIGITS = 32


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and "\0" not in value


def _is_below(path: str, above: str) -> bool:
    return path.startswith(above.rstrip("/") + "/")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


# --- the command line -----------------------------------------------------------------------------------------

# Without these a kubelet stands alone: it asks no API server, and nobody waits for its answer.
_CREDENTIALS = ("kubeconfig", "bootstrap-kubeconfig")
_LEFT_OUT = (*_CREDENTIALS, MANIFEST_URL, MANIFEST_URL_HEADER)
# Before this minor version the kubelet has Docker as a runtime of its own.
_REMOTE_ALONE_SINCE = 24

# What a kubelet that stands alone, in cgroups of its own, has to be given.
_OWN = {
    "cgroup-driver": CGROUPFS,
    "authentication-token-webhook": "false",
    "authorization-mode": "AlwaysAllow",
    "container-runtime-endpoint": _ENDPOINT,
}
# What of a start is therefore not tried.
NOT_TRIED = (
    "the API server: the kubelet was started without its kubeconfig",
    "how it authenticates and authorizes those who ask it",
    "pods, static ones too, and the network",
)
_NOT_SYSTEMD = "the cgroup driver systemd and its slices: it had cgroupfs, in cgroups of its own"
_NO_RUNTIME = "what it checks after it has asked the container runtime"


def own_flags(values: Mapping[str, Any], minor: int) -> dict[str, str]:
    """The flags that a trial adds. The last of a name counts."""
    flags = dict(_OWN)
    if values.get("imageServiceEndpoint"):
        flags["image-service-endpoint"] = _ENDPOINT
    if minor < _REMOTE_ALONE_SINCE:
        flags["container-runtime"] = "remote"
    return flags


def trial_words(words: Iterable[str], values: Mapping[str, Any], minor: int) -> list[str]:
    """The kubelet's words in a trial: its own, without what leads to others, and with what a trial needs."""
    kept: list[str] = []
    behind: list[str] = []
    for name, some in split_flags(words):
        if not name and some[0] == END_OF_FLAGS:
            behind = some
        elif name not in _LEFT_OUT:
            kept += some
    return [*kept, *("--%s=%s" % flag for flag in own_flags(values, minor).items()), *behind]


# --- the container runtime ------------------------------------------------------------------------------------

_CONTAINERD_CONFIG = """\
version = 2
root = "{room}/root"
state = "{room}/state"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.restart",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{socket}"
[ttrpc]
address = "{socket}.ttrpc"
[plugins."io.containerd.nri.v1.nri"]
disable = true
[plugins."io.containerd.grpc.v1.cri"]
disable_apparmor = true
disable_cgroup = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{room}/none"
conf_dir = "{room}/cni"
"""
_CRIO_CONFIG = """\
[crio]
root = "{room}/root"
runroot = "{room}/state"
storage_driver = "vfs"
log_dir = "{room}/log"
version_file = "{room}/version"
version_file_persist = ""
clean_shutdown_file = ""
[crio.api]
listen = "{socket}"
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
hooks_dir = []
namespaces_dir = "{room}/ns"
container_exits_dir = "{room}/exits"
container_attach_socket_dir = "{room}/attach"
[crio.network]
network_dir = "{room}/cni"
plugin_dirs = ["{room}/none"]
[crio.nri]
enable_nri = false
"""
# It names a network that nobody calls: without one, the node is not ready.
_CNI = '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}\n'


class PrivateRuntime(NamedTuple):
    """How a runtime of a trial's own is started: its files by path, and its command line."""

    files: Mapping[str, str]
    command: Sequence[str]


def private_runtime(program: str, kind: str) -> PrivateRuntime:
    """A runtime that shares nothing with that of the node. Version 2 is what containerd 1.3 to 2.x understand."""
    config = ROOM + "/runtime.conf"
    text = (_CRIO_CONFIG if kind == CRIO else _CONTAINERD_CONFIG).format(room=ROOM, socket=SOCKET)
    more = ["--config-dir", ""] if kind == CRIO else []
    return PrivateRuntime({config: text, ROOM + "/cni/none.conflist": _CNI}, [program, "--config", config, *more])


# --- cgroups --------------------------------------------------------------------------------------------------

_CGROUPS = "/sys/fs/cgroup"
# What a mount of v1 shows beside its controllers.
_NO_CONTROLLERS = re.compile("rw|ro|xattr|noprefix|clone_children|cpuset_v2_mode|favordynmods|release_agent=.*|none")
_OCTAL = re.compile(r"\\([0-7]{3})")


def read_hierarchies(mountinfo: str) -> list[CgroupMount]:
    """The hierarchies of cgroups at their usual place, each once. Raises UntriedError where there is none."""
    found: dict[tuple[str, str], CgroupMount] = {}
    for line in mountinfo.splitlines():
        left, _dash, right = line.partition(" - ")
        path = _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), left.split(" ")[4])
        kind, _source, options = right.split(" ")[:3]
        if kind not in ("cgroup", "cgroup2") or not (path == _CGROUPS or _is_below(path, _CGROUPS)):
            continue
        names = [name for name in options.split(",") if not _NO_CONTROLLERS.fullmatch(name)]
        if kind == "cgroup2":
            names = []
        elif all(name.startswith("name=") for name in names):
            names.insert(0, "none")
        found.setdefault((kind, ",".join(names)), CgroupMount(path, kind, ",".join(names)))
    if not found:
        raise UntriedError("no cgroups are mounted below %s" % _CGROUPS)
    return list(found.values())


# --- what the kubelet says ------------------------------------------------------------------------------------

# All versions that were tried say this when their managers have started.
_STARTED = b"Starting Kubelet Plugin Manager"
_LONGEST = 1 << 16
_MOST_OF_MESSAGE = 2000
_FATAL = re.compile(rb"^(?:F\d{4} \d\d:.*|panic: .*)$", re.MULTILINE)
_ERROR = re.compile(rb'^(?:E\d{4} \d\d:.*|\{"ts":.*"err":.*|Error: .*)$', re.MULTILINE)
_HEADER = re.compile(r"^[EF]\d{4} \S+ +\d+ [^] ]+\] ")
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_STRUCTURED = re.compile(r"%s(?:(?: .*?)? err=%s.*|(?: .*)?)" % (_QUOTED, _QUOTED))
_ESCAPES = {"n": "\n", "t": "\t"}


class Words:
    """What a kubelet says, of which only that is kept by which its end is understood."""

    def __init__(self) -> None:
        self.has_started = False
        self._fatal = self._error = self._last = b""
        self._rest = b""

    def hear(self, chunk: bytes) -> None:
        """What it says next."""
        text = self._rest + chunk
        self.has_started = self.has_started or _STARTED in text
        end = text.rfind(b"\n") + 1
        self._rest = text[end:][:_LONGEST]
        self._take(text[:end])

    def _take(self, lines: bytes) -> None:
        # A fatal line is the first of many, as all goroutines are shown behind it.
        fatal = None if self._fatal else _FATAL.search(lines)
        if fatal:
            self._fatal = fatal.group()[:_LONGEST]
        for found in _ERROR.finditer(lines):
            self._error = found.group()[:_LONGEST]
        last = lines.rstrip().rpartition(b"\n")[2]
        self._last = last[:_LONGEST] or self._last

    def why(self) -> str:
        """Why it has ended, in its own words; empty where it said nothing."""
        self._take(self._rest + b"\n")
        self._rest = b""
        return words_of(self._fatal or self._error or self._last)


def words_of(line: bytes) -> str:
    """What a line of a kubelet's log says, without time and place, as plain text: a message and its error."""
    text = _HEADER.sub("", line.decode("utf-8", "replace").strip())
    if text.startswith("{"):
        try:
            said = json.loads(text)
            text = ": ".join(str(said[key]) for key in ("msg", "err") if said.get(key))
        except (AttributeError, ValueError):
            pass
    else:
        structured = _STRUCTURED.fullmatch(text)
        if structured:
            text = ": ".join(_unquoted(part) for part in structured.groups() if part)
    return text[:_MOST_OF_MESSAGE]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(1)), text)


# --- what it means --------------------------------------------------------------------------------------------


class Ending(NamedTuple):
    """How a trial went, as it is told by the process inside.

    failed: why the kubelet could not be started at all. status: of the kubelet that has ended, negative for a signal.
    has_started, is_healthy: of one that has not. asked_runtime: whether it came so far, where there was none. doubt:
    why what it did says nothing of a start of the service.
    """

    version: str = ""
    seconds: float = 0.0
    failed: str = ""
    status: int | None = None
    message: str = ""
    has_started: bool = False
    is_healthy: bool = True
    asked_runtime: bool = False
    runtime_fault: str = ""
    doubt: str = ""
    state: str | None = None


class TrialVerdict(NamedTuple):
    """starts: None where the trial does not say. reason: why it does not."""

    starts: bool | None
    message: str = ""
    reason: str = ""


# What the system says to a process that may not do something: a trial may do less than a service.
_DENIALS = [os.strerror(number).lower() for number in (errno.EACCES, errno.EPERM, errno.EROFS)]
_NO_SPACE = os.strerror(errno.ENOSPC).lower()
# What AppArmor says of a process that it holds to nothing.
_UNCONFINED = "unconfined"


def told_of(error: OSError, domain: str = "") -> str:
    """What the system refused to a trial, as the reason why there is none.

    domain: what SELinux or AppArmor holds the trial to, as the kernel says it; empty where nothing does.
    """
    if error.errno == errno.ENOSPC:
        return "%s: a trial has its files in memory, and not enough room for them there" % error.filename
    told = "%s: %s" % (error.filename or "a call", error.strerror)
    is_denied = error.errno in (errno.EACCES, errno.EPERM) and domain not in ("", _UNCONFINED)
    return "%s, in the domain %s" % (told, domain) if is_denied else told


def judge(ending: Ending, own: Iterable[str] = ()) -> TrialVerdict:
    """Whether the kubelet starts. own: the names of the flags that the trial has added."""
    if ending.has_started and ending.status is None:
        return TrialVerdict(None if ending.doubt else True, reason=ending.doubt)
    reason = _why_unsaid(ending, own)
    return TrialVerdict(None if reason else False, ending.message, reason)


def _why_unsaid(ending: Ending, own: Iterable[str]) -> str:
    """Why a trial in which no kubelet has started says nothing of a start; empty where it does: it was refused."""
    status, message = ending.status, ending.message
    denial = next((denial for denial in _DENIALS if denial in message.lower()), "")
    of_runtime = ": " + ending.runtime_fault if ending.runtime_fault else ""
    reasons = (
        (bool(ending.failed), UNTRIED % ending.failed),
        (bool(ending.doubt), ending.doubt),
        (
            ending.asked_runtime,
            "no refusal before it asked the container runtime, and there is none for a trial%s" % of_runtime,
        ),
        (status is None, "in %.0f s it has neither started nor ended" % ending.seconds),
        (status is not None and status < 0, "it was ended by signal %d, as by the limits of a trial" % -(status or 0)),
        (not message, "it ended with status %s and said nothing" % status),
        (bool(denial), "what a service may do, a trial may not (%s)" % denial),
        (_NO_SPACE in message.lower(), "a trial does not have enough room for something (%s)" % _NO_SPACE),
        (
            any("unknown flag: --%s" % name in message for name in own),
            "this kubelet does not take a flag that a trial needs",
        ),
        (SOCKET in message, "it does not get on with the container runtime of the trial"),
    )
    return next((reason for holds, reason in reasons if holds), "")


def not_tried(driver: str, has_runtime: bool, is_healthy: bool = True) -> list[str]:
    """What a real start has beyond the trial. driver: of cgroups, as it is configured."""
    return [
        *NOT_TRIED,
        *([_NOT_SYSTEMD] if driver == SYSTEMD else []),
        *([] if has_runtime else [_NO_RUNTIME]),
        *([] if is_healthy else ["whether its /healthz says ok: it did not in time"]),
    ]


def differs(starts: bool | None, predicted: bool | None) -> bool:
    """Whether the kubelet has said something else than was predicted."""
    return starts is not None and predicted is not None and starts != predicted

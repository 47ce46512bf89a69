# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which files of its node a trial start has: what it does with each path that a flag or a field names. Pure.

Of a path that is in no table here nothing is brought in. What a running kubelet, a runtime or systemd locks, watches or
listens at is never read: a kubelet with --exit-on-lock-contention ends when anybody opens its lock file.
Source: cmd/kubelet/app (server.go, options); pkg/kubelet/kubelet.go; pkg/kubelet/apis/config/helpers.go for what a
relative path in a configuration begins at; k8s.io/client-go/util/certificate/certificate_store.go; cAdvisor's flags.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._kubelet.distributions import CHECKPOINT_NAME, KUBELET_ROOT, MEMORY_STATE_NAME
from .._kubelet.flags import (
    CONFIG,
    CONFIG_DIR,
    END_OF_FLAGS,
    FLAGS,
    LOCK_FILE,
    MANIFEST_URL,
    MANIFEST_URL_HEADER,
    ROOT_DIR,
    flag_of,
    flag_values,
    split_flags,
)
from ..state.restored import DEVICES, RESTORED

# Where a trial has its own files. Only its own mounts have this directory.
ROOM = "/run/kubenode-trial"
SOCKET = ROOM + "/runtime.sock"
_ENDPOINT = "unix://" + SOCKET
# Of its own, and empty. A kubelet without any source of pods would take all that it remembers for gone.
STATIC_PODS, VOLUME_PLUGINS = ROOM + "/static-pods", ROOM + "/volume-plugins"
CGROUPFS = "cgroupfs"

# Before this minor version the kubelet has Docker as a runtime of its own.
_REMOTE_ALONE_SINCE = 24

# --- the tables: flags, each also for the field that it sets --------------------------------------------------

# A start reads them: a file, or a directory with all that is in it; of two of them several, with commas between them.
READ = frozenset(
    (
        *("azure-container-registry-config", "boot-id-file", "client-ca-file", "cloud-config", CONFIG, CONFIG_DIR),
        *("container-hints", "image-credential-provider-bin-dir", "image-credential-provider-config"),
        *("machine-id-file", "resolv-conf", "tls-cert-file", "tls-private-key-file"),
    )
)
_LISTS = ("boot-id-file", "machine-id-file")
CERT_DIR = "cert-dir"
# A kubelet writes there: it gets a directory in memory, with copies of what a start reads in it.
WRITTEN = frozenset((CERT_DIR, ROOT_DIR))
# A kubelet writes there, and a start reads nothing. No flag sets it.
EMPTY_FIELDS = ("podLogsDir",)
# A trial gives its own in their place: sockets of the node, static pods, programs that a kubelet executes by itself.
# The last of a name counts, and flags count before fields.
REPLACED = {
    "cgroup-driver": CGROUPFS,
    "authentication-token-webhook": "false",
    "authorization-mode": "AlwaysAllow",
    "container-runtime-endpoint": _ENDPOINT,
    "image-service-endpoint": _ENDPOINT,
    MANIFEST_URL: "",
    "pod-manifest-path": STATIC_PODS,
    "volume-plugin-dir": VOLUME_PLUGINS,
}
# The same, where they are given.
REPLACED_IF_GIVEN = {"containerd": SOCKET, LOCK_FILE: ROOM + "/lock"}
# A trial's kubelet does not have them: credentials, without which it stands alone; Docker; files that it would log to.
LEFT_OUT = frozenset(
    (
        *("bootstrap-kubeconfig", "docker", "docker-endpoint", "docker-tls", "docker-tls-ca", "docker-tls-cert"),
        *("docker-tls-key", "experimental-bootstrap-kubeconfig", "kubeconfig", "log-dir", "log-file", "logtostderr"),
        *(MANIFEST_URL, MANIFEST_URL_HEADER),
    )
)
# With one of these there is no trial: the API server says what the configuration is.
UNTRIED_WITH = frozenset(("dynamic-config-dir",))

# Below the root directory. All else there is of pods, plugins and containers, or is read for them.
STATES = (CHECKPOINT_NAME, MEMORY_STATE_NAME, *(file.name for file in RESTORED if file.name != DEVICES))
_DEVICES = posixpath.join(KUBELET_ROOT, DEVICES)
_CERTIFICATES = KUBELET_ROOT + "/pki"
# Of the certificates, those for the kubelet's own server. The others tell the API server who it is.
_CERTIFICATE = re.compile(r"kubelet\.(?:crt|key)|kubelet-server-.*\.pem")


def is_certificate(name: str) -> bool:
    """Return whether a start reads the file of this name in the directory of certificates."""
    return _CERTIFICATE.fullmatch(name) is not None


# --- the command line -----------------------------------------------------------------------------------------


def own_flags(words: Iterable[str], minor: int) -> dict[str, str]:
    """Return the flags that a trial adds to these words."""
    given = {name for name, value in flag_values(words) if value}
    flags = {**REPLACED, **{name: value for name, value in REPLACED_IF_GIVEN.items() if name in given}}
    return {**flags, "container-runtime": "remote"} if minor < _REMOTE_ALONE_SINCE else flags


def added_flags(words: Sequence[str]) -> list[str]:
    """Return the names of those flags that no kubelet of this node was given."""
    given = {name for name, _value in flag_values(words)}
    return [name for name in own_flags(words, 0) if name not in given]


def trial_words(words: Sequence[str], minor: int) -> list[str]:
    """Return the kubelet's words in a trial: its own, without what leads to others, and with what a trial needs.

    A flag that the kubelet 1.`minor` does not have stays: it refuses that.
    """
    kept: list[str] = []
    behind: list[str] = []
    for name, some in split_flags(words):
        if not name and some[0] == END_OF_FLAGS:
            behind = some
        elif name not in LEFT_OUT or flag_of(name, minor) is None:
            kept += some
    return [*kept, *("--%s=%s" % flag for flag in own_flags(words, minor).items()), *behind]


# --- the paths ------------------------------------------------------------------------------------------------

# A path, also as the address of a socket.
_PATH = re.compile(r"(?:unix:(?://)?)?(/[^\0]*)")


class NodePaths(NamedTuple):
    """The paths that a kubelet is given, absolute, by what a trial does with them.

    read: files and directories. states: files to copy. written: directories, of which certificates is one whose files
    are copied. empty: directories. others: whatever else looks like a path; it may be a socket.
    """

    read: Sequence[str]
    states: Sequence[str]
    written: Sequence[str]
    certificates: str
    empty: Sequence[str]
    others: Sequence[str]


def node_paths(words: Sequence[str], values: Mapping[str, Any], root: str, directory: str) -> NodePaths:
    """Return what a kubelet is given by its words and its configuration.

    root: its root directory. directory: the one in which it is started.
    """
    flags = list(flag_values(words))
    config = next((value for name, value in reversed(flags) if name == CONFIG and value), "")
    # What a file has begins at its own directory, and what a drop-in file has where the kubelet is started.
    bases = dict.fromkeys((posixpath.join(directory, posixpath.dirname(config)), directory))
    read = [
        path
        for name, value in flags
        if name in READ
        for path in _absolute(value.split(",") if name in _LISTS else [value], directory)
    ]
    for name in sorted(READ):
        read += [path for base in bases for path in _absolute([_value_at(values, FLAGS[name].path)], base)]
    given = [path for name, value in flags if name == CERT_DIR for path in _absolute([value], directory)]
    certificates = given[-1] if given else _CERTIFICATES
    empty = [path for field in EMPTY_FIELDS for path in _absolute([values.get(field)], "")]
    written = list(dict.fromkeys((KUBELET_ROOT, posixpath.normpath(root))))
    if not any(is_below(certificates, above) for above in written):
        written.append(certificates)
    texts = _texts([*(value for _name, value in flags), values])
    named = [match.group(1) for match in map(_PATH.fullmatch, texts) if match]
    return NodePaths(
        list(dict.fromkeys(read)),
        list(dict.fromkeys((*(posixpath.join(root, name) for name in STATES), _DEVICES))),
        written,
        certificates,
        empty,
        [path for path in dict.fromkeys(named) if path not in (*read, *written, *empty)],
    )


def why_untried(words: Sequence[str], minor: int) -> str:
    """Return why the kubelet 1.`minor` is not tried with these words; empty where it is."""
    for name, value in flag_values(words):
        if name in UNTRIED_WITH and value and flag_of(name, minor) is not None:
            return "its configuration comes from the API server (--%s)" % name
        if name in (CONFIG, CONFIG_DIR, ROOT_DIR) and value and not value.startswith("/"):
            return "--%s=%s is no absolute path, and it is not known here where the kubelet finds it" % (name, value)
    return ""


def _absolute(texts: Iterable[object], base: str) -> Iterator[str]:
    """Yield the texts as absolute paths, those left out that are none."""
    for text in texts:
        if isinstance(text, str) and text and "\0" not in text:
            path = text if text.startswith("/") else posixpath.normpath(posixpath.join(base, text))
            if path.startswith("/"):
                yield path


def is_below(path: str, above: str) -> bool:
    """Return whether a path is inside of a directory."""
    return path.startswith(above.rstrip("/") + "/")


def _value_at(values: object, path: Sequence[str]) -> object:
    for name in path:
        values = values.get(name) if isinstance(values, Mapping) else None
    return values if path else None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)

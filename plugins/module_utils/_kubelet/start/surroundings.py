# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of its node, beside CPUs and memory, keeps a kubelet from starting: cgroups, systemd, swap, the kernel's flags.

What cannot be seen from the node's files is reported as such: see Unknown.
Source: cmd/kubelet/app/server.go; pkg/kubelet/cm (container_manager_linux.go, node_container_manager_linux.go,
cgroup_manager_linux.go, cgroup_v1_manager_linux.go, cgroup_v2_manager_linux.go).
"""

from __future__ import annotations

import re
from functools import partial
from ipaddress import ip_address
from posixpath import normpath
from typing import Any, Iterator, Mapping, Sequence

from ..._base.errors import GoError
from ..._base.golang import quote
from ..._cgroup.kubepods import CGROUPFS, SYSTEMD
from .amount import Amount
from .decode import LOG_FILES_CHECKED_SINCE
from .findings import INVALID, Finding, Host, Unknown, harmful, refused
from .reservations import PERIOD, RECLAIM, SOFT, soft_faults

# What keeps a kubelet from serving its API: TLS versions and cipher suites, an address that is none.
#
# Its source: cmd/kubelet/app/server.go (UnsecuredDependencies, InitializeTLS);
# k8s.io/component-base/cli/flag (ciphersuites_flag.go), Go's crypto/tls.


_CONTEXT = "failed to construct kubelet dependencies: "

_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
# Of a key exchange, each with its ciphers; the last are those of TLS 1.3, which have none.
_SUITES = {
    "TLS_RSA_WITH_": (
        "RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA AES_128_CBC_SHA256 AES_128_GCM_SHA256"
        " AES_256_GCM_SHA384"
    ),
    "TLS_ECDHE_ECDSA_WITH_": (
        "RC4_128_SHA AES_128_CBC_SHA AES_256_CBC_SHA AES_128_CBC_SHA256 AES_128_GCM_SHA256 AES_256_GCM_SHA384"
        " CHACHA20_POLY1305 CHACHA20_POLY1305_SHA256"
    ),
    "TLS_ECDHE_RSA_WITH_": (
        "RC4_128_SHA 3DES_EDE_CBC_SHA AES_128_CBC_SHA AES_256_CBC_SHA AES_128_CBC_SHA256 AES_128_GCM_SHA256"
        " AES_256_GCM_SHA384 CHACHA20_POLY1305 CHACHA20_POLY1305_SHA256"
    ),
    "TLS_": "AES_128_GCM_SHA256 AES_256_GCM_SHA384 CHACHA20_POLY1305_SHA256",
}


def serving_findings(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the kubelet refuses before it makes its managers."""
    for suite in values.get("tlsCipherSuites") or ():
        if not _is_suite(suite):
            text = "Cipher suite %s not supported or doesn't exist" % suite
            finding = refused(text, "Go has no such cipher suite", "remove it", "tlsCipherSuites")
            yield finding._replace(context=_CONTEXT)
            break
    version = values.get("tlsMinVersion")
    if version and version not in _VERSIONS:
        text = "unknown tls version %s" % quote(version)
        remedy = "write one of %s" % ", ".join(_VERSIONS)
        yield refused(text, "there is no such version", remedy, "tlsMinVersion")._replace(context=_CONTEXT)


def address_findings(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what ends the kubelet once it runs."""
    address = values.get("address")
    if address and values.get("enableServer", True) and not _is_address(address):
        text = "listen tcp: lookup <nil>: no such host"
        cause = "%s is no IP address, so that the kubelet's server cannot listen" % quote(address)
        yield refused(text, cause, "write an address of the node, or 0.0.0.0", "address")


def _is_suite(name: str) -> bool:
    return any(name.startswith(start) and name[len(start) :] in rest.split() for start, rest in _SUITES.items())


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


# What keeps a kubelet from being made once its managers are: soft eviction, allowed sysctls, the size of logs.
#
# Its source: pkg/kubelet/kubelet.go (NewMainKubelet), pkg/kubelet/sysctl, pkg/kubelet/logs.


CONTEXT = "failed to create kubelet: "

_SYSCTL_WORDS = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
_SYSCTL = re.compile(_SYSCTL_WORDS)
_SYSCTL_LENGTH = 253
# The names as they are before a star, too.
_NAMESPACED = frozenset(
    "kernel." + name
    for name in ("sem", "shm", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "msg", "msgmax", "msgmnb", "msgmni")
)
_NAMESPACED_PREFIXES = ("fs.mqueue.", "net.")

_DEFAULT_LOG_SIZE = "10Mi"

_EVICTION_REMEDIES = {
    SOFT: "write one of memory.available, nodefs.available and so on, as 5% or 200Mi",
    PERIOD: "write a period for each signal of evictionSoft, as 1m30s",
    RECLAIM: "write one of memory.available, nodefs.available and so on, as 5% or 200Mi",
}


def creation_findings(values: Mapping[str, Any], host: Host) -> Iterator[Finding]:
    """Yield all that it refuses, in the kubelet's order."""
    yield from _soft_eviction_findings(values, host.minor)
    yield from _log_findings(values, host.minor)
    for pattern in values.get("allowedUnsafeSysctls") or ():
        yield from _sysctl_findings(pattern)


def _soft_eviction_findings(values: Mapping[str, Any], minor: int) -> Iterator[Finding]:
    soft, periods, reclaims = (values.get(field) or {} for field in (SOFT, PERIOD, RECLAIM))
    for fault in soft_faults(soft, periods, reclaims, minor):
        yield _refused(
            fault.text,
            "soft eviction cannot be set up with it",
            _EVICTION_REMEDIES[fault.field],
            "%s.%s" % (fault.field, fault.signal),
        )


def _log_findings(values: Mapping[str, Any], minor: int) -> Iterator[Finding]:
    where = "containerLogMaxSize"
    size = values.get(where) or _DEFAULT_LOG_SIZE
    try:
        amount = Amount.parse(size)
    except GoError as error:
        text = str(error)
    else:
        if amount.in_64_bits() is not None:
            yield from _log_files_findings(values.get("containerLogMaxFiles"), minor)
            return
        text = "invalid max log size"
    yield _refused(
        "failed to initialize container log manager: failed to parse container log max size %s: %s"
        % (quote(size), text),
        "it is no size in bytes",
        "write it as 10Mi",
        where,
    )


def _log_files_findings(files: object, minor: int) -> Iterator[Finding]:
    if isinstance(files, int) and files <= 1 and minor < LOG_FILES_CHECKED_SINCE:
        yield _refused(
            "failed to initialize container log manager: invalid MaxFiles %d, must be > 1" % files,
            "one file is written, and another is kept",
            "write 2 or more; 5 is the default",
            "containerLogMaxFiles",
        )


def _sysctl_findings(pattern: str) -> Iterator[Finding]:
    where = "allowedUnsafeSysctls"
    if len(pattern) > _SYSCTL_LENGTH or not _SYSCTL.fullmatch(pattern):
        yield _refused(
            "sysctl %s must have at most %d characters and match regex %s"
            % (quote(pattern), _SYSCTL_LENGTH, _SYSCTL_WORDS),
            "there is no such sysctl",
            "write it as kernel.msg* or net.core.somaxconn",
            where,
        )
        return
    name = _with_dots(pattern)
    name = name[:-1] if name.endswith("*") else name
    if name not in _NAMESPACED and not name.startswith(_NAMESPACED_PREFIXES):
        yield _refused(
            "the sysctls %s are not known to be namespaced" % quote(name),
            "it counts for the whole node, and no pod can have one of its own",
            "remove it",
            where,
        )


def _with_dots(name: str) -> str:
    """Return a sysctl with dots between its parts: the first separator decides which sign separates."""
    first = next((sign for sign in name if sign in "./"), ".")
    return name if first == "." else name.translate({ord("/"): ".", ord("."): "/"})


def _refused(text: str, cause: str, remedy: str, where: str) -> Finding:
    return refused(text, cause, remedy, where)._replace(context=CONTEXT)


_CGROUP = "/sys/fs/cgroup"
_PIDS = "pids"
# The last kubelets that look for each hierarchy themselves.
_LAST_WITH_SUBSYSTEMS = 21
_OF_QOS = (
    "failed to initialize top level QOS containers: failed to update top level Burstable QOS cgroup : failed to set"
    " supported cgroup subsystems for cgroup [kubepods burstable]: "
)
_PANIC = "error converting cgroup name "
_SLICE = ".slice"

# In the order in which the kubelet enforces them.
_ENFORCEMENTS = (
    ("system-reserved", "System Reserved", "systemReserved"),
    ("kube-reserved", "Kube Reserved", "kubeReserved"),
    ("system-reserved-compressible", "System Reserved Compressible", "systemReserved"),
    ("kube-reserved-compressible", "Kube Reserved Compressible", "kubeReserved"),
)

# What the kubelet sets of the kernel at its start, and with protectKernelDefaults wants to find.
KERNEL_FLAGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


def swap_findings(values: Mapping[str, object], has_swap_gate: bool, host: Host) -> Iterator[Finding]:
    """Yield what the kubelet refuses of swap, before it makes its managers."""
    swap = values.get("memorySwap")
    is_limited = isinstance(swap, Mapping) and swap.get("swapBehavior") == "LimitedSwap"
    if has_swap_gate and is_limited and host.cgroup_v1:
        yield refused(
            "swap feature is enabled and LimitedSwap but it is only supported with cgroupv2",
            "the host has cgroup v1",
            "set memorySwap.swapBehavior: NoSwap, or boot the host with cgroup v2",
            "memorySwap.swapBehavior",
        )
    if host.swap_on and values.get("failSwapOn", True):
        yield refused(
            "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false",
            "the node has swap",
            "switch swap off (swapoff -a, and in /etc/fstab), or set failSwapOn: false",
            "failSwapOn",
        )


def cgroup_root_findings(values: Mapping[str, Any], host: Host) -> Iterator[Finding | Unknown]:
    """Yield whether there is the cgroup below which those of pods are to be."""
    root = values.get("cgroupRoot") or "/"
    if values.get("cgroupsPerQOS", True):
        place = _Place(root, _cgroupfs_name(root), values, "cgroupRoot")
        yield from _cgroup_findings(place, host, "invalid configuration: ", "remove cgroupRoot")


def docker_findings(values: Mapping[str, object], driver: str) -> Iterator[Finding]:
    """Yield what a kubelet with a dockershim refuses of Docker. Source: pkg/kubelet/dockershim/docker_service.go."""
    own = str(values.get("cgroupDriver") or CGROUPFS)
    if own != driver:
        yield refused(
            "misconfiguration: kubelet cgroup driver: %s is different from docker cgroup driver: %s"
            % (quote(own), quote(driver)),
            "exec-opts in /etc/docker/daemon.json has %s" % driver,
            "give both the same driver, on a host with systemd that one, then restart Docker and the kubelet",
            "cgroupDriver",
        )


def node_findings(values: Mapping[str, Any], host: Host) -> Iterator[Finding | Unknown]:
    """Yield what the kubelet refuses when it sets the node up: kernel flags, its driver of cgroups, reserved
    cgroups."""
    if values.get("protectKernelDefaults"):
        yield from _kernel_findings(host)
    driver = values.get("cgroupDriver")
    if driver == SYSTEMD and values.get("cgroupsPerQOS", True) and host.has_systemd is False:
        yield refused(
            "systemd not running on this host, cannot use systemd cgroups manager",
            "the node was not booted with systemd",
            "set cgroupDriver: cgroupfs, for the container runtime, too",
            "cgroupDriver",
        )
    lacking_controllers = [name for name in host.lacking_controllers if name != _PIDS]
    if host.cgroup_v1 and lacking_controllers:
        lacking = " ".join(lacking_controllers)
        text = "system validation failed - Following Cgroup subsystem not mounted: [%s]" % lacking
        cause = "no hierarchy of cgroup v1 has the controller %s" % lacking.replace(" ", " and ")
        yield refused(text, cause, _enabled(lacking_controllers[-1]), "cgroup.controllers")
    elif host.cgroup_v1 and host.lacking_controllers:
        yield from _pids_findings(values, host)
    else:
        yield from map(partial(_controller_finding, host.needs_controllers), host.lacking_controllers)
    enforced = values.get("enforceNodeAllocatable") or ()
    for enforcement, title, field in _ENFORCEMENTS:
        if enforcement in enforced:
            given = values.get(field + "Cgroup") or ""
            yield from _enforcement_findings(values, host, title, field, given)
    yield from _controller_findings(values, host)
    if values.get("systemCgroups") == "/":
        yield refused(
            'system container cannot be root ("/")',
            "the processes of the system cannot be moved to the topmost cgroup, in which they are",
            "name another cgroup, or remove systemCgroups",
            "systemCgroups",
        )


def _pids_findings(values: Mapping[str, object], host: Host) -> Iterator[Finding | Unknown]:
    """Yield what the kubelet says where no hierarchy of v1 limits processes, as with kernels before 4.3."""
    cause = "no hierarchy of cgroup v1 has the controller pids, by which the kubelet limits the processes of all pods"
    remedy = "boot a kernel with CONFIG_CGROUP_PIDS (4.3 or later), without cgroup_disable=pids, and mount it"
    if not values.get("cgroupsPerQOS", True):
        return
    if host.minor > _LAST_WITH_SUBSYSTEMS:
        yield Unknown("%s: it may not start; %s" % (cause, remedy), "cgroup.controllers")
        return
    text = "failed to find subsystem mount for required subsystem: pids"
    yield refused(text, cause, remedy, "cgroup.controllers")._replace(context=_OF_QOS)


def _controller_finding(is_needed: bool, controller: str) -> Finding:
    cause = "cgroup v2 has no controller %s on this node, so that no pod is limited or pinned by it" % controller
    remedy = _enabled(controller)
    if is_needed:
        return refused("failed to find %s cgroup (v2)" % controller, cause, remedy, "cgroup.controllers")
    return harmful(cause, remedy, "cgroup.controllers")


def _enabled(controller: str) -> str:
    return (
        "enable it: without cgroup_disable=%s and with cgroup_enable=%s on the kernel's command line (of a Raspberry Pi"
        " in /boot/firmware/cmdline.txt), or by the host that has to delegate it to the container that is this node"
        % (controller, controller)
    )


def _enforcement_findings(
    values: Mapping[str, object], host: Host, title: str, field: str, given: str
) -> Iterator[Finding | Unknown]:
    where = field + "Cgroup"
    prefix = "Failed to enforce %s Cgroup Limits on %s: " % (title, quote(given))
    name = _systemd_name(given) if values.get("cgroupDriver") == SYSTEMD else _cgroupfs_name(given)
    if not values.get(field) and not (field == "systemReserved" and values.get("reservedSystemCPUs")):
        yield refused(
            prefix + "%s cgroup is not configured properly" % _shown(name),
            "nothing is reserved in %s that could be enforced" % field,
            "set %s, or remove it from enforceNodeAllocatable" % field,
            where,
        )
        return
    place = _Place(given, name, values, where)
    yield from _cgroup_findings(place, host, prefix, "remove it from enforceNodeAllocatable")


def _controller_findings(values: Mapping[str, Any], host: Host) -> Iterator[Unknown]:
    """Yield whether the cgroup of all pods lacks a controller of cgroups v2, which the kubelet then tries to give
    it."""
    if host.cgroup_v1 or not values.get("cgroupsPerQOS", True):
        return
    name = [*(part for part in _cgroupfs_name(values.get("cgroupRoot") or "/") if part), "kubepods"]
    path = _systemd_path(name) if values.get("cgroupDriver") == SYSTEMD else _cgroupfs_path(name)
    lacking = host.cgroup_lacks(path[1:]) if path else ()
    if INVALID in lacking:
        yield Unknown(
            'the kubelet cannot enter cgroupv2 "/sys/fs/cgroup%s" with domain controllers while it is in an invalid'
            " state (cgroup.type is %s): in a container, move the processes of the topmost cgroup into one below it"
            " first, and turn its controllers on, as Docker in Docker does" % (path, INVALID),
            "cgroupDriver",
        )
    elif lacking:
        controllers = "the controller%s %s" % ("s" if len(lacking) > 1 else "", ", ".join(lacking))
        yield Unknown(
            "%s has not %s, which the topmost cgroup has: the kubelet starts only if the kernel gives it, which for cpu"
            " it does not while processes with a real-time priority, as of rtkit-daemon, are in other cgroups than the"
            " topmost one" % (path, controllers),
            "cgroupDriver",
        )


def _kernel_findings(host: Host) -> Iterator[Finding | Unknown]:
    unseen = ""
    for flag, wanted in KERNEL_FLAGS.items():
        found = host.kernel_flag(flag)
        if found is None:
            unseen = unseen or flag
        elif found != wanted:
            yield refused(
                "invalid kernel flag: %s, expected value: %d, actual value: %d" % (flag, wanted, found),
                "protectKernelDefaults is set, and the kernel has another value",
                "set %s = %d in /etc/sysctl.d, or remove protectKernelDefaults" % (flag.replace("/", "."), wanted),
                "protectKernelDefaults",
            )
    if unseen:
        yield Unknown("/proc/sys/%s is not among the node's files" % unseen, "protectKernelDefaults")


# --- cgroups ---------------------------------------------------------------------------------------------


class _Place:
    """A cgroup as the configuration names it, and where the kubelet looks for it."""

    def __init__(self, given: str, name: Sequence[str], values: Mapping[str, object], where: str) -> None:
        self.given = given
        self.name = name
        self.where = where
        is_slice = values.get("cgroupDriver") == SYSTEMD
        # None where systemd can have none of this name.
        self.path = _systemd_path(name) if is_slice else _cgroupfs_path(name)

    @property
    def is_as_given(self) -> bool:
        """Whether the kubelet looks for it by the name that it was given."""
        return self.path == _cgroupfs_path(_cgroupfs_name(self.given))


def _cgroup_findings(place: _Place, host: Host, prefix: str, removal: str) -> Iterator[Finding | Unknown]:
    """Yield what the kubelet says of a cgroup that is not there. removal: what to do without it."""
    if place.path is None:
        slice_name = "-".join(_escaped(place.name)) + _SLICE
        yield refused(
            "%s[[%s]] to systemd format: invalid slice name: %s" % (_PANIC, " ".join(place.name), slice_name),
            "with the systemd driver %s is to be a slice, and systemd has none of this name" % place.given,
            "give a name without doubled dashes, or " + removal,
            place.where,
        )
        return
    if place.path == "/":
        return
    lacks = host.lacks_cgroup(place.path[1:])
    if lacks is None:
        yield Unknown("it cannot be seen whether the kubelet finds the cgroup %s" % place.path, place.where)
    elif lacks:
        cause, remedy = "there is no cgroup %s" % place.path, "make the cgroup before the kubelet starts"
        if not place.is_as_given:
            cause += ", which the kubelet makes of %s with the systemd driver" % place.given
            # Each part of a root becomes a slice, also one that ends in .slice.
            remedy = remedy if place.where == "cgroupRoot" else "name a slice that is there, as /kube.slice"
        if host.cgroup_v1:
            cause += "; with cgroup v1 it has to be in each hierarchy that the kubelet uses, and is not in %s"
            cause %= ", ".join(lacks)
        yield refused(
            prefix + _missing(place.name, place.path, host.cgroup_v1),
            cause,
            "%s, or %s" % (remedy, removal),
            place.where,
        )


def _cgroupfs_name(path: str) -> list[str]:
    parts = path[1:].split("/") if path.startswith("/") else path.split("/")
    return [] if parts == [""] else parts


def _cgroupfs_path(name: Sequence[str]) -> str:
    path = normpath("/".join(part for part in name if part))
    return "/" if path == "." else "/" + path


def _systemd_name(path: str) -> list[str]:
    """Return the kubelet looks at the last part alone: its dashes lead downwards."""
    base = path.rstrip("/").rpartition("/")[2] or path[:1]
    base = base[: -len(_SLICE)] if base.endswith(_SLICE) else base
    return [part.replace("_", "-") for part in base.split("-")]


def _systemd_path(name: Sequence[str]) -> str | None:
    """Return the path of the slice; None where systemd can have none of this name, and the kubelet panics."""
    parts = _escaped(name)
    if parts in ([], [""], ["", ""]):
        return "/"
    if not all(parts) or any("/" in part for part in parts):
        return None
    return "/" + "/".join("-".join(parts[: end + 1]) + _SLICE for end in range(len(parts)))


def _escaped(name: Sequence[str]) -> list[str]:
    return [part.replace("-", "_") for part in name]


def _shown(name: Sequence[str]) -> str:
    """Return texts as Go prints a list of quoted texts."""
    return "[%s]" % " ".join(map(quote, name))


def _missing(name: Sequence[str], path: str, cgroup_v1: bool) -> str:
    if cgroup_v1:
        # The paths follow, in random order.
        return "cgroup %s has some missing paths: %s" % (_shown(name), _CGROUP)
    return "could not read controllers for cgroup %s: open %s/cgroup.controllers: no such file or directory" % (
        _shown(name),
        normpath(_CGROUP + path),
    )

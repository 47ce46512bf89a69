# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One node as its files show it: machine, kubelet configuration, checkpoint."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from .._base.errors import PERMISSION, CPUManagerError, NodeError, Note, option
from .._base.journal_file import LAST, OPEN, JournalFile
from .._base.tree import LARGEST_OF_KUBELET, Tree, is_number
from .._base.versions import NEWEST_MINOR, minor_version, version_notes
from .._host.only_root import program_notes
from .._host.reach import reach_notes
from .._kubelet.configuration import KubeletConfiguration
from .._kubelet.distributions import (
    CHECKPOINT_NAME,
    CONTAINERD,
    DROP_IN_SUFFIX,
    KUBELET_ROOT,
    MEMORY_STATE_NAME,
    NOWHERE,
    service_of,
)
from .._kubelet.installation import (
    Installation,
    Search,
    find_installation,
    running_version,
    search_kubelet,
    stopped_version,
    why_unseen,
)
from ..cpuset import CPUSet

if TYPE_CHECKING:
    from .._kubelet.configuration import Configuration, KubeletConfiguration
    from .._kubelet.start.findings import Host
    from ..topology.model import Topology
    from .container_cpus import Observed


# CRI-O's configuration: only with it, CRI-O gives containers CPUs beside their own.
_CRIO = "/etc/crio"

# Whether the running kubelet has read its files as they are: it reads them only when it starts.


# k3s and RKE2 write drop-in files while they start the kubelet, which is a part of them.
_WRITES_ITS_OWN = 60.0
# The clock of file systems, and that of processes, are not read at the same time.
_TOLERANCE = 1.0


def not_restarted_notes(node: Node) -> list[str]:
    """Return a note with the files that were changed after the kubelet of the node had started; none where it does not
    run.

    A file whose time of change was set back, as a backup's, is not noticed.
    """
    installation = node.installation
    if installation is None or installation.pid is None:
        return []
    started = start_time(node.tree, installation.pid)
    if started is None:
        return []
    distribution = installation.distribution
    started += _WRITES_ITS_OWN if distribution.has_kubelet_args else _TOLERANCE
    flag_paths = [file.path for file in distribution.flag_files]
    paths = [*node.configuration_paths(), *flag_paths, *filter(None, [installation.config_dir])]
    changed = _changed_since(node.tree, paths, started)
    if not changed:
        return []
    text = "the kubelet (process %d) started before %s changed, and has not read the change: restart it" % (
        installation.pid,
        " and ".join(changed),
    )
    return [Note("kubelet-not-restarted", text)]


def start_time(tree: Tree, pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None where it has ended or cannot be read.

    Source: proc_pid_stat(5), field 22, in clock ticks since the boot; proc_stat(5), btime.
    """
    try:
        fields = (tree.read_value("/proc/%d/stat" % pid) or "").rpartition(")")[2].split()
        lines = tree.read_text("/proc/stat").splitlines()
        boot = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
        return boot + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (CPUManagerError, IndexError, StopIteration, ValueError):
        return None


def _changed_since(tree: Tree, paths: Iterable[str], moment: float) -> list[str]:
    changed = []
    for path in paths:
        try:
            if os.stat(tree.path(path)).st_mtime > moment:
                changed.append(path)
        except (CPUManagerError, OSError):
            continue  # it is gone, or is reported elsewhere
    return changed


# The kind of the error where a kubelet may run that cannot be seen.
KUBELET_HIDDEN = "kubelet_hidden"

# What those keep on a node who may give containers their CPUs beside the kubelet: NRI policies, and the DRA driver at
# the kubelet. _owners/owners.py looks closer.
_POLICIES = ("/var/lib/nri-resource-policy/cache", "/opt/nri/plugins", "/run/koordlet")
_REGISTRY, _DRIVER, _QRM_PLUGIN = "plugins_registry", "dra.cpu-", "qrm_cpu_plugin_"
# Of both drivers, in both versions of cgroups, where these usually are.
_KUBEPODS = tuple(
    "/sys/fs/cgroup%s/kubepods%s" % (place, end) for place in ("", "/cpuset", "/unified") for end in (".slice", "")
)


class Node:
    """The files of one node, each read when it is first needed."""

    # By node_save, which is known of a SavedNode alone: what ran then runs no more.
    is_saved = False

    def __init__(
        self,
        tree: Tree,
        config_path: str | None = None,
        kubelet_root: str | None = None,
        minor: int | None = None,
        command_line: Sequence[str] = (),
    ) -> None:
        self.tree = tree
        self._given = (config_path, kubelet_root, minor, command_line)
        self._search: Search = search_kubelet(tree)
        # None where there is no kubelet.
        self.installation: Installation | None = find_installation(
            tree, command_line, config_path, kubelet_root, self._search
        )
        self.config_path = self.installation.config_path if self.installation is not None else None
        root = kubelet_root or (self.installation.kubelet_root if self.installation is not None else KUBELET_ROOT)
        self.checkpoint_path = "%s/%s" % (root.rstrip("/"), CHECKPOINT_NAME)
        self.memory_state_path = "%s/%s" % (root.rstrip("/"), MEMORY_STATE_NAME)
        # None where it is not known.
        self.version = self._running_version() if minor is None else "1.%d" % minor
        self.minor = NEWEST_MINOR if self.version is None else minor_version(self.version)
        # Of the container runtime, where it was saved with the node: its program says it on a live one.
        self.runtime_version: str | None = None
        # Whether pods and containers have hashes in place of names: hidden_names.py.
        self.hides_names = False
        # (where, text) of refusals that are predicted of this node's kubelet, and that it has been seen not to make.
        self.mistaken: frozenset[tuple[str, str]] = frozenset()
        self._topology: Topology | None = None
        self._host: Host | None = None

    def on(self, tree: Tree) -> Node:
        """Return this node with other files."""
        return self._made(tree, *self._given)

    def of_version(self, minor: int) -> Node:
        """Return this node with a kubelet 1.`minor`."""
        config_path, kubelet_root, _minor, command_line = self._given
        return self._made(self.tree, config_path, kubelet_root, minor, command_line)

    def _made(self, *given: Any) -> Node:
        node = type(self)(*given)
        node.hides_names, node.mistaken = self.hides_names, self.mistaken
        return node

    @property
    def topology(self) -> Topology:
        """The machine's CPUs. Raises NodeError."""
        if self._topology is None:
            # Imported here: not every look at a node is about its CPUs.
            from ..topology.sysfs import read_sysfs

            self._topology = read_sysfs(self.tree)
        return self._topology

    @topology.setter
    def topology(self, topology: Topology) -> None:
        """Put another machine in this node's place, of which nothing else is known."""
        from .._kubelet.start.findings import other_host

        self._topology, self._host = topology, other_host(topology, self.minor)

    def machine(self) -> Host:
        """Return what the kubelet makes of the machine."""
        if self._host is None:
            self._host = host_of(self)
        return self._host

    def file(self) -> KubeletConfiguration | None:
        """Return the kubelet's configuration file; None where there is none. Raises NodeError for a file that is no
        such."""
        if self.config_path is None or not self.tree.exists(self.config_path):
            return None
        return self.parsed(self.config_path)

    def drop_ins(self) -> list[KubeletConfiguration]:
        """Return the kubelet's drop-in files, in the order in which they count. Raises NodeError for one that is no
        such."""
        return [self.parsed(path) for path in self._drop_in_paths()]

    def configuration_paths(self) -> list[str]:
        """Return the configuration file and the drop-in files."""
        return [path for path in (self.config_path, *self._drop_in_paths()) if path is not None]

    def _drop_in_paths(self) -> list[str]:
        directory = self.installation.config_dir if self.installation is not None else None
        if directory is None:
            return []
        return [path for path in self.tree.files_below(directory) if path.endswith(DROP_IN_SUFFIX)]

    def configuration(self) -> Configuration | None:
        """Return what the kubelet runs with; None where there is no kubelet. Raises NodeError for a file that is no
        such."""
        file = self.file()
        if self.installation is None or (file is None and (self.config_path or self.installation.unread)):
            return None
        drop_ins, flags = self.drop_ins(), self.installation.flags
        if file is not None and not drop_ins and not flags:
            return file
        # Imported here: many nodes have one file.
        from .._kubelet.effective import effective_configuration

        return effective_configuration(file, drop_ins, flags)

    def found(self) -> tuple[Configuration | None, NodeError | None]:
        """Return what the kubelet runs with, or what is wrong with its files; neither where there is no kubelet.

        Raises NodeError where reading takes more rights, RefusedError for a link out of the tree.
        """
        try:
            configuration = self.configuration()
        except NodeError as error:
            if error.kind == PERMISSION:
                raise
            return None, error
        if configuration is None and self.installation is not None and self.installation.unread:
            return None, self.missing()
        if configuration is None and self.installation is not None and self.installation.command_line:
            where = self.tree.path(str(self.config_path))
            remedy = "put it back from a backup beside it (%s.*~), or run the playbook rollback" % where
            return None, NodeError("there is no such file, and the kubelet was started with it", where, remedy)
        if configuration is None and self.tree.exists(LAST, follow=False):
            what = "no kubelet configuration found below %s, and before the last change there was one" % self.tree.root
            remedy = "put it back with the playbook rollback, or from a backup beside it"
            return None, NodeError(what, self.tree.path(LAST), remedy)
        return configuration, None

    def needed_configuration(self) -> Configuration:
        """Return what the kubelet runs with. Raises NodeError where there is no kubelet, or its file is not there."""
        configuration = self.configuration()
        if configuration is None:
            raise self.missing()
        return configuration

    @property
    def kubelet_pid(self) -> int | None:
        """The process of the kubelet; None where none is seen."""
        return None if self.installation is None else self.installation.pid

    def check_seen(self) -> None:
        """Raise NodeError where a kubelet may run that this process cannot see, so that its files are only guessed.

        A kubelet that is stopped, or not there, is no error.
        """
        if self.kubelet_pid is not None or not self.tree.live or all(self._given[:2]):
            return
        why = why_unseen(self.tree)
        if why:
            remedy = "let it see the kubelet, or name the kubelet's files in %s and %s"
            raise NodeError(
                "whether a kubelet runs here cannot be seen: %s" % why,
                where=self.tree.root,
                remedy=remedy % (option("config_path"), option("kubelet_root")),
                kind=KUBELET_HIDDEN,
            )

    def missing(self) -> NodeError:
        """Return what is to be said where there is no kubelet, or its file is not there."""
        remedy = "name the file that the kubelet's --config gives in %s" % option("config_path")
        if self.config_path is not None:
            return NodeError(
                "no kubelet configuration there",
                where=self.tree.path(self.config_path),
                remedy=remedy,
                kind="no_configuration",
            )
        if self.installation is not None:
            what, distribution = self.installation.unread, self.installation.distribution
            if distribution.place == NOWHERE:
                # No file that could be named would be written.
                what += ", and %s manages its kubelets itself" % distribution.name
                remedy = distribution.pointer
            return NodeError(
                what,
                where=self.tree.root,
                remedy=remedy,
                kind="no_configuration",
            )
        return NodeError(
            "no kubelet runs here, and there is no file of one",
            where=self.tree.root,
            remedy="take a host that has none, as a bastion or one of etcd alone, out of the hosts of the play"
            " (cpu_manager_hosts of the playbooks), or leave out such hosts with"
            " cpu_manager_skip_hosts_without_kubelet; of one that has a kubelet, %s" % remedy,
            kind="no_kubelet",
        )

    def kubelet(self, configuration: Configuration | None) -> dict[str, Any] | None:
        """Return how the kubelet with this configuration is installed, as plain data; None where there is none."""
        installation = self.installation
        if installation is None or configuration is None:
            return None
        return {**installation.to_dict(self.tree), "version": self.version}

    def kernel(self) -> str:
        """Return the release of the kernel, such as "6.1.0-18-amd64"; empty where it was not saved."""
        return self.tree.read_value("/proc/sys/kernel/osrelease") or ""

    def elsewhere(self, wanted: Mapping[str, object], configuration: Configuration | None) -> dict[str, str] | None:
        """Return where else the wanted settings have to be, since others write the kubelet's files; None where nobody
        does.

        configuration: what the kubelet runs with.
        """
        if self.installation is None or not self.installation.distribution.pointer:
            return None
        # Imported here: others write hardly any kubelet's files.
        from .._kubelet.elsewhere import companions_elsewhere, elsewhere

        found = {} if configuration is None else configuration.values
        companions = companions_elsewhere(wanted, found, self.minor)
        return elsewhere(self.installation.distribution, wanted, companions, found)

    def _running_version(self) -> str | None:
        if not self.tree.live or self.installation is None:
            return None
        if self.installation.pid is None:
            return stopped_version(self.tree, self.installation.distribution) or None
        return running_version(self.installation.pid) or None

    def parsed(self, path: str) -> KubeletConfiguration:
        """Return one file that is there. Raises NodeError for a file that is no KubeletConfiguration."""
        return KubeletConfiguration.parse(self.tree.read_text(path, LARGEST_OF_KUBELET), self.tree.path(path))

    def runs_pods(self, cgroup_root: str) -> bool:
        """Return whether there is a cgroup of all pods. A quick look, for the many nodes and moments without."""
        # With a root of its own, it takes the hierarchy to find it.
        return bool(cgroup_root) or any(self.tree.exists(path) for path in _KUBEPODS)

    def owned_cpus(self) -> CPUSet:
        """Return the CPUs of partitions of cgroups, where the kernel was booted to isolate CPUs; else nobody has to
        know."""
        if not self.topology.isolated and not self.topology.nohz_full:
            return CPUSet()
        # Imported here: hardly any node is booted so.
        from .._host.partitions import owned_on

        return owned_on(self.tree)

    def may_have_owners(self, with_crio: bool = False) -> bool:
        """Return whether others may give containers their CPUs. A quick look, for the many nodes with the kubelet
        alone.

        with_crio: CRI-O among them, whose shared CPUs only a reconcile would take from containers.
        """
        if self._search.may_have_owners or (with_crio and self.tree.exists(_CRIO)):
            return True
        registry = "%s/%s" % (self.checkpoint_path.rpartition("/")[0], _REGISTRY)
        try:
            is_registered = any(name.startswith((_DRIVER, _QRM_PLUGIN)) for name in self.tree.names(registry))
            return is_registered or any(self.tree.exists(path) for path in _POLICIES)
        except CPUManagerError:
            return False

    def plugin_of_patched(self) -> str:
        """Return the socket of a plugin of Katalyst, which only a kubelet with its patches registers; empty where
        none is."""
        registry = "%s/%s" % (self.checkpoint_path.rpartition("/")[0], _REGISTRY)
        try:
            names = [name for name in self.tree.names(registry) if name.startswith(_QRM_PLUGIN)]
        except CPUManagerError:
            return ""
        return "%s/%s" % (registry, names[0]) if names else ""

    def observed(self, configuration: Configuration | None) -> tuple[Observed | None, list[str]]:
        """Return the containers of a kubelet and their cgroups; None, and why where that is strange, where it has
        none."""
        cgroup_root = cgroup_root_of(configuration)
        if configuration is None or not self.runs_pods(cgroup_root):
            return None, []
        # Each file that is imported is compiled on the node, which takes longer than to read it.
        from .container_cpus import observe

        observed, notes = observe(self.tree, cgroup_root, self.runtime_endpoint(configuration), self.hides_names)
        driver = configuration.given(("cgroupDriver",)).value
        if observed is not None and (cgroup_root or any(pod.driver != driver for pod in observed.running)):
            # Imported here: on most nodes all pods are where this kubelet makes their cgroups.
            from .cgroup_drivers import drivers_of, moved_notes

            endpoint = self.runtime_endpoint(configuration) or ""
            distribution = "" if self.installation is None else self.installation.distribution.name
            drivers = drivers_of(self.tree, self.minor, str(driver), endpoint, distribution, self.runtime_version)
            notes = [*notes, *moved_notes(drivers, cgroup_root, observed)]
        return observed, notes

    def runtime_endpoint(self, configuration: Configuration | None) -> str | None:
        """Return the socket of the kubelet's container runtime, as the configuration names it, or a distribution that
        brings its own; None where neither does, as crictl then has the better default: before 1.24 it may be Docker's.
        """
        given = "" if configuration is None else str(configuration.given(("containerRuntimeEndpoint",)).value or "")
        if not given and self.installation is not None:
            socket = self.installation.distribution.cri_socket
            given = socket if socket != CONTAINERD and self.tree.exists(socket) else ""
        return ("unix://" + given if given.startswith("/") else given) or None

    def own_notes(self) -> list[str]:
        """Return what is to be said of this node apart from its settings: of its kubelet, and of a change under way."""
        is_missing = not self._has_files() and not self.tree.exists(LAST, follow=False)
        notes: list[str] = [Note("kubelet-missing", str(self.missing()))] if is_missing else []
        notes += self.kubelet_notes()
        notes += reach_notes(self.tree)
        if self.kubelet_pid is not None:
            notes += not_restarted_notes(self)
        return [*notes, *program_notes(self.tree), *self.unfinished()]

    def kubelet_notes(self) -> Sequence[str]:
        """Return what is strange about the processes that look like a kubelet."""
        return self._search.notes if self.installation is None else self.installation.notes

    def version_notes(self) -> list[str]:
        """Return whether it is not sure by which version's rules its kubelet is to be judged."""
        return version_notes(self.minor, self.version is None)

    def _has_files(self) -> bool:
        """Return whether there is a kubelet, or what it was started with, which found() then has not found."""
        if self.installation is None or self.config_path is None or self.installation.command_line:
            return self.installation is not None
        return self.tree.exists(self.config_path)

    def unfinished(self) -> list[str]:
        """Return a note on a change of this node that is under way or was interrupted, if there is one."""
        if not self.tree.exists(OPEN, follow=False):
            return []
        return [
            Note(
                "change-interrupted",
                "%s: a change of this node is under way or was interrupted; if it was, run the role kubelet, which"
                " takes it back first" % self.tree.path(OPEN),
            ),
            *_cordon_notes(self.tree),
        ]

    def checkpoint(self) -> bytes | None:
        """Return the bytes of the CPU manager's checkpoint; None where there is none."""
        return self.tree.content(self.checkpoint_path, LARGEST_OF_KUBELET)

    @property
    def state_paths(self) -> tuple[str, str]:
        """The files that the kubelet's managers write."""
        return self.checkpoint_path, self.memory_state_path

    def memory_state(self) -> bytes | None:
        """Return the bytes of the memory manager's state; None where there is none."""
        return self.tree.content(self.memory_state_path, LARGEST_OF_KUBELET)


# What the cluster can call a node.
_NODE_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")


def _cordon_notes(tree: Tree) -> list[str]:
    """Return a note that the node is cordoned, where the journal of its open change says that this change has done
    so."""
    try:
        found = JournalFile(OPEN, 1, "%s", "").read(tree, lambda data: (dict(data["facts"]), data.get("began")))
    except CPUManagerError:
        return []
    facts, began = found or ({}, None)
    name = facts.get("node")
    if not isinstance(name, str) or not _NODE_NAME.fullmatch(name) or facts.get("cordoned") is not False:
        return []
    # Until the year 4300.
    is_time = isinstance(began, int) and not isinstance(began, bool) and 0 < began < 1 << 36
    since = time.strftime(" since %Y-%m-%dT%H:%M:%SZ", time.gmtime(began)) if is_time else ""
    text = "%s: the node %s is cordoned%s by a rollout that did not end: run rollout, rollback or repair here"
    return [Note("node-cordoned", text % (tree.path(OPEN), name, since))]


def cgroup_root_of(configuration: Configuration | None) -> str:
    """Return the cgroup below which the kubelet keeps those of pods; empty for the topmost."""
    return "" if configuration is None else str(configuration.given(("cgroupRoot",)).value or "").strip("/")


# What of a node decides, beside what its kubelet is given, whether that starts: memory, cgroups, disk, swap.

_CGROUP = "/sys/fs/cgroup"

# Those of v1 in which the kubelet looks for a cgroup, as far as they are mounted.
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "hugetlb", "memory", "pids", "systemd")
# Those of v2 that it wants for the cgroup of all pods.
_CONTROLLERS_V2 = ("cpu", "cpuset", "hugetlb", "memory", "pids")

# Source: validateCgroupsV2 in pkg/cgroups of k3s.
_OF_PODS = ("cpu", "cpuset", "memory")

# Of openshift/kubernetes (pkg/kubelet/managed).
PARTITIONING = "/etc/kubernetes/openshift-workload-pinning"
_LAST_WITH_DOCKERSHIM, _DOCKERSHIM, _ENDPOINT = 23, "dockershim", "--container-runtime-endpoint"
_MEMINFO, _SWAPS = "/proc/meminfo", "/proc/swaps"

_SYSTEMD, _RUN = "/run/systemd/system", "/run"


def host_of(node: Node) -> Host:
    """Return what of the node's files decides whether its kubelet starts."""
    # Imported here, as below: not every look at a node is about its kubelet's start.
    from .._kubelet.start.findings import INVALID, other_host

    topology, tree = node.topology, node.tree
    has_cgroups = tree.exists(_CGROUP)
    cgroup_v1 = has_cgroups and not tree.exists(_CGROUP + "/cgroup.controllers")

    def lacks_cgroup(path: str) -> list[str] | None:
        if not has_cgroups:
            return None
        roots = ["%s/%s" % (_CGROUP, controller) for controller in _CONTROLLERS] if cgroup_v1 else [_CGROUP]
        try:
            roots = [root for root in roots if tree.exists(root)]
            lacking = [root for root in roots if not tree.exists("%s/%s" % (root, path))] if roots else None
        except NodeError:  # such as a name that no file can have
            return None
        return _not_made(node, path, lacking) if lacking else lacking

    def cgroup_lacks(path: str) -> Sequence[str]:
        try:
            here, top = (tree.read_value(_CGROUP + place + "/cgroup.controllers") for place in ("/" + path, ""))
        except NodeError:
            return ()
        if here is None or top is None:
            return ()
        kind = tree.read_value("%s/%s/cgroup.type" % (_CGROUP, path))
        if kind == INVALID:
            return (kind,)
        return [name for name in _CONTROLLERS_V2 if name in top.split() and name not in here.split()]

    memory = _memory_of(tree)
    return other_host(topology, node.minor)._replace(
        memory=memory.get("MemTotal"),
        cgroup_v1=cgroup_v1,
        storage=_storage_of(node),
        lacks_cgroup=lacks_cgroup,
        cgroup_lacks=cgroup_lacks,
        # Of a saved node it is not known where nothing below /run is saved.
        has_systemd=tree.exists(_SYSTEMD) if tree.exists(_RUN) else None,
        swap_on=len(_lines(tree, _SWAPS)) > 1,
        kernel_flag=lambda flag: _number("".join(_lines(tree, "/proc/sys/" + flag))),
        is_assumed=node.version is None,
        huge_pages=memory.get("Hugetlb", 0),
        warns_of_gates=node.installation is not None and node.installation.distribution.warns_of_gates,
        lacking_controllers=() if not has_cgroups else _lacking_v1(tree) if cgroup_v1 else _lacking(tree),
        needs_controllers=node.installation is not None and node.installation.distribution.has_kubelet_args,
        docker_driver=_docker_driver(node),
        is_partitioned=tree.exists(PARTITIONING),
    )


def _docker_driver(node: Node) -> str:
    """Return by which driver Docker makes cgroups, where the kubelet uses it by its own dockershim, and a file says
    so."""
    installation = node.installation
    if node.minor > _LAST_WITH_DOCKERSHIM or installation is None or installation.distribution.cri_socket != CONTAINERD:
        return ""
    # A remote runtime is given with its socket.
    if any(flag.name == _ENDPOINT and _DOCKERSHIM not in flag.value for flag in installation.flags):
        return ""
    # Imported here: newer kubelets have none.
    from .._runtime.runtime_files import docker_driver

    try:
        found = docker_driver(node.tree)
    except CPUManagerError:  # such as a file that cannot be read
        return ""
    return "" if found is None else found.name


def _lacking(tree: Tree) -> list[str]:
    """Return the controllers of pods that the topmost cgroup of v2 does not have; none where it shows none at all."""
    there = " ".join(_lines(tree, _CGROUP + "/cgroup.controllers")).split()
    return [controller for controller in _OF_PODS if there and controller not in there]


def _lacking_v1(tree: Tree) -> list[str]:
    """Return the controllers that no hierarchy of v1 has and the kubelet wants; none where no hierarchy is seen to be
    mounted.

    Source: validateSystemRequirements in pkg/kubelet/cm/container_manager_linux.go, and for pids
    getSupportedSubsystems in pkg/kubelet/cm/cgroup_manager_linux.go.
    """
    mounts = [line.split() for line in _lines(tree, "/proc/mounts")]
    there = {name for mount in mounts if mount[2:3] == ["cgroup"] for name in mount[3].split(",")}
    return [name for name in ("cpu", "cpuacct", "cpuset", "memory", "pids") if there and name not in there]


def _not_made(node: Node, path: str, roots: list[str]) -> list[str] | None:
    """Return those of these hierarchies in which the kubelet's unit does not make a cgroup first; None where it may
    do so in all."""
    installation = node.installation
    if installation is None:
        return roots
    # Imported here: most kubelets find their cgroups.
    from .._kubelet.state_removal import is_made

    service = service_of(node.tree, installation.distribution)
    made = {root: is_made(node.tree, service, "%s/%s" % (root, path)) for root in roots}
    never = [root for root in roots if made[root] is False]
    return never or (None if None in made.values() else [])


def _memory_of(tree: Tree) -> dict[str, int]:
    """Return what the machine's memory is divided into, in bytes, as far as its files tell."""
    rows = [line.partition(":")[::2] for line in _lines(tree, _MEMINFO)]
    sizes = {name: _number("".join(rest.split()[:1])) for name, rest in rows}
    return {name: 1024 * size for name, size in sizes.items() if size is not None}


def _lines(tree: Tree, path: str) -> list[str]:
    """Return the lines of a file; none where it cannot be read."""
    try:
        return tree.read_text(path).splitlines()
    except NodeError:
        return []


def _number(text: str) -> int | None:
    return int(text) if is_number(text) and len(text) < 19 else None


def _storage_of(node: Node) -> int | None:
    """Return the bytes of the file system of the kubelet's directory, which only a live node has."""
    if not node.tree.live:
        return None
    try:
        system = os.statvfs(os.path.dirname(node.checkpoint_path))
    except OSError:
        return None
    return system.f_blocks * system.f_frsize

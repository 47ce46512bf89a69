# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the kubelet of a node is installed: which process is it and may be trusted, and what its distribution's files
say.
"""

from __future__ import annotations

import os
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple, Sequence

from .._base.command import Run, run_command
from .._base.errors import NodeError, Note
from .._base.tree import Tree, fault_of, why_others_write
from .distributions import (
    DISTRIBUTIONS,
    Distribution,
    has_unit,
    installed_distribution,
    running_distribution,
    service_of,
)

if TYPE_CHECKING:
    from .effective import GivenFlag


# The kubelet that runs on a node, or the program that holds one.
#
# Any user may name a process as he likes, so on a live node only one counts that root has started, from a program of
# root's: its arguments name files that are then read and written as root. Its source: proc(5).


# The kubelet itself, and MicroK8s' program that holds it.
_KUBELETS = ("kubelet", "kubelite")
# k3s holds its kubelet when it is a server or an agent. RKE2 and k0s start a kubelet of its own.
_K3S = ("k3s", "k3s-server", "k3s-agent")

# Programs that give containers CPUs, by what is in all of their names, as _owners/owners.py has them.
OWNER_PROGRAMS = ("dracpu", "nri-resource-policy-", "weka-cpuset", "koordlet", "crane-agent", "cpusetter", "cri-resmgr")
_OWNERS = re.compile(r"(?:^|[/\0])(?:%s)[\w-]*(?:\0|$)" % "|".join(OWNER_PROGRAMS))
# With one of these it says something and ends.
_SAYS_AND_ENDS = ("--version", "--help", "-h")
# As long as Linux takes one, in bytes.
_LONGEST_PATH = 4096
# k3s in a user's own service, whose files are in the user's home.
_ROOTLESS = "--rootless"
# What Go reads as false.
_FALSE = ("0", "f", "F", "false", "False", "FALSE")

# A user may start any number of processes.
_MOST_NOTES = 3


class KubeletProcess(NamedTuple):
    """A running kubelet: its process id and its command line.

    Bytes of the command line that are no text are in it as os.fsdecode() gives them, so that a path opens.
    """

    pid: int
    arguments: tuple[str, ...]


class Search(NamedTuple):
    """The kubelet that runs on a node, None where none does, and what is strange about those that look like one.

    may_have_owners: whether a process is called like a program that gives containers CPUs, which proves nothing yet.
    """

    kubelet: KubeletProcess | None
    notes: tuple[str, ...] = ()
    may_have_owners: bool = False


def find_kubelet(tree: Tree) -> KubeletProcess | None:
    """Return the kubelet that runs on this node; None where none does, as in a saved machine."""
    return search_kubelet(tree).kubelet


def search_kubelet(tree: Tree) -> Search:
    """Return the kubelet that runs on this node. Of a saved node, whatever was saved counts."""
    doubts: list[str] = []
    of_service: list[KubeletProcess] = []
    others: list[KubeletProcess] = []
    may_have_owners = False
    for process in _named_processes(tree):
        if process is None:
            may_have_owners = True
            continue
        service = doubt = ""
        if _is_on(process.arguments, _ROOTLESS):
            doubt = "it is rootless, and its files are those of a user"
        elif tree.live:
            try:
                if is_in_container(process.pid):
                    continue
                service = service_of_process(process.pid)
                doubt = doubt_about(process, service)
            except (OSError, ValueError):
                continue  # it ended meanwhile
        if doubt:
            name = os.path.basename(process.arguments[0])
            doubts.append("process %d is called %s and does not count as one: %s" % (process.pid, name, doubt))
        else:
            (of_service if service else others).append(process)
    kubelets = of_service + others
    notes = doubts[:_MOST_NOTES]
    if len(doubts) > _MOST_NOTES:
        notes.append("%d more processes are called so and do not count" % (len(doubts) - _MOST_NOTES))
    if len(kubelets) > 1:
        notes.append(
            "%d kubelets run (processes %s); what is said here is of process %d%s"
            % (
                len(kubelets),
                ", ".join(str(process.pid) for process in sorted(kubelets)),
                kubelets[0].pid,
                ", which is a service" if of_service else "",
            )
        )
    noted = tuple(Note("kubelet-ambiguous", text) for text in notes)
    return Search(kubelets[0] if kubelets else None, noted, may_have_owners)


def _named_processes(tree: Tree) -> Iterator[KubeletProcess | None]:
    """Yield the processes that say by their command line that they are a kubelet, by process id.

    None stands for one that may give containers CPUs: the look at all processes is taken once.
    """
    for pid in tree.numbered("/proc", ""):
        path = "/proc/%d/cmdline" % pid
        try:
            # Of most processes this short look is enough.
            line = tree.read_value(path)
            if line is None:
                continue
            if _OWNERS.search(line):
                yield None
            if not ("kubel" in line or "k3s" in line):
                continue
            arguments = _arguments_of(os.fsdecode(tree.read_bytes(path)).strip("\0\n "))
        except NodeError:
            continue  # it ended meanwhile
        if _is_kubelet(arguments):
            yield KubeletProcess(pid, arguments)


def _arguments_of(line: str) -> tuple[str, ...]:
    # What k3s was started with may be secret: it writes "k3s server" over it, as one word.
    if "\0" not in line and os.path.basename(line).startswith("k3s "):
        return tuple(line.split())
    return tuple(line.split("\0"))


def _is_kubelet(arguments: Sequence[str]) -> bool:
    name = os.path.basename(arguments[0])
    flags = list(arguments[1 : arguments.index("--") if "--" in arguments else None])
    if any(_is_on(flags, flag) for flag in _SAYS_AND_ENDS):
        return False
    if name in _K3S:
        is_kubelet = "-" in name or arguments[1:2] in (("server",), ("agent",))
        return is_kubelet and not _is_on(flags, "--disable-agent")
    return name in _KUBELETS


def _is_on(flags: Sequence[str], name: str) -> bool:
    given = [flag.partition("=")[2] for flag in flags if flag.partition("=")[0] == name]
    return bool(given) and given[-1] not in _FALSE


# Which of the processes that look like a kubelet count as one, on a live node.
#
# Any user may start a process of any name: its configuration is read, edited and backed up by root.


_ROOT = 0
# The cgroups of pods by both drivers, also below a --cgroup-root, which the systemd driver makes a part of each name,
# and those of containers that only a CRI runtime makes.
_OF_CONTAINER = re.compile(r"(?:cri-containerd|crio)-[0-9a-f]{64}(?:\.scope)?")
# The doubt about what may well be the kubelet.
UNSEEN = "its program cannot be seen"


def doubt_about(process: KubeletProcess, service: str) -> str:
    """Return why a process of this machine does not count; empty where it does. Raises OSError."""
    if not trusted_users(process.pid):
        users = sorted(_users(process.pid) - _trusted())
        return "it runs as user %s" % " and ".join(_user_name(user) for user in users)
    if in_pod(cgroups_of(str(process.pid))) and not in_pod(cgroups_of("self")):
        return "it is in a pod"
    if service:
        return ""  # Whoever made the service is root.
    try:
        return _program_doubt(process)
    except PermissionError:
        # Only root with all powers sees the programs of root. Anybody else does no more than what he may do anyway.
        return UNSEEN if os.geteuid() == _ROOT else ""


def _program_doubt(process: KubeletProcess) -> str:
    program = trusted_program(process.pid)
    if not program:
        return "its program %r may be written by others than root" % os.readlink("/proc/%d/exe" % process.pid)
    name = os.path.basename(process.arguments[0]).partition("-")[0]
    return "" if name in os.path.basename(program) else "its program is %r" % program


def _trusted() -> frozenset[int]:
    return frozenset((_ROOT, os.geteuid()))


def _users(pid: int) -> frozenset[int]:
    """Return the real, effective and other users of a process: of a set-user-ID program the first is who called it."""
    return frozenset(int(user) for user in _status(str(pid), "Uid"))


def _user_name(user: int) -> str:
    # Imported here: only for a message.
    from pwd import getpwuid

    try:
        return "%d (%s)" % (user, getpwuid(user).pw_name)
    except KeyError:
        return str(user)


def is_in_container(pid: int) -> bool:
    """Return whether it is the kubelet of a node that is a container of this one, with process ids of its own."""
    # To look at its namespace takes more than root.
    return len(_status(str(pid), "NSpid")) > len(_status("self", "NSpid"))


def _status(process: str, name: str) -> list[str]:
    """Return the words of a line of a process's status."""
    with open("/proc/%s/status" % process, encoding="utf-8", errors="replace") as file:
        return next((line.split()[1:] for line in file if line.startswith(name + ":")), [])


def service_of_process(pid: int) -> str:
    """Return the known service, as systemd calls its unit, that a process belongs to; empty for none."""
    units = {"%s.service" % service for distribution in DISTRIBUTIONS for service in distribution.services}
    for groups in cgroups_of(str(pid)):
        for depth, group in enumerate(groups):
            # A user's own manager is a service, and has services below it.
            if group in units and all(above.endswith(".slice") for above in groups[:depth]):
                return group
    return ""


def in_pod(cgroups: Iterable[Iterable[str]]) -> bool:
    """Return whether cgroups, as cgroups_of() gives them, are those of a pod, whatever the kubelet's --cgroup-root."""
    return any(_is_of_pods(group) for groups in cgroups for group in groups)


def _is_of_pods(cgroup: str) -> bool:
    is_slice = cgroup.endswith(".slice") and "-kubepods-" in cgroup[1 : -len(".slice")] + "-"
    return cgroup.startswith("kubepods") or is_slice or bool(_OF_CONTAINER.fullmatch(cgroup))


def cgroups_of(process: str) -> list[list[str]]:
    """Return the names in the path of each of its cgroups, of v2 and of each hierarchy of v1. Source: cgroups(7)."""
    with open("/proc/%s/cgroup" % process, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n").split(":", 2)[-1].strip("/").split("/") for line in file]


def trusted_program(pid: int) -> str:
    """Return the path of the program of a process of this machine; empty where others may have put it there, or write
    it.

    Others are all users but root and, unless that is root, who runs this. Raises OSError.
    """
    program = os.readlink("/proc/%d/exe" % pid)
    # Of a file that was replaced meanwhile this is the old one.
    status = os.stat("/proc/%d/exe" % pid)
    return "" if why_others_write("/proc/%d/exe" % pid, status) else program


def trusted_users(pid: int) -> bool:
    """Return whether a process of this machine runs as root, or as who runs this, in all regards. Raises OSError."""
    return _users(pid) <= _trusted()


# Whether a kubelet of this machine can be seen, where none was: a stopped kubelet is not the same as a hidden one.
#
# A service without CAP_SYS_PTRACE does not see the processes of others where /proc is mounted with hidepid=, as with
# ProtectProc=, nor outside of its own process ids. Its source: proc(5), cgroups(7).


# Version 2 of cgroups, and both places where systemd has its own hierarchy beside version 1.
_PLACES = ("", "/systemd", "/unified")
# What cgroups show in place of a process that has no number here.
_OUTSIDE = "0"


def why_unseen(tree: Tree) -> str:
    """Return why a kubelet may run on this machine although none was found; empty where it does not."""
    return why_hidden() or _who_may_be_it(tree)


def _who_may_be_it(tree: Tree) -> str:
    for process in filter(None, _named_processes(tree)):
        try:
            if not is_in_container(process.pid) and doubt_about(process, service_of_process(process.pid)) == UNSEEN:
                return "process %d is called so, is no service of a known name, and %s" % (process.pid, UNSEEN)
        except (OSError, ValueError):
            continue  # it ended meanwhile
    return ""


def why_hidden(proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> str:
    """Return why this process would not see a kubelet that runs; empty where it would. Arguments: where these are
    mounted."""
    if not _is_seen(proc, "1"):
        return "%s does not show the processes of others (hidepid=, ProtectProc=)" % proc
    for service, path in _services(cgroups):
        hidden = [pid for pid in _processes(path) if not _is_seen(proc, pid)]
        # Some may have ended meanwhile.
        if hidden and set(hidden) & set(_processes(path)):
            return "%s runs, and %s does not show its processes" % (service, proc)
    return ""


def _services(cgroups: str) -> Iterator[tuple[str, str]]:
    """Yield the services of kubelets that are there, each with the path of its processes."""
    units = ["%s.service" % service for distribution in DISTRIBUTIONS for service in distribution.services]
    for place in _PLACES:
        slices = [name for name in _names(cgroups + place) if name.endswith(".slice")]
        for unit in dict.fromkeys(units):
            for name in slices:
                path = "%s%s/%s/%s/cgroup.procs" % (cgroups, place, name, unit)
                if os.path.exists(path):
                    yield unit, path


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _processes(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().split()
    except OSError:
        return []


def _is_seen(proc: str, pid: str) -> bool:
    try:
        with open("%s/%s/cmdline" % (proc, pid), "rb"):
            return pid != _OUTSIDE
    except OSError:
        return False


# The version of the kubelet that runs, as its program prints it.


# The kubelet says Kubernetes v1.35.6, and k3s says k3s version v1.33.1+k3s1 (99d91538).
_VERSION = re.compile(r"\bv(1\.[0-9]+\.[0-9]+)")


_run_program = partial(run_command, patience=10)
# With --version they say it and end; a snap's program would be started.
_SAY_THEIR_VERSION = ("kubelet", "k3s", "rke2")


def stopped_version(tree: Tree, distribution: Distribution, run: Run = _run_program) -> str:
    """Return the version of the kubelet that its unit starts on this machine, as in 1.35.6; empty where it is not said.

    The program is run only if it has the name of one that says its version, and nobody but root can have put it there.
    """
    # Imported here: most kubelets run.
    from .._host.services import unit_command
    from .units import kubelet_words

    command = unit_command(tree, service_of(tree, distribution))
    program = next(iter(kubelet_words(command) or command), "")
    if os.path.basename(program) not in _SAY_THEIR_VERSION or not os.path.isabs(program):
        return ""
    try:
        return "" if fault_of(tree, program) else version_in(run([program, "--version"]))
    except (OSError, ValueError, NodeError):
        return ""


def running_version(pid: int, run: Run = _run_program) -> str:
    """Return the version of a kubelet that runs on this machine, as in 1.35.6; empty where it does not say.

    The program is run only if it is a file of this machine that nobody but root, or the user of this process, can have
    put there.
    """
    try:
        program = _program_as_it_runs(pid) if trusted_users(pid) else ""
        return version_in(run([program, "--version"])) if program else ""
    except (OSError, ValueError, NodeError):
        return ""


def _program_as_it_runs(pid: int) -> str:
    """Return the path of a process's program; empty where there is another file now, or one of others. Raises
    OSError."""
    try:
        program = trusted_program(pid)
        # The file at this path may be another one by now, or that of a container.
        is_same = bool(program) and os.path.samestat(os.stat(program), os.stat("/proc/%d/exe" % pid))
    except PermissionError:
        # Without the capability SYS_PTRACE. Who made the service is root, and the first word of its command line is the
        # path; a file that has not changed since its start is the same.
        if not service_of_process(pid):
            raise
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            program = os.fsdecode(file.read(_LONGEST_PATH).partition(b"\0")[0])
        status = os.stat(program)
        is_same = os.path.isabs(program) and not why_others_write(program, status) and status.st_ctime < _start_of(pid)
    return program if is_same else ""


def _start_of(pid: int) -> float:
    """Return when a process was started, in seconds since 1970. Raises OSError."""
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        # The name, in parentheses, may hold anything; the time is the 20th field behind it.
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def version_in(said: str) -> str:
    """Return the version that a program has said, as in 1.35.6; empty where there is none in it."""
    found = _VERSION.search(said)
    return found.group(1) if found else ""


# A kubelet that is none of the known ones.
UNKNOWN = Distribution("unknown")


class Installation(NamedTuple):
    """Where the kubelet of a node takes its settings from."""

    distribution: Distribution
    config_path: str | None
    config_dir: str | None
    kubelet_root: str
    # The flags that count, in order.
    flags: tuple[GivenFlag, ...] = ()
    # What it was started with, or its unit starts it with; empty where neither is known and none is given.
    command_line: tuple[str, ...] = ()
    # Of the running kubelet.
    pid: int | None = None
    # What is strange about it, for people.
    notes: tuple[str, ...] = ()
    # Why it is not known what it is started with, where the node's files do not show that.
    unread: str = ""

    def to_dict(self, tree: Tree) -> dict[str, Any]:
        """Return plain data, as drift_info returns it, without what may be secret."""
        words: list[str] = []
        if self.command_line:
            # Imported here: a node that does not run a kubelet is read faster without.
            from .redacted_words import words_redacted

            words = words_redacted(self.command_line)
        return {
            "distribution": self.distribution.name,
            "service": service_of(tree, self.distribution),
            "config_path": self.config_path,
            "config_dir": self.config_dir,
            "kubelet_root": self.kubelet_root,
            "cri_socket": self.distribution.cri_socket,
            "log_file": self.distribution.log_file,
            "pid": self.pid,
            "command_line": words,
        }


def find_installation(
    tree: Tree,
    command_line: Sequence[str] = (),
    config_path: str | None = None,
    kubelet_root: str | None = None,
    search: Search | None = None,
) -> Installation | None:
    """Return the kubelet of this node; None where there is none.

    A running kubelet's command line counts before the one that is given, which is that of one that is stopped.
    config_path and kubelet_root count before all else. search: the look at the node's processes, where it was taken.
    Raises NodeError for a file that cannot be read.
    """
    process, notes, _may_have_owners = search_kubelet(tree) if search is None else search
    arguments = process.arguments if process is not None else tuple(command_line)
    distribution = running_distribution(" ".join(arguments), tree) if arguments else installed_distribution(tree)
    unread = ""
    if distribution is None:
        # Imported here: most kubelets are of a distribution with files of its own.
        from .units import find_unit

        unit = find_unit(tree)
        if unit is None and not arguments and config_path is None:
            return None
        distribution = UNKNOWN
        if unit is not None:
            distribution = UNKNOWN._replace(services=(unit.service,))
            if not unit.words and not arguments:
                unread = "the unit %s.service starts a kubelet by %s, and what that reads is not known"
                unread %= (unit.service, unit.starter)
    flags: list[GivenFlag] = []
    words = arguments
    named_path = config_dir = root = None
    pid = None if process is None else process.pid
    if arguments or may_give_flags(tree, distribution):
        # Imported here: a node that neither runs a kubelet nor gives it flags is read faster without.
        from .effective import CONFIG, CONFIG_DIR, ROOT_DIR, path_of
        from .flag_files import find_flags, replaced_notes, unit_words, unread_notes

        words = arguments or tuple(unit_words(tree, distribution))
        flags = find_flags(tree, distribution, arguments, pid)
        notes = (*notes, *replaced_notes(tree, distribution))
        if process is not None:
            notes = (*notes, *unread_notes(tree, distribution, arguments, process.pid))
        named_path, config_dir, root = (path_of(flags, name) for name in (CONFIG, CONFIG_DIR, ROOT_DIR))
    usual_path = distribution.config_path
    if usual_path is not None and words and named_path is None and config_path is None:
        # All of its words are known.
        notes = (*notes, *_unnamed_notes(tree, usual_path, words))
        usual_path = None
    if not (unread or words or config_path or usual_path or distribution.config_dir or distribution.flag_files):
        unread = "what a kubelet of %s is started with is in no file of the node, and none runs" % distribution.name
    # What k3s and RKE2 are given as --config and --config-dir they put into their own directory, where they have one.
    if (
        distribution.config_dir is not None
        and (distribution.has_kubelet_args or not arguments)
        and tree.exists(distribution.config_dir)
    ):
        config_dir, named_path = distribution.config_dir, None if distribution.has_kubelet_args else named_path
    return Installation(
        distribution,
        config_path or named_path or usual_path,
        config_dir,
        kubelet_root or _expanded(root) or distribution.kubelet_root,
        tuple(flags),
        words,
        pid,
        notes,
        unread,
    )


def _unnamed_notes(tree: Tree, path: str, words: Sequence[str]) -> list[Note]:
    """Return what is said of a distribution's configuration file that a kubelet with these words does not read."""
    if not tree.exists(path):
        return []
    text = "%s does not count: the kubelet's command line has no --config (%s)"
    return [Note("field-ignored", text % (tree.path(path), words[0]))]


def may_give_flags(tree: Tree, distribution: Distribution) -> bool:
    """Return whether there is a file that may give flags to a kubelet that does not run."""
    places = [place for file in distribution.flag_files for place in (file.path, file.path + ".d")]
    return any(tree.exists(place) for place in places) or has_unit(tree, service_of(tree, distribution))


def _expanded(path: str | None) -> str | None:
    """Return a path, unless it depends on a variable, as in MicroK8s' file."""
    return None if path is None or "$" in path else path

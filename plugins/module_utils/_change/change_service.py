# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of a node in a process of its own, which ends well whatever becomes of the module that has begun it.

The module writes what is to be done, and its own code, into a directory of root's, and starts them: with systemd as a
transient unit, without it in a session of its own. The process writes each step that it begins, and at last its result.
If it is killed, it is started again, and takes back by the journal what was done, or brings it to its end. The module
waits for the result; if the module is killed, the next call finds it.
Source: systemd-run(1), systemd.exec(5).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Mapping, Sequence

from .._base.command import run_command
from .._base.errors import MALFORMED, CPUManagerError, NodeError, RefusedError, call_options
from .._base.files import make_roots_directory, replace_file
from .._base.journal_file import DIRECTORY, obeyed_content
from .._base.own_lock import try_lock
from .._base.secrets import texts_redacted
from .._base.tree import Tree, fault_of, not_obeyed
from .._host.systemd import has_systemd
from .._rollout.rollout_plan import service_refusals
from .node_change import BEGIN_DRAIN, END_DRAIN, NodeChange

UNIT = "kubenode-cpu-manager-change"
PLACE = DIRECTORY + "/change"
# What is to be done, each step that was begun, and what came of it; the code; and who is at it.
REQUEST, PROGRESS, RESULT = PLACE + "/request.json", PLACE + "/progress", PLACE + "/result.json"
_CODE, _LOG = PLACE + "/code.zip", PLACE + "/log"
_STARTING, _RUNNING = "starting", "running"
_MODE = 0o600
# After so many processes that died, the next one does no more than start the kubelet.
_MOST_ATTEMPTS = 4
# Seconds: between two looks; until a process that was started, or has died, is at work; and for all that is no waiting
# for a kubelet.
_INTERVAL, _STARTUP, _BESIDE = 0.2, 60.0, 60.0
_START = "import sys; sys.path.insert(0, sys.argv[1]); from %s import main; sys.exit(main(sys.argv[2:]))" % __name__
# A change writes files of the kubelet and its runtime, and cgroups, runs systemctl and crictl, and asks the kubelet.
PROPERTIES = (
    # What ends by an error would do so again.
    "Restart=on-abnormal",
    "RestartSec=1",
    "StartLimitIntervalSec=0",
    # As the kubelet's: where memory is short, what brings the node back goes last.
    "OOMScoreAdjust=-999",
    "SyslogIdentifier=" + UNIT,
    "UMask=0077",
    "NoNewPrivileges=yes",
    "ProtectHome=read-only",
    "ProtectKernelModules=yes",
    "RestrictRealtime=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
)


# --- the module's side ------------------------------------------------------------------------------------------------


def carried_out(tree: Tree, given: Mapping[str, Any], acts: bool) -> dict[str, Any]:
    """Return the result of a call, as NodeChange has it; with `running` where it goes on after given["patience"]
    seconds.

    Where no service is stopped, it is done in this process. Raises CPUManagerError where nothing was begun.
    """
    if given["manage_service"] and _stops(given):
        # A service of this machine is none of a saved node.
        for refusal in service_refusals(tree, given["service"], "service"):
            raise refusal
    if not acts:
        return NodeChange(tree, given, acts=False).carry_out()
    is_known = _call_of(tree, REQUEST) == given["call"]
    if not given["manage_service"] or given["step"] in (BEGIN_DRAIN, END_DRAIN) or not _stops(given):
        with _Turn(tree, given):
            return NodeChange(tree, given, acts=True).carry_out()
    if not is_known:
        with _Turn(tree, given):
            _begin(tree, given)
    return _result(tree, given)


def _stops(given: Mapping[str, Any]) -> bool:
    """Return whether the call may stop or start a service."""
    plan = given["plan"] or {}
    return plan.get("journal") is not None or given["step"] != "change" or "start_kubelet" in plan.get("actions", ())


class _Turn:
    """Only one call at a time begins on a node, and no other one goes on meanwhile. Raises RefusedError."""

    def __init__(self, tree: Tree, given: Mapping[str, Any]) -> None:
        self.tree, self.patience = tree, 2 * given["timeout"] + _BESIDE
        self._held = -1

    def __enter__(self) -> None:
        make_roots_directory(self.tree, PLACE)
        deadline = time.monotonic() + self.patience
        while True:
            held = try_lock(_lock(self.tree, _STARTING))
            if held is not None and not _is_running(self.tree):
                self._held = held
                return
            if held is not None:
                os.close(held)
            if time.monotonic() > deadline:
                raise RefusedError(
                    "another change of this node goes on",
                    self.tree.path(PLACE),
                    "wait until it has ended, and run again",
                    "another_run",
                )
            time.sleep(_INTERVAL)

    def __exit__(self, *_error: object) -> None:
        os.close(self._held)


def _lock(tree: Tree, name: str) -> str:
    return "%s/%s" % (tree.path(PLACE), name)


def _is_running(tree: Tree) -> bool:
    held = try_lock(_lock(tree, _RUNNING))
    if held is None:
        return True
    os.close(held)
    return False


def _begin(tree: Tree, given: Mapping[str, Any]) -> None:
    """Start the process, and wait until it is at work. Raises NodeError."""
    for path in (RESULT, PROGRESS, REQUEST):
        with suppress(FileNotFoundError):
            os.unlink(tree.path(path))
    code, request, is_withdrawn = _code(tree), {"call": given["call"], "parameters": dict(given)}, False
    _put(tree, REQUEST, request)
    command = [sys.executable, "-I", "-c", _START, code, tree.root]
    # One that takes none of it, such as an older systemd, starts nothing; two at once would wait for each other.
    if not _by_systemd(tree, command, given["timeout"] + _BESIDE):
        _detach([*command, "supervised"], tree.path(_LOG))
    deadline = time.monotonic() + _STARTUP
    while not steps_begun(tree) and _read(tree, RESULT) is None:
        if time.monotonic() > deadline:
            # A process that starts later has nothing to do. One that has read the request is at work.
            with suppress(FileNotFoundError):
                os.unlink(tree.path(REQUEST))
            is_withdrawn = True
            if not _is_running(tree) and not steps_begun(tree):
                raise NodeError(
                    "the process that carries a change out did not start; nothing was changed",
                    tree.path(PLACE),
                    "look into the log of %s, and run again" % UNIT,
                )
        time.sleep(0.05)
    if is_withdrawn:
        _put(tree, REQUEST, request)


def _by_systemd(tree: Tree, command: Sequence[str], patience: float) -> bool:
    """Start a command as a transient unit; whether that was possible. patience: for its end, in seconds."""
    if not (tree.live and has_systemd(tree) and shutil.which("systemd-run")):
        return False
    with suppress(NodeError):
        run_command(["systemctl", "reset-failed", UNIT + ".service"])
    properties = ["--property=" + text for text in (*PROPERTIES, "TimeoutStopSec=%d" % patience)]
    words = ["--quiet", "--collect", "--unit=" + UNIT, "--description=Change the node's CPU management"]
    try:
        run_command(["systemd-run", *words, *properties, "--", *command])
    except NodeError:
        return False
    return True


def _code(tree: Tree) -> str:
    """Return where the process finds this code: a copy of the archive that Ansible sent, which is about to go."""
    archive = getattr(globals().get("__loader__"), "archive", None)
    here = os.path.abspath(__file__)
    if archive is None:
        place = here.rpartition("/ansible_collections/")[0]
        return place or _of_checkout()
    with open(archive, "rb") as file:
        content = file.read()
    here = tree.path(_CODE)
    with suppress(FileNotFoundError):
        os.unlink(here)
    replace_file(here, content, _MODE, None, backup=False)
    fault = fault_of(tree, _CODE)
    if fault is not None:
        raise not_obeyed(fault, here)
    return here


def _of_checkout() -> str:
    """Return where Python has found a collection that is no archive."""
    places = [place for place in sys.path if os.path.isdir(place + "/ansible_collections/kubenode/cpu_manager")]
    if not places:
        raise NodeError("is no collection that another process finds", os.path.abspath(__file__))
    return places[0]


def _detach(command: Sequence[str], log: str) -> None:
    """Start a process of nobody's, in a session of its own."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
    try:
        subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, start_new_session=True, cwd="/"
        )
    except OSError as error:
        raise NodeError(error.strerror or str(error), command[0]) from error
    finally:
        os.close(descriptor)


def _result(tree: Tree, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the process has written at its end, or how far it has come. Raises NodeError where it has died for
    good."""
    begin = seen = time.monotonic()
    while True:
        result = _read(tree, RESULT)
        if result is not None and result.get("call") == given["call"]:
            for path in (REQUEST, PROGRESS, _CODE, _LOG):
                with suppress(FileNotFoundError):
                    os.unlink(tree.path(path))
            return dict(result["result"])
        now = time.monotonic()
        if _is_running(tree):
            seen = now
        if now - seen > _STARTUP:
            raise NodeError(
                "the process that carried the change out is gone, without a result",
                tree.path(PLACE),
                "run the role again, which takes back what was done",
                "died",
            )
        if now - begin > given["patience"]:
            names = [name for name in steps_begun(tree) if name]
            return {"running": True, "steps": [{"name": name, "changed": True} for name in names], "changed": True}
        time.sleep(_INTERVAL)


# --- the files --------------------------------------------------------------------------------------------------------


def _put(tree: Tree, path: str, data: Mapping[str, Any]) -> None:
    here = tree.path(path)
    replace_file(here, json.dumps(data).encode("utf-8"), _MODE, tree.content(path), backup=False, keep_mode=False)


def _read(tree: Tree, path: str) -> dict[str, Any] | None:
    """Return what is in one of the files, which only root may have written; None where there is none that is whole."""
    content = obeyed_content(tree, path)
    try:
        data = None if content is None else json.loads(content)
    except MALFORMED:
        return None
    return data if isinstance(data, dict) else None


def _call_of(tree: Tree, path: str) -> object:
    return (_read(tree, path) or {}).get("call")


def steps_begun(tree: Tree) -> list[str]:
    """Return the steps that were begun, in order; an empty one for each start of the process."""
    content = obeyed_content(tree, PROGRESS) or b""
    return content.decode("utf-8", "replace").split("\n")[:-1]


# --- the process ------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Carry out what is requested for the node whose root is the first argument. A second one: and watch over it."""
    tree = Tree(arguments[0])
    if not arguments[1:]:
        return _carry_out(tree)
    while True:
        child = os.fork()
        if not child:
            os._exit(_carry_out(tree))
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            return 0
        time.sleep(1)


def _carry_out(tree: Tree) -> int:
    """Carry the request out. Only what ends this process by a signal starts it again: what else is wrong would be so
    again."""
    deadline = time.monotonic() + _STARTUP
    held = try_lock(_lock(tree, _RUNNING))
    while held is None and time.monotonic() < deadline:
        time.sleep(0.05)
        held = try_lock(_lock(tree, _RUNNING))
    request = _read(tree, REQUEST)
    if held is None or request is None or _call_of(tree, RESULT) == request["call"]:
        return 0
    given = request["parameters"]
    call_options(given.get("option_names") or {})
    begun = steps_begun(tree)

    def tell(step: str) -> None:
        _say(step)
        with suppress(OSError), open(tree.path(PROGRESS), "ab", opener=_private) as file:
            file.write(step.encode("utf-8") + b"\n")

    tell("")
    change = NodeChange(tree, given, acts=True, tell=tell)
    signal.signal(signal.SIGTERM, _end)
    if begun.count("") >= _MOST_ATTEMPTS:
        result = change.give_up()
    else:
        result = change.go_on([step for step in begun if step]) if begun else change.carry_out()
    try:
        _put(tree, RESULT, {"call": request["call"], "result": texts_redacted(result) if result["failed"] else result})
    except (CPUManagerError, OSError) as error:
        _say("the result cannot be written: %s" % error)
    return 0


def _say(text: str) -> None:
    """Write a line to the log. A log that takes none, as on a full disk, keeps no change from its end."""
    with suppress(OSError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)


def _end(_number: int, _frame: object) -> None:
    """Have the change fail, so that whoever ends the process, such as a machine that is switched off, gets the node
    as it was."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise NodeError("the process that carries the change out was told to end", kind="died")

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start, stop and restart services of this machine: by systemd, by OpenRC, or by an init script.

Source: systemctl(1), service(8), rc-service(8); the LSB's "Init Script Actions" for the exit status.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress

from .._base.command import WOULD_EXECUTE, run_command
from .._base.errors import NodeError
from .._base.secrets import text_redacted
from .._base.tree import TO_ROOT, Tree, fault_of
from .systemd import has_systemd

START, STOP, RESTART = "start", "stop", "restart"
# Seconds. A kubelet that stops ends no containers; systemd itself gives up after 90.
_PATIENCE = 120.0
_LONGEST = 2000


def control(service: str, action: str) -> bool:
    """Start, stop or restart a service, and return whether there was anything to do. Raises NodeError."""
    is_running = _call(service, "is-active" if _by_systemd() else "status")[0] == 0
    if action != RESTART and is_running == (action == START):
        return False
    status, said = _call(service, action)
    # A unit that has failed too often is not started again before systemd has forgotten that.
    if status and action != STOP and _is_forgotten(service):
        status, said = _call(service, action)
    if status:
        what = "%s of the service failed with status %d" % (action, status)
        raise NodeError("%s: %s" % (what, said) if said else what, service, "look what its log says", "service")
    return True


def _is_forgotten(service: str) -> bool:
    """Let systemd forget how often a unit has failed. False where there is no such unit, or no systemd."""
    with suppress(NodeError):
        run_command(["systemctl", "reset-failed", "--", service + ".service"])
        return True
    return False


def _by_systemd() -> bool:
    return has_systemd(Tree("/"))


def _call(service: str, action: str) -> tuple[int, str]:
    """Return the exit status, and what was said last. Raises NodeError."""
    if _by_systemd():
        command = ["systemctl", *(["--quiet"] if action == "is-active" else []), action, service]
    elif shutil.which("rc-service"):
        command = ["rc-service", service, action]
    else:
        command = ["service", service, action]
    program = shutil.which(command[0])
    if program is None:
        raise NodeError("there is no such program", command[0], "install it, or start and stop the service yourself")
    fault = fault_of(Tree("/"), os.path.abspath(program))
    if fault is not None:
        refusal = fault.refusal(WOULD_EXECUTE, "give it to root (%s), and run again" % TO_ROOT)
        raise NodeError(refusal.what, refusal.where, refusal.remedy, refusal.kind)
    # Not a pipe: a daemon that an init script starts may keep it open.
    output = os.memfd_create("output")
    try:
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            command,
            executable=program,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C"},
        )
        said = os.pread(output, _LONGEST, max(0, os.fstat(output).st_size - _LONGEST))
    except subprocess.TimeoutExpired as error:
        raise NodeError("no answer in %g seconds" % _PATIENCE, " ".join(command), kind="service") from error
    except OSError as error:
        raise NodeError(error.strerror or str(error), command[0]) from error
    finally:
        os.close(output)
    return done.returncode, text_redacted(said.decode("utf-8", "replace").strip())

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command of the node, unless others than root could have put it there."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Callable, Sequence

from .errors import NodeError
from .secrets import text_redacted
from .tree import TO_ROOT, Tree, fault_of

# Runs a command; gives what it prints, or raises NodeError, SilentError when there is no answer in time.
Run = Callable[[Sequence[str]], str]

_PATIENCE = 60  # seconds
# What comes of a program that others may write.
WOULD_EXECUTE = "root would execute what they put there"


class SilentError(NodeError):
    """A command did not end in time."""


def run_command(arguments: Sequence[str], patience: float = _PATIENCE) -> str:
    """Run a command without a shell; give what it prints. Raises NodeError with what it complains of, without secrets,
    and for a program that others than root may write.

    patience: how many seconds it may take.
    """
    program = shutil.which(arguments[0])
    fault = None if program is None else fault_of(Tree("/"), os.path.abspath(program))
    if fault is not None:
        refusal = fault.refusal(WOULD_EXECUTE, "give it to root (%s), and run again" % TO_ROOT)
        raise NodeError(refusal.what, refusal.where, refusal.remedy, refusal.kind)
    try:
        # Nothing here depends on Ansible, whose run_command has no limit of time.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            list(arguments),
            executable=program,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=patience,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise SilentError("no answer in %g seconds" % patience, where=" ".join(arguments)) from error
    except OSError as error:
        raise NodeError(error.strerror or str(error), where=arguments[0]) from error
    if done.returncode:
        complaint = text_redacted((done.stderr or done.stdout).decode("utf-8", "replace").strip())
        raise NodeError(complaint or "failed with status %d" % done.returncode, where=" ".join(arguments))
    return done.stdout.decode("utf-8", "replace")

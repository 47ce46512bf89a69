# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command of the node."""

from __future__ import annotations

import os
import subprocess
from typing import Callable, Sequence

from .errors import NodeError
from .secrets import text_redacted

# Runs a command; gives what it prints, or raises NodeError, SilentError when there is no answer in time.
Run = Callable[[Sequence[str]], str]

_PATIENCE = 60  # seconds


class SilentError(NodeError):
    """A command did not end in time."""


def run_command(arguments: Sequence[str], patience: float = _PATIENCE) -> str:
    """Run a command without a shell; give what it prints. Raises NodeError with what it complains of, without secrets.

    patience: how many seconds it may take.
    """
    try:
        # Nothing here depends on Ansible, whose run_command has no limit of time.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            list(arguments),
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

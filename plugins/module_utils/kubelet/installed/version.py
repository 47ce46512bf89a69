# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The version of the kubelet that runs, as its program prints it."""

from __future__ import annotations

import os
import re
from functools import partial

from ...command import Run, run_command
from ...errors import NodeError
from .trust import trusted_program, trusted_users

# The kubelet says Kubernetes v1.35.6, and k3s says k3s version v1.33.1+k3s1 (99d91538).
_VERSION = re.compile(r"\bv(1\.[0-9]+\.[0-9]+)")


_run_program = partial(run_command, patience=10)


def running_version(pid: int, run: Run = _run_program) -> str:
    """The version of a kubelet that runs on this machine, as in 1.35.6; empty where it does not say.

    The program is run only if it is a file of this machine that nobody but root, or the user of this process, can have
    put there.
    """
    try:
        program = trusted_program(pid) if trusted_users(pid) else ""
        # The file at this path may be another one by now, or that of a container.
        if not program or not os.path.samestat(os.stat(program), os.stat("/proc/%d/exe" % pid)):
            return ""
        found = _VERSION.search(run([program, "--version"]))
    except (OSError, ValueError, NodeError):
        return ""
    return found.group(1) if found else ""

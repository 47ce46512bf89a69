# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Services of init scripts that only one run sees, on a machine with whatever services of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need

# systemd, where it is, is out of sight.
_PRIVATE = """\
mount --bind "$1" /etc/init.d
[ ! -d /run/systemd ] || mount -t tmpfs none /run/systemd
shift
exec "$@"
"""

# A task, before those that use services.
SERVICE_MANAGER = {
    "name": "Use init scripts",
    "ansible.builtin.set_fact": {"service_mgr": "service", "cacheable": True},
}


@pytest.fixture(scope="session")
def private_services() -> None:
    """Skip the test where there can be no private services."""
    if os.geteuid() != 0:
        pytest.skip("a private /etc/init.d needs root")
    need("unshare", "service")
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0 or not Path("/etc/init.d").is_dir():
        pytest.skip("there can be no private /etc/init.d here")


def private_init(directory: Path, scripts: Mapping[str, str]) -> tuple[str, ...]:
    """Return what to put before a command, so that it has these init scripts, by service, and no others."""
    init = directory / "init.d"
    init.mkdir(exist_ok=True)
    for name, text in scripts.items():
        (init / name).write_text(text, encoding="utf-8")
        (init / name).chmod(0o755)
    return ("unshare", "--mount", "sh", "-ec", _PRIVATE, "sh", str(init))

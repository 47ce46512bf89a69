# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The services that the roles write on a node, as text."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import RPS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.only_root import PYTHON_FLAGS, SANDBOX
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import at_boot

ROLE = Path(__file__).parents[2] / "roles" / "reconcile"
PYTHON = "/usr/bin/python3"
DEFAULTS = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text("utf-8"))


def reconcile_service(policy: str = "static", textfile: str = "", **variables: Any) -> str:
    """Return the service of the role reconcile."""
    # As Ansible calls Jinja.
    environment = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    environment.filters |= {"bool": bool, "dirname": posixpath.dirname}
    template = (ROLE / "templates" / "kubenode-cpu-manager-reconcile.service.j2").read_text("utf-8")
    given = {
        **DEFAULTS,
        "ansible_managed": "",
        "reconcile_policy": policy,
        "reconcile_runs_always": policy != "static",
        "reconcile_textfile": textfile,
        "reconcile_program": {"interpreter": PYTHON, "flags": PYTHON_FLAGS, "sandbox": SANDBOX},
        **variables,
    }
    return environment.from_string(template).render(given)


def housekeeping_services(interpreter: str = PYTHON, path: str = at_boot.PROGRAM_PATH) -> dict[str, str]:
    """Return the services of the role housekeeping, by name."""
    files, _links = at_boot.boot_files(at_boot.AtBoot(b"", interpreter, path), (RPS,))
    return {posixpath.basename(file.path): file.content.decode("utf-8") for file in files[1:]}


def services() -> dict[str, str]:
    """Return all of them, in each form."""
    return {
        "static.service": reconcile_service(),
        "static-figures.service": reconcile_service(textfile="/var/lib/metrics/cpu.prom"),
        "dynamic.service": reconcile_service("dynamic"),
        "dynamic-figures.service": reconcile_service("dynamic", "/var/lib/metrics/cpu.prom"),
        **housekeeping_services(),
    }

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of files. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ..plugin_utils.report.results import stem_of


def _host_file_name(host: object) -> str:
    if not isinstance(host, str) or not host:
        raise AnsibleFilterError("host_file_name takes the name of a host, not %r" % (host,))
    return stem_of(str(host))


class FilterModule:
    """The filters of this collection."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return their names and functions."""
        return {"host_file_name": _host_file_name}

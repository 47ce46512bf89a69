# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What inventories say. Each filter is documented in the file of its name beside this one."""

from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ..plugin_utils.variables import misspelled


def _misspelled(names: object) -> list[dict[str, str]]:
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
        raise AnsibleFilterError("misspelled_variables takes a list of names of variables, not %r" % (names,))
    return misspelled(map(str, names))


class FilterModule:
    """The filters of this collection."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return their names and functions."""
        return {"misspelled_variables": _misspelled}

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

_ATTRIBUTES = r"""
attributes:
  check_mode:
    description: Shows in check mode what it would do, without doing it.%s
  diff_mode:
    description: Shows what it changes, or would change, in diff mode.%s
  idempotent:
    description: Changes nothing when it runs again with the same arguments.%s
  platform:
    description: The systems it runs on.
    support: full
    platforms: linux
"""

_DETAILED = """
    support: %s
    details:
      - %s"""
_FULL = """
    support: full"""

_ON_CONTROLLER = """\
  action:
    description: Runs on the controller alone.
    support: full
"""


# Annotated, as ansible-test's yamllint takes what is plainly assigned there for a literal.
class ModuleDocFragment:
    """What a module can be relied on for."""

    # For a module that says itself what it supports.
    DOCUMENTATION: str = _ATTRIBUTES % ("", "", "")

    # For a module that only reads.
    INFO: str = _ATTRIBUTES % (
        _DETAILED % ("full", "Reads only, and does the same in check mode."),
        _DETAILED % ("N/A", "Changes nothing."),
        _FULL,
    )

    # For a module that changes a file.
    CHANGE: str = _ATTRIBUTES % (_DETAILED % ("full", "Makes the same plan as otherwise and returns it."), _FULL, _FULL)

    # For a module that runs another one.
    OF_ANOTHER_MODULE: str = _ATTRIBUTES % ((_DETAILED % ("full", "As the module that is run."),) * 3)

    # For a module that writes its result on the controller.
    CONTROLLER: str = (
        _ATTRIBUTES
        % (
            _DETAILED % ("full", "Does the same in check mode, as it changes no node."),
            _DETAILED % ("N/A", "Changes no node."),
            _FULL,
        )
        + _ON_CONTROLLER
    )

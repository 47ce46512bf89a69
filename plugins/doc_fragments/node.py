# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Where the node's files are, and how messages call the options."""

    NAMES = r"""
options:
  option_names:
    description:
      - The names that messages use for the options of this module, by the option, for a role that sets the options from
        its own variables.
    type: dict
    default: {}
"""

    # With its type, as ansible-test reads only texts that are written in one piece.
    DOCUMENTATION: str = (
        NAMES
        + r"""
  root:
    description:
      - The directory with the node's files, its C(/sys), C(/etc) and C(/var).
      - V(/) is the node itself. Any other directory is a saved node, and links that lead out of it are not followed.
      - An archive that M(kubenode.cpu_manager.node_save) has written is a saved node, too. It is read-only, so a module
        that would change something in it fails, unless it runs in check mode. An archive with anything but files,
        directories and links inside, with more than 100,000 of them or with more than 512 MB is refused.
    type: path
    default: /
notes:
  - A failure has RV(ignore:failure), a mapping with C(kind), such as V(input), V(node) or V(refused), which programs
    can rely on; C(where), the file, setting or option that it is about; and C(remedy). The message is for people.
"""
    )

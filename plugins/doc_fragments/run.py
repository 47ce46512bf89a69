# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The run whose change of a node a module takes part in."""

    DOCUMENTATION = r"""
options:
  run:
    description:
      - The name of the run that calls the module, as it is in the journal of the node's change; see
        M(kubenode.cpu_manager.rollout_journal). If another run has taken the change over or ended it, the module fails
        before it writes anything.
      - Without it, there is no such check, for use by an operator.
    type: str
    default: ''
"""

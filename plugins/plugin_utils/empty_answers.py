# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The questions of a survey that were left empty: --extra-vars has an empty text for each."""

from __future__ import annotations

from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars

from .variables import KNOWN


def forget_empty_answers() -> None:
    """Take the variables of this collection that are an empty text out of --extra-vars, as if they were not there.

    These have priority over all others: no playbook can give one another value. To be called in the parent process,
    where Ansible keeps them in one mapping for all plays.
    """
    given = load_extra_vars(DataLoader())
    for name in [name for name, value in given.items() if name in KNOWN and value == ""]:
        del given[name]

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check of a report is. Pure."""

from __future__ import annotations

from typing import NamedTuple

# The kubelet does not start, or will not start again.
DANGER = "danger"
# The node is not as wanted.
WARNING = "warning"
# What is worth knowing, and no difference from what is wanted.
NOTE = "note"
SEVERITIES = (DANGER, WARNING, NOTE)

# What a node is looked at for only where that is wanted: the modules of these names with `_info` look, and what they
# could not measure has the checks of these names with `-unmeasured`.
ISOLATION, THROTTLING, HOUSEKEEPING, CACHE = "isolation", "throttling", "housekeeping", "cache"
LOOKS = (ISOLATION, THROTTLING, HOUSEKEEPING, CACHE)

# The place of the variable of the role kubelet that the finding is about.
VARIABLE = "{variable}"


class Check(NamedTuple):
    """One check. title: what a finding of it says, in one sentence. why: what it means for the node."""

    id: str
    severity: str
    title: str
    why: str
    remedy: str
    # The subjects of drift that are findings of it; one that ends in a space is a beginning.
    subjects: tuple[str, ...] = ()
    # Which of LOOKS finds it; empty for what every report compares.
    look: str = ""

    def remedy_for(self, subject: str = "") -> str:
        """What to do about a finding, with the name of the variable where the subject is a setting."""
        is_setting = subject in self.subjects and VARIABLE in self.remedy
        variable = "kubelet_" + subject if is_setting else "the variable of the role kubelet"
        return self.remedy.replace(VARIABLE, variable)

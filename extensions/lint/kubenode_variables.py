# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rule of ansible-lint: what check_variables.py says, for the files of group_vars and host_vars.

ansible-lint -R -r PATH/extensions/lint
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from ansiblelint.rules import AnsibleLintRule

if TYPE_CHECKING:
    from ansiblelint.errors import MatchError
    from ansiblelint.file_utils import Lintable

_PLACES = {"group_vars", "host_vars"}


class KubenodeVariablesRule(AnsibleLintRule):
    """Variables of kubenode.cpu_manager have a name and a value that there is."""

    id = "kubenode-variables"
    severity = "HIGH"
    tags = ["kubenode"]  # noqa: RUF012  # as ansible-lint declares it
    version_changed = "26.1.0"

    # ansible-lint imports the files of a directory of rules by their names.
    _wrong_in_file = staticmethod(import_module("check_variables").checker())

    def matchyaml(self, file: Lintable) -> list[MatchError]:
        """Return what is wrong with the variables of a file."""
        if not _PLACES.intersection(file.path.absolute().parent.parts):
            return []
        return [
            self.create_matcherror(message=wrong, lineno=_line_of(wrong, file.content), filename=file)
            for wrong in self._wrong_in_file(file.path)
        ]


def _line_of(wrong: str, content: str) -> int:
    """Return the line of the variable that is named first; 1 where there is none."""
    found = re.match(r"\w+", wrong)
    start = re.search(r"^%s\s*:" % re.escape(found.group()), content, re.MULTILINE) if found else None
    return content.count("\n", 0, start.start()) + 1 if start else 1

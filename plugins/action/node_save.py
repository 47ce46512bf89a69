# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, takes its answer as data, and writes the archive in it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Mapping

from ..module_utils._base.errors import NodeError
from ..plugin_utils.guarded_action import GuardedAction
from ..plugin_utils.report.results import LARGEST, put_bytes


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task, in which the archive is no more."""
        result = dict(super().act(task_vars))
        said = result.pop("content", None)
        place = self._task.args.get("local_dest")
        if place is None or result.get("failed") or result.get("unreachable") or self._task.check_mode:
            return result
        content = archive_of(said)
        put_bytes(str(place), [content], private=True)
        size, checksum = len(content), hashlib.sha256(content).hexdigest()
        return {**result, "dest": str(place), "size": size, "sha256": checksum}


def archive_of(said: object) -> bytes:
    """Return the archive that a node answers. Raises NodeError for what is none, or larger than LARGEST bytes."""
    remedy = "look whether the node is in the hands of others; or save it to dest, and copy the archive yourself"
    if not isinstance(said, str):
        raise NodeError("the node answers without an archive", remedy=remedy)
    # Base64 writes three bytes as four characters.
    if len(said) > LARGEST // 3 * 4:
        raise NodeError("the archive of the node has more than %d bytes" % LARGEST, remedy=remedy)
    try:
        return base64.b64decode(said.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise NodeError("the archive of the node is no base64", remedy=remedy) from error

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps the archives that Ansible makes of the collection's modules, in KEPT_ARCHIVES, for the next runs of tests."""

from __future__ import annotations

DOCUMENTATION = """
name: keep_archives
type: notification
short_description: Keep the archives of modules
description:
  - Ansible makes an archive of each module once in a run, which takes longer than the module.
  - This keeps them, for tests.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__ as version

KEPT = Path(os.environ["KEPT_ARCHIVES"]) / ("%s-%s" % (version, sys.implementation.cache_tag))
OURS = "ansible_collections.kubenode.cpu_manager."
UNFINISHED = (".lock", "-part")


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible is untyped
    """Gives a run what is kept, and keeps what it made."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "keep_archives"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.made = Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache")
        self.made.mkdir(exist_ok=True)
        for archive in KEPT.glob(OURS + "*"):
            shutil.copyfile(archive, self.made / archive.name)

    def v2_playbook_on_stats(self, stats: Any) -> None:  # noqa: ARG002  # its name is given
        KEPT.mkdir(parents=True, exist_ok=True)
        for archive in self.made.glob(OURS + "*"):
            if not archive.name.endswith(UNFINISHED) and not (KEPT / archive.name).exists():
                # Several runs may end at once.
                part = KEPT / ("%d.%s" % (os.getpid(), archive.name))
                shutil.copyfile(archive, part)
                part.replace(KEPT / archive.name)

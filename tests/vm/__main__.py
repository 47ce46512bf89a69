# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run as `python tests/vm ...` or `python -m tests.vm ...`, from a plain checkout."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import collection_path

collection_path.register()

# Only now, as the collection is importable.
from ansible_collections.kubenode.cpu_manager.tests.vm.command import main  # noqa: E402

if __name__ == "__main__":
    main()

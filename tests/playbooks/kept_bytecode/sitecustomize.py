# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Python starts with in the runs of the tests: see zip_bytecode.py, which is beside it on the path."""

from __future__ import annotations

import os
import sys

import zip_bytecode

DIRECTORY = os.environ.get("KEPT_BYTECODE")
if DIRECTORY:
    # Each version of Python compiles to other code.
    zip_bytecode.keep(directory="%s/%s" % (DIRECTORY, sys.implementation.cache_tag))

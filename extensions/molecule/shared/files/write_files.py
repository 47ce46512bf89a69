# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write files, {path: text} as JSON: many at one go, as each start of Python costs an emulated machine seconds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

for path, text in json.loads(sys.argv[1]).items():
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")

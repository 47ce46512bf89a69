# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the kernel's resctrl is mounted, and which of its groups are those of container runtimes."""

from __future__ import annotations

# Where the kernel expects it. The type of its file system has the same name.
MOUNT, KIND = "/sys/fs/resctrl", "resctrl"
# Those of the library goresctrl, which container runtimes and plugins of NRI use.
GORESCTRL = "goresctrl."

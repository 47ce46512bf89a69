# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A filter of Event-Driven Ansible: the node of an alert, without the port of its label instance.

A throttle counts what an event has, and not what a rule makes of it: by instance, each port of a node would count.
"""

from __future__ import annotations

import re
from typing import Any

# What looks like the name of a host, so that nothing in it is a template, a pattern or a path.
_INSTANCE = re.compile(r"([A-Za-z0-9][-A-Za-z0-9._]*)(?::[0-9]+)?")


def main(event: Any) -> Any:
    """Return the event with `node`; no event, an empty list, where it is no alert of a node."""
    labels = event.get("labels") if isinstance(event, dict) else None
    instance = labels.get("instance") if isinstance(labels, dict) else None
    found = _INSTANCE.fullmatch(instance) if isinstance(instance, str) else None
    return {**event, "node": found.group(1)} if found else []

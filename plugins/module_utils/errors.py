# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The three ways in which something can be wrong; a module maps each to one failure message."""

from __future__ import annotations


class InputError(ValueError):
    """What the caller gave is wrong: a text, a count, a combination of options."""


class KubeletError(InputError):
    """The kubelet itself refuses this. `text` is what it says; the message adds what to do."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__("%s; %s" % (text, remedy) if remedy else text)
        self.text = text


class NodeError(Exception):
    """A file of the node is missing, unreadable or damaged. The message names the file."""


class RefusedError(Exception):
    """What is asked would harm the node. The message says how, and what to do instead."""

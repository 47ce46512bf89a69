# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ends a prediction early: the kubelet stops before all else is read, or it cannot be predicted what it does."""

from __future__ import annotations


class StartError(Exception):
    """The kubelet stops here. Nothing that it would read later can be judged.

    `text` is the kubelet's own, without `context`, which it prints before it. `where` is the file, the field or the
    flag; `cause` and `remedy` are for people.
    """

    def __init__(self, text: str, cause: str, remedy: str, where: str, context: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.cause = cause
        self.remedy = remedy
        self.where = where
        self.context = context


class UnpredictableError(Exception):
    """It cannot be predicted what the kubelet does. The message is the reason; `where` is the file, field or flag."""

    def __init__(self, reason: str, where: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where

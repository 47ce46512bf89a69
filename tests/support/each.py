# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One test for a rule that holds of many values: thousands of tests take longer to collect than to run."""

from __future__ import annotations

from typing import Callable, Iterable, TypeVar

Value = TypeVar("Value")


def of_each(values: Iterable[Value]) -> Callable[[Callable[[Value], None]], Callable[[], None]]:
    """Make a test of a rule, which raises AssertionError. It fails once, and says of which values, and why."""
    listed = list(values)

    def decorate(rule: Callable[[Value], None]) -> Callable[[], None]:
        def test() -> None:
            assert listed
            wrong = []
            for value in listed:
                try:
                    rule(value)
                except AssertionError as error:
                    wrong.append("%s: %s" % (value, error))
            assert not wrong, "\n".join(wrong)

        test.__doc__, test.__module__ = rule.__doc__, rule.__module__
        return test

    return decorate

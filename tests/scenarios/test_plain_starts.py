# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A trial says what a start is: the same cases are tried and started on a virtual machine, with the real kubelet.

PLAIN_STARTS=220 says how many of the recorded starts. A machine that is emulated takes six seconds for each: more than
a few hundred need --timeout 0.
"""

from __future__ import annotations

import re
from typing import Any, Callable

from ansible_collections.kubenode.cpu_manager.tests.cluster.test_trial import MISTAKEN, UNSAID, recorded_cases
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .conftest import KubeletMachine


def test_a_trial_says_what_a_start_is(kubelet_machine: KubeletMachine, tell_figures: Callable[[str], None]) -> None:
    cases = list(recorded_cases())
    cases = cases[:: len(cases) // how_many("PLAIN_STARTS", 6, 60)]
    outcomes = kubelet_machine.starts_of([case for _name, case in cases])
    done = {name: both for (name, _case), both in zip(cases, outcomes)}
    differ = [
        "%s: tried: %s, started: %s" % (name, said(both["tried"]), said(both["started"]))
        for name, both in done.items()
        if both["tried"]["starts"] is not None and said(both["tried"]) != said(both["started"])
    ]
    assert not differ, "\n".join(differ)
    assert {name for name, both in done.items() if both["tried"]["starts"] is None} <= UNSAID
    assert {name for name, both in done.items() if both["tried"]["prediction_differs"]} <= MISTAKEN
    starts = sum(both["started"]["starts"] for both in done.values())
    longest = max(both["tried"]["seconds"] for both in done.values())
    tell_figures("%d starts, %d refusals: as tried; a trial %.1f s at most" % (starts, len(done) - starts, longest))


def said(answer: dict[str, Any]) -> tuple[bool, str]:
    """Return whether it starts, and its words. Of several gates that it does not know, the kubelet names any."""
    return answer["starts"], re.sub("(?<=unrecognized feature gate: ).*", "any", answer["message"])

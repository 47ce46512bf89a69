# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/simulation/generator.py: the traces are what their documentation says."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.generator import (
    SECONDS,
    STARTING,
    TRACES,
    make_trace,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import Trace, read_trace
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

MOST_REQUESTED = {"services": 0.5, "batch": 0.7, "crowded": 0.84}


def requested(trace: Trace) -> int:
    """The most exclusive CPUs that are requested at a time."""
    return max(
        sum(neighbour.exclusive for neighbour in trace.pods if neighbour.arrives <= pod.arrives < neighbour.leaves)
        for pod in trace.pods
    )


@pytest.mark.parametrize("name", TRACES)
@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((8, 12, 48, 96, 256)))
def test_traces(name: str, seed: int, cpus: int) -> None:
    trace = make_trace(name, seed, cpus)
    assert trace == make_trace(name, seed, cpus)
    assert read_trace(json.loads(json.dumps(trace.to_dict()))) == trace
    assert 0 < requested(trace) <= MOST_REQUESTED[name] * cpus
    kinds = {pod.name.partition("-")[0] for pod in trace.pods}
    assert "shared" in kinds
    for pod in trace.pods:
        assert 0 <= pod.arrives < pod.leaves <= SECONDS == trace.duration
        # It starts, and then does what its kind does.
        assert pod.load[0][1] <= 0.1
        assert pod.load[1][0] == STARTING
        assert bool(pod.most) == (pod.name.startswith(("service", "job")))
        if pod.name.startswith("rigid"):
            assert max(threads for _at, threads in pod.load) <= pod.exclusive


def test_another_seed_is_another_trace() -> None:
    assert make_trace("batch", 1, 48).pods != make_trace("batch", 2, 48).pods


def test_a_trace_is_the_same_for_everybody() -> None:
    """Also with other versions of Python: figures of different people can be compared."""
    text = json.dumps([make_trace(name, 1, 48).to_dict() for name in TRACES], sort_keys=True)
    assert (
        hashlib.sha256(text.encode("utf-8")).hexdigest()
        == "969d54ebccee8d4729a9a9b53c69f562a3bd43de670bc2c1a9235848fb80a2be"
    )


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="there are services, batch, crowded"):
        make_trace("other", 1, 48)
    with pytest.raises(InputError, match="takes 8 CPUs"):
        make_trace("batch", 1, 7)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Topology hints: which sets of NUMA nodes could serve a request, and which one serves all of a pod's best.

Source: pkg/kubelet/cm/topologymanager (policy.go and its policies, numa_info.go), Kubernetes 1.33 to 1.36.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Mapping, NamedTuple, Sequence

from .._base.errors import GoError, KubeletError
from .._base.golang import read_integer
from ..cpuset import count_bits, iterate_bits
from .options import BOOLEANS, MAX_NUMA_NODES, PREFER_CLOSEST, bad_boolean

NONE = "none"
BEST_EFFORT = "best-effort"
RESTRICTED = "restricted"
SINGLE_NUMA_NODE = "single-numa-node"
POLICIES = (NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE)

CONTAINER = "container"
POD = "pod"
SCOPES = (CONTAINER, POD)

DEFAULT_MAX_NUMA_NODES = 8
# With more, all sets of them are too many to be gone through for each container.
MOST_NUMA_NODES = 16


class Hint(NamedTuple):
    """A mask of NUMA node ids (None: any), and whether fewer nodes could not serve the request either."""

    mask: int | None
    preferred: bool


def numa_masks(nodes: Sequence[int]) -> list[int]:
    """The masks of all sets of these NUMA nodes, small sets first, then by id."""
    ids = sorted(nodes)
    return [sum(1 << node for node in subset) for size in range(1, len(ids) + 1) for subset in combinations(ids, size)]


class TooManyNodesError(KubeletError):
    """The machine has more NUMA nodes than the policy allows."""


class TopologyManager:
    """Merges hints to one affinity, and admits a pod with it or not."""

    def __init__(
        self,
        policy: str,
        scope: str,
        nodes: Sequence[int],
        options: Mapping[str, str] | None = None,
        distances: Mapping[int, Mapping[int, int]] | None = None,
    ) -> None:
        """`nodes` are the ids of all NUMA nodes, also those without CPUs. Raises KubeletError."""
        if policy not in POLICIES:
            raise KubeletError('unknown policy: "%s"' % policy)
        if scope not in SCOPES:
            raise KubeletError('unknown scope: "%s"' % scope)
        self.policy = policy
        self.scope = scope
        self.default_mask = sum(1 << node for node in nodes)
        self.distances = distances or {}
        self.prefer_closest = False
        # With the policy none the kubelet does not even look at the options.
        if policy != NONE:
            self._set_options(options or {}, len(nodes))

    def _set_options(self, options: Mapping[str, str], nodes: int) -> None:
        most = DEFAULT_MAX_NUMA_NODES
        for name, text in sorted(options.items()):
            if name == PREFER_CLOSEST:
                self.prefer_closest = _boolean(name, text)
            elif name == MAX_NUMA_NODES:
                most = _integer(name, text)
                if most < DEFAULT_MAX_NUMA_NODES:
                    raise KubeletError(
                        'the minimum value of "%s" should not be less than %d' % (name, DEFAULT_MAX_NUMA_NODES)
                    )
            else:
                raise KubeletError('unknown Topology Manager Policy option: "%s"' % name)
        if nodes > most:
            raise TooManyNodesError("unsupported on machines with more than %d NUMA Nodes" % most)
        if self.prefer_closest and nodes > 1 and not self.distances:
            raise KubeletError("cannot discover NUMA topology: error getting NUMA distances from cadvisor")

    def merge(self, providers: Sequence[list[Hint] | None]) -> tuple[Hint, bool]:
        """The affinity that serves the hints of all resources best, and whether the pod is admitted with it."""
        lists = [_list_of(hints) for hints in providers]
        if self.policy == SINGLE_NUMA_NODE:
            lists = [[hint for hint in hints if _is_single(hint)] for hints in lists]
        best = self._best(lists)
        if self.policy == SINGLE_NUMA_NODE and best.mask == self.default_mask:
            best = Hint(None, best.preferred)
        return best, self.policy == BEST_EFFORT or best.preferred

    def _best(self, lists: list[list[Hint]]) -> Hint:
        # The narrowest that could serve every resource by itself: not preferred hints are measured by it.
        narrowest = [
            min((count_bits(hint.mask) for hint in hints if hint.mask is not None), default=0) for hints in lists
        ]
        target = max(narrowest, default=0)
        best: Hint | None = None
        for permutation in product(*lists):
            candidate = self._merged(permutation)
            if candidate.mask and (best is None or self._is_better(candidate, best, target)):
                best = candidate
        return best or Hint(self.default_mask, False)

    def _merged(self, hints: Sequence[Hint]) -> Hint:
        merged, seen, preferred = self.default_mask, None, True
        for mask, is_preferred in hints:
            preferred = preferred and is_preferred
            if mask is not None:
                merged &= mask
                preferred = preferred and seen in (None, mask)
                seen = mask
        return Hint(merged, preferred)

    def _is_better(self, candidate: Hint, best: Hint, target: int) -> bool:
        if candidate.preferred != best.preferred:
            return candidate.preferred
        if candidate.preferred:
            return self._is_narrower(candidate.mask, best.mask)
        size, best_size = count_bits(candidate.mask or 0), count_bits(best.mask or 0)
        if best_size > target:
            return self._is_narrower(candidate.mask, best.mask)
        if best_size == target:
            return size == target and self._is_narrower(candidate.mask, best.mask)
        if size != best_size:
            return best_size < size <= target
        return self._is_narrower(candidate.mask, best.mask)

    def _is_narrower(self, candidate: int | None, best: int | None) -> bool:
        candidate, best = candidate or 0, best or 0
        if count_bits(candidate) != count_bits(best):
            return count_bits(candidate) < count_bits(best)
        if self.prefer_closest and self.policy != SINGLE_NUMA_NODE:
            mine, others = self._distance(candidate), self._distance(best)
            if mine != others:
                return mine < others
        return candidate < best

    def _distance(self, mask: int) -> float:
        """The average distance of all ordered pairs of nodes, of each to itself included."""
        nodes = list(iterate_bits(mask))
        total = sum(self.distances[first][second] for first in nodes for second in nodes)
        return total / len(nodes) ** 2


def _list_of(hints: list[Hint] | None) -> list[Hint]:
    if hints is None:
        return [Hint(None, True)]
    return hints or [Hint(None, False)]


def _is_single(hint: Hint) -> bool:
    return hint.preferred and (hint.mask is None or count_bits(hint.mask) == 1)


def _integer(name: str, text: str) -> int:
    try:
        return read_integer(text)
    except GoError as error:
        raise KubeletError('unable to convert policy option to integer "%s": %s' % (name, error)) from error


def _boolean(name: str, text: str) -> bool:
    if text not in BOOLEANS:
        raise bad_boolean(name, text)
    return BOOLEANS[text]

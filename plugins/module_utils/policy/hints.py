# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Topology hints: which sets of NUMA nodes could serve a request, and which one serves all of a pod's best.

Source: pkg/kubelet/cm/topologymanager (policy.go and its policies, numa_info.go), Kubernetes 1.33 to 1.36.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Collection, Mapping, NamedTuple, Sequence

from .._base.errors import GoError, KubeletError
from .._base.golang import read_integer
from ..cpuset import count_bits, iterate_bits
from .options import BOOLEANS, MAX_NUMA_NODES, PREFER_CLOSEST, bad_boolean

if TYPE_CHECKING:
    from .._containers.pods import Pod

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


class OtherManagers(NamedTuple):
    """What is known of the managers of a node that give hints beside the CPU manager.

    memory: {NUMA node: {"memory" or "hugepages-...": bytes}}, None where it is not known. memory_state, device_state:
    the files memory_manager_state and kubelet_internal_checkpoint, None where there is none. devices: [{"resource",
    "count", "numa_nodes"}], of each resource that is named all devices.
    """

    memory: Mapping[int, Mapping[str, int]] | None = None
    memory_state: bytes | None = None
    devices: Sequence[Mapping[str, Any]] = ()
    device_state: bytes | None = None


class HintProvider:
    """A manager of the kubelet beside that of the CPUs: where could it serve a pod, and what does it give it?"""

    # Whether it serves a container before the CPU manager does, or after it.
    is_first = False

    def hints(self, pod: Pod, container: str) -> Mapping[str, list[Hint] | None] | None:
        """Return {resource: the NUMA nodes that could serve a container, or with "" the pod as a whole}.

        None, of all or of a resource, or a resource that is not named: no preference; empty: it cannot be served.
        """
        raise NotImplementedError

    def allocate(self, pod: Pod, container: str, affinity: Hint) -> None:
        """Give a container what it is to have. Raises AllocationError, and nothing has changed."""
        raise NotImplementedError

    def allocate_pod(self, pod: Pod, affinity: Hint) -> None:
        """Give a pod that is divided all that it is to have. Raises AllocationError."""
        for container in pod.containers:
            self.allocate(pod, container.name, affinity)

    def owners(self) -> Mapping[str, Collection[str]]:
        """Return {pod UID: the containers that have something}."""
        raise NotImplementedError

    def remove(self, pod_uid: str, container: str) -> None:
        """Take back what a container has, if it has anything."""
        raise NotImplementedError


# Those of a resource that has no preference.
_ANYWHERE = [Hint(None, True)]


def numa_masks(nodes: Sequence[int]) -> list[int]:
    """Return the masks of all sets of these NUMA nodes, small sets first, then by id."""
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
        """Make the topology manager. `nodes` are the ids of all NUMA nodes, also those without CPUs. Raises
        KubeletError."""
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
        """Return the affinity that serves the hints of all resources best, and whether the pod is admitted with it.

        Each of `providers` has the hints of one resource. Their order does not count: the kubelet goes through all
        choices of one hint of each, and what it takes for better is an order without circles.
        """
        lists = [_list_of(hints) for hints in providers]
        if self.policy == SINGLE_NUMA_NODE:
            lists = [[hint for hint in hints if _is_single(hint)] for hints in lists]
        best = self._best(lists)
        if self.policy == SINGLE_NUMA_NODE and best.mask == self.default_mask:
            best = Hint(None, best.preferred)
        return best, self.policy == BEST_EFFORT or best.preferred

    def not_aligned(self, providers: Mapping[str, list[Hint] | None]) -> tuple[str, ...]:
        """Return which resources keep a pod from being admitted: all that cannot be aligned by themselves, else the
        first of the fewest that cannot be together."""
        alone = tuple(name for name, hints in providers.items() if not self.merge([hints])[1])
        together = (
            names
            for size in range(2, len(providers) + 1)
            for names in combinations(providers, size)
            if not self.merge([providers[name] for name in names])[1]
        )
        return alone or next(together, ())

    def _best(self, lists: Sequence[list[Hint]]) -> Hint:
        if not all(lists):
            return Hint(self.default_mask, False)
        preferred = self._preferred([hints for hints in lists if hints != _ANYWHERE])
        if preferred:
            return Hint(self._narrowest(preferred), True)
        # The narrowest that could serve every resource by itself: not preferred hints are measured by it.
        target = max(
            (min((count_bits(hint.mask) for hint in hints if hint.mask is not None), default=0) for hints in lists),
            default=0,
        )
        common = self._common([hints for hints in lists if hints != _ANYWHERE])
        sizes = {count_bits(mask) for mask in common}
        if not sizes:
            return Hint(self.default_mask, False)
        size = max((size for size in sizes if size <= target), default=min(sizes))
        return Hint(self._narrowest([mask for mask in common if count_bits(mask) == size]), False)

    def _preferred(self, lists: Sequence[list[Hint]]) -> list[int]:
        """Return what all resources prefer, each the same mask or any."""
        masks: set[int | None] = {None}
        for hints in lists:
            own = {mask for mask, is_preferred in hints if is_preferred}
            if None in own:
                masks |= own if None in masks else set()
            else:
                masks = own if None in masks else masks & own
        found = (self.default_mask if mask is None else mask & self.default_mask for mask in masks)
        return [mask for mask in found if mask]

    def _common(self, lists: Sequence[list[Hint]]) -> list[int]:
        """Return all masks that a choice of one hint of each list has in common, of at least one node."""
        sets = [{self.default_mask & (-1 if mask is None else mask) for mask, _preferred in hints} for hints in lists]
        if len(sets) <= 1:
            return [mask for mask in (sets or [{self.default_mask}])[0] if mask]
        # How many choices have at least a mask in common is the product, over the lists, of how many of its masks
        # contain it; how many have just that in common follows, as a sum over subsets is undone.
        masks = [0, *numa_masks(list(iterate_bits(self.default_mask)))]
        choices = dict.fromkeys(masks, 1)
        for members in sets:
            containing = {mask: int(mask in members) for mask in masks}
            self._add_supersets(containing, 1)
            for mask in masks:
                choices[mask] *= containing[mask]
        self._add_supersets(choices, -1)
        return [mask for mask in masks if mask and choices[mask]]

    def _add_supersets(self, counts: dict[int, int], sign: int) -> None:
        """Make each count the sum of those of all masks that contain its own (sign 1), or undo that (-1)."""
        for node in iterate_bits(self.default_mask):
            bit = 1 << node
            for mask in counts:
                if not mask & bit:
                    counts[mask] += sign * counts[mask | bit]

    def _narrowest(self, masks: Sequence[int]) -> int:
        size = min(map(count_bits, masks))
        narrow = [mask for mask in masks if count_bits(mask) == size]
        if len(narrow) > 1 and self.prefer_closest and self.policy != SINGLE_NUMA_NODE:
            return min(narrow, key=lambda mask: (self._distance(mask), mask))
        return min(narrow)

    def _distance(self, mask: int) -> float:
        """Return the average distance of all ordered pairs of nodes, of each to itself included."""
        nodes = list(iterate_bits(mask))
        total = sum(self.distances[first][second] for first in nodes for second in nodes)
        return total / len(nodes) ** 2


def _list_of(hints: list[Hint] | None) -> list[Hint]:
    if hints is None:
        return _ANYWHERE
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

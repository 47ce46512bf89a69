# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.bandwidth import (
    Level,
    Statistics,
    new_weight,
    old_weight,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling import (
    BELOW_REQUEST,
    THROTTLED,
    TWO_FORMULAS,
    WITH_QUOTA,
    Enforcer,
    Finding,
    ThrottlingSample,
    Watched,
    findings_of,
    remedy_for,
    since_boot,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

OLD_KUBELET = Enforcer("Gate", 33, 32, False, True)


def container(pod: str, name: str, exclusive: str = "") -> Watched:
    cgroup = "k/%s/%s" % (pod, name)
    cpus = CPUSet.parse(exclusive)
    return Watched(pod, "shop/" + pod, name, name * 64, "Guaranteed", cgroup, "k/" + pod, "k", cgroup, cpus)


def levels_of(
    watched: Sequence[Watched],
    quotas: dict[str, int],
    counted: Mapping[str, tuple[int, ...]] | None = None,
    weights: dict[str, int] | None = None,
) -> dict[str, Level]:
    found = {}
    for path in {path for member in watched for path in member.levels}:
        numbers = (counted or {}).get(path, (0, 0, 0, 0, 0, 0))
        weight = (weights or {}).get(path)
        found[path] = Level(path, 1, True, quotas.get(path), 100000, 0, None, weight, Statistics(*numbers))
    return found


def find(
    watched: Sequence[Watched],
    quotas: dict[str, int],
    counted: Mapping[str, tuple[int, ...]] | None = None,
    weights: dict[str, int] | None = None,
    enforcer: Enforcer = OLD_KUBELET,
    seconds: float | None = None,
) -> list[Finding]:
    levels = levels_of(watched, quotas, counted, weights)
    sample = ThrottlingSample(since_boot(levels).counted, seconds)
    found = findings_of(watched, levels, sample, enforcer, 25)
    for finding in found:
        assert list(finding) == ["check", "subject", "wanted", "found", "remedy"]
        assert all(isinstance(text, str) and text for text in finding.values())
    return found


def short(found: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding["check"], finding["subject"]) for finding in found]


DB = container("db", "a", "2-3")


# --- quotas on exclusive CPUs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quotas", "check"),
    [
        ({}, None),
        ({"k/db/a": 200000}, WITH_QUOTA),
        ({"k/db/a": 200000, "k/db": 200000}, WITH_QUOTA),
        ({"k/db": 200000}, WITH_QUOTA),  # the pod's alone
        ({"k/db": 900000}, WITH_QUOTA),  # however much it is
        ({"k/db/a": 199999}, BELOW_REQUEST),
        ({"k/db/a": 200000, "k/db": 100000}, BELOW_REQUEST),
        ({"k/db/a": 100000, "k/db": 200000}, BELOW_REQUEST),
    ],
)
def test_a_quota_of_a_container_or_its_pod_is_one_finding(quotas: dict[str, int], check: str | None) -> None:
    found = find([DB], quotas)
    assert short(found) == ([] if check is None else [(check, "shop/db/a")])
    if found:
        assert all("%d us in 100000 us" % quota in found[0]["found"] for quota in quotas.values())
        assert all("at " + path in found[0]["found"] for path in quotas)
        assert "2-3" in found[0]["wanted"]


def test_a_container_without_exclusive_cpus_may_have_a_quota() -> None:
    assert find([container("web", "b")], {"k/web/b": 1000, "k/web": 1000, "k": 1000}) == []


def test_the_quota_of_a_pod_is_for_all_its_containers() -> None:
    pair = [container("db", "a", "2-3"), container("db", "c", "4")]
    assert short(find(pair, {"k/db": 300000})) == [(WITH_QUOTA, "shop/db/a"), (WITH_QUOTA, "shop/db/c")]
    assert short(find(pair, {"k/db": 299999})) == [(BELOW_REQUEST, "shop/db/a"), (BELOW_REQUEST, "shop/db/c")]
    # An init container has the CPUs of the one that runs after it, and they count once.
    assert short(find([DB, container("db", "i", "2-3")], {"k/db": 200000}))[0][0] == WITH_QUOTA


def test_a_quota_above_pods_is_one_finding_for_all() -> None:
    pair = [DB, container("db2", "c", "4"), container("web", "w")]
    (found,) = find(pair, {"k": 300000})
    assert (found["check"], found["subject"]) == (WITH_QUOTA, "CPUs 2-4")
    assert "at k" in found["found"]
    (found,) = find(pair, {"": 250000})
    assert (found["check"], found["subject"]) == (BELOW_REQUEST, "CPUs 2-4")
    assert "at /" in found["found"]


def test_what_the_quota_did_stands_in_its_finding_alone() -> None:
    counted = {"k/db/a": (100, 50, 2500000, 0, 0, 2500000)}
    (found,) = find([DB], {"k/db/a": 200000, "k/db": 200000}, counted)
    assert found["check"] == WITH_QUOTA
    assert "throttled in 50 of 100 periods (50 %), 2.5 s summed over CPUs, since the cgroup was made" in found["found"]
    (found,) = find([DB], {"k/db/a": 200000}, counted, seconds=5.04)
    assert found["found"].endswith("summed over CPUs, in 5.0 s")


@pytest.mark.parametrize(
    ("enforcer", "text"),
    [
        (Enforcer("Gate", 33, 32, False, True), "bring it to 1.33 or later, or set cpuCFSQuota: false"),
        (Enforcer("Gate", 33, 33, False, True), "Gate: false out of"),
        (Enforcer("Gate", 33, 36, True, True), "the kubelet 1.36 sets none, so an older one or something else did"),
        (Enforcer("Gate", 33, 32, False, False), "the kubelet sets no quotas (cpuCFSQuota: false)"),
        (Enforcer("Gate", 33), "give kubelet_version"),
        (Enforcer("Gate", 33, None, None, True), "give kubelet_version"),
        (Enforcer("Gate", 33, 32), "bring it to 1.33"),
    ],
)
def test_the_remedy_is_for_this_kubelet(enforcer: Enforcer, text: str) -> None:
    assert text in remedy_for(enforcer)
    (found,) = find([DB], {"k/db/a": 200000}, enforcer=enforcer)
    assert found["remedy"] == remedy_for(enforcer)


# --- throttled containers ---------------------------------------------------------------------------

WEB = [container("web", "b"), container("web", "c")]


@pytest.mark.parametrize(
    ("counted", "is_found"),
    [
        ((100, 26, 5, 0, 0, 5), True),
        ((100, 25, 5, 0, 0, 5), False),
        ((20, 20, 5, 0, 0, 5), True),
        ((19, 19, 5, 0, 0, 5), False),  # too few periods
        ((0, 0, 0, 0, 0, 0), False),
        ((100, 26, 5), True),  # a kernel without cpu.stat.local
    ],
)
def test_a_container_that_was_throttled_often(counted: tuple[int, ...], is_found: bool) -> None:
    found = find(WEB, {"k/web/b": 20000}, {"k/web/b": counted})
    assert short(found) == [(THROTTLED, "shop/web/b")] * is_found
    if is_found:
        assert "20000 us in 100000 us (0.2 CPUs) at k/web/b" in found[0]["found"]


def test_a_container_that_its_pods_limit_throttled() -> None:
    pod = (100, 80, 9000000, 0, 0, 9000000)
    # The kernel counts that it was b, not c.
    counted = {"k/web": pod, "k/web/b": (0, 0, 0, 0, 0, 9000000)}
    (found,) = find(WEB, {"k/web": 20000}, counted)
    assert (found["check"], found["subject"]) == (THROTTLED, "shop/web/b")
    assert "at k/web" in found["found"]
    assert "other container" not in found["found"]
    # Both: one limit, one finding.
    counted["k/web/c"] = counted["k/web/b"]
    (found,) = find(WEB, {"k/web": 20000}, counted)
    assert "(and 1 other container below that limit)" in found["found"]
    # A kernel that does not count it.
    (found,) = find(WEB, {"k/web": 20000}, {"k/web": pod[:3], "k/web/b": (0, 0, 0), "k/web/c": (0, 0, 0)})
    assert "does not count which of the containers" in found["found"]


def test_a_container_that_has_ended_was_not_seen_throttled() -> None:
    levels = levels_of(WEB, {"k/web": 20000}, {"k/web": (100, 80, 9, 0, 0, 9)})
    sample = ThrottlingSample({"k/web": Statistics(100, 80, 9, 0, 0, 9)}, 5.0)
    assert findings_of(WEB, levels, sample, OLD_KUBELET, 25) == []


def test_a_limit_that_is_gone_has_still_throttled() -> None:
    (found,) = find(WEB, {}, {"k/web/b": (100, 80, 5, 0, 0, 5)})
    assert found["check"] == THROTTLED
    assert "CPUs)" not in found["found"]


# --- weights ----------------------------------------------------------------------------------------


def node_of(pods: int, outer: str, inner: str, mixed: int = 0) -> tuple[list[Watched], dict[str, int]]:
    """Return pods of one container with a request of one CPU; the first `mixed` of them have weights as given."""
    formula = {"old": old_weight, "new": new_weight}
    watched, weights = [], {}
    for number in range(pods):
        member = container("p%d" % number, "a")
        watched.append(member)
        is_mixed = number < mixed
        weights[member.pod_cgroup] = formula[outer if is_mixed else "new"](1024)
        weights[member.cgroup] = formula[inner if is_mixed else "new"](1024)
    return watched, weights


@pytest.mark.parametrize(
    ("outer", "inner", "text"),
    [("old", "new", "bring the kubelet to"), ("new", "old", "bring the container runtime to")],
)
def test_two_formulas_are_one_finding_of_a_node(outer: str, inner: str, text: str) -> None:
    watched, weights = node_of(10, outer, inner, 10)
    (found,) = find(watched, {}, weights=weights)
    assert (found["check"], found["subject"]) == (TWO_FORMULAS, "shop/p0/a")
    assert "of 10 pods the weight is by the %s formula and the containers' by the %s" % (outer, inner) in found["found"]
    assert text in found["remedy"]


def test_one_formula_is_none() -> None:
    for formula in ("old", "new"):
        watched, weights = node_of(3, formula, formula, 3)
        assert find(watched, {}, weights=weights) == []


def test_what_may_be_chance_is_none() -> None:
    watched, weights = node_of(10, "old", "new", 2)
    assert find(watched, {}, weights=weights) == []
    watched, weights = node_of(10, "old", "new", 3)
    assert short(find(watched, {}, weights=weights)) == [(TWO_FORMULAS, "shop/p0/a")]


def test_exclusive_cpus_tell_the_request() -> None:
    assert short(find([DB], {}, weights={"k/db": 79, "k/db/a": 174})) == [(TWO_FORMULAS, "shop/db/a")]
    # Their weight is by neither formula.
    assert find([DB], {}, weights={"k/db": 79, "k/db/a": 500}) == []
    assert find([DB], {}, weights={"k/db": 79}) == []


@given(st.data())
def test_nothing_is_found_on_a_node_as_a_kubelet_1_33_makes_it(data: st.DataObject) -> None:
    """No quota on exclusive CPUs, one formula, and no throttling."""
    formula = data.draw(st.sampled_from([old_weight, new_weight]))
    watched, quotas, weights = [], {}, {}
    for pod in range(data.draw(st.integers(0, 5))):
        name, total = "p%d" % pod, 0
        is_exclusive = data.draw(st.booleans())
        for number in range(data.draw(st.integers(1, 3))):
            millis = 2000 if is_exclusive else data.draw(st.integers(0, 4000))
            first = 2 * (3 * pod + number)
            member = container(name, "c%d" % number, "%d-%d" % (first, first + 1) if is_exclusive else "")
            total += millis
            watched.append(member)
            weights[member.cgroup] = formula(max(millis * 1024 // 1000, 2))
            if not is_exclusive:
                quotas[member.cgroup] = max(millis * 100, 1000)
        weights["k/" + name] = formula(max(total * 1024 // 1000, 2))
    counted = dict.fromkeys(quotas, (1000, 250, 10, 0, 0, 10))
    assert find(watched, quotas, counted, weights, Enforcer("Gate", 33, 33, True, True)) == []

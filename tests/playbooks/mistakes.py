# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an operator may get wrong: a variable, its value, where it is read, and what the message has to say."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .bad_nodes import Change, as_it_is, flags

# Read for each host: playbooks.
REPORT, ROLLOUT, PROPOSE = "drift_report", "rollout", "propose"
# Read once: playbooks again, and roles with the file of their tasks.
PLAN, SIMULATE = "plan", "simulate"
ROLES = {
    "role drift_report": "main",
    "role drift_report, merge": "merge",
    "role housekeeping": "main",
    "role reconcile": "main",
    "role cache": "main",
    "role isolation_benchmark": "main",
}
OF_REPORT, OF_MERGE, HOUSEKEEPING, RECONCILE, CACHE, BENCHMARK = ROLES

NEITHER = "is neither true nor false; write one of these"
NO_MAPPING = "is not a mapping; write it as {name: value}"
NO_LIST = "is not a list; write it as [first, second]"
WAIVER = {"check": "policy-differs", "reason": "ticket 4711", "until": "2999-12-31"}
# No variable: it is left out.
ABSENT = object()


class Mistake(NamedTuple):
    """One mistake, with what else is set, and what is to be found on the node."""

    variable: str
    value: Any
    place: str
    message: str
    beside: Mapping[str, Any] = {}
    change: Change = as_it_is


def of_node(variable: str, value: Any, message: str, **beside: Any) -> Mistake:
    """Return what the report of a node says, and the variable first."""
    return Mistake(variable, value, REPORT, "%s%s" % (variable, message), beside)


MISTAKES = (
    # --- where the node is
    of_node("kubelet_node_root", "/no/such/root", " /no/such/root: no such directory; give the directory that holds"),
    of_node("kubelet_node_root", "some/where", ": 'some/where' is not an absolute path; begin it with a /"),
    of_node("kubelet_target_version", "newest", ": 'newest' is not a version; write one such as 1.36 or v1.35.6"),
    # --- settings
    of_node("kubelet_cpu_manager_policy", "statc", ": 'statc' is not possible; did you mean static?"),
    of_node("kubelet_cpu_manager_policy", "dynamic", ": 'dynamic' is not possible; take one of none, static"),
    of_node("kubelet_cpu_manager_policy_options", ["full-pcpus-only"], ": ['full-pcpus-only'] " + NO_MAPPING),
    of_node("kubelet_cpu_manager_policy_options", {"full-cpus": "true"}, ".full-cpus: the kubelet would not start: "),
    of_node(
        "kubelet_cpu_manager_policy_options",
        {"full-pcpus-only": "yes"},
        ".full-pcpus-only: the kubelet would not start: ",
    ),
    of_node("kubelet_cpu_manager_reconcile_period", "10", ": duration '10': a unit is missing; write it as 10s"),
    of_node(
        "kubelet_topology_manager_policy",
        "single-numa",
        ": 'single-numa' is not possible; did you mean single-numa-node?",
    ),
    of_node("kubelet_topology_manager_scope", "pods", ": 'pods' is not possible; did you mean pod?"),
    of_node(
        "kubelet_topology_manager_policy_options",
        ["prefer-closest-numa-nodes"],
        ": ['prefer-closest-numa-nodes'] " + NO_MAPPING,
    ),
    of_node("kubelet_memory_manager_policy", "static", ": 'static' is not possible; did you mean Static?"),
    of_node("kubelet_cpu_cfs_quota", "perhaps", ": 'perhaps' " + NEITHER),
    of_node("kubelet_cpu_cfs_quota_period", "100", ": duration '100': a unit is missing; write it as 10s"),
    of_node("kubelet_reserved_system_cpus", "0,,4", ": CPU list '0,,4', position 3: expected a CPU id"),
    of_node(
        "kubelet_reserved_system_cpus",
        "0-7:1/4",
        ": CPU list '0-7:1/4': the kubelet reads neither strides nor line ends",
    ),
    of_node(
        "kubelet_reserved_system_cpus", "0,99", ": the kubelet would not start: reserved-cpus: 0,99 is not a subset"
    ),
    of_node(
        "kubelet_kube_reserved_cpu",
        "1 core",
        ": quantity '1 core': unknown suffix ' core'; write CPUs as 2, 0.5 or 500m",
    ),
    of_node("kubelet_system_reserved_cpu", "-1", ": '-1' is negative; write 0 or more"),
    of_node("kubelet_kube_reserved_memory", "1 gig", ": quantity '1 gig'"),
    of_node("kubelet_reserved_memory", {"numaNode": 0, "limits": {}}, ": {'numaNode': 0, 'limits': {}} " + NO_LIST),
    of_node(
        "kubelet_reserved_memory",
        [{"numaNod": 0, "limits": {}}],
        "[0].numaNod: there is no such option; did you mean numaNode?",
    ),
    # --- a reservation
    of_node("kubelet_reservation", {"cout": 4}, ".cout: there is no such option; did you mean count?"),
    of_node("kubelet_reservation", {"count": "four"}, ".count: 'four' is not a whole number; write one such as 2"),
    of_node(
        "kubelet_reservation", {"fraction": "a tenth"}, ".fraction: 'a tenth' is not a number; write one such as 0.5"
    ),
    of_node("kubelet_reservation", {"count": 2, "fraction": 0.1}, ": says in several ways how many CPUs; give one of"),
    of_node(
        "kubelet_reservation",
        {"count": 3},
        ".count: cannot reserve 3 CPUs without splitting a core; the nearest counts are",
    ),
    of_node(
        "kubelet_reservation",
        {"count": 2, "strategy": "spred"},
        ".strategy: 'spred' is not possible; did you mean spread?",
    ),
    of_node("kubelet_reservation", {"count": 2, "near_device": "eth9"}, ".near_device: /"),
    of_node("kubelet_reservation", 4, ": 4 " + NO_MAPPING),
    of_node("kubelet_reservation", {"curve": [{"cpus": 4}]}, ".curve[0].fraction: is missing; set it"),
    of_node(
        "kubelet_reserved_system_cpus",
        "0",
        " and kubelet_reservation exclude each other; remove one",
        kubelet_reservation={"count": 2},
    ),
    # --- the change
    of_node("kubelet_drain", "maybe", ": 'maybe' " + NEITHER),
    of_node("kubelet_discard_assignments", "perhaps", ": 'perhaps' " + NEITHER),
    of_node("kubelet_manage_service", "never", ": 'never' " + NEITHER),
    of_node("kubelet_allow_owners", {"tuned": True}, ": {'tuned': True} " + NO_LIST),
    of_node("kubelet_runtime_config", "presnt", ": 'presnt' is not possible; did you mean present?"),
    of_node(
        "kubelet_cpu_manager_polcy", "static", " is no variable of this collection, and kubelet_cpu_manager_policy is"
    ),
    # --- waivers
    of_node(
        "drift_report_waivers",
        [{**WAIVER, "check": "policy-differ"}],
        "[0]: there is no check policy-differ; did you mean policy-differs?",
    ),
    of_node(
        "drift_report_waivers", [{**WAIVER, "untill": "x"}], "[0]: has the unknown key untill; did you mean until?"
    ),
    of_node(
        "drift_report_waivers", [{**WAIVER, "until": "soon"}], "[0].until: 'soon' is not a date such as 2026-12-31"
    ),
    of_node("drift_report_waivers", {"check": "policy-differs"}, ": {'check': 'policy-differs'} " + NO_LIST),
    # --- the same in a rollout, and a flag that counts before the file
    Mistake("kubelet_drain", "maybe", ROLLOUT, "kubelet_drain: 'maybe' " + NEITHER),
    Mistake(
        "kubelet_reservation",
        {"cout": 4},
        ROLLOUT,
        "kubelet_reservation.cout: there is no such option; did you mean count?",
    ),
    Mistake("kubelet_cpu_manager_policy_options", ["full-pcpus-only"], ROLLOUT, ": ['full-pcpus-only'] " + NO_MAPPING),
    Mistake(
        "kubelet_cpu_manager_reconcile_period",
        "5s",
        ROLLOUT,
        "/etc/default/kubelet overrides the configuration file; remove it there, restart the kubelet, run again",
        change=flags("--cpu-manager-reconcile-period=1s"),
    ),
    # --- a service that would be this machine's
    Mistake(
        "kubelet_manage_service",
        True,
        ROLLOUT,
        "is a saved node, and the service would be one of the machine that has its files; remove it: the"
        " services of a saved node run elsewhere",
        {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0", "kubelet_drain": False},
    ),
    # --- what a report is to be
    Mistake(
        "drift_report_fail_on", "drfit", OF_REPORT, "drift_report_fail_on: 'drfit' is not possible; did you mean drift?"
    ),
    Mistake("drift_report_forms", ["htm"], OF_REPORT, "drift_report_forms: 'htm' is not possible; did you mean html?"),
    Mistake(
        "drift_report_look_at",
        ["throtling"],
        OF_REPORT,
        "drift_report_look_at: 'throtling' is not possible; did you mean throttling?",
    ),
    Mistake("drift_report_look_seconds", "soon", OF_REPORT, "drift_report_look_seconds: 'soon' is not a whole number"),
    Mistake(
        "drift_report_look_seconds",
        100000,
        OF_REPORT,
        "drift_report_look_seconds: ",
        {"drift_report_look_at": ["isolation"]},
    ),
    Mistake("drift_report_baseline", "/nowhere.json", OF_REPORT, "/nowhere.json: cannot be read"),
    Mistake(
        "drift_report_history",
        ["/nowhere"],
        OF_REPORT,
        "/nowhere: there is no such file or directory; give files of earlier reports",
        {"drift_report_forms": ["markdown"]},
    ),
    Mistake(
        "drift_report_max_age",
        "a day",
        OF_MERGE,
        "drift_report_max_age: 'a day' is not a duration; write one such as 24h",
    ),
    Mistake("drift_report_sources", ["/nowhere"], OF_MERGE, "/nowhere: there is no such file or directory; give where"),
    # --- roles that Ansible itself checks
    Mistake(
        "housekeeping_state",
        "absnt",
        HOUSEKEEPING,
        "value of housekeeping_state must be one of: present, absent, got: absnt",
    ),
    Mistake(
        "housekeeping_layers", ["interupts"], HOUSEKEEPING, "value of housekeeping_layers must be one or more of: "
    ),
    Mistake("reconcile_policy", "statc", RECONCILE, "value of reconcile_policy must be one of: "),
    Mistake("reconcile_shared_minimum", "few", RECONCILE, "'reconcile_shared_minimum' is of type "),
    Mistake("cache_state", "presnt", CACHE, "value of cache_state must be one of: "),
    Mistake("isolation_benchmark_runs", "many", BENCHMARK, "'isolation_benchmark_runs' is of type "),
    Mistake(
        "isolation_benchmark_forms",
        ["pictures"],
        BENCHMARK,
        "value of isolation_benchmark_forms must be one or more of: ",
    ),
    # --- a proposal, which judges all hosts before it reads one
    Mistake(
        "cpu_manager_workload",
        ABSENT,
        PROPOSE,
        "cpu_manager_workload: is missing; take one of latency, batch, virtual_machines",
    ),
    Mistake(
        "cpu_manager_workload",
        "latncy",
        PROPOSE,
        "cpu_manager_workload: 'latncy' is not possible; did you mean latency?",
    ),
    Mistake(
        "cpu_manager_reservation",
        {"cout": 4},
        PROPOSE,
        "cpu_manager_reservation.cout: there is no such option; did you mean count?",
    ),
    Mistake(
        "cpu_manager_reservation",
        {"count": 2, "fraction": 0.1},
        PROPOSE,
        "cpu_manager_reservation.count and cpu_manager_reservation.fraction exclude each other; remove one",
    ),
    Mistake(
        "cpu_manager_numa_alignment",
        "restrictd",
        PROPOSE,
        "cpu_manager_numa_alignment: 'restrictd' is not possible; did you mean restricted?",
    ),
    Mistake("cpu_manager_share_cores", "perhaps", PROPOSE, "cpu_manager_share_cores: 'perhaps' " + NEITHER),
    # --- a plan, a simulation
    Mistake("cpu_manager_manifests", ABSENT, PLAN, "cpu_manager_manifests is missing; give the file with the pods"),
    Mistake("cpu_manager_manifests", "nowhere.yml", PLAN, "cpu_manager_manifests: there is no file "),
    Mistake(
        "cpu_manager_simulation_period",
        "0",
        SIMULATE,
        "cpu_manager_simulation_period: 0.0 is not from 1 to 3600 seconds",
    ),
    Mistake(
        "cpu_manager_simulation_seed", "first", SIMULATE, "cpu_manager_simulation_seed: 'first' is not a whole number"
    ),
)

# Names that no role and no playbook reads, and what is meant.
MISSPELT = {
    "cpu_manager_canary": "cpu_manager_canaries",
    "cpu_manager_policy": "kubelet_cpu_manager_policy",
    "cpu_manager_save_redcat": "cpu_manager_save_redact",
    "housekeeping_stat": "housekeeping_state",
    "isolation_benchmark_runns": "isolation_benchmark_runs",
    "kubelet_cpu_policy": "kubelet_cpu_manager_policy",
    "kubelet_reserved_cpus": "kubelet_reserved_system_cpus",
    "reconcile_stat": "reconcile_state",
}

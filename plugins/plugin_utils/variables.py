# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the roles and playbooks, and misspelled names of these.

Ansible takes any variable, so a misspelled one has no effect and nothing says so.
Source of the other names: roles/kubernetes/node and roles/kubespray_defaults of kubespray.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from ..module_utils._base.errors import InputError
from ..module_utils._kubelet.settings import SETTINGS

_ROLE_PREFIX, _PLAYBOOK_PREFIX = "kubelet_", "cpu_manager_"
# A variable of this name that has settings as keys is meant to be several ones.
_ROLE, _TEMPLATE = "kubelet", "{{"

# What an operator can set beside the settings: the options of the roles, and the variables of the playbooks.
_KNOWN = (
    "cache_allow_owners cache_config_path cache_exclusive_share cache_kubelet_root cache_manage_service cache_mode"
    " cache_mount cache_node_root cache_reconcile cache_shared_bandwidth cache_shared_share cache_state"
    " cache_unit_directory"
    " cpu_manager_apply_node_objects cpu_manager_become cpu_manager_canaries cpu_manager_check_capacity"
    " cpu_manager_hosts cpu_manager_housekeeping cpu_manager_impact cpu_manager_impact_fail_on cpu_manager_impact_file"
    " cpu_manager_impact_from cpu_manager_impact_waivers cpu_manager_manifests cpu_manager_max_fail_percentage"
    " cpu_manager_node_objects cpu_manager_numa_alignment cpu_manager_overwrite_edited cpu_manager_plan_file"
    " cpu_manager_proposal_directory"
    " cpu_manager_reservation cpu_manager_save_directory cpu_manager_save_redact"
    " cpu_manager_drain_seconds cpu_manager_schedule_file cpu_manager_serial"
    " cpu_manager_share_cores cpu_manager_simulation_delay cpu_manager_simulation_directory"
    " cpu_manager_simulation_period cpu_manager_simulation_seed cpu_manager_simulation_settle"
    " cpu_manager_simulation_shared_minimum cpu_manager_simulation_trace cpu_manager_skip_hosts_without_kubelet"
    " cpu_manager_workload drift_report_ask_kubelets"
    " drift_report_baseline drift_report_directory drift_report_fail_on drift_report_fleet drift_report_forms"
    " drift_report_history drift_report_impact_from drift_report_look_at drift_report_look_seconds drift_report_max_age"
    " drift_report_node_textfile drift_report_pod drift_report_redact drift_report_sources drift_report_title"
    " drift_report_waivers housekeeping_allow_owners"
    " housekeeping_config_path housekeeping_exclude_slices housekeeping_interpreter housekeeping_kernel_arguments"
    " housekeeping_kernel_isolation housekeeping_layers housekeeping_manage_services housekeeping_node_root"
    " housekeeping_partition_cpus housekeeping_partition_slice housekeeping_partition_type"
    " housekeeping_persistent housekeeping_reserved_system_cpus housekeeping_state housekeeping_tuned"
    " isolation_benchmark_allow_pods"
    " isolation_benchmark_cpus isolation_benchmark_directory"
    " isolation_benchmark_experiments isolation_benchmark_forms"
    ""
    " isolation_benchmark_reserved_system_cpus isolation_benchmark_runs"
    " isolation_benchmark_seconds isolation_benchmark_seed isolation_benchmark_stress_ng isolation_benchmark_title"
    " isolation_benchmark_unit_milliseconds isolation_benchmark_units isolation_benchmark_workloads"
    " kubelet_allow_owners kubelet_api_become kubelet_api_host kubelet_api_timeout kubelet_backup_keep"
    " kubelet_config_path kubelet_devices kubelet_discard_assignments kubelet_dra_reserved_cpus kubelet_drain"
    " kubelet_drain_delete_emptydir_data kubelet_drain_force kubelet_drain_grace_period kubelet_drain_timeout"
    " kubelet_kube_context kubelet_kubeconfig kubelet_log_file kubelet_manage_service kubelet_node_name"
    " kubelet_node_root kubelet_overwrite_edited kubelet_pods kubelet_reservation kubelet_change kubelet_rollback_of"
    " kubelet_root_dir kubelet_runtime_config kubelet_runtime_service kubelet_runtime_version kubelet_service"
    " kubelet_target_version kubelet_trial kubelet_trial_program kubelet_verify_seconds kubelet_verify_timeout"
    " reconcile_allow_owners"
    " reconcile_config_path reconcile_delay reconcile_interpreter reconcile_kubelet_root reconcile_manage_service"
    " reconcile_node_root reconcile_period reconcile_policy reconcile_policy_options reconcile_program_path"
    " reconcile_reserved_cpus reconcile_restart reconcile_runtime_endpoint reconcile_settings_path reconcile_settle"
    " reconcile_shared_minimum reconcile_state reconcile_textfile reconcile_unit_directory reconcile_use_runtime"
)

# Those of the roles' own that are nearly one of these, and what kubespray's inventories have beside them.
_OTHER = (
    "kubelet_address kubelet_api_becomes kubelet_authentication_token_webhook kubelet_authorization_mode_webhook"
    " kubelet_bind_address kubelet_cgroup_driver kubelet_cgroup_driver_detected kubelet_config_dir"
    " kubelet_config_extra_args kubelet_config_extra_args_cgroupfs kubelet_csr_approver_enabled"
    " kubelet_csr_approver_namespace kubelet_csr_approver_values kubelet_custom_flags kubelet_deployment_type"
    " kubelet_drains kubelet_enforce_node_allocatable kubelet_event_record_qps kubelet_fail_cgroup_v1"
    " kubelet_fail_swap_on kubelet_feature_gates kubelet_flexvolumes_plugins_dir kubelet_healthz_bind_address"
    " kubelet_healthz_port kubelet_image_gc_high_threshold kubelet_image_gc_low_threshold kubelet_kubelet_cgroups"
    " kubelet_kubelet_cgroups_cgroupfs kubelet_load_modules kubelet_logfiles_max_nr kubelet_logfiles_max_size"
    " kubelet_make_iptables_util_chains kubelet_max_parallel_image_pulls kubelet_max_pods"
    " kubelet_node_config_extra_args kubelet_node_custom_flags kubelet_pod_pids_limit kubelet_preferred_address_types"
    " kubelet_protect_kernel_defaults kubelet_revives kubelet_rotate_certificates kubelet_rotate_server_certificates"
    " kubelet_runtime_cgroups kubelet_runtime_cgroups_cgroupfs kubelet_seccomp_default kubelet_secure_addresses"
    " kubelet_shutdown_grace_period kubelet_shutdown_grace_period_critical_pods kubelet_static_pod_path"
    " kubelet_status_update_frequency kubelet_streaming_connection_idle_timeout kubelet_swap_behavior"
    " kubelet_system_reserved_cgroups kubelet_systemd_hardening"
)

# What the roles and playbooks call what they find out themselves, as far as it begins as theirs.
_INTERNAL = (
    "cache_found cache_plan cache_prefix cache_removed cache_result cache_results cache_unit cache_written"
    " drift_report_check drift_report_hosts drift_report_option_names drift_report_pattern drift_report_written"
    " housekeeping_kubelet housekeeping_result isolation_benchmark_acting isolation_benchmark_fixed"
    " isolation_benchmark_option_names isolation_benchmark_plan isolation_benchmark_result"
    " reconcile_enabled reconcile_hidden reconcile_installed reconcile_is_new reconcile_plan"
    " reconcile_prefix reconcile_program reconcile_promise reconcile_promise_path reconcile_release reconcile_removed"
    " reconcile_results reconcile_runs_always reconcile_settings reconcile_settings_written reconcile_timer"
    " reconcile_unit_paths reconcile_units reconcile_wanted_units reconcile_written"
)

KNOWN = frozenset(_KNOWN.split()) | {_ROLE_PREFIX + name for name in SETTINGS}
INTERNAL = frozenset(_INTERNAL.split())
_OTHERS = frozenset(_OTHER.split())

# Nothing else begins so: kubelet_ is kubespray's as well, and a cache is anybody's.
_OURS_ALONE = ("cpu_manager_", "drift_report_", "housekeeping_", "isolation_benchmark_", "reconcile_")

# How many letters of a word may be wrong, missing, too many or swapped, by the length of the word.
_LONG_WORD, _SHORT_WORD = 6, 3
_MOST_WRONG = 3
# A name of so many words that lacks one of ours is ours: kubelet_config may be anybody's.
_TELLING = 3
# difflib's ratio, of what follows the prefix.
_ALIKE = 0.6

# A host has hundreds of variables. Few begin as ours, with nearly the same word.
_BY_FIRST_WORD: dict[str, list[list[str]]] = {}
_JOINED: dict[str, str] = {}
for _name in sorted(KNOWN):
    _BY_FIRST_WORD.setdefault(_name.split("_", 1)[0], []).append(_name.split("_"))
    _JOINED[_name.replace("_", "")] = _name


def misspelled(names: Iterable[str] | Mapping[str, object]) -> list[dict[str, str]]:
    """Return the names that have no effect and are meant to, each with the one that was probably meant: {name, meant}.

    These are nearly one of ours, or begin as nothing but ours; meant is empty where no name of ours is near. A name
    that only shares the prefix kubelet or cache is another's, and left alone.
    names: of a mapping the values are looked at, too, as Ansible has them before templates are resolved.
    """
    values = names if isinstance(names, Mapping) else dict.fromkeys(names)
    near: dict[str, list[str]] = {}
    found = [(name, _meant(name, values, near)) for name in sorted(values.keys() - KNOWN - INTERNAL - _OTHERS)]
    inside = values.get(_ROLE)
    keys = sorted(map(str, inside)) if isinstance(inside, Mapping) else ()
    found += [("%s.%s" % (_ROLE, key), _ROLE_PREFIX + key) for key in keys if _ROLE_PREFIX + key in KNOWN]
    return [{"name": name, "meant": meant} for name, meant in found if meant is not None]


def _meant(name: str, values: Mapping[str, object], near: dict[str, list[str]]) -> str | None:
    """Return what was meant; None for a name of another. values: of the host. near: as _candidates has it."""
    # The option of a module in place of the role's variable, unless that may be made of it.
    prefixed = _ROLE_PREFIX + name
    if name.startswith(_PLAYBOOK_PREFIX) and prefixed in KNOWN:
        value = values.get(prefixed, "")
        return None if value is None or _TEMPLATE in str(value) else prefixed
    if "-" in name and name.replace("-", "_") in KNOWN:
        return name.replace("-", "_")
    best = min(_candidates(name, near), default=None) or min(_longer_by_a_word(name), default=None)
    if best:
        return best[-1]
    return _closest(name) if name.startswith(_OURS_ALONE) else None


def _candidates(name: str, near: dict[str, list[str]]) -> Iterator[tuple[int, str]]:
    """Yield (how much is wrong, one of ours) for each that the name is nearly.

    near: {first word: those of ours that are nearly this one}, which is filled here.
    """
    words = name.lower().split("_")
    same = _JOINED.get("".join(words))
    if same:
        yield 0, same
    if words[0] not in near:
        # A first letter is seldom wrong.
        alike = (first for first in _BY_FIRST_WORD if first[0] == words[0][:1])
        near[words[0]] = [first for first in alike if _wrong(words[0], first) <= _MOST_WRONG]
    for first in near[words[0]]:
        for known_words in _BY_FIRST_WORD[first]:
            if len(known_words) == len(words):
                wrong = _wrong_of_all(words, known_words)
                if wrong <= _MOST_WRONG:
                    yield wrong, "_".join(known_words)


def _wrong_of_all(words: Sequence[str], known_words: Sequence[str]) -> int:
    """Return how much is wrong in these words; more than may be where one is another word."""
    wrong = 0
    for word, known_word in zip(words, known_words):
        wrong += _wrong(word, known_word)
        if wrong > _MOST_WRONG:
            break
    return wrong


def _longer_by_a_word(name: str) -> Iterator[tuple[int, str]]:
    """Yield (how late the word is missing, negated; one of ours) for each of which the name has all words but one
    within."""
    words = name.split("_")
    if len(words) < _TELLING:
        return
    for known_words in _BY_FIRST_WORD.get(words[0], ()):
        if len(known_words) == len(words) + 1:
            for missing in range(1, len(words)):
                if known_words[:missing] + known_words[missing + 1 :] == words:
                    yield -missing, "_".join(known_words)


def _closest(name: str) -> str:
    """Return that of ours with the same prefix that is most alike; empty where none is."""
    prefix = next(prefix for prefix in _OURS_ALONE if name.startswith(prefix))
    parts = {variable[len(prefix) :]: variable for variable in KNOWN if variable.startswith(prefix)}
    return next((parts[part] for part in get_close_matches(name[len(prefix) :], sorted(parts), 1, _ALIKE)), "")


def _wrong(word: str, correct: str) -> int:
    """Return how many letters are wrong in a word; more than may be where it is another word."""
    if word == correct:
        return 0
    if abs(len(word) - len(correct)) > 2:
        return _MOST_WRONG + 1
    distance = _distance(word, correct)
    if distance > (2 if len(correct) >= _LONG_WORD else 1):
        return _MOST_WRONG + 1
    # One letter makes another word of a short one: gpu is no cpu.
    is_other = len(word) == len(correct) <= _SHORT_WORD and sorted(word) != sorted(correct)
    return _MOST_WRONG + 1 if is_other else distance


def _distance(written: str, name: str) -> int:
    """Return how many letters to add, remove, replace, or swap with the next one (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(name) + 1))
    for row, letter in enumerate(written, 1):
        current = [row]
        for column, wanted in enumerate(name, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == name[column - 2] and written[row - 2] == wanted:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        before, last = last, current
    return last[-1]


# What action plugins check of a host's variables.


# A host may have thousands.
_MOST = 10
_RENAME = "%(name)s is no variable of this collection, and %(meant)s is: rename it, or remove it"
_REMOVE = "%(name)s looks like a variable of this collection, but does not exist: remove it, or give it another name"


def check_names(task_vars: Mapping[str, Any]) -> None:
    """Refuse a host with a misspelled variable of ours. Raises InputError."""
    wrong = misspelled(task_vars)
    if wrong:
        said = "; ".join((_RENAME if found["meant"] else _REMOVE) % found for found in wrong[:_MOST])
        more = "; and %d more" % (len(wrong) - _MOST) if len(wrong) > _MOST else ""
        raise InputError("%s%s; nothing was changed" % (said, more), str(task_vars["inventory_hostname"]))


def options_of_variables(
    names: Mapping[str, str], task_vars: Mapping[str, Any], template: Callable[[dict[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return {option: the value of its variable}, of those that are defined and not omitted. names: {option: variable}.

    Only values that are templates are compiled: an expression for all options would be compiled for each host.
    """
    given = {option: task_vars[variable] for option, variable in names.items() if variable in task_vars}
    # Of ansible-core 2.18, in place of what is left out.
    omitted = task_vars.get("omit")
    return {option: value for option, value in template(given).items() if value != omitted}

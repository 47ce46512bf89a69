# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an operator gets wrong in the first week, and what is said of it: of a host, and of a whole run."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

# In place of a message: it is right as it is, or means what was meant.
ACCEPTED = ""


class OfHost(NamedTuple):
    """What the variables of a host say beside its root, and what the report of this host says."""

    variables: Mapping[str, Any]
    said: str


class OfRun(NamedTuple):
    """A playbook, its arguments, and what the run says. files: {name in the directory of the run: content}."""

    playbook: str
    arguments: Sequence[str]
    said: str
    files: Mapping[str, str] = {}
    variables: Mapping[str, Any] = {}


def waiver(**more: Any) -> dict[str, Any]:
    """Return variables with one waiver."""
    return {"drift_report_waivers": [{"check": "policy-differs", "reason": "ticket", "until": "2999-12-31", **more}]}


HOSTS: dict[str, OfHost] = {
    # --- YAML's own types
    "a-number-for-cpus": OfHost(
        {"kubelet_reserved_system_cpus": 0}, 'the number 0 can mean CPU 0 or 0 CPUs; write "0" in quotes for the CPU'
    ),
    "a-list-for-cpus": OfHost(
        {"kubelet_reserved_system_cpus": [0, 4]},
        "kubelet_reserved_system_cpus: [0, 4] is not a text; write the CPUs as one text",
    ),
    "a-switch-for-a-policy": OfHost(
        {"kubelet_cpu_manager_policy": True},
        "kubelet_cpu_manager_policy: 'True' is not possible; take one of none, static",
    ),
    "nothing-for-a-policy": OfHost({"kubelet_cpu_manager_policy": None}, ACCEPTED),
    "a-float-for-a-version": OfHost(
        {"kubelet_target_version": 1.3}, 'write it in quotes, as in "1.30", if that is meant'
    ),
    "a-number-for-a-period": OfHost(
        {"kubelet_cpu_manager_reconcile_period": 10}, "duration '10': a unit is missing; write it as 10s"
    ),
    # As Ansible reads a mapping.
    "a-text-for-options": OfHost({"kubelet_cpu_manager_policy_options": "full-pcpus-only=true"}, ACCEPTED),
    "nothing-for-an-option": OfHost(
        {"kubelet_cpu_manager_policy_options": {"full-pcpus-only": None}},
        "kubelet_cpu_manager_policy_options.full-pcpus-only: the kubelet would not start",
    ),
    "no-for-a-switch": OfHost({"kubelet_cpu_cfs_quota": "no"}, ACCEPTED),
    "two-for-a-switch": OfHost({"kubelet_cpu_cfs_quota": 2}, "kubelet_cpu_cfs_quota: 2 is neither true nor false"),
    "a-text-for-a-reservation": OfHost(
        {"kubelet_reservation": "2"}, "kubelet_reservation: '2' is not a mapping; write it as {name: value}"
    ),
    "a-text-for-a-list": OfHost({"kubelet_allow_owners": "tuned"}, ACCEPTED),
    "an-empty-list": OfHost({"kubelet_reserved_memory": []}, ACCEPTED),
    # --- values
    "cpus-with-a-semicolon": OfHost(
        {"kubelet_reserved_system_cpus": "0-1;4"}, "CPU list '0-1;4', position 4: expected ',', found ';'"
    ),
    "cpus-with-a-name": OfHost(
        {"kubelet_reserved_system_cpus": "cpu0"}, "CPU list 'cpu0', position 1: expected a CPU id, found 'c'"
    ),
    "cpus-backwards": OfHost(
        {"kubelet_reserved_system_cpus": "3-1"}, "CPU list '3-1', position 1: the range 3-1 runs backwards"
    ),
    "a-capital": OfHost(
        {"kubelet_cpu_manager_policy": "Static"},
        "kubelet_cpu_manager_policy: 'Static' is not possible; did you mean static?",
    ),
    "a-space-behind": OfHost(
        {"kubelet_topology_manager_policy": "restricted "},
        "kubelet_topology_manager_policy: 'restricted ' is not possible; did you mean restricted?",
    ),
    "an-underscore": OfHost(
        {"kubelet_cpu_manager_policy_options": {"full_pcpus_only": "true"}}, "the kubelet 1.36 has align-by-socket, "
    ),
    "a-space-in-a-period": OfHost(
        {"kubelet_cpu_manager_reconcile_period": "10 s"}, "duration '10 s': there is no unit ' s'; write it as 10s"
    ),
    "static-memory-alone": OfHost(
        {"kubelet_memory_manager_policy": "Static"},
        "the whole list is reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]",
    ),
    # Reserved CPUs by their ids are there, too, and the kubelet goes by these.
    "more-cpus-than-there-are": OfHost({"kubelet_kube_reserved_cpu": "2000"}, ACCEPTED),
    "gigabytes": OfHost(
        {"kubelet_kube_reserved_memory": "1GB"},
        "quantity '1GB': unknown suffix 'GB'; write CPUs as 2, 0.5 or 500m, memory as 512Mi or 1Gi",
    ),
    "a-percentage": OfHost(
        {"kubelet_system_reserved_cpu": "50%"}, "quantity '50%': unknown suffix '%'; write CPUs as 2, 0.5 or 500m"
    ),
    "a-reservation-of-nothing": OfHost(
        {"kubelet_reservation": {"count": 0}}, "kubelet_reservation.count: cannot reserve 0 CPUs; reserve at least one"
    ),
    "a-negative-reservation": OfHost(
        {"kubelet_reservation": {"count": -2}},
        "kubelet_reservation.count: cannot reserve -2 CPUs; reserve at least one",
    ),
    "more-than-all": OfHost(
        {"kubelet_reservation": {"fraction": 1.5}},
        "kubelet_reservation.fraction: step 1 of the curve: the fraction is 1.5; give one between 0 and 1",
    ),
    # Noted, as what it does is not known.
    "a-newer-version": OfHost({"kubelet_target_version": "v1.99"}, ACCEPTED),
    "an-owner-misspelt": OfHost(
        {"kubelet_allow_owners": ["tunde"]}, "kubelet_allow_owners: there is no owner tunde; these are: "
    ),
    # --- files and places
    "a-home": OfHost({"kubelet_node_root": "~/node"}, "/node: no such directory; give the directory that holds"),
    "no-root": OfHost({"kubelet_node_root": ""}, "kubelet_node_root: '' is not an absolute path; begin it with a /"),
    "no-configuration": OfHost(
        {"kubelet_config_path": "/nope.yaml"},
        "/nope.yaml: no kubelet configuration there; name the file that the kubelet's --config gives",
    ),
    "a-relative-configuration": OfHost(
        {"kubelet_config_path": "config.yaml"}, "/config.yaml: no kubelet configuration there; name the file that"
    ),
    # --- names
    "a-letter-missing": OfHost(
        {"kubelet_cpu_managr_policy": "static"},
        "kubelet_cpu_managr_policy is no variable of this collection, and kubelet_cpu_manager_policy is",
    ),
    "a-hyphen": OfHost(
        {"kubelet-cpu-manager-policy": "static"},
        "kubelet-cpu-manager-policy is no variable of this collection, and kubelet_cpu_manager_policy is",
    ),
    "a-name-of-a-play": OfHost(
        {"cpu_manager_host": "workers"}, "cpu_manager_host is no variable of this collection, and cpu_manager_hosts is"
    ),
    "a-mapping": OfHost(
        {"kubelet": {"cpu_manager_policy": "static"}},
        "kubelet.cpu_manager_policy is no variable of this collection, and kubelet_cpu_manager_policy is",
    ),
    # --- waivers
    "a-waiver-that-is-over": OfHost(waiver(until="2020-01-31"), ACCEPTED),
    "a-waiver-without-an-end": OfHost(
        waiver(until=None), "drift_report_waivers[0]: has no until; give check, reason and until"
    ),
    "a-waiver-without-a-reason": OfHost(
        waiver(reason=""), "drift_report_waivers[0]: has no reason; give check, reason and until"
    ),
    "a-waiver-of-a-german-date": OfHost(
        waiver(until="31.12.2999"), "drift_report_waivers[0].until: '31.12.2999' is not a date such as 2026-12-31"
    ),
    # --- connection
    "a-connection-misspelt": OfHost({"ansible_connection": "locall"}, "the connection plugin 'locall' was not found"),
    "an-interpreter-misspelt": OfHost(
        {"ansible_python_interpreter": "/usr/bin/pyhton3"},
        "the module gave no answer: /bin/sh: 1: /usr/bin/pyhton3: not found; the node needs Python 3.8",
    ),
}
HELM = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n"
RUNS: dict[str, OfRun] = {
    "a-group-misspelt": OfRun(
        "verify",
        ("-e", "cpu_manager_hosts=wrokers"),
        "cpu_manager_hosts: the inventory has no host or group wrokers; correct it; nothing was read",
    ),
    "a-limit-of-nobody": OfRun("verify", ("--limit", "nobody"), "--limit leaves us with no hosts to target"),
    "a-tag-of-nothing": OfRun(
        "verify",
        ("--tags", "drift"),
        "--tags drift: leaves no task of this run, so no node would be read; the tags here are report",
    ),
    "a-gate-in-capitals": OfRun(
        "drift_report",
        ("-e", "drift_report_fail_on=Drift"),
        "drift_report_fail_on: 'Drift' is not possible; did you mean drift?",
    ),
    "a-form-alone": OfRun("drift_report", ("-e", "drift_report_forms=html"), ACCEPTED),
    "a-report-into-nowhere": OfRun(
        "drift_report",
        ("-e", "drift_report_directory=/proc/report"),
        "/proc/report/nodes/node.json: cannot be written: ",
    ),
    "a-page-as-baseline": OfRun(
        "drift_report",
        ("-e", "drift_report_baseline=page.html"),
        "page.html: is no JSON, or cut off; give the drift.json of an earlier report",
        {"page.html": "<!doctype html>\n"},
    ),
    "a-negative-look": OfRun(
        "drift_report",
        ("-e", '{"drift_report_look_at": ["throttling"], "drift_report_look_seconds": -1}'),
        "drift_report_look_seconds: -1 seconds are no time for throttling; give 0 to 3600",
    ),
    "no-hosts-at-a-time": OfRun(
        "rollout",
        ("--check", "-e", '{"cpu_manager_serial": 0}'),
        "cpu_manager_serial: must be a number from 1, a percentage such as 10%, or auto, and has 0",
    ),
    "a-percentage-with-a-space": OfRun(
        "rollout",
        ("--check", "-e", '{"cpu_manager_serial": "10 %"}'),
        "cpu_manager_serial: must be a number from 1, a percentage such as 10%, or auto, and has '10 %'",
    ),
    "more-than-all-may-fail": OfRun(
        "rollout",
        ("--check", "-e", "cpu_manager_max_fail_percentage=101"),
        "cpu_manager_max_fail_percentage: '101' is not a whole number from 0 to 100",
    ),
    "canaries-misspelt": OfRun(
        "rollout",
        ("--check", "-e", "cpu_manager_canaries=canarys"),
        "cpu_manager_canaries: the inventory has no host or group canarys; correct it; nothing was read",
    ),
    "no-pods": OfRun(
        "plan", (), "cpu_manager_manifests is missing; give the file with the pods, -e cpu_manager_manifests=pods.yml"
    ),
    "a-chart": OfRun(
        "plan",
        ("-e", "cpu_manager_manifests=pods.yml"),
        "it looks like a template: render it first, such as with helm template",
        {"pods.yml": HELM},
    ),
    "an-empty-manifest": OfRun(
        "plan",
        ("-e", "cpu_manager_manifests=pods.yml"),
        "pods.yml: there is nothing in it; give a file with pods, or with what makes pods",
        {"pods.yml": ""},
    ),
    "a-manifest-that-is-a-text": OfRun(
        "plan",
        ("-e", "cpu_manager_manifests=pods.yml"),
        "pods.yml: not all of it are manifests; give objects of Kubernetes, as kubectl prints them",
        {"pods.yml": "pods\n"},
    ),
    "nothing-to-take-back": OfRun(
        "rollback", ("--check",), "no node has had a rollout that it could go back from; no node was changed"
    ),
    "a-rollout-that-never-was": OfRun(
        "rollback",
        ("--check", "-e", "kubelet_rollback_of=yesterday"),
        "no node names the rollout yesterday; no node was changed",
    ),
    "saved-into-a-file": OfRun(
        "save",
        ("-e", "cpu_manager_save_directory=taken"),
        "a file is in the place of its directory: name another one, or move that file, and run again",
        {"taken": "a file\n"},
    ),
    "no-workload": OfRun(
        "propose", (), "cpu_manager_workload: is missing; take one of latency, batch, virtual_machines"
    ),
    "a-trace-that-is-not-there": OfRun(
        "simulate", ("-e", "cpu_manager_simulation_trace=nope.json"), "nope.json; give the file with the trace"
    ),
    "results-that-are-not-there": OfRun(
        "report",
        ("-e", "drift_report_sources=nope"),
        "nope: there is no such file or directory; give where the reports of a fleet are",
    ),
    "a-service-for-a-saved-node": OfRun(
        "rollout",
        ("--check", "-e", "kubelet_manage_service=true"),
        "is a saved node, and the service would be one of the machine that has its files; remove it",
    ),
    "a-trial-without-a-program": OfRun("try_upgrade", (), "kubelet_trial_program"),
    "a-trend-misspelt": OfRun(
        "drift_report",
        ("-e", '{"drift_report_forms": ["trend"], "drift_report_history": ["reprots"]}'),
        "reprots: there is no such file or directory; give files of earlier reports",
    ),
}

#!/bin/sh
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# A check of node-problem-detector's custom plugins: node-problem.sh restart|cpus REPORT.prom [RECONCILE.prom]
#
# It reads what drift_report_node_textfile and reconcile_textfile have written. Exit 0: no problem; 1: a problem; 2: not known.
# It prints at most 80 characters, and nothing of the files but numbers: others than root may be able to write them.
# KUBENODE_MAX_AGE: from how many seconds on a report is too old; two days by default.

LC_ALL=C
export LC_ALL

say() {
    printf '%.80s\n' "$2"
    exit "$1"
}

# All of a file that is read, and nothing of what is no file, such as a FIFO, on which nobody might ever write.
content() {
    [ -f "$1" ] && [ -r "$1" ] && head -c 1000000 "$1" 2>/dev/null
}

# The first value of a metric, as a whole number.
value() {
    printf '%s\n' "$1" | sed -n "s/^$2 \([0-9]\{1,12\}\)\(\.[0-9]*\)\{0,1\}\$/\1/p" | head -n 1
}

[ "$#" -ge 2 ] || say 2 "usage: node-problem.sh restart|cpus REPORT.prom [RECONCILE.prom]"
report=$(content "$2") || say 2 "there is no report of the CPU manager on this node"
looked=$(value "$report" kubenode_cpu_look_timestamp_seconds)
now=$(date +%s)
[ "$(value "$report" kubenode_cpu_look_success)" = 1 ] && [ -n "$looked" ] || say 2 "the last report could not read this node"
age=$((now - looked))
[ "$age" -ge -300 ] || say 2 "the last report is of the future: a clock is wrong"
[ "$age" -le "${KUBENODE_MAX_AGE:-172800}" ] || say 2 "the last report of this node is $((age / 3600)) hours old"

case $1 in
restart)
    for check in kubelet-would-not-start checkpoint-refused memory-state-refused; do
        if printf '%s\n' "$report" | grep -q "^kubenode_cpu_drift{check=\"$check\",severity=\"danger\"} 1\$"; then
            say 1 "the next restart of this kubelet fails: $check"
        fi
    done
    say 0 "the kubelet would start again"
    ;;
cpus)
    count=$(value "$report" kubenode_cpu_mispinned_containers)
    [ -n "$count" ] || say 2 "the report does not say which CPUs containers have"
    # What reconcile has corrected since is no problem; what it could not is one.
    if [ -n "$3" ] && pass=$(content "$3"); then
        at=$(value "$pass" kubenode_cpu_manager_reconcile_timestamp_seconds)
        if [ -n "$at" ] && [ "$at" -ge "$looked" ] && [ "$at" -le $((now + 300)) ]; then
            [ "$(value "$pass" kubenode_cpu_manager_reconcile_success)" = 1 ] || say 1 "CPUs differ from the checkpoint, and reconcile fails"
            count=0
        fi
    fi
    [ "$count" -eq 0 ] || say 1 "CPUs differ from the checkpoint: $count containers"
    say 0 "containers have the CPUs of the checkpoint"
    ;;
*) say 2 "usage: node-problem.sh restart|cpus REPORT.prom [RECONCILE.prom]" ;;
esac

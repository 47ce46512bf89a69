# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for the kubelet, on the files of a node that need not be the machine that it runs on:

    python tests/cluster/kubelet --node DIR [--release 1.36.0] [--faults FILE] -- --config=/var/lib/kubelet/config.yaml

After `--` come the kubelet's own flags; paths in them are the node's. It does what the real kubelet does where a change
of the CPU manager's settings can be seen, in the same order, and with the same words where it refuses:

1. It reads its flags, its configuration and the drop-ins, and ends if it refuses them.
2. It answers /healthz, and on its other port /configz to those who have a client's certificate.
3. A moment later it restores the CPU manager's checkpoint, and ends if it refuses that.
4. It writes a first checkpoint and a first memory manager's state where there were none, is Ready, and admits the pods
   of its node, those that run already first. Pods get their CPUs from the policy, and the checkpoint says so. CPUs of
   pods that are gone are free when the CPU manager next looks.
5. It ends when it is asked to. Its Node, its pods and the checkpoint are left as they are.

What it cannot do: no container runs, so no cgroup is there, and no pod has memory of its own.
"""

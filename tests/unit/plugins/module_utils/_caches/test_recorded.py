# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""resctrl as seven kinds of machine show it, written down by hand: the reader and the model of the kernel agree with
it.

Source: "Info directory" and "Schemata files" in Documentation/filesystems/resctrl.rst in Linux, and the numbers of ways
and classes in data sheets.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import read_resctrl
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record

# What Skylake counts and limits.
SKYLAKE_COUNTED = {
    "info/L3_MON/max_threshold_occupancy": "73728",
    "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
    "info/L3_MON/num_rmids": "192",
    "info/MB/bandwidth_gran": "10",
    "info/MB/delay_linear": "1",
    "info/MB/min_bandwidth": "10",
    "info/MB/num_closids": "8",
}
# {platform: (options of the mount, {file: its content},
#             (closids, ways, least ways, ways of devices) of its first cache)}
RECORDED: dict[str, tuple[str, dict[str, str], tuple[int, int, int, int]]] = {
    # Two sockets of Skylake, before Linux 6.7: no sparse_masks. The names and values are padded.
    "xeon-l3-mba-mbm": (
        "rw,relatime",
        {
            "info/L3/bit_usage": "0=XXSSSSSSSSS;1=XXSSSSSSSSS",
            "info/L3/cbm_mask": "7ff",
            "info/L3/min_cbm_bits": "1",
            "info/L3/num_closids": "16",
            "info/L3/shareable_bits": "600",
            **SKYLAKE_COUNTED,
            "schemata": "    L3:0=7ff;1=7ff\n    MB:0= 100;1= 100",
            "cpus_list": "0-15",
        },
        (16, 0x7FF, 1, 0x600),
    ),
    # Broadwell, mounted with cdp: half of the classes, code and data apart.
    "xeon-l3-cdp": (
        "rw,relatime,cdp",
        {
            "info/L3CODE/bit_usage": "0=XXSSSSSSSSSSSSSSSSSS;1=XXSSSSSSSSSSSSSSSSSS",
            "info/L3CODE/cbm_mask": "fffff",
            "info/L3CODE/min_cbm_bits": "1",
            "info/L3CODE/num_closids": "8",
            "info/L3CODE/shareable_bits": "c0000",
            "info/L3CODE/sparse_masks": "0",
            "info/L3DATA/bit_usage": "0=XXSSSSSSSSSSSSSSSSSS;1=XXSSSSSSSSSSSSSSSSSS",
            "info/L3DATA/cbm_mask": "fffff",
            "info/L3DATA/min_cbm_bits": "1",
            "info/L3DATA/num_closids": "8",
            "info/L3DATA/shareable_bits": "c0000",
            "info/L3DATA/sparse_masks": "0",
            "info/L3_MON/max_threshold_occupancy": "46080",
            "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
            "info/L3_MON/num_rmids": "128",
            "schemata": "L3DATA:0=fffff;1=fffff\nL3CODE:0=fffff;1=fffff",
            "cpus_list": "0-15",
        },
        (8, 0xFFFFF, 1, 0xC0000),
    ),
    # Haswell, which the kernel finds by trying: four classes, two ways at least.
    "xeon-haswell": (
        "rw,relatime",
        {
            "info/L3/bit_usage": "0=SSSSSSSSSSSSSSSSSSSS;1=SSSSSSSSSSSSSSSSSSSS",
            "info/L3/cbm_mask": "fffff",
            "info/L3/min_cbm_bits": "2",
            "info/L3/num_closids": "4",
            "info/L3/shareable_bits": "0",
            "info/L3_MON/max_threshold_occupancy": "46080",
            "info/L3_MON/mon_features": "llc_occupancy",
            "info/L3_MON/num_rmids": "64",
            "schemata": "    L3:0=fffff;1=fffff",
            "cpus_list": "0-15",
        },
        (4, 0xFFFFF, 2, 0),
    ),
    # Sapphire Rapids with two NUMA nodes a cache: masks with gaps, a throttling mode.
    "xeon-snc2-sparse": (
        "rw,relatime",
        {
            "info/L3/bit_usage": "0=XXSSSSSSSSSSSSS;1=XXSSSSSSSSSSSSS",
            "info/L3/cbm_mask": "7fff",
            "info/L3/min_cbm_bits": "1",
            "info/L3/num_closids": "15",
            "info/L3/shareable_bits": "6000",
            "info/L3/sparse_masks": "1",
            "info/L3_MON/max_threshold_occupancy": "98304",
            "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
            "info/L3_MON/num_rmids": "320",
            "info/MB/bandwidth_gran": "10",
            "info/MB/delay_linear": "1",
            "info/MB/min_bandwidth": "10",
            "info/MB/num_closids": "15",
            "info/MB/thread_throttle_mode": "per-thread",
            "mon_data/mon_L3_00/mon_sub_L3_00/llc_occupancy": "0",
            "mon_data/mon_L3_00/mon_sub_L3_01/llc_occupancy": "0",
            "mon_data/mon_L3_01/mon_sub_L3_02/llc_occupancy": "0",
            "mon_data/mon_L3_01/mon_sub_L3_03/llc_occupancy": "0",
            "schemata": "    L3:0=7fff;1=7fff\n    MB:0=100;1=100",
            "cpus_list": "0-23",
        },
        (15, 0x7FFF, 1, 0x6000),
    ),
    # Mounted with mba_MBps: the limits are rates, and the largest is no limit.
    "xeon-mbps": (
        "rw,relatime,mba_MBps",
        {
            "info/L3/bit_usage": "0=XXSSSSSSSSSS;1=XXSSSSSSSSSS",
            "info/L3/cbm_mask": "fff",
            "info/L3/min_cbm_bits": "1",
            "info/L3/num_closids": "16",
            "info/L3/shareable_bits": "c00",
            "info/L3/sparse_masks": "0",
            **SKYLAKE_COUNTED,
            "info/MB/thread_throttle_mode": "per-thread",
            "schemata": "    L3:0=fff;1=fff\n    MB:0=4294967295;1=4294967295",
            "cpus_list": "0-15",
        },
        (16, 0xFFF, 1, 0xC00),
    ),
    # Denverton: L2 caches of four cores, and nothing is counted.
    "atom-l2": (
        "rw,relatime",
        {
            "info/L2/bit_usage": "0=SSSSSSSSSSSSSSSS;1=SSSSSSSSSSSSSSSS",
            "info/L2/cbm_mask": "ffff",
            "info/L2/min_cbm_bits": "1",
            "info/L2/num_closids": "16",
            "info/L2/shareable_bits": "0",
            "schemata": "    L2:0=ffff;1=ffff",
            "cpus_list": "0-7",
        },
        (16, 0xFFFF, 1, 0),
    ),
    # EPYC with CXL: a cache for each core complex, bandwidth in eighths of GB/s.
    "epyc-16-l3-smba": (
        "rw,relatime",
        {
            "info/L3/bit_usage": ";".join("%d=SSSSSSSSSSSSSSSS" % number for number in range(16)),
            "info/L3/cbm_mask": "ffff",
            "info/L3/min_cbm_bits": "1",
            "info/L3/num_closids": "16",
            "info/L3/shareable_bits": "0",
            "info/L3/sparse_masks": "1",
            "info/L3_MON/max_threshold_occupancy": "131072",
            "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
            "info/L3_MON/num_rmids": "256",
            "info/MB/bandwidth_gran": "1",
            "info/MB/delay_linear": "0",
            "info/MB/min_bandwidth": "1",
            "info/MB/num_closids": "16",
            "info/SMBA/bandwidth_gran": "1",
            "info/SMBA/delay_linear": "0",
            "info/SMBA/min_bandwidth": "1",
            "info/SMBA/num_closids": "16",
            "schemata": "\n".join(
                "%6s:%s" % (name, ";".join("%d=%s" % (number, value) for number in range(16)))
                for name, value in (("SMBA", "2048"), ("MB", "2048"), ("L3", "ffff"))
            ),
            "cpus_list": "0-63",
        },
        (16, 0xFFFF, 1, 0),
    ),
}


def write(root: Path, name: str) -> None:
    options, files, _cache = RECORDED[name]
    for path, content in {**files, "mode": "shareable", "tasks": "", "info/last_cmd_status": "ok"}.items():
        place = root / "sys/fs/resctrl" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content + "\n" if content else "")
    (root / "proc").mkdir()
    (root / "proc/mounts").write_text("resctrl /sys/fs/resctrl resctrl %s 0 0\n" % options)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_it_is_read_right_and_as_the_model_shows_it(tmp_path: Path, name: str) -> None:
    for place in ("recorded", "model"):
        (tmp_path / place).mkdir()
    write(tmp_path / "recorded", name)
    record(tmp_path / "model", PLATFORMS[name])
    found, of_model = (read_resctrl(Tree(str(tmp_path / place)), counters=False) for place in ("recorded", "model"))
    assert found is not None
    cache = found.caches[0]
    assert (cache.closids, cache.ways, cache.least, cache.io_ways) == RECORDED[name][2]
    assert found == of_model

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules with root: / on a machine where other users' processes are called as a kubelet.

The machine is this one, with processes of its own and a /var/lib/kubelet of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.directories import open_to_all

from .conftest import Run, ansible_playbook, fingerprint, play, task

CONFIGURATION = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: %s\n"
NOBODY = 65534

# Nobody's processes come first, so that theirs are the lower process ids; then one of root's that says its version.
# $1: the hostile user's directory. $2: a shell that is called kubelet. $3: the real configuration, none if it is empty.
PRIVATE = r"""
mount --make-rprivate /
mount -t tmpfs none /var/lib
mkdir /var/lib/kubelet
echo real > /var/lib/kubelet/cpu_manager_state
wait='sleep 600; :'
before=$PATH
PATH=/usr/bin:/bin
run='import os, sys; os.execv(sys.argv[1], sys.argv[2:])'
start() { python3 -c "$run" "$@" & }
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups python3 -c "$run" "$@" & }
for name in kubelet kubelite; do
    nobody "$2" /usr/bin/$name -c "$wait" --config="$1/config.yaml" --root-dir="$1/root"
done
nobody "$2" /usr/local/bin/k3s-server -c "$wait" --kubelet-arg=config="$1/config.yaml"
# Root's, but of another program, as one that root may start for anybody.
start /bin/sh /usr/bin/kubelet -c "$wait" --config="$1/config.yaml" --root-dir="$1/root"
start "$2" /usr/bin/kubelet -c "$wait" --config="$1/config.yaml" --version
if [ -n "$3" ]; then
    start "$2" /usr/bin/kubelet -c "$wait" --config="$3"
    real=$!
fi
expected=$([ -n "$3" ] && echo 6 || echo 5)
names='^/usr/\(local/\)\?bin/\(kubelet\|kubelite\|k3s-server\)$'
for _try in $(seq 300); do
    found=$(
        for one in /proc/[0-9]*/cmdline; do
            head -z -n 1 "$one" 2> /dev/null || :
        done | tr '\0' '\n' | grep -c "$names" || :
    )
    [ "$found" -lt $expected ] || break
    sleep 0.1
done
if [ -n "$3" ]; then
    # A kubelet does not have the flags of a shell.
    printf '/usr/bin/kubelet\0--config=%s\0' "$3" > /var/lib/command_line
    mount --bind /var/lib/command_line "/proc/$real/cmdline"
fi
shift 3
PATH=$before
"$@"
"""


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts processes of other users")
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], check=False)
    if done.returncode:
        pytest.skip("no namespaces can be made here")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a directory of another user's, in which everything is as he wants it."""
    open_to_all(tmp_path)
    directory = tmp_path / "hostile"
    (directory / "root").mkdir(parents=True)
    (directory / "config.yaml").write_text(CONFIGURATION % "none", encoding="utf-8")
    (directory / "root/cpu_manager_state").write_text("hostile", encoding="utf-8")
    for path in (directory, *directory.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
        # Whoever reads a file that has not been read since it was written moves this time on.
        os.utime(path, (0, path.stat().st_mtime))
    return directory


def run(tmp_path: Path, hostile: Path, configuration: str) -> Run:
    shell = Path(shutil.copy("/bin/sh", tmp_path / "kubelet"))
    shell.chmod(0o755)
    private = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", PRIVATE, "sh"]
    tasks = [
        task("drift_info", root="/"),
        {**task("kubelet_config", root="/", cpu_manager_reconcile_period="7s", backup=True), "ignore_errors": True},
        {**task("checkpoint", root="/", state="absent"), "ignore_errors": True},
    ]
    before, times = fingerprint(hostile), read_times(hostile)
    prefix = [*private, str(hostile), str(shell), configuration]
    done = ansible_playbook(tmp_path / "run", play(*tasks), {"machine": {}}, prefix=prefix)
    assert fingerprint(hostile) == before
    assert read_times(hostile) == times
    return done


def read_times(directory: Path) -> dict[str, float]:
    return {str(path): path.stat().st_atime for path in directory.rglob("*") if path.is_file()}


def test_no_kubelet_but_names(tmp_path: Path, hostile: Path) -> None:
    done = run(tmp_path, hostile, "")
    drift, configured, checkpoint = done.results["machine"]
    assert drift["status"] == "no kubelet", done.account()
    notes = "\n".join(drift["notes"])
    assert notes.count("does not count as one: it runs as user 65534 (nobody)") == 3
    assert "1 more processes are called so and do not count" in notes
    assert str(hostile) not in notes
    assert configured["failure"]["kind"] == "no_kubelet"
    # A checkpoint is not kept from anybody by one that only seems to run.
    assert checkpoint["changed"]
    assert checkpoint["file"] == "/var/lib/kubelet/cpu_manager_state"


def test_the_real_kubelet_beside_names(tmp_path: Path, hostile: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text(CONFIGURATION % "none", encoding="utf-8")
    done = run(tmp_path, hostile, str(real))
    drift, configured, checkpoint = done.results["machine"]
    kubelet: dict[str, Any] = drift["kubelet"]
    assert (kubelet["config_path"], kubelet["kubelet_root"]) == (str(real), "/var/lib/kubelet"), done.account()
    assert configured["changed"], done.account()
    assert "cpuManagerReconcilePeriod: 7s" in real.read_text(encoding="utf-8")
    assert "the kubelet runs (process %d)" % kubelet["pid"] in checkpoint["msg"]

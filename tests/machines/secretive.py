# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes with secrets in all places and forms that systemd, the distributions and the container runtimes know."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Callable

from .command import main as write_machine
from .layered import write

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
JOURNALS = "/var/lib/kubenode-cpu-manager/change.json", "/var/lib/kubenode-cpu-manager/last-change.json"


class Secrets:
    """Gives one secret after the other; `given` has what is unmistakable of each."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def fill(self, text: str) -> str:
        """Return a text with a secret in the place of each <*>; of <*/*> it has a slash."""
        return re.sub("<([^<>*]*[*][^<>]*)>", self._next, text)

    def _next(self, place: re.Match[str]) -> str:
        self.given.append("Pl4nt%03dQz" % len(self.given))
        return place.group(1).replace("*", self.given[-1])


# In a unit's section of the service; of systemd.exec(5) and systemd.service(5).
SERVICE = r"""[Unit]
Description=<*>
[Service]
Environment="KUBELET_ARGS=--v=2 --manifest-url-header=Authorization:<*>" 'OTHER=<*> <*>'
Environment=HTTPS_PROXY=http://user:<*>@proxy:3128 HTTP_PROXY=http://user:<*/*>@proxy no_proxy=a
Environment="PASSWORD=<-*>" "PLAIN=<*>" BARE=<*> "QUOTED=\x22<*>\x22" "DASHED=--<*>"
Environment=TOKEN=<--*> "ADDRESS=https://x/?sig=<*>" SECRET_ARGS=--token=<*>
SetCredential=key:<*>
PassEnvironment=HOME
EnvironmentFile=-/etc/secrets.env
ExecStartPre=/bin/sh -c 'curl -H "Authorization: <*>" https://x/'
ExecStartPre=-/usr/bin/env TOKEN=<*> /bin/true
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_ARGS $OTHER --config=/var/lib/kubelet/config.yaml --node-ip=${NODE_IP} \
  --manifest-url-header=Authorization:<*> --manifest-url-header "Authorization:Bearer <*>" \
  # <*>
  --manifest-url=https://user:<*>@example.org/<*>?token=<*> --token=<*> --token <*> --token <-*> --token "<* *>" \
  --password='<*>' --storage-driver-password=<*> -p <*> -p<*> <*> "--api-key=<*>" --token=\x3c<*> --<*>=<*>
ExecStop=/bin/kill <*>
ExecReload=<*>
[Install]
Alias=<*>
"""
SHELLS = r"""[Service]
ExecStart=/bin/sh -c 'exec /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --token=<*> --token "<* *>"'
ExecStart=/bin/sh -c "PASSWORD=<*> K='<*>' exec kubelet --token '<*>'; curl -u user:<*> https://<*>@x/ | sh -c 'id <*>'"
ExecStart=/usr/bin/env TOKEN=<*> PASS="<* *>" /usr/bin/kubelet
ExecStart=@/usr/bin/kubelet <*> --token '<*>
"""
ENVIRONMENT = """# <*>
; <*>
NODE_IP=10.0.0.1
PASSWORD=<*>
AWS_SECRET_ACCESS_KEY="<*>"
AWS_SESSION_TOKEN='<*>'
HTTPS_PROXY=http://user:<*>@proxy
https_proxy=user:<*>@proxy:3128
export K3S_TOKEN=<*>
EXTRA_ARGS="--token=<*> --v=3 --manifest-url-header=A:<*> '<* *>' <*>"
DASHES=--<*>
LONG="<*>
<*>"
CONTINUED=<*>\\
<*>
"""
CONFIGURATION = (
    HEADER
    + """# <*>
# token: plain
staticPodURL: https://user:<*/*>@example.org/<*>?token=<*>
staticPodURLHeader:
  Authorization:
  - Bearer <*> # <*>
  # <*>
  - |
    <*>
    <*>
  X-Token: ["<*>", '<*>', >-
    <*>]
maxPods: 50 # was <*>
token: <*>
password: |
  <*>
providerID: aws:///x
nested: {deep: [<*>, {password: "<*>"}], pin: 1234567}
tracing: {endpoint: "https://user:<*>@x?<*>"}
clusterDomain: cluster.local
---
password: <*>
"""
)
FLOWING = HEADER + 'maxPods: 50\nstaticPodURLHeader: {Authorization: [<*>, "<*>"]}\nfoo: <*> # <*>\n'
DAMAGED = """kind: KubeletConfiguration
password: |
  <*>
  <*>
token: >-
   <*>
 staticPodURLHeader: [<*>
key: "<*>
"""
KUBECONFIG = """apiVersion: v1
kind: Config
users:
- name: x
  user: {token: <*>, password: "<*>", client-key-data: <*>}
- user:
    exec: {env: [{name: A, value: <*>}], args: [--token, <*>]}
"""
RANCHER = """# <*>
token: <*>
agent-token: "<*>"
token-file: /etc/x
server: https://user:<*>@x:6443/?<*>
datastore-endpoint: "postgres://user:<*>@db:5432/k3s?password=<*>"
etcd-s3: true
etcd-s3-access-key: <*>
etcd-s3-secret-key: '<*>'
etcd-s3-session-token: |
  <*>
vpn-auth: "name=tailscale,joinKey=<*>"
kube-apiserver-arg:
- token=<*>
- "<*>"
node-label: [a=<*>]
kubelet-arg: # <*>
- v=2
- "manifest-url-header=Authorization:<*>"
- manifest-url=https://x/<*>
- config
- token=<*>
- password=<*>
- <*>=<*>
  # <*>
"""
REGISTRIES = 'configs: {"x": {auth: {username: u, password: "<*>", token: <*>}}}\n'
CONTAINERD = """# <*>
version = 2
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri".registry.configs."example.org".auth] # <*>
  username = "u"
  password = "<*>"
  auth = '<*>'
  identitytoken = \"\"\"<*>\"\"\"
[plugins."io.containerd.grpc.v1.cri".registry.headers]
  Authorization = ["Bearer <*>"]
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."x"]
  endpoint = ["https://user:<*>@x/?<*>"]
[plugins."io.containerd.nri.v1.nri"]
  disable = true
  plugin_config = {key = "<*>"}
[proxy_plugins.x]
  address = "<*>"
[stream_processors.x]
  env = ["KEY=<*>"]
  args = ["--decryption-keys", "<*>"]
"""
HOSTS = '[host."https://x".header]\nAuthorization = "Basic <*>"\nx = ["<*>"]\n'
CRIO = """[crio.image]
global_auth_file = "/etc/x"
pause_image_auth_file = "/var/lib/x"
[crio.runtime]
default_env = ["TOKEN=<*>", "HTTPS_PROXY=http://u:<*>@x"]
cdi_spec_dirs = ["/etc/cdi"]
[crio.runtime.runtimes.x]
runtime_path = "/x <*>"
default_annotations = {key = "<*>"}
"""
PULL_SECRET = '{"auths": {"x": {"auth": "<*>", "identitytoken": "<*>"}}, "HttpHeaders": {"A": "<*>"}}'
USER_DATA = """#cloud-config
write_files: [{path: /etc/x, content: <*>}]
chpasswd: {list: "root:<*>"}
runcmd: ["k3s agent --token <*>"]
"""
NODE_CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {flags: [--token=<*>]}}\n# <*>\n"


# What a kubelet says when it does not start; each line tells why.
LOG_FILE = "/var/log/kubelet.log"
LOG = r"""I1128 10:00:00.0 1 flags.go:64] FLAG: --manifest-url-header="A:<*>" --vendor-key="<*>" --manifest-url="https://x/<*>"
E1128 10:00:00.0 1 http.go:9] "command failed" err="Get \"https://user:<*>@h/x?access_token=<*>\": dial tcp: refused"
E1128 10:00:00.0 1 run.go:74] "command failed" err="invalid argument \"Authorization=Bearer <*>\" for \"--x\" flag: why"
E1128 10:00:00.0 1 run.go:74] "command failed" err="yaml: unknown anchor '<*>' referenced" token="<* *>" password=<*>
E1128 10:00:00.0 1 run.go:74] "command failed" err="map[Authorization:[Basic <*>]] K3S_TOKEN=<*> --password <*>"
{"ts":1,"msg":"command failed","err":"unknown flag: --vendor-key=<*>: why","headers":{"Authorization":["Bearer <*>"]}}
{"ts":1,"msg":"command failed","token":"<*>"}
"""


def _journal(files: dict[str, str]) -> str:
    saved = {
        path: {"content": base64.b64encode(text.encode()).decode(), "mode": 384, "uid": 0, "gid": 0}
        for path, text in files.items()
    }
    return json.dumps({"format": 1, "phase": "changing", "run": "", "facts": {"rollout": "1"}, "files": saved})


def _write(root: Path, secrets: Secrets, files: dict[str, str], command_line: list[str]) -> None:
    write_machine(["1s2c2t", str(root)])
    write(root, "/etc/hostname", root.name + "\n")
    for path, text in files.items():
        write(root, path, secrets.fill(text))
    words = [secrets.fill(word) for word in command_line]
    write(root, "/proc/712/cmdline", "".join(word + "\0" for word in words))
    values = [word.partition("=")[2] or word for word in words[1:]]
    quoted = ['E1128 10:00:00.0 1 run.go:74] "command failed" err="cannot use \\"%s\\""\n' % value for value in values]
    write(root, LOG_FILE, secrets.fill(LOG) + "".join(quoted))
    write(root, "/proc/712/environ", secrets.fill("TOKEN=<*>\0"))
    # Of nobody that our modules look for.
    write(root, "/proc/99/cmdline", secrets.fill("mysql\0-p<*>\0"))
    write(root, "/proc/cmdline", secrets.fill("ds=nocloud;s=https://u:<*>@x/ rcu_nocbs=1 password=<*>\n"))
    write(root, "/var/lib/cloud/instance/user-data.txt", secrets.fill(USER_DATA))
    write(root, "/root/.docker/config.json", secrets.fill(PULL_SECRET))
    write(root, "/var/lib/kubelet/config.json", secrets.fill(PULL_SECRET))


def kubeadm(root: Path, secrets: Secrets) -> None:
    """Write the files of a kubelet of systemd's with containerd; its journals have copies of the files of both."""
    config, containerd = "/var/lib/kubelet/config.yaml", "/etc/containerd/config.toml"
    journal = {config: CONFIGURATION, containerd: CONTAINERD, "/etc/containerd/conf.d/x.toml": CONTAINERD}
    journal.update({"/etc/default/kubelet": ENVIRONMENT, "/etc/strange": "<*>\n", "/etc/strange.toml": "<*>\n"})
    journal["/etc/containerd/certs.d/x/hosts.toml"] = HOSTS
    files = {
        config: CONFIGURATION,
        "/etc/kubernetes/kubelet.conf": KUBECONFIG,
        "/etc/kubernetes/bootstrap-kubelet.conf": KUBECONFIG,
        "/etc/kubernetes/kubelet.conf.d/10.conf": FLOWING,
        "/etc/kubernetes/kubelet.conf.d/20.conf": DAMAGED,
        "/etc/kubernetes/kubelet.conf.d/30.conf": KUBECONFIG,
        "/etc/default/kubelet": ENVIRONMENT,
        "/etc/secrets.env": ENVIRONMENT,
        "/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--token <*> --node-ip=10.0.0.1 <*>"\n',
        "/usr/lib/systemd/system/kubelet.service": SERVICE,
        "/etc/systemd/system/kubelet.service.d/10.conf": '[Service]\nEnvironment=K=<*> PASSWORD="<*>"\n# <*>\n',
        "/etc/systemd/system/kubelet.service.d/20.conf": SHELLS,
        containerd: CONTAINERD,
        "/etc/containerd/conf.d/x.toml": CONTAINERD,
        "/etc/containerd/certs.d/x/hosts.toml": HOSTS,
    }
    words = ["/usr/bin/kubelet", "--config=" + config, "--config-dir=/etc/kubernetes/kubelet.conf.d"]
    words += ["--manifest-url-header", "Authorization:<*>", "--manifest-url=https://x/<*>", "--token", "<-*>", "<*>"]
    words += ["--password=<*>", "--storage-driver-password", "<--*>", "--api=<*>"]
    _write(root, secrets, files, words)
    for path in JOURNALS:
        write(root, path, _journal({path: secrets.fill(text) for path, text in journal.items()}))


def rancher(name: str) -> Callable[[Path, Secrets], None]:
    """Return a function that writes the files of k3s or RKE2, which configure containerd themselves."""

    def make(root: Path, secrets: Secrets) -> None:
        place = "/var/lib/rancher/%s/agent/etc" % name
        service = "rke2-agent" if name == "rke2" else "k3s-agent"
        files = {
            "/etc/rancher/%s/config.yaml" % name: RANCHER,
            "/etc/rancher/%s/config.yaml.d/50.yaml" % name: '{"agent-token": "<*>", "kubelet-arg": ["max-pods=250"]}',
            "/etc/rancher/%s/config.yaml.d/60.yaml" % name: "kubelet-arg: [v=3]\ntoken: [<*>\n",
            "/etc/rancher/%s/registries.yaml" % name: REGISTRIES,
            place + "/kubelet.conf.d/00.conf": CONFIGURATION,
            place + "/containerd/config.toml": CONTAINERD,
            place + "/containerd/config.toml.tmpl": '{{ template "base" . }}\n# <*>\n' + CONTAINERD,
            "/etc/systemd/system/%s.service.env" % service: "K3S_TOKEN=<*>\nK3S_URL=https://u:<*>@x\n",
            "/etc/systemd/system/%s.service" % service: (
                "[Service]\nEnvironmentFile=-/etc/systemd/system/%N.service.env\n"
                "ExecStart=/usr/local/bin/k3s agent --token <*> --kubelet-arg=manifest-url-header=A:<*> '-t' '<*>' \\\n"
                " '--server' 'https://u:<*>@x/?<*>' --kubelet-arg 'token=<*>' --datastore-endpoint=mysql://u:<*>@tcp(x)/\n"
            ),
        }
        line = ["/usr/local/bin/k3s agent --token <*> -t <*> --vpn-auth=name=x,joinKey=<*>"]
        if name == "rke2":
            config = "--config-dir=" + place + "/kubelet.conf.d"
            line = ["kubelet", config, "--manifest-url-header=A:<*>", "--token=<*>"]
        _write(root, secrets, files, line)
        wants = root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir()
        (wants / (service + ".service")).symlink_to("../%s.service" % service)
        template = {place + "/containerd/config.toml.tmpl": '{{ template "base" . }}\n' + CONTAINERD}
        write(root, JOURNALS[0], _journal({path: secrets.fill(text) for path, text in template.items()}))

    return make


def eks(root: Path, secrets: Secrets) -> None:
    """Write the files of a kubelet of Amazon's."""
    config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "password": "<*>"}
    config["staticPodURLHeader"] = {"A": ["<*>"]}  # type: ignore[assignment]
    files = {
        "/etc/kubernetes/kubelet/config.json": json.dumps(config),
        "/etc/kubernetes/kubelet/config.json.d/40.conf": '{"password": "<*>", "token": ',
        "/etc/eks/kubelet/environment": 'NODEADM_KUBELET_ARGS="--token=<*> --node-ip=10.0.0.1"\nAWS_SECRET=<*>\n',
        "/etc/eks/nodeadm.yaml": NODE_CONFIG,
        "/etc/containerd/config.toml": "version = 2\npassword = <*>\n",
    }
    words = ["/usr/bin/kubelet", "--config=/etc/kubernetes/kubelet/config.json", "--bootstrap-kubeconfig=/x", "-t=<*>"]
    _write(root, secrets, files, words)


def microk8s(root: Path, secrets: Secrets) -> None:
    """Write the files of a kubelet whose flags are lines of a file."""
    args = "# --token=<*>\n--root-dir=${SNAP_COMMON}/x\n--token=<*>\n--password\n<*>\n\"--api-key\" '<*>'\n<*>\n"
    template = "/var/snap/microk8s/current/args/containerd-template.toml"
    files = {"/var/snap/microk8s/current/args/kubelet": args, template: CONTAINERD}
    _write(root, secrets, files, ["/snap/microk8s/1/kubelite", "--kubelet-args-file=/x", "--token=<*>"])


def k0s(root: Path, secrets: Secrets) -> None:
    """Write the files of a worker whose token is a word of its own."""
    files = {
        "/run/k0s/kubelet/config.yaml": FLOWING,
        "/etc/systemd/system/k0sworker.service": "[Service]\nExecStart=/usr/local/bin/k0s worker '<*>'\n",
    }
    words = ["/var/lib/k0s/bin/kubelet", "--config=/run/k0s/kubelet/config.yaml", "--api=<*>"]
    _write(root, secrets, files, words)


def crio(root: Path, secrets: Secrets) -> None:
    """Write the files of a kubelet with CRI-O."""
    files = {
        "/var/lib/kubelet/config.yaml": HEADER + "containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n",
        "/etc/crio/crio.conf": CRIO,
        "/etc/crio/crio.conf.d/10.conf": CRIO,
        "/etc/crio/crio.conf.d/20.conf": "[crio.image\n<*>",
    }
    _write(root, secrets, files, ["/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"])
    write(root, JOURNALS[1], _journal({"/etc/crio/crio.conf.d/10.conf": secrets.fill(CRIO)}))


NODES: dict[str, Callable[[Path, Secrets], None]] = {
    "kubeadm": kubeadm,
    "k3s": rancher("k3s"),
    "rke2": rancher("rke2"),
    "eks": eks,
    "microk8s": microk8s,
    "k0s": k0s,
    "crio": crio,
}

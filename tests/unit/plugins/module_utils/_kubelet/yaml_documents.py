# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents that several tests of the YAML reader read."""

from __future__ import annotations

EVERYTHING = """\
# One of each.
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook: {cacheTTL: 0s, enabled: true}   # in flow
clusterDNS:
- 10.96.0.10
- "169.254.20.10"
evictionHard: {
  memory.available: 100Mi, 'nodefs.available': "10%",
  }
literal: |-
  one
    two

  three
folded: >+
  one
  two

   three
  four

indicated: |1
  x
list:
  - a: 1
    b: [x, "y z", {q: 1.5}]
  - - m: null
    - ~
  -
    z: "a\\tb\\
      c

      d"
plain: some text
  goes on

  and on
single: 'it''s
  one'
empty:
last: -5
"""
WITH_DIRECTIVE = (
    "%YAML 1.1\n--- # begins\nkind: KubeletConfiguration\na:\n  b:\n    c: []\n  d: {}\ne:\n  - f\n...\n# ends\n"
)
JSON_LIKE = '--- {"kind": "KubeletConfiguration", "a": {"b": [1, 2, {"c": null}], "d": "x\\u00e9"}, "t": true}\n'
LIST = "- a\n- b: c\n  d: |2\n     x\n    y\n- >\n\n\n  k\n   l\n  m\n\n"
REPEATED = """\
a: &a {cpu: 100m, x: [1, 2]}\t# a tab
b:\t*a
c: &c
  <<: *a
  z: 3
d:
- &d one
- *d
- {<<: [*c, *a], z}
- &e
  f: &f "g"
-
  h
e: &g
- [*f, k: v, &i]
f: {g: &j , h: *g, i: *i, j: *j}
g: &k >-
  m
  n
h: &a 1.0
i: [*k, *a, {\tp : q\t}
\t]
"""
DOCUMENTS = [EVERYTHING, WITH_DIRECTIVE, JSON_LIKE, LIST, REPEATED]
DOCUMENTS_WITHOUT_TABS = [text for text in DOCUMENTS if "\t" not in text]


HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n"

"""DIR/cluster.yaml and DIR/smtpproxy.yaml, from the settings and the plan."""

import grp
import os
import re

from .keys import RAGENT_USER
from .plan import MAIL_LISTENERS, write_file

MAIL_NAME = "mx.cssl.test"  # Every agent uses it: mail servers look for their session by it. The certificates have it.

HEAD = """\
# Written by ./cssl up. conf/example.yaml explains every key.
link_key: link.key
agents_key: agents.key
broadcast:
  alone_after: 500ms
ragents:
  - name: r1
    workers: {workers}
    control: ragent/control.sock
    control_address: 127.0.0.1:{control_plain}
    control_proxy_protocol: on
    control_tokens: control.tokens
    access_log: access.log
"""

AGENT = """\
  - name: {name}
    workers: {workers}
    link: unix:{dir}/links/{name}.sock
    link_protection: {link}
    peer: 127.0.0.1:{peer}
    peer_socket: peers/{name}.sock
{more}    direct:
      - address: 127.0.0.1:{tls}
        listener: sl
"""

BACKENDS = """\
certificates:
  - {{ name: ecdsa, chain: ecdsa.pem, key: ecdsa.key }}
  - {{ name: rsa, chain: rsa.pem, key: rsa.key }}
backends:
  - {{ name: main, address: "{backend}" }}
  - {{ name: control, address: "127.0.0.1:{control_plain}", proxy_v2: on }}
{mail}listeners:
  - name: control
    listen: [127.0.0.1:{control}]
    backend: control
    tls:
      certificates: [ecdsa, rsa]
"""

LISTENER = """\
  - name: {name}
    listen: [127.0.0.1:{port}]
    mode: {mode}
    migration: {migration}
    handshake: {handshake}
    resumption: {resumption}
    affinity_bound: {affinity_bound}
{service}    tls:
      certificates: [ecdsa, rsa]
      tls12_tickets: {tls12_tickets}
"""

HTTP = """\
    service: http
    backend: main
    alpn:
      - { protocol: http/1.1, service: http, backend: main }
"""

SMTP = """\
    service: smtp
    backend: mail
    smtp:
      starttls: {}
      hostname: {}
"""

MAIL_HEAD = """\
# Written by ./cssl up. `smtpproxy --help-config` explains every key.
name: {}
control: smtpproxy.sock
status: mail-status.sock
events: mail-events.json
"""

MAIL_LISTENER = """\
  - address: 127.0.0.1:{}
    original_destination: proxy
    trusted: [127.0.0.0/8]
"""

# With a queue, whoever reaches the cluster's listeners on this host may send to anybody.
LOCAL_CLIENTS = """\
    clients: [127.0.0.0/8, "::1/128"]
"""

OUTWARD = """\
outward:
  keep_tls: off
  any_port: on
  local: [127.0.0.0/8, "::1/128"]
  never:
"""

QUEUE = """\
deliver: queue
queue:
  role: alone
  keys: mail.key
  next_hop: "{mail_to}"
  retry_first: 1s
  retry_last: 1min
  decided: 200000
  backups:
    - paths: ["127.0.0.1:{redis1}"]
    - paths: ["127.0.0.1:{redis2}"]
"""


def _link_group():
    """All daemons run as this user. As root, RAgent becomes another user, and the socket gets the group of that user. The name of
    the group may be one that the cluster file does not accept."""
    try:
        group = grp.getgrgid(os.getegid()).gr_name
    except KeyError:
        return ""
    return f"    link_group: {group}\n" if os.geteuid() != 0 and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", group) else ""


def _backends_are_near(plan):
    """A loopback source address reaches only these. Connections to an IPv6 address may have any source."""
    mail = plan.get("smtp_backend", "")
    return plan["backend"].startswith("127.") and (not mail or mail.startswith(("127.", "[", "unix:")))


def _agents(cluster, settings):
    plan, text, more = cluster.plan, "agents:\n", _link_group()
    for number, name in enumerate(plan["agents"], 1):
        source = f"    backend_source: 127.0.1.{number}\n" if _backends_are_near(plan) else ""
        text += AGENT.format(name=name, dir=cluster.dir, workers=settings["workers"], link=settings["link"], peer=plan[f"{name}.peer"],
                             more=more + source, tls=plan[f"{name}.tls"])
    return text


def _listeners(cluster, settings):
    rows = [("sf", "sf", HTTP), ("sl", "sl", HTTP)]
    if "smtp_backend" in cluster.plan:
        hidden = "" if settings["smtp_proxy_v2"] == "on" else "      client_address: hidden\n"
        rows += [(name, "sf", SMTP.format(starttls, MAIL_NAME) + hidden) for name, starttls in MAIL_LISTENERS.items()]
    return "".join(LISTENER.format(**settings, name=name, port=cluster.plan[name], mode=mode, service=service)
                   for name, mode, service in rows)


def write_cluster_file(cluster, settings):
    """Writes DIR/cluster.yaml."""
    plan, mail = cluster.plan, ""
    text = HEAD.format(workers=settings["workers"], control_plain=plan["control_plain"])
    if cluster.mail_port():
        text += "    mail_status: mail-status.sock\n"
    if os.geteuid() == 0:
        text += f"    user: {RAGENT_USER}\n"
    if "smtp_backend" in plan:
        mail = f'  - {{ name: mail, address: "{plan["smtp_backend"]}", proxy_v2: {settings["smtp_proxy_v2"]} }}\n'
    text += _agents(cluster, settings) + BACKENDS.format(**plan, mail=mail) + _listeners(cluster, settings)
    write_file(cluster.path("cluster.yaml"), text)


def write_mail_file(cluster, settings):
    """Writes DIR/smtpproxy.yaml: smtpproxy behind the listeners for mail. Mail to them would come back to it."""
    plan = cluster.plan
    if not cluster.mail_port():
        return
    text = MAIL_HEAD.format(MAIL_NAME) + (f"user: {RAGENT_USER}\n" if os.geteuid() == 0 else "") + "listeners:\n"
    for name in ("mail_queue", "mail_gateway", "mail_relay"):
        if name in plan:
            text += MAIL_LISTENER.format(plan[name])
            text += f'    next_hop: "{settings["mail_to"]}"\n' if name == "mail_gateway" else ""
            text += LOCAL_CLIENTS if name == "mail_queue" else ""
    text += OUTWARD + "".join(f"    - 127.0.0.1:{plan[name]}\n" for name in MAIL_LISTENERS)
    if "mail_queue" in plan:
        text += QUEUE.format(mail_to=settings["mail_to"], redis1=plan["redis1"], redis2=plan["redis2"])
    write_file(cluster.path("smtpproxy.yaml"), text)

"""The listeners for mail that `./cssl up --smtp-backend` adds.

    with Sink() as sink:
        cluster = start_cluster(*mail_options(sink))
        source(mail_door(cluster, "submission"), "--starttls", "--ca", cluster.ca)
"""

MAIL_LISTENERS = ("smtp", "submission", "smtps")


def mail_options(sink, proxied=False):
    """The options of ./cssl up for this sink. `proxied`: the sink wants a PROXY header (--proxy)."""
    host, port = sink.address
    return ["--smtp-backend", f"[{host}]:{port}" if ":" in host else f"{host}:{port}", *(["--smtp-proxy-v2"] if proxied else [])]


def mail_door(cluster, name):
    """(host, port) of one of MAIL_LISTENERS."""
    listener = cluster.description()["listeners"][name]
    return listener["host"], listener["port"]


def greet_at(client, ca, way):
    """Through one of MAIL_LISTENERS, up to the greeting behind TLS (`smtp`: in clear). Behind `smtps` there is no banner before."""
    if way == "smtps":
        client.start_tls(ca)
        assert client.reply()[:3] == "220"
    client.ehlo()
    if way == "submission":
        assert client.say("STARTTLS")[:3] == "220"
        client.start_tls(ca)
        client.ehlo()

"""Replies that mail servers of the world give, and that RFC 5321 does not have."""

from tests.lib.scripted_receiver import ScriptedReceiver

# To the end of a mail: it is taken. With their ends.
TAKEN = ("250 2.0.0 taken\n", "250 2.0.0 taken\r\r\n", "250 2.0.0 taken as\r1\r\n", "250OK\r\n", "250\r\n", "250\ttaken\r\n", "299 taken\r\n",
         "250-2.0.0 taken\r\n251 2.0.0 and passed on\r\n", "250-2.0.0 taken\n250 2.0.0 indeed\n", f"250 2.0.0 {'x' * 4096}\r\n",
         f"250-{'y' * 1500}\r\n250 2.0.0 taken\r\n", "250-2.0.0 taken\r\n" * 500 + "250 2.0.0 at last\r\n", "250 2.0.0 t\0aken\r\n")

# The same mail server, with other ends of lines, long lines, and several codes in a reply.
SERVERS = ({"end": "\n"}, {"end": "\r\r\n"},
           {"banner": f"220-{'b' * 2000}\r\n220 odd ESMTP", "EHLO": f"250-odd\r\n250-XLONG {'y' * 1900}\r\n250-SIZE 90000\r\n250 8BITMIME"},
           {"EHLO": "250-odd\r\n220-8BITMIME\r\n250 SIZE 0", "MAIL": "250-sender\r\n251 ok", "DATA": "354-go\r\n355 on"},
           {"banner": "250 hello", "EHLO": "251-odd\r\n251 8BITMIME", "MAIL": "299 ok", "RCPT": "252 will see", "DATA": "399 go on"})
COUNT = 1 + len(SERVERS)
REFUSED = "RCPT TO:<refused"
REFUSAL = f"550 5.7.1 {'x' * 1500}"


def odd_receiver(which, **keys):
    """Receiver number `which` of COUNT, and how many mails it takes to hear all of its replies."""
    if which == 0:
        return len(TAKEN), ScriptedReceiver({"content": TAKEN, REFUSED: REFUSAL}, **keys)
    script = {REFUSED: REFUSAL, **SERVERS[which - 1]}
    return 1, ScriptedReceiver(script, end=script.pop("end", "\r\n"), **keys)


def subjects(receiver):
    """The numbers in the subjects of the mails that came, in order."""
    return sorted(int(content.partition(b"Subject: ")[2].partition(b"\r\n")[0]) for content in receiver.contents)

"""Mails with everything that a careless server changes."""

LONG_LINE = 3000

# Lone and doubled dots, dots at both ends of lines, bytes above 127, controls, spaces at the end, long lines, empty lines at the end.
ODD = (b"Subject: odd\r\n\r\n.\r\n..\r\n...\r\n.a\r\na.\r\n. \r\n\r\n\r\nFrom here\r\n>From here\r\n\tx \r\n" + bytes(range(0x80, 0x100)) +
       b"\r\n\xc3\xa9\xff\xfe\r\n\x01\x02\x1b\x7f\r\n" + b"." * LONG_LINE + b"\r\n" + b"y" * LONG_LINE + b"\r\nMAIL FROM:<e@v>\r\nQUIT\r\n\r\n\r\n")

# Bare CRs and LFs that hide no end of a mail, as old clients and their users' editors leave them.
BARE = b"Subject: bare\r\n\r\na\rb\r\na\nb\r\n\r\r\n\r\rc\r\n\n\nd\r\ne\r\r\n\n\r\nf.\ng\r\nh.\ri\r\n"

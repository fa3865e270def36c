"""Makes one C file of the dashboard: the page with its style and script inside, and the Content-Security-Policy that allows
just these two. Usage: embed.py HTML CSS JS OUT.c"""

import base64
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "net"))

from c_text import as_c  # noqa: E402


def policy(style, script):
    def hashed(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (f"default-src 'none'; style-src {hashed(style)}; script-src {hashed(script)}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def main():
    html, style, script = (pathlib.Path(name).read_text() for name in sys.argv[1:4])
    page = html.replace("@STYLE@", style).replace("@SCRIPT@", script)
    out = '/* Made by embed.py. */\n#include "ragent/dashboard/dashboard.h"\n\n'
    out += as_c("dashboard_page", page.encode("utf-8")) + "\n" + as_c("dashboard_policy", policy(style, script).encode())
    pathlib.Path(sys.argv[4]).write_text(out)


main()

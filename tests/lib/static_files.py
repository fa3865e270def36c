"""Static files from an nginx of a test's own: real ETags, ranges and conditions.

    with StaticFiles() as files:
        files.put("64k", data)                   a file; put again, it has another ETag
        cluster = start_cluster("--backend", files.address)
        GET /64k?rate=20000                      so many bytes a second
        GET /rangeless/64k                       no ranges
"""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from tests.lib.build import patience

CONFIG = """\
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 500; }}
http {{
    access_log off; sendfile on; tcp_nopush on; types {{ }} default_type application/octet-stream;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    server {{
        listen {address}; root {folder}/www; limit_rate $arg_rate;
        location /rangeless/ {{ alias {folder}/www/; max_ranges 0; }}
    }}
}}
"""


class StaticFiles:
    def __init__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="cssl-nginx-"))
        self._folder.chmod(0o755)  # as root, its worker is somebody else
        (self._folder / "www").mkdir()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.address = "%s:%d" % self._listening.getsockname()

    def put(self, name, data):
        """A new file in place of an earlier one of that name. A running answer keeps the old file."""
        fresh = self._folder / "fresh"
        fresh.write_bytes(data)
        put = self._folder / "www" / name
        if put.exists():  # the ETag is made of time and size
            os.utime(fresh, (0, put.stat().st_mtime + 10))
        fresh.rename(put)

    def __enter__(self):
        config = self._folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=self._folder, address=self.address))
        # nginx inherits the socket, as it does in an upgrade of itself, so nobody can take the port from it.
        fd = self._listening.fileno()
        self._process = subprocess.Popen(["nginx", "-e", f"{self._folder}/error.log", "-c", str(config)], pass_fds=[fd],
                                         env=dict(os.environ, NGINX=f"{fd};"), stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, kind, *_):
        self._process.terminate()
        self._process.wait(patience(10))
        self._listening.close()
        if kind is None:
            shutil.rmtree(self._folder)

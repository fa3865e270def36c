"""nginx with TLS, as a peer of the load generator. Use as a context; `address` is where it listens."""

import pathlib
import socket
import subprocess

from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

CONFIG = """\
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
    {settings}
    server {{ listen 127.0.0.1:{port} ssl; root {folder}/www; }}
}}
"""


class Nginx:
    """`files`: {name: bytes}; `settings`: lines of the http block."""

    def __init__(self, folder, files, settings=""):
        self._folder = pathlib.Path(folder)
        (self._folder / "www").mkdir()
        for name, content in files.items():
            (self._folder / "www" / name).write_bytes(content)
        self._settings = settings

    def __enter__(self):
        self.address = ("127.0.0.1", free_ports(1)[0])
        certificate, key = self_signed(self._folder)
        config = self._folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=self._folder, certificate=certificate, key=key, port=self.address[1],
                                        settings=self._settings))
        self._process = subprocess.Popen(["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
        wait_until(lambda: not socket.create_connection(self.address).close(), patience(10), "nginx")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

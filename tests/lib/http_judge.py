"""An HTTP hook that answers what a test wants, and remembers what it was asked.

    with Judge({"action": "reject"}) as judge:
"""

import http.server
import json
import threading

from tests.lib.build import patience


class Judge(http.server.ThreadingHTTPServer):
    """Answers with `answer`: a value as JSON, bytes as they are, or None: not at all."""

    daemon_threads = True

    def __init__(self, answer, status=200, has_length=True):
        self.has_length = has_length
        self.answer, self.status, self.asked, self.over = answer, status, [], threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = self.server_address

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        envelope = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, envelope))
        if self.server.answer is None:
            self.server.over.wait(patience(20))
            return
        answer = self.server.answer
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(self.server.status)
        if self.server.has_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

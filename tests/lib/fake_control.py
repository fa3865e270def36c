"""A control socket that says what a test wants, for answers that no cluster gives on demand.

    with FakeControl(folder, {("GET", "/v1/agents/a1"): [agent(left=5), agent(left=0)]}) as fake:
        csslctl("--socket", fake.socket, ...)

An answer is an object, or (status, object); of a list, the next one each time, and the last one for ever. Anything else is 404.
`fake.asked`: what came, as (method, path, body)."""

import http.server
import json
import socketserver
import threading


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fake = self.server.fake
        fake.asked.append((self.command, self.path, json.loads(body) if body else None))
        status, answer = fake.next_answer(self.command, self.path)
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = _answer

    def log_message(self, *_):
        pass

    def address_string(self):
        return "unix"


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class FakeControl:
    def __init__(self, folder, answers):
        self.socket = str(folder / "fake.sock")
        self.asked = []
        self._answers = {key: list(value) if isinstance(value, list) else [value] for key, value in answers.items()}
        self._server = _Server(self.socket, _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def next_answer(self, method, path):
        queue = self._answers.get((method, path)) or [(404, {"error": f"no such path: {path}"})]
        answer = queue.pop(0) if len(queue) > 1 else queue[0]
        return answer if isinstance(answer, tuple) else (200, answer)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

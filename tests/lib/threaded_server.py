"""A TCP server on loopback with a thread for each connection: the frame of the backends here that are not as they should be."""

import socketserver
import threading


class ThreadedServer(socketserver.ThreadingTCPServer):
    """Serves inside of `with`. address: "127.0.0.1:PORT"."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.address = "%s:%d" % self.server_address
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        self.server_close()

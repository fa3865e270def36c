"""A backend that speaks what no proxy understands: any request is answered with 101 Switching Protocols; from then on every
byte is sent back, for as long as the other side likes.

    with UpgradeBackend() as backend: ... backend.address ...
"""

import asyncio
import threading

ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
ASK = "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"


async def _serve(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


class UpgradeBackend:
    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(_serve, "127.0.0.1", 0))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        self._loop.close()

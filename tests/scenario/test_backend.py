"""The embedded backend by itself: all other scenarios rely on its answers."""

import hashlib
import http.client
import json
import random
import socket
import struct
import threading

import pytest

from tests.lib.backend import Backend
from tests.lib.build import SANITIZED, patience, scaled
from tests.lib.pattern import first_difference, pattern

pytestmark = pytest.mark.sanitized_tools


# What a connection may cost beyond noise. AddressSanitizer keeps freed memory for a while.
MEMORY_MARGIN = (64 if SANITIZED else 8) << 20


@pytest.fixture(scope="module")
def backend():
    with Backend("--agent", "a1=127.0.1.1", "--agent", "a2=127.0.1.2", "--proxy-protocol", "accept") as b:
        yield b


@pytest.fixture
def web(backend):
    connection = http_client(backend)
    yield connection
    connection.close()


def http_client(backend, source=None):
    return http.client.HTTPConnection("127.0.0.1", backend.port, timeout=patience(20),
                                      source_address=(source, 0) if source else None)


def ask(connection, method, path, body=None, **headers):
    connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    response = connection.getresponse()
    return response, response.read()


def get_json(connection, path):
    response, body = ask(connection, "GET", path)
    assert response.status == 200
    return json.loads(body)


def raw(backend, data, source=None):
    """All that is answered to these bytes and a FIN."""
    with socket.create_connection(("127.0.0.1", backend.port), patience(20), (source, 0) if source else None) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: s.recv(65536), b""))


def read_answer(answers):
    """The body of the next answer on a connection with several."""
    assert answers.readline().startswith(b"HTTP/1.1 200 ")
    headers = http.client.parse_headers(answers)
    return answers.read(int(headers["Content-Length"]))


@pytest.mark.parametrize("path,size", [("/0", 0), ("/5", 5), ("/1k", 1024), ("/5k", 5120), ("/64k", 65536),
                                       ("/1m", 1 << 20), ("/20m", 20 << 20), ("/70001", 70001)])
def test_an_answer_has_exactly_the_size_and_bytes_of_its_path(web, path, size):
    response, body = ask(web, "GET", path)
    assert response.status == 200
    assert response.headers["Content-Length"] == str(size)
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Accept-Ranges"] == "bytes"
    assert len(body) == size
    assert first_difference(body, size) is None


def test_head_says_what_get_says_without_a_body(web):
    get, _ = ask(web, "GET", "/5k")
    head, body = ask(web, "HEAD", "/5k")
    assert body == b""
    assert head.status == get.status == 200
    assert {k: v for k, v in head.headers.items() if k != "Date"} == {k: v for k, v in get.headers.items() if k != "Date"}


@pytest.mark.parametrize("value,first,last", [("bytes=0-0", 0, 0), ("bytes=100-199", 100, 199), ("bytes=5000-", 5000, 5119),
                                              ("bytes=-20", 5100, 5119), ("bytes=0-999999", 0, 5119),
                                              ("bytes=-999999", 0, 5119), ("bytes=5119-5119", 5119, 5119)])
def test_a_range_selects_its_part(web, value, first, last):
    response, body = ask(web, "GET", "/5k", Range=value)
    assert response.status == 206
    assert response.headers["Content-Range"] == f"bytes {first}-{last}/5120"
    assert body == pattern(5120, first, last - first + 1)


@pytest.mark.parametrize("value", ["bytes=5120-", "bytes=9999-10000", "bytes=-0"])
def test_a_range_behind_the_end_is_416(web, value):
    response, _ = ask(web, "GET", "/5k", Range=value)
    assert response.status == 416
    assert response.headers["Content-Range"] == "bytes */5120"


@pytest.mark.parametrize("value", ["bytes=5-3", "bytes=a-b", "lines=1-2", "bytes=0-1,4-5", "bytes="])
def test_a_range_that_is_not_one_is_ignored(web, value):
    response, body = ask(web, "GET", "/5k", Range=value)
    assert response.status == 200
    assert len(body) == 5120


def test_etags_are_strong_and_conditions_are_kept(web):
    etag = ask(web, "GET", "/5k")[0].headers["ETag"]
    assert etag.startswith('"')
    assert etag != ask(web, "GET", "/1k")[0].headers["ETag"]
    assert ask(web, "GET", "/5k", If_Match=etag, Range="bytes=1-2")[0].status == 206
    assert ask(web, "GET", "/5k", If_Match=f'"other", {etag}')[0].status == 200
    assert ask(web, "GET", "/5k", If_Match='"other"', Range="bytes=1-2")[0].status == 412
    assert ask(web, "GET", "/5k", If_Match=f"W/{etag}")[0].status == 412
    assert ask(web, "GET", "/5k", If_Range=etag, Range="bytes=1-2")[0].status == 206
    assert ask(web, "GET", "/5k", If_Range='"other"', Range="bytes=1-2")[0].status == 200
    response, body = ask(web, "GET", "/5k", If_None_Match=etag)
    assert (response.status, body) == (304, b"")
    assert ask(web, "GET", "/5k")[0].status == 200


def test_unknown_paths_and_methods_are_refused(web):
    assert ask(web, "GET", "/nothing")[0].status == 404
    assert ask(web, "GET", "/99999999999999999999")[0].status == 404
    assert ask(web, "DELETE", "/count")[0].status == 405
    response, _ = ask(web, "POST", "/count/x", b"body")
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    assert ask(web, "GET", "/5")[0].status == 200


def test_executions_are_counted_by_id(web):
    before = get_json(web, "/count")
    for expected, method in enumerate(("POST", "PUT", "POST"), 1):
        response, body = ask(web, method, "/count", b"x" * expected, X_Id="order-1")
        assert response.status == 200
        assert json.loads(body) == {"id": "order-1", "executions": expected, "length": expected}
    assert ask(web, "POST", "/count", b"", X_Id="order-2")[0].status == 200
    assert get_json(web, "/count/order-1") == {"executions": 3}
    assert get_json(web, "/count/order-3") == {"executions": 0}
    after = get_json(web, "/count")
    assert after["ids"] == before["ids"] + 2
    assert after["executions"] == before["executions"] + 4
    assert after["most"] >= 3


@pytest.mark.parametrize("identity", [None, "", "with space", "quote\"", "x" * 65])
def test_an_execution_without_a_proper_id_is_refused(web, identity):
    headers = {} if identity is None else {"X_Id": identity}
    assert ask(web, "POST", "/count", b"", **headers)[0].status == 400


def test_many_ids_are_all_remembered(web):
    count = scaled(5000)
    for i in range(count):
        assert ask(web, "POST", "/count", b"", X_Id=f"many-{i}")[0].status == 200
    assert all(get_json(web, f"/count/many-{i}") == {"executions": 1} for i in range(0, count, 97))


def test_an_upload_is_digested_in_constant_memory(backend, web):
    piece = random.Random(1).randbytes(1 << 20)
    count = scaled(100)
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(piece)
    before = backend.rss()
    web.request("POST", "/sha256", (piece for _ in range(count)), {"Content-Length": str(count << 20)})
    result = json.loads(web.getresponse().read())
    assert result == {"sha256": digest.hexdigest(), "length": count << 20}
    assert backend.rss() - before < MEMORY_MARGIN


def test_a_chunked_upload_is_digested_without_its_framing(web):
    pieces = [bytes([i]) * (i * 997 % 5000 + 1) for i in range(200)]
    web.request("POST", "/sha256", iter(pieces), encode_chunked=True)
    result = json.loads(web.getresponse().read())
    whole = b"".join(pieces)
    assert result == {"sha256": hashlib.sha256(whole).hexdigest(), "length": len(whole)}


def test_a_slow_reader_of_much_costs_bounded_memory(backend):
    before = backend.rss()
    with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(20):
            s.sendall(b"GET /20m HTTP/1.1\r\nHost: x\r\n\r\n")
        s.recv(1)
        # It answers others meanwhile, and holds no more than it may for this one.
        for _ in range(3):
            connection = http_client(backend)
            assert len(ask(connection, "GET", "/1m")[1]) == 1 << 20
            connection.close()
        assert backend.rss() - before < MEMORY_MARGIN


def test_pipelined_requests_are_answered_in_order(backend):
    choose = random.Random(2)
    sizes = [choose.choice((0, 1, 5, 1024, 40000, 300000)) for _ in range(scaled(200))]
    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in sizes)
    with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s, s.makefile("rb") as answers:
        sender = threading.Thread(target=s.sendall, args=(requests,))
        sender.start()
        for size in sizes:
            body = read_answer(answers)
            assert len(body) == size and first_difference(body, size) is None
        sender.join()


def test_requests_in_single_bytes_are_understood(backend):
    with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"POST /sha256?x=1 HTTP/1.1\r\nHost: x\r\nX-Other: y\r\nContent-Length: 3\r\n\r\nabcGET /5 HTTP/1.0\r\n\r\n":
            s.send(bytes([byte]))
        answer = b"".join(iter(lambda: s.recv(65536), b""))
    assert hashlib.sha256(b"abc").hexdigest().encode() in answer
    assert answer.endswith(b"\r\n\r\n" + pattern(5))


def test_expect_100_continue_is_answered_before_the_body(backend):
    with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s:
        s.sendall(b"POST /sha256 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert s.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(b"abc")
        assert s.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_expect_is_refused_where_the_body_is_not_wanted(backend):
    head = b" HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    answer = raw(backend, b"POST /5" + head)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"Connection: close\r\n" in answer
    assert raw(backend, b"POST /sha256" + head.replace(b"100-continue", b"miracles")).startswith(b"HTTP/1.1 417 ")


@pytest.mark.parametrize("request_bytes,status", [
    (b"NONSENSE\r\n\r\n", b"400"),
    (b"GET /5 HTTP/1.1\r\n\r\n", b"400"),
    (b"GET /5 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"400"),
    (b"GET /5 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
    (b"GET /5 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", b"400"),
    (b"POST /count HTTP/1.1\r\nHost: x\r\nX-Id: a\r\nX-Id: b\r\nContent-Length: 0\r\n\r\n", b"400"),
    (b"GET /" + b"5" * 2000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", b"414"),
    (b"GET /5 HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"b" * 40000 + b"\r\n\r\n", b"431"),
    (b"GET /5 HTTP/1.1\r\nHost: x\r\nRange: " + b"b" * 500 + b"\r\n\r\n", b"431"),
])
def test_bad_requests_are_refused_and_the_connection_closed(backend, request_bytes, status):
    answer = raw(backend, request_bytes + b"GET /5 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status + b" ")
    assert b"Connection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_offer_to_upgrade_is_ignored(backend):
    answer = raw(backend, b"GET /5 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
                          b"GET /6 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert answer.endswith(pattern(6))


def test_a_connection_stays_or_closes_as_asked(backend):
    stays = raw(backend, b"GET /5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /5 HTTP/1.0\r\n\r\n")
    assert stays.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert stays.count(b"Connection: keep-alive\r\n") == stays.count(b"Connection: close\r\n") == 1
    closes = raw(backend, b"GET /5 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /5 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert closes.count(b"HTTP/1.1 200 OK\r\n") == 1


def test_a_half_closed_client_gets_its_whole_answer(backend):
    answer = raw(backend, b"GET /1m HTTP/1.1\r\nHost: x\r\n\r\n")
    assert first_difference(answer.split(b"\r\n\r\n", 1)[1], 1 << 20) is None
    assert len(answer.split(b"\r\n\r\n", 1)[1]) == 1 << 20


def test_slow_answers_are_spread_over_their_time(backend):
    with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s:
        s.sendall(b"GET /slow?bytes=200000&ms=500 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        pieces = list(iter(lambda: s.recv(1 << 20), b""))
    body = b"".join(pieces).split(b"\r\n\r\n", 1)[1]
    assert len(body) == 200000 and first_difference(body, 200000) is None
    assert len(pieces) > 10


def test_a_part_of_a_slow_answer_can_be_asked_for(web):
    response, body = ask(web, "GET", "/slow?bytes=200000&ms=100", Range="bytes=150000-")
    assert response.status == 206
    assert body == pattern(200000, 150000)


@pytest.mark.parametrize("query", ["", "?bytes=1", "?bytes=x&ms=1", "?bytes=1&ms=1x", "?bytes=999999999999&ms=1",
                                   "?bytes=1&ms=999999999"])
def test_slow_without_bounds_is_refused(web, query):
    assert ask(web, "GET", "/slow" + query)[0].status == 400


def test_hold_answers_after_its_time(web):
    response, body = ask(web, "GET", "/hold?ms=50")
    assert (response.status, body) == (200, b"held\n")
    assert ask(web, "GET", "/5")[0].status == 200


def test_hold_without_a_time_lasts_until_the_client_goes(backend):
    with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s:
        s.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""


def test_the_page_has_fifty_parts_that_are_all_there(web):
    response, body = ask(web, "GET", "/page")
    assert response.headers["Content-Type"].startswith("text/html")
    page = body.decode()
    parts = [word.split("=", 1)[1].rstrip(">") for word in page.split() if word.startswith(("src=/", "href=/"))]
    assert len(parts) == len(set(parts)) == 50
    types = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    for part in parts:
        response, body = ask(web, "GET", part)
        assert response.status == 200 and body
        assert response.headers["Content-Type"] == types[part.rsplit(".", 1)[1]]
    assert ask(web, "GET", "/page/50.svg")[0].status == 404
    assert ask(web, "GET", "/page/1.svg")[0].status == 404


def test_the_agent_is_known_by_its_source_address(backend):
    for source, name in (("127.0.1.1", "a1"), ("127.0.1.2", "a2"), ("127.0.1.3", None)):
        connection = http_client(backend, source)
        for _ in range(2):
            assert ask(connection, "GET", "/5")[0].headers["X-CSSL-Agent"] == name
        connection.close()


def proxy_v2(tlvs, command=0x21):
    addresses = socket.inet_aton("192.0.2.7") + socket.inet_aton("192.0.2.1") + struct.pack("!HH", 51234, 443)
    body = addresses + b"".join(struct.pack("!BH", kind, len(value)) + value for kind, value in tlvs)
    return b"\r\n\r\n\0\r\nQUIT\n" + struct.pack("!BBH", command, 0x11, len(body)) + body


GET_5 = b"GET /5 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def test_headers_repeat_the_values_of_a_proxy_header(backend):
    def tlv(kind, value):
        return struct.pack("!BH", kind, len(value)) + value
    tls = struct.pack("!BI", 0x01 | 0x04, 0) + tlv(0x21, b"TLSv1.3") + tlv(0x23, b"TLS_AES_128_GCM_SHA256") + tlv(0x22, b"alice")
    header = proxy_v2([(0x01, b"http/1.1"), (0x02, b"www.cssl.test"), (0x05, bytes(range(16))), (0x20, tls)])
    answer = raw(backend, header + GET_5, "127.0.1.1").decode("latin-1")
    assert "X-CSSL-Agent: a1\r\n" in answer
    assert "X-CSSL-Client: 192.0.2.7:51234\r\n" in answer
    assert "X-CSSL-SNI: www.cssl.test\r\n" in answer
    assert "X-CSSL-ALPN: http/1.1\r\n" in answer
    assert "X-CSSL-TLS: TLSv1.3 TLS_AES_128_GCM_SHA256 certificate=session cn=alice\r\n" in answer
    assert "X-CSSL-Connection: 000102030405060708090a0b0c0d0e0f\r\n" in answer


def test_a_proxy_header_cannot_smuggle_header_lines(backend):
    assert raw(backend, proxy_v2([(0x02, b"x\r\nX-Evil: 1")]) + GET_5) == b""


def test_a_local_proxy_header_says_nothing(backend):
    answer = raw(backend, proxy_v2([], command=0x20) + GET_5)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"X-CSSL-Client" not in answer


def test_a_proxy_header_of_version_1_is_understood(backend):
    answer = raw(backend, b"PROXY TCP6 2001:db8::1 2001:db8::2 1000 443\r\n" + GET_5)
    assert b"X-CSSL-Client: [2001:db8::1]:1000\r\n" in answer


def test_a_broken_proxy_header_ends_the_connection(backend):
    assert raw(backend, b"PROXY NONSENSE\r\n" + GET_5) == b""
    assert raw(backend, proxy_v2([])[:13] + b"\x77\0\0" + GET_5) == b""


def test_a_required_proxy_header_must_be_there():
    with Backend("--proxy-protocol", "require") as backend:
        assert raw(backend, GET_5) == b""
        assert raw(backend, proxy_v2([]) + GET_5).endswith(pattern(5))


def test_it_listens_on_unix_sockets_and_ipv6_too(tmp_path):
    path = str(tmp_path / "s")
    with Backend(listen=(f"unix:{path}", "[::1]:0")) as backend:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(GET_5)
            assert b"".join(iter(lambda: s.recv(65536), b"")).endswith(pattern(5))
        with socket.create_connection(("::1", int(backend.addresses[1].rsplit(":", 1)[1])), patience(20)) as s:
            s.sendall(GET_5)
            assert b"".join(iter(lambda: s.recv(65536), b"")).endswith(pattern(5))


def test_a_silent_connection_is_closed_after_the_idle_time():
    with Backend("--idle-ms", "50") as backend:
        connection = http_client(backend)
        assert ask(connection, "GET", "/5")[0].status == 200
        assert connection.sock.recv(1) == b""


def test_sigterm_finishes_the_answers_under_way():
    with Backend() as backend:
        idle, busy = http_client(backend), http_client(backend)
        assert ask(idle, "GET", "/5")[0].status == 200
        busy.request("GET", "/slow?bytes=100000&ms=500")
        response = busy.getresponse()
        backend.terminate()
        assert idle.sock.recv(1) == b""
        body = response.read()
        assert len(body) == 100000 and first_difference(body, 100000) is None
        assert backend.wait() == 0


def test_sigterm_does_not_wait_for_ever():
    with Backend("--grace-ms", "100") as backend:
        with socket.create_connection(("127.0.0.1", backend.port), patience(20)) as s, s.makefile("rb") as answers:
            s.sendall(b"GET /5 HTTP/1.1\r\nHost: x\r\n\r\nGET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
            assert len(read_answer(answers)) == 5
            backend.terminate()
            assert answers.read() == b""
            assert backend.wait() == 0


def test_many_connections_come_and_go(backend):
    def come_and_go(count):
        for _ in range(count):
            connection = http_client(backend)
            assert len(ask(connection, "GET", "/5")[1]) == 5
            connection.close()
    threads = [threading.Thread(target=come_and_go, args=(scaled(250),)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@pytest.mark.parametrize("arguments", [["--listen", "nonsense"], ["--agent", "a1"], ["--idle-ms", "x"], ["--bogus"], ["extra"],
                                       ["--proxy-protocol", "perhaps"]])
def test_bad_options_are_refused(arguments):
    with pytest.raises(RuntimeError):
        Backend(*arguments)


def test_an_address_that_cannot_be_had_is_an_error_at_once():
    with pytest.raises(RuntimeError, match="cannot listen"):
        Backend(listen=("127.0.0.1:0", "unix:/nonexistent/folder/socket"))

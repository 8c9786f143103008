"""A TCP proxy that changes frames of the Kafka protocol on their way."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

_FETCH = 1


class CorruptOneFetch:
    """Flips one bit of the first FetchResponse that carries `marker`, inside the marker.

    A frame is a 4-byte length and that many bytes. A request begins with its ApiKey (2 bytes), its
    version (2) and its correlation id (4), a response with the correlation id.
    """

    def __init__(self, marker: bytes, times: int = 1) -> None:
        self._marker = marker
        self._left = times
        self._lock = threading.Lock()
        self.corrupted = 0
        """Number of responses changed so far."""

    def connection(self) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
        """Return the functions that a new connection applies to each request and response."""
        fetches: set[bytes] = set()

        def request(frame: bytes) -> bytes:
            if int.from_bytes(frame[:2], "big") == _FETCH:
                fetches.add(frame[4:8])
            return frame

        def response(frame: bytes) -> bytes:
            return self._changed(frame) if frame[:4] in fetches else frame

        return request, response

    def _changed(self, frame: bytes) -> bytes:
        with self._lock:
            place = frame.find(self._marker)
            if place < 0 or self.corrupted >= self._left:
                return frame
            self.corrupted += 1
        return frame[:place] + bytes([frame[place] ^ 1]) + frame[place + 1 :]


class KafkaProxy:
    """Listens on a free port of 127.0.0.1 and forwards Kafka's frames to and from `port`.

    The broker must advertise the proxy's port; otherwise clients bypass it after their first
    request.
    """

    def __init__(self, port: int, fault: CorruptOneFetch) -> None:
        self._target = ("127.0.0.1", port)
        self._fault = fault
        self._listener = socket.socket()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = 0

    def __enter__(self) -> Self:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        self._run(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in (self._listener, *self._sockets):
            _shut(each)
        for thread in self._threads:
            thread.join(5)
        for each in (self._listener, *self._sockets):
            each.close()

    def _run(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target, timeout=5)
                server.settimeout(None)
                self._sockets += [client, server]
                request, response = self._fault.connection()
                self._run(partial(_pass, client, server, request))
                self._run(partial(_pass, server, client, response))


def _pass(source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
    with contextlib.suppress(OSError, EOFError):
        while True:
            size = _exactly(source, 4)
            frame = change(_exactly(source, int.from_bytes(size, "big")))
            sink.sendall(size + frame)
    _shut(source)
    _shut(sink)


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)

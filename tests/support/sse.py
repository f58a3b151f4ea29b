"""A reader of server-sent events, as the HTML standard says how to read them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Frame:
    """`name` "message": it had none."""

    name: str
    data: Any
    id: str


@dataclass
class SseReader:
    """One connection. `last` is what a browser would send as Last-Event-ID."""

    url: str
    path: str = "/api/v1/events"
    headers: Mapping[str, str] = field(default_factory=dict)
    last: str = ""
    patience: float = 30.0
    retry: int | None = None
    comments: int = 0
    _name: str = "message"
    _data: list[str] = field(default_factory=list)

    def __enter__(self) -> SseReader:
        split = urlsplit(self.url)
        assert split.hostname
        self._connection = http.client.HTTPConnection(split.hostname, split.port, timeout=self.patience)
        resumed = {"Last-Event-ID": self.last} if self.last else {}
        self._connection.request("GET", self.path, headers={"Accept": "text/event-stream", **resumed, **self.headers})
        self.answer = self._connection.getresponse()
        self.status = self.answer.status
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self._connection.close()

    def begun(self) -> SseReader:
        """Once it stands somewhere: what is committed from then on, it is told. To be asked inside its `with`."""
        while not self.last:
            self._field(self.answer.readline().decode())
        return self

    def events(self) -> Iterator[dict[str, Any]]:
        """What the feed tells; it ends with the stream."""
        for frame in self.frames():
            assert frame.name in ("message", "end"), frame
            if frame.name == "message":
                assert frame.data["cursor"] == frame.id
                yield frame.data

    def frames(self) -> Iterator[Frame]:
        while line := self.answer.readline().decode():
            if line != "\n":
                self._field(line)
                continue
            name, data, self._name, self._data = self._name, self._data, "message", []
            if data:
                yield Frame(name, json.loads("\n".join(data)), self.last)

    def _field(self, line: str) -> None:
        assert line.endswith("\n")
        assert "\r" not in line
        field_, _, value = line[:-1].partition(":")
        value = value.removeprefix(" ")
        match field_:
            case "":
                self.comments += 1
            case "id":
                self.last = value
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "retry":
                self.retry = int(value)
            case _:
                raise AssertionError(f"no field of the standard: {line!r}")

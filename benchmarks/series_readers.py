"""Readers of one socket over HTTP, each with a connection of its own; prints how long each answer took as JSON.

Arguments: socket, path, token, number of readers, seconds to read for, seconds of rest between two reads.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
import time


def read(place: str, path: str, token: str, begin: float, seconds: float, rest: float) -> list[float | None]:
    """Read again and again; return the times of the answers, None for what failed."""
    time.sleep(begin)
    times: list[float | None] = []
    connection = http.client.HTTPConnection("localhost", timeout=30)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        try:
            if connection.sock is None:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.connect(place)
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            whole = bool(answer.read()) and answer.status == 200
        except (OSError, http.client.HTTPException):
            whole = False
            connection.close()
        times.append(time.perf_counter() - begun if whole else None)
        time.sleep(rest)
    return times


def main() -> None:
    """Run the readers."""
    place, path, token = sys.argv[1:4]
    readers, seconds, rest = int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6])
    found: list[float | None] = []
    threads = [
        threading.Thread(
            target=lambda at: found.extend(read(place, path, token, rest * at / readers, seconds, rest)), args=(number,)
        )
        for number in range(readers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

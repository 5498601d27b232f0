"""Addresses of databases for people."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.engine import URL


def described(url: URL | str) -> str:
    """Return an address of a database for people: that of a file as its path, none with a password."""
    url = make_url(url)
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    if url.host and "@" in url.host:  # of a password that has one and is not quoted
        url = url.set(host=url.host.rpartition("@")[2])
    return url.difference_update_query(["password", "sslpassword"]).render_as_string()

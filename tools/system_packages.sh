#!/bin/sh
# System packages that some tests use. Installed where that is allowed; named in one line where it is not.
set -eu

missing=""
if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null 2>&1; then
    missing="$missing postgresql"
fi
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing system packages:$missing"
    if { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q $missing; } >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "Not installed:$missing (needs root and apt-get). Everything works without; the tests that use it are skipped."

#!/bin/sh
# System packages that the build or some tests use. Installed where that is allowed; named in one line where it is not.
set -eu

missing=""
if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null 2>&1; then
    missing="$missing postgresql"
fi
# The JupyterLab extension is built with Node; a tree that holds it built, as an sdist does, needs none.
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
# Horovod is built with them, and compiled models.
command -v g++ >/dev/null 2>&1 || missing="$missing g++"
command -v make >/dev/null 2>&1 || missing="$missing make"
# Tests in a browser.
if ! command -v chromium >/dev/null 2>&1 && ! command -v chromium-browser >/dev/null 2>&1; then
    missing="$missing chromium"
fi
if ! ls /usr/share/fonts/truetype/dejavu >/dev/null 2>&1; then
    missing="$missing fonts-dejavu-core"
fi
# Tests of masters that are reached by SSH.
if ! command -v sshd >/dev/null 2>&1 && [ ! -x /usr/sbin/sshd ]; then
    missing="$missing openssh-server"
fi
command -v ssh >/dev/null 2>&1 || missing="$missing openssh-client"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing system packages:$missing"
    if { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; } \
        >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "Not installed:$missing (needs root and apt-get). Tests that use it are skipped; without Node.js 20 and npm the"
echo "JupyterLab extension cannot be built from a checkout."

#!/usr/bin/env bash
# Can this Python make the project's environment? Says in one line what is missing.
set -euo pipefail

python=${1:-python3}

if ! command -v "$python" >/dev/null; then
    echo "Python 3.11 or later is needed and '$python' is not there; name one: make PYTHON=python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    version=$("$python" -c 'import platform; print(platform.python_version())')
    echo "Python 3.11 or later is needed and '$python' is $version; name another: make PYTHON=python3.12" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "'$python' has no venv module; Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi

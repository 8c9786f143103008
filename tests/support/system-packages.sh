#!/usr/bin/env bash
# Installs the programs that the tests need beside Python: redis-server, Java (a real Kafka is a JVM),
# Maven (fetches Kafka's jars once), kcat (a client that is not ours) and msgfmt (the reference for PO
# files), promtool and prometheus (alerts and dashboards), go 1.19 or later (compiles the example in Go); for root on
# Linux ip as well (a test cuts links). Debian and Ubuntu as root: installed.
# Anywhere else: one line that says what to install.
set -euo pipefail

declare -A package_of=([redis-server]=redis-server [java]=default-jre-headless [mvn]=maven [kcat]=kcat [msgfmt]=gettext [promtool]=prometheus [go]=golang-go)
if [[ $(uname) == Linux ]] && ((EUID == 0)); then
    package_of[ip]=iproute2
fi

missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
if ((${#missing[@]} == 0)); then
    exit 0
fi

if command -v apt-get >/dev/null && ((EUID == 0)); then
    echo "Installing ${missing[*]} ..."
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
elif command -v apt-get >/dev/null; then
    echo "The tests need ${missing[*]}; run: sudo apt-get install ${missing[*]}" >&2
    exit 1
elif command -v brew >/dev/null; then
    echo "The tests need redis, a JDK, Maven, kcat, gettext, prometheus and Go; run: brew install redis openjdk maven kcat gettext prometheus go" >&2
    exit 1
else
    echo "The tests need the programs redis-server, java (17 or later), mvn, kcat, msgfmt, promtool, prometheus and go (1.19 or later) on the PATH" >&2
    exit 1
fi

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
#
# Installs what is missing and nothing else: Debian packages (tools/packages.txt) and the Python
# environment (.venv, from requirements.lock). A second run finds everything and ends at once.
set -eu
cd "$(dirname "$0")/.."

missing=
for package in $(grep -v '^#' tools/packages.txt); do
	dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
		missing="$missing $package"
done
if [ -n "$missing" ]; then
	echo "setup: installing Debian packages:$missing"
	sudo=
	if [ "$(id -u)" != 0 ]; then
		sudo=$(command -v sudo) || {
			echo "setup: not root and no sudo here; as root run: apt-get install$missing" >&2
			exit 2
		}
	fi
	$sudo apt-get update -qq
	# shellcheck disable=SC2086 # a list of names
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		$missing >/dev/null
	# Debian starts a server that it installs. Benchmarks start their own, and nobody asked for one.
	for server in nginx vsftpd; do
		case "$missing " in *" $server"*) $sudo systemctl disable -q --now $server 2>/dev/null || : ;; esac
	done
fi

stamp=.venv/requirements.lock
if ! cmp -s requirements.lock "$stamp" || [ pyproject.toml -nt "$stamp" ]; then
	echo "setup: installing the Python environment in .venv"
	[ -x .venv/bin/python ] || /usr/bin/python3 -m venv .venv
	.venv/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	.venv/bin/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	cp requirements.lock "$stamp"
fi

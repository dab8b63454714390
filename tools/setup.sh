#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
#
# Installs what is missing and nothing else: Debian packages (tools/packages.txt) and the Python
# environment (.venv, from requirements.lock). A second run finds everything and ends at once.
set -eu
cd "$(dirname "$0")/.."

installed() {
	dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

missing=
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
for package in $(awk -v release="$release" \
	'!/^#/ && ($2 == "" || $2 == release) { print $1 }' tools/packages.txt); do
	installed "$package" || missing="$missing $package"
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
	# Debian starts a server that it installs, now and at every boot. Benchmarks and tests start their
	# own, and nobody asked for one. A server that was here before stays as it is.
	servers=
	for server in nginx vsftpd bird coturn prometheus; do
		case "$missing " in *" $server"[\ 2-]*) installed "$server" || servers="$servers $server" ;; esac
	done
	policy=${DPKG_ROOT:-}/usr/sbin/policy-rc.d # asked before a service is started, by any init
	if [ -n "$servers" ] && [ ! -e "$policy" ]; then
		trap '$sudo rm -f "$policy"' EXIT
		trap 'exit 1' HUP INT TERM
		$sudo tee "$policy" >/dev/null <<-END
			#!/bin/sh
			for word; do case "$servers " in *" \${word%.service} "*) exit 101 ;; esac; done
		END
		$sudo chmod 755 "$policy"
	fi
	$sudo apt-get update -qq
	# shellcheck disable=SC2086 # a list of names
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		--no-remove $missing >/dev/null
	for server in $servers; do
		$sudo update-rc.d "$server" disable >/dev/null && $sudo invoke-rc.d "$server" stop >/dev/null ||
			echo "setup: $server may run now or at boot; to end that: systemctl disable --now $server" >&2
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

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
#
# What the fuzz targets reach of the files that each is for, lines and branches, as a Markdown
# table: by its seeds alone, and by all its inputs, which are the seeds and what fuzzing found:
#
#   tests/fuzz/coverage.sh [NAME ...]      FUZZ_SECONDS (0) each; FUZZ_CORPUS=DIR as for run.sh
#
# Builds build-coverage with clang. Needs llvm-cov and llvm-profdata (Debian: llvm). What the
# compiler put into no program, such as a function that nothing calls, is not counted.
set -eu

build=build-coverage
here=tests/fuzz

files_of() {
	case $1 in
	capture) echo dataplane/capture ;;
	cache) echo nf/cache ;;
	chain) echo dataplane/chain ;;
	changes) echo daemon/changes.c ;;
	control) echo daemon/plan_next_hop.c ;;
	frame) echo dataplane/convoy/walk.c dataplane/convoy/pack.c dataplane/convoy/may_be.h ;;
	gen_ring) echo gen/port/vhost_queue.c gen/port/vring.h ;;
	memif) echo dataplane/memif ;;
	nsh) echo nf/nsh ;;
	openflow) echo daemon/openflow/changes.c daemon/openflow/entries.c daemon/openflow/inband.c \
		daemon/openflow/multipart.c daemon/openflow/parse.c daemon/openflow/session.c \
		daemon/openflow/switch.c ;;
	packet) echo nf/firewall/transposed.h nf/firewall/read.h nf/firewall/scan* nf/l2fwd.c \
		nf/bridge.c nf/mac_table.h nf/router/validate* ;;
	plan) echo daemon/plan*.c ;;
	nat64) echo nf/nat64 ;;
	preload_ethdev) echo preload/ethdev/*.[ch] ;;
	preload_guest) echo preload/vhost/from_guest.c preload/vhost/to_guest.c ;;
	routes) echo nf/router/route_lines.c nf/router/route_text.c nf/router/routes.c \
		dataplane/packet/prefix.c ;;
	rules) echo nf/firewall/classbench.c nf/firewall/rules.c ;;
	srv6) echo nf/srv6 ;;
	trial) echo gen/spec/*.c ;;
	vhost) echo dataplane/vhost dataplane/socket ;;
	ids) echo nf/ids ;;
	vpn) echo nf/vpn ;;
	vring) echo dataplane/vring ;;
	*) echo "coverage: which files is fuzz_$1 for? Say so in $here/coverage.sh" >&2; return 1 ;;
	esac
}

# Two columns of the table: lines and branches that the inputs in DIR reach.   reached NAME DIR
reached() {
	program=$build/$here/fuzz_$1
	LLVM_PROFILE_FILE=$work/raw "$program" -runs=0 "$2" >"$work/log" 2>&1 ||
		{ cat "$work/log" >&2; return 1; }
	llvm-profdata merge -o "$work/profile" "$work/raw"
	llvm-cov report "$program" -instr-profile="$work/profile" >"$work/report"
	awk -v files="$(files_of "$1")" -v root="${PWD#/}/" '
		BEGIN { n = split(files, wanted, " ") }
		function is_wanted(name) {
			for (i = 1; i <= n; i++)
				if (name == wanted[i] || index(name, wanted[i] "/") == 1)
					return 1
			return 0
		}
		# Names are relative to the folder that all have in common: this one, or /.
		index($1, root) == 1 { $1 = substr($1, length(root) + 1) }
		is_wanted($1) { lines += $8; lines_missed += $9; branches += $11; missed += $12 }
		END {
			if (lines == 0 || branches == 0)
				exit 1
			printf " %d of %d (%d %%) | %d of %d (%d %%) |",
				lines - lines_missed, lines, 100 * (lines - lines_missed) / lines,
				branches - missed, branches, 100 * (branches - missed) / branches
		}' "$work/report"
}

if [ "${1-}" = --one ]; then
	name=$2
	files_of "$name" >/dev/null
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	corpus=${FUZZ_CORPUS:-$work}/$name
	mkdir -p "$corpus" "$work/seeds"
	cp "$here/corpus/$name"/* "$work/seeds/"
	seeds=$(reached "$name" "$work/seeds")
	[ "${FUZZ_SECONDS:-0}" = 0 ] || LLVM_PROFILE_FILE=$work/raw FUZZ_CORPUS=${corpus%/*} \
		"$here/run.sh" "$build" "$name" >&2
	cp "$work/seeds"/* "$corpus/"
	all=$(reached "$name" "$corpus")
	echo "| \`$name\` |$seeds$all"
	exit 0
fi

[ -z "${FUZZ_CORPUS-}" ] || export FUZZ_CORPUS="$(realpath -m "$FUZZ_CORPUS")"
cd "$(dirname "$0")/../.."
for tool in clang llvm-cov llvm-profdata; do
	command -v $tool >/dev/null ||
		{ echo "coverage: no $tool; install clang and llvm" >&2; exit 2; }
done
[ -f $build/build.ninja ] || CC=clang CXX=clang++ meson setup $build --buildtype=debugoptimized \
	-Dfuzz=true -Dtests=false -Dns3=disabled -Db_lundef=false \
	-Dc_args='-fprofile-instr-generate -fcoverage-mapping' \
	-Dc_link_args=-fprofile-instr-generate >/dev/null
ninja -C $build --quiet fuzz >&2

if [ $# -eq 0 ]; then
	set -- $(ls $here/fuzz_*.c | sed 's/.*fuzz_//; s/\.c$//')
fi
echo '| Target | Lines, seeds | Branches, seeds | Lines, all | Branches, all |'
echo '| --- | --- | --- | --- | --- |'
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
printf '%s\n' "$@" | xargs -P 2 -I NAME "$here/coverage.sh" --one NAME >"$rows" || exit 1
sort "$rows"

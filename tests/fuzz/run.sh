#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 The Convoy authors
#
# Runs every fuzz target of a build for a while, two at a time:
#
#   tests/fuzz/run.sh BUILDDIR [NAME ...]      FUZZ_SECONDS (1) each, or FUZZ_HOURS for all
#
# FUZZ_CORPUS=DIR goes on from the inputs in DIR/NAME/ and keeps new ones there.
# One line per target; "edges" is what libFuzzer calls cov. Exit code 1 if one of them found
# something: the input that shows it is kept, and the line says where; the last lines say it again.
# The seeds in tests/fuzz/corpus/ stay as they are.
set -eu

if [ "${1-}" != --one ]; then
	if [ $# -lt 1 ] || [ ! -d "$1/tests/fuzz" ]; then
		echo "usage: tests/fuzz/run.sh BUILDDIR [NAME ...]; make build-asan makes build-asan" >&2
		exit 2
	fi
	build=$1
	shift
	if [ $# -eq 0 ]; then
		set -- $(cd "$build/tests/fuzz" && ls -d fuzz_* 2>/dev/null | grep -v '\.p$' |
			sed 's/^fuzz_//')
	fi
	[ $# -gt 0 ] || { echo "fuzz: no targets in $build/tests/fuzz" >&2; exit 2; }
	if [ -n "${FUZZ_HOURS-}" ]; then
		FUZZ_SECONDS=$(awk -v hours="$FUZZ_HOURS" -v targets=$# 'BEGIN {
			seconds = hours ~ /^[0-9]*[.]?[0-9]+$/ ? int(hours * 3600 * 2 / targets) : 0
			if (seconds < 1)
				exit 1
			print seconds }') || {
			echo "fuzz: $FUZZ_HOURS hours: at least a second for each of $# targets: 0.01, 8" >&2
			exit 2
		}
		export FUZZ_SECONDS
		echo "fuzz: $# targets, $FUZZ_SECONDS s each, two at a time"
	fi
	found=$(mktemp)
	trap 'rm -f "$found"' EXIT
	export FUZZ_FOUND="$found"
	printf '%s\n' "$@" | xargs -P 2 -I NAME "$0" --one "$build" NAME && exit 0
	sort "$found" >&2
	exit 1
fi

build=$2
name=$3
seeds=$(dirname "$0")/corpus/$name
findings=$build/fuzz-findings
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
corpus=${FUZZ_CORPUS:-$work}/$name
mkdir -p "$findings" "$corpus"
[ ! -d "$seeds" ] || cp "$seeds"/* "$corpus/"

status=ok
ASAN_OPTIONS=abort_on_error=1:allocator_may_return_null=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	"$build/tests/fuzz/fuzz_$name" -max_total_time="${FUZZ_SECONDS:-1}" -max_len=4096 \
	-timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
	-artifact_prefix="$findings/$name-" "$corpus" >"$work/log" 2>&1 || status=FAILED

stat() {
	sed -n "s/^stat::$1: *//p" "$work/log" | tail -1
}
printf 'fuzz %-14s %10s runs %7s/s  corpus %5s  edges %5s  %s\n' "$name" \
	"$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" "$(ls "$corpus" | wc -l)" \
	"$(sed -n 's/^#.* cov: \([0-9]*\).*/\1/p' "$work/log" | tail -1)" "$status"
[ $status = ok ] && exit 0

cp "$work/log" "$findings/$name.log"
grep -m 3 -E 'ERROR|SUMMARY|runtime error|does not hold' "$work/log" >&2 || tail -5 "$work/log" >&2
echo "fuzz $name: log in $findings/$name.log, input: $(sed -n 's/.*Test unit written to //p' \
	"$work/log" | tail -1)" | tee -a "$FUZZ_FOUND" >&2
exit 1

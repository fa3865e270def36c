#!/bin/sh
# run.sh FUZZER SEEDS SECONDS: runs each seed, then fuzzes for a bounded time. What libFuzzer finds interesting goes to a copy of
# the seeds, so that a run changes nothing in the source tree; what makes it fail stays in the working directory.
set -eu
fuzzer=$1 seeds=$2 seconds=$3
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cp "$seeds"/* "$corpus"/

name=$(basename "$fuzzer")

# Its own exit status for a failure, 77, is meson's for a test that was skipped.
fuzz() {
	"$fuzzer" -error_exitcode=1 -timeout=10 "-artifact_prefix=$name-" "$@" "$corpus"
}

fuzz -runs=0
fuzz "-max_total_time=$seconds"

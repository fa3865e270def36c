# shellcheck shell=bash
# Messages for people go to standard error; standard output has only the requested output.

say() {
	printf 'cssl: %s\n' "$*" >&2
}

die() {
	say "$@"
	exit 1
}

# usage_error COMMAND MESSAGE
usage_error() {
	say "$1: $2 (./cssl $1 --help)"
	exit 2
}

# need_value OPTION VALUE...: the option has a value
need_value() {
	[[ $# -ge 2 && -n $2 ]] || { say "$1 needs a value"; exit 2; }
}

# quietly COMMAND...: shows its output only when it fails
quietly() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[[ $status -eq 0 ]] || echo "$output" >&2
	return $status
}

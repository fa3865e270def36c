# shellcheck shell=bash
# Messages for people go to standard error; standard output has only the requested output.

say() {
	printf 'cssl: %s\n' "$*" >&2
}

die() {
	say "$@"
	exit 1
}

# The front door, as it can be pasted here
front_door() {
	[[ $PWD -ef $root ]] && echo ./cssl || printf '%q\n' "$root/cssl"
}

# as_root COMMAND-LINE: as who reads it can paste it
as_root() {
	if [[ $EUID -eq 0 ]]; then
		echo "$1"
	elif command -v sudo >/dev/null; then
		echo "sudo $1"
	else
		echo "su -c ${1@Q}"
	fi
}

# usage_error COMMAND MESSAGE
usage_error() {
	say "$1: $2 ($(front_door) $1 --help)"
	exit 2
}

# asks_help ARGUMENT...
asks_help() {
	[[ " $* " == *" --help "* || " $* " == *" -h "* ]]
}

# need_value OPTION VALUE...: the option has a value
need_value() {
	[[ $# -ge 2 && -n $2 ]] || { say "$1 needs a value"; exit 2; }
}

# text <<-END: as `cat` would print it, but without a process
text() {
	local all
	IFS= read -r -d '' all || true
	printf '%s' "$all"
}

# quietly COMMAND...: shows its output only when it fails
quietly() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[[ $status -eq 0 ]] || echo "$output" >&2
	return $status
}

progress_s=10 # a line so often

# with_progress WHAT COMMAND...: quietly, but says now and then WHAT is being done, for how long, and how far it is: by the last line
# that COMMAND wrote to descriptor 9
with_progress() {
	local what=$1 status=0 lines ticker
	shift
	exec {lines}> >(progress_lines "$what")
	ticker=$!
	quietly "$@" 9>&"$lines" || status=$?
	exec {lines}>&-
	kill "$ticker" 2>/dev/null || true # something that COMMAND started may still have descriptor 9
	wait "$ticker" 2>/dev/null || true
	return $status
}

# progress_lines WHAT: apt's status lines (APT::Status-Fd) are said as "PERCENT %, TEXT", others as they are
progress_lines() {
	local what=$1 begin=$SECONDS next=$((SECONDS + progress_s)) line far="" status
	while status=0 && { IFS= read -r -t 1 line || status=$?; } && [[ $status -eq 0 || $status -gt 128 ]]; do # above 128: nothing came
		[[ $status -ne 0 ]] || far=$line
		[[ ! $far =~ ^(pm|dl)status:.*:([0-9]+)[.0-9]*:(.*)$ ]] || far="${BASH_REMATCH[2]} %, ${BASH_REMATCH[3]}"
		[[ $SECONDS -ge $next ]] || continue
		say "$what: ${far:+$far, }$((SECONDS - begin)) s"
		next=$((SECONDS + progress_s))
	done
}

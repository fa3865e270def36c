# shellcheck shell=bash
# reload: a new ragent process takes over all from the running one of a cluster, for a new release or a changed cluster file.

for part in plan daemons cluster_file; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

# Reads the state once: a zombie at a first look may be gone at a second.
process_runs() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) || return 1
	[[ $state && $state != [ZX]* ]]
}

# The new process has replaced the old one, or never will.
reload_settled() {
	[[ -e $1/r1.exit ]] || ! process_runs "$2"
}

# Reads the whole log: under load, other lines come after this one.
show_complaints() {
	grep -E ' (warning|error) ' "$1/r1.log" | tail -n 5 >&2 || true
}

# The old process goes on: write its process id back.
reload_undo() {
	echo "$2" >"$1/r1.pid.new" && mv "$1/r1.pid.new" "$1/r1.pid"
	rm -f "$1/r1.exit"
}

command_reload() {
	local dir="" old
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir) need_value "$@" && dir=$2 && shift ;;
		--help) echo "./cssl reload --dir DIR: replace the ragent of the cluster in DIR; no connection is closed" && return ;;
		*) usage_error reload "unknown option '$1'" ;;
		esac
		shift
	done
	[[ -e $dir/plan ]] || usage_error reload "--dir names the folder of a cluster"
	plan_read "$dir"
	dir=$(readlink -f "$dir")
	daemon_runs "$dir" r1 || die "no ragent runs in $dir"
	old=$(daemon_pid "$dir" r1)
	ragent_replace "$dir"
	wait_for "$ready_seconds" reload_settled "$dir" "$old" || say "the old ragent is still running"
	if process_runs "$old"; then
		reload_undo "$dir" "$old"
		show_last_lines "$dir"
		show_complaints "$dir"
		die "ragent was not replaced; the old process goes on serving"
	fi
	if [[ -e $dir/r1.exit ]]; then
		show_last_lines "$dir"
		die "ragent was replaced, and then the new process ended"
	fi
	cluster_json_write "$dir"
	say "ragent $(daemon_pid "$dir" r1) has replaced $old"
}

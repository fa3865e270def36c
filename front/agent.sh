# shellcheck shell=bash
# agent: starts one agent of a running cluster again, after it was killed by hand.

for part in plan daemons control cluster_file; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

command_agent() {
	local dir="" name=""
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir) need_value "$@" && dir=$2 && shift ;;
		--help) echo "./cssl agent --dir DIR NAME: start the agent NAME of the cluster in DIR again" && return ;;
		-*) usage_error agent "unknown option '$1'" ;;
		*) name=$1 ;;
		esac
		shift
	done
	[[ -e $dir/plan ]] || usage_error agent "--dir names the folder of a cluster"
	plan_read "$dir"
	[[ " ${plan[agents]} " == *" $name "* ]] || usage_error agent "'$name' is no agent of this cluster"
	dir=$(readlink -f "$dir")
	! daemon_runs "$dir" "$name" || die "$name is running"
	note_end "$dir" "$name"
	agent_start "$dir" "$name"
	wait_for "$ready_seconds" agents_are_ready "$dir" "$name" ||
		{ show_last_lines "$dir" && die "$name did not become ready"; }
	cluster_json_write "$dir"
}

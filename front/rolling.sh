# shellcheck shell=bash
# rolling: stops every agent of a running cluster in order and starts it again, one after another; connections stay.

for part in plan daemons control cluster_file; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

leave_seconds=${CSSL_LEAVE_SECONDS:-90} # longer than moves.drain_timeout

rolling_help() {
	cat <<-'HELP'
		./cssl rolling --dir DIR [NAME...]: restart the agents of the cluster in DIR one after another

		Sends SIGTERM to one agent. The agent ends when its connections are at other agents or resting. Then the agent is started
		again. When it is up and has met its peers, the next one follows. Without names: all agents. Stops at the first that fails.
	HELP
}

rolling_one() {
	local dir=$1 name=$2 began=$EPOCHREALTIME
	shift 2
	daemon_runs "$dir" "$name" || die "$name is not running"
	kill -TERM "$(daemon_pid "$dir" "$name")"
	wait_for "$leave_seconds" test -e "$dir/$name.exit" || die "$name did not leave within $leave_seconds s"
	! daemon_end_fault "$dir" "$name" || die "$name did not leave in order"
	local left=$EPOCHREALTIME
	agent_start "$dir" "$name"
	wait_for "$ready_seconds" agents_are_ready "$dir" "$@" ||
		{ show_last_lines "$dir" && die "$name did not become ready"; }
	say "$name: left in $(((${left/./} - ${began/./}) / 1000)) ms, ready again after $(((${EPOCHREALTIME/./} - ${left/./}) / 1000)) ms"
}

command_rolling() {
	local dir="" all names=() name
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir) need_value "$@" && dir=$2 && shift ;;
		--help) rolling_help && return ;;
		-*) usage_error rolling "unknown option '$1'" ;;
		*) names+=("$1") ;;
		esac
		shift
	done
	[[ -e $dir/plan ]] || usage_error rolling "--dir names the folder of a cluster"
	plan_read "$dir"
	dir=$(readlink -f "$dir")
	read -ra all <<<"${plan[agents]}"
	[[ ${#names[@]} -gt 0 ]] || names=("${all[@]}")
	for name in "${names[@]}"; do
		printf '%s\n' "${all[@]}" | grep -xF -- "$name" >/dev/null || usage_error rolling "'$name' is no agent of this cluster"
	done
	agents_are_ready "$dir" "${all[@]}" || die "not every agent is up, so no other one may be stopped now"
	for name in "${names[@]}"; do
		rolling_one "$dir" "$name" "${all[@]}"
	done
	cluster_json_write "$dir"
}

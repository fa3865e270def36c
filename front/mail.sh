# shellcheck shell=bash
# mail: starts smtpproxy of a running cluster again, and its Redis servers, after they were killed by hand.

for part in plan daemons control cluster_file; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

# Of a running smtpproxy with a queue: those of its Redis servers that ended.
mail_redis_start() {
	local dir=$1
	if daemon_runs "$dir" redis1 && daemon_runs "$dir" redis2; then
		die "smtpproxy is running"
	fi
	redis_start "$dir" redis1
	redis_start "$dir" redis2
}

command_mail() {
	local dir=""
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir) need_value "$@" && dir=$2 && shift ;;
		--help) echo "./cssl mail --dir DIR: start smtpproxy of the cluster in DIR again, or its Redis servers" && return ;;
		*) usage_error mail "unknown option '$1'" ;;
		esac
		shift
	done
	[[ -e $dir/plan ]] || usage_error mail "--dir names the folder of a cluster"
	plan_read "$dir"
	[[ ${plan[mail_port]:-} ]] || usage_error mail "this cluster has no smtpproxy: it was not started with --mail"
	dir=$(readlink -f "$dir")
	if daemon_runs "$dir" mail && [[ ! ${plan[mail_queue]:-} ]]; then
		die "smtpproxy is running"
	elif daemon_runs "$dir" mail; then
		mail_redis_start "$dir"
	else
		note_end "$dir" mail
		mail_start "$dir"
	fi
	cluster_json_write "$dir"
}

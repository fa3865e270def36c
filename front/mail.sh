# shellcheck shell=bash
# mail: starts smtpproxy of a running cluster again, after it was killed by hand.

for part in plan daemons control cluster_file; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

command_mail() {
	local dir=""
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir) need_value "$@" && dir=$2 && shift ;;
		--help) echo "./cssl mail --dir DIR: start smtpproxy of the cluster in DIR again" && return ;;
		*) usage_error mail "unknown option '$1'" ;;
		esac
		shift
	done
	[[ -e $dir/plan ]] || usage_error mail "--dir names the folder of a cluster"
	[[ $(plan_get "$dir" mail_relay) ]] || usage_error mail "this cluster has no smtpproxy: it was not started with --mail"
	dir=$(readlink -f "$dir")
	! daemon_runs "$dir" mail || die "smtpproxy is running"
	note_end "$dir" mail
	mail_start "$dir"
	cluster_json_write "$dir"
}

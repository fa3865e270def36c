# shellcheck shell=bash
# down: stops a cluster, and fails if any daemon did not stop in order.

for part in plan daemons demo_folder; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

command_down() {
	local dir
	dir=$(demo_folder)
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir) need_value "$@" && dir=$2 && shift ;;
		--help) echo "./cssl down [--dir DIR]: stop the cluster in DIR (without it: the demo's)" && return ;;
		*) usage_error down "unknown option '$1'" ;;
		esac
		shift
	done
	[[ -e $dir/plan ]] || die "there is no cluster in $dir"
	plan_read "$dir"
	dir=$(readlink -f "$dir")
	daemons_stop "$dir" || die "not all daemons stopped in order; their logs are in $dir"
	rm -f "$dir/cluster.json"
}

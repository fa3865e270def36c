# shellcheck shell=bash
# bench: packages and a release build, then an experiment of bench/experiments.

# shellcheck source=front/build.sh
. "$root/front/build.sh"

command_bench() {
	if [[ " $* " != *" --help "* && $# -gt 0 ]]; then
		packages_need "${packages_bench[@]}"
		[[ ${CSSL_BUILD_DIR:-} ]] || build_release
		[[ $1 != mail && $1 != mail_queue ]] || { mail_get "$tools" && postfix_get "$tools"; }
	fi
	[[ $# -gt 0 ]] || set -- --help
	PYTHONPATH=$root /usr/bin/python3 -m bench.experiments "$@"
}

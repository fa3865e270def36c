# shellcheck shell=bash
# bench: packages and a release build, then an experiment of bench/experiments.

# shellcheck source=front/build.sh
. "$root/front/build.sh"

command_bench() {
	[[ $# -gt 0 ]] || set -- --help
	export PYTHONPATH=$root
	understand -c 'from bench.experiments.__main__ import parse; parse()' "$@"
	packages_need "${packages_bench[@]}"
	[[ ${CSSL_BUILD_DIR:-} ]] || build_release
	[[ $1 != mail && $1 != mail_queue ]] || { mail_get "$tools" && postfix_get "$tools"; }
	[[ "${*:1:2}" != "mail sources" ]] || go_source_get "$tools"
	/usr/bin/python3 -m bench.experiments "$@"
}

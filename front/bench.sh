# shellcheck shell=bash
# bench: packages and a release build, then an experiment of bench/experiments.

# shellcheck source=front/build.sh
. "$root/front/build.sh"

# bench_tools EXPERIMENT ARGUMENT...: who has a build of his own, such as a test, has these, too
bench_tools() {
	build_turn "$tools"
	peers_get "$tools"
	[[ $1 != mail* ]] || mail_get "$tools"
	[[ $1 != mail || " $* " != *" sources "* ]] || go_source_get "$tools"
	build_turn_over "$tools"
}

command_bench() {
	[[ $# -gt 0 ]] || set -- --help
	export PYTHONPATH=$root
	understand -c 'from bench.experiments.__main__ import parse; parse()' "$@"
	packages_need "${packages_bench[@]}"
	if [[ -z ${CSSL_BUILD_DIR:-} ]]; then
		build_release
		bench_tools "$@"
	fi
	PATH=$tools:$PATH /usr/bin/python3 -m bench.experiments "$@"
}

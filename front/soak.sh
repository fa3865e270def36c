# shellcheck shell=bash
# soak: a cluster under load, with one random fault after another, for a chosen time (tests/soak/soak.py).

# shellcheck source=front/build.sh
. "$root/front/build.sh"

# Uses the build for tests, which has fault points and the nonce audit.
soak_build() {
	packages_need "${packages_build[@]}" "${packages_run[@]}" "${packages_test_build[@]}" tcpdump
	configure_build_test && build_run "$root/build-test" "${programs[@]}" tests/lib/tlsload tests/lib/tlsprobe
}

command_soak() {
	understand "$root/tests/soak/options.py" "$@"
	if [[ -z ${CSSL_BUILD_DIR:-} ]]; then
		soak_build
		export CSSL_BUILD_DIR=$root/build-test
	fi
	without_turns /usr/bin/python3 "$root/tests/soak/soak.py" "$@"
}

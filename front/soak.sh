# shellcheck shell=bash
# soak: a cluster under load, one fault after another at random, for as long as one likes (tests/soak/soak.py).

# shellcheck source=front/build.sh
. "$root/front/build.sh"

# Fault points and the nonce audit are needed: the build for tests.
soak_build() {
	packages_need "${packages_build[@]}" "${packages_run[@]}" check tcpdump
	build_configure "$root/build-test" -Dtest_points=true
	build_run "$root/build-test"
}

command_soak() {
	if [[ -z ${CSSL_BUILD_DIR:-} ]]; then
		soak_build
		export CSSL_BUILD_DIR=$root/build-test
	fi
	/usr/bin/python3 "$root/tests/soak/soak.py" "$@"
}

# shellcheck shell=bash
# test --coverage: which lines and branches of the product units, seeds of fuzzers and scenarios run, all of them together. Clang maps
# its counters into a file, so that those of killed processes count, too. Each test file of scenarios has profiles of its own.

# With these, clang's programs keep their counters in files while they run.
coverage_options="-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation=true"

configure_build_coverage() {
	CC=clang test_configure build-coverage "-Dc_args=$coverage_options" -Dc_link_args=-fprofile-instr-generate
}

test_coverage() {
	local folder=$root/build-coverage PATH=$tools:$PATH
	export CSSL_PROFILES=$folder/profiles
	rm -rf "$CSSL_PROFILES"
	/usr/bin/python3 "$root/tests/lib/profiles.py" "$CSSL_PROFILES" || die "no folder for profiles: $CSSL_PROFILES"
	test_download
	build_release || die "the programs cannot be built"
	test_build build-coverage
	test_is_built build-coverage || die "the programs of build-coverage cannot be built"
	mkdir "$CSSL_PROFILES/units"
	LLVM_PROFILE_FILE=$CSSL_PROFILES/units/%m%c.profraw test_units build-coverage unit fuzz
	test_beside_others build-coverage once -m "not alone"
	test_scenarios build-coverage alone
	/usr/bin/python3 "$root/tests/lib/tally.py" "${test_results[@]}" || say "what failed may have run less than it does otherwise"
	/usr/bin/python3 "$root/tests/lib/coverage_page.py" "$folder" "$root/bench/results"
}

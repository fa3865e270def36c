# shellcheck shell=bash
# test --full: the scenarios at the length and with the limits that it takes to believe them; minutes each, where every run takes
# seconds. The page of bench/results keeps the last result of each file.

full_seconds=14400 # at most, of each of its two steps

# test_full FILE...: these of tests/scenario; without any, all of them
test_full() {
	local files=() name
	for name; do
		name=scenario/$(basename "$name" .py).py
		[[ -f $root/tests/$name ]] || usage_error "test --full" "there is no tests/$name"
		files+=("$root/tests/$name")
	done
	[[ ${#files[@]} -gt 0 ]] || files=("$root/tests/scenario")
	local PATH=$tools:$PATH
	test_download
	test_build build-test
	test_is_built build-test || die "the programs of build-test cannot be built"
	say "several at a time, then those that measure; each file says its result in bench/results/full.md"
	full_run full "not alone" "${files[@]}" -n "$(nproc)" --dist loadgroup
	full_run full-alone "alone" "${files[@]}"
	/usr/bin/python3 "$root/tests/lib/full_page.py" "$root/bench/results" "$root/build-test/full.xml" "$root/build-test/full-alone.xml"
}

# full_run RESULTS MARKERS PYTEST-OPTION...: status 5 is that none of them has such a marker
full_run() {
	local results=$root/build-test/$1.xml markers=$2
	shift 2
	rm -f "$results"
	CSSL_FULL=1 CSSL_BUILD_DIR=$root/build-test timeout $full_seconds /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider \
		--junitxml="$results" -m "$markers" "$@" >&2 || true
}

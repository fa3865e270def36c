# shellcheck shell=bash
# test: everything that CI runs. Three builds (gcc with test points; clang with ASan and UBSan; clang with libFuzzer), each with
# its tests. A part that fails does not stop the others; a few scenarios that fail get a second look; the last line sums up all.

# shellcheck source=front/build.sh
. "$root/front/build.sh"

test_results=()
test_broken=()

# test_build FOLDER MESON-OPTION...
test_build() {
	local folder=$root/$1
	shift
	say "building $(basename "$folder")"
	build_configure "$folder" -Dtest_points=true "$@" && quietly ninja -C "$folder" && return
	test_broken+=("build of $(basename "$folder")")
	return 1
}

# test_units FOLDER SUITE...
test_units() {
	local folder=$root/$1 suite suites=()
	shift
	for suite; do
		suites+=(--suite "$suite")
	done
	say "$(basename "$folder"): $*"
	rm -f "$folder/meson-logs/testlog.json"
	meson test -C "$folder" --no-rebuild --print-errorlogs "${suites[@]}" >&2 || true
	test_results+=(--meson "$folder/meson-logs/testlog.json")
}

# test_python FOLDER NAME RESULTS PYTEST-OPTION...: the tests of tests/NAME, on the programs of that build
test_python() {
	local folder=$root/$1 name=$2 results=$root/$1/$3.xml
	say "$1: $3"
	shift 3
	rm -f "$results"
	CSSL_BUILD_DIR=$folder timeout 1800 /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider \
		--junitxml="$results" "$@" "$root/tests/$name" >&2 || true
	test_results+=(--junit "$results")
}

# test_again FOLDER RESULTS: once more, one after another, what failed there; tests/lib/second_look.py says where that helps
test_again() {
	local folder=$root/$1 results=$root/$1/$2-again.xml tests
	mapfile -t tests < <(/usr/bin/python3 "$root/tests/lib/second_look.py" "$folder/$2.xml")
	[[ ${#tests[@]} -gt 0 ]] || return 0
	say "$1: $2, a second look at ${tests[*]}"
	(cd "$root" && CSSL_BUILD_DIR=$folder timeout 900 /usr/bin/python3 -m pytest -q -p no:cacheprovider \
		--junitxml="$results" "${tests[@]}") >&2 || true
	test_results+=(--again "$results")
}

# test_scenarios FOLDER NAME PYTEST-OPTION...: several at a time, for they wait more than they work
test_scenarios() {
	local folder=$1 name=$2
	shift 2
	test_python "$folder" scenario "$name" -n "$((2 * $(nproc) + 1))" --dist loadgroup "$@"
	test_again "$folder" "$name"
}

# Of the fuzzing build only the fuzzers are compiled.
test_fuzzers() {
	local folder=$root/build-fuzz targets
	say "building build-fuzz"
	CC=clang build_configure "$folder" -Dtest_points=true -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false ||
		{ test_broken+=("setup of build-fuzz"); return; }
	quietly ninja -C "$folder" build.ninja || true # the list of fuzzers may have grown
	mapfile -t targets < <(ninja -C "$folder" -t targets all | sed -n 's|^\(tests/fuzz/fuzz_[a-z0-9_]*\): .*|\1|p')
	quietly ninja -C "$folder" "${targets[@]}" || { test_broken+=("build of build-fuzz"); return; }
	test_units build-fuzz fuzz
}

test_sanitized() {
	local ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	export ASAN_OPTIONS UBSAN_OPTIONS
	CC=clang test_build build-asan -Db_sanitize=address,undefined -Db_lundef=false || return 0
	test_units build-asan unit fuzz-seeds
	test_scenarios build-asan scenario # all: what measures has patience here
}

test_plain() {
	test_build build-test || return 0
	test_python build-test house house
	test_units build-test unit fuzz-seeds
	test_scenarios build-test scenario -m "not alone"
	test_python build-test scenario scenario-alone -m alone
	test_again build-test scenario-alone
}

command_test() {
	[[ $# -eq 0 ]] || { echo "./cssl test: units, fuzzers and scenarios, plain and under sanitizers; no options"; return; }
	packages_need "${packages_build[@]}" "${packages_run[@]}" "${packages_test[@]}"
	promtool_get "$root/build-test/tools" || test_broken+=("promtool")
	python_get "$root/build-test/tools/python" || test_broken+=("packages of tests/requirements.txt")
	local PATH=$root/build-test/tools:$PATH
	build_release || test_broken+=("build of build")
	test_plain
	test_sanitized
	test_fuzzers
	/usr/bin/python3 "$root/tests/lib/tally.py" "${test_results[@]}" "${test_broken[@]/#/--broken=}"
}

# shellcheck shell=bash
# test: everything that CI runs. Three builds (gcc with test points; clang with ASan and UBSan; clang with libFuzzer), each with
# its tests. A failed part does not stop the others. Failed scenarios run once more, if they are few. The last line sums up.

# shellcheck source=front/build.sh
. "$root/front/build.sh"
# shellcheck source=front/test_full.sh
. "$root/front/test_full.sh"
# shellcheck source=front/test_coverage.sh
. "$root/front/test_coverage.sh"
# shellcheck source=front/test_distributions.sh
. "$root/front/test_distributions.sh"

test_results=()
test_broken=()

# The functions of the steps, and a text for each. After a failed build its tests are left out.
test_steps=(
	"prepare          packages, tools, and the programs as they are installed"
	"plain_build      a build with fault points"
	"house            house rules"
	"plain_units      units and fuzzers' seeds"
	"plain_scenarios  scenarios, several at a time"
	"plain_alone      scenarios that measure, one at a time"
	"asan_build       a build with sanitizers"
	"asan_units       units and fuzzers' seeds, sanitized"
	"asan_scenarios   scenarios, sanitized"
	"fuzz_build       a build of the fuzzers"
	"fuzzers          fuzzers, each for a moment"
)

# test_build FOLDER MESON-OPTION...
test_build() {
	local folder=$root/$1
	shift
	build_configure "$folder" -Dtest_points=true -Dwerror=true "$@" && build_run "$folder" && return
	test_broken+=("build of $(basename "$folder")")
}

test_is_built() {
	[[ " ${test_broken[*]} " != *" build of $1 "* ]]
}

# meson_test FOLDER NAME OPTION...: results in FOLDER/meson-logs/NAME.json; with time limits for a machine that has other work, of a
# whole unit (meson's) and of each fact (Check's)
meson_test() {
	local folder=$1 name=$2
	shift 2
	rm -f "$folder/meson-logs/$name.json"
	CK_TIMEOUT_MULTIPLIER=4 meson test -C "$folder" --no-rebuild --print-errorlogs --logbase "$name" --timeout-multiplier 4 "$@" >&2 ||
		true
}

# test_units FOLDER SUITE...: several at a time, because the longest mostly wait
test_units() {
	local folder=$root/$1 suite suites=()
	test_is_built "$1" || return 0
	shift
	for suite; do
		suites+=(--suite "$suite")
	done
	meson_test "$folder" testlog --num-processes "$((3 * $(nproc)))" "${suites[@]}"
	test_results+=(--meson "$folder/meson-logs/testlog.json")
	test_units_again "$folder"
}

# test_units_again FOLDER: as test_again does for scenarios
test_units_again() {
	local folder=$1 tests
	mapfile -t tests < <(/usr/bin/python3 "$root/tests/lib/second_look.py" "$folder/meson-logs/testlog.json")
	[[ ${#tests[@]} -gt 0 ]] || return 0
	say "$(basename "$folder"): units, a second look at ${tests[*]}"
	meson_test "$folder" again --num-processes 1 "${tests[@]}"
	test_results+=(--meson-again "$folder/meson-logs/again.json")
}

# test_python FOLDER NAME RESULTS PYTEST-OPTION...: the tests of tests/NAME, on the programs of that build
test_python() {
	local folder=$root/$1 name=$2 results=$root/$1/$3.xml
	test_is_built "$1" || return 0
	shift 3
	rm -f "$results"
	CSSL_BUILD_DIR=$folder timeout 1800 /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider \
		--junitxml="$results" "$@" "$root/tests/$name" >&2 || true
	test_results+=(--junit "$results")
}

# test_again FOLDER RESULTS: runs failed tests once more, one after another; tests/lib/second_look.py selects them
test_again() {
	local folder=$root/$1 results=$root/$1/$2-again.xml tests
	test_is_built "$1" || return 0
	mapfile -t tests < <(/usr/bin/python3 "$root/tests/lib/second_look.py" "$folder/$2.xml")
	[[ ${#tests[@]} -gt 0 ]] || return 0
	say "$1: $2, a second look at ${tests[*]}"
	(cd "$root" && CSSL_BUILD_DIR=$folder timeout 900 /usr/bin/python3 -m pytest -q -p no:cacheprovider \
		--junitxml="$results" "${tests[@]}") >&2 || true
	test_results+=(--again "$results")
}

# test_scenarios FOLDER NAME PYTEST-OPTION...: several at a time, because they mostly wait: a process of them needs a third of a
# processor (0.27 to 0.31; sanitized 0.30 to 0.34)
test_scenarios() {
	local folder=$1 name=$2
	shift 2
	CSSL_SECOND_LOOK=follows test_python "$folder" scenario "$name" --tb=no -n "$((3 * $(nproc)))" --dist loadgroup "$@"
	test_again "$folder" "$name"
}

test_tools() {
	packages_need "${packages_build[@]}" "${packages_run[@]}" "${packages_test[@]}"
	promtool_get "$root/build-test/tools" || test_broken+=("promtool")
	postfix_get "$root/build-test/tools" || test_broken+=("smtp-source and smtp-sink")
	mail_get "$root/build-test/tools" || test_broken+=("mail servers")
	python_get "$root/build-test/tools/python" || test_broken+=("packages of tests/requirements.txt")
}

test_prepare() {
	test_tools
	build_release || test_broken+=("build of build")
}

test_plain_build() {
	test_build build-test
}

test_house() {
	test_python build-test house house
}

test_plain_units() {
	test_units build-test unit fuzz-seeds
}

test_plain_scenarios() {
	test_scenarios build-test scenario -m "not alone"
}

test_plain_alone() {
	CSSL_SECOND_LOOK=follows test_python build-test scenario scenario-alone --tb=no -m alone
	test_again build-test scenario-alone
}

test_asan_build() {
	CC=clang test_build build-asan -Db_sanitize=address,undefined -Db_lundef=false
}

# sanitized COMMAND...
sanitized() {
	ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$@"
}

test_asan_units() {
	sanitized test_units build-asan unit fuzz-seeds
}

test_asan_scenarios() {
	sanitized test_scenarios build-asan scenario # all: what measures has patience here
}

# The fuzzing build compiles the fuzzers only.
test_fuzz_build() {
	local folder=$root/build-fuzz targets
	CC=clang build_configure "$folder" -Dtest_points=true -Dwerror=true -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false &&
		quietly ninja -C "$folder" build.ninja && # the list of fuzzers may have grown
		mapfile -t targets < <(ninja -C "$folder" -t targets all | sed -n 's|^\(tests/fuzz/fuzz_[a-z0-9_]*\): .*|\1|p') &&
		build_run "$folder" "${targets[@]}" && return
	test_broken+=("build of build-fuzz")
}

test_fuzzers() {
	test_units build-fuzz fuzz
}

# Test builds can make mistakes on purpose: the nonce audit has to notice each of them.
test_mutants() {
	packages_need "${packages_build[@]}" "${packages_run[@]}" "${packages_test[@]}"
	test_build build-test
	CSSL_MUTANTS=all test_python build-test scenario/test_mutants.py mutants -n "$((2 * $(nproc)))"
	/usr/bin/python3 "$root/tests/lib/mutants.py" "$root/build-test/mutants.xml" || true
	/usr/bin/python3 "$root/tests/lib/tally.py" "${test_results[@]}" "${test_broken[@]/#/--broken=}"
}

test_help() {
	cat <<-'HELP'
		./cssl test             units, fuzzers and scenarios, plain and under sanitizers
		./cssl test --mutants   only one check: the nonce audit has to notice each mistake that breaks a law
		./cssl test --full [FILE...]
		                        only the scenarios (all, or these files) at full length, which takes hours; bench/results/full.md
		                        keeps the last result of each file
		./cssl test --coverage  only a page, bench/results/coverage.md: the lines and branches that no unit, seed or scenario runs
		./cssl test --distributions [--demo] [SUITE...]
		                        only README's two commands, on bare roots of Debian 12 (bookworm) and 13 (trixie); as root
	HELP
}

test_all() {
	local PATH=$root/build-test/tools:$PATH row step what number=0
	say "${#test_steps[@]} steps, some 45 minutes on two cores"
	for row in "${test_steps[@]}"; do
		read -r step what <<<"$row"
		say "step $((++number)) of ${#test_steps[@]}, after $((SECONDS / 60)) min: $what"
		"test_$step"
	done
	/usr/bin/python3 "$root/tests/lib/tally.py" "${test_results[@]}" "${test_broken[@]/#/--broken=}"
}

command_test() {
	case ${1:-} in
	"") test_all ;;
	--mutants) test_mutants ;;
	--full) test_full "${@:2}" ;;
	--coverage) test_coverage ;;
	--distributions) test_distributions "${@:2}" ;;
	--help) test_help ;;
	*) usage_error test "unknown option '$1'" ;;
	esac
}

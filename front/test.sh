# shellcheck shell=bash
# test: everything that CI runs. Two builds with tests: clang with ASan, UBSan and libFuzzer; gcc. All tests run sanitized; without
# sanitizers run those that a sanitizer changes, and one variant of each scenario. A failed part does not stop the others. Failed tests
# run once more, if they are few. The last line sums up.

# shellcheck source=front/build.sh
. "$root/front/build.sh"
# shellcheck source=front/test_part.sh
. "$root/front/test_part.sh"
# shellcheck source=front/test_full.sh
. "$root/front/test_full.sh"
# shellcheck source=front/test_coverage.sh
. "$root/front/test_coverage.sh"
# shellcheck source=front/test_faults.sh
. "$root/front/test_faults.sh"
# shellcheck source=front/test_distributions.sh
. "$root/front/test_distributions.sh"

# Each of the processes that share the scenarios would compile all of them anew. What they keep is not beside the sources.
export PYTHONPYCACHEPREFIX=$root/build-test/pycache
unset PYTHONDONTWRITEBYTECODE

test_minutes=25
test_results=()
test_broken=()
test_times=()

# The functions of the steps, and a text for each. After a failed build its tests are left out.
test_steps=(
	"download         packages and tools"
	"release_build    the programs as they are installed"
	"asan_build       a build with sanitizers"
	"asan_units       units and fuzzers (each for a moment), sanitized, beside the build without sanitizers"
	"house            house rules"
	"plain_units      units that a sanitizer changes"
	"plain_alone      scenarios that measure, one or two at a time"
	"asan_scenarios   scenarios, sanitized"
	"plain_scenarios  scenarios that a sanitizer changes, and one variant of each"
)

configure_build_asan() {
	CC=clang test_configure build-asan -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false "$@"
}

# test_build FOLDER: what is built by default there. Meson's own default has the programs of all tests besides.
test_build() {
	local targets
	"configure_${1//-/_}" && quietly ninja -C "$root/$1" build.ninja &&
		mapfile -t targets < <(/usr/bin/python3 "$root/tests/lib/default_targets.py" "$root/$1") &&
		build_run "$root/$1" "${targets[@]}" && return
	test_broken+=("build of $1")
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
	CK_TIMEOUT_MULTIPLIER=4 without_turns meson test -C "$folder" --no-rebuild --print-errorlogs --logbase "$name" --timeout-multiplier 4 "$@" >&2 ||
		true
}

# test_units FOLDER SUITE...: several at a time, because the longest mostly wait
test_units() {
	local folder=$root/$1 name=$2 suite suites=()
	test_is_built "$1" || return 0
	shift
	for suite; do
		suites+=(--suite "$suite")
	done
	meson_test "$folder" "$name" --num-processes "$((4 * $(nproc)))" "${suites[@]}"
	test_results+=(--meson "$folder/meson-logs/$name.json")
	test_units_again "$folder" "$name"
}

# test_units_again FOLDER NAME: as test_again does for scenarios
test_units_again() {
	local folder=$1 tests
	mapfile -t tests < <(/usr/bin/python3 "$root/tests/lib/second_look.py" "$folder/meson-logs/$2.json")
	[[ ${#tests[@]} -gt 0 ]] || return 0
	say "$(basename "$folder"): units, a second look at ${tests[*]}"
	meson_test "$folder" "$2-again" --num-processes 1 "${tests[@]}"
	test_results+=(--meson-again "$folder/meson-logs/$2-again.json")
}

# test_python FOLDER RESULTS PYTEST-OPTION...: on the programs of that build
test_python() {
	local folder=$root/$1 results=$root/$1/$2.xml
	test_is_built "$1" || return 0
	shift 2
	rm -f "$results"
	CSSL_BUILD_DIR=$folder without_turns timeout 1800 /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider \
		--junitxml="$results" "$@" >&2 || true
	test_results+=(--junit "$results")
}

# test_again FOLDER RESULTS: runs failed tests once more, one after another; tests/lib/second_look.py selects them
test_again() {
	local folder=$root/$1 results=$root/$1/$2-again.xml tests
	test_is_built "$1" || return 0
	mapfile -t tests < <(/usr/bin/python3 "$root/tests/lib/second_look.py" "$folder/$2.xml")
	[[ ${#tests[@]} -gt 0 ]] || return 0
	say "$1: $2, a second look at ${tests[*]}"
	(cd "$root" && CSSL_BUILD_DIR=$folder without_turns timeout 900 /usr/bin/python3 -m pytest -q -p no:cacheprovider \
		--junitxml="$results" "${tests[@]}") >&2 || true
	test_results+=(--again "$results")
}

# test_scenarios FOLDER WHICH PYTEST-OPTION...: those that tests/lib/selection.py selects; failed ones get a second look
test_scenarios() {
	local folder=$1 which=$2
	shift 2
	CSSL_TESTS=$which CSSL_SECOND_LOOK=follows test_python "$folder" "scenario-$which" --tb=short "$@" "$root/tests/scenario"
	test_again "$folder" "scenario-$which"
}

# Several at a time, because they wait much: eight processes left a fifth of two processors idle, twelve leave nothing
test_beside_others() {
	test_scenarios "$@" -n "$((6 * $(nproc)))" --dist loadgroup
}

test_download() {
	packages_need "${packages_build[@]}" "${packages_run[@]}" "${packages_test[@]}"
	build_turn "$tools"
	promtool_get "$tools" || test_broken+=("promtool")
	peers_get "$tools" || test_broken+=("other servers")
	mail_get "$tools" || test_broken+=("mail servers")
	python_get "$tools/python" || test_broken+=("packages of tests/requirements.txt")
}

test_release_build() {
	build_release || test_broken+=("build of build")
}

test_asan_build() {
	test_build build-asan
}

test_plain_build() {
	test_build build-test
}

test_house() {
	test_python build-test house -n "$(nproc)" "$root/tests/house"
}

# sanitized COMMAND...: each thread has 64 KiB for each size of frames that returned, in place of 1 MiB: 8 % less of the processors
sanitized() {
	ASAN_OPTIONS=detect_stack_use_after_return=1:max_uar_stack_size_log=16:strict_string_checks=1 \
		UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$@"
}

# Most of the time, units wait.
test_asan_units() {
	local build broken=${#test_broken[@]}
	build_turn "$root/build-test"
	(renice -n 10 $BASHPID >/dev/null && test_plain_build && [[ ${#test_broken[@]} -eq $broken ]]) &
	build=$!
	sanitized test_units build-asan unit fuzz
	wait $build || test_broken+=("build of build-test")
}

test_plain_units() {
	test_units build-test plain
}

test_plain_alone() {
	test_scenarios build-test alone -m "not quiet"
	test_scenarios build-test quiet -n 2 --dist loadgroup
}

# What measures has patience here. Clients have no sanitizers: the daemons are tested.
test_asan_scenarios() {
	CSSL_PLAIN_TOOLS=$root/build-test sanitized test_beside_others build-asan sanitized
}

test_plain_scenarios() {
	test_beside_others build-test plain
}

# Test builds can make mistakes on purpose: the nonce audit has to notice each of them.
test_mutants() {
	test_download
	test_plain_build
	CSSL_MUTANTS=all test_python build-test mutants -n "$((2 * $(nproc)))" "$root/tests/scenario/test_mutants.py"
	/usr/bin/python3 "$root/tests/lib/mutants.py" "$root/build-test/mutants.xml" || true
	test_sum
}

# What the parts took, and the sum of their results
test_sum() {
	/usr/bin/python3 "$root/tests/lib/times.py" "$root/build-test/times" "${test_times[@]/#/--step=}" "${test_results[@]}" >&2
	/usr/bin/python3 "$root/tests/lib/tally.py" "${test_results[@]}" "${test_broken[@]/#/--broken=}"
}

test_all() {
	local PATH=$tools:$PATH row step what number=0 begin
	say "${#test_steps[@]} steps, some $test_minutes minutes on two cores"
	for row in "${test_steps[@]}"; do
		read -r step what <<<"$row"
		say "step $((++number)) of ${#test_steps[@]}, after $((SECONDS / 60)) min: $what"
		begin=$SECONDS
		"test_$step"
		test_times+=("$what=$((SECONDS - begin))")
	done
	test_sum
}

command_test() {
	case ${1:-} in
	"") test_all ;;
	--mutants) test_mutants ;;
	--full) test_full "${@:2}" ;;
	--coverage) test_coverage ;;
	--faults) test_faults "${@:2}" ;;
	--distributions) test_distributions "${@:2}" ;;
	--sanitized) [[ $# -gt 1 ]] || usage_error test "--sanitized needs a FILE or PATTERN" && sanitized test_part build-asan "${@:2}" ;;
	-*) usage_error test "unknown option '$1'" ;;
	*) test_part build-test "$@" ;;
	esac
}

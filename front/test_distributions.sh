# shellcheck shell=bash
# test --distributions: bare roots of the Debian releases that README names, made by debootstrap, and README's two commands in each, as
# root; the demo also as another user, who has a clone of his own and can install nothing. From this machine they use only the
# processors, the network and a clone of this repository. Needs root.

distributions=(bookworm trixie)
distribution_demo_seconds=1800 # at most, of ./cssl demo
distribution_test_seconds=7200

# Within namespaces of its own: what it mounts is gone with the last process.
# shellcheck disable=SC2016 # the inner shell expands it
distribution_shell='
	tree=$1 && shift
	mount --bind "$tree" "$tree" && cd "$tree" || exit # it has to be a mount point where mounts are made private
	mount -t proc proc "$tree/proc" && mount -t sysfs -o ro sysfs "$tree/sys" || exit
	mount -t tmpfs -o mode=755 dev "$tree/dev" && mkdir "$tree/dev/shm" "$tree/dev/pts" || exit
	mount -t tmpfs -o mode=1777 shm "$tree/dev/shm" || exit
	mount -t devpts -o newinstance,ptmxmode=666 pts "$tree/dev/pts" && ln -s pts/ptmx "$tree/dev/ptmx" || exit
	for name in null zero full random urandom tty; do
		touch "$tree/dev/$name" && mount --bind "/dev/$name" "$tree/dev/$name" || exit
	done
	ln -s /proc/self/fd "$tree/dev/fd"
	for number in 0 1 2; do
		ln -s "/proc/self/fd/$number" "$tree/dev/$(echo stdin stdout stderr | cut -d " " -f $((number + 1)))"
	done
	[[ -z ${PIP_CERT:-} ]] || install -m 644 "$PIP_CERT" "$tree/etc/pip-trusts.crt" || exit # a proxy may have its own authority
	exec chroot "$tree" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		${PIP_CERT:+PIP_CERT=/etc/pip-trusts.crt} ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} "$@"'

# distribution_enter TREE SECONDS COMMAND...
distribution_enter() {
	local tree=$1 seconds=$2
	shift 2
	timeout --kill-after 30 "$seconds" unshare --mount --pid --fork --kill-child --ipc --uts --propagation private \
		bash -c "$distribution_shell" bash "$tree" "$@"
}

# A root with what debootstrap calls minimal, and two clones of the last commit, root's and a user's.
distribution_make() {
	local suite=$1 tree=$2
	rm -rf --one-file-system "$tree" && mkdir -p "$tree" &&
		timeout 1200 debootstrap --variant=minbase "$suite" "$tree" &&
		cp -L /etc/resolv.conf /etc/hosts "$tree/etc/" &&
		git clone -q --no-hardlinks "$root" "$tree/root/cssl" &&
		git clone -q --no-hardlinks "$root" "$tree/srv/guest/cssl" &&
		chroot "$tree" /usr/sbin/useradd --home-dir /srv/guest guest && chroot "$tree" /usr/bin/chown -R guest: /srv/guest
}

distribution_as_guest="cd /srv/guest/cssl && exec setpriv --reuid guest --regid guest --init-groups env HOME=/srv/guest USER=guest"

# distribution_command TREE SECONDS NAME SCRIPT: status, and a line of the table
distribution_command() {
	local tree=$1 seconds=$2 name=$3 script=$4 from=$SECONDS status=0 suite outcome minutes
	say "$(basename "$tree"): $name"
	distribution_enter "$tree" "$seconds" bash -c "$script" </dev/null || status=$?
	suite=$(basename "$tree") outcome=$([[ $status -eq 0 ]] && echo passed || echo failed) minutes=$(((SECONDS - from) / 60))
	distribution_results+=("$(printf '%-9s %-24s %-8s %3d min' "$suite" "$name" "$outcome" $minutes)")
	/usr/bin/python3 "$root/tests/lib/distributions_page.py" "$root/bench/results" "$suite" "$name" "$outcome" $minutes || status=1
	return $status
}

# The commands, one after another; what they say goes to the log and, with the name in front, to whoever waits.
distribution_try() {
	local suite=$1 what=$2 tree=$3
	say "$suite: a bare root in $tree"
	distribution_make "$suite" "$tree" || return
	distribution_command "$tree" $distribution_demo_seconds "./cssl demo" \
		"cd /root/cssl && set -o pipefail && ./cssl demo 2>&1 | tee /root/said && ! grep -iE 'warning|deprecated' /root/said" || return
	distribution_command "$tree" $distribution_demo_seconds "./cssl demo, as a user" "$distribution_as_guest ./cssl demo" || return
	distribution_command "$tree" $distribution_demo_seconds "./cssl soak" "cd /root/cssl && ./cssl soak --minutes 1" || return
	[[ $what == all ]] || return 0
	distribution_command "$tree" $distribution_test_seconds "./cssl test" "cd /root/cssl && ./cssl test"
}

# distribution_logged LOG SUITE COMMAND...: in this shell
distribution_logged() {
	local log=$1 suite=$2
	shift 2
	"$@" > >(tee "$log" | sed -u "s/^/$suite: /" >&2) 2>&1
}

distribution_known() {
	[[ " ${distributions[*]} " == *" $1 "* ]]
}

test_distributions() {
	local what=all suites=() suite tree log failed=0
	declare -ga distribution_results=()
	while [[ $# -gt 0 ]]; do
		case $1 in
		--demo) what=demo ;;
		*)
			distribution_known "$1" || usage_error "test --distributions" "'$1' is none of ${distributions[*]}"
			suites+=("$1")
			;;
		esac
		shift
	done
	[[ $EUID -eq 0 ]] || die "bare roots are made and entered by root only"
	[[ ${#suites[@]} -gt 0 ]] || suites=("${distributions[@]}")
	packages_need debootstrap debian-archive-keyring git
	git -C "$root" diff --quiet HEAD || say "changes that are not committed are not in the clones"
	for suite in "${suites[@]}"; do
		tree=$root/build/distributions/$suite log=$root/build/distributions/$suite.log
		mkdir -p "$tree"
		if distribution_logged "$log" "$suite" distribution_try "$suite" "$what" "$tree"; then
			rm -rf --one-file-system "$tree"
		else
			failed=1
			say "$suite: failed; its root stays in $tree, the log is $log"
		fi
	done
	printf '%s\n' "${distribution_results[@]}"
	return $failed
}

# shellcheck shell=bash
# The daemons of a cluster in the background. Each has DIR/NAME.pid, DIR/NAME.log, and after its end DIR/NAME.exit with its status.

ready_seconds=${CSSL_READY_SECONDS:-20}
stop_seconds=${CSSL_STOP_SECONDS:-20}

# Nobody writes into this pipe: a read with a time limit is a pause that starts no program.
exec {silence}<> <(:)

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[[ $SECONDS -lt $end ]] || return 1
		read -r -t 0.02 -u "$silence" || true
	done
}

daemon_pid() {
	local pid=0
	{ read -r pid <"$1/$2.pid"; } 2>/dev/null || pid=0
	echo "$pid"
}

# A pid file alone proves nothing: another process may have the number by now.
daemon_runs() {
	local dir=$1 name=$2 pid
	[[ ! -e $dir/$name.exit ]] || return 1
	pid=$(daemon_pid "$dir" "$name")
	[[ $pid -gt 0 ]] && grep -qsF -- "$dir" "/proc/$pid/environ" "/proc/$pid/cmdline"
}

# daemon_launch DIR NAME COMMAND...: does not wait for it
daemon_launch() {
	local dir=$1 name=$2
	shift 2
	rm -f "$dir/$name.exit" "$dir/$name.pid"
	setsid "$root/front/supervise" "$dir" "$name" "$@" </dev/null >>"$dir/$name.log" 2>&1 {silence}>&- &
}

# daemon_await DIR NAME: until it has a process
daemon_await() {
	wait_for 5 test -e "$1/$2.pid" || die "$2 did not start"
}

# daemon_start DIR NAME COMMAND...
daemon_start() {
	daemon_launch "$@"
	daemon_await "$1" "$2"
}

backend_start() {
	local dir=$1 name number=0 map=()
	[[ ${plan[embedded]:-} == yes ]] || return 0
	for name in ${plan[agents]}; do
		map+=(--agent "$name=127.0.1.$((++number))")
	done
	daemon_start "$dir" backend "${plan[build]:-}/bench/cssl-bench" serve \
		--listen "${plan[backend]:-}" --proxy-protocol accept "${map[@]}"
	wait_for 5 takes_connections "${plan[backend]:-}" || die "the embedded backend does not answer"
}

# takes_connections ADDRESS:PORT: one that says nothing
takes_connections() {
	(: <>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null
}

# loopback_listens 127.0.0.1:PORT: a process listens there. This reads the kernel's table, because a mail server would count a connection.
loopback_listens() {
	grep -q ": 0100007F:$(printf %04X "${1##*:}") 00000000:0000 0A " /proc/net/tcp
}

# The agents give their transactions names, by which it remembers them (doc/xcssltx.md).
smtp_sink_start() {
	local dir=$1
	[[ ${plan[smtp_sink]:-} == yes ]] || return 0
	daemon_start "$dir" smtp-sink "${plan[build]:-}/bench/cssl-bench" smtp-sink --proxy --xcssltx 127.0.0.0/8 \
		"${plan[smtp_backend]:-}"
	wait_for 5 loopback_listens "${plan[smtp_backend]:-}" || die "smtp-sink does not listen"
}

# redis_start DIR NAME: it keeps nothing on disk, and evicts nothing. Its title must not hide the folder from daemon_runs.
redis_start() {
	local dir=$1 name=$2 port
	port=${plan[$name]:-}
	[[ $port ]] && ! daemon_runs "$dir" "$name" || return 0
	note_end "$dir" "$name"
	daemon_start "$dir" "$name" redis-server --bind 127.0.0.1 --port "$port" --dir "$dir" --save "" --appendonly no \
		--maxmemory 256mb --maxmemory-policy noeviction --set-proc-title no
	wait_for 5 loopback_listens "127.0.0.1:$port" || die "$name does not listen"
}

# A gateway that finds only one of its Redis servers waits ten seconds for the other one.
mail_start() {
	redis_start "$1" redis1
	redis_start "$1" redis2
	daemon_start "$1" mail "${plan[build]:-}/smtpproxy/smtpproxy" --config "$1/smtpproxy.yaml"
	wait_for "$ready_seconds" loopback_listens "127.0.0.1:${plan[mail_port]:-}" || die "smtpproxy does not listen"
}

agent_launch() {
	daemon_launch "$1" "$2" "${plan[build]:-}/sslagent/sslagent" --config "$1/cluster.yaml" --name "$2"
}

agent_start() {
	agent_launch "$1" "$2"
	daemon_await "$1" "$2"
}

# ragent_follow DIR: as long as its keeper lives
ragent_follow() {
	setsid "$root/front/note_lives" "$1" "$(daemon_pid "$1" r1)" </dev/null >/dev/null 2>>"$1/r1.log" {silence}>&- &
}

# ragent_command DIR: its words, one a line
ragent_command() {
	printf '%s\n' "${plan[build]:-}/ragent/ragent" --config "$1/cluster.yaml" --name r1
	[[ ${plan[keeper]:-} != off ]] || echo --no-keeper
}

ragent_start() {
	local command
	mapfile -t command < <(ragent_command "$1")
	daemon_start "$1" r1 "${command[@]}"
	ragent_follow "$1"
}

# Its supervisor replaces the one before, which then reports no end.
ragent_replace() {
	local dir=$1 old command
	old=$(daemon_pid "$dir" r1)
	mapfile -t command < <(ragent_command "$dir")
	setsid "$root/front/supervise" "$dir" r1 "${command[@]}" --replace </dev/null >>"$dir/r1.log" 2>&1 {silence}>&- &
	wait_for 5 ragent_is_another "$dir" "$old" || die "the new ragent did not start"
	ragent_follow "$dir"
}

ragent_is_another() {
	[[ $(daemon_pid "$1" r1) != "$2" ]]
}

show_last_lines() {
	local name
	for name in ${plan[daemons]}; do
		[[ -s $1/$name.log ]] || continue
		say "the last lines of $1/$name.log:"
		tail -n 15 "$1/$name.log" >&2
	done
}

# Reports an end that was not in order. A kill by hand is reported, but is no fault of the daemon.
daemon_end_fault() {
	local status=lost
	read -r status 2>/dev/null <"$1/$2.exit" || true
	case $status in
	0) return 1 ;;
	137) say "$2 was killed (SIGKILL) before" && return 1 ;;
	lost) say "$2 ended without an exit status; its log is $1/$2.log" ;;
	*) say "$2 ended with exit status $status; its log is $1/$2.log" ;;
	esac
}

# daemon_kill PID: also its child, if there is one, as for ragent
daemon_kill() {
	local children=()
	read -ra children 2>/dev/null <"/proc/$1/task/$1/children" || true
	kill -KILL "$1" "${children[@]}"
}

# daemon_stop DIR NAME: fails if the daemon did not stop in order
daemon_stop() {
	local dir=$1 name=$2
	[[ -e $dir/$name.pid ]] || return 0
	if daemon_runs "$dir" "$name"; then
		kill -TERM "$(daemon_pid "$dir" "$name")"
		if ! wait_for "$stop_seconds" test -e "$dir/$name.exit"; then
			say "$name did not stop within $stop_seconds s, so it was killed"
			daemon_kill "$(daemon_pid "$dir" "$name")"
			wait_for 5 test -e "$dir/$name.exit" || true
			rm -f "$dir/$name.pid"
			return 1
		fi
	fi
	rm -f "$dir/$name.pid"
	! daemon_end_fault "$dir" "$name"
}

# any_daemon_ended DIR
any_daemon_ended() {
	local name
	for name in ${plan[daemons]}; do
		[[ ! -e $1/$name.exit ]] || return 0
	done
	return 1
}

# note_end DIR NAME: before a daemon starts again, remembers a bad end of the one before; `down` reports it
note_end() {
	[[ -e $1/$2.exit ]] || return 0
	daemon_end_fault "$1" "$2" 2>>"$1/unclean" || true
}

# RAgent first, because clients come through it; the backend last. Fails if any daemon did not stop in order.
daemons_stop() {
	local name faults=0
	for name in ${plan[daemons]}; do
		daemon_stop "$1" "$name" || faults=$((faults + 1))
	done
	if grep -v 'was killed (SIGKILL) before' "$1/unclean" >&2 2>/dev/null; then
		faults=$((faults + 1))
	fi
	rm -f "$1/unclean"
	[[ $faults -eq 0 ]]
}

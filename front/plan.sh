# shellcheck shell=bash
# DIR/plan: the decisions of `up`, for later commands. Lines of `KEY VALUE`.

# plan_get DIR KEY: the values of all lines with that key, one a line. It is asked often, so it starts no other program.
plan_get() {
	local key value
	while IFS=' ' read -r key value; do # a caller may have another IFS
		[[ $key != "$2" ]] || printf '%s\n' "$value"
	done <"$1/plan"
}

# plan_listeners DIR: the names of the listeners for clients, one a line
plan_listeners() {
	sed -nE 's/^(sf|sl|smtp|submission|smtps) .*/\1/p' "$1/plan"
}

# plan_mail_queue PORT PORT PORT: of smtpproxy, and of its two Redis servers
plan_mail_queue() {
	echo "mail_queue $1"
	echo "redis1 $2"
	echo "redis2 $3"
}

# plan_mail_port DIR: where smtpproxy listens
plan_mail_port() {
	sed -nE 's/^mail_(relay|queue) //p' "$1/plan"
}

# plan_mail PORT...: seven, of the listeners for mail, and of what is behind them
plan_mail() {
	local backend=${settings[smtp_backend]}
	[[ ${settings[smtp_sink]} == no && ${settings[mail]} == no ]] || backend=127.0.0.1:$4
	[[ $backend ]] || return 0
	echo "smtp_backend $backend"
	echo "smtp_sink ${settings[smtp_sink]}"
	echo "smtp $1"
	echo "submission $2"
	echo "smtps $3"
	[[ ${settings[mail]} == yes ]] || return 0
	if [[ ${settings[mail_queue]} == yes ]]; then
		plan_mail_queue "$4" "$6" "$7"
	elif [[ ${settings[mail_to]} ]]; then
		echo "mail_gateway $4"
		echo "mail_relay $5"
	else
		echo "mail_relay $4"
	fi
}

# plan_write DIR: the settings and fresh ports
plan_write() {
	local dir=$1 ports i count=${settings[agents]} wanted
	wanted=$((12 + 2 * count))
	mapfile -t ports < <("$root/front/free_ports" $wanted)
	[[ ${#ports[@]} -eq $wanted ]] || die "no free ports"
	{
		echo "build ${settings[build]}"
		echo "keeper ${settings[keeper]}"
		echo "sf ${ports[0]}"
		echo "sl ${ports[1]}"
		echo "control ${ports[3]}"
		echo "control_plain ${ports[4]}"
		if [[ ${settings[backend]} ]]; then
			echo "backend ${settings[backend]}"
		else
			echo "backend 127.0.0.1:${ports[2]}"
			echo "embedded yes"
		fi
		plan_mail "${ports[@]:5:7}"
		for ((i = 1; i <= count; i++)); do
			echo "agent a$i"
			echo "a$i.peer ${ports[10 + 2 * i]}"
			echo "a$i.tls ${ports[11 + 2 * i]}"
		done
	} >"$dir/plan"
}

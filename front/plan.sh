# shellcheck shell=bash
# DIR/plan: the decisions of `up`, for later commands. Lines of `KEY VALUE`.

declare -gA plan=()

# plan_read DIR: into `plan`. plan[agents] and plan[listeners] have names, of agents and of the listeners for clients; plan[mail_port] is
# where smtpproxy listens; plan[daemons] are all, in the order in which they stop.
plan_read() {
	local key value
	plan=([agents]="" [listeners]="")
	while IFS=' ' read -r key value; do
		case $key in
		agent) plan[agents]+="${plan[agents]:+ }$value" ;;
		sf | sl | smtp | submission | smtps) plan[listeners]+="${plan[listeners]:+ }$key" ;;&
		mail_relay | mail_queue) plan[mail_port]=$value ;;&
		*) plan[$key]=$value ;;
		esac
	done <"$1/plan"
	plan[daemons]="r1 ${plan[agents]}${plan[embedded]:+ backend}${plan[mail_port]:+ mail}${plan[mail_queue]:+ redis1 redis2}"
	[[ ${plan[smtp_sink]:-} != yes ]] || plan[daemons]+=" smtp-sink"
}

# plan_mail_queue PORT PORT PORT: of smtpproxy, and of its two Redis servers
plan_mail_queue() {
	echo "mail_queue $1"
	echo "redis1 $2"
	echo "redis2 $3"
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
	wanted=$((5 + 2 * count))
	[[ ${settings[smtp_backend]}${settings[smtp_sink]}${settings[mail]} == nono ]] || wanted=$((wanted + 7))
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
		plan_mail "${ports[@]:5 + 2 * count}"
		for ((i = 1; i <= count; i++)); do
			echo "agent a$i"
			echo "a$i.peer ${ports[3 + 2 * i]}"
			echo "a$i.tls ${ports[4 + 2 * i]}"
		done
	} >"$dir/plan"
	plan_read "$dir"
}

# shellcheck shell=bash
# up: a cluster in the background on free loopback ports, described by DIR/cluster.json.

for part in packages build certificates keys plan ragent_user cluster_file mail_file daemons control; do
	# shellcheck source=/dev/null
	. "$root/front/$part.sh"
done

up_help() {
	cat <<-'HELP'
		./cssl up --dir DIR [OPTIONS]: start a cluster in the background and write DIR/cluster.json

		  --agents N              SSLAgents (3)
		  --workers N             worker threads of each daemon (1)
		  --backend ADDR:PORT     your backend, or unix:/path; without it cssl-bench serve is started
		  --smtp-backend ADDR:PORT
		                          your mail server, or unix:/path; an IPv6 address in brackets. Adds three listeners for it:
		                          smtp (STARTTLS offered), submission (STARTTLS required), smtps (TLS from the first byte)
		  --smtp-sink             start cssl-bench smtp-sink as that mail server, which counts mails and drops them
		  --smtp-proxy-v2         tell the mail server the addresses of clients by PROXY protocol v2, which it must expect
		  --mail                  start smtpproxy as that mail server. Its port `relay` in cluster.json takes PROXY v2 and connects
		                          to the header's destination
		  --mail-to ADDR:PORT     with --mail: all mail of the listeners goes there
		  --mail-queue            start smtpproxy as a mail gateway instead: it stores each mail on two Redis servers, which are
		                          started, too, says 250, and delivers it to --mail-to, which is needed
		  --link trusted|sealed   protection of the links, which are UNIX sockets (trusted)
		  --handshake POLICY      round-robin (default), weighted, least-connections, shortest-response, local
		  --resumption POLICY     the same for resumptions (round-robin)
		  --affinity-bound X      an agent takes at most X times the mean by affinity (off)
		  --no-migration          connections stay at the agent of their handshake
		  --tls12-tickets         tickets for TLS 1.2 clients that resume by nothing else
		  --no-keeper             nothing starts RAgent again when it dies, and no connection outlives it
		  --prepare               write all files of DIR, start nothing
		  --prepared              start from the files of DIR as they are

		The programs come from build/, which is brought up to date first, or from $CSSL_BUILD_DIR as it is.
	HELP
}

up_parse() {
	while [[ $# -gt 0 ]]; do
		case $1 in
		--dir | --agents | --workers | --backend | --smtp-backend | --mail-to | --link | --handshake | --resumption | --affinity-bound)
			need_value "$@"
			local key=${1#--}
			settings[${key//-/_}]=$2
			shift
			;;
		--no-migration) settings[migration]=off ;;
		--tls12-tickets) settings[tls12_tickets]=on ;;
		--no-keeper) settings[keeper]=off ;;
		--smtp-proxy-v2) settings[smtp_proxy_v2]=on ;;
		--mail) settings[mail]=yes settings[smtp_proxy_v2]=on ;;
		--mail-queue) settings[mail]=yes settings[mail_queue]=yes settings[smtp_proxy_v2]=on ;;
		--smtp-sink) settings[smtp_sink]=yes settings[smtp_proxy_v2]=on ;;
		--prepare | --prepared) settings[stage]=${1#--} ;;
		--help) up_help && exit 0 ;;
		*) usage_error up "unknown option '$1'" ;;
		esac
		shift
	done
}

up_check() {
	[[ ${settings[dir]} ]] || usage_error up "--dir is needed"
	[[ ${settings[agents]} =~ ^[1-9][0-9]?$ ]] || usage_error up "--agents is a number from 1 to 99"
	[[ ${settings[workers]} =~ ^[1-9][0-9]?$ ]] || usage_error up "--workers is a number from 1 to 99"
	[[ ${settings[link]} == trusted || ${settings[link]} == sealed ]] || usage_error up "--link is trusted or sealed"
	up_check_mail
}

# This checks only the form; the reader of the cluster file checks the numbers.
up_check_mail() {
	local address=${settings[smtp_backend]}
	[[ -z $address || ${settings[smtp_sink]} == no ]] || usage_error up "--smtp-sink and --smtp-backend cannot be combined: each is the mail server"
	[[ ${settings[mail]} == no || ( -z $address && ${settings[smtp_sink]} == no ) ]] ||
		usage_error up "--mail cannot be combined with --smtp-backend or --smtp-sink: it starts a mail server of its own"
	[[ ${settings[mail]} == yes || -z ${settings[mail_to]} ]] || usage_error up "--mail-to needs --mail"
	[[ ${settings[mail_queue]} == no || ${settings[mail_to]} ]] || usage_error up "--mail-queue needs --mail-to"
	[[ ${settings[mail_queue]} == no ]] || command -v redis-server >/dev/null || die "--mail-queue needs redis-server (apt-get install redis-server)"
	[[ ${settings[mail_to]} =~ ^(|[0-9.]+:[0-9]+|\[[0-9A-Fa-f:.]+\]:[0-9]+)$ ]] ||
		usage_error up "--mail-to is ADDR:PORT, as 192.0.2.1:25 or [2001:db8::1]:25, not '${settings[mail_to]}'"
	[[ ${settings[mail]} == yes || $address || ${settings[smtp_sink]} == yes || ${settings[smtp_proxy_v2]} == off ]] ||
		 usage_error up "--smtp-proxy-v2 needs --smtp-backend"
	[[ $address =~ ^(|[0-9.]+:[0-9]+|\[[0-9A-Fa-f:.]+\]:[0-9]+|unix:/[^\"\\]+)$ ]] ||
		usage_error up "--smtp-backend is ADDR:PORT, as 192.0.2.1:25 or [2001:db8::1]:25, or unix:/path, not '$address'"
}

# Makes the folder and all its files, and starts nothing.
up_prepare() {
	local dir=$1
	mkdir -p "$dir/links" "$dir/peers"
	ragent_folder_make "$dir"
	certificates_make "$dir"
	keys_make "$dir"
	plan_write "$dir"
	cluster_file_write "$dir"
	mail_file_write "$dir"
	up_warn_mail
}

# What is wrong with the options is said by a reader of the configuration, before anything runs.
up_check_file() {
	"${settings[build]}/sslagent/sslagent" --config "$1/cluster.yaml" --name a1 --check >"$1/check.log" 2>&1 ||
		{ cat "$1/check.log" >&2 && die "$1/cluster.yaml is refused"; }
}

# Ready, or it will never be.
up_settled() {
	any_daemon_ended "$1" || agents_are_ready "$@"
}

up_daemons() {
	local dir=$1 names name
	read -ra names <<<"${plan[agents]}"
	rm -f "$dir/cluster.json" "$dir/unclean" "$dir"/*.exit
	backend_start "$dir"
	smtp_sink_start "$dir"
	[[ -z ${plan[mail_port]:-} ]] || mail_start "$dir"
	for name in "${names[@]}"; do
		agent_launch "$dir" "$name"
	done
	for name in "${names[@]}"; do
		daemon_await "$dir" "$name"
	done
	ragent_start "$dir"
	wait_for "$ready_seconds" up_settled "$dir" "${names[@]}" || die "not ready within $ready_seconds s"
	! any_daemon_ended "$dir" || die "a daemon ended at once"
	cluster_json_write "$dir"
}

# All of it, or nothing that runs.
up_start() {
	(up_daemons "$1") && return
	show_last_lines "$1"
	daemons_stop "$1" || true
	die "the cluster did not start"
}

up_dir() {
	local dir=$1
	mkdir -p "$dir"
	settings[dir]=$(readlink -f "$dir")
	[[ ${#settings[dir]} -le 70 ]] || die "${settings[dir]}: too long for the UNIX sockets in it"
	ragent_user_make
	ragent_user_reaches "${settings[dir]}" ||
		die "${settings[dir]}: ragent, which runs as $ragent_user, cannot get there; take another folder"
	[[ ! -e ${settings[dir]}/r1.pid ]] || die "a cluster runs in ${settings[dir]} (./cssl down --dir ${settings[dir]})"
}

up_say_mail() {
	say "mail: localhost:${plan[smtp]:-} (STARTTLS offered), localhost:${plan[submission]:-} (STARTTLS required)," \
		"localhost:${plan[smtps]:-} (TLS at once)"
}

# Of a mail server that is not told the clients' addresses.
up_warn_mail() {
	[[ -z ${settings[smtp_backend]} || ${settings[smtp_proxy_v2]} == on ]] ||
		say "warning: the mail server is not told the clients' addresses, and takes every client for this host." \
			"If it relays for this host, it is an open relay now (--smtp-proxy-v2 tells it the addresses)"
}

declare -gA settings=(
	[dir]="" [agents]=3 [workers]=1 [backend]="" [link]=trusted [migration]=on [handshake]=round-robin
	[resumption]=round-robin [affinity_bound]=off [tls12_tickets]=off [keeper]=on [smtp_backend]="" [smtp_sink]=no [smtp_proxy_v2]=off [mail]=no [mail_to]="" [mail_queue]=no [stage]=all
	[build]=${CSSL_BUILD_DIR:-$root/build}
)

command_up() {
	up_parse "$@"
	up_check
	[[ ${CSSL_BUILD_DIR:-} ]] || build_release
	up_dir "${settings[dir]}"
	local dir=${settings[dir]}
	if [[ ${settings[stage]} == prepared ]]; then
		plan_read "$dir"
	else
		up_prepare "$dir"
	fi
	[[ ${settings[stage]} != prepare ]] || return 0
	[[ ${settings[stage]} == prepared ]] || up_check_file "$dir"
	up_start "$dir"
	[[ -z ${plan[smtp_backend]:-} ]] || up_say_mail "$dir"
	say "up: https://localhost:${plan[sf]:-} (SF) https://localhost:${plan[sl]:-} (SL), CA $dir/ca.pem"
}

# shellcheck shell=bash
# demo: builds, and starts a cluster that answers a request and takes three mails.

# shellcheck source=front/packages.sh
. "$root/front/packages.sh"

# One folder for each user, which the user must own. Not in the clone: RAgent's own user could not reach a clone in root's home.
demo_folder() {
	echo "${TMPDIR:-/tmp}/cssl-demo-$EUID"
}

# demo_folder_make DIR
demo_folder_make() {
	local why
	why=$(mkdir -m 0755 "$1" 2>&1) || [[ -d $1 ]] || die "$why"
	[[ -O $1 && ! -L $1 ]] || die "$1 belongs to another user"
}

# plan_value DIR KEY
plan_value() {
	sed -n "s/^$2 //p" "$1/plan"
}

demo_request() {
	local dir=$1
	curl -sS --cacert "$dir/ca.pem" -D "$dir/demo.head" -o "$dir/demo.body" -w '%{ssl_verify_result}\n' \
		"https://localhost:$(plan_value "$dir" sf)/slow?bytes=100000&ms=1000"
}

# The one connection of the demo, once it belongs to an agent, as "HANDSHAKE OWNER VERSION SUITE"
demo_connection() {
	curl -sS --fail --max-time 10 --unix-socket "$1/ragent/control.sock" http://ragent/v1/connections 2>/dev/null | /usr/bin/python3 -c '
import json, sys
c = json.load(sys.stdin)["connections"][0]
print(c["handshake_agent"], c["owner"], c["tls"]["version"], c["tls"]["cipher_suite"])
' >"$1/demo.connection" 2>/dev/null && ! grep -q None "$1/demo.connection"
}

demo_is_over() {
	! kill -0 "$1" 2>/dev/null
}

# On a busy machine a request may be over before its connection was seen.
demo_request_seen() {
	local dir=$1 request try
	for try in 1 2 3 4 5; do
		demo_request "$dir" >/dev/null &
		request=$!
		until demo_connection "$dir" || demo_is_over $request; do
			sleep 0.05
		done
		wait $request || die "the request failed"
		! grep -qv None "$dir/demo.connection" || return 0
	done
	die "the connection of the request did not appear in $try tries"
}

demo_show() {
	local dir=$1 handshake owner version suite
	say "one request through the SF listener:"
	demo_request_seen "$dir"
	read -r handshake owner version suite <"$dir/demo.connection"
	cat <<-TEXT

		  GET /slow?bytes=100000     $(head -n 1 "$dir/demo.head" | tr -d '\r'), $(stat -c %s "$dir/demo.body") bytes
		  TLS $version, $suite
		  handshake made by          $handshake
		  bulk carried by            $owner
		  the backend was asked by   $(sed -n 's/^X-CSSL-Agent: //pI' "$dir/demo.head" | tr -d '\r')

	TEXT
}

demo_show_mail() {
	local dir=$1
	say "three mails through the listener smtp, with STARTTLS:"
	echo
	"$root/front/demo_mail" "$dir" || die "the mails failed"
	echo
	demo_revive "$dir"
	echo
}

# The agent that demo_mail killed.
demo_revive() {
	local dir=$1 name
	for _ in {1..100}; do
		name=$(basename "$dir"/a*.exit .exit)
		[[ $name == "a*" ]] || { "$root/cssl" agent --dir "$dir" "$name"; return; }
		sleep 0.05
	done
}

demo_farewell() {
	local dir=$1
	local here
	here=$(printf %q "$dir")
	cat <<-TEXT
		  SF   https://localhost:$(plan_value "$dir" sf)/       bulk goes to the client's affinity agent
		  SL   https://localhost:$(plan_value "$dir" sl)/       bulk stays where the handshake was
		  mail localhost:$(plan_value "$dir" smtp)            STARTTLS; the mail server behind it counts mails and drops them
		  page https://localhost:$(plan_value "$dir" control)/     the dashboard; its token: cat $here/control.token
		  CA   $dir/ca.pem      (curl --cacert; or curl -k)
		  logs $here/*.log
		  try  curl --cacert $here/ca.pem -i https://localhost:$(plan_value "$dir" sf)/1k -o /dev/null -D -
		  see  CSSL_DIR=$here $(printf %q "${CSSL_BUILD_DIR:-$root/build}")/csslctl/csslctl status      (README.md has a tour)
		  stop $(printf %q "$root/cssl") down --dir $here

	TEXT
}

command_demo() {
	[[ $# -eq 0 ]] || usage_error demo "takes no options; ./cssl up does"
	local dir
	dir=$(demo_folder)
	demo_folder_make "$dir"
	[[ ${CSSL_BUILD_DIR:-} ]] || packages_need "${packages_build[@]}" "${packages_run[@]}"
	if [[ $(find "$dir" -name '*.pid' -print -quit) ]]; then
		say "stopping the earlier demo"
		"$root/cssl" down --dir "$dir" || say "the earlier demo did not stop in order; going on"
	fi
	"$root/cssl" up --dir "$dir" --smtp-sink
	demo_show "$dir"
	demo_show_mail "$dir"
	demo_farewell "$dir"
}

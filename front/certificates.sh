# shellcheck shell=bash
# Throw-away certificates in DIR, made once: a CA, an ECDSA and an RSA certificate of the servers, one of a client.

certificate_days=30
server_names='DNS:localhost,DNS:cssl.test,DNS:*.cssl.test,IP:127.0.0.1,IP:::1'

# make_private_key FILE ALGORITHM-OPTION...
make_private_key() {
	local file=$1
	shift
	(umask 077 && openssl genpkey -quiet "$@" -out "$file")
}

make_ca() {
	make_private_key "$1/ca.key" -algorithm EC -pkeyopt ec_paramgen_curve:P-256
	openssl req -x509 -new -key "$1/ca.key" -sha256 -days $certificate_days -subj "/CN=CSSL throw-away CA" \
		-addext "keyUsage=critical,keyCertSign,cRLSign" -out "$1/ca.pem"
}

# make_certificate DIR NAME SUBJECT EXTENSIONS KEY-OPTION...
make_certificate() {
	local dir=$1 name=$2 subject=$3 extensions=$4
	shift 4
	make_private_key "$dir/$name.key" "$@"
	openssl req -new -key "$dir/$name.key" -subj "$subject" |
		openssl x509 -req -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -set_serial "0x$(openssl rand -hex 16)" -sha256 \
			-days $certificate_days -extfile <(echo "$extensions") -out "$dir/$name.pem" 2>/dev/null
}

certificates_make() {
	local dir=$1
	local server="subjectAltName=$server_names"
	# The client's is made last: where it is valid, all are.
	openssl x509 -in "$dir/client.pem" -noout -checkend 86400 >/dev/null 2>&1 && return
	make_ca "$dir"
	make_certificate "$dir" ecdsa "/CN=localhost" "$server" -algorithm EC -pkeyopt ec_paramgen_curve:P-256
	make_certificate "$dir" rsa "/CN=localhost" "$server" -algorithm RSA -pkeyopt rsa_keygen_bits:2048
	make_certificate "$dir" client "/CN=client" "extendedKeyUsage=clientAuth" \
		-algorithm EC -pkeyopt ec_paramgen_curve:P-256
}

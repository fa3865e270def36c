# shellcheck shell=bash
# Throw-away certificates in DIR, made once. Each kind has a CA of its own, so that a client that knows only RSA, or only
# ECDSA, can verify every signature of its chain: ecdsa-ca and ecdsa, rsa-ca and rsa. ca.pem has both CAs. And a
# certificate of a client.

certificate_days=30
server_names='DNS:localhost,DNS:cssl.test,DNS:*.cssl.test,IP:127.0.0.1,IP:::1'
ecdsa_key=(-algorithm EC -pkeyopt ec_paramgen_curve:P-256)
rsa_key=(-algorithm RSA -pkeyopt rsa_keygen_bits:2048)

# make_private_key FILE ALGORITHM-OPTION...
make_private_key() {
	local file=$1
	shift
	(umask 077 && openssl genpkey -quiet "$@" -out "$file")
}

# make_ca DIR NAME KIND KEY-OPTION...
make_ca() {
	local dir=$1 name=$2 kind=$3
	shift 3
	make_private_key "$dir/$name.key" "$@"
	openssl req -x509 -new -key "$dir/$name.key" -sha256 -days $certificate_days -subj "/CN=CSSL throw-away $kind CA" \
		-addext "keyUsage=critical,keyCertSign,cRLSign" -out "$dir/$name.pem"
}

# make_certificate DIR NAME CA SUBJECT EXTENSIONS KEY-OPTION...
make_certificate() {
	local dir=$1 name=$2 ca=$3 subject=$4 extensions=$5
	shift 5
	make_private_key "$dir/$name.key" "$@"
	openssl req -new -key "$dir/$name.key" -subj "$subject" |
		openssl x509 -req -CA "$dir/$ca.pem" -CAkey "$dir/$ca.key" -set_serial "0x$(openssl rand -hex 16)" -sha256 \
			-days $certificate_days -extfile <(echo "$extensions") -out "$dir/$name.pem" 2>/dev/null
}

certificates_make() {
	local dir=$1 until=0
	local server="subjectAltName=$server_names"
	read -r until 2>/dev/null <"$dir/certificates.until" || until=0
	[[ $EPOCHSECONDS -ge $until || ! -f $dir/client.pem ]] || return 0
	make_ca "$dir" ecdsa-ca ECDSA "${ecdsa_key[@]}"
	make_ca "$dir" rsa-ca RSA "${rsa_key[@]}"
	cat "$dir/ecdsa-ca.pem" "$dir/rsa-ca.pem" >"$dir/ca.pem"
	make_certificate "$dir" ecdsa ecdsa-ca "/CN=localhost" "$server" "${ecdsa_key[@]}"
	make_certificate "$dir" rsa rsa-ca "/CN=localhost" "$server" "${rsa_key[@]}"
	make_certificate "$dir" client ecdsa-ca "/CN=client" "extendedKeyUsage=clientAuth" "${ecdsa_key[@]}"
	echo $((EPOCHSECONDS + (certificate_days - 1) * 86400)) >"$dir/certificates.until" # last: with it, all are there
}

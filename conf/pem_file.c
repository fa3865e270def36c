/* pem_file.c: OpenSSL's reasons tell what its parser met ("no start line"), so the file is read again for the cause. */
#include "conf/pem_file.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/key_file.h"
#include "proto/error.h"

#define DER_SEQUENCE 0x30
#define BEGIN        "-----BEGIN "

static const struct {
	enum key_file_kind secrecy;
	const char *label; /* the first lines of its objects end so */
	const char *expected, *from_der;
} kinds[] = {
	[PEM_CHAIN] = { KEY_FILE_PUBLIC, "CERTIFICATE-----", "a PEM certificate and its chain",
		"openssl x509 -inform DER converts it" },
	[PEM_KEY] = { KEY_FILE_PEM, "PRIVATE KEY-----", "a PEM private key without passphrase",
		"openssl pkey -inform DER converts it" },
	[PEM_AUTHORITIES] = { KEY_FILE_PUBLIC, "CERTIFICATE-----", "PEM certificates",
		"openssl x509 -inform DER converts it" },
	[PEM_CRLS] = { KEY_FILE_PUBLIC, "CRL-----", "PEM CRLs", "openssl crl -inform DER converts it" },
};

BIO *pem_file_open(const char *path, enum pem_kind kind, char *why, size_t why_cap)
{
	snprintf(why, why_cap, "out of memory");
	const int fd = key_file_open(path, kinds[kind].secrecy, why, why_cap);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	BIO *in = file ? BIO_new_fp(file, BIO_CLOSE) : NULL;

	if (file && !in)
		fclose(file);
	else if (fd >= 0 && !file)
		close(fd);
	return in;
}

/* What a look at the lines shows. */
struct look {
	int first; /* byte; -1: there is none */
	int of_kind, is_encrypted, is_cut;
};

static struct look pem_file_look_at(BIO *in, enum pem_kind kind)
{
	struct look l = { .first = -1 };
	char line[256];

	BIO_seek(in, 0);
	if (BIO_read(in, line, 1) == 1) /* BIO_gets() tells no length: a byte 0 ends its text */
		l.first = (unsigned char)line[0];
	BIO_seek(in, 0);
	while (BIO_gets(in, line, sizeof line) > 0) {
		const bool begins = strncmp(line, BEGIN, strlen(BEGIN)) == 0;
		l.of_kind |= begins && strstr(line, kinds[kind].label);
		l.is_encrypted |=
			begins ? strstr(line, "ENCRYPTED") != NULL : strncmp(line, "Proc-Type: 4,ENCRYPTED", 22) == 0;
		l.is_cut = begins || (l.is_cut && strncmp(line, "-----END ", 9));
	}
	OPENSSL_cleanse(line, sizeof line);
	return l;
}

void pem_file_explain(BIO *in, const char *path, enum pem_kind kind, char *why, size_t why_cap)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	const char *found = "", *remedy = "write it again, or name the right file";
	const struct look l = pem_file_look_at(in, kind);

	if (l.first < 0) {
		found = ", which is empty";
	} else if (!l.of_kind) {
		found = l.first == DER_SEQUENCE ? " in DER form" : " without one";
		remedy = l.first == DER_SEQUENCE ? kinds[kind].from_der : "name the right file";
	} else if (l.is_encrypted && kind == PEM_KEY) {
		found = ", which is encrypted";
		remedy = "openssl pkey -in FILE -out NEW takes the passphrase out";
	} else if (l.is_cut) {
		found = ", which is cut off";
	}
	snprintf(why, why_cap, "found '%s'%s, expected %s: %s (%s)", path, found, kinds[kind].expected, remedy,
		reason ? reason : "no reason");
	ERR_clear_error();
}

int pem_file_use(SSL_CTX *tls, const char *key, const char *path, enum pem_kind kind,
	int (*use)(SSL_CTX *tls, const char *path), char *why, size_t why_cap)
{
	const size_t len = (size_t)snprintf(why, why_cap, "key '%s': ", key);
	BIO *in = pem_file_open(path, kind, why + len, why_cap - len);
	const bool is_used = in && use(tls, path) == 1;

	if (in && !is_used)
		pem_file_explain(in, path, kind, why + len, why_cap - len);
	BIO_free(in);
	return is_used ? 0 : CSSL_E_CONFIG;
}

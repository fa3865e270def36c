/* test_pki.h: certificates made when a test starts: one CA, and what it signs, as files in a temporary folder and as
 * OpenSSL objects. */
#pragma once

#include <openssl/ssl.h>

struct test_pki {
	char dir[64];
	char ca_path[96];
	X509 *ca;
	EVP_PKEY *ca_key;
};

int test_pki_start(struct test_pki *p); /* 0 or -1 */
void test_pki_stop(struct test_pki *p); /* removes the folder */

enum test_key { TEST_RSA, TEST_ECDSA, TEST_RSA_1024 };

struct test_identity {
	X509 *certificate;
	EVP_PKEY *key;
	char chain_path[96], key_path[96];
};

/* Sign a certificate for the DNS names (comma separated; NULL: none), with @padding bytes of ballast in a comment
 * extension. */
int test_pki_issue(struct test_pki *p, const char *common_name, enum test_key type, const char *names, size_t padding,
	struct test_identity *out);
/* From now on certificates are valid for so long; 0: for a week. */
void test_pki_valid_for(long seconds);

/* A CRL of the CA's, valid for a week, that names @revoked (NULL: nobody); PEM, in @path. 0 or -1. */
int test_pki_revoke(struct test_pki *p, const struct test_identity *revoked, const char *path);
void test_identity_free(struct test_identity *i);

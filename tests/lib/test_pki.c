/* test_pki.c */
#include "tests/lib/test_pki.h"

#include <dirent.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALID_S (7 * 24 * 3600)

static long valid_s = VALID_S;

void test_pki_valid_for(long seconds)
{
	valid_s = seconds ? seconds : VALID_S;
}

static EVP_PKEY *new_key(enum test_key type)
{
	return type == TEST_ECDSA ? EVP_EC_gen("P-256") : EVP_RSA_gen(type == TEST_RSA ? 2048 : 1024);
}

static int add_extension(X509 *c, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
	int ok = e && X509_add_ext(c, e, -1);

	X509_EXTENSION_free(e);
	return ok ? 0 : -1;
}

static int add_names(X509 *c, const char *names)
{
	char list[1024] = "", copy[512], *at = copy, *name;

	snprintf(copy, sizeof(copy), "%s", names);
	while ((name = strsep(&at, ","))) {
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%sDNS:%s", used ? "," : "", name);
	}
	return add_extension(c, NID_subject_alt_name, list);
}

static int add_padding(X509 *c, size_t len)
{
	char *text = malloc(len + 1);
	ASN1_IA5STRING *value = ASN1_IA5STRING_new();
	int ok = 0;

	if (text && value) {
		memset(text, 'x', len);
		text[len] = '\0';
		ok = ASN1_STRING_set(value, text, (int)len) && X509_add1_ext_i2d(c, NID_netscape_comment, value, 0, 0);
	}
	free(text);
	ASN1_IA5STRING_free(value);
	return ok ? 0 : -1;
}

static X509 *sign(const char *common_name, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *names, size_t padding)
{
	X509 *c = X509_new();
	uint64_t serial;

	if (!c || RAND_bytes((unsigned char *)&serial, sizeof(serial)) != 1)
		return NULL;
	X509_NAME *name = X509_get_subject_name(c);
	int ok = X509_set_version(c, X509_VERSION_3) &&
		 ASN1_INTEGER_set_uint64(X509_get_serialNumber(c), serial >> 1) &&
		 X509_gmtime_adj(X509_getm_notBefore(c), -3600) && X509_gmtime_adj(X509_getm_notAfter(c), valid_s) &&
		 (!common_name[0] || X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
					     (const unsigned char *)common_name, -1, -1, 0)) &&
		 X509_set_issuer_name(c, ca ? X509_get_subject_name(ca) : name) && X509_set_pubkey(c, key) &&
		 (ca || add_extension(c, NID_basic_constraints, "critical,CA:TRUE") == 0) &&
		 (!names || add_names(c, names) == 0) && (padding == 0 || add_padding(c, padding) == 0) &&
		 X509_sign(c, ca_key, EVP_sha256());
	if (ok)
		return c;
	X509_free(c);
	return NULL;
}

static int write_files(const struct test_identity *i, X509 *ca)
{
	FILE *chain = fopen(i->chain_path, "w"), *key = fopen(i->key_path, "w");
	int ok = chain && key && fchmod(fileno(key), 0600) == 0 && PEM_write_X509(chain, i->certificate) &&
		 PEM_write_X509(chain, ca) && PEM_write_PrivateKey(key, i->key, NULL, NULL, 0, NULL, NULL);

	if (chain)
		fclose(chain);
	if (key)
		fclose(key);
	return ok ? 0 : -1;
}

int test_pki_start(struct test_pki *p)
{
	*p = (struct test_pki){ .dir = "/tmp/cssl-test-pki-XXXXXX" };
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->ca_path, sizeof(p->ca_path), "%s/ca.pem", p->dir);
	p->ca_key = new_key(TEST_ECDSA);
	p->ca = p->ca_key ? sign(p->dir, p->ca_key, NULL, p->ca_key, NULL, 0) : NULL;
	FILE *f = fopen(p->ca_path, "w");
	int ok = p->ca && f && PEM_write_X509(f, p->ca);
	if (f)
		fclose(f);
	return ok ? 0 : -1;
}

void test_pki_stop(struct test_pki *p)
{
	DIR *d = opendir(p->dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(p->dir);
	X509_free(p->ca);
	EVP_PKEY_free(p->ca_key);
}

int test_pki_issue(struct test_pki *p, const char *common_name, enum test_key type, const char *names, size_t padding,
	struct test_identity *out)
{
	static unsigned count;

	*out = (struct test_identity){ .key = new_key(type) };
	snprintf(out->chain_path, sizeof(out->chain_path), "%s/%u.pem", p->dir, ++count);
	snprintf(out->key_path, sizeof(out->key_path), "%s/%u.key", p->dir, count);
	if (out->key)
		out->certificate = sign(common_name, out->key, p->ca, p->ca_key, names, padding);
	return out->certificate ? write_files(out, p->ca) : -1;
}

void test_identity_free(struct test_identity *i)
{
	X509_free(i->certificate);
	EVP_PKEY_free(i->key);
}

static int add_revoked(X509_CRL *crl, const struct test_identity *revoked)
{
	X509_REVOKED *entry = X509_REVOKED_new();
	ASN1_TIME *now = X509_gmtime_adj(NULL, -60);
	int ok = entry && now && X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->certificate)) &&
		 X509_REVOKED_set_revocationDate(entry, now) && X509_CRL_add0_revoked(crl, entry);

	if (!ok)
		X509_REVOKED_free(entry);
	ASN1_TIME_free(now);
	return ok;
}

int test_pki_revoke(struct test_pki *p, const struct test_identity *revoked, const char *path)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *last = X509_gmtime_adj(NULL, -3600), *next = X509_gmtime_adj(NULL, VALID_S);
	FILE *f = fopen(path, "w");
	int ok = crl && last && next && f && X509_CRL_set_version(crl, X509_CRL_VERSION_2) &&
		 X509_CRL_set_issuer_name(crl, X509_get_subject_name(p->ca)) && X509_CRL_set1_lastUpdate(crl, last) &&
		 X509_CRL_set1_nextUpdate(crl, next) && (!revoked || add_revoked(crl, revoked)) &&
		 X509_CRL_sign(crl, p->ca_key, EVP_sha256()) && PEM_write_X509_CRL(f, crl);

	if (f)
		fclose(f);
	ASN1_TIME_free(last);
	ASN1_TIME_free(next);
	X509_CRL_free(crl);
	return ok ? 0 : -1;
}

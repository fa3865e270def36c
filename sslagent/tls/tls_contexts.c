/* tls_contexts.c: from the cluster file to SSL_CTXs. Each host name of a listener selects its valid certificates, the
 * best of each key type. Names that select the same certificates share a context. All other settings are equal in all
 * contexts of a listener, so a handshake may begin with any of them. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/pem_file.h"
#include "proto/cipher_suite.h"
#include "proto/error.h"
#include "sslagent/tls/handshake_internal.h"
#include "sslagent/tls/tls_contexts.h"

#define DEFAULT_CIPHER_SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define DEFAULT_CIPHERS       "ECDHE+AESGCM:ECDHE+CHACHA20"

/* OpenSSL 3.5 and later have the hybrid of X25519 and ML-KEM-768. It protects sessions against an attacker who records
 * them now and has a quantum computer later. */
const char *const tls_default_groups[] = { "X25519MLKEM768:X25519:P-256:P-384", "X25519:P-256:P-384", NULL };

/* Early data that a client may send before it learns that they are rejected (RFC 8446 4.2.10), in bytes. Tickets of
 * other servers mostly allow one record of 16384 bytes; the rest is room for record overhead. */
#define EARLY_DATA_SKIPPED_MAX 32768u

/* A client's chain of certificates. OpenSSL makes room for what the header of the message claims, 100 KiB by default,
 * and --check counts on less. The leaf must fit into a SESS_OBJ (CERTIFICATE_MAX) anyway. */
#define CERTIFICATES_MAX 32768

#define WHY_MAX 1024u

struct tls_contexts {
	atomic_uint references;
	struct tls_certificate *certificates; /* in the order of the cluster file */
	size_t certificate_count;
	struct tls_listener *listeners;
	size_t count;
};

/* The inputs of making contexts, and the place for its faults. */
struct making {
	const struct conf *conf;
	const struct tls_certificate *certificates;
	const struct tls_listener *listener;
	struct complaints *complaints;
};

__attribute__((format(printf, 3, 4))) static int contexts_fault(
	const struct making *m, const void *field, const char *format, ...)
{
	const struct conf_listener *l = m->listener->conf;
	const unsigned line = field ? conf_line(&m->conf->file, field) : 0;
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	char text[WHY_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	complain_plain(m->complaints, line ? line : conf_line(&m->conf->file, &l->name), "listener '%s': %s%s%s%s",
		l->name, text, reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
	ERR_clear_error();
	return CSSL_E_CONFIG;
}

/* --- settings that are equal in all contexts of a listener --- */

/* The record layer supports only the suites of cipher_suite.h's table. */
static int check_suites(const struct making *m, SSL_CTX *ctx)
{
	const STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(ctx);
	const struct conf_tls *tls = &m->listener->conf->tls;

	for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
		const SSL_CIPHER *c = sk_SSL_CIPHER_value(all, i);
		const struct cipher_suite *suite = cipher_suite_find(SSL_CIPHER_get_protocol_id(c));
		if (!suite)
			return contexts_fault(m, tls->ciphers ? &tls->ciphers : &tls->cipher_suites,
				"key 'ciphers' or 'cipher_suites': found '%s', expected AES-GCM or ChaCha20-Poly1305 "
				"suites, in TLS 1.2 with "
				"ECDHE",
				SSL_CIPHER_get_name(c));
	}
	return 0;
}

static bool set_default_groups(SSL_CTX *ctx)
{
	bool known = false;

	for (size_t i = 0; !known && tls_default_groups[i]; i++)
		known = SSL_CTX_set1_groups_list(ctx, tls_default_groups[i]) == 1;
	ERR_clear_error();
	return known;
}

static int set_algorithms(const struct making *m, SSL_CTX *ctx)
{
	const struct conf_tls *tls = &m->listener->conf->tls;

	if (SSL_CTX_set_min_proto_version(ctx, tls->version_min) != 1 ||
		SSL_CTX_set_max_proto_version(ctx, tls->version_max) != 1)
		return contexts_fault(
			m, &tls->version_min, "key 'version_min' or 'version_max': not accepted by OpenSSL");
	if (SSL_CTX_set_ciphersuites(ctx, tls->cipher_suites ? tls->cipher_suites : DEFAULT_CIPHER_SUITES) != 1)
		return contexts_fault(m, &tls->cipher_suites,
			"key 'cipher_suites': found '%s', expected TLS 1.3 suites", tls->cipher_suites);
	if (SSL_CTX_set_cipher_list(ctx, tls->ciphers ? tls->ciphers : DEFAULT_CIPHERS) != 1)
		return contexts_fault(
			m, &tls->ciphers, "key 'ciphers': found '%s', expected TLS 1.2 ciphers", tls->ciphers);
	if (!(tls->groups ? SSL_CTX_set1_groups_list(ctx, tls->groups) : set_default_groups(ctx)))
		return contexts_fault(m, &tls->groups, "key 'groups': found '%s', expected names of groups",
			tls->groups ? tls->groups : "");
	return check_suites(m, ctx);
}

/* 1: it was read. */
static int tls_contexts_trust(SSL_CTX *ctx, const char *path)
{
	STACK_OF(X509_NAME) *names = SSL_load_client_CA_file_ex(path, tls_library(), NULL);

	SSL_CTX_set_client_CA_list(ctx, names);
	return names && SSL_CTX_load_verify_file(ctx, path) == 1;
}

static int load_authorities(const struct making *m, SSL_CTX *ctx)
{
	const struct conf_tls *tls = &m->listener->conf->tls;
	char why[WHY_MAX];

	return pem_file_use(ctx, "client_ca", tls->client_ca, PEM_AUTHORITIES, tls_contexts_trust, why, sizeof why)
		       ? contexts_fault(m, &tls->client_ca, "%s", why)
		       : 0;
}

static int set_client_certificates(const struct making *m, SSL_CTX *ctx)
{
	const struct conf_tls *tls = &m->listener->conf->tls;

	if (tls->client_certificate == CONF_CLIENT_CERT_NONE || !tls->client_ca)
		return 0;
	if (load_authorities(m, ctx) < 0)
		return CSSL_E_CONFIG;
	if (m->listener->crls && client_crls_use(m->listener->crls, SSL_CTX_get_cert_store(ctx)) < 0)
		return contexts_fault(m, &tls->client_crl, "key 'client_crl': not accepted by OpenSSL");
	SSL_CTX_set_verify(ctx,
		SSL_VERIFY_PEER |
			(tls->client_certificate == CONF_CLIENT_CERT_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
		handshake_on_verify);
	return 0;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
	unsigned in_len, void *arg)
{
	const struct tls_listener *l = arg;
	unsigned char *chosen;

	if (SSL_select_next_proto(&chosen, out_len, l->alpn, l->alpn_len, in, in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol (RFC 7301 3.2) */
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *context_create(const struct making *m)
{
	const struct tls_listener *l = m->listener;
	OSSL_LIB_CTX *library = tls_library();
	SSL_CTX *ctx = library ? SSL_CTX_new_ex(library, tls_library_query(l->algorithms), TLS_server_method()) : NULL;

	if (!ctx) {
		contexts_fault(m, NULL, "no context");
		return NULL;
	}
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
					 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
	/* Without it every handshake searches a chain in the store of client CAs. */
	SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_max_cert_list(ctx, CERTIFICATES_MAX);
	/* Early data is never accepted. Early data of a client with another terminator's ticket are skipped. */
	SSL_CTX_set_max_early_data(ctx, 0);
	SSL_CTX_set_recv_max_early_data(ctx, EARLY_DATA_SKIPPED_MAX);
	if (l->alpn_len > 0)
		SSL_CTX_set_alpn_select_cb(ctx, on_alpn, (void *)l);
	hello_callback_set(ctx);
	export_callbacks_set(ctx, l->algorithms);
	session_callbacks_set(ctx, l);
	const int r = set_algorithms(m, ctx);
	if (set_client_certificates(m, ctx) == 0 && r == 0) /* both faults are told */
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

/* --- sets of certificates --- */

static const struct tls_certificate *best_of_type(
	const struct tls_listener *l, const char *name, enum certificate_type type)
{
	char pattern[NAME_MAX_LEN + 1];
	const struct tls_certificate *by_pattern = NULL;

	host_name_pattern(name, pattern);
	for (size_t i = 0; i < l->certificate_count; i++) {
		const struct tls_certificate *c = l->certificates[i];
		if (c->type != type)
			continue;
		if (tls_certificate_has_name(c, name))
			return c;
		if (!by_pattern && pattern[0] && tls_certificate_has_name(c, pattern))
			by_pattern = c;
	}
	return by_pattern;
}

/* @x NULL: there is none, and true. */
static bool hash_certificate(EVP_MD_CTX *md, const X509 *x)
{
	unsigned char print[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	return !x || (X509_digest(x, EVP_sha256(), print, &len) == 1 && EVP_DigestUpdate(md, print, len) == 1);
}

/* The session id context: a hash of everything that binds a resumption (listener, certificate, client-certificate
 * policy). */
static int session_context_of(const struct making *m, const struct named_set *set, uint8_t out[static 32])
{
	const struct conf_listener *l = m->listener->conf;
	static const char label[] = "CSSL session id context 1";
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	uint8_t policy = (uint8_t)l->tls.client_certificate;
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
		  EVP_DigestUpdate(md, label, sizeof label) == 1 &&
		  EVP_DigestUpdate(md, l->name, strlen(l->name) + 1) == 1 && EVP_DigestUpdate(md, &policy, 1) == 1;

	for (unsigned t = 0; ok && t < CERTIFICATE_TYPE_COUNT; t++)
		ok = hash_certificate(md, set->of_type[t] ? set->of_type[t]->leaf : NULL);
	/* The store holds client_ca and CRLs. Hash client_ca only: CRLs may change. */
	const STACK_OF(X509_OBJECT) *authorities = X509_STORE_get0_objects(SSL_CTX_get_cert_store(set->ctx));
	for (int i = 0; ok && i < sk_X509_OBJECT_num(authorities); i++)
		ok = hash_certificate(md, X509_OBJECT_get0_X509(sk_X509_OBJECT_value(authorities, i)));
	ok = ok && EVP_DigestFinal_ex(md, out, NULL) == 1;
	EVP_MD_CTX_free(md);
	return ok ? 0 : CSSL_E_CRYPTO;
}

static int set_complete(const struct making *m, struct named_set *set)
{
	uint8_t context[32];

	set->ctx = context_create(m);
	if (!set->ctx)
		return CSSL_E_CONFIG;
	for (unsigned t = 0; t < CERTIFICATE_TYPE_COUNT; t++)
		if (set->of_type[t] && tls_certificate_use(set->of_type[t], set->ctx) < 0)
			return contexts_fault(m, &set->of_type[t]->from->chain,
				"key 'chain': found '%s' with a key of %d bits, expected keys and signatures that "
				"security level %d takes: make a certificate with a key of RSA 2048 or ECDSA P-256, "
				"signed with SHA-256",
				set->of_type[t]->from->chain, EVP_PKEY_get_bits(set->of_type[t]->key),
				SSL_CTX_get_security_level(set->ctx));
	if (session_context_of(m, set, context) < 0 ||
		SSL_CTX_set_session_id_context(set->ctx, context, sizeof context) != 1)
		return contexts_fault(m, NULL, "no session id context");
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct named_set *)a)->name, ((const struct named_set *)b)->name);
}

static int add_set(const struct making *m, struct tls_listener *l, const struct named_set *add)
{
	struct named_set *set = &l->names[l->name_count++];

	*set = *add;
	for (struct named_set *other = l->names; other < set; other++) {
		if (memcmp(other->of_type, set->of_type, sizeof set->of_type) != 0)
			continue;
		SSL_CTX_up_ref(other->ctx);
		set->ctx = other->ctx;
		return 0;
	}
	return set_complete(m, set);
}

static int add_named(const struct making *m, struct tls_listener *l, const char *name)
{
	struct named_set set = { .name = name };

	for (size_t i = 0; i < l->name_count; i++)
		if (strcmp(l->names[i].name, name) == 0)
			return 0;
	for (unsigned t = 0; t < CERTIFICATE_TYPE_COUNT; t++)
		set.of_type[t] = best_of_type(l, name, (enum certificate_type)t);
	return add_set(m, l, &set);
}

static int make_sets(const struct making *m, struct tls_listener *l)
{
	const struct tls_certificate *first = l->certificates[0];
	struct named_set of_first = { .name = "" };
	size_t names = 1;
	int r = 0;

	for (size_t i = 0; i < l->certificate_count; i++)
		names += l->certificates[i]->name_count;
	of_first.of_type[first->type] = first;
	l->names = calloc(names, sizeof *l->names);
	if (!l->names)
		return CSSL_E_NO_MEMORY;
	if (first->name_count == 0) /* no name selects the default certificate: it is the only one of its set */
		r = add_set(m, l, &of_first);
	for (size_t i = 0; r == 0 && i < l->certificate_count; i++)
		for (size_t n = 0; r == 0 && n < l->certificates[i]->name_count; n++)
			r = add_named(m, l, l->certificates[i]->names[n]);
	l->fallback = l->names[0].ctx;
	qsort(l->names, l->name_count, sizeof *l->names, compare_names);
	return r;
}

static SSL_CTX *find_exactly(const struct tls_listener *l, const char *name)
{
	struct named_set key = { .name = name };
	const struct named_set *found = bsearch(&key, l->names, l->name_count, sizeof key, compare_names);

	return found ? found->ctx : NULL;
}

SSL_CTX *tls_listener_default(const struct tls_listener *l)
{
	return l->fallback;
}

SSL_CTX *tls_listener_choose(const struct tls_listener *l, const char *name)
{
	char pattern[NAME_MAX_LEN + 1];
	SSL_CTX *ctx = name[0] ? find_exactly(l, name) : NULL;

	if (!ctx && name[0]) {
		host_name_pattern(name, pattern);
		ctx = find_exactly(l, pattern);
	}
	return ctx ? ctx : tls_listener_default(l);
}

/* --- listeners --- */

/* The protocol number @i, or NULL behind the last one. */
static const char *alpn_protocol(const struct conf_listener *conf, size_t i)
{
	if (conf->alpn_count == 0)
		return service_alpn(conf->service)[i];
	return i < conf->alpn_count ? conf->alpn[i].protocol : NULL;
}

static int make_alpn(const struct making *m, struct tls_listener *l)
{
	const struct conf_listener *conf = l->conf;
	const char *protocol;
	size_t len = 0;

	for (size_t i = 0; (protocol = alpn_protocol(conf, i)); i++) {
		size_t n = strlen(protocol);
		if (n == 0 || n > UINT8_MAX)
			return contexts_fault(m, &conf->alpn[i].protocol,
				"key 'alpn': found '%s', expected 1 to 255 bytes", protocol);
		len += n + 1;
	}
	l->alpn = malloc(len + 1);
	if (!l->alpn)
		return CSSL_E_NO_MEMORY;
	for (size_t i = 0; (protocol = alpn_protocol(conf, i)); i++) {
		size_t n = strlen(protocol);
		l->alpn[l->alpn_len++] = (uint8_t)n;
		memcpy(l->alpn + l->alpn_len, protocol, n);
		l->alpn_len += (unsigned)n;
	}
	return 0;
}

static int find_certificates(const struct making *m, struct tls_listener *l)
{
	const struct conf_tls *tls = &l->conf->tls;

	if (tls->certificate_count == 0)
		return contexts_fault(m, NULL, "key 'certificates': expected at least one");
	l->certificates = calloc(tls->certificate_count, sizeof *l->certificates);
	if (!l->certificates)
		return CSSL_E_NO_MEMORY;
	for (size_t i = 0; i < tls->certificate_count; i++) {
		const struct conf_certificate *from = conf_certificate_find(m->conf, tls->certificates[i]);
		const struct tls_certificate *found = from ? &m->certificates[from - m->conf->certificates] : NULL;
		if (!from)
			contexts_fault(m, &tls->certificates[i],
				"key 'certificates': found '%s', expected the name of a certificate",
				tls->certificates[i]);
		if (found && found->leaf) /* else its fault was told */
			l->certificates[l->certificate_count++] = found;
	}
	return l->certificate_count == tls->certificate_count ? 0 : CSSL_E_CONFIG;
}

static int load_crls(const struct making *m, struct tls_listener *l)
{
	const struct conf_tls *tls = &l->conf->tls;

	char why[WHY_MAX];

	if (!tls->client_crl)
		return 0;
	l->crls = client_crls_load(tls->client_crl, why, sizeof why);
	return l->crls ? 0 : contexts_fault(m, &tls->client_crl, "key 'client_crl': %s", why);
}

static int listener_make(const struct making *m, struct tls_listener *l)
{
	int r = find_certificates(m, l);
	const int crls = load_crls(m, l), alpn = make_alpn(m, l);

	r = r ? r : crls ? crls : alpn;
	if (r == 0)
		return make_sets(m, l);
	SSL_CTX_free(context_create(m)); /* tells its faults, too */
	return r;
}

static void listener_unmake(struct tls_listener *l)
{
	for (size_t i = 0; i < l->name_count; i++)
		SSL_CTX_free(l->names[i].ctx);
	sk_X509_CRL_pop_free(l->crls, X509_CRL_free);
	free(l->names);
	free(l->certificates);
	free(l->alpn);
}

enum tls_algorithms tls_contexts_algorithms(const struct conf *conf)
{
	return conf->own_provider == CONF_ON ? tls_library_best() : TLS_ALGORITHMS_OPENSSL;
}

/* All faults are told, not only the first one. */
static bool make_all(
	struct tls_contexts *t, const struct conf *conf, struct session_source *source, struct complaints *complaints)
{
	bool ok = true;

	for (size_t i = 0; i < conf->certificate_count; i++)
		ok &= tls_certificate_load(
			      conf, &conf->certificates[i], &t->certificates[t->certificate_count++], complaints) == 0;
	for (size_t i = 0; i < conf->listener_count; i++) {
		struct tls_listener *l = &t->listeners[t->count++];
		*l = (struct tls_listener){
			.conf = &conf->listeners[i], .source = source, .algorithms = tls_contexts_algorithms(conf)
		};
		ok &= listener_make(&(struct making){ conf, t->certificates, l, complaints }, l) == 0;
	}
	return ok;
}

struct tls_contexts *tls_contexts_create(
	const struct conf *conf, struct session_source *source, char *error, size_t error_cap)
{
	struct tls_contexts *t = calloc(1, sizeof *t);
	struct complaints complaints;

	complaints_start(&complaints, conf->file.path, error, error_cap);
	if (t) {
		atomic_init(&t->references, 1);
		t->certificates = calloc(conf->certificate_count + 1, sizeof *t->certificates);
		t->listeners = calloc(conf->listener_count + 1, sizeof *t->listeners);
	}
	if (t && t->certificates && t->listeners && make_all(t, conf, source, &complaints))
		return t;
	if (complaints.count == 0)
		complain_plain(&complaints, 0, "%s", cssl_strerror(CSSL_E_NO_MEMORY));
	tls_contexts_unref(t);
	return NULL;
}

struct tls_contexts *tls_contexts_ref(struct tls_contexts *t)
{
	atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
	return t;
}

void tls_contexts_unref(struct tls_contexts *t)
{
	if (!t || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < t->count; i++)
		listener_unmake(&t->listeners[i]);
	for (size_t i = 0; i < t->certificate_count; i++)
		tls_certificate_unload(&t->certificates[i]);
	free(t->certificates);
	free(t->listeners);
	free(t);
}

const struct tls_certificate *tls_contexts_certificates(const struct tls_contexts *t, size_t *count)
{
	*count = t->certificate_count;
	return t->certificates;
}

const struct tls_listener *tls_listener_find(const struct tls_contexts *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->listeners[i].conf->name, name) == 0)
			return &t->listeners[i];
	return NULL;
}

const struct conf_listener *tls_listener_conf(const struct tls_listener *l)
{
	return l->conf;
}

/* tls_contexts.h: OpenSSL's contexts for every listener of the cluster file: certificates by SNI (RSA and ECDSA side by
 * side), versions, suites, groups, ALPN, client certificates, session callbacks. Made once, shared by all workers,
 * replaced whole on SIGHUP; handshakes under way keep the one they began with (reference counted, thread-safe). */
#pragma once

#include "conf/conf.h"
#include "sslagent/tls/session_source.h"
#include "sslagent/tls/tls_library.h"

struct tls_contexts;
struct tls_listener; /* one listener's contexts; lives as long as the tls_contexts it came from */

/* Judges all PEM files of the cluster file, for the start, for a reload and for --check (@source NULL). NULL: @error
 * has a line for each fault: file, line, key, what was found, what was expected, remedy. @conf and @source outlive
 * them. */
#define TLS_FAULTS_MAX 8192u
struct tls_contexts *tls_contexts_create(
	const struct conf *conf, struct session_source *source, char *error, size_t error_cap);
struct tls_contexts *tls_contexts_ref(struct tls_contexts *t);
void tls_contexts_unref(struct tls_contexts *t);

/* Which HMAC, TLS13-KDF and TLS1-PRF the handshakes of @conf's contexts use. */
enum tls_algorithms tls_contexts_algorithms(const struct conf *conf);

/* In the order of the cluster file (tls_certificate.h). */
struct tls_certificate;
const struct tls_certificate *tls_contexts_certificates(const struct tls_contexts *t, size_t *count);

const struct tls_listener *tls_listener_find(const struct tls_contexts *t, const char *name);
const struct conf_listener *tls_listener_conf(const struct tls_listener *l);

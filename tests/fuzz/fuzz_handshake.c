/* fuzz_handshake.c: records of a client that follows no rule, into a handshake with everything on: two certificates,
 * ALPN, client certificates, tickets, a source that parks. It must go on, park, complete or fail with an alert, and
 * what it says must be whole records. */
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/tls_contexts.h"
#include "tests/fuzz/must.h"
#include "tests/lib/memory_agent.h"

static struct tls_contexts *contexts;
static struct memory_source source;
static struct session_source parking;

/* Other agents have the odd ids. */
static enum session_answer find(struct session_source *s, const uint8_t *id, size_t len, struct sess_obj *out)
{
	return len == SESSION_ID_LEN && (id[0] & 1) ? SESSION_ELSEWHERE : SESSION_ABSENT;
}

static void prepare(void)
{
	static struct test_pki pki;
	static struct test_identity rsa, ecdsa;
	static struct memory_conf conf;
	char error[512];

	MUST(test_pki_start(&pki) == 0);
	MUST(test_pki_issue(&pki, "www.example.org", TEST_RSA, "www.example.org", 0, &rsa) == 0);
	MUST(test_pki_issue(&pki, "www.example.org", TEST_ECDSA, "www.example.org,*.example.net", 0, &ecdsa) == 0);
	memory_conf_fill(&conf, (struct test_identity *[]){ &ecdsa, &rsa }, 2);
	conf.alpn[0].protocol = (char *)"h2";
	conf.alpn[1].protocol = (char *)"http/1.1";
	conf.listener.alpn_count = 2;
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	conf.listener.tls.tls12_tickets = CONF_ON;
	memory_source_start(&source, "a1");
	parking = source.source;
	parking.find = find;
	contexts = tls_contexts_create(&conf.conf, &parking, error, sizeof(error));
	MUST(contexts);
	test_identity_free(&rsa);
	test_identity_free(&ecdsa);
	test_pki_stop(&pki);
}

static void check_output(struct handshake *h)
{
	const uint8_t *data;
	size_t len = handshake_output(h, &data);
	struct tls_record_run run = { 0 };
	struct tls_record_header bad;

	if (len == 0)
		return;
	MUST(tls_record_scan_run(data, len, len, &run, &bad) == 0 && run.len == len);
	handshake_output_taken(h, len);
	MUST(handshake_output(h, &data) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct tls_record_header header;
	int step = HANDSHAKE_MORE;

	if (!contexts)
		prepare();
	struct handshake_params params = { .client.len = 4 };
	struct handshake *h = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
	MUST(h);
	while (step == HANDSHAKE_MORE && tls_record_scan(in, len, &header) == 0) {
		size_t n = TLS_RECORD_HEADER_LEN + header.length;
		step = handshake_feed(h, in, n);
		if (step == HANDSHAKE_PARKED) {
			const uint8_t *none;
			MUST((handshake_wanted_id(h)[0] & 1) && handshake_output(h, &none) == 0);
			step = handshake_continue(h);
			MUST(step != HANDSHAKE_PARKED);
		}
		check_output(h);
		in += n;
		len -= n;
	}
	MUST(step == HANDSHAKE_MORE || (step < 0 && handshake_error(h)[0]));
	if (step < 0)
		MUST(handshake_feed(h, (const uint8_t *)"", 0) == CSSL_E_STATE);
	handshake_destroy(h);
	return 0;
}

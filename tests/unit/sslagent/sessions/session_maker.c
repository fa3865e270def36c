/* session_maker.c: sessions as an agent would share them, without a handshake. */
#include "tests/unit/sslagent/sessions/session_maker.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

static void set_client(struct client_address *to, const char *text)
{
	if (!text)
		return;
	if (inet_pton(AF_INET, text, to->bytes) == 1)
		to->len = 4;
	else if (inet_pton(AF_INET6, text, to->bytes) == 1)
		to->len = 16;
}

static void set_facts(struct session_facts *f)
{
	f->protocol_version = 0x0304;
	f->cipher_suite = 0x1301;
	snprintf(f->listener, sizeof(f->listener), "front");
}

void session_make(struct made_session *s, const struct session_wish *wish)
{
	struct session_facts *f = &s->obj.facts;

	memset(s, 0, sizeof(*s));
	set_facts(f);
	f->session_id_len = SESSION_ID_LEN;
	if (wish->id)
		memcpy(f->session_id, wish->id, SESSION_ID_LEN);
	else
		randombytes_buf(f->session_id, SESSION_ID_LEN);
	if (wish->family_id)
		memcpy(f->family_id, wish->family_id, FAMILY_ID_LEN);
	else
		randombytes_buf(f->family_id, FAMILY_ID_LEN);
	f->family_age_s = wish->family_age_s;
	if (wish->cipher_suite)
		f->cipher_suite = wish->cipher_suite;
	if (wish->client_certificate) {
		s->obj.certificate = (const uint8_t *)wish->client_certificate;
		s->obj.certificate_len = strlen(wish->client_certificate);
	}
	snprintf(f->origin, sizeof(f->origin), "%s", wish->origin ? wish->origin : "a");
	snprintf(f->server_name, sizeof(f->server_name), "%s", wish->server_name ? wish->server_name : "");
	set_client(&f->client, wish->client);
	s->obj.session_len = wish->der_len ? wish->der_len : 135;
	s->obj.session = s->der;
	randombytes_buf(s->der, s->obj.session_len);
	s->obj.session_remaining_s = wish->remaining_s ? wish->remaining_s : 3600;
}

void live_make(struct made_session *s, const struct live_wish *wish)
{
	struct live_part *l = &s->live;

	memset(s, 0, sizeof(*s));
	set_facts(&s->obj.facts);
	snprintf(s->obj.facts.origin, sizeof(s->obj.facts.origin), "a");
	l->connection = wish->connection;
	l->epoch = wish->epoch;
	l->read_generation = wish->read_generation;
	l->write_generation = wish->write_generation;
	l->client_write.secret_len = l->server_write.secret_len = 32;
	randombytes_buf(l->client_write.secret, 32);
	randombytes_buf(l->server_write.secret, 32);
	l->remaining_s = wish->remaining_s ? wish->remaining_s : 3600;
	l->made_ms = wish->exported_ms;
	s->obj.live = l;
}

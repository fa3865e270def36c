/* test_link_clear.c: facts of streams whose clients speak in clear, when their link breaks: what was said is held, and
 * comes again; meanwhile nobody is answered.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/scratch.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

#define EHLO     "EHLO client.example\r\n"
#define STARTTLS "STARTTLS\r\n"
#define MAIL     "MAIL FROM:<a@x.example>\r\n"

static void send_words(struct peer *x, const char *words)
{
	uint8_t header[FRAME_HEADER_LEN];

	frame_header_write(header, 1, FRAME_DATA, FRAME_PLAINTEXT, (uint16_t)strlen(words));
	write_all(x->fd, header, sizeof header);
	write_all(x->fd, words, strlen(words));
}

static void send_accepted(struct peer *x, uint64_t drained, unsigned frames)
{
	const struct frame_accepted a = { .drained = drained, .received = frames };
	uint8_t payload[FRAME_ACCEPTED_MAX];
	const size_t len = frame_accepted_write(payload, &a);

	send_frame(x, 1, FRAME_ACCEPTED, payload, len);
}

static void send_preamble(struct peer *x)
{
	Cssl__LinkPreamble m = CSSL__LINK_PREAMBLE__INIT;

	id_bytes[0]++;
	m.connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	m.listener = (char *)"clear";
	m.endpoints = fake_endpoints();
	send_message(x, 1, FRAME_PREAMBLE, &m.base);
	cssl__endpoints__free_unpacked(m.endpoints, NULL);
}

/* All that was said on stream 1 of @x; "NAME " for a frame without words. */
static const char *heard(const struct peer *x)
{
	static char words[4096];
	size_t len = 0;

	for (unsigned i = 0; i < x->count; i++) {
		const struct frame *f = &x->frames[i];
		if (f->stream != 1 || f->type == FRAME_REATTACHED)
			continue;
		if (f->type == FRAME_DATA)
			len += (size_t)snprintf(
				words + len, sizeof words - len, "%.*s", (int)f->len, (const char *)f->payload);
		else
			len += (size_t)snprintf(words + len, sizeof words - len, "%s ", frame_type_name(f->type));
	}
	words[len] = '\0';
	return words;
}

static void greet(void)
{
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	send_preamble(&p);
	send_words(&p, EHLO);
	peers_until(strstr(heard(&p), "STARTTLS\r\n") && count_of(&p, FRAME_TAKEN) == 1);
}

static void lose_link(void)
{
	close(p.fd);
	p.fd = -1;
	wait_until(carriers.parked != NULL);
}

static struct frame_reattached reattach(void)
{
	struct frame_reattached answer;

	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 0);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1);
	ck_assert_int_eq(frame_reattached_read(last_of(&q, FRAME_REATTACHED), &answer), 0);
	return answer;
}

START_TEST(what_was_said_in_clear_comes_again)
{
	greet();
	lose_link();
	const struct frame_reattached answer = reattach();
	ck_assert_uint_eq(answer.frame, 1);
	ck_assert_uint_eq(answer.bytes, 0);
	ck_assert_uint_eq(answer.client_records, strlen(EHLO));
	peers_until(count_of(&q, FRAME_TAKEN) == 1);
	ck_assert_str_eq(heard(&q), heard(&p));
	send_words(&q, "NOOP\r\n");
	peers_until(strstr(heard(&q), "250 2.0.0 Ok\r\n"));
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED), 1);
	close_peers();
}
END_TEST

START_TEST(what_was_confirmed_does_not)
{
	greet();
	const size_t said = strlen(heard(&p)) - strlen("TAKEN ");
	send_accepted(&p, said, 3);
	send_words(&p, "NOOP\r\n");
	peers_until(strstr(heard(&p), "250 2.0.0 Ok\r\n"));
	lose_link();
	const struct frame_reattached answer = reattach();
	ck_assert_uint_eq(answer.frame, 4);
	ck_assert_uint_eq(answer.bytes, said);
	peers_until(count_of(&q, FRAME_TAKEN) == 1);
	ck_assert_str_eq(heard(&q), "250 2.0.0 Ok\r\nTAKEN ");
	close_peers();
}
END_TEST

START_TEST(without_a_proof_it_ends_with_its_link)
{
	open_peers();
	send_preamble(&p);
	peers_until(count_of(&p, FRAME_DATA) == 1);
	close(p.fd);
	p.fd = -1;
	wait_until(carriers.preambles.count == 0);
	ck_assert_ptr_null(carriers.parked);
	close_peers();
}
END_TEST

START_TEST(the_answer_to_starttls_is_held_until_ragent_has_it)
{
	greet();
	send_words(&p, STARTTLS);
	peers_until(strstr(heard(&p), "220 2.0.0"));
	ck_assert_uint_eq(carriers.preambles.count, 0);
	lose_link();
	const struct frame_reattached answer = reattach();
	ck_assert_uint_eq(answer.client_records, strlen(EHLO STARTTLS));
	peers_until(strstr(heard(&q), "220 2.0.0"));
	const struct frame *last = last_of(&q, FRAME_DATA);
	ck_assert_uint_eq(last->flags, FRAME_PLAINTEXT | FRAME_REPLY_COMPLETE | FRAME_RECORDS_FOLLOW);
	ck_assert_str_eq(heard(&q), heard(&p));
	send_frame(&q, 1, FRAME_CLOSE, "\0", 1);
	wait_until(carriers.links->streams.count == 0);
	close_peers();
}
END_TEST

/* It is asked once, then not any more. */
START_TEST(ragent_ends_what_it_does_not_go_on_with)
{
	greet();
	lose_link();
	reattach();
	send_frame(&q, 1, FRAME_CLOSE, "\0", 1);
	wait_until(carriers.preambles.count == 0);
	ck_assert_uint_eq(carriers.links->streams.count, 0);
	close_peers();
}
END_TEST

START_TEST(a_client_in_clear_waits_for_its_time_only)
{
	set_lost_ms(120);
	greet();
	lose_link();
	wait_until(carriers.preambles.count == 0 && carriers.parked == NULL);
	ck_assert_uint_eq(counted(COUNT_STREAMS_NOT_REATTACHED), 1);
	close_peers();
}
END_TEST

/* Neither does it read the server, nor does the server get anything. */
START_TEST(mail_in_clear_stands_still_until_ragent_goes_on)
{
	greet();
	send_words(&p, MAIL);
	peers_until(backend_waits());
	backend_take();
	lose_link();
	ck_assert_int_eq(write(backend, "220 server\r\n", 12), 12);
	turns(20);
	char byte;
	ck_assert_int_lt(read(backend, &byte, 1), 0);
	const struct frame_reattached answer = reattach();
	ck_assert_uint_eq(answer.client_records, strlen(EHLO MAIL));
	turns(20);
	ck_assert_int_lt(read(backend, &byte, 1), 0);
	send_accepted(&q, 0, 0);
	backend_hear(EHLO);
	ck_assert_int_eq(write(backend, "250 server\r\n", 12), 12);
	backend_hear(MAIL);
	ck_assert_int_eq(write(backend, "250 m\r\n", 7), 7);
	peers_until(strstr(heard(&q), "RELAYED ") && strstr(heard(&q), "250 m\r\n"));
	close_peers();
}
END_TEST

START_TEST(nobody_else_gets_it)
{
	greet();
	lose_link();
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, "another RAgent, or one that guesses", sizeof proof);
	send_reattach(&q, 0);
	peers_until(count_of(&q, FRAME_REFUSED) == 1);
	close_peers();
}
END_TEST

UNIT(link_clear)
{
	const struct connection_fact facts[] = {
		{ what_was_said_in_clear_comes_again, 0 },
		{ what_was_confirmed_does_not, 0 },
		{ without_a_proof_it_ends_with_its_link, 0 },
		{ the_answer_to_starttls_is_held_until_ragent_has_it, 0 },
		{ ragent_ends_what_it_does_not_go_on_with, 0 },
		{ a_client_in_clear_waits_for_its_time_only, 0 },
		{ mail_in_clear_stands_still_until_ragent_goes_on, 0 },
		{ nobody_else_gets_it, 0 },
	};

	return connection_suite_run("link_clear", facts, FACTS_LEN(facts));
}

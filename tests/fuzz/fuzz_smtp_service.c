/* fuzz_smtp_service.c: a mail session whose owner is lost wherever its client and its server stand. The input is lines;
 * one that begins with '<' is the server's, '!' is a loss, and any other line is the client's. Every piece for a client
 * is one whole reply.
 */
#include <string.h>

#include <sodium.h>

#include "conf/conf.h"
#include "sslagent/service/service.h"
#include "tests/fuzz/must.h"

#define RECORDS_MAX 64u

static char host[] = "mx.example";
static const struct conf_listener listener = { .name = host, .service = CONF_SMTP, .smtp = { .hostname = host } };

struct run {
	struct service_blocks blocks;
	struct service s;
	const uint8_t *said[RECORDS_MAX]; /* since the checkpoint */
	size_t said_len[RECORDS_MAX];
	unsigned from, records, sealed;
	uint16_t epoch;
	uint8_t note[SERVICE_NOTE_MAX];
	size_t note_len;
};

static void own(struct run *r)
{
	static const uint8_t id[] = { 1 };
	const struct service_owner owner = { .id = id, .id_len = 1, .epoch = ++r->epoch };

	service_init(&r->s, CONF_SMTP, &r->blocks);
	service_of_listener(&r->s, &listener);
	MUST(service_own(&r->s, &owner) == 0);
}

static void leave_note(struct run *r)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const size_t len = service_note(&r->s, note);

	if (len == 0)
		return;
	memcpy(r->note, note, len);
	r->note_len = len;
}

static void must_be_a_reply(const uint8_t *data, size_t len)
{
	MUST(len >= 5 && data[0] >= '2' && data[0] <= '5' && data[len - 1] == '\n');
	for (size_t at = 0; at < len;) {
		const uint8_t *end = memchr(data + at, '\n', len - at);
		const size_t next = (size_t)(end + 1 - data);
		MUST(next == len || data[at + 3] == '-');
		at = next;
	}
}

static void step(struct run *r)
{
	const uint8_t *data;
	size_t len;

	if (service_wants_backend(&r->s))
		MUST(service_backend_begins(&r->s) == 0);
	if (service_for_backend(&r->s, &data))
		leave_note(r);
	service_given_to_backend(&r->s);
	service_taken(&r->s);
	while ((len = service_for_client(&r->s, &data)) > 0) {
		leave_note(r);
		must_be_a_reply(data, len);
		service_from_backend(&r->s, data, len);
		r->sealed++;
	}
	if (service_place(&r->s) != SERVICE_CHECKPOINT)
		return;
	service_at_checkpoint(&r->s);
	r->sealed = 0;
	r->from = r->records;
}

static void say(struct run *r, unsigned record)
{
	service_at_record(&r->s, record + 1);
	service_from_client(&r->s, r->said[record], r->said_len[record]);
}

static void lose(struct run *r)
{
	const int at_checkpoint = r->from == r->records && r->sealed == 0;
	const struct service_resumption how = { .note = r->note,
		.len = r->note_len,
		.replies = r->sealed,
		.at_checkpoint = r->sealed == 0,
		.from = at_checkpoint ? SERVICE_RESUME_AT_CHECKPOINT : SERVICE_RESUME_CUT };

	service_destroy(&r->s);
	own(r);
	if (service_resume(&r->s, &how) < 0) {
		service_destroy(&r->s);
		own(r);
		r->from = r->records;
		r->sealed = 0;
		r->note_len = 0;
		return;
	}
	for (unsigned i = r->from; !at_checkpoint && i < r->records; i++)
		say(r, i);
	service_heard_all(&r->s);
}

static void line(struct run *r, const uint8_t *in, size_t len)
{
	if (in[0] == '<') {
		service_backend_says(&r->s, in + 1, len - 1);
	} else if (in[0] == '!') {
		lose(r);
	} else if (r->records < RECORDS_MAX) {
		r->said[r->records] = in;
		r->said_len[r->records] = len;
		say(r, r->records++);
	}
	step(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	struct run r = { 0 };

	MUST(sodium_init() >= 0);
	service_blocks_init(&r.blocks);
	own(&r);
	while (len && r.epoch < 1000) {
		const uint8_t *end = memchr(in, '\n', len);
		const size_t n = end ? (size_t)(end + 1 - in) : len;
		line(&r, in, n);
		in += n;
		len -= n;
	}
	service_destroy(&r.s);
	service_blocks_clear(&r.blocks);
	return 0;
}

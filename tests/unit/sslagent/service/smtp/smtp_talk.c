/* smtp_talk.c: owners of a conversation of service smtp, one after another. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "sslagent/counters.h"
#include "tests/unit/sslagent/service/smtp/smtp_talk.h"

struct owner a, b;

static char host[] = "mx.example";
struct conf_listener listener;
struct conf_backend backend;
struct service_blocks blocks;
static struct agent_counters *counters;

void setup(void)
{
	listener = (struct conf_listener){ .name = host, .service = CONF_SMTP, .smtp = { .hostname = host } };
	backend = (struct conf_backend){ .name = host };
	service_blocks_init(&blocks);
	counters = agent_counters_create(1);
	counters_use(counters_of(counters, 0));
}

void teardown(void)
{
	service_destroy(&a.s);
	service_destroy(&b.s);
	service_blocks_clear(&blocks);
	counters_use(NULL);
	agent_counters_destroy(counters);
}

void own(struct owner *o, uint16_t epoch)
{
	static const uint8_t id[2] = { 0x0a, 0x1b };
	const struct service_owner owner = { .id = id,
		.id_len = sizeof id,
		.backend = &backend,
		.epoch = epoch,
		.client = "192.0.2.1",
		.client_port = 99 };

	service_destroy(&o->s);
	*o = (struct owner){ 0 };
	service_init(&o->s, CONF_SMTP, &blocks);
	service_of_listener(&o->s, &listener);
	ck_assert_int_eq(service_own(&o->s, &owner), 0);
}

/* As a connection does before anything is seen outside. */
static void leave_note(struct owner *o)
{
	uint8_t note[SERVICE_NOTE_MAX];
	const size_t len = service_note(&o->s, note);

	if (len == 0)
		return;
	memcpy(o->note, note, len);
	o->note_len = len;
}

void client_says(struct owner *o, const char *words)
{
	service_at_record(&o->s, ++o->record);
	service_from_client(&o->s, (const uint8_t *)words, strlen(words));
	leave_note(o);
	if (service_wants_backend(&o->s))
		ck_assert_int_eq(service_backend_begins(&o->s), 0);
}

void server_says(struct owner *o, const char *words)
{
	service_backend_says(&o->s, (const uint8_t *)words, strlen(words));
}

void server_heard(struct owner *o, const char *words)
{
	const uint8_t *data;
	const size_t len = service_for_backend(&o->s, &data);

	leave_note(o);
	ck_assert_uint_eq(len, strlen(words));
	ck_assert_mem_eq(data ? data : (const uint8_t *)"", words, len);
	service_given_to_backend(&o->s);
}

void server_heard_group(struct owner *o, const char *first, const char *others)
{
	char all[1000];

	snprintf(all, sizeof all, "%s%s", first, others);
	server_heard(o, all);
}

void client_heard(struct owner *o, const char *words)
{
	const uint8_t *data;
	const size_t len = service_for_client(&o->s, &data);

	leave_note(o);
	ck_assert_uint_gt(len, 0);
	ck_assert_msg(len == strlen(words) && memcmp(data, words, len) == 0, "%.*s", (int)len, data);
	service_from_backend(&o->s, data, len);
	o->sealed++;
	if (service_place(&o->s) != SERVICE_CHECKPOINT)
		return;
	service_at_checkpoint(&o->s);
	o->sealed = 0;
}

void client_heard_nothing(struct owner *o)
{
	const uint8_t *data;

	ck_assert_uint_eq(service_for_client(&o->s, &data), 0);
}

void greeted(struct owner *o)
{
	own(o, 1);
	client_says(o, "EHLO client.example\r\n");
	server_heard(o, "");
	server_says(o, "220 backend\r\n");
	server_heard(o, "EHLO client.example\r\n");
	server_says(o, OFFERS);
	client_heard(o, SHOWN);
}

/* The number of a mail in an epoch: its MAIL begins @from bytes behind the beginning of record @record. */
static unsigned long long number_of(uint16_t epoch, uint64_t record, size_t from)
{
	return (unsigned long long)((uint64_t)epoch << 48 | record << 14 | (from + strlen(MAIL "\r\n") - 1));
}

const char *named_at(uint16_t epoch, uint64_t record, size_t from)
{
	static char line[200];

	snprintf(line, sizeof line, MAIL " XCSSLTX=0a1b/%llu\r\n", number_of(epoch, record, from));
	return line;
}

const char *named(const char *command, uint16_t epoch, uint64_t record)
{
	return named_at(epoch, record, 0);
}

void in_content(struct owner *o)
{
	greeted(o);
	client_says(o, MAIL "\r\n");
	server_heard(o, named(MAIL, 1, 2));
	server_says(o, "250 m\r\n");
	client_heard(o, "250 m\r\n");
	client_says(o, "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_heard(o, "RCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says(o, "250 r\r\n354 go\r\n");
	client_heard(o, "250 r\r\n");
	client_heard(o, "354 go\r\n");
	client_says(o, "hello\r\n");
	server_heard(o, "hello\r\n");
}

int resume_at(struct owner *to, const struct owner *from, uint16_t epoch, int how, const char *const *said)
{
	own(to, epoch);
	const struct service_resumption r = { .note = from->note,
		.len = from->note_len,
		.replies = from->sealed,
		.at_checkpoint = from->sealed == 0,
		.from = how };
	int result = service_resume(&to->s, &r);
	if (result < 0)
		return result;
	to->record = 1;
	to->sealed = from->sealed;
	memcpy(to->note, from->note, from->note_len);
	to->note_len = from->note_len;
	for (; *said; said++) {
		service_at_record(&to->s, ++to->record);
		service_from_client(&to->s, (const uint8_t *)*said, strlen(*said));
	}
	if (how == SERVICE_RESUME_CUT)
		service_heard_all(&to->s);
	if (service_wants_backend(&to->s))
		ck_assert_int_eq(service_backend_begins(&to->s), 0);
	return 0;
}

void resume(struct owner *to, const struct owner *from, const char *const *said)
{
	ck_assert_int_eq(resume_at(to, from, 2, SERVICE_RESUME_CUT, said), 0);
}

void server_begins(struct owner *o, const char *offers)
{
	server_says(o, "220 another\r\n");
	server_heard(o, "EHLO client.example\r\n");
	server_says(o, offers);
}

const char *question_at(uint16_t epoch, uint64_t record, size_t from)
{
	static char line[100];

	snprintf(line, sizeof line, "XCSSLTX 0a1b/%llu 5f\r\n", number_of(epoch, record, from));
	return line;
}

const char *question(uint16_t epoch)
{
	return question_at(epoch, 2, 0);
}

/* test_source_mail.c: facts of the mails that smtp-source makes: the bytes on the wire agree with the mark. */
#include "bench/mail/source_mail.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/mail/sink_mail.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MADE_US 1764467000000042 /* 2025-11-30 01:43:20 UTC */

static struct source_options options;
static struct sink_options sink_options;

static void begin(void)
{
	memset(&options, 0, sizeof options);
	memset(&sink_options, 0, sizeof sink_options);
	options.name = "source.example";
	options.recipients = 1;
}

/* Head and body as DATA carries them, in pieces of @step bytes, through the code of smtp-sink. */
static void sink_finds_it_right(struct source_mail *mail, size_t step)
{
	char head[SOURCE_HEAD_MAX];
	size_t head_len = source_mail_head(mail, &options, 7, MADE_US, head), taken, len = head_len + mail->wire_len;
	char *all = malloc(len);
	struct sink_mail *m = sink_mail_create(smtp_span_of("a@b"), &sink_options);
	int ended = 0;
	ck_assert(all && m);
	memcpy(all, head, head_len);
	memcpy(all + head_len, mail->wire, mail->wire_len);
	sink_mail_begin_data(m, &sink_options);
	for (size_t at = 0; at < len; at += taken) {
		ck_assert(!ended);
		ended = sink_mail_data(m, &sink_options, all + at, len - at < step ? len - at : step, &taken);
	}
	ck_assert(ended);
	ck_assert_uint_eq(m->len, head_len + mail->body_len);
	ck_assert_uint_eq(m->len, smtp_data_message_len(&m->data));
	ck_assert_int_eq(mail_check_end(&m->check), MAIL_RIGHT);
	sink_mail_destroy(m);
	free(all);
}

static void make_and_check(void)
{
	static const size_t steps[] = { 1, 2, 3, 5, 100, 5000, 1u << 30 };
	struct source_mail mail;
	ck_assert_int_eq(source_mail_make(&mail, &options), 0);
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		sink_finds_it_right(&mail, steps[i]);
	source_mail_free(&mail);
}

START_TEST(a_generated_mail_of_any_length_is_right)
{
	static const uint64_t lengths[] = { 0, 1, 2, 3, 79, 80, 81, 1000, 20000 };
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		options.length = lengths[i];
		make_and_check();
	}
}
END_TEST

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

START_TEST(a_mail_from_a_file_is_right)
{
	static const char *const texts[] = { "Subject: a\n\n.one\n..\n.\nlast", "Subject: a\r\n\r\nb\r\n", "no head",
		"\nbody\n" };
	char path[] = "/tmp/source_mail.XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	options.file = path;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		write_file(path, texts[i]);
		make_and_check();
	}
	unlink(path);
}
END_TEST

START_TEST(the_head_tells_when_the_mail_was_made)
{
	char head[SOURCE_HEAD_MAX], id[100];
	struct source_mail mail;
	ck_assert_int_eq(source_mail_make(&mail, &options), 0);
	source_mail_head(&mail, &options, 7, MADE_US, head);
	ck_assert_ptr_nonnull(strstr(head, "\r\nDate: Sun, 30 Nov 2025 01:43:20 +0000\r\n"));
	snprintf(id, sizeof id, "\r\nMessage-Id: <%s-7.1764467000000042@source.example>\r\n", mail.run);
	ck_assert_ptr_nonnull(strstr(head, id));
	source_mail_free(&mail);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_an_error)
{
	struct source_mail mail;
	options.file = "/nowhere/at/all";
	ck_assert_int_lt(source_mail_make(&mail, &options), 0);
	source_mail_free(&mail);
}
END_TEST

START_TEST(recipients_are_numbered_as_wanted)
{
	struct source_mail mail;
	char line[SOURCE_COMMAND_MAX];
	options.to = "user@there.example";
	ck_assert_int_eq(source_mail_make(&mail, &options), 0);
	source_mail_rcpt(&mail, &options, 5, 0, line);
	ck_assert_str_eq(line, "RCPT TO:<user@there.example>\r\n");
	options.recipients = 3;
	source_mail_rcpt(&mail, &options, 5, 2, line);
	ck_assert_str_eq(line, "RCPT TO:<2user@there.example>\r\n");
	options.names = SOURCE_NUMBERED_NAMES;
	source_mail_rcpt(&mail, &options, 5, 2, line);
	ck_assert_str_eq(line, "RCPT TO:<17user@there.example>\r\n");
	source_mail_free(&mail);
}
END_TEST

UNIT(source_mail)
{
	const TTest *facts[] = {
		a_generated_mail_of_any_length_is_right,
		a_mail_from_a_file_is_right,
		the_head_tells_when_the_mail_was_made,
		a_file_that_is_not_there_is_an_error,
		recipients_are_numbered_as_wanted,
	};
	return sodium_init() < 0 ? 1 : suite_run_with("source_mail", begin, facts, SUITE_LEN(facts));
}

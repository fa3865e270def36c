/* test_smtp_wiping.c: what a mail session gives back to the allocator holds no password any more. service/smtp is built
 * for it a second time, with free and realloc named as below. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "conf/conf.h"
#include "sslagent/counters.h"
#include "sslagent/service/service.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define PASSWORD "cGFzc3dvcmQtb2YtYS1jbGllbnQ="

void watched_free(void *block);
void *watched_realloc(void *block, size_t len);

static unsigned freed, found;

void watched_free(void *block)
{
	if (block) {
		freed++;
		found += memmem(block, malloc_usable_size(block), PASSWORD, strlen(PASSWORD)) != NULL;
	}
	free(block);
}

/* It moves every time. */
void *watched_realloc(void *block, size_t len)
{
	void *moved = malloc(len);
	const size_t had = block ? malloc_usable_size(block) : 0;

	if (!moved)
		return NULL;
	if (block)
		memcpy(moved, block, had < len ? had : len);
	watched_free(block);
	return moved;
}

static char host[] = "mx.example";
static const struct conf_listener listener = { .name = host, .service = CONF_SMTP, .smtp = { .hostname = host } };
static struct service_blocks blocks;
static struct service s;
static uint64_t record;

static void client_says(const char *words)
{
	service_at_record(&s, ++record);
	service_from_client(&s, (const uint8_t *)words, strlen(words));
	if (service_wants_backend(&s))
		ck_assert_int_eq(service_backend_begins(&s), 0);
	service_given_to_backend(&s);
}

static void server_says(const char *words)
{
	const uint8_t *data;
	size_t len;

	service_backend_says(&s, (const uint8_t *)words, strlen(words));
	service_given_to_backend(&s);
	while ((len = service_for_client(&s, &data)) > 0)
		service_from_backend(&s, data, len);
}

static void begin(void)
{
	const struct service_owner owner = { .epoch = 1 };

	service_blocks_init(&blocks);
	service_init(&s, CONF_SMTP, &blocks);
	service_of_listener(&s, &listener);
	ck_assert_int_eq(service_own(&s, &owner), 0);
	client_says("EHLO client.example\r\n");
	server_says("220 backend\r\n");
	server_says("250-backend\r\n250 AUTH LOGIN\r\n");
	freed = found = 0;
}

static void end(void)
{
	service_destroy(&s);
	service_blocks_clear(&blocks);
	ck_assert_uint_gt(freed, 0);
	ck_assert_uint_eq(found, 0);
}

START_TEST(a_password_is_not_left_behind_by_the_words_that_follow)
{
	begin();
	client_says("AUTH LOGIN\r\n");
	server_says("334 go\r\n");
	client_says(PASSWORD "\r\n");
	server_says("235 ok\r\n");
	client_says("MAIL FROM:<a-sender-with-a-name-that-is-longer-than-the-password@x.example> SIZE=1000\r\n");
	end();
}
END_TEST

START_TEST(a_password_that_waited_is_not_left_behind)
{
	begin();
	client_says("NOOP\r\nAUTH LOGIN\r\n" PASSWORD "\r\n");
	server_says("250 ok\r\n334 go\r\n");
	server_says("235 ok\r\n");
	client_says("MAIL FROM:<a-sender-with-a-name-that-is-longer-than-the-password@x.example> SIZE=1000\r\n");
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_password_is_not_left_behind_by_the_words_that_follow);
	tcase_add_test(t, a_password_that_waited_is_not_left_behind);
}

UNIT(smtp_wiping)
{
	return sodium_init() < 0 ? 1 : run_suite("smtp_wiping", add);
}

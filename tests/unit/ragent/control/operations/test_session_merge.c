/* test_session_merge.c: pages of agents that hold parts, and parts of each other's. Ids are one letter here. */
#include <stdio.h>
#include <string.h>

#include "proto/session_id.h"
#include "ragent/control/operations/session_merge.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define AGENTS       3u
#define LETTERS      26u
#define AT_OF_LETTER 10u /* the random part */

static struct told {
	Cssl__LinkResponse__Sessions page;
	Cssl__Session sessions[LETTERS], *pointers[LETTERS];
	uint8_t ids[LETTERS][SESSION_ID_LEN];
} told[AGENTS];

static const Cssl__LinkResponse__Sessions *pages[AGENTS];
static struct merged_session merged[LETTERS];
static enum merged_more more;

/* What agent @i tells: one session for each letter; a '+' at the end: it has more. */
static void tell(unsigned i, const char *letters)
{
	struct told *t = &told[i];

	memset(t, 0, sizeof *t);
	cssl__link_response__sessions__init(&t->page);
	t->page.session = t->pointers;
	pages[i] = &t->page;
	for (; *letters && *letters != '+'; letters++) {
		const size_t at = t->page.n_session++;

		cssl__session__init(&t->sessions[at]);
		t->pointers[at] = &t->sessions[at];
		t->ids[at][AT_OF_LETTER] = (uint8_t)*letters;
		t->ids[at][0] = *letters == '-' ? 0 : 1;
		t->sessions[at].session_id = (ProtobufCBinaryData){ *letters == '-' ? 3 : SESSION_ID_LEN, t->ids[at] };
		t->sessions[at].hits = i + 1;
		t->sessions[at].expires_s = 10 - i;
	}
	if (*letters == '+')
		t->page.next = t->sessions[t->page.n_session - 1].session_id;
}

/* The merged page in the same letters. */
static const char *merge(size_t count, size_t limit)
{
	static char letters[LETTERS + 2];
	const size_t rows = session_merge(pages, count, limit, merged, &more);

	ck_assert_uint_le(rows, limit);
	memset(letters, 0, sizeof letters);
	for (size_t i = 0; i < rows; i++)
		letters[i] = (char)merged[i].session->session_id.data[AT_OF_LETTER];
	if (more == MERGED_GOES_ON)
		letters[rows] = '+';
	return letters;
}

START_TEST(sessions_stand_in_the_order_of_their_ids)
{
	tell(0, "beh");
	tell(1, "adi");
	tell(2, "cfg");
	ck_assert_str_eq(merge(3, 20), "abcdefghi");
}
END_TEST

START_TEST(a_session_that_several_hold_is_one_with_the_hits_of_all)
{
	tell(0, "ac");
	tell(1, "ab");
	tell(2, "a");
	ck_assert_str_eq(merge(3, 20), "abc");
	ck_assert_uint_eq(merged[0].hits, 1 + 2 + 3);
	ck_assert_uint_eq(merged[0].expires_s, 10);
	ck_assert_uint_eq(merged[1].hits, 2);
	ck_assert_uint_eq(merged[1].expires_s, 9);
}
END_TEST

START_TEST(a_page_ends_where_an_agent_has_more_to_tell)
{
	tell(0, "ad+");
	tell(1, "bcz");
	ck_assert_str_eq(merge(2, 20), "abcd+");
	tell(0, "ad");
	ck_assert_str_eq(merge(2, 20), "abcdz");
}
END_TEST

START_TEST(a_page_ends_at_its_limit)
{
	tell(0, "ac");
	tell(1, "bc");
	ck_assert_str_eq(merge(2, 2), "ab+");
	ck_assert_str_eq(merge(2, 3), "abc");
	tell(1, "bc+");
	ck_assert_str_eq(merge(2, 3), "abc+");
}
END_TEST

START_TEST(one_page_stays_as_it_is)
{
	tell(0, "abc+");
	ck_assert_str_eq(merge(1, 3), "abc+");
	tell(0, "");
	ck_assert_str_eq(merge(1, 3), "");
	ck_assert_str_eq(merge(0, 3), "");
}
END_TEST

START_TEST(sessions_without_an_id_are_left_out)
{
	tell(0, "-b-");
	tell(1, "--a");
	ck_assert_str_eq(merge(2, 20), "ab");
}
END_TEST

START_TEST(pages_one_after_the_other_have_every_session_once)
{
	static const char *const held[AGENTS] = { "acdfgjkmq", "bcdehilmz", "afnopqrst" };
	char all[2 * LETTERS] = "", part[LETTERS];
	char from = 'a';

	do {
		for (unsigned i = 0; i < AGENTS; i++) {
			const char *rest = held[i];
			while (*rest && *rest < from)
				rest++;
			snprintf(part, sizeof part, "%.2s%s", rest, strlen(rest) > 2 ? "+" : "");
			tell(i, part);
		}
		strcat(all, merge(AGENTS, 2));
		from = more == MERGED_GOES_ON ? all[strlen(all) - 2] + 1 : 0;
		if (from)
			all[strlen(all) - 1] = '\0';
	} while (from);
	ck_assert_str_eq(all, "abcdefghijklmnopqrstz");
}
END_TEST

UNIT(session_merge)
{
	const TTest *const facts[] = {
		sessions_stand_in_the_order_of_their_ids,
		a_session_that_several_hold_is_one_with_the_hits_of_all,
		a_page_ends_where_an_agent_has_more_to_tell,
		a_page_ends_at_its_limit,
		one_page_stays_as_it_is,
		sessions_without_an_id_are_left_out,
		pages_one_after_the_other_have_every_session_once,
	};
	return suite_run("session_merge", facts, SUITE_LEN(facts));
}

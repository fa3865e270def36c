/* milter_peer.c: see milter_peer.h. */
#include "milter_peer.h"

#include <string.h>

struct packet packet, macros;
uint32_t milter_flags;

/* Packets */

static void hear(unsigned n, struct packet *p, const uint8_t *head)
{
	const uint32_t len = wire_load_u32(head) - 1;

	p->letter = (char)head[4];
	ck_assert_uint_le(p->len + len, sizeof p->content - 1);
	read_exactly(peer_fd(n), p->content + p->len, len);
	p->len += len;
	p->content[p->len] = '\0';
}

void peer_hears(unsigned n, char letter)
{
	uint8_t head[5];

	do {
		read_exactly(peer_fd(n), head, sizeof head);
		packet.len = 0;
		hear(n, head[4] == MILTER_MACRO ? &macros : &packet, head);
	} while (head[4] == MILTER_MACRO);
	ck_assert_int_eq(packet.letter, letter);
}

void peer_says(unsigned n, char letter, const void *content, size_t len)
{
	uint8_t head[5];

	wire_store_u32(head, (uint32_t)len + 1);
	head[4] = (uint8_t)letter;
	write_all(peer_fd(n), head, sizeof head);
	if (len)
		write_all(peer_fd(n), content, len);
}

void peer_says_options(unsigned n, uint32_t version, uint32_t actions, uint32_t flags)
{
	uint8_t content[12];

	wire_store_u32(content, version);
	wire_store_u32(content + 4, actions);
	wire_store_u32(content + 8, flags);
	peer_says(n, MILTER_OPTIONS, content, sizeof content);
}

/* The conversation */

/* The parts of a message with one field, in their order. */
const struct milter_wishes milter_parts[MILTER_PARTS] = {
	[MILTER_PART_OPTIONS] = { 'O', FILTER_MAIL, 0, 0 },
	[MILTER_PART_CONNECT] = { 'C', FILTER_MAIL, MILTER_NO_CONNECT, MILTER_SILENT_CONNECT },
	[MILTER_PART_HELO] = { 'H', FILTER_MAIL, MILTER_NO_HELO, MILTER_SILENT_HELO },
	[MILTER_PART_MAIL] = { 'M', FILTER_MAIL, MILTER_NO_MAIL, MILTER_SILENT_MAIL },
	[MILTER_PART_RCPT] = { 'R', FILTER_RCPT, MILTER_NO_RCPT, MILTER_SILENT_RCPT },
	[MILTER_PART_DATA] = { 'T', FILTER_DATA, MILTER_NO_DATA, MILTER_SILENT_DATA },
	[MILTER_PART_FIELD] = { 'L', FILTER_MESSAGE, MILTER_NO_HEADER, MILTER_SILENT_HEADER },
	[MILTER_PART_GAP] = { 'N', FILTER_MESSAGE, MILTER_NO_END_OF_HEADER, MILTER_SILENT_END_OF_HEADER },
	[MILTER_PART_CHUNK] = { 'B', FILTER_MESSAGE, MILTER_NO_BODY, MILTER_SILENT_BODY },
	[MILTER_PART_END] = { 'E', FILTER_MESSAGE, 0, 0 },
};
static const char text[] = "A: 1\r\n\r\nbody\r\n.\r\n";

void milter_setup(void)
{
	hooks_setup();
	milter_flags = 0;
}

void ask_step(enum filter_step step)
{
	static const char *const addresses[] = { "s@a.example", "r@b.example", "", "" };

	if (step == FILTER_MESSAGE)
		message_is(text, sizeof text - 1);
	asks(step, addresses[step], "");
}

/* The milter agrees to all before @part, and has heard @part. It sends no reply to parts that it does not want, or to
 * which it is silent. */
static void agree_until(unsigned part)
{
	for (unsigned i = 0; i <= part; i++) {
		if (i == 0 || milter_parts[i].step != milter_parts[i - 1].step)
			ask_step(milter_parts[i].step);
		if (i == 0)
			peer_accept(0);
		if (!(milter_flags & milter_parts[i].no))
			peer_hears(0, milter_parts[i].letter);
		if (i == part)
			return;
		if (i == 0)
			peer_says_options(0, 6, 0x1ff, 0x02000000 | milter_flags); /* more than it was offered */
		else if (!(milter_flags & (milter_parts[i].no | milter_parts[i].silent)))
			peer_says(0, 'c', NULL, 0);
		if (milter_parts[i].step != milter_parts[i + 1].step)
			ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	}
}

/* A new transaction, and what came before is forgotten. */
void begin_until(enum milter_part part)
{
	filter_begin("a");
	macros = (struct packet){ 0 };
	hooks_find(&hooks, "a")->state = HOOK_GOOD;
	agree_until(part);
}

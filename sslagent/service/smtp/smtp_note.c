/* smtp_note.c: version (1) | greeting (1) | flags (1) | epoch (2) | offers (4) | record (8) | at (2) | end reply (4)
 * | told (16) | client, entry and classes, each after its length (1).
 */
#include "sslagent/service/smtp/smtp_note.h"

#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "proto/wire.h"
#include "smtp/command.h"

#define NOTE_VERSION 1u
#define RECORD_BITS  34u
#define AT_BITS      14u

enum note_flag { FLAG_AUTHENTICATED = 1, FLAG_BANNER_HAD = 2, FLAG_COUNTLESS = 4, FLAGS_ALL = 7 };

uint64_t smtp_mark_number(struct smtp_mark mark, uint16_t epoch)
{
	if (mark.record == 0 || mark.record >> RECORD_BITS || mark.at == 0 || (mark.at - 1) >> AT_BITS)
		return 0;
	return (uint64_t)epoch << (RECORD_BITS + AT_BITS) | mark.record << AT_BITS | (mark.at - 1);
}

static void smtp_note_put_text(struct wire_writer *w, const char *text, size_t len)
{
	wire_put_u8(w, (uint8_t)len);
	wire_put_bytes(w, text, len);
}

size_t smtp_note_write(const struct smtp_note *note, uint8_t out[static SMTP_NOTE_MAX])
{
	struct wire_writer w = wire_writer(out, SMTP_NOTE_MAX);

	wire_put_u8(&w, NOTE_VERSION);
	wire_put_u8(&w, note->greeting);
	wire_put_u8(&w, (uint8_t)((note->authenticated ? FLAG_AUTHENTICATED : 0) |
				  (note->banner == SMTP_BANNER_HAD ? FLAG_BANNER_HAD : 0) |
				  (note->replies == SMTP_REPLIES_COUNTLESS ? FLAG_COUNTLESS : 0)));
	wire_put_u16(&w, note->epoch);
	wire_put_u32(&w, note->offers);
	wire_put_u64(&w, note->tx.record);
	wire_put_u16(&w, note->tx.at);
	wire_put_u32(&w, note->end_reply);
	wire_put_bytes(&w, note->told, SMTP_TOLD_LEN);
	smtp_note_put_text(&w, note->client, strlen(note->client));
	smtp_note_put_text(&w, note->entry, strlen(note->entry));
	smtp_note_put_text(&w, note->classes, note->classes_len);
	return (size_t)wire_writer_len(&w);
}

/* 0 or CSSL_E_RANGE. A missing byte shows at the end. */
static int take_text(struct wire_reader *r, char *out, size_t cap, size_t *len)
{
	const uint8_t n = wire_u8(r);
	const uint8_t *text = wire_bytes(r, n);

	*len = 0;
	if (n > cap || (text && memchr(text, 0, n)))
		return CSSL_E_RANGE;
	if (text)
		memcpy(out, text, n);
	*len = text ? n : 0;
	return 0;
}

static int take_texts(struct wire_reader *r, struct smtp_note *note)
{
	size_t len;
	int result = take_text(r, note->client, SMTP_DOMAIN_MAX, &len);

	if (result == 0)
		result = take_text(r, note->entry, SMTP_TX_ENTRY_MAX, &len);
	if (result == 0)
		result = take_text(r, note->classes, SMTP_CLASSES_MAX, &len);
	note->classes_len = (uint8_t)len;
	return result;
}

static bool makes_sense(const struct smtp_note *note, unsigned flags)
{
	const struct smtp_span entry = smtp_span_of(note->entry);
	const bool greeted = note->greeting == SMTP_VERB_EHLO || note->greeting == SMTP_VERB_HELO;

	return !(flags & ~(unsigned)FLAGS_ALL) && (greeted || note->greeting == SMTP_VERB_UNKNOWN) &&
	       greeted == (note->client[0] != 0) && (entry.len == 0 || smtp_tx_entry_is_good(entry)) &&
	       (!greeted || smtp_domain_is_greeting(smtp_span_of(note->client), SMTP_PARSE_LENIENT));
}

int smtp_note_read(const uint8_t *in, size_t len, struct smtp_note *out)
{
	struct wire_reader r = wire_reader(in, len);
	struct smtp_note note = { 0 };
	const uint8_t version = wire_u8(&r);

	note.greeting = wire_u8(&r);
	const unsigned flags = wire_u8(&r);
	note.epoch = wire_u16(&r);
	note.offers = wire_u32(&r);
	note.tx.record = wire_u64(&r);
	note.tx.at = wire_u16(&r);
	note.end_reply = wire_u32(&r);
	const uint8_t *told = wire_bytes(&r, SMTP_TOLD_LEN);
	int result = take_texts(&r, &note);
	if (len && version != NOTE_VERSION)
		return CSSL_E_VERSION;
	if (result == 0)
		result = wire_reader_end(&r);
	if (result == 0 && !makes_sense(&note, flags))
		result = CSSL_E_RANGE;
	if (result < 0)
		return result;
	memcpy(note.told, told, SMTP_TOLD_LEN);
	note.authenticated = flags & FLAG_AUTHENTICATED ? 1 : 0;
	note.banner = flags & FLAG_BANNER_HAD ? SMTP_BANNER_HAD : SMTP_BANNER_OWED;
	note.replies = flags & FLAG_COUNTLESS ? SMTP_REPLIES_COUNTLESS : SMTP_REPLIES_COUNTED;
	*out = note;
	return 0;
}

/* The digests of the lines are added up, so their order does not matter. */
void smtp_told(const struct smtp_ehlo *set, uint8_t out[static SMTP_TOLD_LEN])
{
	uint8_t line[SMTP_TOLD_LEN], text[SMTP_EHLO_TEXT_MAX];

	memset(out, 0, SMTP_TOLD_LEN);
	for (unsigned i = 0; i < set->count; i++) {
		for (unsigned at = 0; at < set->lines[i].len; at++) {
			const char c = set->text[set->lines[i].at + at];
			text[at] = (uint8_t)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
		}
		crypto_generichash(line, sizeof line, text, set->lines[i].len, NULL, 0);
		sodium_add(out, line, SMTP_TOLD_LEN);
	}
}

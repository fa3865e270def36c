/* tx_message.c: a writer and a reader for each kind. */
#include "smtpproxy/ledger/tx_message.h"

#include <assert.h>
#include <string.h>

#include "proto/error.h"

static void tx_message_put_text(struct wire_writer *w, struct smtp_span text)
{
	wire_put_u16(w, (uint16_t)text.len);
	if (text.len > 0)
		wire_put_bytes(w, text.at, text.len);
}

/* Of at most @max bytes; a longer one spends the reader. */
static struct smtp_span take_text(struct wire_reader *r, size_t max)
{
	const size_t len = wire_u16(r);
	const uint8_t *at = wire_bytes(r, len <= max ? len : SIZE_MAX);
	return (struct smtp_span){ (const char *)at, at ? len : 0 };
}

size_t tx_message_write(const struct tx_message *m, uint8_t *out)
{
	struct wire_writer w = wire_writer(out, TX_MESSAGE_MAX);
	uint8_t *begin = wire_put_room(&w, 2);
	wire_put_u8(&w, (uint8_t)m->kind);
	if (m->kind != TX_MESSAGE_ENTRY)
		wire_put_u32(&w, m->ticket);
	if (m->kind != TX_MESSAGE_ANSWER) {
		tx_message_put_text(&w, m->id);
		tx_message_put_text(&w, m->key);
	}
	if (m->kind == TX_MESSAGE_QUESTION)
		wire_put_u64(&w, m->number);
	if (m->kind == TX_MESSAGE_ANSWER) {
		wire_put_u8(&w, (uint8_t)m->fate);
		tx_message_put_text(&w, m->reply);
	}
	if (m->kind == TX_MESSAGE_ENTRY) {
		wire_put_u64(&w, m->newest);
		wire_put_u64(&w, m->forgotten);
		wire_put_u8(&w, (uint8_t)m->decisions);
		for (unsigned i = 0; i < m->decisions; i++) {
			wire_put_u64(&w, m->decided[i].number);
			tx_message_put_text(&w, m->decided[i].reply);
		}
	}
	const ptrdiff_t len = wire_writer_len(&w);
	assert(len > 0);
	wire_store_u16(begin, (uint16_t)(len - 2));
	return (size_t)len;
}

static void read_entry(struct wire_reader *r, struct tx_message *m)
{
	m->newest = wire_u64(r);
	m->forgotten = wire_u64(r);
	m->decisions = wire_u8(r);
	if (m->decisions > TX_LEDGER_DECISIONS)
		wire_bytes(r, SIZE_MAX);
	for (unsigned i = 0; r->at && i < m->decisions; i++) {
		m->decided[i].number = wire_u64(r);
		m->decided[i].reply = take_text(r, TX_LEDGER_REPLY_MAX - 1);
	}
}

static void read_names(struct wire_reader *r, struct tx_message *m)
{
	m->id = take_text(r, SMTP_TX_ID_MAX);
	m->key = take_text(r, SMTP_TX_ENTRY_MAX);
}

int tx_message_read(const uint8_t *in, size_t len, struct tx_message *m)
{
	const size_t content = len >= 2 ? wire_load_u16(in) : 0;
	struct wire_reader r;
	/* A length that no message has is refused at once. To wait for its bytes would fill the buffer. */
	if (len < 2 || (len < 2 + content && content <= TX_MESSAGE_MAX))
		return 0;
	if (content > TX_MESSAGE_MAX)
		return CSSL_E_TOO_LONG;
	memset(m, 0, sizeof *m);
	r = wire_reader(in + 2, content);
	m->kind = (enum tx_message_kind)wire_u8(&r);
	switch (m->kind) {
	case TX_MESSAGE_QUESTION:
		m->ticket = wire_u32(&r);
		read_names(&r, m);
		m->number = wire_u64(&r);
		break;
	case TX_MESSAGE_ANSWER:
		m->ticket = wire_u32(&r);
		m->fate = (enum smtp_fate)wire_u8(&r);
		m->reply = take_text(&r, TX_LEDGER_REPLY_MAX - 1);
		break;
	case TX_MESSAGE_ENTRY:
		read_names(&r, m);
		read_entry(&r, m);
		break;
	default: return CSSL_E_TYPE;
	}
	if (m->fate > SMTP_FATE_UNKNOWN)
		return CSSL_E_RANGE;
	const int r2 = wire_reader_end(&r);
	return r2 < 0 ? r2 : (int)(2 + content);
}

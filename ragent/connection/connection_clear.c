/* connection_clear.c: passes the bytes of a client and an agent that speak in clear, in both directions, while there
 * is room. The client's bytes wait in its stream until the banner was sent, and when they exceed the window. RAgent
 * only looks at their number, and at whether the agent's reply is complete. It keeps the client's bytes until the agent
 * has read them, so that the agent gets those that were lost with a link or a process.
 */
#include "proto/error.h"
#include "ragent/connection/connection_clear.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_saved.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"

#define REPLY_FLAGS (FRAME_PLAINTEXT | FRAME_REPLY_COMPLETE | FRAME_RECORDS_FOLLOW)

static struct preamble *preamble_of(const struct connection *c)
{
	return c->busy->preamble;
}

/* --- from the client --- */

static uint64_t clear_window(const struct connection *c)
{
	return connection_phase(c) == CONNECTION_RELAYED ? connection_window(c) : FRAME_PREAMBLE_WINDOW;
}

static size_t clear_room(const struct connection *c)
{
	const uint64_t under_way = kept_len(&c->busy->kept);

	if (preamble_of(c)->now.said == PREAMBLE_NOTHING || under_way >= clear_window(c))
		return 0;
	return (size_t)(clear_window(c) - under_way);
}

/* No read brings more than has room. Before the banner nothing has. */
static void clear_bound_reads(struct connection *c)
{
	if (clear_room(c))
		stream_set_read_max(&c->busy->client, (uint32_t)clear_room(c));
}

static void clear_send_kept(struct connection *c)
{
	if (connection_takes_bytes(c))
		connection_send_kept(c, FRAME_PLAINTEXT);
}

size_t connection_clear_take(struct connection *c, uint8_t *data, size_t len)
{
	size_t n = clear_room(c);

	n = n < len ? n : len;
	if (n && kept_append(&c->busy->kept, &c->home->blocks, data, n, (unsigned)n) < 0) {
		connection_end(c, END_INTERNAL, END_RESET);
		return len;
	}
	c->now.client_bytes += n;
	if (clear_room(c) == 0) {
		c->now.reading = CLIENT_PAUSED;
		stream_read_stop(&c->busy->client);
	}
	clear_bound_reads(c);
	clear_send_kept(c);
	return n;
}

/* The client's end goes to the agent after all its bytes. */
static void clear_tell_fin(struct connection *c)
{
	if (c->now.tail != TAIL_FIN || c->now.tail_told == TAIL_TOLD || stream_kept(&c->busy->client) ||
		kept_unsent_len(&c->busy->kept) || !connection_takes_bytes(c))
		return;
	c->now.tail_told = TAIL_TOLD;
	link_send(c->now.current.link, c->now.current.stream, FRAME_FIN, 0, NULL, 0);
}

void connection_clear_pump(struct connection *c)
{
	clear_send_kept(c);
	if (!clear_room(c))
		return;
	clear_bound_reads(c);
	if (c->now.tail == TAIL_FIN) {
		if (stream_kept(&c->busy->client))
			stream_read_again(&c->busy->client);
		clear_tell_fin(c);
	} else if (c->now.reading == CLIENT_PAUSED) {
		c->now.reading = CLIENT_READING;
		stream_read_start(&c->busy->client);
	}
}

/* --- to the client --- */

/* 0; 1: the connection was ended. */
static bool clear_say(struct connection *c, const struct frame *f)
{
	if (connection_exceeds_window(c, f->len) || connection_pass_on(c, f) < 0)
		return true;
	connection_fault_at(c, "clear.said");
	return false;
}

/* Bytes that are there now came before the answer to STARTTLS. */
static bool clear_is_injected(const struct connection *c)
{
	return kept_len(&c->busy->kept) > 0 || stream_has_unread(&c->busy->client);
}

void connection_clear_reset_injected(struct connection *c)
{
	char text[ADDRESS_TEXT_MAX];

	counter_add(&c->home->counters.starttls_injections, 1);
	log_paced(LOG_WARNING, &c->id, "bytes injected", "listener=%s client=%s", c->front->conf->name,
		connection_client_text(c, text));
	connection_end(c, END_INJECTION, END_RESET);
}

/* STARTTLS was answered, and the answer may go to the client: TLS begins. */
static void clear_is_over(struct connection *c)
{
	struct preamble *p = c->busy->preamble;

	counter_add(&c->home->counters.starttls_done, 1);
	p->now.hello_ms = connection_now_ms(c);
	c->now.attempts = 0;
	connection_to(c, CONNECTION_HELLO);
	connection_owe_queued(c);
	kept_clear(&c->busy->kept, &c->home->blocks);
	c->busy->kept = (struct kept){ 0 };
	handshake_limit_leave(c->home->preambles, &p->place);
	connection_resume_reading(c);
}

/* After this frame the agent has forgotten the stream. */
static int clear_in_starttls(struct connection *c, const struct frame *f)
{
	if (!(f->flags & FRAME_REPLY_COMPLETE) || c->now.state != CONNECTION_PREAMBLE)
		return CSSL_E_STATE;
	connection_void(c);
	connection_release_current(c);
	connection_fault_at(c, "starttls.answered");
	if (c->now.tail == TAIL_FIN)
		connection_end(c, END_CLIENT_CLOSED, END_ORDERLY);
	else if (clear_is_injected(c))
		connection_clear_reset_injected(c);
	else if (clear_say(c, f) == 0)
		clear_is_over(c);
	return 0;
}

static int clear_in_data(struct connection *c, const struct frame *f)
{
	struct preamble *p = preamble_of(c);
	const bool is_first = p->now.said == PREAMBLE_NOTHING;

	if (!(f->flags & FRAME_PLAINTEXT) || f->flags & ~REPLY_FLAGS)
		return CSSL_E_STATE;
	if (f->flags & FRAME_RECORDS_FOLLOW)
		return clear_in_starttls(c, f);
	if (clear_say(c, f) != 0)
		return 0;
	p->now.said = f->flags & FRAME_REPLY_COMPLETE ? PREAMBLE_WHOLE_REPLIES : PREAMBLE_PART_OF_REPLY;
	if (is_first)
		connection_clear_pump(c);
	return 0;
}

static int clear_in_taken(struct connection *c, const struct frame *f)
{
	int r = kept_consume(&c->busy->kept, wire_load_u64(f->payload));

	if (r < 0)
		return r;
	kept_forget_consumed(&c->busy->kept, &c->home->blocks);
	connection_clear_pump(c);
	return 0;
}

/* Unlike a preamble, a mail is a load that lasts, so the policies count it. */
static int clear_in_relayed(struct connection *c, const struct frame *f)
{
	if (c->now.state != CONNECTION_PREAMBLE || preamble_of(c)->now.said == PREAMBLE_NOTHING)
		return CSSL_E_STATE;
	connection_to(c, CONNECTION_RELAYED);
	connection_assign(c, link_agent(c->now.current.link), NO_AGENT);
	handshake_limit_leave(c->home->preambles, &preamble_of(c)->place);
	connection_clear_pump(c);
	return 0;
}

static int clear_in_refused(struct connection *c, const struct frame *f)
{
	if (preamble_of(c)->now.said != PREAMBLE_NOTHING)
		return CSSL_E_STATE;
	const int refused_by = link_agent(c->now.current.link);
	counter_add(&c->home->counters.opens_refused, 1);
	connection_release_current(c);
	connection_preamble_open(c, refused_by);
	return 0;
}

int connection_clear_frame(struct connection *c, const struct frame *f)
{
	switch (f->type) {
	case FRAME_DATA: return clear_in_data(c, f);
	case FRAME_TAKEN: return clear_in_taken(c, f);
	case FRAME_RELAYED: return clear_in_relayed(c, f);
	case FRAME_REFUSED: return clear_in_refused(c, f);
	default: return CSSL_E_STATE;
	}
}

/* destination.c: gives connections to sessions in their turn. Each change asks for a step at the end of the turn of
 * the loop; the step decides everything again. */
#include "smtpproxy/outward/destination.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/report/log_pace.h"
#include "net/socket/address.h"
#include "proto/error.h"

#define LINGER_MS  (5u * 60u * 1000u) /* a destination without sessions is kept so long, or for its fallback */
#define LINGER_ONE 1u                 /* one of a single message */

static uint64_t now_of(const struct destination *d)
{
	return worker_now_ms(d->home->worker);
}

static void onward_place(struct onward *o, enum destination_place to)
{
	onwards_place(&o->destination->onwards, o, to);
}

/* None is usable, and none may become so soon. */
static bool has_none(const struct destination *d)
{
	return onwards_usable(d->onwards.in) + d->onwards.in[DESTINATION_OPENING] == 0;
}

static void destination_ask_for_step(struct destination *d)
{
	worker_at_turn_end(d->home->worker, &d->step);
}

const struct smtp_ehlo *destination_offers(const struct destination *d)
{
	return d->state == DESTINATION_KNOWN ? &d->offers : NULL;
}

/* Connections */

/* Its sender holds one connection less. */
static void give_place_back(struct destination *d, struct turns_sender **holder)
{
	turns_give_back(&d->wants.turns, *holder);
	*holder = NULL;
}

static void destination_serve(struct want *w, struct onward *o)
{
	struct destination *d = o->destination;
	d->turn_ms += now_of(d) - w->since_ms;
	d->home->counters->turns_waited += now_of(d) > w->since_ms;
	onward_place(o, DESTINATION_LEASED);
	o->holder = w->turn.holder;
	w->turn.holder = NULL;
	w->state = WANT_NOTHING;
	w->promised = NULL;
	w->ops->on_turn(w, o);
}

static void onward_rest(struct onward *o)
{
	onward_place(o, DESTINATION_IDLE);
	onward_expect(o, o->destination->home->conf->outward.idle_ms);
}

/* Learn the extensions of a connection. If there are others, keep only those that all have, because there may be
 * several servers. */
static void learn_offers(struct destination *d, const struct smtp_ehlo *offers)
{
	if (d->state == DESTINATION_KNOWN && onwards_usable(d->onwards.in) > 1)
		smtp_ehlo_narrow(&d->offers, offers);
	else
		d->offers = *offers;
	d->state = DESTINATION_KNOWN;
}

/* A want that was promised a connection waits again. */
static void break_promise(struct onward *o)
{
	struct want *w = o->promised;
	if (!w)
		return;
	want_nothing(w);
	if (want_turn(w, &o->destination->wants) < 0)
		w->ops->on_failed(w, SMTP_OWN_OVERLOADED);
}

static void on_onward_left(struct onward *o)
{
	onward_place(o, DESTINATION_LEAVING);
	break_promise(o);
	destination_ask_for_step(o->destination);
}

/* IDLE, and not to be used any more. */
static void onward_retire(struct onward *o)
{
	onward_quit(o);
	on_onward_left(o);
}

/* While a connection can be used, those that fail beside it say nothing about all of the receiver. */
static void note_handshake(struct destination *d, const struct onward *o)
{
	snprintf(d->wants.said, sizeof d->wants.said, "%s", greeting_said(&o->greeting));
	if (o->shake == ONWARD_SHAKE_WORKED || onwards_usable(d->share->in) == 0)
		fallback_note(&d->share->fallback, o, d->host, now_of(d));
}

static void on_onward_ready(struct onward *o)
{
	struct destination *d = o->destination;
	struct want *w = o->promised;
	note_handshake(d, o);
	d->wants.said[0] = '\0';
	if (o->age != d->onwards.age) {
		onward_retire(o);
		return;
	}
	o->promised = NULL;
	onward_rest(o);
	receiver_limit_taken(&d->share->limit, onwards_usable(d->share->in));
	learn_offers(d, &o->greeting.words->offers);
	greeting_rest(&o->greeting);
	if (w)
		destination_serve(w, o);
	wants_tell_offers(&d->wants);
	destination_ask_for_step(d);
}

static struct destination *destination_lose(struct onward *o)
{
	struct destination *d = o->destination;
	on_onward_left(o);
	note_handshake(d, o);
	receiver_limit_refused(&d->share->limit, onwards_usable(d->share->in), now_of(d));
	return d;
}

static void on_onward_refused(struct onward *o, enum onward_refusal refusal)
{
	struct destination *d = destination_lose(o);
	if (refusal == ONWARD_NOT_REACHED && has_none(d))
		wants_fail(&d->wants, SMTP_OWN_BACKEND_UNREACHABLE);
}

/* Other connections may work: it may take no more than these, or one server of several may have a fault. So this counts
 * as a refusal, or else a new connection would follow at once, as long as a session waits. */
static void on_onward_over(struct onward *o, enum smtp_own why)
{
	struct destination *d = destination_lose(o);
	if (has_none(d))
		wants_fail(&d->wants, why);
}

/* The session with that name gets no connection. All others go on waiting. */
static void on_onward_name_refused(struct onward *o, enum smtp_own why)
{
	struct destination *d = o->destination;
	struct want *w = o->promised;
	onward_place(o, DESTINATION_LEAVING);
	note_handshake(d, o);
	if (w)
		want_fail(w, why);
	while ((w = wants_find_named(&d->wants, o->greeting.name)))
		want_fail(w, why);
	destination_ask_for_step(d);
}

static void wake_first(struct receiver_share *s)
{
	struct destination *d = receiver_share_wake(s);
	if (d)
		destination_ask_for_step(d);
}

static void on_onward_closed(struct onward *o)
{
	struct destination *d = o->destination;
	onwards_remove(&d->onwards, o);
	wake_first(d->share); /* before the step of this one, which had its turn */
	destination_ask_for_step(d);
}

static const struct onward_ops onward_ops = {
	.on_ready = on_onward_ready,
	.on_refused = on_onward_refused,
	.on_over = on_onward_over,
	.on_name_refused = on_onward_name_refused,
	.on_left = on_onward_left,
	.on_closed = on_onward_closed,
};

static int open_one(struct destination *d, const struct onward_demand *demand)
{
	const struct outward_home *home = d->home;
	struct onward *o = calloc(1, sizeof *o);
	if (!o) {
		tlsa_set_drop(demand->set);
		return CSSL_E_NO_MEMORY;
	}
	const struct smtpproxy_source *source =
		route_pick_source(&home->conf->outward, d->route.to.ss_family, d->opened++);
	o->demand = *demand;
	o->destination = d;
	int r = onward_open(o, home, &onward_ops, &d->route, source ? (const struct sockaddr *)&source->address : NULL,
		wants_first_name(&d->wants));
	if (r < 0) {
		char to[ADDRESS_TEXT_MAX], from[ADDRESS_TEXT_MAX] = "any";
		if (source)
			address_format((const struct sockaddr *)&source->address, from);
		log_paced(LOG_WARNING, NULL, "no connection to a receiver", "to=%s from=%s cause=%s",
			address_format((const struct sockaddr *)&d->route.to, to), from, error_text(r));
		home->counters->connections_failed++;
		receiver_limit_refused(&d->share->limit, onwards_usable(d->share->in), now_of(d));
		tlsa_set_drop(demand->set);
		free(o);
		return r;
	}
	onwards_add(&d->onwards, o);
	receiver_share_wait_no_more(d); /* if it needs more, it waits as the last one */
	return 0;
}

/* The step */

static void onward_promise(struct want *w, struct onward *o)
{
	w->state = WANT_PROMISED;
	w->promised = o;
	o->promised = w;
	onward_place(o, DESTINATION_OPENING);
	onward_renew(o, smtp_span_of(w->name));
}

/* 1: the first waiting session is served, or will be. */
static bool serve_first(struct destination *d)
{
	struct turn *t = turns_first(&d->wants.turns);
	struct want *w = container_of(t, struct want, turn);
	struct onward *o = onwards_find_idle(&d->onwards, w->name);
	if (!o)
		return false;
	turns_take(&d->wants.turns);
	w->state = WANT_NOTHING;
	if (strcmp(o->greeting.name, w->name) == 0)
		destination_serve(w, o);
	else
		onward_promise(w, o);
	return true;
}

static uint32_t destination_missing(const struct destination *d)
{
	const uint32_t promised = d->onwards.in[DESTINATION_OPENING];
	const bool offers = d->state == DESTINATION_NEW && !TAILQ_EMPTY(&d->wants.offers);
	const uint32_t wanted = d->wants.turns.count > 0 ? d->wants.turns.count : (uint32_t)offers;
	return wanted > promised ? wanted - promised : 0;
}

bool destination_is_short(const struct destination *d)
{
	return receiver_share_is_wanted(d) ||
	       (d->wants.turns.count > d->onwards.in[DESTINATION_OPENING] && d->onwards.in[DESTINATION_IDLE] == 0);
}

static void retire_idle(struct destination *d)
{
	struct onward *o;
	TAILQ_FOREACH(o, &d->onwards.all, next)
	{
		if (o->place == DESTINATION_IDLE)
			onward_retire(o);
	}
}

/* Of the other destinations of the receiver: those for which nobody waits there. */
static void retire_idle_of_others(const struct destination *for_d)
{
	struct destination *d;
	if (for_d->share->in[DESTINATION_IDLE] == 0)
		return;
	LIST_FOREACH(d, &for_d->share->members, member_next)
	{
		if (d != for_d && d->wants.turns.count == 0)
			retire_idle(d);
	}
}

/* No connection may be opened now. Whoever ends one asks for a step. */
static void wait_for_room(struct destination *d)
{
	const uint64_t wait_ms = receiver_limit_wait_ms(&d->share->limit, now_of(d));
	if (wait_ms != RECEIVER_LIMIT_NEVER)
		deadline_set(d->home->worker, &d->deadline, wait_ms);
	if (receiver_share_wait(d))
		retire_idle_of_others(d);
	if (has_none(d))
		wants_send_elsewhere(&d->wants);
}

/* A receiver also counts connections that it is still closing. So no new ones are opened in their place. */
static void open_missing(struct destination *d)
{
	struct onward_demand demand;
	for (uint32_t left = destination_missing(d); left > 0; left--) {
		struct receiver_limit *limit = &d->share->limit;
		if (!receiver_limit_allows(limit, onwards_count(d->share->in), now_of(d))) {
			wait_for_room(d);
			return;
		}
		enum smtp_own why = dane_demand(&d->dane, &d->route, &demand);
		fallback_apply(&d->share->fallback, &demand, now_of(d));
		if (!why && open_one(d, &demand) < 0)
			why = SMTP_OWN_BACKEND_UNREACHABLE;
		if (why) {
			d->wants.said[0] = '\0';
			if (onwards_count(d->onwards.in) == 0)
				wants_fail(&d->wants, why);
			return;
		}
	}
}

static void destination_linger(struct destination *d)
{
	if (d->sessions > 0 || onwards_count(d->onwards.in) > 0)
		return;
	uint64_t ms = fallback_kept_ms(&d->share->fallback, now_of(d));
	if (ms < LINGER_MS)
		ms = LINGER_MS;
	deadline_set(d->home->worker, &d->deadline, d->route.head == ONWARD_HEADED ? LINGER_ONE : ms);
	d->ops->on_unused(d);
}

/* Of several destinations that share a receiver, the first that waits has the room that is left. */
static void pass_room_on(struct destination *d)
{
	if (d->share == &d->own || d->wait == DESTINATION_WAITS)
		return;
	receiver_share_wait_no_more(d);
	if (receiver_limit_allows(&d->share->limit, onwards_count(d->share->in), now_of(d)))
		wake_first(d->share);
}

/* The step: idle connections go out by turns, then the missing ones are opened. */
static void on_destination_turn_end(struct turn_end *t)
{
	struct destination *d = container_of(t, struct destination, step);
	d->wants.turns.places = d->share->limit.limit;
	while (d->wants.turns.count > 0 && serve_first(d))
		;
	if (destination_missing(d) > 0 && dane_is_known(&d->dane, d->home, &d->route))
		open_missing(d);
	if (destination_missing(d) == 0)
		receiver_share_wait_no_more(d);
	if (d->wants.turns.count == 0 && receiver_share_is_wanted(d))
		retire_idle(d);
	pass_room_on(d);
	destination_linger(d);
	d->ops->on_step(d);
}

/* With or without records, connections are opened at once or fail at once. */
static void on_dane_known(struct dane *dane)
{
	struct destination *d = container_of(dane, struct destination, dane);
	if (destination_missing(d) > 0)
		open_missing(d);
}

static void on_destination_deadline(struct deadline *deadline)
{
	struct destination *d = container_of(deadline, struct destination, deadline);
	if (d->sessions == 0 && onwards_count(d->onwards.in) == 0)
		d->ops->on_expired(d);
	else
		destination_ask_for_step(d);
}

/* Leases */

void destination_take_back(struct destination *d, struct onward *o)
{
	give_place_back(d, &o->holder);
	const bool is_good = o->age == d->onwards.age && d->route.head == ONWARD_BARE &&
			     o->messages < d->home->conf->outward.most_messages && o->refusals < ONWARD_REFUSALS_MOST;
	if (o->state == ONWARD_IDLE && is_good && !receiver_share_is_wanted(d)) {
		onward_rest(o);
	} else {
		if (o->state == ONWARD_IDLE)
			onward_quit(o);
		onward_place(o, DESTINATION_LEAVING);
	}
	destination_ask_for_step(d);
}

void destination_note_lost(struct destination *d, struct onward *o)
{
	give_place_back(d, &o->holder);
	onward_place(o, DESTINATION_LEAVING);
	destination_ask_for_step(d);
}

bool destination_gives_too_much(const struct destination *d, const struct onward *o)
{
	return turns_has_too_many(&d->wants.turns, o->holder);
}

/* Sessions */

void destination_enter(struct destination *d)
{
	d->sessions++;
	d->share->sessions++;
}

void destination_leave(struct destination *d)
{
	d->sessions--;
	d->share->sessions--;
	destination_ask_for_step(d);
}

bool destination_has_its_part(const struct destination *d, uint32_t free_places)
{
	return d->share->sessions > free_places + 1; /* the newest one is among them */
}

/* Life */

/* Leased ones, and those that still open, follow when they come back. */
static void retire_old(struct destination *d)
{
	struct onward *o;
	TAILQ_FOREACH(o, &d->onwards.all, next)
	{
		if (o->place == DESTINATION_IDLE && o->age != d->onwards.age)
			onward_retire(o);
	}
	destination_ask_for_step(d);
}

/* Those of now without TLS are used for no other transaction. */
static void end_clear_ones(struct destination *d)
{
	onwards_age_clear_ones(&d->onwards);
	retire_old(d);
}

/* The fallback is that of the share, so its end counts for all of its destinations. */
void destination_give_up_clear(struct destination *d, const struct onward *o)
{
	struct destination *member;
	if (o->age != d->onwards.age) /* another one has said so before */
		return;
	fallback_end(&d->share->fallback, d->host);
	if (d->share == &d->own)
		end_clear_ones(d);
	LIST_FOREACH(member, &d->share->members, member_next)
	end_clear_ones(member);
}

static void apply_file(struct destination *d)
{
	const struct destination_goal goal = {
		.host = d->host[0] ? d->host : NULL, .trust = d->host_trust, .tls = d->goal_tls
	};
	receiver_limit_set_ceiling(&d->share->limit, route_apply_file(&d->route, d->home->conf, &goal));
}

void destination_reload(struct destination *d)
{
	apply_file(d);
	dane_forget(&d->dane);
	d->share->fallback = (struct fallback){ 0 };
	d->onwards.age++; /* no connection of now is used for another transaction */
	retire_old(d);
}

struct destination *destination_create(const struct outward_home *home, const struct destination_ops *ops,
	struct outward *outward, const struct onward_route *route, const struct destination_goal *goal,
	struct receiver_share *share)
{
	struct destination *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->home = home;
	d->ops = ops;
	d->outward = outward;
	d->route = *route;
	snprintf(d->host, sizeof d->host, "%s", goal->host ? goal->host : "");
	d->host_trust = goal->trust;
	d->goal_tls = goal->tls;
	d->dane.on_known = on_dane_known;
	receiver_share_init(&d->own, now_of(d));
	d->share = share ? share : &d->own;
	if (share)
		LIST_INSERT_HEAD(&share->members, d, member_next);
	apply_file(d);
	wants_init(&d->wants, home->worker, &d->step);
	onwards_init(&d->onwards, d->share->in);
	d->step.fn = on_destination_turn_end;
	d->deadline.fn = on_destination_deadline;
	return d;
}

void destination_stop(struct destination *d)
{
	struct onward *o, *next;
	dane_forget(&d->dane);
	for (o = TAILQ_FIRST(&d->onwards.all); o; o = next) {
		next = TAILQ_NEXT(o, next);
		onward_close(o);
	}
}

void destination_destroy(struct destination *d)
{
	assert(onwards_count(d->onwards.in) == 0 && d->sessions == 0);
	turn_end_cancel(&d->step);
	deadline_cancel(&d->deadline);
	dane_forget(&d->dane);
	receiver_share_wait_no_more(d);
	if (d->share != &d->own)
		LIST_REMOVE(d, member_next);
	free(d);
}

/* smtp_opening.c: the commands to a new server before those of the client. Each step waits for the reply to the one
 * before. */
#include <stdio.h>
#include <string.h>

#include "net/report/log_pace.h"
#include "sslagent/service/smtp/smtp_session.h"

enum step { STEP_DONE, STEP_WAITS };

static enum step smtp_opening_say(struct smtp_session *s, const char *command)
{
	if (smtp_relay_say(s->relay, command) == 0)
		return STEP_WAITS;
	s->doubt = SMTP_OWN_BACKEND_BROKEN;
	return STEP_DONE;
}

static bool is_granted(const struct smtp_ehlo *offers)
{
	return smtp_ehlo_lists(offers, SMTP_CAP_XCLIENT, "ADDR") && smtp_ehlo_lists(offers, SMTP_CAP_XCLIENT, "PORT");
}

/* A server that takes every client for an agent, and relays for the agents, is an open relay. */
static bool must_introduce(const struct smtp_session *s)
{
	const struct conf_smtp *conf = &s->listener->smtp;

	return conf->xclient == CONF_ON && conf->client_address == CONF_CLIENT_ADDRESS_TOLD &&
	       s->backend->proxy_v2 != CONF_ON;
}

static enum step smtp_opening_refuse(struct smtp_session *s)
{
	log_paced(LOG_ERROR, NULL, "mail refused, as its server would not learn the client's address",
		"listener=%s backend=%s cause=\"%s\" remedy=\"let the server grant XCLIENT with ADDR and PORT to every "
		"agent, or set proxy_v2: on for the backend\"",
		s->listener->name, s->backend->name,
		s->introduction[0] ? "the server does not grant XCLIENT to this agent" : "the address is not known");
	s->doubt = SMTP_OWN_MISCONFIGURED;
	return STEP_DONE;
}

/* XCLIENT changes only the attributes that it has (Postfix XCLIENT_README). So a server keeps the agent's host names
 * for the client, unless it hears that they are not known: its rules for names would let every client in for an agent.
 * A server that has read a PROXY header has looked for the names of the client. */
static bool hides_name(const struct smtp_session *s, const char *attribute)
{
	return s->backend->proxy_v2 != CONF_ON && smtp_ehlo_lists(&s->relay->offers, SMTP_CAP_XCLIENT, attribute);
}

static enum step say_introduction(struct smtp_session *s)
{
	char command[SMTP_COMMAND_MAX];

	snprintf(command, sizeof command, "XCLIENT %s%s%s\r\n", s->introduction,
		hides_name(s, "NAME") ? " NAME=[UNAVAILABLE]" : "",
		hides_name(s, "REVERSE_NAME") ? " REVERSE_NAME=[UNAVAILABLE]" : "");
	return smtp_opening_say(s, command);
}

/* Postfix XCLIENT_README: after it the server begins again. */
static enum step smtp_opening_introduce(struct smtp_session *s)
{
	if (s->introduction[0] && is_granted(&s->relay->offers))
		return say_introduction(s);
	if (must_introduce(s))
		return smtp_opening_refuse(s);
	if (s->greeter == SMTP_CLIENT_GREETS)
		s->opening = SMTP_GREETS_AGAIN; /* the server has heard the client's greeting */
	return STEP_DONE;
}

/* Without extensions, if the client greets so. */
static enum step greet_again(struct smtp_session *s)
{
	if (s->note.greeting == SMTP_VERB_UNKNOWN)
		return STEP_DONE;
	if (s->note.greeting != SMTP_VERB_EHLO)
		smtp_ehlo_clear(&s->relay->offers);
	return smtp_opening_say(s, smtp_session_greeting(s, SMTP_CLIENT_GREETS));
}

/* The client knows the extensions of a server. A server with other extensions cannot take its place. */
static bool is_as_told(struct smtp_session *s)
{
	uint8_t told[SMTP_TOLD_LEN];

	if (s->note.greeting != SMTP_VERB_EHLO)
		return true;
	smtp_session_told(s, told);
	return memcmp(told, s->note.told, sizeof told) == 0;
}

/* Not before the questions are answered: if this owner is lost meanwhile, the next one must find the old name. */
void smtp_opening_note(struct smtp_session *s)
{
	const struct smtp_span entry = smtp_ehlo_params(&s->relay->offers, SMTP_CAP_XCSSLTX);

	if (s->note.greeting != SMTP_VERB_EHLO)
		return;
	s->note.offers = s->relay->offers.has;
	s->note.entry[0] = 0;
	if (smtp_tx_entry_is_good(entry))
		smtp_span_copy(entry, s->note.entry, sizeof s->note.entry);
}

static enum step smtp_opening_ask(struct smtp_session *s)
{
	char question[SMTP_COMMAND_MAX];

	if (!is_as_told(s))
		s->doubt = SMTP_OWN_BACKEND_CHANGED;
	else if (s->past && smtp_resume_ask(s, question, sizeof question))
		return smtp_opening_say(s, question);
	return STEP_DONE;
}

static enum step take_step(struct smtp_session *s)
{
	switch ((enum smtp_opening)s->opening) {
	case SMTP_INTRODUCES: return smtp_opening_introduce(s);
	case SMTP_GREETS_AGAIN: return greet_again(s);
	case SMTP_ASKS: return smtp_opening_ask(s);
	default: return STEP_DONE; /* the relay has sent the greeting */
	}
}

void smtp_opening_step(struct smtp_session *s)
{
	while (s->opening < SMTP_OPENED) {
		const enum step step = take_step(s);
		if (step == STEP_WAITS || s->doubt)
			return;
		s->opening++;
	}
	smtp_session_talk(s);
}

void smtp_opening_reply(struct smtp_session *s)
{
	if (s->opening == SMTP_ASKS)
		smtp_resume_answer(s);
	else if (s->reply.data[0] != '2')
		s->doubt = SMTP_OWN_BACKEND_UNREACHABLE;
	else
		s->opening++;
}

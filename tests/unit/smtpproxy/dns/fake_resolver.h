/* fake_resolver.h: the functions of resolver.h without a network: a test reads the questions, and answers them. */
#pragma once

#include "smtpproxy/dns/resolver.h"

/* Answers the open question of that name and type. Fails the test if there is none. */
void fake_answer(const char *name, enum dns_type type, enum dns_outcome outcome, enum dns_trust trust);
/* Answers it with one record, and with the name behind all aliases. */
void fake_answer_with(
	const char *name, enum dns_type type, enum dns_trust trust, const char *expanded, struct dns_record record);
unsigned fake_open(void); /* questions without an answer */

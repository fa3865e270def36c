/* rules.h: fault rules for one fact. */
#ifndef CSSL_TESTS_NET_RULES_H
#define CSSL_TESTS_NET_RULES_H

/* Put @text into the rule file by rename. */
void rules_write(const char *text);
/* The same, and in force at once on @node. */
void rules_set(const char *node, const char *text);

#endif

/* rules.h: fault rules for one fact. */
#pragma once

/* Put @text into the rule file by rename. */
void rules_write(const char *text);
/* The same, and in force at once on @node. */
void rules_set(const char *node, const char *text);

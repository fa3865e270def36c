/* nearest.c: Levenshtein's distance, and the largest distance of a typing mistake. */
#include "conf/nearest.h"

#include <string.h>

#define WORD_LEN_MAX 40u

/* How many letters to change, add or drop. */
static size_t distance(const char *a, const char *b)
{
	size_t row[WORD_LEN_MAX + 1];
	const size_t a_len = strlen(a), b_len = strlen(b);
	if (a_len > WORD_LEN_MAX || b_len > WORD_LEN_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
			const size_t one_more = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = changed < one_more ? changed : one_more;
		}
	}
	return row[b_len];
}

void nearest_try(struct nearest *n, const char *word)
{
	const size_t d = distance(n->written, word);
	if (d < n->distance) {
		n->distance = d;
		n->word = word;
	}
}

/* A third of the letters wrong is a slip, more is another word. */
const char *nearest_found(const struct nearest *n)
{
	if (!n->word || n->distance > strlen(n->word) / 3 + 1 || n->distance >= strlen(n->word))
		return NULL;
	return n->word;
}

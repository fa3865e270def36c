/* command_completion.c: a bash completion, generated from the tables, so that it knows all commands and options. It
 * asks the cluster that the line names for names of agents. */
#include <string.h>

#include "csslctl/command.h"

static const char head[] =
	"# bash completion for csslctl; made by `csslctl completion bash`.\n"
	"_csslctl() {\n"
	"\tlocal word=${COMP_WORDS[COMP_CWORD]} i taken=0 kind=words choices='' options='' words=() place=() kinds=()\n"
	"\tCOMPREPLY=()\n";

/* An option with a value takes the next word; the other words name the command and its operands. */
static const char sort_begin[] = "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
				 "\t\tcase ${COMP_WORDS[i]} in\n";
static const char sort_end[] = "\t\t-*) ;;\n"
			       "\t\t*) words+=(\"${COMP_WORDS[i]}\") ;;\n"
			       "\t\tesac\n"
			       "\tdone\n";

static const char choose[] = "\tif [[ $taken -gt 0 ]]; then kind=${kinds[${#words[@]} - taken]:-none}; fi\n"
			     "\tif [[ $word == -* ]]; then kind=words choices=$options; fi\n";

static const char tail[] =
	"\tcase $kind in\n"
	"\tagent) mapfile -t COMPREPLY < <(compgen -W \"$(csslctl \"${place[@]}\" completion agents 2>/dev/null)\" -- "
	"\"$word\") ;;\n"
	"\tfile) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
	"\tdirectory) mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;\n"
	"\twords) mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\") ;;\n"
	"\tesac\n"
	"}\n"
	"complete -o filenames -F _csslctl csslctl\n";

static const char *kind_of(enum operand_kind kind)
{
	static const char *const kinds[] = {
		[OPERAND_TEXT] = "none",
		[OPERAND_AGENT] = "agent",
		[OPERAND_FILE] = "file",
		[OPERAND_COMMAND] = "words",
	};
	return kinds[kind];
}

/* The kind follows from the name of the value. */
static const char *kind_of_value(const char *value, enum option o)
{
	if (o == OPTION_AGENT)
		return "agent";
	if (strcmp(value, "FILE") == 0 || strcmp(value, "PATH") == 0)
		return "file";
	return strcmp(value, "DIR") == 0 ? "directory" : "none";
}

static bool names_place(enum option o)
{
	return o == OPTION_SOCKET || o == OPTION_API || o == OPTION_TOKEN_FILE || o == OPTION_CACERT ||
	       o == OPTION_CERT || o == OPTION_KEY || o == OPTION_DIR;
}

static void print_sorting(FILE *out)
{
	fputs(sort_begin, out);
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++) {
		const struct option_row *row = option_row(o);
		if (!row->value)
			continue;
		fprintf(out, "\t\t--%s) ((++i == COMP_CWORD)) && kind='%s'", row->name, kind_of_value(row->value, o));
		if (names_place(o))
			fprintf(out, "; place+=(--%s \"${COMP_WORDS[i]}\")", row->name);
		fputs(" ;;\n", out);
	}
	fputs(sort_end, out);
}

/* The length of the first word that two names of commands share; 0: none. */
static size_t first_word_shared(const char *a, const char *b)
{
	const size_t len = strcspn(a, " ");
	return strcspn(b, " ") == len && strncmp(a, b, len) == 0 ? len : 0;
}

/* The same for two names that both have a second word: `connections` alone is a command beside `connections show`. */
static bool go_on_alike(const char *a, const char *b)
{
	const size_t len = first_word_shared(a, b);
	return len && a[len] && b[len];
}

/* Print the possible next words of an incomplete command. Rows with the same first word stand together. */
static void print_words(FILE *out)
{
	size_t count;
	const struct command *all = commands(&count);

	fputs("\tchoices='", out);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || !first_word_shared(all[i - 1].name, all[i].name))
			fprintf(out, "%s%.*s", i ? " " : "", (int)strcspn(all[i].name, " "), all[i].name);
	fputs("'\n\tcase ${words[*]} in\n\t'' | help) ;;\n", out);
	for (size_t i = 0; i < count; i++) {
		const size_t len = strcspn(all[i].name, " ");
		if (all[i].name[len] == '\0')
			continue;
		/* a second arm for the same first word would never be taken */
		const bool begins = i == 0 || !go_on_alike(all[i - 1].name, all[i].name);
		const bool ends = i + 1 == count || !go_on_alike(all[i].name, all[i + 1].name);
		if (begins)
			fprintf(out, "\t%.*s) choices='", (int)len, all[i].name);
		fprintf(out, "%s%s%s", begins ? "" : " ", all[i].name + len + 1, ends ? "' ;;\n" : "");
	}
	fputs("\t*) choices='' ;;\n", out);
	fputs("\tesac\n", out);
}

static void print_options(const struct command *c, FILE *out)
{
	const char *blank = "";

	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++) {
		if (c ? !command_takes(c, o) : option_row(o)->scope != OPTION_COMMON)
			continue;
		fprintf(out, "%s--%s", blank, option_row(o)->name);
		blank = " ";
	}
}

/* Print the operands and options of each command. */
static void print_commands(FILE *out)
{
	size_t count;
	const struct command *all = commands(&count);

	fputs("\toptions='", out);
	print_options(NULL, out);
	fputs("'\n\tcase \"${words[*]} \" in\n", out);
	for (size_t i = 0; i < count; i++) {
		const struct command *c = &all[i];
		fprintf(out, "\t'%s '*) taken=%d kinds=(", c->name, strchr(c->name, ' ') ? 2 : 1);
		for (unsigned j = 0; j < OPERANDS_MAX && c->operands[j].name; j++)
			fprintf(out, "%s%s", j ? " " : "", kind_of(c->operands[j].kind));
		fputs(") options='", out);
		print_options(c, out);
		fputs("' ;;\n", out);
	}
	fputs("\tesac\n", out);
}

enum exit_code command_completion_bash(struct invocation *in)
{
	FILE *out = in->screen.out;

	fputs(head, out);
	print_sorting(out);
	/* While the value of an option is typed, complete neither command nor operand. */
	fputs("\tif [[ $kind == words && $i -le $COMP_CWORD ]]; then\n", out);
	print_words(out);
	print_commands(out);
	fputs(choose, out);
	fputs("\tfi\n", out);
	fputs(tail, out);
	return EXIT_DONE;
}

void show_agent_names(const struct invocation *in, const json_t *status)
{
	size_t i;
	json_t *agent;

	json_array_foreach(member(status, "agents"), i, agent)
		fprintf(in->screen.out, "%s\n", member_text(agent, "name"));
}

/* command.h: the commands of cssl-bench, one row each in main.c. */
#pragma once

/* @argv[0] is the command's name. Each prints its own --help. Returns the exit status. */
int serve_main(int argc, char **argv);
int https_main(int argc, char **argv);
int broadcast_main(int argc, char **argv);
int delay_main(int argc, char **argv);
int smtp_source_main(int argc, char **argv);
int merge_main(int argc, char **argv);
int smtp_sink_main(int argc, char **argv);
int queue_load_main(int argc, char **argv);

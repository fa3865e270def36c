"""The experiments of ./cssl bench: comparisons with other servers, and those of the paper."""

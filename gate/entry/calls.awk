# SPDX-License-Identifier: GPL-2.0
# calls.awk - calls.tbl in C: gate_handlers[], gate_sim_handlers[], gate_classes[], gate_straight_calls[], and whether the numbers
# are Linux's;
# with -v prototypes=1 the handlers alone, but for those of tables.c, and a list of the calls that ask a sandbox's warden
/^[0-9]/ {
	name[$1] = $2
	if ($4 != "direct")
		class[$1] = toupper($4)
	if ($5 != "-")
		straight[$1] = $5 == "fcntl" ? "_FCNTL" : ""
	if ($9 != "-")
		handler[$1] = $9
	calls[$9] = calls[$9] " " $2
	if ($7 == "warden")
		asks = asks " case " $1 ":"
	if ($8 != "-") {
		virtual[$1] = $8 == "node" ? "sim_node" : $8
		virtual_calls[virtual[$1]] = virtual_calls[virtual[$1]] " " $2
	}
}
END {
	if (prototypes) {
		printf "#define CASES_OF_WARDEN%s\n", asks
		for (fn in calls)
			if (fn ~ /^(do|gate)_/)
				printf "long %s(struct gate_regs *r);\t/*%s */\n", fn, calls[fn]
		for (fn in virtual_calls)
			printf "long %s(struct gate_regs *r, gate_handler otherwise);\t/*%s */\n", fn, virtual_calls[fn]
		exit
	}
	for (nr in handler) {
		fn = handler[nr]
		if (!(nr in straight) || straight[nr] != "" || fn == "by_fd")
			continue
		handler[nr] = fn "_by_fd"
		if (!(fn in wrapped))
			printf "static long %s_by_fd(struct gate_regs *r)\n{\n\treturn by_owner(r, %s);\n}\n\n", fn, fn
		wrapped[fn] = 1
	}
	print "const gate_handler gate_handlers[GATE_STRAIGHT_NR] = {"
	for (nr in handler)
		printf "\t[%d] = %s,\t/* %s */\n", nr, handler[nr], name[nr]
	print "};\n\nconst gate_sim_handler gate_sim_handlers[GATE_STRAIGHT_NR] = {"
	for (nr in virtual)
		printf "\t[%d] = %s,\t/* %s */\n", nr, virtual[nr], name[nr]
	print "};\n\nconst u8 gate_classes[GATE_STRAIGHT_NR] = {"
	for (nr = 0; nr < 512; nr++)
		printf "\t[%d] = CLASS_%s,\n", nr, nr in class ? class[nr] : "DIRECT"
	print "};\n\nconst u8 gate_straight_calls[GATE_STRAIGHT_NR] = {"
	for (nr in straight)
		printf "\t[%d] = GATE_STRAIGHT%s,\t/* %s */\n", nr, straight[nr], name[nr]
	print "};\n"
	for (nr in name)
		printf "#ifdef __NR_%s\n_Static_assert(__NR_%s == %d, \"calls.tbl\");\n#endif\n", name[nr], name[nr], nr
}

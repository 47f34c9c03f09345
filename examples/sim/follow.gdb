# For gdb at `ring3 sim --gdb three-hosts.yaml`: follows one datagram across three hosts. docs/sim.md says what it shows.
# `*' in front of a function is its first instruction, where $rdi is the first argument.
set width 0

# The client's program sends. Other hosts call this function, too, and are passed over.
tbreak *udp_sendmsg if $_streq($host((struct sock *)$rdi), "client")
continue
set $begin = $now()
printf "client: udp_sendmsg at %.6f s\n", ($now() - $begin) / 1e9

# Two stops are 10 and 30 ms of virtual time apart: the delays of the links.
tbreak *ip_forward if $_streq($host((struct sk_buff *)$rdi), "middle")
continue
printf "middle: ip_forward at %.6f s\n", ($now() - $begin) / 1e9
output $name((struct sk_buff *)$rdi)
echo \ is the interface that it came by\n
set $packet = $rdi
backtrace 4

# The same struct sk_buff arrives at the server.
tbreak *udp_rcv if $_streq($host((struct sk_buff *)$rdi), "server")
continue
printf "server: udp_rcv at %.6f s\n", ($now() - $begin) / 1e9
printf "the same packet: %d\n", $rdi == $packet

# The rest goes by itself.
detach

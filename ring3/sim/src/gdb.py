# SPDX-License-Identifier: GPL-2.0
"""For gdb at `ring3 sim --gdb`: names of simulated hosts.

    $host(POINTER)      the host whose is a packet, an interface, a socket, a task or a network namespace; "" is none's
    $name(POINTER)      the name of an interface (a packet's is the one that it came by), or of a task's program
    $now()              virtual time, ns
    ring3-hosts         all hosts, and the addresses of their struct net

Structures are read by the offsets that the image has of them (turn/debug.c): its debug information knows few.
"""

import gdb

#: A line for each host: number of its network namespace, name. It is there when the network is.
HOSTS_FILE = ""
HOSTS = {}
OFFSETS = {}
#: In the order of turn_offsets.
NAMES = ("skb_dev", "skb_sk", "dev_net", "dev_name", "sock_net", "task_nsproxy", "task_comm", "nsproxy_net", "net_inum", "net_list")
POINTER, NUMBER = 8, 4


def read(at, size):
    return bytes(gdb.selected_inferior().read_memory(at, size))


def number(at, size):
    return int.from_bytes(read(at, size), "little")


def address_of(symbol):
    return int(gdb.parse_and_eval(f"(unsigned long)&{symbol}"))


def offset(name):
    if not OFFSETS:
        table = address_of("turn_offsets")
        OFFSETS.update((key, number(table + NUMBER * i, NUMBER)) for i, key in enumerate(NAMES))
    return OFFSETS[name]


def field(at, name):
    """A pointer in the structure at this address."""
    return number(at + offset(name), POINTER)


def text(at):
    return read(at, 16).split(b"\0")[0].decode(errors="replace")


def struct_of(value):
    """The tag of the structure that a pointer points at, and the address."""
    kind = value.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_PTR:
        raise gdb.GdbError("a pointer is needed")
    return kind.target().strip_typedefs().unqualified().tag, int(value)


def net_of(tag, at):
    """The address of the struct net that something belongs to; 0: none."""
    if not at or tag == "net":
        return at
    if tag == "sk_buff":
        dev = field(at, "skb_dev")
        return net_of("net_device", dev) if dev else net_of("sock", field(at, "skb_sk"))
    if tag == "net_device":
        return field(at, "dev_net")
    if tag == "sock":
        return field(at, "sock_net")
    if tag == "task_struct":
        proxy = field(at, "task_nsproxy")
        return field(proxy, "nsproxy_net") if proxy else 0
    raise gdb.GdbError(f"$host: a {tag} is no packet, interface, socket, task or network namespace")


def host_of(net):
    """The name of a network namespace's host; "" if it is none's."""
    if not HOSTS:
        try:
            with open(HOSTS_FILE) as file:
                HOSTS.update((int(inum), name) for inum, name in map(str.split, file))
        except OSError:
            return ""
    return HOSTS.get(number(net + offset("net_inum"), NUMBER), "") if net else ""


class Host(gdb.Function):
    """The name of the simulated host that a packet, interface, socket, task or network namespace is of."""

    def __init__(self):
        super().__init__("host")

    def invoke(self, value):
        return host_of(net_of(*struct_of(value)))


class Name(gdb.Function):
    """The name of an interface, of the interface that a packet came by, or of a task's program."""

    def __init__(self):
        super().__init__("name")

    def invoke(self, value):
        tag, at = struct_of(value)
        if tag == "sk_buff":
            tag, at = "net_device", field(at, "skb_dev")
        names = {"net_device": "dev_name", "task_struct": "task_comm"}
        if tag not in names:
            raise gdb.GdbError(f"$name: a {tag} has no name")
        return text(at + offset(names[tag])) if at else ""


class Now(gdb.Function):
    """Virtual time since the node's start, in ns."""

    def __init__(self):
        super().__init__("now")

    def invoke(self):
        return number(address_of("ring3_virtual_now"), POINTER)


class Hosts(gdb.Command):
    """Names of simulated hosts, and the addresses of their struct net."""

    def __init__(self):
        super().__init__("ring3-hosts", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        head = address_of("net_namespace_list")
        at = number(head, POINTER)
        while at != head:
            net = at - offset("net_list")
            if host_of(net):
                print(f"{host_of(net)}\t(struct net *){net:#x}")
            at = number(at, POINTER)


Host()
Name()
Now()
Hosts()

// SPDX-License-Identifier: GPL-2.0

// The serving ends of bench/load's programs, on gVisor's netstack and a TAP:
//
//	gvisor TAP ADDRESS pingpong serve tcp|udp PORT SIZE
//	gvisor TAP ADDRESS flood serve PORT
//	gvisor TAP ADDRESS stream serve PORT
//	gvisor TAP ADDRESS httpd PORT
//
// What crosses the wire is what the programs in bench/load say there, so that the same
// asking end works with both.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = 1
	mtu = 1500
	// Connections that wait to be accepted.
	backlog = 4096
	// The host's own limits in this bench (bench/src/bed.rs).
	receiveDefault, receiveMax = 131072, 6291456
	sendDefault, sendMax       = 16384, 4194304
	datagrams                  = 4 << 20
)

// A stack with one address, on a TAP.
type host struct {
	*stack.Stack
	address tcpip.Address
}

func open(name, address string) (*host, error) {
	parsed := net.ParseIP(address).To4()
	if parsed == nil {
		return nil, fmt.Errorf("%s: not an address", address)
	}
	fd, err := tun.OpenTAP(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	link, err := fdbased.New(&fdbased.Options{
		FDs:                []int{fd},
		MTU:                mtu,
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress("\x02\x00\x00\x00\x83\x04"),
		PacketDispatchMode: fdbased.Readv,
		GSOMaxSize:         65535,
		GVisorGSOEnabled:   true,
		GRO:                true,
	})
	if err != nil {
		return nil, err
	}
	h := &host{
		Stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
		}),
		address: tcpip.AddrFromSlice(parsed),
	}
	return h, h.configure(link)
}

func (h *host) configure(link stack.LinkEndpoint) error {
	sack := tcpip.TCPSACKEnabled(true)
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: receiveDefault, Max: receiveMax}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: sendDefault, Max: sendMax}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &moderate, &receive, &send} {
		if err := h.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("TCP's options: %v", err)
		}
	}
	sizes := tcpip.ReceiveBufferSizeOption{Min: 4096, Default: datagrams, Max: datagrams}
	if err := h.SetOption(sizes); err != nil {
		return fmt.Errorf("buffers: %v", err)
	}
	if err := h.CreateNIC(nic, link); err != nil {
		return fmt.Errorf("interface: %v", err)
	}
	own := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: h.address, PrefixLen: 24},
	}
	if err := h.AddProtocolAddress(nic, own, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("address: %v", err)
	}
	h.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return nil
}

func (h *host) at(port string) (tcpip.FullAddress, error) {
	number, err := strconv.ParseUint(port, 10, 16)
	return tcpip.FullAddress{NIC: nic, Addr: h.address, Port: uint16(number)}, err
}

func (h *host) listen(port string) (*gonet.TCPListener, error) {
	at, err := h.at(port)
	if err != nil {
		return nil, err
	}
	// Not gonet.ListenTCP: its backlog is 10.
	queue := new(waiter.Queue)
	endpoint, wrong := h.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, queue)
	if wrong == nil {
		wrong = endpoint.Bind(at)
	}
	if wrong == nil {
		wrong = endpoint.Listen(backlog)
	}
	if wrong != nil {
		return nil, fmt.Errorf("listen: %v", wrong)
	}
	return gonet.NewTCPListener(h.Stack, queue, endpoint), nil
}

func (h *host) bind(port string) (*gonet.UDPConn, error) {
	at, err := h.at(port)
	if err != nil {
		return nil, err
	}
	return gonet.DialUDP(h.Stack, &at, nil, ipv4.ProtocolNumber)
}

func run(words []string) error {
	if len(words) < 4 {
		return errors.New("usage: see the head of main.go")
	}
	h, err := open(words[0], words[1])
	if err != nil {
		return err
	}
	words = words[2:]
	switch line := strings.Join(words, " "); {
	case strings.HasPrefix(line, "pingpong serve tcp ") && len(words) == 5:
		return h.echo(words[3])
	case strings.HasPrefix(line, "pingpong serve udp ") && len(words) == 5:
		return h.echoDatagrams(words[3])
	case strings.HasPrefix(line, "flood serve ") && len(words) == 3:
		return h.count(words[2])
	case strings.HasPrefix(line, "stream serve ") && len(words) == 3:
		return h.stream(words[2])
	case strings.HasPrefix(line, "httpd ") && len(words) == 2:
		return h.http(words[1])
	default:
		return fmt.Errorf("cannot serve '%s'", line)
	}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gvisor:", err)
		os.Exit(1)
	}
}

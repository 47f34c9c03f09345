// SPDX-License-Identifier: GPL-2.0
//
// dumbbell FLOWS RATE_MBIT SECONDS - CUBIC flows through a dumbbell in ns-3, for bench/sim
//
// The same network as dumbbell() of the script `run` beside this: each pair of hosts has links of its own to the routers,
// the link between those is the narrow one; 20 ms there and back; full-size segments. Prints what came, in bytes.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <iostream>
#include <string>

using namespace ns3;

int main(int argc, char **argv)
{
	if (argc != 4) {
		std::cerr << "usage: dumbbell FLOWS RATE_MBIT SECONDS\n";
		return 2;
	}
	uint32_t flows = std::stoul(argv[1]);
	double seconds = std::stod(argv[3]);
	Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));

	NodeContainer routers, left, right;
	routers.Create(2);
	left.Create(flows);
	right.Create(flows);
	InternetStackHelper stack;
	stack.InstallAll();
	PointToPointHelper access, narrow;
	access.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
	access.SetChannelAttribute("Delay", StringValue("1ms"));
	narrow.SetDeviceAttribute("DataRate", StringValue(std::string(argv[2]) + "Mbps"));
	narrow.SetChannelAttribute("Delay", StringValue("8ms"));
	Ipv4AddressHelper addresses;
	addresses.SetBase("10.0.0.0", "255.255.255.0");
	addresses.Assign(narrow.Install(routers));
	ApplicationContainer sinks;
	for (uint32_t i = 0; i < flows; i++) {
		addresses.NewNetwork();
		addresses.Assign(access.Install(left.Get(i), routers.Get(0)));
		addresses.NewNetwork();
		Ipv4InterfaceContainer end = addresses.Assign(access.Install(right.Get(i), routers.Get(1)));
		InetSocketAddress to(end.GetAddress(0), 9);
		BulkSendHelper send("ns3::TcpSocketFactory", to);
		ApplicationContainer sender = send.Install(left.Get(i));
		sender.Start(Seconds(1));
		sender.Stop(Seconds(1 + seconds));
		PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
		sinks.Add(sink.Install(right.Get(i)));
	}
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();
	Simulator::Stop(Seconds(1 + seconds));
	Simulator::Run();
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < flows; i++)
		bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
	Simulator::Destroy();
	std::cout << bytes << "\n";
	return 0;
}

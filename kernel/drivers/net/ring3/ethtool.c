// SPDX-License-Identifier: GPL-2.0-only
/*
 * ethtool.c - ethtool -i, -S and the link state of a port
 */
#include <linux/ethtool.h>

#include "port.h"

static const char ring3_counter_names[RING3_COUNTERS][ETH_GSTRING_LEN] = {
	[RING3_RX_IRQS] = "rx_irqs",
	[RING3_RX_POLLS] = "rx_polls",
	[RING3_RX_CALLS] = "rx_host_calls",
	[RING3_RX_RUNTS] = "rx_runts",
	[RING3_RX_GIANTS] = "rx_giants",
	[RING3_RX_BAD_HEADER] = "rx_bad_header",
	[RING3_RX_NO_MEMORY] = "rx_no_memory",
	[RING3_RX_DOORBELLS] = "rx_doorbells_rung",
	[RING3_RX_BROKEN] = "rx_broken",
	[RING3_RX_XDP_DROPS] = "rx_xdp_drops",
	[RING3_RX_XDP_TX] = "rx_xdp_tx",
	[RING3_RX_XDP_REDIRECTS] = "rx_xdp_redirects",
	[RING3_TX_BATCHES] = "tx_batches",
	[RING3_TX_DOORBELLS] = "tx_doorbells_rung",
	[RING3_TX_FULL] = "tx_full",
	[RING3_TX_WAKES] = "tx_wakes",
	[RING3_TX_PARTIAL] = "tx_partial",
	[RING3_TX_HOST_ERRORS] = "tx_host_errors",
	[RING3_TX_XDP] = "tx_xdp_frames",
};

static void ring3_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	const struct ring3_port *port = netdev_priv(dev);

	strscpy(info->driver, "ring3", sizeof(info->driver));
	snprintf(info->bus_info, sizeof(info->bus_info), "%s-%u", port->ops->kind, port->index);
}

static int ring3_get_sset_count(struct net_device *dev, int sset)
{
	return sset == ETH_SS_STATS ? RING3_COUNTERS : -EOPNOTSUPP;
}

static void ring3_get_strings(struct net_device *dev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		memcpy(data, ring3_counter_names, sizeof(ring3_counter_names));
}

static void ring3_get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *data)
{
	const struct ring3_port *port = netdev_priv(dev);
	int i;

	for (i = 0; i < RING3_COUNTERS; i++)
		data[i] = READ_ONCE(port->count[i]);
}

/* There is no wire. Requests of bonding and its like are answered as veth and tun answer them. */
static int ring3_get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *cmd)
{
	cmd->base.speed = SPEED_10000;
	cmd->base.duplex = DUPLEX_FULL;
	cmd->base.port = PORT_OTHER;
	cmd->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static void ring3_get_channels(struct net_device *dev, struct ethtool_channels *ch)
{
	ch->max_combined = 1;
	ch->combined_count = 1;
}

const struct ethtool_ops ring3_ethtool_ops = {
	.get_drvinfo		= ring3_get_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= ring3_get_link_ksettings,
	.get_channels		= ring3_get_channels,
	.get_strings		= ring3_get_strings,
	.get_sset_count		= ring3_get_sset_count,
	.get_ethtool_stats	= ring3_get_ethtool_stats,
	.get_ts_info		= ethtool_op_get_ts_info,
};

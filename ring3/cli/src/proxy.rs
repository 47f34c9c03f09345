// SPDX-License-Identifier: GPL-2.0
//! `ring3 proxy`: from what was typed to the supervisor (crate ring3-proxy).

use ring3_config::ProxyConfig;
use ring3_proxy::{Orders, Source};

use crate::args::{Proxy, ProxyVerb};
use crate::error::{Failure, Result};
use crate::{metrics, notify};

/// The hidden verb of the relay.
const VERB: &str = "proxy-relay";

pub fn proxy(args: &Proxy) -> Result<()> {
    if let Some(ProxyVerb::Reload { name }) = &args.verb {
        ring3_config::name::node(name)?;
        return Ok(ring3_proxy::reload(name)?);
    }
    let source = source(args)?;
    if args.check {
        source.read()?;
        return Ok(());
    }
    let orders = Orders {
        source,
        name: args.name.clone(),
        verb: VERB,
        ready: notify::ready,
        node_metrics: metrics::of_node,
    };
    Ok(ring3_proxy::run(&orders)?)
}

fn source(args: &Proxy) -> Result<Source> {
    if let Some(path) = &args.file {
        return Ok(Source::File {
            path: path.clone(),
            on: args.on.clone(),
        });
    }
    let wrong = |why: String| Failure::ProxyWords(why);
    let on = args.on.as_deref();
    let on = on.ok_or_else(|| wrong("no node to listen on: give --on NODE".into()))?;
    let mut config = ProxyConfig::from_words(on, &args.listen, &args.to).map_err(wrong)?;
    for port in &args.port {
        port.parse::<ring3_config::PortSpec>()?;
    }
    config.ports = args.port.clone();
    config.log = args.log.clone();
    config.metrics = args.metrics;
    config.grace = args.grace.unwrap_or(config.grace);
    Ok(Source::Words(config))
}

//! CORE: who may connect, by address.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

/// A network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// Those who may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let network = text.parse().ok().or_else(one);
        network
            .map(Self)
            .ok_or_else(|| "give an address or a network, as 192.168.1.0/24 or fd00::/8".to_owned())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Networks {
    /// Whether who comes from there may connect.
    pub fn contains(&self, address: IpAddr) -> bool {
        // A listener for both versions tells an address of version 4 as one of version 6.
        let address = address.to_canonical();
        self.0.iter().any(|network| network.0.contains(&address))
    }

    /// The first network that keeps nobody out.
    pub fn everybody(&self) -> Option<Network> {
        self.0.iter().copied().find(|network| network.0.prefix_len() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Networks {
        Networks(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn who_is_in_one_of_them_may_connect_and_nobody_else() {
        let networks = networks(&["192.168.1.0/24", "10.0.0.7", "fd00::/8"]);
        for inside in ["192.168.1.0", "192.168.1.255", "10.0.0.7", "::ffff:192.168.1.9", "fd12::1"] {
            assert!(networks.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["192.168.2.1", "10.0.0.8", "::1", "127.0.0.1", "::ffff:10.0.0.8", "fe80::1"] {
            assert!(!networks.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(!Networks::default().contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_none_is_told_and_what_keeps_nobody_out_is_known() {
        for wrong in ["", "10.0.0.0/33", "10.0.0", "home", "10.0.0.0/", "*"] {
            assert!(wrong.parse::<Network>().unwrap_err().starts_with("give an address"), "{wrong}");
        }
        assert_eq!(networks(&["10.0.0.0/8", "::/0"]).everybody().unwrap().to_string(), "::/0");
        assert_eq!(networks(&["10.0.0.0/8"]).everybody(), None);
    }
}

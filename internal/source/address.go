package source

import (
	"net/netip"
)

// special are the ranges that do not lead to the public internet, from the registries of special-purpose addresses
// (https://www.iana.org/assignments/iana-ipv4-special-registry/, …/iana-ipv6-special-registry/).
var special = func() map[netip.Prefix]string {
	out := map[netip.Prefix]string{}
	for text, what := range map[string]string{
		"0.0.0.0/8": "this network", "10.0.0.0/8": "private", "100.64.0.0/10": "shared by carriers", "127.0.0.0/8": "loopback", "169.254.0.0/16": "link-local",
		"172.16.0.0/12": "private", "192.0.0.0/24": "reserved", "192.0.2.0/24": "documentation", "192.88.99.0/24": "6to4 relay", "192.168.0.0/16": "private",
		"198.18.0.0/15": "benchmarking", "198.51.100.0/24": "documentation", "203.0.113.0/24": "documentation", "224.0.0.0/4": "multicast", "240.0.0.0/4": "reserved",
		"::/96": "unspecified, loopback or IPv4-compatible", "64:ff9b:1::/48": "local translation", "100::/64": "discard", "2001::/23": "reserved or Teredo",
		"2001:db8::/32": "documentation", "3fff::/20": "documentation", "5f00::/16": "segment routing", "fc00::/7": "private", "fe80::/10": "link-local", "fec0::/10": "site-local", "ff00::/8": "multicast",
	} {
		out[netip.MustParsePrefix(text)] = what
	}
	return out
}()

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

// reserved says what kind of address this is when it is none of the public internet, "" for a public one. An IPv4 address inside an
// IPv6 one (mapped, translated, 6to4) is judged by itself.
func reserved(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		bytes := address.As16()
		switch {
		case nat64.Contains(address):
			return reserved(netip.AddrFrom4([4]byte(bytes[12:16])))
		case sixTo4.Contains(address):
			return reserved(netip.AddrFrom4([4]byte(bytes[2:6])))
		}
	}
	for prefix, what := range special {
		if prefix.Contains(address) {
			return what
		}
	}
	if !address.IsGlobalUnicast() {
		return "no unicast address"
	}
	return ""
}

// admits says whether an address may be reached: a public one, or one that the user's policy names.
func admits(address netip.Addr, named []netip.Prefix) (why string, ok bool) {
	why = reserved(address)
	if why == "" {
		return "", true
	}
	for _, prefix := range named {
		if prefix.Contains(address.Unmap()) || prefix.Contains(address) {
			return "", true
		}
	}
	return why, false
}

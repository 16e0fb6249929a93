// CoreDNS with the plugins that a cluster's DNS needs, built from its module.
package main

import (
	_ "github.com/coredns/caddy/onevent"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

// In the order in which a query passes them.
var plugins = []string{"bind", "health", "ready", "errors", "log", "cache", "kubernetes", "forward"}

func main() {
	dnsserver.Directives = plugins
	coremain.Run()
}

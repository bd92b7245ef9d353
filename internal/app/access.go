package app

import (
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/httpapi"
)

// AccessConfig is how people reach a service's pages and how long they stay logged in. Its variables begin with the name
// of the service. What is 0 or empty stands for its default.
type AccessConfig struct {
	PublicURL      string        `name:"public-url" env:"PUBLIC_URL" placeholder:"URL" help:"Where browsers reach this service, if not where it listens: behind a proxy, such as https://erp.example. With https, cookies are for TLS only."`
	TrustedProxies []string      `name:"trusted-proxy" env:"TRUSTED_PROXIES" sep:"," placeholder:"NETWORK" help:"Networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8; without one, the address of the connection is the caller's."`
	SessionIdle    time.Duration `name:"session-idle" env:"SESSION_IDLE" default:"1h" help:"How long a log-in lasts without a request, by the database's clock."`
	SessionLife    time.Duration `name:"session-life" env:"SESSION_LIFE" default:"12h" help:"How long a log-in lasts at all."`

	TLS  TLSConfig  `embed:""`
	OIDC OIDCConfig `embed:""`
}

// check names each mistake with its variable.
func (c AccessConfig) check(prefix string) error {
	var mistakes []error
	if err := checkPublicURL(c.PublicURL); err != nil {
		mistakes = append(mistakes, mistake(prefix+"PUBLIC_URL", "%v", err))
	}
	if _, err := c.proxies(); err != nil {
		mistakes = append(mistakes, mistake(prefix+"TRUSTED_PROXIES", "%v", err))
	}
	idle, life := orDefault(c.SessionIdle, auth.DefaultIdle), orDefault(c.SessionLife, auth.DefaultLife)
	if idle < auth.MinIdle {
		mistakes = append(mistakes, mistake(prefix+"SESSION_IDLE", "%s is less than %s", idle, auth.MinIdle))
	}
	if life < idle || life > 30*24*time.Hour {
		mistakes = append(mistakes, mistake(prefix+"SESSION_LIFE", "%s is not from the idle limit, %s, to 720h", life, idle))
	}
	return errors.Join(append(mistakes, c.TLS.check(prefix), c.OIDC.check(prefix, c.PublicURL))...)
}

func checkPublicURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("is not an address without a path such as https://erp.example")
	}
	return nil
}

func (c AccessConfig) proxies() (networks []*net.IPNet, err error) {
	for _, text := range c.TrustedProxies {
		_, network, err := net.ParseCIDR(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// behindTLS says whether browsers reach the service by https: by its own certificate, or through a proxy.
func (c AccessConfig) behindTLS() bool {
	return c.TLS.Set() || strings.HasPrefix(c.PublicURL, "https://")
}

// accessStore is what a service's store of accounts can do.
type accessStore interface {
	auth.SessionStore
	auth.AdminStore
}

// deps are what pages need, the rest is the caller's. The configuration was checked.
func (c AccessConfig) deps(store accessStore, log *slog.Logger) (httpapi.Deps, error) {
	proxies, _ := c.proxies()
	publicURL := strings.TrimRight(c.PublicURL, "/")
	oidc, err := c.OIDC.login(publicURL, auth.NewAdmin(store), log)
	if err != nil {
		return httpapi.Deps{}, err
	}
	return httpapi.Deps{
		Logger: log, PublicURL: publicURL, Secure: c.behindTLS(), TrustedProxies: proxies, OIDC: oidc,
		Sessions: auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{Idle: c.SessionIdle, Life: c.SessionLife, Logger: log}),
	}, nil
}

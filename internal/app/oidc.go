package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/oidclogin"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/outbound"
)

// OIDCConfig is the identity provider by which people log in beside their passwords. All empty: there is none.
type OIDCConfig struct {
	Issuer           string `name:"oidc-issuer" env:"OIDC_ISSUER" placeholder:"URL" help:"OpenID Connect provider to log in with, as it names itself, such as https://id.example; needs the public URL."`
	ClientID         string `name:"oidc-client-id" env:"OIDC_CLIENT_ID" placeholder:"ID" help:"What the provider knows this service by."`
	ClientSecretFile string `name:"oidc-client-secret-file" env:"OIDC_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with the secret that the provider gave for the client id."`
	Name             string `name:"oidc-name" env:"OIDC_NAME" placeholder:"TEXT" help:"What people call the provider, for the log-in page's button (default: single sign-on)."`
}

// set says whether there is a provider, or half of one.
func (c OIDCConfig) set() bool { return c != OIDCConfig{} }

const maxOIDCName = 60

// check names each mistake with its variable. The provider is not asked: it may be down when the service starts.
func (c OIDCConfig) check(prefix, publicURL string) error {
	if !c.set() {
		return nil
	}
	var mistakes []error
	wrong := func(variable, format string, args ...any) {
		mistakes = append(mistakes, mistake(prefix+variable, format, args...))
	}
	if c.Issuer == "" {
		wrong("OIDC_ISSUER", "is not set, but other settings of the log-in by OIDC are")
	} else if err := checkOIDCAddress(c.Issuer); err != nil {
		wrong("OIDC_ISSUER", "%v", err)
	}
	if c.ClientID == "" {
		wrong("OIDC_CLIENT_ID", "is not set: the provider gives it when this service is registered there")
	}
	if c.ClientSecretFile == "" {
		wrong("OIDC_CLIENT_SECRET_FILE", "is not set: name the file with the secret that belongs to the client id")
	} else if _, err := c.secret(); err != nil {
		wrong("OIDC_CLIENT_SECRET_FILE", "%v", err)
	}
	if len(c.Name) > maxOIDCName {
		wrong("OIDC_NAME", "is longer than %d bytes, which no button holds", maxOIDCName)
	}
	if publicURL == "" {
		wrong("PUBLIC_URL", "is not set: the provider has to know where to send browsers back to")
	} else if checkPublicURL(publicURL) == nil {
		if err := checkOIDCAddress(publicURL); err != nil {
			wrong("PUBLIC_URL", "with the log-in by OIDC, %v", err)
		}
	}
	return errors.Join(mistakes...)
}

// checkOIDCAddress refuses what others on the network could read or change, unless it does not leave this machine.
func checkOIDCAddress(text string) error {
	u, err := outbound.ParseBase(text)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && !onThisMachine(u) {
		return errors.New("the address must begin with https://, unless it is on this machine")
	}
	return nil
}

func onThisMachine(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (c OIDCConfig) secret() (string, error) {
	content, err := os.ReadFile(c.ClientSecretFile)
	if err != nil {
		return "", err
	}
	content = bytes.TrimRight(content, "\r\n")
	if len(content) == 0 || len(content) > 1000 || bytes.ContainsAny(content, "\r\n\x00") {
		return "", fmt.Errorf("%s does not hold a secret on one line", c.ClientSecretFile)
	}
	return string(content), nil
}

// login is nil if there is no provider.
func (c OIDCConfig) login(publicURL string, accounts *auth.Admin, log *slog.Logger) (*httpapi.OIDC, error) {
	if !c.set() {
		return nil, nil
	}
	secret, err := c.secret()
	if err != nil {
		return nil, fmt.Errorf("secret of the log-in by OIDC: %w", err)
	}
	name := c.Name
	if name == "" {
		name = "single sign-on"
	}
	return &httpapi.OIDC{Name: name, Accounts: accounts, Provider: oidclogin.New(oidclogin.Config{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: secret, Redirect: publicURL + httpapi.OIDCCallback, Logger: log,
	})}, nil
}

package app

import (
	"strings"
	"testing"
	"time"
)

func TestWrongAccessSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config AccessConfig
		names  string // the variable; "": nothing is wrong
	}{
		"defaults":            {AccessConfig{}, ""},
		"all set":             {AccessConfig{PublicURL: "https://erp.example/", TrustedProxies: []string{"10.0.0.0/8", " ::1/128"}, SessionIdle: 5 * time.Minute, SessionLife: 5 * time.Minute}, ""},
		"no scheme":           {AccessConfig{PublicURL: "erp.example"}, "ERP_PUBLIC_URL"},
		"another scheme":      {AccessConfig{PublicURL: "ftp://erp.example"}, "ERP_PUBLIC_URL"},
		"a path":              {AccessConfig{PublicURL: "https://erp.example/erp"}, "ERP_PUBLIC_URL"},
		"a password":          {AccessConfig{PublicURL: "https://a:b@erp.example"}, "ERP_PUBLIC_URL"},
		"an address":          {AccessConfig{TrustedProxies: []string{"10.0.0.1"}}, "ERP_TRUSTED_PROXIES"},
		"idle for seconds":    {AccessConfig{SessionIdle: 30 * time.Second}, "ERP_SESSION_IDLE"},
		"life below idle":     {AccessConfig{SessionLife: 30 * time.Minute}, "ERP_SESSION_LIFE"},
		"life without an end": {AccessConfig{SessionLife: 10_000 * time.Hour}, "ERP_SESSION_LIFE"},
	} {
		err := c.config.check("ERP_")
		if (err == nil) != (c.names == "") || err != nil && !strings.HasPrefix(err.Error(), c.names+": ") {
			t.Errorf("%s: %v, want a mistake in %q", name, err, c.names)
		}
	}
}

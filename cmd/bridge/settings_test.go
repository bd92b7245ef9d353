package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func variables(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestFlagsWinOverVariablesAndVariablesOverDefaults(t *testing.T) {
	t.Parallel()
	s, err := parse([]string{"--erp-listen=127.0.0.1:1"},
		variables(map[string]string{"ERP_LISTEN": "127.0.0.1:2", "CRM_LISTEN": "127.0.0.1:3", "ONCE": "1", "BRIDGE_FAULTS": "false"}),
		io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s.ERPListen != "127.0.0.1:1" || s.CRMListen != "127.0.0.1:3" || s.ProxyListen != "127.0.0.1:0" || !s.Once || s.Faults {
		t.Errorf("got %+v", s)
	}
}

func TestFaultsAreOnUnlessSwitchedOff(t *testing.T) {
	t.Parallel()
	for want, args := range map[bool][]string{true: nil, false: {"--no-faults"}} {
		s, err := parse(args, variables(nil), io.Discard, io.Discard)
		if err != nil || s.Faults != want {
			t.Errorf("%v: faults are %v, %v", args, s.Faults, err)
		}
	}
}

func TestAllWrongSettingsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"--rate-cut=2", "--settle-timeout=0s", "--crm-listen=8081", "--delimiter=;;"},
		variables(nil), io.Discard, io.Discard)
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range []string{"rate of cut is 2", "--settle-timeout=0s", "--crm-listen=8081", "--delimiter"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not name %q: %v", text, err)
		}
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run(t.Context(), []string{"--help"}, variables(nil), &out, io.Discard)
	if !errors.Is(err, errHelp) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"--data-dir", "ERP_DATABASE_URL", "--[no-]faults", "--once"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the help does not name %s:\n%s", text, out.String())
		}
	}
}

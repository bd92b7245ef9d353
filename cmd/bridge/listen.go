package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// port is one of the program's ports, and the flag that changes it.
type port struct{ what, flag string }

var (
	erpPort   = port{"ERP", "erp-listen"}
	crmPort   = port{"CRM side", "crm-listen"}
	proxyPort = port{"proxy between them", "proxy-listen"}

	targetPort = port{"simulator of targets", "target-listen"}
)

// checkPorts fails before anything is started if one of the ports is taken. Another program may still take it before
// its service does; that service then says the same.
func checkPorts(ctx context.Context, s settings) error {
	for _, p := range []struct {
		port
		address string
	}{{erpPort, s.ERPListen}, {crmPort, s.CRMListen}, {proxyPort, s.ProxyListen}, {targetPort, s.TargetListen}} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
		if err != nil {
			return explainListen(err, p.port, p.address)
		}
		l.Close()
	}
	return nil
}

// explainListen says what helps if err is about the port. Other errors, and nil, stay as they are.
func explainListen(err error, p port, address string) error {
	_, number, _ := net.SplitHostPort(address)
	var failed *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %s for the %s is taken by another program: choose another one with --%s=127.0.0.1:PORT "+
			"(port 0 takes any free one): %w", number, p.what, p.flag, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %s for the %s may not be opened by this user: choose one above 1023 with "+
			"--%s=127.0.0.1:PORT: %w", number, p.what, p.flag, err)
	case errors.As(err, &failed) && failed.Op == "listen":
		return fmt.Errorf("--%s=%s, for the %s: %w", p.flag, address, p.what, err)
	}
	return err
}

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"invoicebridge/internal/faultproxy"
)

// settings are the program's flags and variables.
type settings struct {
	Once          bool          `env:"ONCE" help:"End after the demo; the exit status is 0 only if no invoice is missing or there twice."`
	DataDir       string        `env:"BRIDGE_DATA_DIR" default:".data" help:"Where data, tokens and log are kept between runs."`
	Orders        []string      `env:"BRIDGE_ORDERS" placeholder:"FILE" help:"Files of orders to carry over (.csv, .jsonl) instead of the examples."`
	Delimiter     string        `default:"," help:"Delimiter of the CSV files in --orders."`
	Decimal       string        `default:"." help:"Decimal mark of the CSV files in --orders."`
	SettleTimeout time.Duration `env:"BRIDGE_SETTLE_TIMEOUT" default:"2m" help:"How long the orders may take to be settled."`

	ERPListen      string `env:"ERP_LISTEN" default:"127.0.0.1:8080" help:"Where the ERP listens; port 0 takes any free one."`
	CRMListen      string `env:"CRM_LISTEN" default:"127.0.0.1:8081" help:"Where the CRM side listens."`
	ProxyListen    string `env:"PROXY_LISTEN" default:"127.0.0.1:0" help:"Where the proxy between the two listens."`
	TargetListen   string `env:"TARGET_LISTEN" default:"127.0.0.1:0" help:"Where the simulator of external targets listens."`
	ERPDatabaseURL string `name:"erp-database-url" env:"ERP_DATABASE_URL" placeholder:"URL" help:"A PostgreSQL database for the ERP instead of the embedded one."`
	CRMDatabaseURL string `name:"crm-database-url" env:"CRM_DATABASE_URL" placeholder:"URL" help:"A PostgreSQL database for the CRM side instead of the embedded one."`

	Faults     bool          `env:"BRIDGE_FAULTS" default:"true" negatable:"" help:"Faults between the CRM side and the ERP, and at the targets."`
	Seed       uint64        `env:"BRIDGE_FAULT_SEED" default:"1" help:"Decides with the order of the requests which of them meets which fault."`
	Reset      float64       `name:"rate-reset" default:"0.08" help:"Share of requests whose answer is lost after the ERP has committed: connection reset."`
	Hold       float64       `name:"rate-hold" default:"0.01" help:"Share whose answer is held for longer than the CRM side waits."`
	Cut        float64       `name:"rate-cut" default:"0.04" help:"Share whose answer is cut in the middle."`
	BadGateway float64       `name:"rate-bad-gateway" default:"0.04" help:"Share answered 502 after the ERP has committed."`
	Duplicate  float64       `name:"rate-duplicate" default:"0.06" help:"Share that is sent twice at once."`
	Delay      float64       `name:"rate-delay" default:"0.05" help:"Share that is delayed."`
	Refuse     float64       `name:"rate-refuse" default:"0.05" help:"Share whose connection is reset before anything is sent on."`
	DelayTime  time.Duration `name:"delay" default:"300ms" help:"How long a delayed request waits."`

	LogLevel  string `env:"LOG_LEVEL" default:"warn" help:"Least level that is logged: debug, info, warn or error."`
	LogFormat string `env:"LOG_FORMAT" default:"text" help:"Form of log lines: text or json."`
	LogFile   string `env:"LOG_FILE" placeholder:"FILE" help:"Where the log goes; - is standard error. Default: bridge.log in the data folder."`
}

// errHelp says that --help was answered and there is nothing more to do.
var errHelp = errors.New("help was asked for")

func parse(args []string, getenv func(string) string, stdout, stderr io.Writer) (s settings, err error) {
	helped := false
	parser, err := kong.New(&s, kong.Name("bridge"), kong.UsageOnError(), kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), kong.ValueFormatter(helpWithVariables),
		kong.Description("Runs the ERP, the CRM side, and a proxy with the faults of a real network between them, on a "+
			"PostgreSQL of its own; carries the example orders over and counts what became of them."))
	if err != nil {
		return s, fmt.Errorf("flags: %w", err)
	}
	readVariables(parser, getenv)
	_, err = parser.Parse(args)
	switch {
	case helped:
		return s, errHelp
	case err != nil:
		return s, err
	}
	return s, s.validate()
}

// readVariables has kong ask getenv, where it would ask the process's own environment.
func readVariables(parser *kong.Kong, getenv func(string) string) {
	for _, flag := range parser.Model.Flags {
		flag.Tag.Envs = nil // flag.Envs stays, for the help text
	}
	kong.Resolvers(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, name := range flag.Envs {
			if value := getenv(name); value != "" {
				return value, nil
			}
		}
		return nil, nil
	})).Apply(parser) //nolint:errcheck // adding a resolver can't fail
}

// helpWithVariables names a flag's variables as kong would, were they still its own.
func helpWithVariables(value *kong.Value) string {
	if value.Flag == nil || len(value.Flag.Envs) == 0 {
		return value.Help
	}
	return fmt.Sprintf("%s ($%s)", value.Help, strings.Join(value.Flag.Envs, ", $"))
}

func (s settings) rates() faultproxy.Rates {
	return faultproxy.Rates{
		Reset: s.Reset, Hold: s.Hold, Cut: s.Cut, BadGateway: s.BadGateway,
		Duplicate: s.Duplicate, Delay: s.Delay, Refuse: s.Refuse,
	}
}

// validate gives all mistakes at once, each with its flag.
func (s settings) validate() error {
	var errs []error
	if err := s.rates().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--rate-...: %w", err))
	}
	if s.DelayTime < 0 {
		errs = append(errs, fmt.Errorf("--delay=%s: it can't be negative", s.DelayTime))
	}
	if s.SettleTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--settle-timeout=%s: it must be more than 0", s.SettleTimeout))
	}
	for _, text := range []struct{ flag, value string }{{"delimiter", s.Delimiter}, {"decimal", s.Decimal}} {
		if len([]rune(text.value)) != 1 {
			errs = append(errs, fmt.Errorf("--%s=%q: it must be one character", text.flag, text.value))
		}
	}
	for _, a := range []struct{ flag, value string }{
		{"erp-listen", s.ERPListen}, {"crm-listen", s.CRMListen}, {"proxy-listen", s.ProxyListen}, {"target-listen", s.TargetListen},
	} {
		if _, _, err := net.SplitHostPort(a.value); err != nil {
			errs = append(errs, fmt.Errorf("--%s=%s: it must be host:port: %w", a.flag, a.value, err))
		}
	}
	return errors.Join(errs...)
}

package ordergen

import "invoicebridge/internal/erpapi"

// market is where a customer is, and what is charged there.
type market struct {
	country  string
	currency string
	milli    int64    // thousandths of the currency for one euro; only makes prices look usual
	standard []string // VAT rates, percent, the usual one first
	eu       bool
	names    []string // %d is the customer's number
	address  string
}

var markets = []market{
	{"DE", "EUR", 1000, []string{"19", "7"}, true,
		[]string{"Musterhandel %d GmbH", "Beispiel & Söhne Nr. %d", "Prüfkunde Größe %d eG"}, "Beispielweg %d\n00000 Musterstadt"},
	{"AT", "EUR", 1000, []string{"20", "10"}, true, []string{"Übungsfirma %d OG", "Muster, \"M\"; Filiale %d"}, "Mustergasse %d\n0000 Probedorf"},
	{"FR", "EUR", 1000, []string{"20", "5.5"}, true, []string{"Société Exemple n° %d", "L'Échantillon %d SARL"}, "%d, rue de l'Exemple\n00000 Modèleville"},
	{"IE", "EUR", 1000, []string{"23", "13.5"}, true, []string{"O'Sample No. %d Ltd"}, "%d Example Quay\nSampletown"},
	{"GR", "EUR", 1000, []string{"24", "13"}, true, []string{"Παράδειγμα %d ΑΕ"}, "Οδός Παραδείγματος %d"},
	{"PL", "PLN", 4300, []string{"23", "8"}, true, []string{"Przykład Łódź %d sp. z o.o."}, "ul. Przykładowa %d\n00-000 Wzorcowo"},
	{"SE", "SEK", 11_300, []string{"25", "12"}, true, []string{"Exempelbolaget Åäö %d AB"}, "Exempelgatan %d\n000 00 Provstad"},
	{"CH", "CHF", 950, []string{"8.1", "2.6"}, false, []string{"Beispielwerk %d AG"}, "Musterstrasse %d\n0000 Beispielwil"},
	{"GB", "GBP", 850, []string{"20", "5"}, false, []string{"Sample & Daughters No. %d Ltd"}, "%d Placeholder Lane\nTest Town"},
	{"US", "USD", 1100, []string{"0"}, false, []string{"Example Widgets No. %d, Inc.", "+Plus Sample %d LLC"}, "%d Example Avenue\nAnytown 00000"},
	{"JP", "JPY", 160_000, []string{"10", "8"}, false, []string{"見本商店 第%d号", "テスト工業 %d 株式会社"}, "見本町%d丁目"},
	{"KW", "KWD", 330, []string{"0"}, false, []string{"شركة المثال رقم %d"}, "شارع المثال %d"},
}

// shopMarkets are the markets of the web shop.
var shopMarkets = []market{markets[0], markets[0], markets[0], markets[1], markets[2]}

// treatment is how VAT is dealt with on a line (EN 16931, BT-151), and what its category demands.
type treatment struct {
	category string
	rate     string // "": the category has none (BR-O-5)
	reason   string // BR-E-10, BR-AE-10, BR-IC-10, BR-G-10, BR-O-10
	buyerID  bool   // the buyer's VAT id is demanded (BR-AE-2, BR-IC-2)
}

var (
	zeroRated     = treatment{category: "Z", rate: "0"}
	exempt        = treatment{category: "E", rate: "0", reason: "Exempt: training (made-up ground)"}
	reverseCharge = treatment{category: "AE", rate: "0", reason: "Reverse charge", buyerID: true}
	intraEU       = treatment{category: "K", rate: "0", reason: "Intra-community supply", buyerID: true}
	export        = treatment{category: "G", rate: "0", reason: "Export outside the EU"}
	outOfScope    = treatment{category: "O", reason: "Not subject to VAT"}
)

func standard(rate string) treatment {
	if rate == "0" {
		return zeroRated
	}
	return treatment{category: "S", rate: rate}
}

func (t treatment) apply(l *erpapi.Line) {
	l.VATCategory, l.ExemptionReason = t.category, t.reason
	if t.rate != "" {
		l.VATRate = exact(t.rate)
	}
}

// product is something to sell.
type product struct {
	sku, name string
	least     int // price in euros
	most      int
	decimals  int32 // of its quantity
}

var products = []product{
	{"EX-CHAIR", "Example chair", 39, 240, 0},
	{"EX-DESK", "Schreibtisch „Beispiel“, höhenverstellbar", 199, 890, 0},
	{"EX-CABLE", "Cable, cut to length (m)", 1, 9, 2},
	{"EX-COFFEE", "Kaffee, geröstet (kg)", 12, 38, 3},
	{"EX-SUPPORT", "Support (h)", 70, 160, 2},
	{"EX-LICENCE", "Licence, 12 months; seat", 48, 420, 0},
	{"EX-CHEESE", "Fromage d'exemple (kg)", 9, 31, 3},
	{"EX-PAPER", "Paper A4, 500 sheets", 4, 8, 0},
	{"EX-LAMP", "Lamp \"Sample\"", 15, 120, 0},
	{"EX-SENSOR", "Sensor Ω 10 kΩ ± 1 %", 2, 30, 0},
}

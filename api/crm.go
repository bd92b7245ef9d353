package api

import _ "embed"

var (
	//go:embed crm-openapi.yaml
	crmOpenAPI []byte
	//go:embed order.schema.json
	orderSchema []byte
)

// CRMOpenAPI is the contract of the CRM side's HTTP interface, an OpenAPI 3.1 document in YAML. It is the caller's
// own copy.
func CRMOpenAPI() []byte { return append([]byte(nil), crmOpenAPI...) }

// OrderSchema is the native order form as JSON Schema 2020-12. It is the caller's own copy.
func OrderSchema() []byte { return append([]byte(nil), orderSchema...) }

// Package api holds the contract of the ERP's HTTP interface.
package api

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the contract, an OpenAPI 3.1 document in YAML. It is the caller's own copy.
func OpenAPI() []byte { return append([]byte(nil), openAPI...) }
